/* Wrappers by libarchive, which reads from a function of ours. */
#include "base/locale.h"
#include "log/unwrap.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct oos_unwrap {
    struct archive *archive;
    ssize_t (*below)(void *, const void **);
    void *context;
};

bool oos_unwrap_is_built(void)
{
    return true;
}

static la_ssize_t give_archive(struct archive *archive, void *context, const void **ret_bytes)
{
    oos_unwrap *wrapper = context;
    ssize_t const count = wrapper->below(wrapper->context, ret_bytes);
    if (count < 0) archive_set_error(archive, EIO, "the level below is broken");
    return count;
}

oos_unwrap *oos_unwrap_open(ssize_t (*below)(void *, const void **), void *context)
{
    oos_unwrap *wrapper = calloc(1, sizeof *wrapper);
    struct archive *archive = wrapper ? archive_read_new() : NULL;
    if (!archive) {
        free(wrapper);
        free(context);
        return NULL;
    }
    *wrapper = (oos_unwrap){archive, below, context};
    archive_read_support_filter_gzip(archive);
    archive_read_support_filter_zstd(archive);
    archive_read_support_filter_xz(archive);
    archive_read_support_filter_bzip2(archive);
    archive_read_support_filter_lz4(archive);
    archive_read_support_format_tar(archive);
    archive_read_support_format_zip_streamable(archive);
    archive_read_support_format_raw(archive);
    archive_read_open(archive, wrapper, NULL, give_archive, NULL); /* a failure shows at the first file */
    return wrapper;
}

void oos_unwrap_close(oos_unwrap *wrapper)
{
    if (!wrapper) return;
    archive_read_free(wrapper->archive);
    free(wrapper->context);
    free(wrapper);
}

bool oos_unwrap_next(oos_unwrap *wrapper, char *name, size_t capacity)
{
    struct archive_entry *entry;
    locale_t const before = oos_locale_enter(); /* names are converted to the locale's character set */
    int const got = archive_read_next_header(wrapper->archive, &entry);
    bool const found = got == ARCHIVE_OK || got == ARCHIVE_WARN;
    if (found && archive_format(wrapper->archive) != ARCHIVE_FORMAT_RAW) {
        const char *path = archive_entry_pathname(entry);
        snprintf(name, capacity, "%s", path ? path : "");
    }
    oos_locale_leave(before);
    return found;
}

ssize_t oos_unwrap_read(oos_unwrap *wrapper, char *bytes, size_t capacity)
{
    return archive_read_data(wrapper->archive, bytes, capacity);
}

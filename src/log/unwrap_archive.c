/* Wrappers by libarchive, which reads from a function of ours. */
#include "base/locale.h"
#include "log/log.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct oos_unwrap {
    struct archive *archive;
    ssize_t (*below)(void *, const void **);
    void *context;
    oos_unwrap_kind kind;
    bool at_file, ended; /* behind its end libarchive must not be asked */
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

/* What is inside a compressed file the level above finds out: libarchive would take zero bytes, with which a log begins that was cut off
 * at its start, for the end of a tar. */
static void formats_choose(struct archive *archive, oos_unwrap_kind kind)
{
    if (kind == OOS_UNWRAP_TAR) archive_read_support_format_tar(archive);
    if (kind == OOS_UNWRAP_ZIP) archive_read_support_format_zip_streamable(archive);
    if (kind != OOS_UNWRAP_COMPRESSED) return;
    archive_read_support_filter_gzip(archive);
    archive_read_support_filter_zstd(archive);
    archive_read_support_filter_xz(archive);
    archive_read_support_filter_bzip2(archive);
    archive_read_support_filter_lz4(archive);
    archive_read_support_format_raw(archive);
    archive_read_support_format_empty(archive); /* of no bytes */
}

oos_unwrap *oos_unwrap_open(oos_unwrap_kind kind, ssize_t (*below)(void *, const void **), void *context)
{
    oos_unwrap *wrapper = calloc(1, sizeof *wrapper);
    struct archive *archive = wrapper ? archive_read_new() : NULL;
    if (!archive) {
        free(wrapper);
        free(context);
        return NULL;
    }
    *wrapper = (oos_unwrap){archive, below, context, kind, false, false};
    formats_choose(archive, kind);
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

int oos_unwrap_next(oos_unwrap *wrapper, char *name, size_t capacity)
{
    struct archive_entry *entry;
    if (wrapper->ended) return 0;
    locale_t const before = oos_locale_enter(); /* names are converted to the locale's character set */
    int const got = archive_read_next_header(wrapper->archive, &entry);
    bool const packed = wrapper->kind == OOS_UNWRAP_COMPRESSED;
    wrapper->at_file = got == ARCHIVE_OK || got == ARCHIVE_WARN;
    if (wrapper->at_file && !packed) {
        const char *path = archive_entry_pathname(entry);
        snprintf(name, capacity, "%s", path ? path : "");
    }
    oos_locale_leave(before);
    wrapper->ended = !wrapper->at_file;
    /* A beginning that is not whole is unpacked by no filter, and would be given as it is. */
    if (packed && archive_filter_code(wrapper->archive, 0) == ARCHIVE_FILTER_NONE) {
        wrapper->at_file = false;
        wrapper->ended = true;
        return -1;
    }
    return wrapper->at_file ? 1 : got == ARCHIVE_EOF ? 0 : -1;
}

ssize_t oos_unwrap_read(oos_unwrap *wrapper, char *bytes, size_t capacity)
{
    return wrapper->at_file ? archive_read_data(wrapper->archive, bytes, capacity) : 0;
}

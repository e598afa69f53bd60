/* libarchive in its raw form: one member, whatever wrapper is around it. */
#include "base/stream.h"
#include "base/locale.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>

enum { CHUNK_BYTES = 64 << 10 };

struct oos_stream {
    struct archive *archive; /* NULL: bytes in memory, or an empty file */
    oos_view rest;           /* in memory: what is left; else: a chunk that was looked at */
};

static struct archive *archive_create(void)
{
    struct archive *a = archive_read_new();
    if (!a) return NULL;
    archive_read_support_filter_gzip(a);
    archive_read_support_filter_zstd(a);
    archive_read_support_filter_xz(a);
    archive_read_support_filter_bzip2(a);
    archive_read_support_format_raw(a);
    archive_read_support_format_empty(a);
    return a;
}

oomsight_status oos_stream_open_bytes(oos_view bytes, oos_stream **ret_stream, oomsight_error *reterr)
{
    oos_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a stream");
    stream->rest = bytes;
    *ret_stream = stream;
    return OOMSIGHT_OK;
}

oomsight_status oos_stream_open(const char *path, oos_stream **ret_stream, oomsight_error *reterr)
{
    oos_stream *stream = NULL;
    OOS_TRY(oos_stream_open_bytes((oos_view){0}, &stream, reterr));
    oomsight_status status = OOMSIGHT_OK;
    struct archive_entry *entry;
    stream->archive = archive_create();
    if (!stream->archive) {
        status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a stream");
    } else if (archive_read_open_filename(stream->archive, strcmp(path, "-") == 0 ? NULL : path,
                                          CHUNK_BYTES) != ARCHIVE_OK) {
        bool const absent = archive_errno(stream->archive) == ENOENT;
        status = oos_fail(reterr, absent ? OOMSIGHT_NOT_FOUND : OOMSIGHT_IO, "%s",
                          absent ? oos_errno_text(ENOENT) : archive_error_string(stream->archive));
    } else {
        int const header = archive_read_next_header(stream->archive, &entry);
        if (header == ARCHIVE_EOF) { /* an empty file */
            archive_read_free(stream->archive);
            stream->archive = NULL;
        } else if (header != ARCHIVE_OK) {
            const char *why = archive_error_string(stream->archive);
            status = oos_fail(reterr, OOMSIGHT_IO, "%s", why ? why : "cannot be read");
        }
    }
    if (status != OOMSIGHT_OK) {
        oos_stream_close(stream);
        return oos_fail_in(reterr, status, path);
    }
    *ret_stream = stream;
    return OOMSIGHT_OK;
}

void oos_stream_close(oos_stream *stream)
{
    if (!stream) return;
    if (stream->archive) archive_read_free(stream->archive);
    free(stream);
}

oomsight_status oos_stream_next(oos_stream *stream, oos_view *ret_chunk, oomsight_error *reterr)
{
    if (!stream->archive || stream->rest.len) {
        *ret_chunk = stream->rest;
        stream->rest = (oos_view){0};
        return OOMSIGHT_OK;
    }
    const void *bytes = NULL;
    size_t len = 0;
    la_int64_t offset = 0;
    while (len == 0) {
        int const got = archive_read_data_block(stream->archive, &bytes, &len, &offset);
        if (got == ARCHIVE_EOF) {
            *ret_chunk = (oos_view){0};
            return OOMSIGHT_OK;
        }
        if (got != ARCHIVE_OK && got != ARCHIVE_WARN) {
            const char *why = archive_error_string(stream->archive);
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "%s", why ? why : "cannot be unpacked");
        }
    }
    *ret_chunk = (oos_view){bytes, len};
    return OOMSIGHT_OK;
}

oomsight_status oos_stream_peek(oos_stream *stream, oos_view *ret_chunk, oomsight_error *reterr)
{
    OOS_TRY(oos_stream_next(stream, ret_chunk, reterr));
    stream->rest = *ret_chunk;
    return OOMSIGHT_OK;
}

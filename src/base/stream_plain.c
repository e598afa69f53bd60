/* Files as they are, for a build without libarchive: a wrapper is recognised and refused. */
#include "base/locale.h"
#include "base/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 << 10 };

struct oos_stream {
    int fd;         /* -1: bytes in memory */
    oos_view rest;  /* in memory: what is left; else: a chunk that was looked at */
    char *chunk;    /* NULL: bytes in memory */
    bool looked_at; /* they have been looked at */
};

oomsight_status oos_stream_open_bytes(oos_view bytes, oos_stream **ret_stream, oomsight_error *reterr)
{
    oos_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a stream");
    stream->rest = bytes;
    stream->fd = -1;
    *ret_stream = stream;
    return OOMSIGHT_OK;
}

static bool is_wrapped(oos_view start)
{
    static const oos_view magics[] = {{"\x1f\x8b", 2},
                                      {"\x28\xb5\x2f\xfd", 4},
                                      {"\xfd"
                                       "7zXZ",
                                       5},
                                      {"BZh", 3}};
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (start.len >= magics[i].len && memcmp(start.ptr, magics[i].ptr, magics[i].len) == 0) return true;
    return false;
}

static oomsight_status read_chunk(oos_stream *stream, oos_view *ret_chunk, oomsight_error *reterr)
{
    ssize_t count;
    do count = read(stream->fd, stream->chunk, CHUNK_BYTES);
    while (count < 0 && errno == EINTR);
    if (count < 0) return oos_fail(reterr, OOMSIGHT_IO, "%s", oos_errno_text(errno));
    *ret_chunk = (oos_view){stream->chunk, (size_t)count};
    if (!stream->looked_at && is_wrapped(*ret_chunk))
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                        "packed; this build of oomsight opens no archives: unpack it first");
    stream->looked_at = true;
    return OOMSIGHT_OK;
}

oomsight_status oos_stream_open(const char *path, oos_stream **ret_stream, oomsight_error *reterr)
{
    oos_stream *stream = NULL;
    OOS_TRY(oos_stream_open_bytes((oos_view){0}, &stream, reterr));
    oomsight_status status = OOMSIGHT_OK;
    stream->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (stream->fd < 0) {
        status =
            oos_fail(reterr, errno == ENOENT ? OOMSIGHT_NOT_FOUND : OOMSIGHT_IO, "%s", oos_errno_text(errno));
    } else if (!(stream->chunk = malloc(CHUNK_BYTES))) {
        status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a stream");
    } else {
        status = read_chunk(stream, &stream->rest, reterr);
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
    if (stream->fd > STDIN_FILENO) close(stream->fd);
    free(stream->chunk);
    free(stream);
}

oomsight_status oos_stream_next(oos_stream *stream, oos_view *ret_chunk, oomsight_error *reterr)
{
    if (stream->fd >= 0 && stream->rest.len == 0) return read_chunk(stream, ret_chunk, reterr);
    *ret_chunk = stream->rest;
    stream->rest = (oos_view){0};
    return OOMSIGHT_OK;
}

oomsight_status oos_stream_peek(oos_stream *stream, oos_view *ret_chunk, oomsight_error *reterr)
{
    OOS_TRY(oos_stream_next(stream, ret_chunk, reterr));
    stream->rest = *ret_chunk;
    return OOMSIGHT_OK;
}

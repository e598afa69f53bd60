/* Bytes from a file, from standard input ("-") or from memory, a chunk at a time; gzip, zstd, xz and bzip2 wrappers are
 * taken off on the way. An edge to libarchive (stream_archive.c); a build without it (stream_plain.c) refuses wrappers. */
#pragma once
#include "base/error.h"
#include "base/view.h"

typedef struct oos_stream oos_stream;

oomsight_status oos_stream_open(const char *path, oos_stream **ret_stream, oomsight_error *reterr);
void oos_stream_close(oos_stream *stream); /* NULL is fine */

/* The same for bytes that are already here; they are not copied and not unwrapped. */
oomsight_status oos_stream_open_bytes(oos_view bytes, oos_stream **ret_stream, oomsight_error *reterr);

/* The next bytes, valid until the next call; an empty view at the end. */
oomsight_status oos_stream_next(oos_stream *stream, oos_view *ret_chunk, oomsight_error *reterr);

/* Look at them without taking them. */
oomsight_status oos_stream_peek(oos_stream *stream, oos_view *ret_chunk, oomsight_error *reterr);

/* ---- a cursor over the chunks ---------------------------------------------------------------------------------- */

typedef struct oos_cursor {
    oos_stream *stream;
    oos_view chunk;
    size_t at;       /* in the chunk */
    uint64_t offset; /* of the chunk in the stream */
    bool ended;
    oomsight_status status; /* a failure of the stream stays here: get() then says "end" */
    oomsight_error *reterr;
} oos_cursor;

void oos_cursor_init(oos_cursor *cursor, oos_stream *stream, oomsight_error *reterr);

/* Load the next chunk; false at the end or on failure. */
bool oos_cursor_refill(oos_cursor *cursor);

static inline uint64_t oos_cursor_offset(const oos_cursor *cursor)
{
    return cursor->offset + cursor->at;
}

/* The next byte, -1 at the end. */
static inline int oos_cursor_peek(oos_cursor *cursor)
{
    if (cursor->at >= cursor->chunk.len && !oos_cursor_refill(cursor)) return -1;
    return (unsigned char)cursor->chunk.ptr[cursor->at];
}
static inline int oos_cursor_get(oos_cursor *cursor)
{
    int const c = oos_cursor_peek(cursor);
    if (c >= 0) cursor->at++;
    return c;
}

/* Exactly `len` bytes, copied; false when the stream ends first. */
bool oos_cursor_read(oos_cursor *cursor, void *ret_bytes, size_t len);

/* A cursor over the chunks of a stream. */
#include "base/stream.h"
#include "base/check.h"

void oos_cursor_init(oos_cursor *cursor, oos_stream *stream, oomsight_error *reterr)
{
    *cursor = (oos_cursor){.stream = stream, .status = OOMSIGHT_OK, .reterr = reterr};
}

bool oos_cursor_refill(oos_cursor *cursor)
{
    if (cursor->ended) return false;
    oos_assert(cursor->at == cursor->chunk.len); /* nothing is left out */
    cursor->offset += cursor->chunk.len;
    cursor->at = 0;
    cursor->chunk = (oos_view){0};
    cursor->status = oos_stream_next(cursor->stream, &cursor->chunk, cursor->reterr);
    cursor->ended = cursor->status != OOMSIGHT_OK || cursor->chunk.len == 0;
    return !cursor->ended;
}

bool oos_cursor_read(oos_cursor *cursor, void *ret_bytes, size_t len)
{
    char *to = ret_bytes;
    while (len) {
        if (oos_cursor_peek(cursor) < 0) return false;
        size_t const here = cursor->chunk.len - cursor->at;
        size_t const part = here < len ? here : len;
        memcpy(to, cursor->chunk.ptr + cursor->at, part);
        cursor->at += part;
        to += part;
        len -= part;
    }
    return true;
}

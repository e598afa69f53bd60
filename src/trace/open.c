/* Telling the forms apart by their first bytes: a pickle begins with PROTO, our records with their magic, JSON with a
 * brace, and everything else is a trace written by hand. */
#include "trace/trace.h"

#include <oomsight/trace.h>

static oomsight_status from_snapshot(oos_snapshot *snapshot, oos_trace **ret_trace, oomsight_error *reterr)
{
    oomsight_status const status = oos_snapshot_to_trace(snapshot, ret_trace, reterr);
    oos_snapshot_free(snapshot);
    return status;
}

/* JSON lines name an operation early in their first line; a snapshot is one dictionary of other keys. */
static bool is_json_lines(oos_view head)
{
    const char *end = memchr(head.ptr, '\n', head.len);
    oos_view const line = oos_view_slice(head, 0, end ? (size_t)(end - head.ptr) : head.len);
    return memmem(line.ptr, line.len, "\"op\"", 4) != NULL;
}

/* The first key of an object is one of a snapshot's. */
static bool is_snapshot(oos_view head)
{
    static const char *const keys[] = {"segments", "device_traces", "allocator_settings",
                                       "external_annotations"};
    size_t at = 1;
    while (at < head.len && strchr(" \t\r\n", head.ptr[at])) at++;
    if (at == head.len || head.ptr[at] != '"') return false;
    const char *end = memchr(head.ptr + at + 1, '"', head.len - at - 1);
    if (!end) return false;
    oos_view const key = {head.ptr + at + 1, (size_t)(end - head.ptr) - at - 1};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (oos_view_is(key, keys[i])) return true;
    return false;
}

bool oos_trace_begins(oos_view head)
{
    enum { PROTOCOL_NEWEST = 5 };
    if (head.len < 2) return false;
    if ((unsigned char)head.ptr[0] == 0x80) return head.ptr[1] >= 0 && head.ptr[1] <= PROTOCOL_NEWEST;
    if (head.ptr[0] == '{') return is_json_lines(head) || is_snapshot(head);
    return oos_view_starts(head, OOMSIGHT_TRACE_MAGIC) || oos_trace_begins_text(head);
}

oomsight_status oos_trace_read(oos_stream *stream, oos_trace **ret_trace, oomsight_error *reterr)
{
    oos_view head;
    oos_snapshot *snapshot = NULL;
    OOS_TRY(oos_stream_peek(stream, &head, reterr));
    if (head.len == 0) return oos_fail(reterr, OOMSIGHT_MALFORMED, "an empty input");
    if ((unsigned char)head.ptr[0] == 0x80) {
        OOS_TRY(oos_snapshot_read_pickle(stream, &snapshot, reterr));
        return from_snapshot(snapshot, ret_trace, reterr);
    }
    if (oos_view_starts(head, OOMSIGHT_TRACE_MAGIC)) return oos_trace_read_binary(stream, ret_trace, reterr);
    if (head.ptr[0] == '{' && is_json_lines(head)) return oos_trace_read_jsonl(stream, ret_trace, reterr);
    if (head.ptr[0] == '{') {
        OOS_TRY(oos_snapshot_read_json(stream, &snapshot, reterr));
        return from_snapshot(snapshot, ret_trace, reterr);
    }
    return oos_trace_read_text(stream, ret_trace, reterr);
}

oomsight_status oos_trace_open(const char *path, oos_trace **ret_trace, oomsight_error *reterr)
{
    oos_stream *stream = NULL;
    OOS_TRY(oos_stream_open(path, &stream, reterr));
    oomsight_status const status = oos_trace_read(stream, ret_trace, reterr);
    oos_stream_close(stream);
    return status == OOMSIGHT_OK ? status : oos_fail_in(reterr, status, path);
}

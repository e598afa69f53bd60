/* Records of include/oomsight/trace.h. Only the process of the first record is read: each process has an allocator of
 * its own. */
#include "trace/trace.h"
#include "base/check.h"

#include <oomsight/trace.h>

#include <stdlib.h>

enum { MAX_RECORD = 4096 };
_Static_assert(sizeof(oomsight_trace_record) <= MAX_RECORD, "the shortest record fits");

static void add_record(oos_trace_builder *b, const oomsight_trace_record *r, uint64_t failures)
{
    static const uint8_t ops[] = {[OOMSIGHT_TRACE_MALLOC] = OOS_OP_MALLOC,
                                  [OOMSIGHT_TRACE_FREE] = OOS_OP_FREE,
                                  [OOMSIGHT_TRACE_RECORD_STREAM] = OOS_OP_RECORD_STREAM,
                                  [OOMSIGHT_TRACE_COMPLETE] = OOS_OP_COMPLETE,
                                  [OOMSIGHT_TRACE_EMPTY_CACHE] = OOS_OP_EMPTY_CACHE,
                                  [OOMSIGHT_TRACE_MALLOC_FAILED] = OOS_OP_MALLOC,
                                  [OOMSIGHT_TRACE_POOL_BEGIN] = OOS_OP_POOL_BEGIN,
                                  [OOMSIGHT_TRACE_POOL_END] = OOS_OP_POOL_END,
                                  [OOMSIGHT_TRACE_CAPTURE_BEGIN] = OOS_OP_CAPTURE_BEGIN,
                                  [OOMSIGHT_TRACE_CAPTURE_END] = OOS_OP_CAPTURE_END,
                                  [OOMSIGHT_TRACE_POOL_RELEASE] = OOS_OP_POOL_RELEASE,
                                  [OOMSIGHT_TRACE_POOL_CREATE] = OOS_OP_POOL_CREATE};
    if (r->kind == 0 || r->kind >= sizeof ops || r->device > 63) return;
    uint64_t const name = (r->address & (((uint64_t)1 << 56) - 1)) | (uint64_t)r->device << 56;
    oos_event event = {.op = ops[r->kind], .device = (uint8_t)r->device, .id = OOS_NO_ID};
    event.stream = (uint16_t)oos_trace_stream(b, r->stream);
    if (r->kind == OOMSIGHT_TRACE_MALLOC || r->kind == OOMSIGHT_TRACE_MALLOC_FAILED) {
        event.bytes = r->size;
        event.id = oos_trace_new_id(b, r->kind == OOMSIGHT_TRACE_MALLOC ? name : ~failures);
    } else if (r->kind == OOMSIGHT_TRACE_FREE || r->kind == OOMSIGHT_TRACE_RECORD_STREAM) {
        event.id = oos_trace_find_id(b, name);
    } else if (r->kind >= OOMSIGHT_TRACE_POOL_BEGIN) {
        event.pool = (uint16_t)oos_trace_pool(b, (oos_pool_id){r->size, r->address});
    }
    if (r->kind == OOMSIGHT_TRACE_FREE) oos_trace_forget_id(b, name);
    oos_trace_add_timed(b, event, r->time_ns / 1000);
}

static oomsight_status read_records(oos_cursor *in, size_t record_bytes, oos_trace_builder *b,
                                    oomsight_error *reterr)
{
    oos_assert(record_bytes >= sizeof(oomsight_trace_record) && record_bytes <= MAX_RECORD);
    char bytes[MAX_RECORD];
    oomsight_trace_record record;
    uint32_t pid = 0;
    for (uint64_t count = 0; oos_cursor_peek(in) >= 0; count++) {
        if (!oos_cursor_read(in, bytes, record_bytes))
            break; /* a writer that died: the last record may be cut */
        memcpy(&record, bytes, sizeof record);
        if (count == 0) pid = record.pid;
        if (record.pid == pid) add_record(b, &record, count);
    }
    (void)reterr;
    return in->status;
}

oomsight_status oos_trace_read_binary(oos_stream *stream, oos_trace **ret_trace, oomsight_error *reterr)
{
    oos_cursor in;
    oos_cursor_init(&in, stream, reterr);
    oomsight_trace_header header;
    if (!oos_cursor_read(&in, &header, sizeof header) || memcmp(header.magic, OOMSIGHT_TRACE_MAGIC, 8) != 0)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "not a trace: no header");
    if (header.version != OOMSIGHT_TRACE_VERSION)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "trace version %u; this program reads %u",
                        header.version, OOMSIGHT_TRACE_VERSION);
    if (header.record_bytes < sizeof(oomsight_trace_record) || header.record_bytes > MAX_RECORD)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "records of %u bytes", header.record_bytes);
    oos_trace_builder *b = oos_trace_builder_create();
    if (!b) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the trace");
    oos_trace *trace = oos_trace_builder_trace(b);
    header.torch[sizeof header.torch - 1] = header.settings[sizeof header.settings - 1] = '\0';
    oos_version_parse(oos_view_of(header.torch), &trace->torch);
    trace->settings = strdup(header.settings);
    trace->driver_calls =
        !header.torch[0]; /* a writer inside the allocator knows its torch; the stand-ins see its calls */
    if (header.device_total_bytes) {
        trace->total_bytes = oos_u64_of(header.device_total_bytes);
        trace->base_bytes = oos_u64_of(header.device_base_bytes);
    }
    oomsight_status status = read_records(&in, header.record_bytes, b, reterr);
    if (status == OOMSIGHT_OK) status = oos_trace_builder_take(b, ret_trace, reterr);
    oos_trace_builder_free(b);
    return status;
}

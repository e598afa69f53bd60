/* Any bytes as a memory snapshot: as a pickle, and behind a first byte '{' as JSON. What is taken becomes a trace
 * whose numbers all lie in its tables; running traces is fuzz_trace's part. */
#include "fuzz.h"

#include "trace/trace.h"

static void check(const oos_trace *trace)
{
    for (size_t i = 0; i < trace->event_count; i++) {
        const oos_event *e = &trace->events[i];
        FUZZ_REQUIRE(e->pool < trace->pool_count && e->stack < trace->stack_count);
        FUZZ_REQUIRE(e->stream < trace->stream_count);
        FUZZ_REQUIRE(e->id < trace->id_count || e->id == OOS_NO_ID || e->op == OOS_OP_COMPLETE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    oos_stream *stream = NULL;
    oos_snapshot *snapshot = NULL;
    oos_trace *trace = NULL;
    oomsight_error error;
    if (oos_stream_open_bytes((oos_view){(const char *)bytes, len}, &stream, &error) != OOMSIGHT_OK) return 0;
    oomsight_status const status = len && bytes[0] == '{'
                                       ? oos_snapshot_read_json(stream, &snapshot, &error)
                                       : oos_snapshot_read_pickle(stream, &snapshot, &error);
    if (status == OOMSIGHT_OK && oos_snapshot_to_trace(snapshot, &trace, &error) == OOMSIGHT_OK) check(trace);
    oos_trace_free(trace);
    oos_snapshot_free(snapshot);
    oos_stream_close(stream);
    return 0;
}

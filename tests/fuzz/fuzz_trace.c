/* Any bytes as a trace: records by their magic, JSON lines by their brace, text otherwise. A short trace is run. */
#include "fuzz.h"

#include "trace/trace.h"
#include "replay/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    oos_stream *stream = NULL;
    oos_trace *trace = NULL;
    oomsight_error error;
    if (len && bytes[0] == 0x80) return 0; /* a pickle: fuzz_snapshot */
    if (oos_stream_open_bytes((oos_view){(const char *)bytes, len}, &stream, &error) != OOMSIGHT_OK) return 0;
    if (oos_trace_read(stream, &trace, &error) == OOMSIGHT_OK && trace->event_count <= 500) {
        oos_scenario const scenario = {0};
        oos_outcome outcome;
        if (oos_run(trace, &scenario, &outcome, &error) == OOMSIGHT_OK) {
            FUZZ_REQUIRE(outcome.peak_reserved_bytes >= outcome.end_allocated_bytes);
            oos_outcome_release(&outcome);
        }
    }
    oos_trace_free(trace);
    oos_stream_close(stream);
    return 0;
}

/* Any bytes as a log, from the stream to the conclusions. Ledgers add up, ranges are ranges, all is bounded. */
#include "fuzz.h"

#include "explain/explain.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static oos_arena *data;
    static oos_knowledge knowledge;
    if (!data) {
        data = oos_arena_create(1 << 20);
        FUZZ_REQUIRE(data && oos_knowledge_load(data, NULL, &knowledge, NULL) == OOMSIGHT_OK);
    }
    oos_arena *arena = oos_arena_create(64 << 10);
    oos_logstream *stream = NULL;
    oos_explanation explanation = {0};
    if (arena &&
        oos_logstream_open_bytes((oos_view){(const char *)bytes, len}, 1 << 20, &stream, NULL) ==
            OOMSIGHT_OK &&
        oos_explain_stream(arena, &knowledge, stream, &explanation, NULL) == OOMSIGHT_OK) {
        FUZZ_REQUIRE(explanation.count >= 1 || explanation.stream_cut);
        for (size_t i = 0; i < explanation.count; i++) {
            const oos_incident *incident = &explanation.incidents[i];
            FUZZ_REQUIRE(incident->phase < OOS_PHASE_COUNT && incident->cause);
            FUZZ_REQUIRE(incident->confidence >= 0 && incident->confidence <= 1);
            FUZZ_REQUIRE(!incident->held.peak_bytes ||
                         incident->held.ledger.held_bytes == incident->held.peak_bytes);
            FUZZ_REQUIRE(incident->first_line <= incident->last_line);
        }
    }
    oos_logstream_close(stream);
    oos_arena_free(arena);
    return 0;
}

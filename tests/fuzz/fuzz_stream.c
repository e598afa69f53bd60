/* Records of many streams in pieces of any length: what is acknowledged was given, and in its order; then the input ends. The first byte says
 * how long the pieces are. */
#include "fuzz.h"

#include "base/arena.h"
#include "follow/follow.h"

#include <stdlib.h>

static oos_knowledge knowledge;

static void on_incident(void *context, const oos_stream_told *told)
{
    uint64_t *given = context;
    FUZZ_REQUIRE(told->stream && *told->stream && *given && told->label_count <= OOS_LABELS_MAX);
    for (size_t i = 0; i < told->label_count; i++) FUZZ_REQUIRE(told->labels[i].key && told->labels[i].value);
}

static void on_acknowledged(void *context, const char *stream, const char *cursor)
{
    uint64_t *given = context;
    FUZZ_REQUIRE(stream && *stream && cursor && *cursor && (*given)--);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!knowledge.signals.literals)
        FUZZ_REQUIRE(oos_knowledge_load(oos_arena_create(1 << 20), NULL, &knowledge, NULL) == OOMSIGHT_OK);
    if (size < 2) return 0;
    size_t const step = data[0] % 97 + 1;
    uint64_t given = 1; /* at most as many acknowledgements as records */
    for (size_t i = 1; i < size; i++) given += data[i] == '\n';
    oos_streams *streams;
    oos_streams_params const params = {.most_streams = data[0] % 5 + 1,
                                       .context = &given,
                                       .on_incident = on_incident,
                                       .on_acknowledged = on_acknowledged};
    FUZZ_REQUIRE(oos_streams_open(&knowledge, &params, &streams, NULL) == OOMSIGHT_OK);
    for (size_t at = 1; at < size; at += step) {
        oos_view const piece = {(const char *)data + at, size - at < step ? size - at : step};
        FUZZ_REQUIRE(oos_streams_push(streams, piece, NULL) == OOMSIGHT_OK);
        FUZZ_REQUIRE(oos_streams_look(streams).streams <= params.most_streams);
        if (at % 7 == 3) FUZZ_REQUIRE(oos_streams_step(streams, false, NULL) == OOMSIGHT_OK);
    }
    FUZZ_REQUIRE(oos_streams_step(streams, true, NULL) == OOMSIGHT_OK);
    FUZZ_REQUIRE(oos_streams_delivered(streams, true));
    oos_streams_close(streams);
    return 0;
}

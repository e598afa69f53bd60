/* Any bytes as a ladder of levers and as refusals; then the quick reader of JSON and Jansson over the same bytes: what the quick one takes, Jansson takes, and both make the same of it. */
#include "base/json.h"
#include "facts/facts.h"
#include "fuzz.h"

static void ladder(oos_view text)
{
    oos_arena *arena = oos_arena_create(4096);
    const oos_ladder *read = NULL;
    if (arena && oos_ladder_read(arena, text, "vllm", &read, NULL) == OOMSIGHT_OK)
        for (size_t i = 0; i < read->count; i++)
            FUZZ_REQUIRE(read->list[i].id && read->list[i].cost.en &&
                         read->list[i].rung <= read->list[i].given);
    oos_arena_free(arena);
}

static void refusals(oos_view text)
{
    static const char *const words[] = {"tp", "dp"};
    static const oos_refusal_names names = {words, words, 2, 2};
    oos_arena *arena = oos_arena_create(4096);
    const oos_refusals *read = NULL;
    if (arena && oos_refusals_read(arena, text, &names, NULL, 0, &read, NULL) == OOMSIGHT_OK)
        for (size_t i = 0; i < read->count; i++) {
            const oos_refusal_step *step = read->steps[i];
            FUZZ_REQUIRE(!!step->says + !!step->bounds + (step->check < 2) == 1 &&
                         step->when_count <= OOS_WHEN_MAX && step->other > i && step->other <= read->count);
        }
    oos_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    oos_view const text = {(const char *)bytes, len};
    ladder(text);
    refusals(text);
    json_t *quick = oos_json_parse_plain(text);
    if (!quick) return 0;
    json_t *whole = oos_json_parse(text, JSON_DECODE_ANY);
    FUZZ_REQUIRE(whole);
    char *first = oos_json_text(quick, JSON_ENCODE_ANY), *second = oos_json_text(whole, JSON_ENCODE_ANY);
    FUZZ_REQUIRE(first && second && strcmp(first, second) == 0);
    free(first);
    free(second);
    json_decref(quick);
    json_decref(whole);
    return 0;
}

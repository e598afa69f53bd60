/* The ladder of levers as it is, and with faults planted in it: each is found by the reader. */
#include "unit.h"

#include "facts/facts.h"
#include "ledger/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const oos_ladder *load(oos_arena *arena, const char *engine)
{
    const oos_ladder *ladder = NULL;
    oomsight_error error = {0};
    oomsight_status const status = oos_ladder_load(arena, NULL, engine, &ladder, &error);
    if (status != OOMSIGHT_OK) fail_msg("%s", error.text);
    return ladder;
}

static void both_engines_have_a_ladder_from_nothing_to_elsewhere(void **state)
{
    (void)state;
    static const char *const engines[] = {"vllm", "sglang"};
    oos_arena *arena = oos_arena_create(1 << 16);
    for (size_t i = 0; i < 2; i++) {
        const oos_ladder *ladder = load(arena, engines[i]);
        unsigned rungs = 0;
        for (size_t k = 0; k < ladder->count; k++) rungs |= 1U << ladder->list[k].rung;
        assert_int_equal(rungs, 31);
        assert_int_equal(ladder->list[0].rung, OOS_RUNG_NOTHING);
        assert_string_equal(ladder->list[ladder->count - 1].id, "offload");
        assert_int_equal(oos_ladder_find(ladder, "release")->rung, OOS_RUNG_NOTHING);
        assert_null(oos_ladder_find(ladder, "no_such_lever"));
    }
    oos_arena_free(arena);
}

static void a_length_that_was_given_is_dearer_than_one_that_was_not(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(1 << 16);
    const oos_lever_record *length = oos_ladder_find(load(arena, "vllm"), "model_len");
    assert_string_equal(length->flag, "--max-model-len");
    assert_int_equal(oos_rung_letter(length->rung), 'b');
    assert_int_equal(oos_rung_letter(length->given), 'd');
    assert_int_equal(length->move, OOS_MOVE_LOWER);
    assert_int_equal(length->role, OOS_ROLE_length);
    assert_true(length->phases & (uint64_t)1 << OOS_PHASE_KV_SIZING);
    assert_true(length->owners == (uint64_t)1 << OOS_OWNER_ONE_REQUEST);
    assert_true(length->useless_phases & (uint64_t)1 << OOS_PHASE_CUDAGRAPH_CAPTURE);
    assert_true(length->useless_causes & (uint64_t)1 << OOS_CAUSE_WEIGHTS);
    const oos_lever_record *text = oos_ladder_find(load(arena, "vllm"), "text_only");
    assert_false(oos_lever_here(text, OOS_VERSION(0, 16, 0)));
    assert_true(oos_lever_here(text, OOS_VERSION(0, 17, 0)));
    oos_arena_free(arena);
}

static void a_checkpoint_loses_less_than_what_was_asked_for_and_offload_most(void **state)
{
    (void)state;
    static const char *const engines[] = {"vllm", "sglang"}, *const lengths[] = {"model_len", "context"};
    oos_arena *arena = oos_arena_create(1 << 16);
    for (size_t i = 0; i < 2; i++) {
        const oos_ladder *ladder = load(arena, engines[i]);
        const oos_lever_record *length = oos_ladder_find(ladder, lengths[i]);
        unsigned const checkpoint = oos_lever_loss(ladder, oos_ladder_find(ladder, "checkpoint"), false);
        assert_true(oos_lever_loss(ladder, oos_ladder_find(ladder, "kv_fp8"), false) < checkpoint);
        assert_true(oos_lever_loss(ladder, length, false) < checkpoint);
        assert_true(checkpoint < oos_lever_loss(ladder, length, true));
        unsigned const weights = oos_lever_loss(ladder, oos_ladder_find(ladder, "weights_fp8"), false);
        assert_true(oos_lever_loss(ladder, length, true) < weights);
        for (size_t k = 0; k + 1 < ladder->count; k++)
            assert_true(oos_lever_loss(ladder, &ladder->list[k], true) <
                        oos_lever_loss(ladder, &ladder->list[ladder->count - 1], false));
    }
    oos_arena_free(arena);
}

/* ---- planted faults -------------------------------------------------------------------------------------------------- */

static const char good[] =
    "{\"schema\":\"oomsight.levers/1\",\"engine\":\"vllm\",\"levers\":["
    "{\"id\":\"one\",\"rung\":\"a\",\"flag\":\"--x\",\"move\":\"lower\",\"since\":\"0.9.0\",\"until\":\"0.10."
    "0\",\"frees\":[\"weights\"],"
    "\"phases\":[\"weight_load\"],\"cost\":{\"en\":\"a\",\"zh\":\"b\"},"
    "\"useless\":{\"phases\":[\"kv_sizing\"],\"causes\":[\"lora\"],\"why\":{\"en\":\"a\",\"zh\":\"b\"}}},"
    "{\"id\":\"two\",\"rung\":\"b\",\"given\":\"d\",\"action\":{\"en\":\"a\",\"zh\":\"b\"},\"move\":\"do\","
    "\"frees\":[],\"phases\":[],"
    "\"cost\":{\"en\":\"a\",\"zh\":\"b\"}}]}";

static oomsight_status read_text(const char *text, oomsight_error *reterr)
{
    oos_arena *arena = oos_arena_create(1 << 14);
    const oos_ladder *ladder = NULL;
    oomsight_status const status = oos_ladder_read(arena, oos_view_of(text), "vllm", &ladder, reterr);
    assert_true((status == OOMSIGHT_OK) == (ladder != NULL));
    oos_arena_free(arena);
    return status;
}

static void each_planted_fault_is_found(void **state)
{
    (void)state;
    static const char *const faults[][3] = {
        {"oomsight.levers/1", "oomsight.levers/2", "schema"},
        {"\"engine\":\"vllm\"", "\"engine\":\"sglang\"", "engine"},
        {"\"id\":\"two\"", "\"id\":\"one\"", "twice"},
        {"\"id\":\"two\",", "", "has an id"},
        {"\"id\":\"one\"", "\"id\":\"\"", "empty"},
        {"\"rung\":\"a\"", "\"rung\":\"c\"", "order of rungs"},
        {"\"rung\":\"a\"", "\"rung\":\"f\"", "none of those"},
        {"\"rung\":\"b\"", "\"rung\":\"e\"", "more easily"},
        {"weight_load", "weight_loads", "none of those"},
        {"\"weights\"", "\"weights\",\"weights\"", "twice"},
        {"[\"weights\"]", "[\"\"]", "none of those"},
        {"\"lora\"", "\"\"", "none of those"},
        {"\"kv_sizing\"", "\"weight_load\"", "useless"},
        {"\"flag\":\"--x\"", "\"action\":{\"en\":\"a\",\"zh\":\"b\"}", "something to do"},
        {"\"flag\":\"--x\"", "\"flag\":\"--x\",\"variable\":\"X\"", "something to do"},
        {"\"flag\":\"--x\",", "", "something to do"},
        {"\"flag\":\"--x\"", "\"flag\":\"--x\",\"flag\":\"--y\"", "twice"},
        {"\"flag\":\"--x\"", "\"flags\":\"--x\"", "an unknown field"},
        {"\"move\":\"lower\"", "\"move\":\"lower\",\"step\":0", "a step of nothing"},
        {"\"move\":\"lower\"", "\"move\":\"lower\",\"role\":\"lengths\"", "none of those"},
        {"\"move\":\"lower\"", "\"move\":\"lower\",\"step\":\"16\"", "JSON"},
        {"\"0.10.0\"", "\"0.8.0\"", "ends before"},
        {"\"0.10.0\"", "\"latest\"", "release"},
        {"\"zh\":\"b\"", "\"en\":\"b\"", "en and zh"},
        {"\"move\":\"lower\"", "\"move\":7", "JSON"},
        {"]}", "", "JSON"},
        {"]}", "],\"more\":1}", "a ladder has"},
    };
    oomsight_error error;
    assert_int_equal(read_text(good, &error), OOMSIGHT_OK);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char text[2048];
        const char *at = strstr(good, faults[i][0]);
        assert_non_null(at);
        if (strcmp(faults[i][0], "]}") == 0) at = good + sizeof good - 3;
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, faults[i][1],
                 at + strlen(faults[i][0]));
        error = (oomsight_error){0};
        assert_int_equal(read_text(text, &error), OOMSIGHT_MALFORMED);
        if (!strstr(error.text, faults[i][2])) fail_msg("fault %zu: %s", i, error.text);
    }
}

static void more_levers_than_there_is_room_for_are_refused(void **state)
{
    (void)state;
    enum { MANY = OOS_LADDER_MAX + 1, EACH = 160 };
    char *text = malloc((size_t)MANY * EACH + 256);
    size_t len = (size_t)sprintf(text, "{\"schema\":\"oomsight.levers/1\",\"engine\":\"vllm\",\"levers\":[");
    for (int i = 0; i < MANY; i++)
        len += (size_t)sprintf(
            text + len,
            "%s{\"id\":\"l%d\",\"rung\":\"a\",\"flag\":\"--x\",\"move\":\"lower\",\"frees\":[],"
            "\"phases\":[],\"cost\":{\"en\":\"a\",\"zh\":\"b\"}}",
            i ? "," : "", i);
    strcpy(text + len, "]}");
    oomsight_error error = {0};
    assert_int_equal(read_text(text, &error), OOMSIGHT_MALFORMED);
    assert_non_null(strstr(error.text, "too many"));
    free(text);
}

static void every_beginning_of_the_file_is_refused(void **state)
{
    (void)state;
    for (size_t len = 0; len + 1 < sizeof good; len++) {
        oos_arena *arena = oos_arena_create(1 << 14);
        const oos_ladder *ladder = NULL;
        assert_int_equal(oos_ladder_read(arena, (oos_view){good, len}, "vllm", &ladder, NULL),
                         OOMSIGHT_MALFORMED);
        oos_arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_engines_have_a_ladder_from_nothing_to_elsewhere),
        cmocka_unit_test(a_length_that_was_given_is_dearer_than_one_that_was_not),
        cmocka_unit_test(a_checkpoint_loses_less_than_what_was_asked_for_and_offload_most),
        cmocka_unit_test(each_planted_fault_is_found),
        cmocka_unit_test(more_levers_than_there_is_room_for_are_refused),
        cmocka_unit_test(every_beginning_of_the_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

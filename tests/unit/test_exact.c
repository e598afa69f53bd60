#include "unit.h"

#include "plan/plan.h"

#define HEAD "{\"schema\":\"oomsight.exact/1\",\"engine\":\"vllm\",\"version\":\"0.33.0\","
#define TAKEN(values) HEAD "\"verdict\":\"taken\",\"values\":{" values "}}"

static oos_exact exact;

static bool reads(oos_arena *arena, const char *line)
{
    return oos_exact_read(arena, oos_view_of(line), &exact);
}

static void an_answer_is_read_under_the_names_of_a_plan(void **state)
{
    (void)state;
    uint64_t value;
    oos_arena *arena = oos_arena_create(4096);
    assert_true(reads(arena, TAKEN("\"max_model_len\":2048,\"enforce_eager\":true,\"dtype\":\"bfloat16\","
                                   "\"gpu_memory_utilization\":0.92,\"capture_sizes\":[1,2,4]")));
    assert_int_equal(exact.verdict, OOS_EXACT_TAKEN);
    assert_string_equal(exact.version, "0.33.0");
    assert_true(oos_exact_whole(&exact, "max_model_len", 1 << 20, &value));
    assert_int_equal(value, 2048);
    assert_false(oos_exact_whole(&exact, "max_model_len", 1024, &value));
    assert_false(oos_exact_whole(&exact, "dtype", 1024, &value));
    assert_int_equal(oos_exact_value(&exact, "enforce_eager")->kind, OOS_SETTING_YES);
    assert_string_equal(oos_exact_value(&exact, "dtype")->text, "bfloat16");
    assert_true(oos_exact_value(&exact, "gpu_memory_utilization")->real == 0.92);
    assert_true(exact.sizes_known);
    assert_int_equal(exact.size_count, 3);
    oos_arena_free(arena);
}

static void weights_and_layers_are_whole_or_not_there(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    assert_true(reads(arena,
                      HEAD "\"verdict\":\"taken\",\"param_bytes\":[5,7],\"cache\":{\"layers\":[{\"type\":"
                           "\"FullAttentionSpec\"}],\"blocks\":3,\"budget_bytes\":9}}"));
    assert_int_equal(exact.stage_count, 2);
    assert_int_equal(exact.param_bytes[1], 7);
    assert_non_null(strstr(exact.kv_layers_json, "FullAttentionSpec"));
    assert_int_equal(exact.blocks, 3);
    assert_true(reads(arena, HEAD
                      "\"verdict\":\"taken\",\"cache\":{\"tokens\":466033,\"budget_bytes\":68719476736}}"));
    assert_int_equal(exact.tokens, 466033);
    assert_true(reads(arena, HEAD "\"verdict\":\"taken\",\"cache\":{\"tokens\":466033}}"));
    assert_int_equal(exact.tokens, 0);
    static const char *const halves[] = {"[5,-7]", "[5,0]", "5", "[5,1e300]", "[\"5\"]"};
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        const char *line =
            oos_arena_format(arena,
                             HEAD "\"verdict\":\"taken\",\"param_bytes\":%s,\"cache\":{\"layers\":"
                                  "{},\"blocks\":-3,\"budget_bytes\":9}}",
                             halves[i]);
        assert_true(reads(arena, line));
        assert_int_equal(exact.stage_count, 0);
        assert_null(exact.kv_layers_json);
        assert_int_equal(exact.budget_bytes, 0);
    }
    oos_arena_free(arena);
}

static void what_is_no_answer_is_none(void **state)
{
    (void)state;
    static const char *const none[] = {
        "",
        "{}",
        "[]",
        "Segmentation fault",
        HEAD "\"verdict\":\"taken\"",
        HEAD "\"verdict\":\"perhaps\"}",
        HEAD "\"verdict\":7}",
        "{\"schema\":\"oomsight.exact/2\",\"engine\":\"vllm\",\"version\":\"1\",\"verdict\":\"taken\"}",
        "{\"schema\":\"oomsight.exact/1\",\"version\":\"1\",\"verdict\":\"taken\"}",
        "{\"schema\":\"oomsight.exact/1\",\"engine\":\"vllm\",\"version\":null,\"verdict\":\"refused\"}",
        TAKEN("\"gpu_memory_utilization\":NaN"),
    };
    oos_arena *arena = oos_arena_create(4096);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_false(reads(arena, none[i]));
    oos_arena_free(arena);
}

static void values_that_nothing_can_have_are_left_out(void **state)
{
    (void)state;
    uint64_t value;
    oos_arena *arena = oos_arena_create(4096);
    assert_true(reads(arena, TAKEN("\"max_model_len\":-1,\"max_num_seqs\":0,\"max_num_batched_tokens\":1e300,"
                                   "\"gpu_memory_utilization\":-0.5,\"dtype\":[1],\"capture_sizes\":[4,2]")));
    assert_null(oos_exact_value(&exact, "max_model_len"));
    assert_null(oos_exact_value(&exact, "max_num_batched_tokens"));
    assert_null(oos_exact_value(&exact, "gpu_memory_utilization"));
    assert_null(oos_exact_value(&exact, "dtype"));
    assert_false(oos_exact_whole(&exact, "max_num_seqs", 1024, &value));
    assert_false(exact.sizes_known);
    oos_arena_free(arena);
}

static void long_answers_are_cut_and_shown_without_control_characters(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    char line[70000], *at = line;
    at += sprintf(line, "%s", HEAD "\"verdict\":\"refused\",\"text\":\"\\u001b[2J");
    for (int i = 0; i < 6000; i++) at += sprintf(at, "word%d ", i);
    strcpy(at, "\"}");
    assert_true(reads(arena, line));
    assert_true(strlen(exact.sentence) <= 1010);
    assert_null(strchr(exact.sentence, '\x1b'));
    at = line + sprintf(line, "%s", HEAD "\"verdict\":\"taken\",\"values\":{\"a\":1");
    for (int i = 0; i < 4000; i++) at += sprintf(at, ",\"b%d\":1", i);
    strcpy(at, "}}");
    assert_true(reads(arena, line));
    assert_int_equal(exact.value_count, OOS_EXACT_VALUES_MAX);
    oos_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_read_under_the_names_of_a_plan),
        cmocka_unit_test(weights_and_layers_are_whole_or_not_there),
        cmocka_unit_test(what_is_no_answer_is_none),
        cmocka_unit_test(values_that_nothing_can_have_are_left_out),
        cmocka_unit_test(long_answers_are_cut_and_shown_without_control_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

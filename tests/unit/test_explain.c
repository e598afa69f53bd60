#include "unit.h"

#include "explain/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static oos_arena *arena;
static oos_knowledge knowledge;

static int load(void **state)
{
    (void)state;
    arena = oos_arena_create(1 << 20);
    oomsight_error error = {0};
    return oos_knowledge_load(arena, NULL, &knowledge, &error) == OOMSIGHT_OK ? 0 : (puts(error.text), 1);
}

static int unload(void **state)
{
    (void)state;
    oos_arena_free(arena);
    return 0;
}

static oos_explanation explain_bytes(const char *text, size_t len)
{
    oos_logstream *stream;
    oos_explanation explanation = {0};
    assert_int_equal(oos_logstream_open_bytes((oos_view){text, len}, 0, &stream, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_explain_stream(arena, &knowledge, stream, &explanation, NULL), OOMSIGHT_OK);
    oos_logstream_close(stream);
    return explanation;
}

static oos_explanation explain(const char *text)
{
    return explain_bytes(text, strlen(text));
}

#define OOM                                                                                                  \
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.56 GiB. GPU 0 has a total capacity of " \
    "31.36 GiB of which 1.37 GiB is free. Including non-PyTorch memory, this process has 29.98 GiB memory "  \
    "in "                                                                                                    \
    "use. Of the allocated memory 24.95 GiB is allocated by PyTorch, and 758.67 MiB is reserved by PyTorch " \
    "but unallocated."

static void the_frame_of_graph_profiling_decides_even_when_kv_tensors_are_innermost(void **state)
{
    (void)state;
    oos_explanation const e =
        explain("(EngineCore pid=1) INFO 04-24 10:21:03 [r.py:1] Model loading took 18.47 GiB memory and "
                "10.9 seconds\n"
                "(EngineCore pid=1) ERROR 04-24 10:22:36 [core.py:1] Traceback (most recent call last):\n"
                "(EngineCore pid=1) ERROR 04-24 10:22:36 [core.py:1]   File \"a.py\", line 1, in "
                "profile_cudagraph_memory\n"
                "(EngineCore pid=1) ERROR 04-24 10:22:36 [core.py:1]   File \"a.py\", line 2, in "
                "_allocate_kv_cache_tensors\n"
                "(EngineCore pid=1) ERROR 04-24 10:22:36 [core.py:1] " OOM "\n");
    assert_int_equal(e.count, 1);
    assert_true(e.incidents[0].is_oom);
    assert_int_equal(e.incidents[0].phase, OOS_PHASE_CUDAGRAPH_PROFILE);
    assert_string_equal(e.incidents[0].cause, "cudagraph_unbudgeted");
    assert_true(e.incidents[0].held.ledger.held_bytes == e.incidents[0].held.peak_bytes);
    assert_int_equal(e.incidents[0].evidence[e.incidents[0].evidence_count - 1].line, 5);
}

/* As in a reply on a forum: indentation, which tells code of a traceback from words, is behind the mark. */
static void a_quoted_report_is_read_like_the_report(void **state)
{
    (void)state;
    oos_explanation const e = explain(">     prepare_moe_fp8_layer_for_marlin(layer)\n"
                                      ">     marlin_qweight = ops.gptq_marlin_repack(\n"
                                      "> " OOM "\n");
    assert_int_equal(e.count, 1);
    assert_int_equal(e.incidents[0].phase, OOS_PHASE_QUANT_POSTPROCESS);
}

/* Large letters make a level of the sentence's first word; behind a time and a file it is one. */
static void a_sentence_that_begins_with_error_keeps_the_word(void **state)
{
    (void)state;
    oos_explanation e = explain("ERROR WHILE CREATING SHARED MEMORY SEGMENT /DEV/SHM/A (SIZE 9637888)\n");
    assert_int_equal(e.count, 1);
    assert_true(e.incidents[0].is_oom);
    e = explain("ERROR 04-24 10:22:36 [core.py:1] creating the memory segment\n");
    assert_false(e.count && e.incidents[0].is_oom);
}

static void a_message_broken_anywhere_gives_the_same_figures(void **state)
{
    (void)state;
    oos_explanation const whole = explain(OOM "\n");
    size_t const len = strlen(OOM);
    /* A number cut in two is the one thing that cannot be put together again with certainty. */
    for (size_t at = 60; at + 1 < len; at += 7) {
        if (strchr(".0123456789", OOM[at]) || strchr(".0123456789", OOM[at - 1])) continue;
        char text[1024];
        snprintf(text, sizeof text, "%.*s\n%s\n", (int)at, OOM, &OOM[at]);
        oos_explanation const e = explain(text);
        assert_int_equal(e.count, 1);
        assert_true(e.incidents[0].is_oom);
        for (oos_number_id id = 0; id < OOS_NUMBER_COUNT; id++)
            assert_true(e.incidents[0].numbers[id].value == whole.incidents[0].numbers[id].value);
    }
}

static void a_count_beyond_64_bits_is_no_figure(void **state)
{
    (void)state;
    oos_explanation e =
        explain("INFO 04-24 10:21:03 [r.py:1] GPU KV cache size: 99999999999999999999,560 tokens\n");
    assert_false(e.incidents[0].numbers[OOS_NUMBER_kv_tokens].known);
    e = explain("INFO 04-24 10:21:03 [r.py:1] GPU KV cache size: 9,007,199,254,740,993 tokens\n");
    assert_true(e.incidents[0].numbers[OOS_NUMBER_kv_tokens].value == 9007199254740993);
}

static void advice_and_fallbacks_are_no_failures(void **state)
{
    (void)state;
    oos_explanation const e = explain(
        "CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of memory, consider\n"
        "[Autotuner]: OOM detected, falling back to default tactic\n"
        "INFO: set expandable_segments to avoid out of memory errors\n");
    assert_int_equal(e.count, 1);
    assert_false(e.incidents[0].is_oom);
}

static void a_failure_with_another_name_is_not_memory(void **state)
{
    (void)state;
    oos_explanation const e = explain("Traceback (most recent call last):\n"
                                      "  File \"gpu_model_runner.py\", line 1, in profile_run\n"
                                      "  File \"gpu_model_runner.py\", line 1, in _dummy_run\n"
                                      "RuntimeError: The size of tensor a (3) must match\n");
    assert_false(e.incidents[0].is_oom);
    assert_int_equal(e.incidents[0].phase, OOS_PHASE_NOT_OOM);
}

static void equal_incidents_are_counted_and_a_million_fit(void **state)
{
    (void)state;
    static const char one[] = "INFO 01-01 00:00:00 [a.py:1] vLLM API server version 0.9.1\n"
                              "INFO 01-01 00:00:00 [a.py:1] Starting to load model x...\n"
                              "ValueError: No available memory for the cache blocks.\n";
    size_t const copies = 20000, len = sizeof one - 1;
    char *text = malloc(copies * len);
    assert_non_null(text);
    for (size_t i = 0; i < copies; i++) memcpy(text + i * len, one, len);
    oos_explanation const e = explain_bytes(text, copies * len);
    free(text);
    assert_int_equal(e.count, 1);
    assert_int_equal(e.incidents[0].count, copies);
    assert_int_equal(e.incidents[0].last_line, copies * 3);
}

static void other_processes_are_told_from_our_own(void **state)
{
    (void)state;
    oos_explanation const e = explain(
        "CUDA out of memory. Tried to allocate 3.74 GiB. GPU 0 has a total capacity of 139.81 GiB of which "
        "3.68 "
        "GiB is free. Including non-PyTorch memory, this process has 11.35 GiB memory in use. Process 174 "
        "has "
        "124.75 GiB memory in use. Of the allocated memory 7.01 GiB is allocated by PyTorch, and 3.98 GiB is "
        "reserved by PyTorch but unallocated.\n");
    assert_string_equal(e.incidents[0].cause, "other_process_holds_memory");
    assert_true(oos_value(&e.incidents[0], OOS_NUMBER_others) == (uint64_t)(124.75 * 0x1p30));
}

static void a_line_across_any_two_reads_is_seen_once_with_its_number(void **state)
{
    (void)state;
    size_t const len = 3 << 20;
    char *text = malloc(len);
    assert_non_null(text);
    memset(text, 'x', len);
    for (size_t i = 99; i < len; i += 100) text[i] = '\n';
    static const char line[] = "\nValueError: No available memory for the cache blocks.\n";
    for (size_t at = (512 << 10) - 90; at < (512 << 10) + 90; at += 30) {
        char saved[sizeof line];
        memcpy(saved, text + at, sizeof line - 1);
        memcpy(text + at, line, sizeof line - 1);
        uint64_t number = 1;
        for (size_t i = 0; i <= at; i++) number += text[i] == '\n';
        oos_explanation const e = explain_bytes(text, len);
        assert_int_equal(e.count, 1);
        assert_int_equal(e.incidents[0].first_line, number);
        memcpy(text + at, saved, sizeof line - 1);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_frame_of_graph_profiling_decides_even_when_kv_tensors_are_innermost),
        cmocka_unit_test(a_quoted_report_is_read_like_the_report),
        cmocka_unit_test(a_sentence_that_begins_with_error_keeps_the_word),
        cmocka_unit_test(a_message_broken_anywhere_gives_the_same_figures),
        cmocka_unit_test(a_count_beyond_64_bits_is_no_figure),
        cmocka_unit_test(advice_and_fallbacks_are_no_failures),
        cmocka_unit_test(a_failure_with_another_name_is_not_memory),
        cmocka_unit_test(equal_incidents_are_counted_and_a_million_fit),
        cmocka_unit_test(other_processes_are_told_from_our_own),
        cmocka_unit_test(a_line_across_any_two_reads_is_seen_once_with_its_number),
    };
    return cmocka_run_group_tests(tests, load, unload);
}

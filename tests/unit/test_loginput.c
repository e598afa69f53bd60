#include "unit.h"

#include "log/log.h"

#include <stdlib.h>
#include <string.h>

static void assert_view(oos_view view, const char *text)
{
    assert_int_equal(view.len, strlen(text));
    assert_memory_equal(view.ptr, text, view.len);
}

static void every_prefix_of_a_line_is_peeled_off(void **state)
{
    (void)state;
    static const struct {
        const char *line, *process, *message;
        char level;
    } cases[] = {
        {"(EngineCore_DP0 pid=5) (Worker_TP0 pid=6) ERROR 11-15 00:13:50 [v1/a.py:671] boom", "Worker_TP0",
         "boom", 'E'},
        {"[2026-02-24T20:21:58Z] (EngineCore_DP0 pid=6940) ValueError: x", "EngineCore_DP0", "ValueError: x",
         0},
        {"sglang-1  |     torch.zeros(", "", "    torch.zeros(", 0},
        {"INFO 03-04 06:26:37 model_runner.py:1561] Graph capturing finished", "", "Graph capturing finished",
         'I'},
        {"[rank0]:   File \"x.py\", line 1, in y", "rank0", "  File \"x.py\", line 1, in y", 0},
        {"(VllmWorker rank=3 pid=1090) ERROR 06-05 06:18:13 [m.py:470] out", "VllmWorker rank=3", "out", 'E'},
        {"plain words", "", "plain words", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        oos_logline const line = oos_logline_read(oos_view_of(cases[i].line));
        assert_view(line.process, cases[i].process);
        assert_view(line.message, cases[i].message);
        assert_int_equal(line.level, cases[i].level);
    }
    assert_view(oos_logline_rank(oos_view_of("Worker_TP3")), "TP3");
    assert_view(oos_logline_rank(oos_view_of("VllmWorker rank=1")), "1");
    assert_view(oos_logline_rank(oos_view_of("EngineCore_DP0")), "");
}

static void colours_vanish_with_or_without_their_escape(void **state)
{
    (void)state;
    char out[128];
    oos_view const line = oos_view_of("\x1b[0;36m(EngineCore pid=1)\x1b[0;0m [31mERROR[0m [a.py:1] x[0] [m]");
    assert_view((oos_view){out, oos_logline_uncolour(line, out)},
                "(EngineCore pid=1) ERROR [a.py:1] x[0] [m]");
}

static void clean(const char *text, unsigned what, const char *expected)
{
    assert_int_equal(oos_clean_sniff(oos_view_of(text)), what);
    /* Whole, and byte by byte: where the pieces are cut must not matter, except that a line held back for its
     * continuation is let go when only a piece of the next one is there. */
    oos_cleaner cleaner;
    oos_text out = {0};
    oos_cleaner_init(&cleaner, what);
    oos_cleaner_feed(&cleaner, oos_view_of(text), false, &out);
    oos_cleaner_feed(&cleaner, (oos_view){text, 0}, true, &out);
    assert_string_equal(out.ptr, expected);
    oos_cleaner_free(&cleaner);
    oos_text_free(&out);
}

static void json_around_each_line_is_undone(void **state)
{
    (void)state;
    clean("{\"log\":\"CUDA out of "
          "\\u006demory\\n\",\"stream\":\"stderr\"}\n{\"log\":\"next\\n\",\"stream\":\"stderr\"}\n",
          OOS_CLEAN_JSON, "CUDA out of memory\nnext\n");
    clean("{\"message\":\"failed\",\"exc_info\":\"Traceback\\n  File\"}\n", OOS_CLEAN_JSON,
          "failed\vTraceback\v  File\n");
    clean("{\"MESSAGE\":[65,66],\"PRIORITY\":\"3\"}\n", OOS_CLEAN_JSON, "AB\n");
}

static void kubernetes_journald_and_markdown_are_undone(void **state)
{
    (void)state;
    clean("2025-01-01T00:00:00.000000000Z stderr P one \n2025-01-01T00:00:00.000000000Z stderr F line\n",
          OOS_CLEAN_CRI, "one line\n\n");
    clean("__REALTIME_TIMESTAMP=1\nMESSAGE=hello\n_PID=1\n", OOS_CLEAN_JOURNAL, "\nhello\n\n");
    clean("INFO \\[gpu\\_worker.py:1\\] \\*\\*kwargs &lt;x&gt;\n", OOS_CLEAN_MARKDOWN,
          "INFO [gpu_worker.py:1] **kwargs <x>\n");
}

static void lines_cut_by_a_terminal_are_joined_and_keep_their_numbers(void **state)
{
    (void)state;
    clean("(EngineCore pid=316)   File \"/x/vllm/v1/engine/core.py\", line 305, in _initialize_k\nv_caches\n"
          "(EngineCore pid=316) ValueError: To serve at least one request, 4.26 GiB KV cach\ne is needed\n"
          "(EngineCore pid=316) end\n",
          OOS_CLEAN_WRAPPED,
          "(EngineCore pid=316)   File \"/x/vllm/v1/engine/core.py\", line 305, in _initialize_kv_caches\n\n"
          "(EngineCore pid=316) ValueError: To serve at least one request, 4.26 GiB KV cache is needed\n\n"
          "(EngineCore pid=316) end\n");
}

static void a_paste_cut_at_a_width_is_put_together_also_inside_words(void **state)
{
    (void)state;
    clean("  File \"/opt/lib/python3.12/site-packages/vllm/v1/worker/gpu_mod\n"
          "el_runner.py\", line 4553, in sample_tokens\n"
          "  File \"/opt/lib/python3.12/site-packages/vllm/v1/sample/ops/top\n"
          "k_topp_sampler.py\", line 99, in forward_native\n",
          OOS_CLEAN_WRAPPED | 64 * OOS_CLEAN_WIDTH,
          "  File \"/opt/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py\", line 4553, in "
          "sample_tokens\n\n"
          "  File \"/opt/lib/python3.12/site-packages/vllm/v1/sample/ops/topk_topp_sampler.py\", line 99, in "
          "forward_native\n\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_prefix_of_a_line_is_peeled_off),
        cmocka_unit_test(colours_vanish_with_or_without_their_escape),
        cmocka_unit_test(json_around_each_line_is_undone),
        cmocka_unit_test(kubernetes_journald_and_markdown_are_undone),
        cmocka_unit_test(lines_cut_by_a_terminal_are_joined_and_keep_their_numbers),
        cmocka_unit_test(a_paste_cut_at_a_width_is_put_together_also_inside_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "unit.h"

#include "log/log.h"

#include <stdlib.h>
#include <stdio.h>
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
    clean(
        "(EngineCore pid=316)   File \"/x/vllm/v1/engine/core.py\", line 305, in _initialize_k\nv_caches\n"
        "(EngineCore pid=316) ValueError: To serve at least one request, 4.26 GiB KV cach\ne is needed\n"
        "(EngineCore pid=316) end\n",
        OOS_CLEAN_WRAPPED,
        "(EngineCore pid=316)   File \"/x/vllm/v1/engine/core.py\", line 305, in _initialize_kv_caches\n\v\n"
        "(EngineCore pid=316) ValueError: To serve at least one request, 4.26 GiB KV cache is needed\n\v\n"
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
          "sample_tokens\n\v\n"
          "  File \"/opt/lib/python3.12/site-packages/vllm/v1/sample/ops/topk_topp_sampler.py\", line 99, in "
          "forward_native\n\v\n");
}

static void normal(const char *line, const char *after, const char *expected)
{
    char to[512];
    oos_view const got = {to, oos_normal_line(oos_view_of(line), oos_view_of(after), to, sizeof to)};
    char text[512];
    snprintf(text, sizeof text, "%.*s", (int)got.len, got.ptr);
    assert_string_equal(text, expected);
    char again[512];
    size_t const len = oos_normal_line(got, oos_view_of(""), again, sizeof again);
    assert_true(oos_view_equal(got, (oos_view){again, len})); /* nothing is left to do */
}

static void a_frame_in_any_dress_is_one_of_python(void **state)
{
    (void)state;
#define PYTHON "File \"/x/vllm/worker.py\", line 12, in load_model"
    normal("  " PYTHON, "", "  " PYTHON);
    normal("  File \u201c/x/vllm/worker.py\u201d, line 12, in load_model", "", "  " PYTHON);
    normal("  File '/x/vllm/worker.py', line 12, in load_model", "", "  " PYTHON);
    normal("/x/vllm/worker.py, line 12, in load_model", "", PYTHON);
    normal("app-1  | /x/vllm/worker.py:12 in load_model", "", "app-1  | " PYTHON);
    normal("/x/vllm/worker.py:12: in load_model", "", PYTHON);
    normal("    load_model (/x/vllm/worker.py:12)", "", "    " PYTHON);
    normal("File /x/vllm/worker.py:12, in load_model(self)", "", PYTHON "(self)");
    normal("File [/x/vllm/worker.py:12](http://host/x.py#y), in load_model", "", PYTHON);
    normal("\u2502 /x/vllm/worker.py:12 in load_model     \u2502", "", "\u2502 " PYTHON "     \u2502");
    normal("\u2502 /x/vllm/worker.py:12 in    \u2502", "\n\u2502 load_model      \u2502\n",
           "\u2502 " PYTHON " in    \u2502");
    normal("  File \"C:\\vllm\\worker.py\", line 12, in run", "",
           "  File \"C:/vllm/worker.py\", line 12, in run");
    normal("  File \"/x/vllm/wor", "\nker.py\", line 12, in load_model\n", "  " PYTHON);
    normal("  File \"/x/vllm/worker.py\",", "\nline 12, in load_model\n", "  " PYTHON);
    normal("el_runner.py\", line 12, in load_model", "", "File \"el_runner.py\", line 12, in load_model");
    normal("/x/a.py:1 in f /x/b.py:2 in g", "",
           "File \"/x/a.py\", line 1, in f File \"/x/b.py\", line 2, in g");
}

static void what_is_no_frame_stays_as_it_is(void **state)
{
    (void)state;
    static const char *const lines[] = {"INFO 04-24 10:21:03 [worker.py:298] Loading weights in 3 s",
                                        "worker.py:12: RuntimeError",
                                        "  File \"/Program Files/worker.py\", line 12, in load_model",
                                        "see worker.py, line by line",
                                        ".py:12 in x",
                                        "(a.py:12)",
                                        ""};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) normal(lines[i], "\nx\n", lines[i]);
}

static void figures_stand_without_brackets_and_columns(void **state)
{
    (void)state;
    normal("Tried to allocate (20.00 MiB), free: (1,024 bytes).   ", "",
           "Tried to allocate 20.00 MiB, free: 1,024 bytes.");
    normal("exited with exit code (137)", "", "exited with exit code 137");
    normal("Exit Code:    137", "", "Exit Code: 137");
    normal("    indented  twice      and more", "", "    indented  twice      and more");
    normal("memory (23.13/23.68 GiB), (0.9, 21.3 GiB) f(3 MiB) (3)", "",
           "memory (23.13/23.68 GiB), (0.9, 21.3 GiB) f(3 MiB) (3)");
}

static void what_every_line_wears_is_taken_off(void **state)
{
    (void)state;
    clean("app-1  | one\napp-1  | two\n", OOS_CLEAN_COMPOSE, "one\ntwo\n");
    char padded[3 * 101 + 1], text[] = "one\ntwo\nthree\n";
    snprintf(padded, sizeof padded, "%-100s\n%-100s\n%-100s\n", "one", "two", "three");
    clean(padded, OOS_CLEAN_PADDED, text);
    clean("Traceback\n/x/worker.py:12 in run\n", OOS_CLEAN_FRAMES,
          "Traceback\nFile \"/x/worker.py\", line 12, in run\n");
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
        cmocka_unit_test(a_frame_in_any_dress_is_one_of_python),
        cmocka_unit_test(what_is_no_frame_stays_as_it_is),
        cmocka_unit_test(figures_stand_without_brackets_and_columns),
        cmocka_unit_test(what_every_line_wears_is_taken_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

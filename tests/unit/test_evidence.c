/* What text may become evidence: not the names in a backtrace, not a document, not what a user wrote. */
#include "unit.h"

#include "explain/explain.h"
#include "log/log.h"

static oos_arena *arena;
static oos_knowledge knowledge;

static int load(void **state)
{
    (void)state;
    arena = oos_arena_create(1 << 16);
    return oos_knowledge_load(arena, NULL, &knowledge, NULL) != OOMSIGHT_OK;
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

static bool is_oom(const char *text)
{
    oos_explanation const e = explain(text);
    for (size_t i = 0; i < e.count; i++)
        if (e.incidents[i].is_oom) return true;
    return false;
}

#define STRING "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

static void frames_of_native_code_are_told_by_their_shape(void **state)
{
    (void)state;
    static const char *const frames[] = {
        "frame #0: c10::Error::Error(c10::SourceLocation, " STRING ") + 0x80 (0x7f32 in /x/libc10.so)",
        "#5 c10::Error::Error(c10::SourceLocation, " STRING ") from ??:0",
        "#17 method_vectorcall_VARARGS_KEYWORDS from /tmp/Objects/descrobject.c:364",
        "#0  0x00007f1c in raise () from /lib/x86_64-linux-gnu/libc.so.6",
        "#1  main (argc=1) at alloc_error.c:12",
        "/lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7f1c]",
        "[node:01234] [ 3] /x/libtorch_cuda.so(_ZN3c105ErrorC2Ev+0x96)[0x7f1c]",
        "    @     0x7f1c2e5f3050  c10::cuda::CUDACachingAllocator::malloc_error()",
        "  12: core::panicking::panic_fmt",
        "          at /rustc/90b35/library/core/src/alloc_error.rs:14:3",
        "c10::cuda::MemPool::allocator_error(unsigned long) at /w/c10/cuda/CUDAAllocator.cpp:7"};
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++)
        assert_true(oos_native_is_frame(oos_view_of(frames[i])));
    static const char *const others[] = {
        "RuntimeError: CUDA error: out of memory",
        "#1234 out of memory on start",
        "12: failed to allocate 20 MiB",
        "std::bad_alloc: cudaErrorMemoryAllocation: out of memory",
        "terminate called after throwing an instance of 'c10::OutOfMemoryError'",
        "INFO: 12 blocks [0 free]",
        ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(oos_native_is_frame(oos_view_of(others[i])));
}

static void a_name_ends_with_its_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
    } names[] = {{"c10::Error::Error(int, std::pair<int, int>) failed", 43},
                 {"at::(anonymous namespace)::view rest", 31},
                 {"a::b<c(d)>::operator rest", 20},
                 {"_ZN3c105ErrorC2Ev rest", 17},
                 {"std::bad_alloc", 0},
                 {"error::Error::Cuda(\"out of memory\")", 18},
                 {"size: 12", 0},
                 {"a::b<cut", 8},
                 {"word", 0}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(oos_native_name(oos_view_of(names[i].text)), names[i].len);
}

static void a_backtrace_of_another_error_is_not_memory(void **state)
{
    (void)state;
    assert_false(
        is_oom("RuntimeError: shape '[3]' is invalid for input of size 2\n"
               "Exception raised from infer_size_impl at /w/InferSize.h:99 (most recent call first):\n"
               "C++ CapturedTraceback:\n"
               "#5 c10::Error::Error(c10::SourceLocation, " STRING ") from ??:0\n"
               "#6 c10::detail::torchCheckFail(char const*, " STRING " const&) from ??:0\n"));
    assert_false(is_oom("RuntimeError: invalid argument\n#7 pool_allocator_error from ??:0\n"));
    /* The same in one line, as repr() prints it. */
    assert_false(
        is_oom("ERROR [core.py:1] RuntimeError(\"shape is invalid\\nframe #0: c10::Error::Error(" STRING
               ") + 0x80 (0x7f in /x/libc10.so)\\nframe #1: c10::cuda::allocator_error()\")\n"));
    assert_true(is_oom("RuntimeError: CUDA error: out of memory\n"
                       "frame #0: c10::Error::Error(" STRING ") + 0x80 (0x7f in /x/libc10.so)\n"));
}

static void a_named_fault_outranks_words_that_follow_it(void **state)
{
    (void)state;
    static const char *const faults[] = {
        "CUDA error: an illegal memory access was encountered\n",
        "../aten/Indexing.cu:1: operator(): block: [0,0,0], thread: [3,0,0] Assertion `i < n` failed.\n",
        "[rank0]:[E ProcessGroupNCCL.cpp:632] Watchdog caught collective operation timeout: WorkNCCL(3)\n",
        "python: pool.cpp:12: void* take(size_t): Assertion `bytes > 0' failed.\n",
        "Fatal Python error: Segmentation fault\n"};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char text[512];
        snprintf(text, sizeof text, "%sERROR failed to allocate buffer in the error handler\n", faults[i]);
        assert_false(is_oom(text));
        snprintf(text, sizeof text, "ERROR failed to allocate buffer of 20 GiB\n%s", faults[i]);
        assert_true(is_oom(text));
        snprintf(text, sizeof text, "%sCUDA out of memory. Tried to allocate 2.00 GiB\n", faults[i]);
        assert_true(is_oom(text));
    }
}

static void a_binary_file_is_not_read(void **state)
{
    (void)state;
    static const char oom[] = "\nCUDA out of memory. Tried to allocate 2.00 GiB\n";
    char bytes[4096];
    uint64_t seed = 7;
    for (size_t i = 0; i < sizeof bytes; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (char)(seed >> 56);
    }
    memcpy(bytes + 1000, oom, sizeof oom - 1);
    oos_explanation e = explain_bytes(bytes, sizeof bytes);
    assert_int_equal(e.count, 1);
    assert_false(e.incidents[0].is_oom);
    assert_true(e.incidents[0].binary);
    /* A log that was truncated while its writer went on begins with NUL bytes. */
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes + 4000, oom, sizeof oom - 1);
    e = explain_bytes(bytes, sizeof bytes);
    assert_true(e.incidents[0].is_oom);
    assert_false(e.incidents[0].binary);
}

#define OOM                                                                                                  \
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of " \
    "23.52 GiB of which 1.00 GiB is free.\n"

static void a_document_mentions_and_does_not_fail(void **state)
{
    (void)state;
    static const char *const titles[] = {"# A title\n\n",
                                         "A title\n=======\n",
                                         "### A title\n\n",
                                         "####### A title\n\n",
                                         ".TH TITLE 1\n",
                                         "<!-- licence\n-->\n\n# A title\n\n",
                                         "---\na: b\n---\n# A title\n\n",
                                         "---\na: b\n---\n\nWords.\n"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%sWhen it runs out of memory, it says `CUDA out of memory`.\n- " OOM,
                 titles[i]);
        assert_false(is_oom(text));
        /* A log or a traceback in it is what it is anywhere. */
        snprintf(text, sizeof text, "%sERROR 01-01 00:00:00 [core.py:1] CUDA out of memory.\n", titles[i]);
        assert_true(is_oom(text));
        snprintf(text, sizeof text,
                 "%sTraceback (most recent call last):\n  File \"/x/vllm/a.py\", line 1, in load_model\n"
                 "RuntimeError: CUDA out of memory.\n",
                 titles[i]);
        assert_true(is_oom(text));
        snprintf(text, sizeof text, "%s```\n" OOM "```\n", titles[i]);
        assert_true(is_oom(text));
    }
    assert_true(is_oom("# vllm serve x\nRuntimeError: CUDA out of memory.\n"));
    assert_true(is_oom("# a comment\n" OOM));
}

#define WAYS "## First\n\n    --max-model-len 4096\n\n## Second\n\n```\nPYTORCH_ALLOC_CONF=x:y\n```\n"

/* A whole message in advice is what others may see; in a report it is what somebody saw. */
static void a_page_of_advice_quotes_whole_messages(void **state)
{
    (void)state;
    assert_false(is_oom("# A title\n\nThis may be printed:\n\n    " OOM "\n" WAYS));
    assert_false(
        is_oom("### A title\n\n```\n" OOM "```\n\n1. `--enforce-eager`\n2. `-c 4096` uses less I/O\n"));
    assert_true(is_oom("# A title\n\nI get this:\n\n    " OOM "\n" WAYS));
    assert_true(is_oom("# A title\n\nOn my card:\n\n    " OOM "\n" WAYS));
    assert_true(is_oom("# A title\n\n    " OOM "\n1. `--enforce-eager`\n"));
    assert_true(is_oom("# A title\n\n    ERROR 01-01 00:00:00 [core.py:1] " OOM "\n" WAYS));
    assert_true(is_oom("# A title\n\n    File \"a.py\", line 1, in f\n    " OOM "\n" WAYS));
    assert_true(is_oom("This may be printed:\n\n    " OOM "\n" WAYS)); /* without a title */
}

static void a_muted_line_mutes_the_one_that_gives_its_reason(void **state)
{
    (void)state;
#define MUTED "ggml_vulkan: Failed to allocate pinned memory.\n"
#define REASON "ggml_vulkan: allocation failed: out of memory\n"
    assert_false(is_oom(MUTED REASON));
    assert_true(is_oom(REASON));
    assert_true(is_oom(MUTED "load: done\n" REASON));
    assert_true(is_oom(MUTED REASON REASON));
}

static void the_name_of_a_function_is_no_sentence(void **state)
{
    (void)state;
    assert_false(is_oom("Traceback (most recent call last):\n  File \"/x/a.py\", line 12, in "
                        "out_of_memory_failed\nValueError: no\n"));
    assert_false(is_oom("File \"/x/a.py\", line 12, in failed_to_allocate_memory\nValueError: no\n"));
    assert_true(is_oom("  File \"/x/a.py\", line 12, in f: failed to allocate memory\n"));
}

static void a_source_file_is_no_log(void **state)
{
    (void)state;
    static const char *const files[] = {
        "#include <stdio.h>\n\n/* Says that it is out of memory. */\nstatic int fail(void)\n{\n    return "
        "say(\"CUDA out of memory. Tried to allocate %s of %s\");\n}\n",
        "#!/usr/bin/env python3\n# When CUDA is out of memory.\nimport torch\n\ndef is_oom(e):\n    return "
        "\"CUDA out of memory\" in str(e)\n",
        "\"\"\"Out of memory, and what to do.\"\"\"\nfrom x import y\nERRORS = [\n    \"RuntimeError: CUDA "
        "error: "
        "out of memory\",\n]\nassert y(\"  File \\\"/vllm/a.py\\\", line 1, in load_model\")\n",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char text[1024];
        assert_false(is_oom(files[i]));
        /* A program with what it printed is. */
        snprintf(text, sizeof text, "%s" OOM, files[i]);
        assert_true(is_oom(text));
        snprintf(text, sizeof text, "%sERROR 01-01 00:00:00 [core.py:1] CUDA out of memory.\n", files[i]);
        assert_true(is_oom(text));
        snprintf(text, sizeof text,
                 "%sTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n" OOM,
                 files[i]);
        assert_true(is_oom(text));
    }
    assert_true(is_oom("---\napiVersion: v1\nstatus:\n  reason: OOMKilled\n---\napiVersion: v1\n"));
    assert_true(is_oom("import torch\nI get this: " OOM));
}

static void what_a_user_wrote_is_taken_out(void **state)
{
    (void)state;
    static const struct {
        const char *line, *after, *left;
        size_t lines;
    } told[] = {
        {"Received request 1: prompt: 'a, \"b\"', params: SamplingParams(n=1)", "",
         "Received request 1: prompt: '...', params: SamplingParams(n=1)", 0},
        {"Received request 1: prompt: \"it's 'so', they said\", params: x", "",
         "Received request 1: prompt: \"...\", params: x", 0},
        {"obj=GenerateReqInput(text=['one', 'two'], input_ids=None)", "",
         "obj=GenerateReqInput(text=['...', '...'], input_ids=None)", 0},
        {"{\"role\": \"user\", \"content\": \"say \\\"oom\\\" now\"}", "",
         "{\"role\": \"user\", \"content\": \"...\"}", 0},
        {"\"{\\\"role\\\": \\\"user\\\", \\\"content\\\": \\\"out of memory\\\"}\"", "",
         "\"{\\\"role\\\": \\\"user\\\", \\\"content\\\": \\\"...\\\"}\"", 0},
        {"Received request 1: prompt: 'first", "\nsecond\nthird', params: x\nTraceback",
         "Received request 1: prompt: '...", 2},
        {"Received request 1: prompt: 'torn",
         "\nTraceback (most recent call last):\n  File \"a\", line 1, in b",
         "Received request 1: prompt: '...", 0},
        {"RuntimeError: text='CUDA out of memory'", "", "RuntimeError: text='CUDA out of memory'", 0}};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        char line[256];
        size_t lines, len = strlen(told[i].line);
        memcpy(line, told[i].line, len);
        len = oos_usertext_mask(line, len, oos_view_of(told[i].after), &lines);
        line[len] = '\0';
        assert_string_equal(line, told[i].left);
        assert_int_equal(lines, told[i].lines);
    }
}

#define SERVES "INFO 01-01 00:00:00 [loggers.py:1] Avg prompt throughput: 1.0 tokens/s\n"

static void a_prompt_is_no_evidence(void **state)
{
    (void)state;
    assert_false(is_oom(
        "INFO 01-01 00:00:00 [logger.py:1] Received request cmpl-1: prompt: 'CUDA error: out of memory', "
        "params: SamplingParams(n=1)\n"));
    assert_false(is_oom("INFO 01-01 00:00:00 [logger.py:1] Received request cmpl-1: prompt: 'I see\n" OOM
                        "what now', params: SamplingParams(n=1)\n"));
    /* What the engine says right after it is. */
    assert_true(is_oom("INFO 01-01 00:00:00 [logger.py:1] Received request cmpl-1: prompt: 'I see\n"
                       "this', params: SamplingParams(n=1)\n" OOM));
    /* Words alone, and the engine serves on. */
    assert_false(is_oom(SERVES OOM SERVES SERVES SERVES SERVES));
    assert_true(is_oom(SERVES OOM));
    assert_true(is_oom(SERVES "ERROR 01-01 00:00:00 [core.py:1] " OOM SERVES SERVES SERVES SERVES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(frames_of_native_code_are_told_by_their_shape),
                                       cmocka_unit_test(a_name_ends_with_its_parameters),
                                       cmocka_unit_test(a_backtrace_of_another_error_is_not_memory),
                                       cmocka_unit_test(a_named_fault_outranks_words_that_follow_it),
                                       cmocka_unit_test(a_binary_file_is_not_read),
                                       cmocka_unit_test(a_document_mentions_and_does_not_fail),
                                       cmocka_unit_test(a_page_of_advice_quotes_whole_messages),
                                       cmocka_unit_test(a_muted_line_mutes_the_one_that_gives_its_reason),
                                       cmocka_unit_test(the_name_of_a_function_is_no_sentence),
                                       cmocka_unit_test(a_source_file_is_no_log),
                                       cmocka_unit_test(what_a_user_wrote_is_taken_out),
                                       cmocka_unit_test(a_prompt_is_no_evidence)};
    return cmocka_run_group_tests(tests, load, unload);
}

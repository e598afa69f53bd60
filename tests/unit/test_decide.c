/* What explain decides from a text: stage and cause, where order, figures and an engine that is up say more than a rule. */
#include "unit.h"

#include "explain/explain.h"

#include <stdio.h>
#include <string.h>

static oos_arena *arena;
static oos_knowledge knowledge;

static int load(void **state)
{
    (void)state;
    arena = oos_arena_create(1 << 20);
    return oos_knowledge_load(arena, NULL, &knowledge, NULL) == OOMSIGHT_OK ? 0 : 1;
}

static int unload(void **state)
{
    (void)state;
    oos_arena_free(arena);
    return 0;
}

static oos_explanation explain(const char *text)
{
    oos_logstream *input;
    oos_explanation explanation = {0};
    assert_int_equal(oos_logstream_open_bytes(oos_view_of(text), 0, &input, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_explain_stream(arena, &knowledge, input, &explanation, NULL), OOMSIGHT_OK);
    oos_logstream_close(input);
    return explanation;
}

static const oos_incident *only(const char *text)
{
    oos_explanation const e = explain(text);
    assert_int_equal(e.count, 1);
    return &e.incidents[0];
}

static bool names(const oos_incident *incident, const char *cause)
{
    bool named = strcmp(incident->cause, cause) == 0;
    for (size_t i = 0; i < incident->also_count; i++) named |= strcmp(incident->also[i], cause) == 0;
    return named;
}

static bool is_serving(const oos_incident *incident)
{
    return incident->phase == OOS_PHASE_RUNTIME_PREFILL || incident->phase == OOS_PHASE_RUNTIME_OTHER ||
           incident->phase == OOS_PHASE_RUNTIME_SAMPLER;
}

#define ENGINE "(EngineCore_DP0 pid=100) "
#define ARGS(more) "INFO 11-15 10:00:00 [utils.py:233] non-default args: {'model': 'some/model-8B'" more "}\n"
#define LOADED                                                                                               \
    ENGINE "INFO 11-15 10:00:30 [gpu_model_runner.py:2653] Model loading took 15.2683 GiB and 12.3 "         \
           "seconds\n"
#define UP "INFO:     Application startup complete.\n"
#define MESSAGE(tried, total, free, more)                                                                    \
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " tried                                   \
    ". GPU 0 has a total capacity of " total " of which " free " is free. " more "\n"
#define HELD(process, torch)                                                                                 \
    "Including non-PyTorch memory, this process has " process " memory in use. Of the allocated memory "     \
    "" torch " is allocated by PyTorch, and 310.00 MiB is reserved by PyTorch but unallocated."

static void a_cache_below_zero_bytes_is_refused(void **state)
{
    (void)state;
    static const char below[] =
        "INFO 01-01 10:00:00 [gpu_worker.py:276] Available KV cache memory: -0.87 GiB\n";
    const oos_incident *refused = only(below);
    assert_true(refused->is_oom);
    assert_int_equal(refused->phase, OOS_PHASE_KV_SIZING);
    /* A model that keeps no cache goes on. */
    char text[512];
    snprintf(text, sizeof text, "%s%s", below, UP);
    assert_false(only(text)->is_oom);
    assert_false(
        only("INFO 01-01 10:00:00 [gpu_worker.py:276] Available KV cache memory: 0.87 GiB\n")->is_oom);
}

/* The line of source that logs the failure of a start in one build is another in the next. */
static void an_engine_that_is_up_serves(void **state)
{
    (void)state;
    static const char frame[] =
        ENGINE "ERROR 11-15 10:09:51 [core.py:708]   File "
               "\"/vllm/v1/worker/gpu_model_runner.py\", line 2100, in execute_model\n";
    static const char full[] = ENGINE "ERROR 11-15 10:09:51 [core.py:708] " MESSAGE(
        "556.00 MiB", "23.52 GiB", "96.00 MiB", HELD("23.40 GiB", "22.20 GiB"));
    static const char shared[] = ENGINE "ERROR 11-15 10:09:51 [core.py:708] " MESSAGE(
        "556.00 MiB", "23.52 GiB", "96.00 MiB",
        "Process 4321 has 6.00 GiB memory in use. " HELD("17.40 GiB", "16.20 GiB"));
    char text[4096];
    snprintf(text, sizeof text, "%s%s%s%s", ARGS(""), UP, frame, full);
    assert_true(is_serving(only(text)));
    snprintf(text, sizeof text, "%s%s%s%s%s", ARGS(""), LOADED, UP, frame, shared);
    const oos_incident *beside = only(text);
    assert_true(is_serving(beside));
    assert_string_equal(beside->cause, "other_process_holds_memory");
    assert_string_equal(beside->record->id, "vllm/serving-others-hold");
    snprintf(text, sizeof text, "%s%s%s", ARGS(""), frame, full);
    assert_false(is_serving(only(text)));
}

/* Layers with a recurrent state run with metadata only, so not in the profile run; what else runs them is said with it. */
static void a_kernel_of_attention_is_first_a_served_batch(void **state)
{
    (void)state;
    const oos_incident *incident =
        only("torch.OutOfMemoryError: XPU out of memory.\nvllm/_xpu_ops.py\n_gdn_attention_core_xpu_impl\n"
             "torch.ops._xpu_C.gdn_attention\nTried to allocate 98 MiB\n");
    assert_int_equal(incident->phases[0], OOS_PHASE_RUNTIME_PREFILL);
    assert_string_equal(incident->question, "had it answered a request before it failed?");
    for (size_t i = 0; i < incident->phase_count; i++)
        assert_true(incident->phases[i] != OOS_PHASE_PROFILE_RUN &&
                    incident->phases[i] != OOS_PHASE_WEIGHT_LOAD);
}

/* torch/cuda/__init__.py makes the context; nothing of a model has run before it, whoever calls. */
static void the_call_that_makes_a_context_is_the_first(void **state)
{
    (void)state;
    static const char *const callers[] = {
        "/app/train.py\", line 3, in <module>", "/x/vllm/v1/worker/gpu_worker.py\", line 301, in init_device",
        "/x/sglang/srt/model_executor/model_runner.py\", line 9, in initialize"};
    static const char *const calls[] = {"_lazy_init\n    torch._C._cuda_init()",
                                        "set_device\n    torch._C._cuda_setDevice(device)"};
    static const char *const errors[] = {"RuntimeError: CUDA error: out of memory",
                                         "torch.AcceleratorError: CUDA error: out of memory"};
    char text[768];
    for (size_t i = 0; i < 3 * 2 * 2; i++) {
        snprintf(text, sizeof text,
                 "Traceback (most recent call last):\n  File \"%s\n    go()\n"
                 "  File \"/x/torch/cuda/__init__.py\", line 412, in %s\n%s\n",
                 callers[i / 4], calls[i / 2 % 2], errors[i % 2]);
        assert_int_equal(only(text)->phase, OOS_PHASE_INIT_FREE_MEMORY_CHECK);
    }
}

/* ggml names a buffer by its backend: CPU, CPU_*, *_Host and *_Mapped are the host's. */
static void a_buffer_of_the_host_is_host_memory(void **state)
{
    (void)state;
    static const char *const hosts[] = {"CPU", "CPU_REPACK", "CPU_Mapped", "CUDA_Host", "SYCL_Host"};
    char text[256];
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        snprintf(text, sizeof text, "llama_model_load: error loading model: unable to allocate %s buffer\n",
                 hosts[i]);
        const oos_incident *incident = only(text);
        assert_int_equal(incident->phase, OOS_PHASE_HOST_MEMORY);
        assert_string_equal(incident->cause, "host_ram");
    }
    assert_int_equal(only("llama_model_load: error loading model: unable to allocate CUDA0 buffer\n")->phase,
                     OOS_PHASE_WEIGHT_LOAD);
}

static void a_request_above_the_card_is_no_weight_and_no_headroom(void **state)
{
    (void)state;
    static const char shards[] = "Loading safetensors checkpoint shards: 100% Completed | 1/1\n";
    char text[2048];
    snprintf(
        text, sizeof text, "%s%s%s", shards, ENGINE "ERROR 10-29 01:56:59 [core.py:779] ",
        MESSAGE("256.00 GiB", "15.98 GiB", "8.07 GiB",
                "Of the allocated memory 7.14 GiB is allocated by PyTorch, and 320.85 MiB is reserved by "
                "PyTorch but unallocated."));
    const oos_incident *above = only(text);
    assert_int_not_equal(above->phase, OOS_PHASE_WEIGHT_LOAD);
    assert_false(names(above, "gmu_too_high_leaves_no_headroom"));
    assert_false(names(above, "weights_exceed_gpu"));
    snprintf(text, sizeof text, "%s%s%s", shards, ENGINE "ERROR 10-29 01:56:59 [core.py:779] ",
             MESSAGE("1.00 GiB", "15.98 GiB", "0.07 GiB", HELD("15.80 GiB", "15.14 GiB")));
    assert_int_equal(only(text)->phase, OOS_PHASE_WEIGHT_LOAD);
}

static void nothing_is_too_long_where_as_much_is_free(void **state)
{
    (void)state;
    const oos_incident *free = only("RuntimeError: Decode out of memory. Try to lower your batch size.\n"
                                    "Try to allocate 148 tokens.\nAvailable tokens: 2048\n");
    assert_string_equal(free->cause, "profiling_accounting_bug");
    assert_false(names(free, "context_too_long_for_kv"));
    const oos_incident *full = only("RuntimeError: Decode out of memory. Try to lower your batch size.\n"
                                    "Try to allocate 148 tokens.\nAvailable tokens: 20\n");
    assert_string_equal(full->cause, "context_too_long_for_kv");
}

static void an_empty_device_below_one_request_is_another_device(void **state)
{
    (void)state;
    const oos_incident *other = only(
        MESSAGE("16.00 GiB", "15.24 GiB", "15.09 GiB",
                "Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch "
                "but unallocated."));
    assert_string_equal(other->cause, "unified_memory_accounting");
    const oos_incident *same =
        only(MESSAGE("16.00 GiB", "15.24 GiB", "1.09 GiB", HELD("14.00 GiB", "13.00 GiB")));
    assert_string_not_equal(same->cause, "unified_memory_accounting");
}

#define CAPTURING "%s INFO 07-11 13:46:49 model_runner.py:854] Capturing the model for CUDA graphs.\n"

static void an_error_above_its_log_is_placed_by_the_log(void **state)
{
    (void)state;
    char text[1024];
    snprintf(text, sizeof text,
             "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 70.00 MiB. GPU\n" CAPTURING,
             "2024-07-11 21:46:49");
    assert_int_equal(only(text)->phase, OOS_PHASE_CUDAGRAPH_CAPTURE);
    /* What is later by its clock came after the failure. */
    snprintf(
        text, sizeof text,
        "2024-07-11 21:40:00 torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 70.00 MiB. "
        "GPU\n" CAPTURING,
        "2024-07-11 21:46:49");
    assert_int_not_equal(explain(text).incidents[0].phase, OOS_PHASE_CUDAGRAPH_CAPTURE);
}

static void a_sentence_about_a_prefill_is_one(void **state)
{
    (void)state;
    assert_int_equal(only("RuntimeError: not enough memory for a prefill of 4096 tokens\n")->phase,
                     OOS_PHASE_RUNTIME_PREFILL);
    assert_int_equal(only("fatal: out of memory during prompt processing\n")->phase,
                     OOS_PHASE_RUNTIME_PREFILL);
}

#define START "INFO 10-02 10:00:00 [api_server.py:1972] vLLM API server version 0.11.0\n"
#define PROFILE                                                                                              \
    ENGINE "ERROR 10-02 10:00:51 [core.py:708]   File \"/vllm/v1/worker/gpu_model_runner.py\", line 41, in " \
           "profile_run\n"

static void a_title_and_the_log_below_are_one_incident(void **state)
{
    (void)state;
    static const char title[] =
        "[Bug]: CUDA out of memory with an 8B model\nI get an OOM error on a 24 GB card.\n";
    static const char error[] = PROFILE ENGINE "ERROR 10-02 10:00:51 [core.py:708] " MESSAGE(
        "1.67 GiB", "22.03 GiB", "1.20 GiB", HELD("20.80 GiB", "20.20 GiB"));
    char text[4096];
    snprintf(text, sizeof text, "%s%s%s%s", title, START, LOADED, error);
    const oos_incident *incident = only(text);
    assert_int_equal(incident->phase, OOS_PHASE_PROFILE_RUN);
    assert_true(oos_known(incident, OOS_NUMBER_weights));
    /* Without a start, too; and a log that fails in another way leaves the title standing. */
    snprintf(text, sizeof text, "%s%s%s", title, LOADED, error);
    assert_true(oos_known(only(text), OOS_NUMBER_weights));
    snprintf(text, sizeof text, "%s%s%s", title, START, LOADED);
    assert_true(only(text)->is_oom);
    /* Two requests of different sizes are two failures. */
    snprintf(text, sizeof text, "%s%s%s%s", "RuntimeError: CUDA out of memory. Tried to allocate 40.00 MiB\n",
             START, LOADED, error);
    assert_int_equal(explain(text).count, 2);
}

/* Below 0.4 a rule is no answer. */
static void a_guess_is_said_to_be_unknown(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, stream): out of memory\n",
        "torch.OutOfMemoryError: CUDA out of memory.\n", "RuntimeError: CUDA error: out of memory\n",
        "  File \"/vllm/model_executor/layers/layernorm.py\", line 9, in forward_static\n" MESSAGE(
            "160.00 MiB", "11.61 GiB", "87.06 MiB", HELD("10.88 GiB", "10.48 GiB"))};
    size_t unknown = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const oos_incident *incident = only(texts[i]);
        assert_true(incident->is_oom);
        if (incident->phase != OOS_PHASE_UNKNOWN) assert_true(incident->phase_sure >= 0.4);
        if (strcmp(incident->cause, "insufficient_info") != 0) assert_true(incident->cause_sure >= 0.4);
        if (incident->phase == OOS_PHASE_UNKNOWN) assert_non_null(incident->ask);
        unknown += incident->phase == OOS_PHASE_UNKNOWN;
    }
    assert_true(unknown >= 2);
}

/* Whether one of the fixes, or of what does not help, that are shown begins with `change`. */
static bool shows(const oos_incident *incident, bool helps, const char *change)
{
    const oos_advice *list = helps ? incident->fixes : incident->dead_ends;
    size_t const count = helps ? incident->fix_count : incident->dead_end_count;
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].change[0], change) == 0) return true;
    return false;
}

static void advice_is_that_of_the_cause(void **state)
{
    (void)state;
    const oos_incident *graphs =
        only(ARGS("") LOADED
             "INFO 10-02 10:00:40 [gpu_worker.py:298] Estimated CUDA graph memory: 118.65 GiB total\n"
             "INFO 10-02 10:00:41 [gpu_worker.py:298] Available KV cache memory: -70.10 GiB\n" ENGINE
             "ERROR 10-02 10:00:51 [core.py:708] ValueError: No available memory for the cache "
             "blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n");
    assert_string_equal(graphs->cause, "cudagraph_overestimated");
    assert_true(shows(graphs, true, "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0"));
    assert_false(shows(graphs, true, "--gpu-memory-utilization"));
    /* Whatever is advised, its record names the cause. */
    for (size_t i = 0; i < knowledge.kb.count; i++) assert_true(knowledge.kb.list[i].cause_count > 0);
}

static void a_cache_given_too_large_is_the_flags_doing(void **state)
{
    (void)state;
    static const char *const given[] = {", 'kv_cache_memory_bytes': 64424509440", ""};
    static const char *const commands[] = {"", "vllm serve some/model-8B --kv-cache-memory-bytes 60G\n"};
    static const char error[] = ENGINE
        "ERROR 10-02 10:00:51 [core.py:708]   File \"/vllm/v1/worker/gpu_model_runner.py\", line 41, in "
        "_allocate_kv_cache_tensors\n" ENGINE "ERROR 10-02 10:00:51 [core.py:708] " MESSAGE(
            "1.67 GiB", "22.03 GiB", "1.20 GiB", HELD("20.80 GiB", "20.20 GiB"));
    char text[4096];
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "%sINFO 11-15 10:00:00 [utils.py:233] non-default args: {'model': 'm'%s}\n%s%s", commands[i],
                 given[i], LOADED, error);
        const oos_incident *incident = only(text);
        assert_string_equal(incident->cause, "kv_bytes_exceed_gpu");
        assert_true(shows(incident, true, "--kv-cache-memory-bytes"));
        assert_true(shows(incident, false, "--gpu-memory-utilization"));
        assert_false(shows(incident, true, "--gpu-memory-utilization"));
    }
    /* One that the device holds is not the reason. */
    snprintf(text, sizeof text, "vllm serve some/model-8B --kv-cache-memory-bytes 2G\n%s%s", LOADED, error);
    assert_string_not_equal(only(text)->cause, "kv_bytes_exceed_gpu");
}

static void a_full_device_at_the_first_call_knows_no_budget(void **state)
{
    (void)state;
    const oos_incident *incident = only(
        ENGINE
        "ERROR 10-02 10:00:51 [core.py:708]   File \"/vllm/v1/worker/gpu_worker.py\", line 180, in "
        "init_device\n" ENGINE
        "ERROR 10-02 10:00:51 [core.py:708]     return torch.cuda.cudart().cudaMemGetInfo(device)\n" ENGINE
        "ERROR 10-02 10:00:51 [core.py:708] RuntimeError: CUDA error: out of memory\n");
    assert_string_equal(incident->cause, "other_process_holds_memory");
    assert_true(shows(incident, false, "--gpu-memory-utilization"));
    assert_false(shows(incident, true, "--gpu-memory-utilization"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_below_zero_bytes_is_refused),
        cmocka_unit_test(an_engine_that_is_up_serves),
        cmocka_unit_test(a_kernel_of_attention_is_first_a_served_batch),
        cmocka_unit_test(the_call_that_makes_a_context_is_the_first),
        cmocka_unit_test(a_buffer_of_the_host_is_host_memory),
        cmocka_unit_test(a_request_above_the_card_is_no_weight_and_no_headroom),
        cmocka_unit_test(nothing_is_too_long_where_as_much_is_free),
        cmocka_unit_test(an_empty_device_below_one_request_is_another_device),
        cmocka_unit_test(an_error_above_its_log_is_placed_by_the_log),
        cmocka_unit_test(a_sentence_about_a_prefill_is_one),
        cmocka_unit_test(a_title_and_the_log_below_are_one_incident),
        cmocka_unit_test(a_guess_is_said_to_be_unknown),
        cmocka_unit_test(advice_is_that_of_the_cause),
        cmocka_unit_test(a_cache_given_too_large_is_the_flags_doing),
        cmocka_unit_test(a_full_device_at_the_first_call_knows_no_budget),
    };
    return cmocka_run_group_tests(tests, load, unload);
}

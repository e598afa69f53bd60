/* From signals and figures to a conclusion, one rule at a time. */
#include "unit.h"

#include "explain/explain.h"
#include "follow/follow.h"
#include "log/log.h"

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

#define OOM(tried)                                                                                           \
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " tried                                   \
    " GiB. GPU 0 has a total capacity of 31.36 GiB of which 1.37 GiB is free. Including non-PyTorch "        \
    "memory, "                                                                                               \
    "this process has 29.98 GiB memory in use. Of the allocated memory 24.95 GiB is allocated by PyTorch, "  \
    "and 758.67 MiB is reserved by PyTorch but unallocated.\n"
#define STATS "INFO 04-24 10:21:03 [loggers.py:1] Avg prompt throughput: 10.0 tokens/s, Running: 1 reqs\n"

/* Arithmetic refuses without an allocation; where one failed, it was not the arithmetic. */
static void a_failed_allocation_is_no_refusal(void **state)
{
    (void)state;
    oos_explanation const e =
        explain("(Worker_TP0 pid=60) ERROR 05-03 00:18:16 [multiproc_executor.py:870] "
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.10 GiB. GPU 0 has a total "
                "capacity of 24.00 GiB of which 13.70 GiB is free. Of the allocated memory 8.89 GiB is "
                "allocated by PyTorch, and 11.50 MiB is reserved by PyTorch but unallocated.\n"
                "(EngineCore pid=51) ERROR 05-03 00:18:17 [core.py:1136] EngineCore failed to start.\n");
    assert_int_equal(e.count, 1);
    assert_int_not_equal(e.incidents[0].phase, OOS_PHASE_KV_SIZING);
    assert_string_equal(e.incidents[0].cause, "unified_memory_accounting");
}

static bool advises_quantising(const char *model)
{
    char log[1024];
    snprintf(log, sizeof log,
             "INFO 05-13 14:03:40 [model_runner.py:1110] Starting to load model %s...\nERROR 05-13 14:03:44 "
             "[engine.py:448] CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of "
             "31.36 GiB of which 13.75 MiB is free. Including non-PyTorch memory, this process has 31.00 GiB "
             "memory in use. Of the allocated memory 30.45 GiB is allocated by PyTorch, and 9.00 MiB is "
             "reserved by PyTorch but unallocated.\n",
             model);
    oos_explanation const e = explain(log);
    const oos_incident *incident = &e.incidents[0];
    assert_non_null(incident->record);
    for (size_t i = 0; i < incident->fix_count; i++)
        if (strcmp(incident->fixes[i].change[0], "a quantised checkpoint") == 0) return true;
    return false;
}

static void what_is_quantised_is_not_to_be_quantised(void **state)
{
    (void)state;
    assert_true(advises_quantising("/models/Some-30B"));
    assert_false(advises_quantising("/models/Some-30B-GPTQ-Int4"));
}

/* The words of the first piece of advice that begins with `change`; NULL: none does. */
static const oos_advice *told(const oos_advice *list, size_t count, const char *change)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].change[0], change) == 0) return &list[i];
    return NULL;
}

#define CAPTURE(process)                                                                                     \
    process                                                                                                  \
        "ERROR 04-16 11:12:31 [multiproc_executor.py:380]   File \"/vllm/v1/worker/gpu_model_runner.py\", "  \
        "line 1619, in capture_model\n" process                                                              \
        "ERROR 04-16 11:12:31 [multiproc_executor.py:380] RuntimeError: CUDA error: out of memory\n"

/* Up to 0.9 the sizes that are captured do not follow the number of requests. */
static void fewer_requests_shrink_no_graphs_of_early_releases(void **state)
{
    (void)state;
    oos_explanation const early = explain(CAPTURE("(VllmWorker rank=1 pid=4205) "));
    assert_int_equal(early.incidents[0].phase, OOS_PHASE_CUDAGRAPH_CAPTURE);
    assert_non_null(told(early.incidents[0].dead_ends, early.incidents[0].dead_end_count, "--max-num-seqs"));
    assert_null(told(early.incidents[0].fixes, early.incidents[0].fix_count, "--max-num-seqs"));
    assert_non_null(told(early.incidents[0].fixes, early.incidents[0].fix_count, "VLLM_USE_V1=0"));
    oos_explanation const later = explain(CAPTURE("(Worker_TP1 pid=4205) "));
    assert_null(told(later.incidents[0].dead_ends, later.incidents[0].dead_end_count, "--max-num-seqs"));
    assert_non_null(told(later.incidents[0].fixes, later.incidents[0].fix_count, "--max-num-seqs"));
    assert_null(told(later.incidents[0].fixes, later.incidents[0].fix_count, "VLLM_USE_V1=0"));
}

static void a_container_that_is_killed_is_given_a_higher_limit(void **state)
{
    (void)state;
    oos_explanation const e = explain(
        "[771.2] memory: usage 33554432kB, limit 33554432kB, failcnt 41\n"
        "[771.3] Memory cgroup out of memory: Killed process 31 (VLLM::EngineCor) total-vm:98765432kB, "
        "anon-rss:32333333kB, file-rss:12345kB\n");
    const oos_advice *limit = told(e.incidents[0].fixes, e.incidents[0].fix_count, "resources.limits.memory");
    assert_non_null(limit);
    assert_string_equal(limit->change[1], "41Gi");
    oos_explanation const bare = explain("      Reason:       OOMKilled\n      Exit Code:    137\n");
    assert_non_null(
        told(bare.incidents[0].fixes, bare.incidents[0].fix_count, "a higher resources.limits.memory"));
}

static void a_log_that_ends_while_weights_load_is_unfinished(void **state)
{
    (void)state;
    static const char load[] =
        "INFO 05-13 14:03:40 [gpu_model_runner.py:1110] Starting to load model org/name-8B...\n"
        "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:01<00:03,  1.2s/it]\n";
    oos_explanation e = explain(load);
    assert_false(e.incidents[0].is_oom);
    assert_int_equal(e.incidents[0].phase, OOS_PHASE_WEIGHT_LOAD);
    assert_string_equal(e.incidents[0].cause, "insufficient_info");
    assert_int_equal(e.incidents[0].fix_count, 0);
    char whole[512];
    snprintf(whole, sizeof whole, "%sINFO:     Application startup complete.\n", load);
    e = explain(whole);
    assert_int_equal(e.incidents[0].phase, OOS_PHASE_NOT_OOM);
    assert_string_equal(e.incidents[0].cause, "healthy_log");
}

/* A serving engine that runs out with this much cached, and with these words in its set-up. */
static bool advises_segments(const char *setup, const char *cached)
{
    char log[2048];
    snprintf(
        log, sizeof log,
        "INFO 05-13 14:03:40 [core.py:80] Initializing a V1 LLM engine (v0.11.0) with config: "
        "model='/models/Some-30B', %s, enforce_eager=False\n" STATS
        "  File \"/vllm/v1/worker/gpu_model_runner.py\", line 2336, in execute_model\n"
        "ERROR 05-13 14:33:44 [core.py:710] torch.OutOfMemoryError: CUDA out of memory. Tried to "
        "allocate 1.50 GiB. GPU 0 has a total capacity of 31.36 GiB of which 13.75 MiB is free. "
        "Including non-PyTorch memory, this process has 31.00 GiB memory in use. Of the allocated memory "
        "25.45 GiB is allocated by PyTorch, and %s is reserved by PyTorch but unallocated.\n",
        setup, cached);
    oos_explanation const e = explain(log);
    const oos_incident *incident = &e.incidents[0];
    for (size_t i = 0; i < incident->fix_count; i++)
        if (strstr(incident->fixes[i].change[0], "expandable_segments:True")) return true;
    return false;
}

/* With the custom all-reduce of several ranks they end in a crash at capture, and without pieces there is nothing to gain. */
static void segments_that_grow_are_for_pieces_and_for_one_rank(void **state)
{
    (void)state;
    assert_true(advises_segments("tensor_parallel_size=1", "3.20 GiB"));
    assert_false(advises_segments("tensor_parallel_size=1", "221.00 MiB"));
    assert_false(advises_segments("tensor_parallel_size=4", "3.20 GiB"));
    assert_true(advises_segments("tensor_parallel_size=4, disable_custom_all_reduce=True", "3.20 GiB"));
}

static void a_conclusion_is_as_sure_as_its_weaker_half(void **state)
{
    (void)state;
    static const char *const logs[] = {
        OOM("1.56"), "Killed\n", "RuntimeError: CUDA error: out of memory\n",
        "  File \"gpu_model_runner.py\", line 1, in profile_cudagraph_memory\n" OOM("2.00"),
        "ValueError: No available memory for the cache blocks.\n"};
    bool differ = false;
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        oos_explanation const e = explain(logs[i]);
        const oos_incident *incident = &e.incidents[0];
        assert_true(incident->confidence <= incident->phase_sure &&
                    incident->confidence <= incident->cause_sure);
        differ = differ || incident->phase_sure < incident->cause_sure ||
                 incident->cause_sure < incident->phase_sure;
    }
    assert_true(differ);
}

/* Descendants of vLLM have its name in their paths. */
static void an_engine_of_its_own_name_is_not_called_vllm(void **state)
{
    (void)state;
    oos_explanation const e =
        explain("INFO vLLM is up\n  File \"vllm_ascend/worker.py\", line 1, in load\n" OOM("1.00"));
    assert_string_equal(e.incidents[0].engine, "vllm-ascend");
    oos_explanation const plain = explain("INFO vLLM is up\n" OOM("1.00"));
    assert_string_equal(plain.incidents[0].engine, "vllm");
}

static bool names(const oos_incident *incident, const char *cause)
{
    bool named = strcmp(incident->cause, cause) == 0;
    for (size_t i = 0; i < incident->also_count; i++) named |= strcmp(incident->also[i], cause) == 0;
    return named;
}

static void what_follows_from_something_else_is_no_reason(void **state)
{
    (void)state;
    /* SGLang takes its own processes down; alone, the shell's word is the host's doing. */
    oos_explanation const own = explain(
        "ValueError: token_to_kv_pool_allocator memory leak detected! available_size=7\n"
        "[2026-01-02 03:04:05] Received sigquit from a child process. It usually means the child failed.\n"
        "./serve.sh: line 4: 9921 Killed   python -m sglang.launch_server\n");
    assert_false(own.incidents[0].is_oom);
    assert_string_equal(own.incidents[0].cause, "engine_bug");
    oos_explanation const host = explain("./serve.sh: line 4: 9921 Killed   python train.py\n");
    assert_true(host.incidents[0].is_oom);
    assert_string_equal(host.incidents[0].cause, "host_ram");
}

static void what_names_an_old_pytorch_is_a_program_of_its_own(void **state)
{
    (void)state;
    /* Before OutOfMemoryError there was no engine that sizes a cache by the card: full is not "still loading". */
    oos_explanation const e = explain(
        "RuntimeError: CUDA out of memory. Tried to allocate 14.00 MiB (GPU 0; 7.93 GiB total capacity; "
        "7.31 GiB already allocated; 3.12 MiB free; 21.40 MiB cached)\n");
    assert_int_equal(e.incidents[0].phase, OOS_PHASE_RUNTIME_OTHER);
    assert_string_equal(e.incidents[0].cause, "activation_peak");
}

static void a_little_cache_is_no_fragmentation(void **state)
{
    (void)state;
    static const char frame[] = "  File \"train.py\", line 3, in step\n    loss.backward()\n";
    char text[600];
    snprintf(text, sizeof text,
             "%storch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total "
             "capacity of "
             "40.00 GiB of which 0.20 GiB is free. Of the allocated memory 37.50 GiB is allocated by "
             "PyTorch, and %s GiB "
             "is reserved by PyTorch but unallocated.\n",
             frame, "1.50");
    assert_string_equal(explain(text).incidents[0].cause, "activation_peak");
    snprintf(text, sizeof text,
             "%storch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total "
             "capacity of "
             "40.00 GiB of which 0.20 GiB is free. Of the allocated memory 30.50 GiB is allocated by "
             "PyTorch, and %s GiB "
             "is reserved by PyTorch but unallocated.\n",
             frame, "8.50");
    assert_string_equal(explain(text).incidents[0].cause, "fragmentation");
}

static void a_program_that_is_no_server_has_no_servers_causes(void **state)
{
    (void)state;
    oos_explanation const trainer =
        explain("  File \"train.py\", line 80, in main\n    loss.backward()\n" OOM("1.56"));
    assert_string_equal(trainer.incidents[0].engine, "pytorch");
    assert_false(names(&trainer.incidents[0], "gmu_too_high_leaves_no_headroom"));
    oos_explanation const server =
        explain(STATS "  File \"vllm/v1/engine/core.py\", line 80, in run_busy_loop\n" OOM("1.56"));
    assert_string_equal(server.incidents[0].engine, "vllm");
    assert_true(names(&server.incidents[0], "gmu_too_high_leaves_no_headroom"));
}

static void a_guess_names_the_usual_causes_of_its_stage_beside_it(void **state)
{
    (void)state;
    oos_explanation const e = explain("NCCL WARN Cuda failure 2 'out of memory'\n");
    assert_int_equal(e.incidents[0].phase, OOS_PHASE_DISTRIBUTED_INIT);
    assert_true(names(&e.incidents[0], "nccl_buffers"));
    oos_explanation const bare = explain("RuntimeError: insufficient memory\n");
    assert_true(bare.incidents[0].is_oom && bare.incidents[0].also_count > 0);
}

static void a_sentence_of_an_engines_source_has_the_stage_of_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *engine, *cause;
        oos_phase phase;
    } told[] = {{"RuntimeError: No enough gpu memory for kv cache.\n", "lmdeploy", "gmu_too_low",
                 OOS_PHASE_KV_SIZING},
                {"RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache\n",
                 "sglang", "state_cache_slots", OOS_PHASE_KV_SIZING},
                {"Error: Not enough VRAM to run the model: Available: 12 - Model 30.\n", "tgi",
                 "weights_exceed_gpu", OOS_PHASE_WEIGHT_LOAD}};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        oos_explanation const e = explain(told[i].text);
        assert_true(e.incidents[0].is_oom);
        assert_int_equal(e.incidents[0].phase, told[i].phase);
        assert_string_equal(e.incidents[0].cause, told[i].cause);
        assert_string_equal(e.incidents[0].engine, told[i].engine);
    }
    /* Words of a source in a line that is no failure place nothing. */
    oos_explanation const quiet =
        explain("INFO 04-24 10:21:03 [x.py:1] No enough gpu memory for kv cache.\n");
    assert_false(quiet.incidents[0].is_oom);
}

static void a_condition_is_all_of_any_of_and_none_of(void **state)
{
    (void)state;
    oos_condition const when = {
        .all = {1, 2}, .all_count = 2, .any = {3, 4}, .any_count = 2, .none = {5}, .none_count = 1};
    static const struct {
        size_t ids[4];
        bool holds;
    } cases[] = {{{1, 2, 3, 3}, true},  {{1, 2, 4, 4}, true},  {{1, 3, 3, 3}, false},
                 {{1, 2, 2, 2}, false}, {{1, 2, 3, 5}, false}, {{2, 3, 4, 4}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        oos_signal_set set = {0};
        for (size_t k = 0; k < 4; k++) oos_signal_add(&set, cases[i].ids[k]);
        assert_true(oos_condition_holds(&when, &set) == cases[i].holds);
    }
}

/* ---- holdings ---- */

static oos_number gib(double value)
{
    return (oos_number){.known = true, .value = (uint64_t)(value * 0x1p30)};
}

/* 24 GiB in all, 1 free; 20 allocated, 2 of them in private pools, 1 cached, 22 in this process. */
static oos_incident incident_in(oos_phase phase)
{
    oos_incident incident = {.phase = phase};
    incident.numbers[OOS_NUMBER_total] = gib(24);
    incident.numbers[OOS_NUMBER_free] = gib(1);
    incident.numbers[OOS_NUMBER_torch_allocated] = gib(20);
    incident.numbers[OOS_NUMBER_private_pools] = gib(2);
    incident.numbers[OOS_NUMBER_reserved_unallocated] = gib(1);
    incident.numbers[OOS_NUMBER_process] = gib(22);
    incident.numbers[OOS_NUMBER_weights] = gib(10);
    incident.numbers[OOS_NUMBER_kv_available] = gib(4);
    return incident;
}

static uint64_t held(const oos_incident *incident, const char *owner)
{
    for (const oos_hold *row = incident->held.ledger.first; row; row = row->next)
        if (strcmp(oos_owner_word(row->owner), owner) == 0) return row->amount.bytes;
    return 0;
}

static void the_ledger_of_a_message_names_what_is_there_in_its_phase(void **state)
{
    (void)state;
    static const struct {
        oos_phase phase;
        uint64_t weights, cache, live;
    } cases[] = {{OOS_PHASE_WEIGHT_LOAD, 0, 0, 18},
                 {OOS_PHASE_PROFILE_RUN, 10, 0, 8},
                 {OOS_PHASE_CUDAGRAPH_CAPTURE, 10, 4, 4},
                 {OOS_PHASE_RUNTIME_PREFILL, 10, 4, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        oos_incident incident = incident_in(cases[i].phase);
        oos_holdings_rebuild(arena, &incident);
        assert_int_equal(incident.held.peak_bytes, 23 * OOS_GIB);
        assert_int_equal(incident.held.ledger.held_bytes, 23 * OOS_GIB);
        assert_int_equal(held(&incident, "weights"), cases[i].weights * OOS_GIB);
        assert_int_equal(held(&incident, "KV cache"), cases[i].cache * OOS_GIB);
        assert_int_equal(held(&incident, "other live tensors"), cases[i].live * OOS_GIB);
        assert_int_equal(held(&incident, "free blocks of private pools"), 2 * OOS_GIB);
        assert_int_equal(held(&incident, "cached by PyTorch"), OOS_GIB);
        assert_int_equal(held(&incident, "outside PyTorch"), OOS_GIB);
    }
}

static void figures_of_different_moments_make_no_ledger(void **state)
{
    (void)state;
    oos_incident incident = incident_in(OOS_PHASE_RUNTIME_PREFILL);
    incident.numbers[OOS_NUMBER_torch_allocated] = gib(23.5);
    oos_holdings_rebuild(arena, &incident);
    assert_int_equal(incident.held.peak_bytes, 0);
}

/* ---- figures ---- */

static void figures_are_binary_with_commas_and_signs(void **state)
{
    (void)state;
    oos_number number = {0};
    oos_number_id id;
    assert_true(oos_number_size(oos_view_of("1.5 GiB"), &number));
    assert_int_equal(number.value, 3 * OOS_GIB / 2);
    assert_true(oos_number_size(oos_view_of("2 GB"), &number));
    assert_int_equal(number.value, 2 * OOS_GIB);
    assert_true(oos_number_read(&(oos_capture){.name = "kv_tokens_n", .text = oos_view_of("22,560")}, 7, &id,
                                &number));
    assert_int_equal(number.value, 22560);
    assert_int_equal(number.line, 7);
    assert_false(number.negative);
    assert_true(oos_number_read(&(oos_capture){.name = "kv_available_gib", .text = oos_view_of("-1.5")}, 1,
                                &id, &number));
    assert_int_equal(id, OOS_NUMBER_kv_available);
    assert_int_equal(number.value, 3 * OOS_GIB / 2);
    assert_true(number.negative);
}

static void a_sentence_goes_on_over_lines_and_ends_at_the_next_record(void **state)
{
    (void)state;
    char joined[512];
    oos_view const line = oos_view_of("CUDA out of memory. Tried to allocate 1.56 GiB. GPU 0 has a total");
    size_t const len = oos_window_join(
        line,
        oos_view_of(
            "\n capacity of 31.36 GiB of which 1.37 GiB is free.\nTraceback (most recent call last):\n"),
        joined, sizeof joined);
    oos_view const text = {joined, len};
    assert_non_null(memmem(text.ptr, text.len, "capacity of 31.36 GiB", 21));
    assert_null(memmem(text.ptr, text.len, "Traceback", 9));
}

/* ---- incidents ---- */

static void the_first_message_of_an_incident_gives_its_figures(void **state)
{
    (void)state;
    oos_explanation const e = explain(OOM("1.56") "Traceback (most recent call last):\n" OOM("9.00"));
    assert_int_equal(e.count, 1);
    assert_int_equal(e.incidents[0].numbers[OOS_NUMBER_tried].value, (uint64_t)(1.56 * 0x1p30 + 0.5));
}

/* A dying server may print one more line of statistics; three mean that it lives. */
static void an_engine_that_goes_on_serving_has_a_new_incident(void **state)
{
    (void)state;
    assert_int_equal(explain(OOM("1.56") STATS OOM("9.00")).count, 1);
    assert_int_equal(explain(OOM("1.56") STATS STATS STATS OOM("9.00")).count, 2);
}

static void a_traceback_that_somebody_caught_is_no_incident(void **state)
{
    (void)state;
    const char *caught =
        "ERROR 04-24 10:21:03 [core.py:1] Traceback (most recent call last):\n"
        "ERROR 04-24 10:21:03 [core.py:1]   File \"gpu_model_runner.py\", line 1, in execute_model\n";
    char text[2048];
    snprintf(text, sizeof text, "%s%s", caught, STATS STATS STATS STATS);
    oos_explanation const e = explain(text);
    assert_int_equal(e.count, 1);
    assert_false(e.incidents[0].is_oom || e.incidents[0].failed);
}

/* What a phase rests on is that of the weakest thing it needs. */
static void a_phase_says_what_it_rests_on(void **state)
{
    (void)state;
#define BARE "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.\n"
    const struct {
        const char *text;
        oos_basis basis;
    } cases[] = {
        {"ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
         "initializing the engine.\n",
         OOS_BASIS_SAID},
        {"  File \"vllm/v1/worker/gpu_model_runner.py\", line 1, in profile_cudagraph_memory\n" BARE,
         OOS_BASIS_STACK},
        {"INFO 04-24 10:21:03 [gpu_worker.py:298] Available KV cache memory: 13.51 GiB\n" BARE,
         OOS_BASIS_MARK},
        {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 31.00 GiB. GPU 0 has a total "
         "capacity of "
         "23.64 GiB of which 9.00 GiB is free. Of the allocated memory 14.00 GiB is allocated by PyTorch, "
         "and "
         "10.00 MiB is reserved by PyTorch but unallocated.\n",
         OOS_BASIS_USUAL}, /* figures remove phases, and name none */
        {"import torch\nRuntimeError: HSA_STATUS_ERROR_OUT_OF_RESOURCES: out of memory on the device\n",
         OOS_BASIS_USUAL},
        {BARE, OOS_BASIS_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        oos_explanation const e = explain(cases[i].text);
        assert_true(e.count > 0 && e.incidents[0].is_oom);
        assert_int_equal(e.incidents[0].basis, cases[i].basis);
    }
}

/* What was read is one stage. A guess names all that the text leaves, itself first, and asks for what is not there. */
static void what_is_not_certain_is_a_set_and_a_question(void **state)
{
    (void)state;
    oos_explanation const bare = explain(BARE);
    assert_int_equal(bare.incidents[0].phase, OOS_PHASE_UNKNOWN);
    assert_int_equal(bare.incidents[0].phase_count, 3);
    assert_string_equal(bare.incidents[0].question, "had the model been loaded when it failed?");

    oos_explanation const read =
        explain("  File \"vllm/v1/worker/gpu_model_runner.py\", line 1, in profile_cudagraph_memory\n" BARE);
    assert_int_equal(read.incidents[0].phase_count, 1);
    assert_int_equal(read.incidents[0].phases[0], OOS_PHASE_CUDAGRAPH_PROFILE);
    assert_null(read.incidents[0].question);

    oos_explanation const either =
        explain("  File \"vllm/v1/worker/gpu_model_runner.py\", line 1, in capture_model\n" BARE);
    assert_int_equal(either.incidents[0].phase_count, 2); /* graphs are captured on trial, too */
    assert_int_equal(either.incidents[0].phases[0], OOS_PHASE_CUDAGRAPH_CAPTURE);
    assert_non_null(either.incidents[0].question);

    /* A server that is up does not start: nobody is asked whether it had answered. */
    const char *served = "INFO 04-24 10:21:02 [api_server.py:1] vLLM API server version 0.10.0\n"
                         "INFO:     Application startup complete.\n" OOM("0.31");
    oos_explanation const e = explain(served);
    const oos_incident *up = &e.incidents[e.count - 1];
    for (size_t i = 0; i < up->phase_count; i++) assert_true(up->phases[i] >= OOS_PHASE_RUNTIME_PREFILL);
    assert_true(!up->question || !strstr(up->question, "request"));
}

static void a_history_comes_back_as_it_was(void **state)
{
    (void)state;
    oos_incident const history = {
        .last_marker = OOS_PHASE_PROFILE_RUN,
        .v1 = true,
        .started = 1767323045000000000,
        .numbers[OOS_NUMBER_kv_tokens] = {.known = true, .value = 22560, .line = 3}};
    oos_incident again;
    oos_text text = {0};
    oos_history_write(&knowledge.signals, &history, &text);
    assert_true(oos_history_read(arena, &knowledge.signals, (oos_view){text.ptr, text.len}, &again));
    assert_int_equal(again.last_marker, OOS_PHASE_PROFILE_RUN);
    assert_true(again.v1 && again.started == history.started);
    assert_int_equal(again.numbers[OOS_NUMBER_kv_tokens].value, 22560);
    assert_int_equal(again.numbers[OOS_NUMBER_kv_tokens].line, 3);
    oos_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_allocation_is_no_refusal),
        cmocka_unit_test(what_is_quantised_is_not_to_be_quantised),
        cmocka_unit_test(fewer_requests_shrink_no_graphs_of_early_releases),
        cmocka_unit_test(a_container_that_is_killed_is_given_a_higher_limit),
        cmocka_unit_test(a_log_that_ends_while_weights_load_is_unfinished),
        cmocka_unit_test(segments_that_grow_are_for_pieces_and_for_one_rank),
        cmocka_unit_test(a_conclusion_is_as_sure_as_its_weaker_half),
        cmocka_unit_test(an_engine_of_its_own_name_is_not_called_vllm),
        cmocka_unit_test(what_follows_from_something_else_is_no_reason),
        cmocka_unit_test(what_names_an_old_pytorch_is_a_program_of_its_own),
        cmocka_unit_test(a_little_cache_is_no_fragmentation),
        cmocka_unit_test(a_program_that_is_no_server_has_no_servers_causes),
        cmocka_unit_test(a_guess_names_the_usual_causes_of_its_stage_beside_it),
        cmocka_unit_test(a_sentence_of_an_engines_source_has_the_stage_of_its_place),
        cmocka_unit_test(a_condition_is_all_of_any_of_and_none_of),
        cmocka_unit_test(the_ledger_of_a_message_names_what_is_there_in_its_phase),
        cmocka_unit_test(figures_of_different_moments_make_no_ledger),
        cmocka_unit_test(figures_are_binary_with_commas_and_signs),
        cmocka_unit_test(a_sentence_goes_on_over_lines_and_ends_at_the_next_record),
        cmocka_unit_test(the_first_message_of_an_incident_gives_its_figures),
        cmocka_unit_test(an_engine_that_goes_on_serving_has_a_new_incident),
        cmocka_unit_test(a_traceback_that_somebody_caught_is_no_incident),
        cmocka_unit_test(a_phase_says_what_it_rests_on),
        cmocka_unit_test(what_is_not_certain_is_a_set_and_a_question),
        cmocka_unit_test(a_history_comes_back_as_it_was),
    };
    return cmocka_run_group_tests(tests, load, unload);
}

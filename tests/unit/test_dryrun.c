/* The engine's log tells phases and figures; the segment tells who held what. */
#include "unit.h"

#include "dryrun/dryrun.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static oos_line_reader *reader; /* of all tests: data that is not changed */

static bool line(oos_dryrun_log *log, const char *text)
{
    return oos_dryrun_log_line(log, oos_view_of(text));
}

static void a_healthy_start_goes_through_its_phases(void **state)
{
    (void)state;
    oos_dryrun_log log;
    oos_dryrun_log_init(&log, reader);
    assert_true(line(
        &log, "(EngineCore pid=1) INFO 11-15 03:01:38 [core.py:133] Initializing a V1 LLM engine (v0.32.0)"));
    assert_int_equal(log.phase, OOS_PHASE_INIT_FREE_MEMORY_CHECK);
    assert_true(line(&log, "(EngineCore pid=1) INFO [x.py:1] Starting to load model /m..."));
    assert_true(
        line(&log, "(EngineCore pid=1) INFO [x.py:1] Model loading took 2.45 GiB memory and 30.5 seconds"));
    assert_int_equal(log.phase, OOS_PHASE_PROFILE_RUN);
    assert_true(log.weights.bytes.value == (uint64_t)(2.45 * 0x1p30 + 0.5));
    line(&log, "INFO Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN']");
    assert_string_equal(log.backend, "FLASH_ATTN");
    line(&log, "INFO [x.py:1] Available KV cache memory: 18.0 GiB");
    line(&log, "INFO [x.py:1] GPU KV cache size: 98,288 tokens, Maximum concurrency for 2,048 tokens per "
               "request: 47.99x");
    assert_int_equal(log.phase, OOS_PHASE_KV_ALLOC);
    assert_true(log.kv_tokens.value == 98288 && log.max_concurrency.value == 47.99);
    assert_false(line(&log, "(Worker pid=2) INFO [x.py:1] Starting to load model /m...")); /* a slower rank */
    line(&log, "INFO:     Application startup complete.");
    assert_true(log.ready && !log.ran_out && !log.refused);
}

static void an_out_of_memory_line_gives_its_figures_and_its_phase(void **state)
{
    (void)state;
    oos_dryrun_log log;
    oos_dryrun_log_init(&log, reader);
    line(&log, "INFO [x.py:1] Model loading took 18.58 GiB memory and 30.5 seconds");
    line(&log, "INFO [kv_cache_utils.py:829] Overriding num_gpu_blocks=0 with num_gpu_blocks_override=512");
    line(&log, "ERROR     except torch.OutOfMemoryError as e:");
    assert_false(log.ran_out);
    line(&log, "ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 40.00 MiB. GPU 0 has a "
               "total capacity of "
               "23.50 GiB of which 31.19 MiB is free. Including non-PyTorch memory, this process has 23.46 "
               "GiB memory in "
               "use. Of the allocated memory 21.18 GiB is allocated by PyTorch, with 1.78 GiB allocated in "
               "private pools");
    assert_true(log.ran_out);
    assert_int_equal(log.failed, OOS_PHASE_CUDAGRAPH_PROFILE);
    assert_true(log.tried_bytes.value == 40 << 20);
    assert_true(log.allocated_bytes.value == (uint64_t)(21.18 * 0x1p30 + 0.5));
    assert_true(log.private_pool_bytes.value == (uint64_t)(1.78 * 0x1p30 + 0.5));
}

static void tensors_of_an_optimizer_are_those_of_the_largest_rank(void **state)
{
    (void)state;
    oos_dryrun_log log;
    oos_dryrun_log_init(&log, NULL);
    line(&log, "oomsight dryrun: measured parameters 537001984 bytes");
    line(&log, "oomsight dryrun: measured gradients 537001984 bytes");
    line(&log, "oomsight dryrun: measured optimizer 1074003968 bytes");
    line(&log, "oomsight dryrun: measured optimizer 1074 bytes");
    assert_int_equal(log.parameters.bytes.value, 537001984);
    assert_int_equal(log.gradients.bytes.value, 537001984);
    assert_int_equal(log.optimizer.bytes.value, 1074003968);
}

static void what_was_measured_to_the_byte_is_not_rounded_again(void **state)
{
    (void)state;
    oos_dryrun_log log;
    oos_dryrun_log_init(&log, reader);
    line(&log, "(Worker_TP0 pid=7) INFO [x.py:1] Model loading took 2.45 GiB memory and 30.5 seconds");
    line(&log, "(Worker_TP0 pid=7) oomsight dryrun: measured weights 2629632512 bytes");
    line(&log, "(Worker_TP1 pid=8) INFO [x.py:1] Model loading took 2.46 GiB memory and 30.5 seconds");
    line(&log, "(Worker_TP1 pid=8) oomsight dryrun: measured weights 2629631488 bytes");
    line(&log, "(Worker_TP0 pid=7) oomsight dryrun: measured peak 408944640 bytes");
    line(&log, "(Worker_TP0 pid=7) oomsight dryrun: measured available 18446744073 bytes");
    line(&log, "(Worker_TP1 pid=8) oomsight dryrun: measured available 18446744000 bytes");
    line(&log, "INFO [x.py:1] Available KV cache memory: 17.0 GiB");
    assert_true(log.weights.bytes.value == 2629632512 && log.activation_peak.bytes.value == 408944640);
    assert_true(log.kv_available.bytes.value == 18446744000);
}

static void a_backend_that_was_asked_for_is_named_too(void **state)
{
    (void)state;
    oos_dryrun_log log;
    oos_dryrun_log_init(&log, reader);
    line(&log, "INFO [cuda.py:1] Using backend AttentionBackendEnum.FLASH_ATTN for vit attention");
    line(&log, "INFO [mm.py:1] Using AttentionBackendEnum.FLASH_ATTN for MMEncoderAttention backend");
    assert_string_equal(log.backend, "");
    line(&log, "INFO [cuda.py:274] Using AttentionBackendEnum.FLASHINFER backend.");
    assert_string_equal(log.backend, "FLASHINFER");
}

static void repacking_and_the_sampler_are_phases_of_their_own(void **state)
{
    (void)state;
    oos_dryrun_log log;
    oos_dryrun_log_init(&log, reader);
    line(&log, "INFO [x.py:1] Starting to load model /m...");
    line(&log, "oomsight dryrun: out of memory in the sampler"); /* not while it starts */
    assert_true(line(&log, "(EngineCore pid=1) oomsight dryrun: weights are repacked"));
    assert_int_equal(log.phase, OOS_PHASE_QUANT_POSTPROCESS);
    line(&log, "INFO:     Application startup complete.");
    line(&log, "(Worker pid=1) oomsight dryrun: out of memory in the sampler");
    line(&log, "ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 40.00 MiB.");
    assert_int_equal(log.failed, OOS_PHASE_RUNTIME_SAMPLER);
}

static void an_engine_that_dies_while_it_serves_is_quoted_with_what_it_died_of(void **state)
{
    (void)state;
    oos_dryrun_log log;
    oos_dryrun_log_init(&log, reader);
    line(&log, "(EngineCore pid=1) WARNING [x.py:1] ImportError: no module, going on without");
    line(&log, "INFO:     Application startup complete.");
    assert_string_equal(log.error, ""); /* before it was ready it died of nothing */
    line(&log, "(APIServer pid=2) ERROR [x.py:1] vllm.v1.engine.exceptions.EngineDeadError: EngineCore "
               "encountered an issue");
    line(&log, "INFO:     127.0.0.1:5 - \"POST /v1/completions HTTP/1.1\" 500 Internal Server Error: ");
    assert_string_equal(log.error, "");
    line(&log, "(EngineCore pid=1) ERROR [core.py:9] torch.AcceleratorError: scatter(): Expected self.dtype");
    line(&log, "(EngineCore pid=1) ERROR [core.py:9] RuntimeError: a later one");
    assert_string_equal(log.error, "torch.AcceleratorError: scatter(): Expected self.dtype");
    assert_true(!log.ran_out && !log.refused);
}

static void peaks_of_steps_are_the_largest_of_all_processes(void **state)
{
    (void)state;
    char folder[] = "/tmp/oomsight-steps-XXXXXX", path[64], name[96];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/segment", folder);
    static const char *const files[] = {"prefill 100 3 2 64\nsampler 7 1 1 1\n",
                                        "prefill 90 9 9 9\ndecode 5 6 7 8\nother 1 1 1 1\ncut 1"};
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s.steps.%d", path, i);
        FILE *file = fopen(name, "w");
        assert_non_null(file);
        fputs(files[i], file);
        fclose(file);
    }
    oos_step_peak steps[OOS_STEP_PARTS] = {0};
    oos_dryrun_steps_read(path, steps);
    assert_true(steps[OOS_STEP_PREFILL].bytes.value == 100 && steps[OOS_STEP_PREFILL].step == 3 &&
                steps[OOS_STEP_PREFILL].tokens == 64);
    assert_true(steps[OOS_STEP_DECODE].bytes.value == 5 && steps[OOS_STEP_DECODE].requests == 7);
    assert_true(steps[OOS_STEP_SAMPLER].bytes.known && steps[OOS_STEP_SAMPLER].bytes.value == 7);
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s.steps.%d", path, i);
        unlink(name);
    }
    rmdir(folder);
}

static void the_engines_own_refusal_is_not_an_out_of_memory(void **state)
{
    (void)state;
    oos_dryrun_log log;
    oos_dryrun_log_init(&log, reader);
    line(&log, "ValueError: To serve at least one request with the model's max seq len (8192), (2.5 GiB KV "
               "cache is needed, "
               "which is larger than the available KV cache memory (0.21 GiB).");
    assert_true(log.refused && !log.ran_out);
    assert_int_equal(log.failed, OOS_PHASE_KV_SIZING);
}

/* A segment as the stand-ins leave it. */
static oos_segment *segment_of(char *path, uint64_t total_bytes)
{
    close(mkstemp(path));
    unlink(path);
    oos_device_spec const spec = {.name = "NVIDIA Phantom", .total_bytes = total_bytes};
    oos_segment *segment;
    assert_int_equal(oos_segment_create(path, &spec, 1, &segment), OOS_SEGMENT_OK);
    return segment;
}

static void put(oos_segment *segment, oos_phase phase, oos_owner owner, oos_use use, uint64_t bytes)
{
    segment->devices[0].at_phase_peak[phase][owner][use] = bytes;
    segment->devices[0].phase_peak_bytes[phase] += bytes;
}

static const oos_moment *moment_of(const oos_dryrun *run, oos_phase phase)
{
    for (size_t i = 0; i < run->phase_count; i++)
        if (run->phases[i].phase == phase) return &run->phases[i];
    return NULL;
}

static void the_rows_of_a_phase_add_up_to_its_peak(void **state)
{
    (void)state;
    char path[] = "/tmp/oomsight-unit-XXXXXX";
    oos_segment *segment = segment_of(path, 24 * OOS_GIB);
    put(segment, OOS_PHASE_KV_ALLOC, OOS_OWNER_BATCH_BUFFERS, OOS_USE_CONTEXT, OOS_GIB);
    put(segment, OOS_PHASE_KV_ALLOC, OOS_OWNER_WEIGHTS, OOS_USE_MALLOC, 3 * OOS_GIB);
    put(segment, OOS_PHASE_KV_ALLOC, OOS_OWNER_WEIGHTS, OOS_USE_VMM, OOS_GIB);
    put(segment, OOS_PHASE_KV_ALLOC, OOS_OWNER_KV_CACHE, OOS_USE_MALLOC, 10 * OOS_GIB);
    oos_arena *arena = oos_arena_create(1024);
    oos_dryrun run = {0};
    oos_dryrun_log_init(&run.log, reader);
    assert_int_equal(oos_dryrun_read(arena, segment, path, &run), OOMSIGHT_OK);
    assert_int_equal(run.phase_count, 1);
    const oos_ledger *ledger = &run.phases[0].ledger;
    assert_true(ledger->held_bytes == 15 * OOS_GIB && run.phases[0].peak_bytes == 15 * OOS_GIB);
    assert_int_equal(ledger->first->owner, OOS_OWNER_CONTEXT);
    assert_int_equal(ledger->first->next->owner, OOS_OWNER_WEIGHTS);
    assert_true(ledger->first->next->amount.bytes == 4 * OOS_GIB);
    assert_int_equal(ledger->first->next->amount.source, OOS_SOURCE_MEASURED);
    oos_arena_free(arena);
    oos_segment_close(segment);
    unlink(path);
}

/* A start with a trial capture: the cache of the trial and the cache are two rows, and so are their graphs. */
static void a_dry_start_has_the_owners_of_a_plan(void **state)
{
    (void)state;
    char path[] = "/tmp/oomsight-unit-XXXXXX";
    oos_segment *segment = segment_of(path, 24 * OOS_GIB);
    static const struct {
        oos_phase phase;
        oos_owner owner;
        uint64_t gib;
    } taken[] = {
        {OOS_PHASE_WEIGHT_LOAD, OOS_OWNER_WEIGHTS, 9},
        {OOS_PHASE_PROFILE_RUN, OOS_OWNER_WEIGHTS, 8},
        {OOS_PHASE_PROFILE_RUN, OOS_OWNER_ACTIVATIONS, 3},
        {OOS_PHASE_CUDAGRAPH_PROFILE, OOS_OWNER_WEIGHTS, 8},
        {OOS_PHASE_CUDAGRAPH_PROFILE, OOS_OWNER_ACTIVATIONS, 1},
        {OOS_PHASE_CUDAGRAPH_PROFILE, OOS_OWNER_KV_CACHE, 2},
        {OOS_PHASE_CUDAGRAPH_PROFILE, OOS_OWNER_CUDA_GRAPHS, 1},
        {OOS_PHASE_KV_ALLOC, OOS_OWNER_WEIGHTS, 8},
        {OOS_PHASE_KV_ALLOC, OOS_OWNER_ACTIVATIONS, 1},
        {OOS_PHASE_KV_ALLOC, OOS_OWNER_KV_CACHE, 10},
    };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        put(segment, taken[i].phase, taken[i].owner, OOS_USE_MALLOC, taken[i].gib * OOS_GIB);
    oos_arena *arena = oos_arena_create(1024);
    oos_dryrun run = {0};
    oos_dryrun_log_init(&run.log, reader);
    assert_int_equal(oos_dryrun_read(arena, segment, path, &run), OOMSIGHT_OK);
    static const struct {
        oos_phase phase;
        oos_owner owner;
        uint64_t gib;
    } rows[] = {
        {OOS_PHASE_WEIGHT_LOAD, OOS_OWNER_WEIGHTS, 8},
        {OOS_PHASE_WEIGHT_LOAD, OOS_OWNER_LOADING_COPIES, 1},
        {OOS_PHASE_PROFILE_RUN, OOS_OWNER_ACTIVATIONS, 2},
        {OOS_PHASE_PROFILE_RUN, OOS_OWNER_KEPT, 1},
        {OOS_PHASE_CUDAGRAPH_PROFILE, OOS_OWNER_TRIAL_KV, 2},
        {OOS_PHASE_CUDAGRAPH_PROFILE, OOS_OWNER_TRIAL_GRAPHS, 1},
        {OOS_PHASE_CUDAGRAPH_PROFILE, OOS_OWNER_KEPT, 1},
        {OOS_PHASE_CUDAGRAPH_PROFILE, OOS_OWNER_KV_CACHE, 0},
        {OOS_PHASE_KV_ALLOC, OOS_OWNER_KV_CACHE, 10},
        {OOS_PHASE_KV_ALLOC, OOS_OWNER_KEPT, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(oos_ledger_bytes(&moment_of(&run, rows[i].phase)->ledger, rows[i].owner),
                         rows[i].gib * OOS_GIB);
    oos_arena_free(arena);
    oos_segment_close(segment);
    unlink(path);
}

static void a_process_that_says_where_it_is_is_believed_before_the_log(void **state)
{
    (void)state;
    char path[] = "/tmp/oomsight-unit-XXXXXX";
    oos_segment *segment = segment_of(path, 24 * OOS_GIB);
    oos_dryrun_log log;
    oos_dryrun_log_init(&log, reader);
    oos_dryrun_log_told(&log, segment);
    assert_true(line(&log, "INFO [x.py:1] Starting to load model /m..."));
    segment->processes[3].phase = OOS_PHASE_CUDAGRAPH_PROFILE;
    segment->processes[3].told = 1;
    oos_dryrun_log_told(&log, segment);
    line(&log, "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%"); /* of the trial */
    assert_int_equal(log.phase, OOS_PHASE_CUDAGRAPH_PROFILE);
    oos_segment_close(segment);
    unlink(path);
}

static void a_trial_capture_is_not_the_capture(void **state)
{
    (void)state;
    oos_dryrun_log log;
    oos_dryrun_log_init(&log, reader);
    line(&log, "INFO [x.py:1] Model loading took 2.45 GiB memory and 30.5 seconds");
    line(&log, "INFO [x.py:1] Profiling CUDA graph memory: PIECEWISE=51 (largest=512)");
    line(&log, "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%");
    assert_int_equal(log.phase, OOS_PHASE_CUDAGRAPH_PROFILE);
    line(&log, "INFO [x.py:1] Available KV cache memory: 18.0 GiB");
    line(&log, "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%");
    assert_int_equal(log.phase, OOS_PHASE_CUDAGRAPH_CAPTURE);
}

static void another_engine_has_lines_of_its_own(void **state)
{
    (void)state;
    oos_dryrun_log log;
    oos_dryrun_log_init(&log, reader);
    log.ready_line = oos_engine_words_find("sglang")->ready;
    assert_true(line(&log, "[2026-11-15 12:01:40] Init parallel begin."));
    assert_int_equal(log.phase, OOS_PHASE_DISTRIBUTED_INIT);
    assert_true(line(&log, "[2026-11-15 12:01:46] Load weight begin. avail mem=43.55 GB"));
    assert_int_equal(log.phase, OOS_PHASE_WEIGHT_LOAD);
    line(&log, "[2026-11-15 12:01:46] Load weight end. elapsed=0.05 s, type=LlamaForCausalLM, avail "
               "mem=41.19 GB, mem usage=2.36 GB.");
    assert_true(log.weights.bytes.value == (uint64_t)(2.36 * 0x1p30 + 0.5));
    line(&log, "[2026-11-15 12:01:47] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1136896");
    assert_int_equal(log.phase, OOS_PHASE_KV_ALLOC);
    line(&log,
         "[2026-11-15 12:01:47] Capture target decode CUDA graph begin. backend=full, avail mem=4.46 GB");
    assert_int_equal(log.phase, OOS_PHASE_CUDAGRAPH_CAPTURE);
    line(&log, "[2026-11-15 12:01:47] max_total_num_tokens=1136896, chunked_prefill_size=4096");
    assert_true(log.kv_tokens.value == 1136896);
    assert_int_equal(log.phase, OOS_PHASE_RUNTIME_PREFILL);
    line(&log, "INFO:     Application startup complete.");
    assert_false(log.ready); /* a request of its own comes first */
    line(&log, "[2026-11-15 12:01:47] The server is fired up and ready to roll!");
    assert_true(log.ready);

    oos_dryrun_log_init(&log, reader);
    line(&log, "ValueError: Loaded weights leave no GPU memory for the KV cache under "
               "--mem-fraction-static=0.6. Raise --mem-fraction-static above 0.661");
    assert_true(log.refused && !log.ran_out);
    assert_int_equal(log.failed, OOS_PHASE_KV_SIZING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_engine_has_lines_of_its_own),
        cmocka_unit_test(a_healthy_start_goes_through_its_phases),
        cmocka_unit_test(an_out_of_memory_line_gives_its_figures_and_its_phase),
        cmocka_unit_test(tensors_of_an_optimizer_are_those_of_the_largest_rank),
        cmocka_unit_test(what_was_measured_to_the_byte_is_not_rounded_again),
        cmocka_unit_test(a_backend_that_was_asked_for_is_named_too),
        cmocka_unit_test(repacking_and_the_sampler_are_phases_of_their_own),
        cmocka_unit_test(an_engine_that_dies_while_it_serves_is_quoted_with_what_it_died_of),
        cmocka_unit_test(peaks_of_steps_are_the_largest_of_all_processes),
        cmocka_unit_test(the_engines_own_refusal_is_not_an_out_of_memory),
        cmocka_unit_test(the_rows_of_a_phase_add_up_to_its_peak),
        cmocka_unit_test(a_dry_start_has_the_owners_of_a_plan),
        cmocka_unit_test(a_process_that_says_where_it_is_is_believed_before_the_log),
        cmocka_unit_test(a_trial_capture_is_not_the_capture),
    };
    if (oos_line_reader_create(NULL, &reader, NULL) != OOMSIGHT_OK) return 1;
    int const failed = cmocka_run_group_tests(tests, NULL, NULL);
    oos_line_reader_free(reader);
    return failed;
}

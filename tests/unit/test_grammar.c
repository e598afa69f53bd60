/* Sentences that nobody listed, and stacks that nobody saw. */
#include "unit.h"

#include "explain/explain.h"
#include "log/log.h"

static oos_arena *arena;
static const oos_grammar *grammar;
static const oos_frames *frames;

static int load(void **state)
{
    (void)state;
    arena = oos_arena_create(64 << 10);
    return oos_grammar_load(arena, NULL, &grammar, NULL) != OOMSIGHT_OK ||
           oos_frames_load(arena, NULL, NULL, &frames, NULL) != OOMSIGHT_OK;
}

static int unload(void **state)
{
    (void)state;
    oos_arena_free(arena);
    return 0;
}

static oos_says says(const char *text)
{
    return oos_grammar_read(grammar, oos_view_of(text), NULL);
}

static void failing_to_allocate_a_size_is_a_lack_in_any_words(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "device 3: mapping failed while trying to reserve 20971520 bytes (free: 17235968)",
        "UNABLE TO ALLOCATE 31.5 GIB FOR BUFFER arena",
        "not enough space in the memory pool for 12 blocks",
        "ring reservation (31.27 GiB) >= budget (25.50 GiB)",
        "ring reservation (31.27 GiB) >= b",
        "the KV cache would exceed the available memory by 3 GiB",
        "no free slots: insufficient VRAM",
        "the device does not have enough memory to load this model",
        "loaded weights leave no GPU memory for the KV cache",
        "weights need 84.2 GiB but only 79.1 GiB is left",
        "slice ERROR (pid:1 allocator.c:53)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_int_equal(says(texts[i]), OOS_SAYS_LACK);
}

static void advice_and_other_faults_are_no_lack(void **state)
{
    (void)state;
    assert_int_equal(says("If you run out of memory, consider a smaller batch"), OOS_SAYS_ADVICE);
    assert_int_equal(says("an illegal memory access was encountered"), OOS_SAYS_NOTHING);
    assert_int_equal(says("sequence is preempted because there is not enough KV cache space"),
                     OOS_SAYS_NOTHING);
    assert_int_equal(says("head_size 80 is not supported"), OOS_SAYS_NOTHING);
    assert_int_equal(says("runtime error: operation not supported /src/utils/allocator.h:163"),
                     OOS_SAYS_NOTHING);
    assert_int_equal(says("failed to allocate 20 MiB at /src/utils/pool.cpp:7"), OOS_SAYS_LACK);
    assert_int_equal(says("12.5 GiB of memory -> 4 blocks"), OOS_SAYS_MEMORY);
}

static void a_lack_that_is_denied_is_none(void **state)
{
    (void)state;
    assert_int_equal(says("ENDED, but not for lack of memory"), OOS_SAYS_NOTHING);
    assert_int_equal(says("this is not an out-of-memory error"), OOS_SAYS_NOTHING);
    assert_int_equal(says("it did not run out of memory"), OOS_SAYS_NOTHING);
    assert_int_equal(says("not enough memory: the engine ran out of it"), OOS_SAYS_LACK);
}

static void the_sentence_tells_what_was_being_done(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned topic;
    } told[] = {{"out of memory while capturing CUDA graphs", OOS_TOPIC_GRAPH},
                {"communicator: failed to allocate 20 MiB of memory", OOS_TOPIC_COMM},
                {"not enough memory for a prefill of 4096 tokens", OOS_TOPIC_PREFILL},
                {"failed to pin memory: 4 GiB", OOS_TOPIC_HOST}};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        unsigned topics = 0;
        assert_int_equal(oos_grammar_read(grammar, oos_view_of(told[i].text), &topics), OOS_SAYS_LACK);
        assert_true(topics & told[i].topic);
    }
}

static void the_sentence_tells_what_is_lacking(void **state)
{
    (void)state;
    unsigned topics = 0;
    assert_int_equal(oos_grammar_read(grammar, oos_view_of("no room for the KV cache: 2 GiB"), &topics),
                     OOS_SAYS_LACK);
    assert_int_equal(topics, OOS_TOPIC_KV);
    topics = 0;
    assert_int_equal(
        oos_grammar_read(grammar, oos_view_of("Error while creating shared memory segment (size 9637888)"),
                         &topics),
        OOS_SAYS_LACK);
    assert_int_equal(topics, OOS_TOPIC_SHARED);
}

static oos_phase_set stages_of(const char *const *lines, size_t count)
{
    oos_traceback stack = {0};
    for (size_t i = 0; i < count; i++)
        oos_traceback_take(frames, &stack, oos_view_of(lines[i]), (oos_view){0});
    return oos_traceback_stages(&stack);
}

static void a_stack_is_intersected_from_its_innermost_frame(void **state)
{
    (void)state;
    static const char *const encoder[] = {
        "  File \"/x/engine/worker.py\", line 1, in determine_available_memory",
        "  File \"/x/engine/runner.py\", line 2, in profile_run",
        "  File \"/x/engine/models/new_vision_tower.py\", line 3, in forward"};
    assert_int_equal(stages_of(encoder, 3), OOS_PHASE_BIT(OOS_PHASE_MM_PROFILE));
    static const char *const other_engine[] = {
        "  File \"/y/srt/model_executor/cuda_graph_runner.py\", line 143, in __init__"};
    assert_int_equal(stages_of(other_engine, 1) & OOS_PHASE_BIT(OOS_PHASE_RUNTIME_OTHER), 0);
    assert_true(stages_of(other_engine, 1) & OOS_PHASE_BIT(OOS_PHASE_CUDAGRAPH_CAPTURE));
}

static void a_shutdown_is_no_stage(void **state)
{
    (void)state;
    oos_traceback stack = {0};
    oos_traceback_take(frames, &stack,
                       oos_view_of("  File \"/x/parallel_state.py\", line 7, in destroy_model_parallel"),
                       (oos_view){0});
    assert_true(stack.ending);
    assert_int_equal(oos_traceback_stages(&stack), 0);
}

static void a_function_that_was_recorded_has_the_stages_it_ran_in(void **state)
{
    (void)state;
    static const char *const runner[] = {
        "  File \"/x/site-packages/vllm/v1/worker/gpu/states.py\", line 2, in __init__"};
    static const char *const namesake[] = {
        "  File \"/x/other/v1/worker/gpu/states.py\", line 2, in __init__"};
    assert_int_equal(stages_of(runner, 1), OOS_PHASE_BIT(OOS_PHASE_INIT_FREE_MEMORY_CHECK));
    assert_int_equal(stages_of(namesake, 1), 0);
}

/* As the collector takes a line: in the one form that all dresses of it have. */
static void take(oos_traceback *stack, const char *line, const char *after)
{
    char bytes[1024];
    size_t const len = oos_normal_line(oos_view_of(line), oos_view_of(after), bytes, sizeof bytes);
    oos_traceback_take(frames, stack, (oos_view){bytes, len}, oos_view_of(after));
}

/* IPython's frames, with and without a link, a box of rich that is too narrow, and a terminal that breaks paths. */
static void frames_are_read_in_every_dress(void **state)
{
    (void)state;
    static const struct {
        const char *line, *after;
        oos_phase phase;
    } frame[] = {
        {"File ~/x/vllm/worker/worker.py:3, in Worker.determine_num_available_blocks(self)", "",
         OOS_PHASE_PROFILE_RUN},
        {"File [/x/vllm/worker/worker.py:3](http://h/worker.py#line=2), in Worker.profile_run(self)", "",
         OOS_PHASE_PROFILE_RUN},
        {"\xe2\x94\x82 /x/vllm/worker/model_runner.py:16 in load_model   \xe2\x94\x82", "",
         OOS_PHASE_WEIGHT_LOAD},
        {"\xe2\x94\x82 /x/vllm/worker/model_runner.py:16 in   \xe2\x94\x82",
         "\n\xe2\x94\x82 load_model   \xe2\x94\x82", OOS_PHASE_WEIGHT_LOAD},
        {"\xe2\x94\x82 /x/vllm/worker/model_runner.py \xe2\x94\x82",
         "\n\xe2\x94\x82 :16 in load_model   \xe2\x94\x82", OOS_PHASE_WEIGHT_LOAD},
        {"  File \"/x/vllm/worker/model_r", "\nunner.py\", line 9, in load_model\n", OOS_PHASE_WEIGHT_LOAD},
        {"Error executing method 'determine_num_available_blocks'. This might cause", "",
         OOS_PHASE_PROFILE_RUN},
        {"Exception in worker VllmWorkerProcess while processing method load_model.", "",
         OOS_PHASE_WEIGHT_LOAD},
        {"Invocation of wake_up method failed", "", OOS_PHASE_SLEEP_WAKE}};
    for (size_t i = 0; i < sizeof frame / sizeof *frame; i++) {
        oos_traceback stack = {0};
        take(&stack, frame[i].line, frame[i].after);
        oos_phase_set const stages = oos_traceback_stages(&stack);
        if (!(stages & OOS_PHASE_BIT(frame[i].phase)) || stages & OOS_PHASE_BIT(OOS_PHASE_RUNTIME_OTHER))
            fail_msg("%s", frame[i].line);
    }
}

/* Harvested from source: by name alone in any file of an engine, and nowhere else. */
static void a_path_of_windows_is_a_path(void **state)
{
    (void)state;
    oos_traceback stack = {0};
    take(&stack, "  File \"C:\\py\\lib\\site-packages\\torch\\nn\\modules\\module.py\", line 7, in _apply",
         "");
    assert_int_equal(oos_traceback_stages(&stack), OOS_PHASE_BIT(OOS_PHASE_WEIGHT_LOAD));
}

static void a_function_of_the_engines_source_has_its_stage(void **state)
{
    (void)state;
    static const char *const engines[] = {
        "  File \"/x/vllm_plugin/worker/new_runner.py\", line 2, in load_draft_model"};
    static const char *const others[] = {"  File \"/x/game/player.py\", line 2, in load_draft_model"};
    assert_int_equal(stages_of(engines, 1),
                     OOS_PHASE_BIT(OOS_PHASE_WEIGHT_LOAD) | OOS_PHASE_BIT(OOS_PHASE_QUANT_POSTPROCESS));
    assert_int_equal(stages_of(others, 1), 0);
}

static void functions_of_other_engines_have_their_stages(void **state)
{
    (void)state;
    static const char *const program[] = {
        "  File \"/x/transformers/generation/utils.py\", line 2, in generate",
        "  File \"/x/transformers/generation/utils.py\", line 3, in _sample",
        "  File \"/x/transformers/models/llama/modeling_llama.py\", line 9, in forward"};
    assert_int_equal(stages_of(program, 3),
                     OOS_PHASE_BIT(OOS_PHASE_RUNTIME_PREFILL) | OOS_PHASE_BIT(OOS_PHASE_RUNTIME_OTHER));
    static const char *const warmup[] = {
        "  File \"/x/text_generation_server/models/flash_causal_lm.py\", line 2, in warmup",
        "  File \"/x/text_generation_server/models/flash_causal_lm.py\", line 3, in generate_token"};
    assert_int_equal(stages_of(warmup, 2), OOS_PHASE_BIT(OOS_PHASE_PROFILE_RUN));
    static const char *const served[] = {
        "  File \"/x/sglang/srt/managers/router/model_rpc.py\", line 2, in forward_fill_batch"};
    oos_phase_set const step = stages_of(served, 1);
    assert_true(step && !(step & OOS_PHASE_BIT(OOS_PHASE_PROFILE_RUN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_to_allocate_a_size_is_a_lack_in_any_words),
        cmocka_unit_test(advice_and_other_faults_are_no_lack),
        cmocka_unit_test(the_sentence_tells_what_is_lacking),
        cmocka_unit_test(the_sentence_tells_what_was_being_done),
        cmocka_unit_test(frames_are_read_in_every_dress),
        cmocka_unit_test(a_lack_that_is_denied_is_none),
        cmocka_unit_test(a_path_of_windows_is_a_path),
        cmocka_unit_test(a_function_of_the_engines_source_has_its_stage),
        cmocka_unit_test(a_function_that_was_recorded_has_the_stages_it_ran_in),
        cmocka_unit_test(functions_of_other_engines_have_their_stages),
        cmocka_unit_test(a_stack_is_intersected_from_its_innermost_frame),
        cmocka_unit_test(a_shutdown_is_no_stage)};
    return cmocka_run_group_tests(tests, load, unload);
}

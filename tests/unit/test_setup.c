#include "unit.h"

#include "plan/setup.h"

#include <stdlib.h>

/* A setup of a made-up dense model for a version and a card, with flags changed by hand. */
typedef struct fixture {
    oos_arena *arena;
    oos_rule_book *book;
    oos_model model;
    oos_attention attention;
    oos_layer layers[10];
    oos_serve serve;
    oos_engine_env env;
    oos_rules rules;
    oos_device_facts device;
    oos_setup setup;
} fixture;

static int open_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->arena = oos_arena_create(4096);
    assert_int_equal(oos_rule_book_load(f->arena, NULL, "vllm", &f->book, NULL), OOMSIGHT_OK);
    f->attention = (oos_attention){.mixer = OOS_MIXER_FULL, .heads = 32, .kv_heads = 8, .head_dim = 128, .head_dim_v = 128};
    f->model = (oos_model){.architecture = "LlamaForCausalLM",
                           .dtype = OOS_DTYPE_BF16,
                           .max_position = 131072,
                           .layers = f->layers,
                           .layer_count = 10,
                           .attentions = &f->attention,
                           .attention_count = 1};
    f->device = (oos_device_facts){.name = "NVIDIA GeForce RTX 4090",
                                   .capability = 89,
                                   .total_bytes = 24 * OOS_GIB,
                                   .nvml_total_bytes = 24 * OOS_GIB,
                                   .count = 1};
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    fixture *f = *state;
    oos_arena_free(f->arena);
    free(f);
    return 0;
}

static const oos_setup *resolve(fixture *f, const char *version)
{
    oos_version parsed = 0;
    bool beyond;
    assert_true(oos_version_parse(oos_view_of(version), &parsed));
    assert_int_equal(oos_rules_of(f->book, parsed, &f->rules, &beyond, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_setup_resolve(f->arena, &f->model, NULL, &f->serve, &f->env, &f->device, &f->rules, &f->setup, NULL),
                     OOMSIGHT_OK);
    return &f->setup;
}

static void batch_limits_follow_the_card_the_caller_and_the_version(void **state)
{
    fixture *f = *state;
    assert_true(resolve(f, "0.11.0")->max_num_batched_tokens == 2048);
    assert_true(f->setup.max_num_seqs == 256);
    f->serve.usage = OOS_USAGE_LLM_CLASS;
    assert_true(resolve(f, "0.11.0")->max_num_batched_tokens == 8192);
    f->serve.usage = OOS_USAGE_SERVER;
    assert_true(resolve(f, "0.8.0")->max_num_seqs == 1024);

    f->device.name = "NVIDIA A100-SXM4-80GB";
    f->device.nvml_total_bytes = 80 * OOS_GIB;
    assert_true(resolve(f, "0.8.5")->max_num_seqs == 1024);
    assert_true(resolve(f, "0.9.0")->max_num_seqs == 256);
    f->device.name = "NVIDIA H100 80GB HBM3";
    assert_true(resolve(f, "0.9.0")->max_num_batched_tokens == 8192);
    f->device.nvml_total_bytes = 180 * OOS_GIB;
    assert_true(resolve(f, "0.27.0")->max_num_batched_tokens == 8192);
    assert_true(resolve(f, "0.28.0")->max_num_batched_tokens == 16384);
}

static void unset_limits_are_capped_by_one_another(void **state)
{
    fixture *f = *state;
    f->serve.max_model_len = oos_u64_of(4);
    f->serve.max_num_seqs = oos_u64_of(8);
    assert_true(resolve(f, "0.32.0")->max_num_batched_tokens == 32);
    f->serve.max_num_seqs = (oos_u64){0};
    f->serve.max_num_batched_tokens = oos_u64_of(100);
    assert_true(resolve(f, "0.32.0")->max_num_seqs == 100);
    assert_true(resolve(f, "0.10.0")->max_num_seqs == 256);
}

static void capture_lists_have_the_lengths_of_their_releases(void **state)
{
    fixture *f = *state;
    assert_int_equal(resolve(f, "0.8.5")->capture_count, 67);
    assert_int_equal(resolve(f, "0.11.0")->capture_count, 67);
    assert_int_equal(resolve(f, "0.11.1")->capture_count, 51);
    assert_true(f->setup.capture_top == 512);
    f->serve.max_num_seqs = oos_u64_of(16);
    assert_true(resolve(f, "0.9.2")->capture_top == 512);
    assert_true(resolve(f, "0.10.0")->capture_top == 32);
    f->serve.speculative = (oos_speculative){.present = true, .method = "mtp", .tokens = oos_u64_of(2)};
    assert_true(resolve(f, "0.19.1")->capture_top == 96);
    assert_true(resolve(f, "0.12.0")->capture_top == 32);
}

static void eager_and_level_zero_capture_nothing(void **state)
{
    fixture *f = *state;
    f->serve.enforce_eager = (oos_flag){true, true};
    assert_true(resolve(f, "0.19.1")->eager);
    assert_int_equal(f->setup.capture_count, 0);
    f->serve.enforce_eager = (oos_flag){0};
    f->serve.compilation.level = oos_u64_of(0);
    assert_true(resolve(f, "0.19.1")->eager);
}

static void the_default_budget_grew_with_0_20(void **state)
{
    fixture *f = *state;
    assert_true(resolve(f, "0.19.1")->gpu_memory_utilization == 0.9);
    assert_true(resolve(f, "0.20.0")->gpu_memory_utilization == 0.92);
}

static void a_card_without_bfloat16_runs_float16(void **state)
{
    fixture *f = *state;
    f->device.capability = 75;
    assert_int_equal(resolve(f, "0.19.1")->dtype, OOS_DTYPE_F16);
    f->device.capability = 80;
    assert_int_equal(resolve(f, "0.19.1")->dtype, OOS_DTYPE_BF16);
}

static void pipeline_stages_share_layers_as_the_engine_splits_them(void **state)
{
    fixture *f = *state;
    f->serve.pipeline_parallel_size = oos_u64_of(4);
    resolve(f, "0.32.0");
    static const uint64_t want[] = {2, 3, 3, 2}; /* 10 layers: the two extra ones go before the last stage */
    uint64_t first, sum = 0;
    for (uint64_t stage = 0; stage < 4; stage++) {
        assert_true(oos_setup_stage_layers(&f->setup, stage, &first) == want[stage]);
        assert_true(first == sum);
        sum += want[stage];
    }
    f->env.pp_layer_partition = "4,4,1,1";
    assert_true(oos_setup_stage_layers(&f->setup, 2, &first) == 1);
    assert_true(first == 8);
}

static void more_stages_than_layers_is_refused(void **state)
{
    fixture *f = *state;
    resolve(f, "0.32.0");
    f->serve.pipeline_parallel_size = oos_u64_of(11);
    assert_int_equal(oos_setup_resolve(f->arena, &f->model, NULL, &f->serve, &f->env, &f->device, &f->rules, &f->setup, NULL),
                     OOMSIGHT_USAGE);
}

static void the_newer_runner_became_the_default_step_by_step(void **state)
{
    fixture *f = *state;
    assert_false(resolve(f, "0.21.0")->v2_runner);
    assert_false(resolve(f, "0.22.0")->v2_runner);
    assert_true(resolve(f, "0.23.0")->v2_runner);
    f->model.architecture = "Qwen3MoeForCausalLM";
    f->model.moe.experts = 128;
    assert_false(resolve(f, "0.28.0")->v2_runner);
    assert_true(resolve(f, "0.29.0")->v2_runner);
    f->env.v2_model_runner = (oos_flag){true, false};
    assert_false(resolve(f, "0.32.0")->v2_runner);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(batch_limits_follow_the_card_the_caller_and_the_version),
        TEST(unset_limits_are_capped_by_one_another),
        TEST(capture_lists_have_the_lengths_of_their_releases),
        TEST(eager_and_level_zero_capture_nothing),
        TEST(the_default_budget_grew_with_0_20),
        TEST(a_card_without_bfloat16_runs_float16),
        TEST(pipeline_stages_share_layers_as_the_engine_splits_them),
        TEST(more_stages_than_layers_is_refused),
        TEST(the_newer_runner_became_the_default_step_by_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

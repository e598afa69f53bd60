#include "plan_fixture.h"

static oos_kv_shape shape_of(fixture *f, const char *layers_json)
{
    oos_kv_shape shape;
    oomsight_error error = {0};
    fixture_setup(f);
    oomsight_status const status = oos_kv_shape_of(f->arena, &f->setup, layers_json, &shape, &error);
    if (status != OOMSIGHT_OK) print_error("%s\n", error.text);
    assert_int_equal(status, OOMSIGHT_OK);
    return shape;
}

static oos_kv_fill fill_of(fixture *f, const oos_kv_shape *shape, int64_t available)
{
    oos_kv_fill fill;
    oomsight_error error = {0};
    assert_int_equal(oos_kv_fill_in(f->arena, &f->setup, shape, available, &fill, &error), OOMSIGHT_OK);
    return fill;
}

/* ---- the cases the project was started for -------------------------------------------------------------------- */

static void opt_2_7b_on_four_a30_has_226000_tokens(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.11.0", 80);
    f.model.dtype = OOS_DTYPE_F16;
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 32, 80, 0), 32);
    f.serve.tensor_parallel_size = oos_u64_of(4);
    f.serve.max_model_len = oos_u64_of(2048);
    oos_kv_shape const shape = shape_of(&f, NULL);
    assert_int_equal(shape.page_bytes, 40960);
    assert_int_equal(shape.block_bytes, 1310720);
    oos_kv_fill const fill = fill_of(&f, &shape, 14125ll * 1310720);
    assert_int_equal(fill.blocks, 14125);
    assert_int_equal(fill.tokens, 226000);
    assert_false(fill.refused);
    fixture_free(&f);
}

/* Qwen3.6-27B: 48 gated delta nets, 16 full layers, a drafter layer. */
static void qwen36(fixture *f, const char *kv, uint64_t drafts)
{
    oos_attention const gdn = {.mixer = OOS_MIXER_GDN,
                               .key_heads = 16,
                               .value_heads = 48,
                               .key_dim = 128,
                               .value_dim_state = 128,
                               .conv_kernel = 4,
                               .conv_dim = 10240,
                               .state_dtype = OOS_DTYPE_F32};
    fixture_layers(f, gdn, 48);
    fixture_layers(f, heads_of(OOS_MIXER_FULL, 24, 4, 256, 0), 16);
    f->model.hybrid = true;
    f->model.mtp_layer_count = 1;
    f->mtp[0].attention = 1;
    f->serve.kv_cache_dtype = kv;
    f->serve.max_model_len = oos_u64_of(16384);
    if (drafts) {
        f->serve.speculative.present = true;
        f->serve.speculative.method = "mtp";
        f->serve.speculative.tokens = oos_u64_of(drafts);
    }
}

/* FlashInfer's prefill of gated delta nets, from 0.33 on; on 8.x Triton's runs. */
static void delta_nets_keep_checkpoint_pages_in_blocks_of_64_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *version, *backend;
        unsigned capability;
        uint64_t tokens, pages;
    } cases[] = {{"0.32.0", NULL, 90, 784, 2},
                 {"0.33.0", NULL, 90, 832, 3},
                 {"0.33.0", NULL, 80, 784, 2},
                 {"0.33.0", "triton", 90, 784, 2},
                 {"0.33.0", "flashinfer", 120, 832, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_init(&f, cases[i].version, cases[i].capability);
        qwen36(&f, NULL, 0);
        oos_given_flag const given = {.name = "--gdn-prefill-backend", .value = cases[i].backend};
        f.serve.flags = &given;
        f.serve.flag_count = cases[i].backend ? 1 : 0;
        oos_kv_shape const shape = shape_of(&f, NULL);
        assert_int_equal(shape.block_tokens, cases[i].tokens);
        for (size_t g = 0; g < shape.group_count; g++)
            if (shape.groups[g].kind == OOS_KV_KIND_STATE)
                assert_int_equal(shape.groups[g].request_blocks, cases[i].pages);
        fixture_free(&f);
    }
}

/* The newer runner from 0.33 on: a draft model is a limit, a draft that shares the positions only where its table is fixed. */
static void the_length_is_no_longer_than_that_of_a_draft_model(void **state)
{
    (void)state;
    static const struct {
        const char *version, *method;
        bool fixed;
        uint64_t said, length;
    } cases[] = {{"0.32.0", "draft_model", false, 0, 16384}, {"0.33.0", "draft_model", false, 0, 2048},
                 {"0.33.0", "draft_model", false, 512, 512}, {"0.33.0", "eagle", false, 0, 16384},
                 {"0.33.0", "eagle", true, 0, 2048},         {"0.33.0", "suffix", true, 0, 16384}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        oomsight_error error = {0};
        fixture_init(&f, cases[i].version, 90);
        fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 128, 0), 4);
        oos_model draft = f.model;
        draft.max_position = 2048;
        draft.rope_fixed = cases[i].fixed;
        f.serve.max_model_len = oos_u64_of(16384);
        f.serve.speculative = (oos_speculative){
            .present = true, .method = cases[i].method, .model = "draft", .tokens = oos_u64_of(2)};
        if (cases[i].said) f.serve.speculative.max_model_len = oos_u64_of(cases[i].said);
        assert_int_equal(oos_setup_resolve(f.arena, &f.model, &draft, &f.serve, &f.env, &f.device, &f.rules,
                                           &f.setup, &error),
                         OOMSIGHT_OK);
        assert_int_equal(f.setup.max_model_len, cases[i].length);
        assert_int_equal(f.setup.length_of_draft, cases[i].length < 16384);
        fixture_free(&f);
    }
}

static void a_hybrid_with_drafts_has_blocks_of_1600_tokens_in_17_tensors(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.19.1", 120);
    qwen36(&f, "fp8", 2);
    oos_kv_shape const shape = shape_of(&f, NULL);
    assert_int_equal(shape.block_tokens, 1600);
    assert_int_equal(shape.page_bytes, 3276800);
    assert_int_equal(shape.tensor_count, 17);
    assert_int_equal(shape.padding_layers, 3);
    fixture_free(&f);
}

static void the_same_hybrid_without_drafts_has_16_tensors(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.19.1", 86);
    qwen36(&f, "fp8_e5m2", 0);
    oos_kv_shape const shape = shape_of(&f, NULL);
    assert_int_equal(shape.block_tokens, 1568);
    assert_int_equal(shape.page_bytes, 3211264);
    assert_int_equal(shape.tensor_count, 16);
    assert_int_equal(shape.padding_layers, 0);
    fixture_free(&f);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* gpt-oss-20b: 12 sliding and 12 full layers; a drafter may bring one more full layer. */
static void gpt_oss(fixture *f, size_t full)
{
    fixture_layers(f, heads_of(OOS_MIXER_SLIDING, 64, 8, 64, 128), 12);
    fixture_layers(f, heads_of(OOS_MIXER_FULL, 64, 8, 64, 0), full);
    f->serve.max_model_len = oos_u64_of(131072);
    f->serve.max_num_batched_tokens = oos_u64_of(8192);
}

static void one_layer_more_becomes_a_group_or_padding_by_version(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        size_t groups;
        uint64_t depth, blocks;
    } cases[] = {{"0.10.2", 3, 12, 109226}, {"0.11.0", 3, 12, 109226}, {"0.12.0", 2, 13, 100824}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_init(&f, cases[i].version, 90);
        gpt_oss(&f, 13);
        oos_kv_shape const shape = shape_of(&f, NULL);
        assert_int_equal(shape.group_count, cases[i].groups);
        assert_int_equal(shape.tensor_count, cases[i].depth);
        assert_int_equal(fill_of(&f, &shape, 40ll << 30).blocks, cases[i].blocks);
        fixture_free(&f);
    }
}

static void the_printed_tokens_of_one_cache_differ_by_version(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        uint64_t tokens;
    } cases[] = {{"0.11.0", 873808}, {"0.20.0", 873808}, {"0.22.0", 1643116}, {"0.32.0", 1551920}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_init(&f, cases[i].version, 90);
        gpt_oss(&f, 12);
        oos_kv_shape const shape = shape_of(&f, NULL);
        oos_kv_fill const fill = fill_of(&f, &shape, 40ll << 30);
        assert_int_equal(fill.blocks, 109226);
        assert_int_equal(fill.tokens, cases[i].tokens);
        fixture_free(&f);
    }
}

static void before_hybrid_groups_sliding_layers_count_as_full(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.9.0", 90);
    gpt_oss(&f, 12);
    oos_kv_shape const shape = shape_of(&f, NULL);
    assert_int_equal(shape.group_count, 1);
    assert_int_equal(shape.groups[0].layers, 24);
    oos_kv_fill const fill = fill_of(&f, &shape, 40ll << 30);
    assert_int_equal(fill.tokens, fill.blocks * 16);
    fixture_free(&f);
}

static void without_the_hybrid_manager_there_is_one_group(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.32.0", 90);
    gpt_oss(&f, 12);
    f.serve.disable_hybrid_kv_cache_manager = (oos_flag){true, true};
    oos_kv_shape const shape = shape_of(&f, NULL);
    assert_int_equal(shape.group_count, 1);
    assert_int_equal(shape.groups[0].layers, 24);
    fixture_free(&f);
}

/* Gemma 4: sliding layers of 8 heads of 256, full layers of 2 heads of 512. */
static void a_smaller_page_takes_more_tokens(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.32.0", 90);
    fixture_layers(&f, heads_of(OOS_MIXER_SLIDING, 16, 8, 256, 1024), 25);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 16, 2, 512, 0), 5);
    oos_kv_shape const shape = shape_of(&f, NULL);
    assert_null(shape.error);
    assert_int_equal(shape.page_bytes, 131072);
    assert_int_equal(shape.group_count, 6);
    assert_int_equal(shape.groups[0].block_tokens, 16);
    assert_int_equal(shape.groups[5].block_tokens, 32);
    fixture_free(&f);
}

static void pages_that_do_not_divide_are_refused_until_they_are_padded(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        bool refused;
    } cases[] = {{"0.11.0", true}, {"0.15.0", true}, {"0.24.0", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_init(&f, cases[i].version, 90);
        fixture_layers(&f, heads_of(OOS_MIXER_SLIDING, 16, 8, 96, 1024), 8);
        fixture_layers(&f, heads_of(OOS_MIXER_FULL, 16, 8, 128, 0), 8);
        oos_kv_shape const shape = shape_of(&f, NULL);
        assert_int_equal(shape.error != NULL, cases[i].refused);
        assert_int_equal(fill_of(&f, &shape, 40ll << 30).refused, cases[i].refused);
        fixture_free(&f);
    }
}

/* DeepSeek V3.2: an indexer's keys beside every latent. */
static void an_indexer_joins_the_group_of_its_latents(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.32.0", 90);
    oos_attention const sparse = {.mixer = OOS_MIXER_MLA,
                                  .heads = 128,
                                  .kv_heads = 1,
                                  .head_dim = 576,
                                  .kv_lora_rank = 512,
                                  .rope_dim = 64,
                                  .nope_dim = 128,
                                  .value_dim = 128,
                                  .indexer_dim = 128,
                                  .indexer_topk = 2048};
    fixture_layers(&f, sparse, 61);
    f.model.sparse = true;
    oos_kv_shape const shape = shape_of(&f, NULL);
    assert_int_equal(shape.group_count, 1);
    assert_int_equal(shape.groups[0].layers, 122);
    assert_int_equal(shape.block_tokens, 64);
    assert_int_equal(shape.block_bytes, 5012736);
    fixture_free(&f);
}

/* DeepSeek V4 Flash; blocks and concurrency by the engine's own functions, for 20 GB. */
static void compressed_states_are_packed_in_one_block(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        uint64_t block_bytes, blocks;
        double concurrency;
    } cases[] = {{"0.21.0", 1051776, 19015, 6.372319034852547},
                 {"0.26.0", 1039680, 19236, 6.446380697050938},
                 {"0.27.0", 1002240, 19955, 5.93192627824019}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        fixture f;
        fixture_init(&f, cases[c].version, 90);
        f.model.architecture = "DeepseekV4ForCausalLM";
        oos_attention a = {.mixer = OOS_MIXER_MLA,
                           .heads = 64,
                           .kv_heads = 1,
                           .head_dim = 512,
                           .rope_dim = 64,
                           .nope_dim = 448,
                           .window = 128,
                           .sinks = true};
        fixture_layers(&f, a, 2);
        a.compress_ratio = 128;
        fixture_layers(&f, a, 0);
        a.compress_ratio = 4;
        a.indexer_heads = 64;
        a.indexer_dim = 128;
        a.indexer_topk = 512;
        fixture_layers(&f, a, 0);
        for (size_t i = 0; i < 41; i++) f.layers[f.model.layer_count++].attention = i % 2 ? 1 : 2;
        f.serve.max_model_len = oos_u64_of(8192);
        f.serve.max_num_batched_tokens = oos_u64_of(8192);
        f.serve.kv_cache_memory_bytes = oos_u64_of(20000000000U);
        oos_kv_shape const shape = shape_of(&f, NULL);
        assert_int_equal(shape.group_count, 5);
        assert_int_equal(shape.block_bytes, cases[c].block_bytes);
        oos_kv_fill const fill = fill_of(&f, &shape, 20000000000LL);
        assert_int_equal(fill.blocks, cases[c].blocks);
        assert_true(fill.max_concurrency == cases[c].concurrency);
        fixture_free(&f);
    }
}

static void the_stage_with_most_layers_decides_the_blocks(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.32.0", 90);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 128, 0), 32);
    f.serve.pipeline_parallel_size = oos_u64_of(3);
    oos_kv_shape const shape = shape_of(&f, NULL);
    assert_int_equal(shape.tensor_count, 11);
    assert_int_equal(shape.block_bytes, 11 * 65536);
    fixture_free(&f);
}

static void groups_are_dealt_over_pipeline_stages(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.32.0", 90);
    oos_attention const sliding = heads_of(OOS_MIXER_SLIDING, 32, 8, 128, 1024);
    oos_attention const full = heads_of(OOS_MIXER_FULL, 32, 8, 128, 0);
    fixture_layers(&f, sliding, 0);
    fixture_layers(&f, full, 0);
    for (size_t i = 0; i < 24; i++) f.layers[f.model.layer_count++].attention = i % 3 == 2 ? 1 : 0;
    f.serve.pipeline_parallel_size = oos_u64_of(2);
    oos_kv_shape const shape = shape_of(&f, NULL);
    assert_int_equal(shape.group_count, 3);
    for (size_t g = 0; g < 3; g++) assert_int_equal(shape.groups[g].layers, 4);
    assert_int_equal(shape.stage_count, 2);
    for (size_t s = 0; s < 2; s++) assert_int_equal(shape.stages[s].check_bytes, shape.block_bytes);
    fixture_free(&f);
}

static void a_group_may_have_no_layer_on_a_stage(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.32.0", 90);
    fixture_layers(&f, heads_of(OOS_MIXER_SLIDING, 32, 8, 128, 1024), 0);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 128, 0), 0);
    for (size_t i = 0; i < 12; i++) f.layers[f.model.layer_count++].attention = i % 6 == 5 ? 1 : 0;
    f.serve.pipeline_parallel_size = oos_u64_of(8);
    oos_kv_shape const shape = shape_of(&f, NULL);
    size_t empty = 0;
    for (size_t g = 0; g < shape.group_count; g++) empty += shape.groups[g].layers == 0;
    assert_int_equal(shape.stage_count, 8);
    assert_true(empty > 0 && empty < shape.group_count);
    assert_true(shape.block_bytes >= shape.page_bytes);
    fixture_free(&f);
}

static void key_value_heads_are_never_divided_below_one(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.32.0", 90);
    fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 128, 0), 4);
    f.serve.tensor_parallel_size = oos_u64_of(16);
    assert_int_equal(shape_of(&f, NULL).page_bytes, 16 * 2 * 128 * 2);
    fixture_free(&f);
}

static void every_cache_type_has_its_page(void **state)
{
    (void)state;
    static const struct {
        const char *kv;
        uint64_t page; /* 16 tokens, 8 heads of 128 */
    } cases[] = {{"auto", 65536}, {"fp8", 32768}, {"int8_per_token_head", 33792}, {"nvfp4", 18432}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_init(&f, "0.32.0", 100);
        fixture_layers(&f, heads_of(OOS_MIXER_FULL, 32, 8, 128, 0), 4);
        f.serve.kv_cache_dtype = cases[i].kv;
        assert_int_equal(shape_of(&f, NULL).page_bytes, cases[i].page);
        fixture_free(&f);
    }
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void llama(fixture *f, const char *version)
{
    fixture_init(f, version, 90);
    fixture_layers(f, heads_of(OOS_MIXER_FULL, 32, 8, 128, 0), 32);
    f->serve.max_model_len = oos_u64_of(131072);
}

static void a_length_that_does_not_fit_is_refused_in_the_words_of_the_version(void **state)
{
    (void)state;
    static const struct {
        const char *version, *sentence;
    } cases[] = {
        {"0.8.0", "To serve at least one request with the models's max seq len (131072), (16.00 GB KV cache "
                  "is needed, "
                  "which is larger than the available KV cache memory (4.00 GB). Try increasing "
                  "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."},
        {"0.11.0",
         "To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is "
         "needed, "
         "which is larger than the available KV cache memory (4.00 GiB). Based on the available memory, the "
         "estimated maximum model length is 32768. Try increasing `gpu_memory_utilization` or decreasing "
         "`max_model_len` when initializing the engine."},
        {"0.19.1",
         "To serve at least one request with the models's max seq len (131072), (16.0 GiB KV cache is "
         "needed, "
         "which is larger than the available KV cache memory (4.0 GiB). Based on the available memory, the "
         "estimated maximum model length is 32768. Try increasing `gpu_memory_utilization` or decreasing "
         "`max_model_len` when initializing the engine. See "
         "https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."},
        {"0.32.0",
         "To serve at least one request with the model's max seq len (131072), (16.0 GiB KV cache is needed, "
         "which is larger than the available KV cache memory (4.0 GiB). Based on the available memory, the "
         "estimated maximum model length is 32752. Try increasing `gpu_memory_utilization` (which also "
         "controls CPU memory on the CPU backend) or decreasing `max_model_len` when initializing the "
         "engine. See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        llama(&f, cases[i].version);
        oos_kv_shape const shape = shape_of(&f, NULL);
        oos_kv_fill const fill = fill_of(&f, &shape, 4ll << 30);
        assert_true(fill.refused);
        assert_string_equal(fill.refusal, cases[i].sentence);
        fixture_free(&f);
    }
}

static void no_memory_at_all_has_its_own_sentence(void **state)
{
    (void)state;
    fixture f;
    llama(&f, "0.12.0");
    oos_kv_shape const shape = shape_of(&f, NULL);
    oos_kv_fill const fill = fill_of(&f, &shape, -5);
    assert_true(fill.refused);
    assert_int_equal(fill.blocks, 0);
    assert_string_equal(fill.refusal, "No available memory for the cache blocks. Try increasing "
                                      "`gpu_memory_utilization` when initializing the engine.");
    fixture_free(&f);
}

static void auto_fits_the_length_to_the_memory(void **state)
{
    (void)state;
    fixture f;
    llama(&f, "0.32.0");
    f.serve.max_model_len = (oos_u64){0};
    f.serve.max_model_len_auto = true;
    oos_kv_shape const shape = shape_of(&f, NULL);
    oos_kv_fill const fill = fill_of(&f, &shape, 4ll << 30);
    assert_false(fill.refused);
    assert_int_equal(fill.estimated_max_len.value, 32752);
    assert_int_equal(fill.blocks, 2048);
    assert_int_equal(fill.tokens, 32768);
    fixture_free(&f);
}

static void an_override_replaces_the_blocks_and_since_0_20_1_the_check(void **state)
{
    (void)state;
    static const char *const versions[] = {"0.20.0", "0.20.1"};
    for (size_t i = 0; i < 2; i++) {
        fixture f;
        llama(&f, versions[i]);
        f.serve.num_gpu_blocks_override = oos_u64_of(1000);
        oos_kv_shape const shape = shape_of(&f, NULL);
        oos_kv_fill const fill = fill_of(&f, &shape, 40ll << 30);
        assert_int_equal(fill.blocks, 1000);
        assert_int_equal(fill.refused, i == 1);
        fixture_free(&f);
    }
}

static void fewer_states_than_requests_cap_the_graphs_or_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        bool capped, refused;
    } cases[] = {{"0.17.0", false, false}, {"0.19.1", true, false}, {"0.20.0", false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        fixture_init(&f, cases[i].version, 90);
        qwen36(&f, NULL, 0);
        f.serve.max_num_seqs = oos_u64_of(256);
        oos_kv_shape const shape = shape_of(&f, NULL);
        oos_kv_fill const fill = fill_of(&f, &shape, 5ll << 30);
        assert_true(fill.blocks < 256);
        assert_int_equal(fill.capture_cap.known, cases[i].capped);
        assert_int_equal(fill.refused, cases[i].refused);
        fixture_free(&f);
    }
}

static void layers_can_be_given_as_json(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, "0.10.2", 90);
    f.serve.max_model_len = oos_u64_of(8192);
    oos_kv_shape const shape =
        shape_of(&f, "[{\"type\":\"FullAttentionSpec\",\"layers\":32,\"block_size\":16,"
                     "\"page_size_bytes\":65536}]");
    oos_kv_fill const fill = fill_of(&f, &shape, 40ll << 30);
    assert_int_equal(fill.blocks, 20480);
    assert_true(fill.max_concurrency == 40.0);
    fixture_free(&f);
}

static void layers_that_make_no_sense_are_malformed(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "{}",
        "[]",
        "[1]",
        "[{\"type\":\"Nothing\"}]",
        "[{\"type\":\"FullAttentionSpec\",\"layers\":1,\"block_size\":0,\"page_size_bytes\":1}]",
        "[{\"type\":\"FullAttentionSpec\",\"layers\":1e30,\"block_size\":16,\"page_size_bytes\":1}]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fixture f;
        fixture_init(&f, "0.32.0", 90);
        fixture_setup(&f);
        oos_kv_shape shape;
        oomsight_error error = {0};
        assert_int_equal(oos_kv_shape_of(f.arena, &f.setup, texts[i], &shape, &error), OOMSIGHT_MALFORMED);
        fixture_free(&f);
    }
}

/* ---- properties -------------------------------------------------------------------------------------------------- */

static void a_longer_context_never_needs_less(void **state)
{
    (void)state;
    static const char *const versions[] = {"0.8.5", "0.10.2", "0.13.0", "0.18.0", "0.22.0", "0.32.0"};
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
        uint64_t before = 0;
        for (uint64_t length = 1; length <= 1 << 17; length *= 2) {
            fixture f;
            fixture_init(&f, versions[v], 90);
            gpt_oss(&f, 12);
            f.serve.max_model_len = oos_u64_of(length);
            oos_kv_shape const shape = shape_of(&f, NULL);
            uint64_t const needed = fill_of(&f, &shape, 40ll << 30).needed_bytes;
            assert_true(needed >= before);
            before = needed;
            fixture_free(&f);
        }
    }
}

static void the_length_a_refusal_names_is_then_accepted(void **state)
{
    (void)state;
    static const char *const versions[] = {"0.9.1", "0.13.0", "0.18.0", "0.22.0", "0.32.0"};
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
        fixture f;
        fixture_init(&f, versions[v], 90);
        gpt_oss(&f, 12);
        oos_kv_shape shape = shape_of(&f, NULL);
        oos_kv_fill const refused = fill_of(&f, &shape, 1ll << 30);
        if (refused.refused) { /* 0.14 to 0.18 look at the sliding group alone, and see nothing wrong */
            assert_true(refused.estimated_max_len.known);
            for (uint64_t more = 0; more < 2; more++) {
                f.serve.max_model_len = oos_u64_of(refused.estimated_max_len.value + more);
                shape = shape_of(&f, NULL);
                assert_int_equal(fill_of(&f, &shape, 1ll << 30).refused, more == 1);
            }
        }
        fixture_free(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delta_nets_keep_checkpoint_pages_in_blocks_of_64_tokens),
        cmocka_unit_test(the_length_is_no_longer_than_that_of_a_draft_model),
        cmocka_unit_test(opt_2_7b_on_four_a30_has_226000_tokens),
        cmocka_unit_test(a_hybrid_with_drafts_has_blocks_of_1600_tokens_in_17_tensors),
        cmocka_unit_test(the_same_hybrid_without_drafts_has_16_tensors),
        cmocka_unit_test(one_layer_more_becomes_a_group_or_padding_by_version),
        cmocka_unit_test(the_printed_tokens_of_one_cache_differ_by_version),
        cmocka_unit_test(before_hybrid_groups_sliding_layers_count_as_full),
        cmocka_unit_test(without_the_hybrid_manager_there_is_one_group),
        cmocka_unit_test(a_smaller_page_takes_more_tokens),
        cmocka_unit_test(pages_that_do_not_divide_are_refused_until_they_are_padded),
        cmocka_unit_test(an_indexer_joins_the_group_of_its_latents),
        cmocka_unit_test(compressed_states_are_packed_in_one_block),
        cmocka_unit_test(the_stage_with_most_layers_decides_the_blocks),
        cmocka_unit_test(groups_are_dealt_over_pipeline_stages),
        cmocka_unit_test(a_group_may_have_no_layer_on_a_stage),
        cmocka_unit_test(key_value_heads_are_never_divided_below_one),
        cmocka_unit_test(every_cache_type_has_its_page),
        cmocka_unit_test(a_length_that_does_not_fit_is_refused_in_the_words_of_the_version),
        cmocka_unit_test(no_memory_at_all_has_its_own_sentence),
        cmocka_unit_test(auto_fits_the_length_to_the_memory),
        cmocka_unit_test(an_override_replaces_the_blocks_and_since_0_20_1_the_check),
        cmocka_unit_test(fewer_states_than_requests_cap_the_graphs_or_are_refused),
        cmocka_unit_test(layers_can_be_given_as_json),
        cmocka_unit_test(layers_that_make_no_sense_are_malformed),
        cmocka_unit_test(a_longer_context_never_needs_less),
        cmocka_unit_test(the_length_a_refusal_names_is_then_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

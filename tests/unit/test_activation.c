/* The activation peak and what lies outside torch: moments that were read from memory snapshots of real starts come out
 * to the byte, and figures move the way the engine's do. */
#include "unit.h"

#include <inttypes.h>

#include "engines/vllm/vllm.h"

/* One start on a device of compute capability 9.0, eager, all defaults given by hand. */
typedef struct start {
    oos_arena *arena;
    oos_model model;
    oos_layer layers[4];
    oos_attention attentions[2];
    oos_matrix matrices[2];
    oos_serve serve;
    oos_engine_env env;
    vllm_rules rules;
    oos_setup setup;
} start;

static void begin(start *s, oos_version version)
{
    *s = (start){.arena = oos_arena_create(1 << 16)};
    assert_non_null(s->arena);
    oos_rule_book *book;
    bool beyond;
    assert_int_equal(oos_vllm_book_load(s->arena, NULL, &book, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_vllm_rules_of(book, version, &s->rules, &beyond, NULL), OOMSIGHT_OK);
    s->model = (oos_model){.code = {.drops_gate_up = true},
                           .architecture = "LlamaForCausalLM",
                           .hidden = 4096,
                           .intermediate = 14336,
                           .vocab = 128256,
                           .layers = s->layers,
                           .layer_count = 4,
                           .attentions = s->attentions,
                           .attention_count = 1};
    s->attentions[0] = (oos_attention){
        .mixer = OOS_MIXER_FULL, .heads = 32, .kv_heads = 8, .head_dim = 128, .head_dim_v = 128};
    s->setup = (oos_setup){.model = &s->model,
                           .serve = &s->serve,
                           .env = &s->env,
                           .rules = &s->rules,
                           .device = {.capability = 90, .total_bytes = 80 * OOS_GIB, .count = 1},
                           .tp = 1,
                           .pp = 1,
                           .dp = 1,
                           .ep = 1,
                           .dcp = 1,
                           .dtype = OOS_DTYPE_BF16,
                           .max_model_len = 4096,
                           .max_num_seqs = 1024,
                           .max_num_batched_tokens = 16384,
                           .v2_runner = true,
                           .eager = true};
}

/* What the code of such models does, as a config of that type alone says it. */
static void of_type(start *s, const char *type)
{
    char *config = oos_arena_format(
        s->arena, "{\"model_type\": \"%s\", \"hidden_size\": 1, \"num_hidden_layers\": 1}", type);
    oos_model model;
    assert_non_null(config);
    assert_int_equal(oos_model_read(s->arena, NULL, oos_view_of(config), (oos_view){NULL, 0}, &model, NULL),
                     OOMSIGHT_OK);
    s->model.code = model.code;
}

static oos_activation activation_of(start *s)
{
    oos_backend_choice const backend = {.name = "FLASH_ATTN"};
    oos_activation activation;
    oos_activation_of(&s->setup, &backend, 0, &activation);
    assert_true(activation.peak.low <= activation.peak.bytes &&
                activation.peak.bytes <= activation.peak.high);
    return activation;
}

static void end(start *s)
{
    oos_arena_free(s->arena);
}

/* Snapshot of Llama-3.1-8B: gate_up 896, activation 448, residual, given and normed input 128 each, cuBLAS 32 MiB. */
static void a_dense_layer_is_busiest_in_its_mlp(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 32, 0));
    assert_int_equal(activation_of(&s).peak.bytes, 1760 * OOS_MIB);
    s.setup.max_num_batched_tokens = 2048;
    s.setup.max_num_seqs = 64;
    assert_int_equal(activation_of(&s).peak.bytes, 248 * OOS_MIB);
    end(&s);
}

/* Qwen's MLP holds gate_up while its second product writes: one hidden-wide tensor more. */
static void an_mlp_that_keeps_gate_up_holds_its_output_beside_it(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 32, 0));
    of_type(&s, "qwen2");
    assert_int_equal(activation_of(&s).peak.bytes, 1888 * OOS_MIB);
    end(&s);
}

/* Snapshot of Qwen3-30B-A3B: the experts' 1024 MiB stay, and the next layer's attention comes on top: qkv 160, normed
 * queries and keys 144, output 128, three hidden-wide 64, cuBLAS 32 MiB. */
static void the_expert_workspace_stays_and_meets_the_next_attention(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 32, 0));
    of_type(&s, "qwen3_moe");
    s.model.hidden = 2048;
    s.model.vocab = 151936;
    s.model.moe = (oos_moe){.experts = 128, .per_token = 8, .intermediate = 768};
    s.attentions[0].kv_heads = 4;
    oos_matrix matrices[] = {{.name = "self_attn.qkv_proj", .out = 5120, .in = 2048},
                             {.name = "self_attn.q_norm", .out = 128, .in = 1}};
    s.model.matrices = matrices;
    for (size_t i = 0; i < 4; i++) s.layers[i] = (oos_layer){.moe = true, .matrix_count = 2};
    oos_activation const activation = activation_of(&s);
    assert_int_equal(activation.peak.bytes, 1680 * OOS_MIB);
    assert_int_equal(activation.retained.bytes, 1056 * OOS_MIB);
    end(&s);
}

/* vLLM's own CUTLASS for NVFP4, when it is asked for, has five rows a token where FlashInfer's has two: caches, permuted
 * input, rows in order, rows weighed (0.20.2, Gemma 4 26B on an RTX 5090: 1.5 GiB less cache than with FlashInfer's). */
static void cutlass_for_nvfp4_holds_every_row_four_times(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 20, 2));
    oos_quant quants[2] = {{.kind = OOS_QUANT_NONE}, {.kind = OOS_QUANT_NVFP4}};
    s.model.quants = quants;
    s.model.quant_count = 2;
    s.model.hidden = 2816;
    s.model.moe = (oos_moe){.experts = 128, .per_token = 8, .intermediate = 704};
    for (size_t i = 0; i < 4; i++) s.layers[i].moe = true;
    s.setup.device.capability = 120;
    uint64_t const flash = activation_of(&s).forward.bytes;
    s.serve.moe_backend = "cutlass";
    uint64_t const rows = (uint64_t)16384 * 8 * 2;
    assert_int_equal(activation_of(&s).forward.bytes - flash,
                     (4 * 2816 + 704) * rows - (2 * 2816 + 3 * 704) * rows);
    end(&s);
}

/* A shared expert is an MLP beside the routed ones: its gate and up products and their result are three widths of it, alive with the
 * residual, what the layer was given and its normed input, and the router's logits in fp32. Where gate_up is kept, the output too. */
static void a_shared_expert_holds_three_widths_of_itself(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 32, 0));
    s.model.hidden = 2048;
    s.model.moe = (oos_moe){.experts = 64, .per_token = 1, .intermediate = 64, .shared_intermediate = 5632};
    for (size_t i = 0; i < 4; i++) s.layers[i].moe = true;
    uint64_t const column = 16384 * 2;
    assert_int_equal(activation_of(&s).forward.bytes, (3 * 2048 + 64 * 2 + 3 * 5632) * column);
    of_type(&s, "qwen2_moe");
    assert_int_equal(activation_of(&s).forward.bytes, (3 * 2048 + 64 * 2 + 3 * 5632 + 2048) * column);
    s.setup.tp = 2;
    assert_int_equal(activation_of(&s).forward.bytes, (3 * 2048 + 64 * 2 + 3 * 2816 + 2048) * column);
    end(&s);
}

/* Measured on 0.11.0 without FlashInfer: 4.74 GiB for 1024 requests of a vocabulary of 128,256, on an 80 GB card. */
static void a_sampler_that_sorts_holds_38_bytes_for_every_logit(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 11, 0));
    s.setup.v2_runner = false;
    s.model.hidden = 3072;
    s.model.intermediate = 8192;
    s.setup.max_num_batched_tokens = 8192;
    s.env.flashinfer_sampler = (oos_flag){true, false};
    double const sorting = (double)activation_of(&s).peak.bytes / 0x1p30;
    assert_true(sorting > 4.68 && sorting < 4.80);
    s.env.flashinfer_sampler = (oos_flag){true, true};
    assert_true((double)activation_of(&s).peak.bytes / 0x1p30 < 2.0);
    end(&s);
}

/* 0.9.2 to 0.11.0: the package decides. Where nothing tells it is the larger of the two, and the range has both. */
static void a_sampler_that_a_package_decides_is_planned_as_the_larger(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 10, 2));
    s.setup.v2_runner = false;
    s.setup.max_num_batched_tokens = 8192;
    s.env.flashinfer_sampler = (oos_flag){true, false};
    uint64_t const sorting = activation_of(&s).peak.bytes;
    s.env.flashinfer_sampler = (oos_flag){true, true};
    uint64_t const fused = activation_of(&s).peak.bytes;
    assert_true(fused < sorting);
    s.env.flashinfer_sampler = (oos_flag){false, false};
    assert_true(oos_activation_sampler_open(&s.setup));
    oos_activation const open = activation_of(&s);
    assert_int_equal(open.peak.bytes, sorting);
    assert_true(open.peak.low < fused && open.peak.high > sorting);
    s.env.image = true; /* published images have FlashInfer */
    assert_false(oos_activation_sampler_open(&s.setup));
    assert_int_equal(activation_of(&s).peak.bytes, fused);
    end(&s);
}

/* arg_utils.py, _is_v1_supported_oracle: LoRA, bitsandbytes, offloading and pipelines to 0.8.2, gguf to 0.8.5. */
static void the_older_engine_takes_what_the_newer_one_had_yet_to_learn(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 8, 2));
    assert_false(oos_activation_first_engine(&s.setup));
    s.setup.loras = 1;
    assert_true(oos_activation_first_engine(&s.setup));
    end(&s);
    begin(&s, OOS_VERSION(0, 8, 3));
    s.setup.loras = 1;
    s.serve.quantization = "bitsandbytes";
    assert_false(oos_activation_first_engine(&s.setup));
    s.serve.quantization = "gguf";
    assert_true(oos_activation_first_engine(&s.setup));
    s.env.use_v1 = (oos_flag){true, true};
    assert_false(oos_activation_first_engine(&s.setup));
    end(&s);
    begin(&s, OOS_VERSION(0, 10, 1));
    assert_false(oos_activation_first_engine(&s.setup));
    s.setup.device.capability = 75;
    assert_true(oos_activation_first_engine(&s.setup));
    end(&s);
}

/* Gemma 3's tower: 4,096 patches an image */
static const oos_vision siglip = {.present = true,
                                  .hidden = 1152,
                                  .intermediate = 4304,
                                  .patch = 14,
                                  .image_size = 896,
                                  .channels = 3,
                                  .max_image_tokens = 256};

/* gpu_model_runner.py of 0.11 and 0.12: each of the 63 outputs of 256 tokens becomes one of the whole budget. Measured on
 * 0.11.2: 16,384 tokens of Gemma 3 27B, 10.6 GiB less cache than without. */
static void encoder_outputs_are_widened_to_the_whole_budget(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 11, 2));
    s.setup.v2_runner = false;
    s.setup.multimodal = true;
    s.setup.max_model_len = 32768;
    of_type(&s, "gemma3");
    s.model.hidden = 5376;
    s.model.vision = siglip;
    assert_int_equal(activation_of(&s).encoder_cache.bytes, (uint64_t)63 * 16384 * 5376 * 2);
    end(&s);
    begin(&s, OOS_VERSION(0, 13, 0));
    s.setup.multimodal = true;
    s.model.vision = (oos_vision){.present = true, .hidden = 1152, .max_image_tokens = 256};
    of_type(&s, "gemma3");
    s.model.hidden = 5376;
    assert_int_equal(activation_of(&s).encoder_cache.bytes, (uint64_t)64 * 256 * 5376 * 2);
    end(&s);
}

/* 32 images of Gemma 3 lie beside the sampler that decides (0.19.0); the newer runner lets go of them. */
static void the_dummy_images_stay_to_the_end_of_the_older_profile(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 19, 0));
    s.setup.multimodal = true;
    s.setup.max_num_batched_tokens = 8192;
    of_type(&s, "gemma3");
    s.model.hidden = 2560;
    s.model.vocab = 262208;
    s.model.vision = siglip;
    s.setup.v2_runner = false;
    oos_activation const older = activation_of(&s);
    uint64_t const pixels = (uint64_t)32 * 896 * 896 * 3 * 2; /* 8,192 / 256 of them */
    assert_true(older.encoder.bytes < older.sampler.bytes);
    assert_int_equal(older.peak.bytes,
                     older.sampler.bytes + older.retained.bytes + older.encoder_cache.bytes + pixels);
    end(&s);
}

/* ... and to 0.8 they are in fp32, beside the copy that the encoder takes. */
static void dummy_images_come_in_fp32_to_0_8(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 8, 3));
    s.setup.multimodal = true;
    s.setup.v2_runner = false;
    s.setup.max_num_seqs = 64;
    of_type(&s, "gemma3");
    s.model.vision = siglip;
    oos_activation const a = activation_of(&s);
    uint64_t const pixels = (uint64_t)63 * 896 * 896 * 3 * 4;
    assert_int_equal(a.peak.bytes, a.encoder.bytes + a.encoder_cache.bytes + pixels + a.retained.bytes);
    end(&s);
}

/* qwen2_5_vl.py: queries and keys are rotated in fp32 to 0.12, in the model's type from 0.13; on 0.23 a 4B model had 0.6 GiB more
 * cache than the fp32 copies would leave. 16,384 tokens of four patches; 1,024 wide, 1,536 numbers of pixels, a row of positions. */
static void queries_of_the_encoder_are_rotated_in_fp32_to_0_12(void **state)
{
    (void)state;
    static const struct {
        oos_version version;
        uint64_t widths;
    } cases[] = {{OOS_VERSION(0, 10, 2), 13},
                 {OOS_VERSION(0, 11, 0), 20},
                 {OOS_VERSION(0, 12, 0), 17},
                 {OOS_VERSION(0, 13, 0), 11},
                 {OOS_VERSION(0, 24, 0), 11}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start s;
        begin(&s, cases[i].version);
        s.setup.v2_runner = false;
        s.setup.multimodal = true;
        of_type(&s, "qwen3_5");
        s.model.vision = (oos_vision){.present = true,
                                      .hidden = 1024,
                                      .intermediate = 4096,
                                      .patch = 16,
                                      .merge = 2,
                                      .temporal_patch = 2,
                                      .channels = 3};
        assert_int_equal(activation_of(&s).encoder.bytes,
                         (uint64_t)16384 * 4 * (cases[i].widths * 1024 + 1024 + 1536) * 2);
        end(&s);
    }
}

/* gemma4_mm.py: frames one by one to 0.21, so the one-hot positions of 2,520 patches are the peak; then together. */
static void frames_of_gemma_4_run_one_by_one_to_0_21(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 19, 1));
    s.setup.v2_runner = false;
    s.setup.multimodal = true;
    s.setup.max_num_batched_tokens = 2496;
    of_type(&s, "gemma4");
    s.model.vision = (oos_vision){.present = true,
                                  .hidden = 1152,
                                  .intermediate = 4304,
                                  .patch = 16,
                                  .merge = 3,
                                  .channels = 3,
                                  .max_image_tokens = 280,
                                  .one_hot_rows = 10240};
    uint64_t const pixels = (uint64_t)32 * 2520 * 768 * 2;
    assert_int_equal(activation_of(&s).encoder.bytes, (uint64_t)2520 * 2 * 10240 * 10 + pixels);
    end(&s);
}

/* A video of Qwen3-VL claims 153,600 tokens and has 12,288; three levels of features go beside the last one. */
static void a_video_claims_its_time_stamps(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 11, 0));
    s.setup.v2_runner = false;
    s.setup.multimodal = true;
    s.setup.max_num_batched_tokens = 2048;
    of_type(&s, "qwen3_vl_moe");
    s.model.vision = (oos_vision){
        .present = true, .hidden = 1152, .intermediate = 4304, .patch = 16, .merge = 2, .deepstack = 3};
    assert_int_equal(activation_of(&s).encoder_cache.bytes, (uint64_t)153600 * 4096 * 4 * 2);
    end(&s);
}

/* As the engine's own processors say it for 8,192 tokens (tests/oracle/processors.py, 0.32.0). */
static void images_of_other_processors_have_tiles_an_edge_or_tokens(void **state)
{
    (void)state;
    static const struct {
        oos_code code;
        uint64_t patch, size, pixels, tiles, tokens, all;
    } cases[] = {{{.tiles = 16}, 14, 448, 0, 0, 0, 4352},
                 {{.tiles = 16}, 14, 448, 0, 5, 0, 5 * 1536},
                 {{.tiles = 16}, 14, 448, 0, 1, 0, 32 * 256},
                 {{.by_edge = true}, 14, 1540, 0, 0, 0, 2 * 3025},
                 {{.by_edge = true}, 14, 1540, 1024, 0, 0, 5 * 1369},
                 {{.by_edge = true}, 14, 1540, 700, 0, 0, 13 * 625},
                 {{0}, 16, 512, 0, 0, 128, 67 * 121},
                 {{0}, 16, 512, 0, 0, 256, 32 * 256}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start s;
        begin(&s, OOS_VERSION(0, 32, 0));
        s.setup.multimodal = true;
        s.setup.max_model_len = 32768;
        s.setup.max_num_batched_tokens = 8192;
        s.model.code = cases[i].code;
        s.model.vision = (oos_vision){.present = true,
                                      .hidden = 1024,
                                      .patch = cases[i].patch,
                                      .merge = 2,
                                      .image_size = cases[i].size,
                                      .out_hidden = 1024,
                                      .image_pixels = cases[i].pixels,
                                      .image_tiles = cases[i].tiles,
                                      .image_tokens = cases[i].tokens};
        if (activation_of(&s).encoder_cache.bytes != cases[i].all * 1024 * 2)
            fail_msg("%zu: %" PRIu64 " tokens", i, activation_of(&s).encoder_cache.bytes / 1024 / 2);
        end(&s);
    }
}

/* Qwen2.5-VL with 128,000 tokens: a video of 14 frames (0.23.0 said 114,688 tokens), of 12 beside an image to 0.10.1; images and frames
 * as small as --mm-processor-kwargs says, else as the processor's files do. Frames of Omni are made smaller. */
static void a_video_has_as_many_frames_as_the_length(void **state)
{
    (void)state;
    enum { TOKEN = 28 * 28, MOST = 16384 * TOKEN };
    static const struct {
        oos_version version;
        const char *type;
        uint64_t pixels, length, tokens, image, video;
    } cases[] = {{OOS_VERSION(0, 23, 0), "qwen2_5_vl", 0, 128000, 7 * 16384, 0, 0},
                 {OOS_VERSION(0, 10, 0), "qwen2_5_vl", 0, 128000, 6 * 16384, 0, 0},
                 {OOS_VERSION(0, 23, 0), "qwen2_5_vl", 0, 8192, 16384, 0, 0},
                 {OOS_VERSION(0, 23, 0), "qwen2_5_vl", 1003520, 128000, 7 * 1280, 0, 0},
                 {OOS_VERSION(0, 21, 0), "qwen2_5_omni", 0, 8192, 768, 0, 0},
                 {OOS_VERSION(0, 19, 0), "qwen3_5", 1003520, 4096, 6 * 1280, 0, 0},
                 {OOS_VERSION(0, 19, 0), "qwen3_5", 1003520, 4096, 6 * 1280, 10 * TOKEN, 10 * TOKEN},
                 {OOS_VERSION(0, 23, 0), "qwen2_5_vl", 0, 8192, 27 * 27, MOST, 768 * TOKEN},
                 {OOS_VERSION(0, 23, 0), "qwen2_5_vl", 0, 8192, 7 * 1000, 1000 * TOKEN, MOST},
                 {OOS_VERSION(0, 32, 0), "qwen3_vl", 0, 4096, 6 * 1280, 1280 * TOKEN, 1280 * TOKEN},
                 {OOS_VERSION(0, 32, 0), "qwen3_vl", 0, 4096, 2 * 4000, 1280 * TOKEN, 2 * 4000 * TOKEN},
                 {OOS_VERSION(0, 11, 0), "qwen3_vl", 0, 4096, 12500, 1280 * TOKEN, 2 * 1000 * TOKEN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start s;
        begin(&s, cases[i].version);
        s.setup.v2_runner = false;
        s.setup.multimodal = true;
        s.setup.max_model_len = cases[i].length;
        s.setup.max_num_batched_tokens = 8192;
        if (cases[i].pixels) s.serve.mm_max_pixels = oos_u64_of(cases[i].pixels);
        of_type(&s, cases[i].type);
        s.model.vision = (oos_vision){.present = true,
                                      .hidden = 1280,
                                      .intermediate = 3420,
                                      .patch = 14,
                                      .temporal_patch = 2,
                                      .merge = 2,
                                      .out_hidden = 3584,
                                      .image_pixels = cases[i].image,
                                      .video_pixels = cases[i].video};
        if (activation_of(&s).encoder_cache.bytes != cases[i].tokens * 3584 * 2)
            fail_msg("%zu: %" PRIu64 " tokens", i, activation_of(&s).encoder_cache.bytes / 3584 / 2);
        end(&s);
    }
}

/* GLM-5.2 on 0.26.0: 40 lengths of 819,200 tokens of 132 bytes were seen beside the sampler (6.31 GiB). With an fp8_ds_mla
 * cache FLASHMLA_SPARSE takes 5 lengths of 1,152 bytes and the queries of a batch when its layers are built. */
static void sparse_attention_shares_one_workspace(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 26, 0));
    s.attentions[0] = (oos_attention){.mixer = OOS_MIXER_MLA,
                                      .heads = 64,
                                      .kv_lora_rank = 512,
                                      .rope_dim = 64,
                                      .indexer_dim = 128,
                                      .indexer_topk = 2048};
    s.setup.max_model_len = 819200;
    oos_backend_choice const sparse = {.name = "FLASHINFER_MLA_SPARSE"};
    oos_workspace workspace = oos_workspace_of(&s.setup, &sparse);
    assert_int_equal(workspace.indexer, (uint64_t)40 * 819200 * 132 + OOS_MIB);
    assert_int_equal(workspace.built, 0);
    assert_int_equal(workspace.logits, 512 * OOS_MIB);
    assert_true(activation_of(&s).retained.bytes >= workspace.indexer);

    oos_backend_choice const flash = {.name = "FLASHMLA_SPARSE"};
    s.setup.kv_dtype = OOS_KV_FP8_DS_MLA;
    s.setup.tp = 4;
    workspace = oos_workspace_of(&s.setup, &flash);
    assert_int_equal(workspace.built, (uint64_t)(16384 * 16 + 5 * 819200) * 576 * 2);
    assert_int_equal(oos_workspace_grown(&workspace, workspace.indexer), 0); /* fits into what is there */
    end(&s);
    begin(&s, OOS_VERSION(0, 12, 0));
    s.attentions[0].mixer = OOS_MIXER_MLA;
    s.attentions[0].indexer_dim = 128;
    assert_int_equal(oos_workspace_of(&s.setup, &flash).indexer, 0);
    end(&s);
}

/* The newer runner's profile asks for neither top-k nor top-p, its warm-up for both: 14 bytes a logit. */
static void the_warm_up_of_the_newer_runner_samples_more_than_its_profile(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 25, 0));
    assert_int_equal(activation_of(&s).warmup.bytes, (uint64_t)1024 * 128256 * 14);
    s.setup.v2_runner = false; /* there the profile run has seen it */
    assert_int_equal(activation_of(&s).warmup.bytes, 0);
    end(&s);
}

/* From 0.33 on the profile asks for all of it as well. Qwen3-8B with two layers, 8,192 tokens and 1,024 requests: 2,256,582,144 bytes were
 * seen, 2,253,651,968 are planned. cuBLAS has its workspace before the first reading: it is with the context. */
static void the_profile_of_the_newer_runner_samples_with_every_option_from_0_33(void **state)
{
    (void)state;
    static const struct {
        oos_version version;
        bool flashinfer;
        uint64_t logit, kept, early;
    } cases[] = {{OOS_VERSION(0, 32, 0), true, 2, 32 * OOS_MIB, 0},
                 {OOS_VERSION(0, 33, 0), true, 14, 0, 32 * OOS_MIB},
                 {OOS_VERSION(0, 33, 0), false, 6, (uint64_t)100 * 151936 * 4, 32 * OOS_MIB}};
    uint64_t context = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start s;
        begin(&s, cases[i].version);
        s.model.vocab = 151936;
        s.setup.max_num_batched_tokens = 8192;
        s.env.flashinfer_sampler = (oos_flag){true, cases[i].flashinfer};
        oos_activation const a = activation_of(&s);
        assert_int_equal(a.sampler.bytes,
                         (uint64_t)(8192 + 1024) * 4096 * 2 + 1024 * 151936 * cases[i].logit);
        assert_int_equal(a.retained.bytes, cases[i].kept);
        oos_outside outside;
        oos_backend_choice const backend = {.name = "FLASH_ATTN"};
        oos_outside_of(&s.setup, &backend, 0, &outside);
        if (i == 0) context = outside.context.bytes;
        s.serve.runner = "pooling"; /* a pooler runs instead */
        assert_true(activation_of(&s).sampler.bytes <=
                    (uint64_t)(8192 + 1024) * 4096 * 2 + 1024 * 151936 * 2);
        assert_int_equal(outside.context.bytes - context, cases[i].early);
        end(&s);
    }
}

/* GPUModelRunner.load_model: counts and bits of the vocabulary come with the sampler. Qwen3-8B with two layers, 8,192 tokens and 1,024
 * requests, --runner pooling, vLLM 0.33.0: 678 MB more are left for the cache than with them. */
static void the_newer_runner_keeps_no_rows_of_the_vocabulary_where_nothing_is_sampled(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 33, 0));
    s.setup.max_num_batched_tokens = 8192;
    uint64_t const ids = 13 * 8192, rows = 1024 * (128256 * 4 + 4008 * 4 * 2 + 18 * OOS_KIB);
    assert_int_equal(activation_of(&s).persistent.bytes, ids + rows);
    s.setup.speculative_tokens = 3; /* a mask for each draft */
    assert_int_equal(activation_of(&s).persistent.bytes, ids + rows + 1024 * 4008 * 4 * 3);
    s.setup.speculative_tokens = 0;
    s.serve.runner = "pooling";
    assert_int_equal(activation_of(&s).persistent.bytes, ids);
    s.serve.runner = NULL;
    s.setup.pp = 2; /* the first of two stages */
    assert_int_equal(activation_of(&s).persistent.bytes, ids);
    end(&s);
}

/* GLM-4.7 with four layers, MTP, 8,192 tokens, vLLM 0.33.0: the busiest instant is in the drafter, 2,583,702,532 bytes; 2,583,691,264 are planned. */
static void the_drafter_of_a_model_runs_beside_its_hidden_states(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 33, 0));
    s.setup.max_num_batched_tokens = 8192;
    s.setup.mtp_layers = s.model.mtp_layer_count = 1;
    s.model.mtp_layers = s.model.layers;
    uint64_t const column = (uint64_t)4096 * 8192 * 2;
    oos_activation const with = activation_of(&s);
    s.setup.mtp_layers = 0;
    oos_activation const without = activation_of(&s);
    assert_int_equal(with.forward.bytes - without.forward.bytes, 4 * column);
    assert_int_equal(with.persistent.bytes - without.persistent.bytes, column); /* a copy of them */
    s.setup.mtp_layers = 1, s.setup.pp = 2; /* the first of two stages has no drafter */
    assert_int_equal(activation_of(&s).forward.bytes, without.forward.bytes);
    end(&s);
}

/* Inductor times its kernels on a copy of the embedding. Where nothing tells, the cache is cold. cuBLAS has
 * no workspace at that time. */
static void a_cold_compile_cache_holds_the_embedding_again(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 32, 0));
    s.setup.eager = false, s.setup.compiles = true;
    s.setup.max_num_batched_tokens = 2048;
    s.setup.max_num_seqs = 64;
    assert_true(oos_activation_compile_open(&s.setup));
    uint64_t const embedding = (uint64_t)128256 * 4096 * 2, columns = (uint64_t)2 * 4096 * 2048 * 2;
    assert_int_equal(activation_of(&s).peak.bytes, embedding + columns);
    oos_amount const open = activation_of(&s).peak;
    s.env.cold_compile = (oos_flag){true, false};
    assert_false(oos_activation_compile_open(&s.setup));
    assert_true(activation_of(&s).peak.bytes < embedding);
    assert_in_range(activation_of(&s).peak.bytes, open.low,
                    open.high); /* while it is open both are in the range */
    s.setup.eager = true, s.setup.compiles = false;
    s.env.cold_compile = (oos_flag){false, false};
    assert_false(oos_activation_compile_open(&s.setup));
    end(&s);
}

static void more_tokens_never_need_less(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 19, 1));
    s.setup.v2_runner = false;
    uint64_t before = 0;
    for (uint64_t tokens = 1; tokens <= 1 << 20; tokens *= 4) {
        s.setup.max_num_batched_tokens = tokens;
        uint64_t const peak = activation_of(&s).peak.bytes;
        assert_true(peak >= before);
        before = peak;
    }
    end(&s);
}

static void sizes_past_64_bits_stop_at_the_end(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 32, 0));
    s.model.hidden = s.model.intermediate = s.model.vocab = UINT64_MAX / 2;
    s.setup.max_num_batched_tokens = UINT64_MAX;
    assert_true(activation_of(&s).peak.bytes == UINT64_MAX);
    end(&s);
}

static oos_outside outside_of(start *s, const char *backend, uint64_t kv_tokens)
{
    oos_backend_choice const choice = {.name = backend};
    oos_outside outside;
    oos_outside_of(&s->setup, &choice, kv_tokens, &outside);
    return outside;
}

/* OPT-2.7B on 0.11.0: 8192 batch tokens x 226,048 KV tokens, 1.72 GiB that the profile run does not see. */
static void flex_attention_of_old_torch_builds_a_mask_over_the_whole_cache(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 11, 0));
    s.setup.max_num_batched_tokens = 8192;
    s.setup.max_num_seqs = 256;
    oos_outside const outside = outside_of(&s, "FLEX_ATTENTION", 226000);
    assert_non_null(outside.runtime_cause);
    assert_int_equal(outside.runtime_growth.low, 8192ull * 226048);
    assert_true(outside.runtime_growth.bytes > outside.runtime_growth.low + OOS_GIB / 2);
    assert_null(outside_of(&s, "FLASH_ATTN", 226000).runtime_cause);
    s.rules.torch_minor = 9;
    assert_null(outside_of(&s, "FLEX_ATTENTION", 226000).runtime_cause);
    end(&s);
}

static oos_graphs graphs_of(start *s, const char *backend, uint64_t builders)
{
    oos_backend_choice const choice = {.name = backend, .workspace_bytes = 394 * OOS_MIB};
    oos_graphs graphs;
    oos_graphs_of(&s->setup, &choice, builders, 800 * OOS_MIB, &graphs);
    assert_true(graphs.taken.low <= graphs.taken.bytes && graphs.taken.bytes <= graphs.taken.high);
    return graphs;
}

/* Two sizes, in pieces and whole. */
static void with_graphs(start *s)
{
    s->setup.eager = s->setup.v2_runner = false, s->setup.compiles = true;
    s->setup.graph_mode = OOS_GRAPH_FULL_AND_PIECEWISE;
    s->setup.capture_count = 2;
    s->setup.capture_sizes[0] = 1;
    s->setup.capture_sizes[1] = 2;
    s->setup.capture_top = 2;
}

static void an_eager_start_has_no_graphs_and_no_estimate(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 20, 0));
    assert_int_equal(graphs_of(&s, "FLASH_ATTN", 1).taken.bytes, 0);
    assert_int_equal(graphs_of(&s, "FLASH_ATTN", 1).estimate.bytes, 0);
    with_graphs(&s);
    assert_true(graphs_of(&s, "FLASH_ATTN", 1).taken.bytes > 0);
    assert_true(graphs_of(&s, "FLASH_ATTN", 1).estimate.bytes > 0);
    s.setup.kv_cache_memory_bytes = oos_u64_of(OOS_GIB); /* the engine then never profiles graphs */
    assert_int_equal(graphs_of(&s, "FLASH_ATTN", 1).estimate.bytes, 0);
    end(&s);
}

/* A captured NCCL collective is 200 KiB before torch 2.9, two of them a layer and size; four of them in one node with NVLink go
 * through the custom all-reduce. */
static void captured_collectives_are_dear_before_torch_2_9(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 10, 1));
    with_graphs(&s);
    s.setup.graph_mode = OOS_GRAPH_PIECEWISE;
    s.setup.tp = 4;
    uint64_t const custom = graphs_of(&s, "FLASH_ATTN", 1).taken.bytes;
    s.serve.disable_custom_all_reduce = (oos_flag){true, true};
    assert_int_equal(graphs_of(&s, "FLASH_ATTN", 1).taken.bytes - custom, 2 * 4 * 2 * 160 * OOS_KIB);
    end(&s);
}

/* From torch 2.9 they are so on 8.x without NVLink only: two GPUs reach each other there, unless they are GeForce cards. */
static void captured_collectives_of_parts_without_nvlink(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 19, 0));
    with_graphs(&s);
    s.setup.graph_mode = OOS_GRAPH_PIECEWISE;
    s.setup.tp = 2;
    s.setup.device.capability = 89;
    s.setup.device.name = "NVIDIA L40S";
    uint64_t const custom = graphs_of(&s, "FLASH_ATTN", 1).taken.bytes;
    s.setup.device.name = "NVIDIA GeForce RTX 4090";
    assert_int_equal(graphs_of(&s, "FLASH_ATTN", 1).taken.bytes - custom, 2 * 4 * 2 * (120 - 12) * OOS_KIB);
    s.setup.device.name = "NVIDIA L40S";
    s.setup.tp = 4;
    assert_true(graphs_of(&s, "FLASH_ATTN", 1).taken.bytes > custom + OOS_MIB);
    end(&s);
}

static uint64_t growth_bytes(start *s)
{
    oos_backend_choice const choice = {.name = "FLASH_ATTN"};
    oos_outside outside;
    oos_outside_of(&s->setup, &choice, 0, &outside);
    return outside.profile_growth.bytes;
}

/* 0.18 to 0.20 on Hopper: 0.25 GiB on one GPU, 2.07 on two of a compiled start, 2.13 on four. */
static void hopper_takes_more_outside_torch_from_0_18_to_0_20(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 17, 0));
    assert_int_equal(growth_bytes(&s), 100 * OOS_MIB);
    end(&s);
    begin(&s, OOS_VERSION(0, 19, 0));
    assert_int_equal(growth_bytes(&s), 250 * OOS_MIB);
    s.setup.tp = 2;
    assert_int_equal(growth_bytes(&s), (250 + 450) * OOS_MIB);
    s.setup.eager = false, s.setup.compiles = true;
    assert_int_equal(growth_bytes(&s), (250 + 450 + 1400) * OOS_MIB);
    s.setup.tp = 4;
    assert_int_equal(growth_bytes(&s), (250 + 500 + 1400) * OOS_MIB);
    s.setup.device.capability = 89;
    s.setup.tp = 1;
    assert_int_equal(growth_bytes(&s), 45 * OOS_MIB);
    end(&s);
    begin(&s, OOS_VERSION(0, 21, 0));
    assert_int_equal(growth_bytes(&s), 100 * OOS_MIB);
    end(&s);
}

/* From 0.10.2 to 0.17 a warm-up forward leaves segments that go back inside the measured stretch: printed is T + D - R. */
static void what_capture_prints_is_less_by_the_forward_before_it(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 12, 0));
    with_graphs(&s);
    assert_int_equal(graphs_of(&s, "FLASH_ATTN", 1).not_printed.bytes, 800 * OOS_MIB);
    s.setup.tp = 2; /* and what the all-reduce writes */
    assert_int_equal(graphs_of(&s, "FLASH_ATTN", 1).not_printed.bytes,
                     800 * OOS_MIB + (uint64_t)16384 * 4096 * 2);
    s.setup.tp = 1;
    s.setup.device.capability = 89;
    assert_int_equal(graphs_of(&s, "FLASH_ATTN", 1).not_printed.bytes, 0);
    end(&s);
    begin(&s, OOS_VERSION(0, 18, 0));
    with_graphs(&s);
    assert_int_equal(graphs_of(&s, "FLASH_ATTN", 1).not_printed.bytes, 0);
    end(&s);
}

/* GPT-OSS on Hopper: 19 nodes a layer and size more than other experts. */
static void mxfp4_experts_on_hopper_have_many_nodes(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 12, 0));
    with_graphs(&s);
    oos_quant quants[2] = {{.kind = OOS_QUANT_NONE}, {.kind = OOS_QUANT_NONE}};
    s.model.quants = quants;
    s.model.quant_count = 2;
    for (size_t i = 0; i < 4; i++) s.layers[i].moe = true;
    uint64_t const plain = graphs_of(&s, "FLASH_ATTN", 1).taken.bytes;
    quants[1].kind = OOS_QUANT_MXFP4;
    assert_int_equal(graphs_of(&s, "FLASH_ATTN", 1).taken.bytes - plain, 4 * 4 * 19 * 6 * OOS_KIB);
    end(&s);
}

/* Two layers that are an MLP alone (Nemotron-H): half of their nodes, and each size has two pieces less. */
static void a_layer_without_a_mixer_ends_no_piece(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 12, 0));
    with_graphs(&s);
    uint64_t const both = graphs_of(&s, "FLASH_ATTN", 1).taken.bytes;
    s.attentions[1].mixer = OOS_MIXER_NONE;
    s.layers[1].attention = s.layers[3].attention = 1;
    assert_int_equal(both - graphs_of(&s, "FLASH_ATTN", 1).taken.bytes,
                     (4 * (38 - 28) * 6 + 2 * 2 * 32) * OOS_KIB);
    end(&s);
}

/* Experts lost two kernels a layer with 0.28, latent attention has more than attention. */
static void nodes_of_experts_and_of_latent_attention(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 12, 0));
    with_graphs(&s);
    uint64_t const dense = graphs_of(&s, "FLASH_ATTN", 1).taken.bytes;
    for (size_t i = 0; i < 4; i++) s.layers[i].moe = true;
    uint64_t const before = graphs_of(&s, "FLASH_ATTN", 1).taken.bytes;
    assert_int_equal(before - dense, 4 * (68 - 38) * 6 * OOS_KIB);
    s.rules.fewer_nodes = true;
    uint64_t const experts = graphs_of(&s, "FLASH_ATTN", 1).taken.bytes;
    assert_int_equal(before - experts, 4 * (68 - 60) * 6 * OOS_KIB);
    for (size_t i = 0; i < 2; i++) s.attentions[i].mixer = OOS_MIXER_MLA;
    assert_int_equal(graphs_of(&s, "FLASH_ATTN", 1).taken.bytes - experts, 4 * (73 - 60) * 6 * OOS_KIB);
    end(&s);
}

/* Every group of the cache has a FlashInfer workspace, and a wrapper for each whole graph. */
static void flashinfer_takes_a_workspace_for_every_group(void **state)
{
    (void)state;
    start s;
    begin(&s, OOS_VERSION(0, 20, 0));
    with_graphs(&s);
    uint64_t const one = graphs_of(&s, "FLASHINFER", 1).taken.bytes;
    assert_int_equal(graphs_of(&s, "FLASHINFER", 3).taken.bytes - one, 2 * (394 + 2 * 8) * OOS_MIB);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_profile_of_the_newer_runner_samples_with_every_option_from_0_33),
        cmocka_unit_test(a_dense_layer_is_busiest_in_its_mlp),
        cmocka_unit_test(an_mlp_that_keeps_gate_up_holds_its_output_beside_it),
        cmocka_unit_test(the_expert_workspace_stays_and_meets_the_next_attention),
        cmocka_unit_test(cutlass_for_nvfp4_holds_every_row_four_times),
        cmocka_unit_test(a_shared_expert_holds_three_widths_of_itself),
        cmocka_unit_test(a_sampler_that_sorts_holds_38_bytes_for_every_logit),
        cmocka_unit_test(a_sampler_that_a_package_decides_is_planned_as_the_larger),
        cmocka_unit_test(the_older_engine_takes_what_the_newer_one_had_yet_to_learn),
        cmocka_unit_test(encoder_outputs_are_widened_to_the_whole_budget),
        cmocka_unit_test(the_dummy_images_stay_to_the_end_of_the_older_profile),
        cmocka_unit_test(dummy_images_come_in_fp32_to_0_8),
        cmocka_unit_test(queries_of_the_encoder_are_rotated_in_fp32_to_0_12),
        cmocka_unit_test(frames_of_gemma_4_run_one_by_one_to_0_21),
        cmocka_unit_test(a_video_claims_its_time_stamps),
        cmocka_unit_test(a_video_has_as_many_frames_as_the_length),
        cmocka_unit_test(images_of_other_processors_have_tiles_an_edge_or_tokens),
        cmocka_unit_test(sparse_attention_shares_one_workspace),
        cmocka_unit_test(the_warm_up_of_the_newer_runner_samples_more_than_its_profile),
        cmocka_unit_test(the_newer_runner_keeps_no_rows_of_the_vocabulary_where_nothing_is_sampled),
        cmocka_unit_test(the_drafter_of_a_model_runs_beside_its_hidden_states),
        cmocka_unit_test(a_cold_compile_cache_holds_the_embedding_again),
        cmocka_unit_test(more_tokens_never_need_less),
        cmocka_unit_test(sizes_past_64_bits_stop_at_the_end),
        cmocka_unit_test(flex_attention_of_old_torch_builds_a_mask_over_the_whole_cache),
        cmocka_unit_test(an_eager_start_has_no_graphs_and_no_estimate),
        cmocka_unit_test(captured_collectives_are_dear_before_torch_2_9),
        cmocka_unit_test(captured_collectives_of_parts_without_nvlink),
        cmocka_unit_test(hopper_takes_more_outside_torch_from_0_18_to_0_20),
        cmocka_unit_test(what_capture_prints_is_less_by_the_forward_before_it),
        cmocka_unit_test(mxfp4_experts_on_hopper_have_many_nodes),
        cmocka_unit_test(a_layer_without_a_mixer_ends_no_piece),
        cmocka_unit_test(nodes_of_experts_and_of_latent_attention),
        cmocka_unit_test(flashinfer_takes_a_workspace_for_every_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

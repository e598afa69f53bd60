/* The cache spec of every layer: bytes of a page, tokens in a block, what recurrent state takes. Block sizes follow the
 * backend and, in hybrids, the state that an attention page must be able to hold. Grouping is kv_group.c's.
 *
 * Sources: vllm/v1/kv_cache_interface.py (pages), model_executor/layers/mamba/mamba_utils.py (state shapes),
 * model_executor/models/config.py HybridAttentionMambaModelConfig to 0.19, platforms/interface.py since 0.20. */
#include "engines/vllm/kv/kv.h"
#include "base/check.h"

static uint64_t default_block(void)
{
    return 16; /* CacheConfig.DEFAULT_BLOCK_SIZE */
}

static bool same_spec(const oos_kv_spec *a, const oos_kv_spec *b)
{
    return a->kind == b->kind && a->block_tokens == b->block_tokens && a->page_bytes == b->page_bytes &&
           a->window == b->window && a->state_blocks == b->state_blocks &&
           a->state_by_length == b->state_by_length;
}

oomsight_status oos_kv_layers_add(oos_kv_layers *layers, const oos_kv_spec *spec, uint64_t stage,
                                  uint64_t count, oomsight_error *reterr)
{
    oos_assert(stage < layers->stages);
    size_t i = 0;
    while (i < layers->count && !same_spec(&layers->specs[i], spec)) i++;
    if (i == layers->count) {
        if (i == OOS_KV_SPECS_MAX)
            return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "more than %d kinds of KV layers",
                            OOS_KV_SPECS_MAX);
        layers->specs[layers->count++] = *spec;
        layers->specs[i].layers = 0;
    }
    layers->specs[i].layers += count;
    layers->stage_layers[stage * OOS_KV_SPECS_MAX + i] += (uint32_t)count;
    return OOMSIGHT_OK;
}

/* ---- pages ------------------------------------------------------------------------------------------------------ */

/* One K or V vector of `head` elements. nvfp4: packed halves and a scale byte for every 16 elements. */
static uint64_t side_bytes(const oos_setup *setup, oos_kv_dtype dtype, uint64_t head)
{
    switch (dtype) {
    case OOS_KV_MODEL_DTYPE: return oos_mul(head, oos_dtype_bytes(setup->dtype));
    case OOS_KV_F32: return oos_mul(head, 4);
    case OOS_KV_F16:
    case OOS_KV_BF16: return oos_mul(head, 2);
    case OOS_KV_FP8:
    case OOS_KV_OTHER:
    case OOS_KV_FP8_DS_MLA: return head;
    case OOS_KV_INT8_PER_TOKEN_HEAD:
    case OOS_KV_FP8_PER_TOKEN_HEAD: return oos_add(head, 4);
    case OOS_KV_INT4_PER_TOKEN_HEAD: return oos_add(head / 2, 4);
    case OOS_KV_NVFP4:
    case OOS_KV_NVFP4_DS_MLA: return head / 2 + head / 16;
    case OOS_KV_TURBOQUANT: return head / 2 + 4; /* 4-bit preset; see turboquant_slot() */
    }
    return head;
}

/* turboquant/config.py: keys as fp8 or as 3-4 bit indices and a norm; values as 3-4 bit with scale and zero. */
static uint64_t turboquant_slot(const char *word, uint64_t head)
{
    unsigned key_bits = 4, value_bits = 4;
    if (strstr(word, "k8v4")) key_bits = 8;
    if (strstr(word, "k3v4")) key_bits = 3;
    if (strstr(word, "3bit")) key_bits = value_bits = 3;
    uint64_t const key = key_bits == 8 ? head : oos_cdiv(oos_mul(head, key_bits), 8) + 2;
    uint64_t const slot = key + oos_cdiv(oos_mul(head, value_bits), 8) + 4;
    return slot + slot % 2;
}

/* Bytes one token takes in one layer. */
static uint64_t token_bytes(const oos_setup *setup, const oos_attention *a, oos_kv_dtype dtype, uint64_t tp)
{
    if (a->mixer == OOS_MIXER_MLA) {
        if (dtype == OOS_KV_FP8_DS_MLA)
            return 656; /* 512 fp8 + 16 B scales + 64 bf16 rope: mla_attention.py */
        if (dtype == OOS_KV_NVFP4_DS_MLA) return 352;
        bool const scaled = dtype == OOS_KV_INT8_PER_TOKEN_HEAD || dtype == OOS_KV_FP8_PER_TOKEN_HEAD ||
                            dtype == OOS_KV_INT4_PER_TOKEN_HEAD;
        return side_bytes(setup, dtype, a->head_dim) + (scaled ? 4 : 0);
    }
    uint64_t const heads = oos_max(1, a->kv_heads / tp);
    if (dtype == OOS_KV_TURBOQUANT) return oos_mul(heads, turboquant_slot(setup->kv_dtype_word, a->head_dim));
    uint64_t const value = a->head_dim_v ? a->head_dim_v : a->head_dim;
    return oos_mul(heads, oos_add(side_bytes(setup, dtype, a->head_dim), side_bytes(setup, dtype, value)));
}

/* Bytes of one recurrent state. Drafts lengthen the window of a convolution, where the release lets them. */
static uint64_t state_bytes(const oos_setup *setup, const oos_attention *a)
{
    const vllm_rules *rules = setup->rules;
    oos_layer_state const state = oos_layer_state_of(a, setup->tp);
    uint64_t const conv_bytes = oos_dtype_bytes(setup->mamba_conv_dtype);
    uint64_t item = oos_dtype_bytes(setup->mamba_ssm_dtype);
    bool longer = a->mixer == OOS_MIXER_GDN;
    if (a->mixer == OOS_MIXER_KDA) longer = rules->kda_conv_speculation;
    if (a->mixer == OOS_MIXER_MAMBA2) longer = rules->mamba2_conv_speculation;
    if (a->mixer == OOS_MIXER_CONV) longer = rules->short_conv_speculation;
    /* the state stays in float32 whatever the model's type */
    if (a->mixer == OOS_MIXER_KDA && !(setup->ssm_dtype_given && rules->kda_state_dtype_flag)) item = 4;
    if (a->mixer == OOS_MIXER_LINEAR) item = conv_bytes;
    uint64_t const rows = state.rows + (longer ? setup->speculative_tokens : 0);
    return oos_add(oos_mul(oos_mul(rows, state.channels), conv_bytes), oos_mul(state.elements, item));
}

static bool is_state(oos_mixer mixer)
{
    return mixer >= OOS_MIXER_MAMBA1 && mixer <= OOS_MIXER_CONV;
}

/* ---- block size ------------------------------------------------------------------------------------------------- */

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t const rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t lcm(uint64_t a, uint64_t b)
{
    return a && b ? oos_mul(a / gcd(a, b), b) : 0;
}

/* What the attentions of the model bring to the choice of the block size. */
typedef struct blocks {
    uint64_t tokens;         /* cache_config.block_size */
    uint64_t kernel;         /* smallest block all kernels take */
    uint64_t page_padded;    /* state pages are padded to this, 0: not */
    uint64_t state_tokens;   /* mamba_block_size */
    oos_backend_choice main; /* of the attention that decides */
} blocks;

/* The smallest block that serves every kernel; to 0.30 the first attention alone decided. */
static void backend_blocks(const oos_setup *setup, blocks *b)
{
    const oos_model *model = setup->model;
    uint64_t preferred = 0;
    bool first = true;
    b->kernel = 1;
    for (size_t i = 0; i < model->attention_count; i++) {
        const oos_attention *a = &model->attentions[i];
        if (a->mixer == OOS_MIXER_NONE || is_state(a->mixer)) continue;
        oos_backend_choice choice;
        oos_backend_pick(setup, a, &choice);
        bool const decides = first || setup->rules->block_size_by_all;
        if (first || a->mixer == OOS_MIXER_FULL || a->mixer == OOS_MIXER_MLA) b->main = choice;
        if (decides) preferred = oos_max(preferred, choice.preferred_block);
        if (decides) b->kernel = oos_max(b->kernel, choice.kernel_block);
        first = false;
    }
    b->tokens = oos_u64_or(setup->block_size_given, preferred ? preferred : default_block());
    if (b->tokens == 0) b->tokens = default_block();
}

static const oos_attention *attention_of(const oos_model *model, bool state)
{
    for (size_t i = 0; i < model->attention_count; i++) {
        const oos_attention *a = &model->attentions[i];
        if (state ? is_state(a->mixer) : a->mixer == OOS_MIXER_FULL || a->mixer == OOS_MIXER_MLA) return a;
    }
    return NULL;
}

/* Granularity of a hybrid's attention block, by version. */
static uint64_t hybrid_step(const oos_setup *setup, const oos_attention *a, const blocks *b)
{
    bool const mla = a->mixer == OOS_MIXER_MLA;
    switch (setup->rules->hybrid_block_step) {
    case 0: return 16;
    case 1:
    case 2: {
        bool const cutlass = b->main.forced && b->main.name && strcmp(b->main.name, "CUTLASS_MLA") == 0;
        if (mla) return cutlass ? 128 : 64;
        bool const flashinfer = !b->main.forced || (b->main.name && strcmp(b->main.name, "FLASHINFER") == 0);
        bool const wide = setup->rules->hybrid_block_step == 1 && setup->device.capability / 10 == 10 &&
                          a->head_dim == 256 && flashinfer;
        return wide ? 32 : 16;
    }
    case 3: return oos_max(b->kernel, b->tokens);
    default: return oos_max(oos_max(b->kernel, b->tokens), mla ? 128 : 0);
    }
}

/* An attention page must hold a state: the block grows to the next step, and the state's page is padded to it. */
static void align_hybrid(const oos_setup *setup, blocks *b)
{
    const oos_attention *a = attention_of(setup->model, false);
    const oos_attention *with_state = attention_of(setup->model, true);
    b->state_tokens = setup->max_model_len;
    if (!with_state || !a) return;
    uint64_t state = 0;
    for (size_t i = 0; i < setup->model->attention_count; i++)
        state = oos_max(state, state_bytes(setup, &setup->model->attentions[i]));
    uint64_t const per_token = token_bytes(setup, a, b->main.kv_dtype, setup->tp);
    if (state == 0 || per_token == 0) return;

    uint64_t step = hybrid_step(setup, a, b);
    if (oos_setup_delta_checkpoints(setup)) step = lcm(step, 64); /* FLASHINFER_GDN_CHECKPOINT_ALIGNMENT */
    bool const old_caching = setup->rules->state_pages == 1 && setup->prefix_caching;
    bool const by_chunk = setup->mamba_mode == OOS_MAMBA_ALL || old_caching;
    uint64_t block = oos_mul(step, oos_cdiv(state, oos_mul(step, per_token)));
    if (by_chunk) {
        /* states are kept at multiples of the kernel's chunk; 256 is the common mamba_chunk_size */
        uint64_t const chunk = lcm(setup->mamba_block, step);
        block = oos_mul(chunk, oos_cdiv(oos_cdiv(state, per_token), oos_max(1, chunk)));
        b->state_tokens = block;
    }
    b->tokens = oos_max(b->tokens, block);
    if (setup->mamba_mode == OOS_MAMBA_ALIGN) b->state_tokens = b->tokens;
    b->page_padded = oos_mul(b->tokens, per_token);
}

/* ---- specs ------------------------------------------------------------------------------------------------------ */

/* State that a prefill leaves at a block boundary in passing needs a page of its own. */
static uint64_t checkpoint_blocks(const oos_setup *setup, oos_mixer mixer)
{
    if (mixer == OOS_MIXER_MAMBA2) return setup->rules->mamba2_checkpoint_blocks;
    if (mixer == OOS_MIXER_GDN) return oos_setup_delta_checkpoints(setup);
    return mixer == OOS_MIXER_KDA && oos_setup_says(setup, "kda_checkpoint")
               ? setup->rules->kda_checkpoint_blocks
               : 0;
}

static oos_kv_spec state_spec(const oos_setup *setup, const oos_attention *a, const blocks *b)
{
    oos_kv_spec spec = {.kind = OOS_KV_KIND_STATE, .block_tokens = b->state_tokens};
    spec.page_bytes = oos_max(state_bytes(setup, a), b->page_padded);
    oos_kv_state_pages(setup, setup->mamba_mode, setup->speculative_tokens,
                       checkpoint_blocks(setup, a->mixer), &spec);
    return spec;
}

static oos_kv_kind attention_kind(const oos_setup *setup, const oos_attention *a)
{
    switch (a->mixer) {
    case OOS_MIXER_SLIDING: return setup->rules->sliding_specs ? OOS_KV_KIND_SLIDING : OOS_KV_KIND_FULL;
    case OOS_MIXER_CHUNKED: return setup->rules->chunked_specs ? OOS_KV_KIND_CHUNKED : OOS_KV_KIND_FULL;
    case OOS_MIXER_MLA: return OOS_KV_KIND_MLA;
    case OOS_MIXER_CROSS: return OOS_KV_KIND_CROSS;
    case OOS_MIXER_NONE:
    case OOS_MIXER_FULL:
    case OOS_MIXER_ENCODER:
    case OOS_MIXER_MAMBA1:
    case OOS_MIXER_MAMBA2:
    case OOS_MIXER_GDN:
    case OOS_MIXER_KDA:
    case OOS_MIXER_LINEAR:
    case OOS_MIXER_CONV: break;
    }
    return OOS_KV_KIND_FULL;
}

static oos_kv_spec attention_spec(const oos_setup *setup, const oos_attention *a, const blocks *b,
                                  uint64_t tp)
{
    oos_backend_choice choice;
    oos_backend_pick(setup, a, &choice);
    oos_kv_spec spec = {.kind = attention_kind(setup, a), .block_tokens = b->tokens};
    spec.page_bytes = oos_mul(b->tokens, token_bytes(setup, a, choice.kv_dtype, tp));
    if (spec.kind == OOS_KV_KIND_SLIDING || spec.kind == OOS_KV_KIND_CHUNKED) spec.window = a->window;
    if (spec.kind == OOS_KV_KIND_CROSS) spec.window = a->window ? a->window : setup->max_num_batched_tokens;
    return spec;
}

/* fp8 keys of the indexer and a 4-byte scale for every 128 of them (mla/indexer.py) */
static oos_kv_spec indexer_spec(const oos_attention *a, const blocks *b)
{
    uint64_t const per_token = oos_add(a->indexer_dim, oos_mul(oos_cdiv(a->indexer_dim, 128), 4));
    return (oos_kv_spec){
        .kind = OOS_KV_KIND_INDEXER, .block_tokens = b->tokens, .page_bytes = oos_mul(b->tokens, per_token)};
}

/* DeepSeek V4: every layer has a sliding cache of 64-token blocks; a compressed layer one state for `ratio` tokens, the
 * running sums of its compressor, and with ratio 4 the same again for the indexer. 584 bytes a state (448 fp8, 64 bf16,
 * 8 scales), pages rounded to 576; plain rows with FlashInfer on SM100 (vllm/models/deepseek_v4, since 0.20). */
static oomsight_status add_compressed(const oos_attention *a, const blocks *b, uint64_t stage, uint64_t count,
                                      oos_kv_layers *layers, oomsight_error *reterr)
{
    bool const packed = b->main.kv_dtype == OOS_KV_FP8_DS_MLA;
    uint64_t const round = packed ? 576 : 512;
    uint64_t const state_bytes = packed ? 584 : oos_mul(a->head_dim, b->main.kv_dtype == OOS_KV_FP8 ? 1 : 2);
    uint64_t const ratio = a->compress_ratio, twice = ratio == 4 ? 2 : 1;
    uint64_t const state_block = ratio == 4 ? 4 : 8, states = ratio ? b->tokens / ratio : 0;
    oos_kv_spec const specs[] = {
        {.kind = OOS_KV_KIND_SLIDING_MLA,
         .block_tokens = 64,
         .window = a->window,
         .page_bytes = oos_mul(64, state_bytes)},
        {.kind = OOS_KV_KIND_MLA, .block_tokens = b->tokens, .page_bytes = oos_mul(states, state_bytes)},
        {.kind = OOS_KV_KIND_SLIDING_MLA,
         .block_tokens = state_block,
         .window = twice * ratio,
         .page_bytes = oos_mul(state_block * 2 * twice * 4, a->head_dim)},
        {.kind = OOS_KV_KIND_INDEXER,
         .block_tokens = b->tokens,
         .page_bytes = oos_mul(states, a->indexer_dim + oos_cdiv(a->indexer_dim, 128) * 4)},
        {.kind = OOS_KV_KIND_SLIDING_MLA,
         .block_tokens = state_block,
         .window = twice * ratio,
         .page_bytes = oos_mul(state_block * 2 * twice * 4, a->indexer_dim)},
    };
    size_t const kinds = ratio == 0 ? 1 : a->indexer_dim == 0 ? 3 : 5;
    for (size_t i = 0; i < kinds; i++) {
        oos_kv_spec spec = specs[i];
        spec.page_bytes = oos_round_up(spec.page_bytes, round);
        if (spec.page_bytes) OOS_TRY(oos_kv_layers_add(layers, &spec, stage, count, reterr));
    }
    return OOMSIGHT_OK;
}

/* `count` layers of one attention. */
static oomsight_status add_attention(const oos_setup *setup, const oos_attention *a, const blocks *b,
                                     uint64_t tp, uint64_t stage, uint64_t count, oos_kv_layers *layers,
                                     oomsight_error *reterr)
{
    if (count == 0 || a->mixer == OOS_MIXER_NONE || a->mixer == OOS_MIXER_ENCODER || a->shares_kv)
        return OOMSIGHT_OK;
    if (is_state(a->mixer)) {
        oos_kv_spec const spec = state_spec(setup, a, b);
        return spec.page_bytes ? oos_kv_layers_add(layers, &spec, stage, count, reterr) : OOMSIGHT_OK;
    }
    if (a->mixer == OOS_MIXER_MLA && a->kv_lora_rank == 0 && a->window && setup->rules->packed_groups)
        return add_compressed(a, b, stage, count, layers, reterr);
    if (a->indexer_dim) {
        oos_kv_spec const keys = indexer_spec(a, b);
        OOS_TRY(oos_kv_layers_add(layers, &keys, stage, count, reterr));
    }
    oos_kv_spec const spec = attention_spec(setup, a, b, tp);
    return spec.page_bytes ? oos_kv_layers_add(layers, &spec, stage, count, reterr) : OOMSIGHT_OK;
}

/* Layers of a stretch, counted by attention first: a page is computed once for each kind, in order of appearance. */
static oomsight_status add_stretch(const oos_setup *setup, const oos_model *model, const oos_layer *list,
                                   size_t count, const blocks *b, uint64_t tp, uint64_t stage,
                                   uint32_t *counts, uint32_t *order, oos_kv_layers *layers,
                                   oomsight_error *reterr)
{
    size_t kinds = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t const kind = list[i].attention;
        oos_assert(kind < model->attention_count);
        if (counts[kind]++ == 0) order[kinds++] = kind;
    }
    for (size_t i = 0; i < kinds; i++) {
        OOS_TRY(add_attention(setup, &model->attentions[order[i]], b, tp, stage, counts[order[i]], layers,
                              reterr));
        counts[order[i]] = 0;
    }
    return OOMSIGHT_OK;
}

/* The drafter lives on the last stage; its layers follow the model's. */
static oomsight_status add_drafter(const oos_setup *setup, const blocks *b, uint32_t *counts, uint32_t *order,
                                   oos_kv_layers *layers, oomsight_error *reterr)
{
    uint64_t const last = setup->pp - 1;
    size_t const own = (size_t)oos_min(setup->mtp_layers, setup->model->mtp_layer_count);
    OOS_TRY(add_stretch(setup, setup->model, setup->model->mtp_layers, own, b, setup->tp, last, counts, order,
                        layers, reterr));
    if (!setup->draft) return OOMSIGHT_OK;
    return add_stretch(setup, setup->draft, setup->draft->layers, setup->draft->layer_count, b,
                       setup->draft_tp, last, counts, order, layers, reterr);
}

static blocks blocks_of(const oos_setup *setup)
{
    blocks b = {.tokens = default_block()};
    backend_blocks(setup, &b);
    align_hybrid(setup, &b);
    return b;
}

uint64_t oos_kv_block_tokens(const oos_setup *setup)
{
    return blocks_of(setup).tokens;
}

oomsight_status oos_kv_layers_of(oos_arena *arena, const oos_setup *setup, oos_kv_layers *ret_layers,
                                 oomsight_error *reterr)
{
    const oos_model *model = setup->model;
    size_t const kinds = model->attention_count + (setup->draft ? setup->draft->attention_count : 0) + 1;
    uint32_t *counts = OOS_NEW_ARRAY(arena, uint32_t, 2 * kinds);
    oos_kv_layers layers = {.stages = setup->pp, .estimated = !model->known};
    layers.stage_layers = OOS_NEW_ARRAY(arena, uint32_t, setup->pp * OOS_KV_SPECS_MAX);
    if (!counts || !layers.stage_layers) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for KV layers");

    blocks const b = blocks_of(setup);
    layers.block_tokens = b.tokens;
    for (uint64_t stage = 0; stage < setup->pp; stage++) {
        uint64_t first;
        uint64_t const count = oos_setup_stage_layers(setup, stage, &first);
        OOS_TRY(add_stretch(setup, model, model->layers + first, (size_t)count, &b, setup->tp, stage, counts,
                            counts + kinds, &layers, reterr));
    }
    OOS_TRY(add_drafter(setup, &b, counts, counts + kinds, &layers, reterr));
    for (size_t i = 0; i < layers.count && !setup->rules->chunked_in_groups; i++)
        if (layers.specs[i].kind == OOS_KV_KIND_CHUNKED) layers.hybrid_off = true;
    if (setup->kv_dtype == OOS_KV_TURBOQUANT || setup->kv_dtype == OOS_KV_OTHER) layers.estimated = true;
    *ret_layers = layers;
    return OOMSIGHT_OK;
}

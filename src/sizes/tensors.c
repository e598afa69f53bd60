/* What each quantisation stores (vLLM 0.32, the create_weights() and process_weights_after_loading() of
 * model_executor/layers/quantization). */
#include "sizes/sizes.h"
#include "base/check.h"

enum { VOCAB_PADDING = 64 }; /* DEFAULT_VOCAB_PADDING_SIZE, vocab_parallel_embedding.py */

static bool is(const char *word, const char *wanted)
{
    return word && strcmp(word, wanted) == 0;
}

oos_cut oos_cut_of(const oos_shard *shard)
{
    uint64_t const tp = oos_max(1, shard->tp), ep = oos_max(1, shard->ep);
    const oos_model *model = shard->model;
    const oos_weight_ways *ways = &shard->ways;
    const char *asked = ways->quantization;
    bool const plain = !model->quant_method;
    bool const by_triton = ways->mxfp4_by_triton && shard->capability < 100;
    return (oos_cut){
        .tp = tp,
        /* without expert parallelism the experts are cut over the data-parallel ranks too */
        .expert_tp = ep > 1 ? 1 : oos_mul(tp, oos_max(1, shard->dp)),
        .ep = ep,
        .dtype_bytes = oos_dtype_bytes(shard->dtype),
        .capability = shard->capability,
        .online_fp8 = plain && asked && strncmp(asked, "fp8", 3) == 0,
        .online_bnb = plain && (is(asked, "bitsandbytes") || is(ways->load_format, "bitsandbytes")),
        .unquantised = model->quant_by_flag && !asked,
        .marlin_blocks = shard->capability < 89 || (shard->capability == 89 && ways->fp8_blocks_by_marlin),
        .triton_mxfp4 = by_triton || (shard->capability == 90 && ways->torch_minor >= 8),
        .wide_mxfp4_bias = by_triton,
        .swizzled_mxfp4 = shard->capability == 90 && ways->torch_minor >= 9,
        .keeps_scales = ways->mxfp4_keeps_scales,
        .pads_values = ways->mxfp4_pads_values,
        .copies_scales = ways->mxfp4_copies_scales,
        .nested_constants = ways->bnb_nests_constants,
        .unpacks_awq = ways->awq_unpacks > (is(asked, "awq") ? 1 : 0) && shard->capability >= 75,
        .split_limit = ways->split_limit_bytes,
        .exact_blocks = ways->expandable_segments};
}

/* Experts in MXFP4 are padded to what the kernel takes: Triton on Hopper rounds the inner size to 64, the others, and
 * Marlin on Hopper before torch 2.8, hidden to 256 and inner to 128 (vLLM 0.32, fused_moe/oracle/mxfp4.py). */
static void pad_experts(const oos_cut *cut, const oos_matrix *matrix, oos_piece *piece)
{
    uint64_t const shards = matrix->shards ? matrix->shards : 1;
    uint64_t const hidden_unit = cut->triton_mxfp4 ? 1 : 256;
    uint64_t const inner_unit = cut->triton_mxfp4 ? 64 : 128;
    if (matrix->split == OOS_SPLIT_IN) {
        piece->rows = oos_round_up(piece->rows, hidden_unit);
        piece->columns = oos_round_up(piece->columns, inner_unit);
    } else {
        piece->rows = oos_mul(shards, oos_round_up(piece->rows / shards, inner_unit));
        piece->columns = oos_round_up(piece->columns, hidden_unit);
    }
}

oos_piece oos_piece_of(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant)
{
    uint64_t const tp = matrix->expert ? cut->expert_tp : cut->tp;
    oos_assert(tp > 0 && cut->ep > 0);
    oos_piece piece = {.rows = matrix->out, .columns = matrix->in, .count = matrix->count};
    switch (matrix->split) {
    case OOS_SPLIT_NONE: break;
    case OOS_SPLIT_OUT: piece.rows = oos_cdiv(matrix->out, tp); break;
    case OOS_SPLIT_IN: piece.columns = oos_cdiv(matrix->in, tp); break;
    case OOS_SPLIT_KV: {
        uint64_t const heads = oos_max(1, oos_min(tp, matrix->kv_heads));
        piece.rows =
            oos_add(oos_cdiv(oos_sub(matrix->out, matrix->kv_out), tp), oos_cdiv(matrix->kv_out, heads));
        break;
    }
    case OOS_SPLIT_VOCAB: piece.rows = oos_cdiv(oos_round_up(matrix->out, VOCAB_PADDING), tp); break;
    }
    if (matrix->unit > 1) piece.rows = oos_round_up(piece.rows, matrix->unit);
    if (matrix->expert && cut->ep > 1) piece.count = oos_cdiv(matrix->count, cut->ep);
    if (matrix->expert && quant->kind == OOS_QUANT_MXFP4) pad_experts(cut, matrix, &piece);
    return piece;
}

/* ---- lists of tensors ---- */

typedef struct list {
    uint64_t *bytes;
    size_t count;
    uint64_t times; /* experts: one tensor holds all of them */
} list;

static void put(list *l, uint64_t bytes)
{
    oos_assert(l->count < OOS_TENSORS_MAX); /* or a tensor would not be counted */
    if (bytes > 0 && l->count < OOS_TENSORS_MAX) l->bytes[l->count++] = oos_mul(l->times, bytes);
}

/* Groups along the input; 0 means one for the whole row. */
static uint64_t groups_of(const oos_quant *quant, uint64_t columns)
{
    return quant->group ? oos_max(1, columns / quant->group) : 1;
}

static uint64_t block_scales(const oos_matrix *matrix, const oos_quant *quant, const oos_piece *p)
{
    uint64_t const out = quant->block_out ? quant->block_out : 128,
                   in = quant->block_in ? quant->block_in : 128;
    uint64_t const shards = matrix->expert && matrix->shards ? matrix->shards : 1; /* blocks of each half */
    uint64_t const rows = oos_mul(shards, oos_cdiv(p->rows / shards, out));
    return oos_mul(oos_mul(rows, oos_cdiv(p->columns, in)), quant->byte_scales ? 1 : 4);
}

static uint64_t own_dtype_bytes(const oos_cut *cut, const oos_matrix *matrix)
{
    return matrix->dtype == OOS_DTYPE_UNKNOWN ? cut->dtype_bytes : oos_dtype_bytes(matrix->dtype);
}

static void put_stored(list *l, const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant,
                       const oos_piece *p)
{
    uint64_t const cells = oos_mul(p->rows, p->columns);
    if (quant->kind == OOS_QUANT_NONE || quant->kind == OOS_QUANT_UNKNOWN) {
        put(l, oos_mul(cells, own_dtype_bytes(cut, matrix)));
        return;
    }
    uint64_t const shards = matrix->shards ? matrix->shards : 1;
    uint64_t const bits = quant->bits ? quant->bits : 4;
    uint64_t const pack = oos_max(1, 32 / bits), groups = groups_of(quant, p->columns);
    uint64_t const scales = oos_mul(oos_mul(groups, p->rows), cut->dtype_bytes);
    /* one fp32 scale per fused matrix for the weights, and one for static activations; experts share the latter */
    uint64_t const tensor = oos_mul(4, shards);
    uint64_t const input = quant->weight_only || quant->dynamic_activation ? 0 : matrix->expert ? 4 : tensor;
    switch (quant->kind) {
    case OOS_QUANT_NONE:
    case OOS_QUANT_UNKNOWN: break;
    case OOS_QUANT_AWQ:
        put(l, oos_mul(4, oos_mul(p->columns, p->rows / pack)));
        put(l, oos_mul(4, oos_mul(groups, p->rows / pack)));
        put(l, scales);
        break;
    case OOS_QUANT_GPTQ:
        put(l, oos_mul(4, oos_mul(p->columns / pack, p->rows)));
        put(l, oos_mul(4, oos_mul(groups, p->rows / pack)));
        put(l, scales);
        if (quant->act_order) put(l, oos_mul(4, p->columns));
        if (matrix->expert && !matrix->bias)
            put(l, oos_mul(p->rows, cut->dtype_bytes)); /* room for one is made */
        break;
    case OOS_QUANT_PACKED_INT:
        put(l, oos_mul(4, oos_mul(p->rows, p->columns / pack)));
        put(l, scales);
        if (!quant->symmetric) put(l, oos_mul(4, oos_mul(p->rows / pack, groups)));
        put(l,
            matrix->expert ? oos_mul(2, cut->dtype_bytes) : 16); /* the shape: two numbers, int64 as a rule */
        break;
    case OOS_QUANT_INT8:
    case OOS_QUANT_FP8_CHANNEL:
        put(l, cells);
        put(l, oos_mul(4, p->rows));
        put(l, input);
        break;
    case OOS_QUANT_FP8_TENSOR:
        put(l, cells);
        put(l, tensor);
        put(l, input);
        break;
    case OOS_QUANT_FP8_BLOCK:
        put(l, cells);
        put(l, block_scales(matrix, quant, p));
        break;
    case OOS_QUANT_NVFP4:
        put(l, cells / 2);
        put(l, oos_mul(p->rows, p->columns / (quant->group ? quant->group : 16)));
        put(l, tensor);
        if (!quant->weight_only || matrix->expert)
            put(l, tensor);
        else if (quant->spare_scale)
            put(l, oos_mul(shards, cut->dtype_bytes));
        break;
    case OOS_QUANT_MXFP4:
        put(l, cells / 2);
        put(l, cells / 32);
        break;
    case OOS_QUANT_MXFP8:
        put(l, cells);
        put(l, cells / 32);
        break;
    case OOS_QUANT_BNB: put(l, bits == 8 ? cells : oos_cdiv(cells, 2)); break;
    }
}

size_t oos_tensors_created(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant,
                           uint64_t ret_bytes[OOS_TENSORS_MAX])
{
    oos_piece const p = oos_piece_of(cut, matrix, quant);
    list l = {.bytes = ret_bytes, .times = p.count};
    put_stored(&l, cut, matrix, quant, &p);
    if (matrix->bias) put(&l, oos_mul(p.rows, own_dtype_bytes(cut, matrix)));
    return l.count;
}

/* ---- after loading ---- */

/* GPUs without FP8 arithmetic run FP8 weights through Marlin. */
static bool is_marlin_fp8(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant)
{
    if (quant->kind == OOS_QUANT_FP8_BLOCK && !matrix->expert) return cut->marlin_blocks;
    return cut->capability < 89 &&
           (quant->kind == OOS_QUANT_FP8_TENSOR || quant->kind == OOS_QUANT_FP8_CHANNEL ||
            quant->kind == OOS_QUANT_FP8_BLOCK);
}

/* Linear layers that are quantised while they are loaded. */
bool oos_is_made_online(const oos_matrix *matrix, const oos_quant *quant)
{
    return matrix->linear && quant->kind == OOS_QUANT_NONE && matrix->split != OOS_SPLIT_VOCAB;
}

/* Triton's Hopper layout pads the scales to 256 rows and wants the biases in fp32 (triton_kernels, hopper_scale.py). */
static void put_swizzled(list *l, const oos_cut *cut, const oos_matrix *matrix, const oos_piece *p)
{
    uint64_t const cells = oos_mul(p->rows, p->columns), groups = oos_round_up(oos_cdiv(p->columns, 32), 2);
    uint64_t const padded = oos_mul(oos_round_up(p->rows, 256), oos_round_up(p->columns, 128));
    put(l, (cut->pads_values ? padded : cells) / 2);
    put(l, oos_mul(oos_round_up(p->rows, 256), groups));
    if (cut->keeps_scales) put(l, cells / 32);
    if (matrix->bias) put(l, oos_mul(4, p->rows));
}

bool oos_tensors_change(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant)
{
    switch (quant->kind) {
    case OOS_QUANT_NONE: return (cut->online_fp8 || cut->online_bnb) && oos_is_made_online(matrix, quant);
    case OOS_QUANT_GPTQ: return true;
    case OOS_QUANT_UNKNOWN:
    case OOS_QUANT_AWQ:
    case OOS_QUANT_PACKED_INT:
    case OOS_QUANT_INT8:
    case OOS_QUANT_MXFP8: return quant->spare_scale;
    case OOS_QUANT_FP8_CHANNEL:
    case OOS_QUANT_FP8_TENSOR:
    case OOS_QUANT_FP8_BLOCK:
    case OOS_QUANT_NVFP4:
    case OOS_QUANT_MXFP4:
    case OOS_QUANT_BNB: return true;
    }
    return true;
}

size_t oos_tensors_loaded(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant,
                          uint64_t ret_bytes[OOS_TENSORS_MAX])
{
    oos_piece const p = oos_piece_of(cut, matrix, quant);
    list l = {.bytes = ret_bytes, .times = p.count};
    uint64_t const cells = oos_mul(p.rows, p.columns);
    bool const online = oos_is_made_online(matrix, quant);
    if (quant->kind == OOS_QUANT_MXFP4 && matrix->expert && matrix->bias &&
        cut->swizzled_mxfp4) { /* GPT-OSS */
        put_swizzled(&l, cut, matrix, &p);
        return l.count;
    }
    if (cut->online_fp8 && online) {
        put(&l, cells);
        put(&l, 4);
    } else if ((cut->online_bnb && online) || (quant->kind == OOS_QUANT_BNB && quant->bits != 8)) {
        /* one constant per 64 weights: a byte where they are quantised again and stay so, else fp32 */
        bool const nested = cut->nested_constants && (online || quant->double_quant);
        put(&l, oos_cdiv(cells, 2));
        put(&l, oos_mul(nested ? 1 : 4, oos_cdiv(cells, 64)));
    } else if (is_marlin_fp8(
                   cut, matrix,
                   quant)) { /* scales per output row, and per block along the input, in model dtype */
        uint64_t const block = quant->kind == OOS_QUANT_FP8_BLOCK ? oos_max(1, quant->block_in) : p.columns;
        put(&l, cells);
        put(&l, oos_mul(oos_mul(p.rows, oos_cdiv(p.columns, oos_max(1, block))), cut->dtype_bytes));
    } else if (quant->kind == OOS_QUANT_NVFP4 && !quant->weight_only && cut->capability >= 100 &&
               !matrix->expert) {
        /* scales in tiles of 128 rows by 4 groups */
        uint64_t const groups = p.columns / (quant->group ? quant->group : 16);
        put(&l, cells / 2);
        put(&l, oos_mul(oos_round_up(p.rows, 128), oos_round_up(groups, 4)));
        put(&l, 4);
        put(&l, 4);
    } else {
        put_stored(&l, cut, matrix, quant, &p);
        if (quant->kind == OOS_QUANT_GPTQ && quant->symmetric && l.count > 1)
            l.bytes[1] = 0; /* no zero points */
        oos_assert(l.count > 0);
        if (quant->spare_scale && !matrix->expert) l.count--;
    }
    bool const wide = cut->wide_mxfp4_bias && matrix->expert && quant->kind == OOS_QUANT_MXFP4;
    if (wide && cut->copies_scales && cut->capability < 90) put(&l, cells / 32);
    if (matrix->bias) put(&l, oos_mul(p.rows, wide ? 4 : own_dtype_bytes(cut, matrix)));
    return l.count;
}

bool oos_is_repacked(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant)
{
    switch (quant->kind) {
    case OOS_QUANT_AWQ:
    case OOS_QUANT_GPTQ:
    case OOS_QUANT_PACKED_INT:
    case OOS_QUANT_NVFP4:
    case OOS_QUANT_MXFP4: return true;
    case OOS_QUANT_FP8_TENSOR:
    case OOS_QUANT_FP8_CHANNEL:
    case OOS_QUANT_FP8_BLOCK: return is_marlin_fp8(cut, matrix, quant) || matrix->expert;
    case OOS_QUANT_NONE: return (cut->online_fp8 || cut->online_bnb) && oos_is_made_online(matrix, quant);
    case OOS_QUANT_INT8:
    case OOS_QUANT_MXFP8:
    case OOS_QUANT_BNB:
    case OOS_QUANT_UNKNOWN: return false;
    }
    return false;
}

uint64_t oos_repack_bytes(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant,
                          uint64_t largest)
{
    if (!oos_is_repacked(cut, matrix, quant)) return 0;
    if (quant->kind != OOS_QUANT_AWQ || !cut->unpacks_awq || matrix->expert) return largest;
    oos_piece const p = oos_piece_of(cut, matrix, quant);
    return oos_add(largest, oos_mul(oos_mul(p.count, oos_mul(p.rows, p.columns)), 2 * 4));
}

/* ---- the allocator ---- */

/* Blocks are multiples of 512 bytes. A tensor of 10 MiB or more gets a segment of whole 2 MiB; a rest of at most 1 MiB
 * is not split off and counts as allocated, and no rest is once the block reaches the split limit. Smaller ones share
 * segments of 20 MiB, whose last rest is treated alike. */
uint64_t oos_block_waste(const oos_cut *cut, uint64_t bytes)
{
    uint64_t const size = oos_round_up(bytes, 512);
    if (bytes == 0) return 0;
    if (cut->exact_blocks || size <= OOS_MIB) return size - bytes;
    if (size < 10 * OOS_MIB) {
        uint64_t const each = 20 * OOS_MIB / size, rest = 20 * OOS_MIB - oos_mul(each, size);
        return size - bytes + (rest <= OOS_MIB ? rest / each : 0);
    }
    uint64_t const rest = oos_round_up(size, 2 * OOS_MIB) - size;
    bool const whole = rest <= OOS_MIB || (cut->split_limit > 0 && size >= cut->split_limit);
    return size - bytes + (whole ? rest : 0);
}

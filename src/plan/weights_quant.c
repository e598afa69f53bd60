/* What each quantisation stores (vLLM 0.32, the create_weights() of model_executor/layers/quantization). */
#include "plan/weights_quant.h"

enum { VOCAB_PADDING = 64 }; /* DEFAULT_VOCAB_PADDING_SIZE, vocab_parallel_embedding.py */

oos_cut oos_cut_of(const oos_setup *setup)
{
    uint64_t const tp = oos_max(1, setup->tp), ep = oos_max(1, setup->ep);
    return (oos_cut){.tp = tp,
                     /* without expert parallelism the experts are cut over the data-parallel ranks too */
                     .expert_tp = ep > 1 ? 1 : oos_mul(tp, oos_max(1, setup->dp)),
                     .ep = ep,
                     .dtype_bytes = oos_dtype_bytes(setup->dtype),
                     .capability = setup->device.capability};
}

/* Experts in MXFP4 are padded to what the kernel takes: Triton on Hopper rounds the inner size to 64, the others hidden
 * to 256 and inner to 128 (vLLM 0.32, fused_moe/oracle/mxfp4.py). */
static void pad_experts(const oos_cut *cut, const oos_matrix *matrix, oos_piece *piece)
{
    bool const down = matrix->split == OOS_SPLIT_IN;
    uint64_t const shards = matrix->shards ? matrix->shards : 1;
    uint64_t const hidden_unit = cut->capability == 90 ? 1 : 256;
    uint64_t const inner_unit = cut->capability == 90 ? 64 : 128;
    if (down) {
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
    if (matrix->bias) piece.bias_rows = piece.rows;
    return piece;
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
    uint64_t const shards =
        matrix->expert && matrix->shards ? matrix->shards : 1; /* experts: blocks of each half */
    uint64_t const rows = oos_mul(shards, oos_cdiv(p->rows / shards, out));
    return oos_mul(oos_mul(rows, oos_cdiv(p->columns, in)), quant->byte_scales ? 1 : 4);
}

/* One matrix, or one expert's. */
static uint64_t stored_bytes(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant,
                             const oos_piece *p, uint64_t dtype_bytes)
{
    uint64_t const cells = oos_mul(p->rows, p->columns);
    uint64_t const shards = matrix->shards ? matrix->shards : 1;
    uint64_t const bits = quant->bits ? quant->bits : 4;
    uint64_t const pack = oos_max(1, 32 / bits), groups = groups_of(quant, p->columns);
    uint64_t const scales = oos_mul(oos_mul(groups, p->rows), cut->dtype_bytes);
    /* one fp32 scale per fused matrix for the weights, and one for static activations; experts share the latter */
    uint64_t const tensor = oos_mul(4, shards);
    uint64_t const input = quant->weight_only || quant->dynamic_activation ? 0 : matrix->expert ? 4 : tensor;
    switch (quant->kind) {
    case OOS_QUANT_NONE:
    case OOS_QUANT_UNKNOWN: return oos_mul(cells, dtype_bytes);
    case OOS_QUANT_AWQ: {
        uint64_t const packed = p->rows / pack;
        return oos_add(oos_mul(4, oos_add(oos_mul(p->columns, packed), oos_mul(groups, packed))), scales);
    }
    case OOS_QUANT_GPTQ: {
        uint64_t const zeros = oos_mul(groups, p->rows / pack);
        uint64_t const order = quant->act_order ? p->columns : 0;
        return oos_add(oos_mul(4, oos_add(oos_add(oos_mul(p->columns / pack, p->rows), zeros), order)),
                       scales);
    }
    case OOS_QUANT_PACKED_INT: {
        uint64_t const zeros = quant->symmetric ? 0 : oos_mul(p->rows / pack, groups);
        uint64_t const shape = 16; /* two int64 beside each matrix */
        return oos_add(oos_add(oos_mul(4, oos_add(oos_mul(p->rows, p->columns / pack), zeros)), scales),
                       shape);
    }
    case OOS_QUANT_INT8:
    case OOS_QUANT_FP8_CHANNEL: return oos_add(oos_add(cells, oos_mul(4, p->rows)), input);
    case OOS_QUANT_FP8_TENSOR: return oos_add(oos_add(cells, tensor), input);
    case OOS_QUANT_FP8_BLOCK: return oos_add(cells, block_scales(matrix, quant, p));
    case OOS_QUANT_NVFP4: {
        uint64_t const group = quant->group ? quant->group : 16;
        uint64_t const act = quant->weight_only && !matrix->expert ? 0 : tensor;
        return oos_add(oos_add(cells / 2, oos_mul(p->rows, p->columns / group)), oos_add(tensor, act));
    }
    case OOS_QUANT_MXFP4: return oos_add(cells / 2, cells / 32);
    case OOS_QUANT_MXFP8: return oos_add(cells, cells / 32);
    case OOS_QUANT_BNB: return bits == 8 ? cells : oos_cdiv(cells, 2);
    }
    return oos_mul(cells, dtype_bytes);
}

uint64_t oos_piece_bytes(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant)
{
    oos_piece const p = oos_piece_of(cut, matrix, quant);
    uint64_t const dtype_bytes =
        matrix->dtype == OOS_DTYPE_UNKNOWN ? cut->dtype_bytes : oos_dtype_bytes(matrix->dtype);
    uint64_t const one = stored_bytes(cut, matrix, quant, &p, dtype_bytes);
    return oos_mul(p.count, oos_add(one, oos_mul(p.bias_rows, dtype_bytes)));
}

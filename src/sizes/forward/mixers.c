/* The busiest instant of a layer's token mixing, in columns. What is alive was read from memory snapshots of whole
 * starts of 0.32.0 on a stand-in device, and from the engine's model code. */
#include "sizes/forward/parts.h"

/* qkv, normed queries and keys, output of attention, output projection. Llama 4 norms in fp32 and scales the queries of
 * layers without positions in fp32, before there is any output. A gate (Qwen3-Next, 3.5) makes four more: itself in the
 * projection and beside it, its sigmoid, the product. */
static uint64_t plain_columns(const oos_forward *step, const oos_attention *attention,
                              const oos_residual *stream)
{
    uint64_t const heads = oos_per_rank(attention->heads, step->tp);
    uint64_t const kv_heads = oos_max(1, attention->kv_heads / oos_max(1, step->tp));
    uint64_t const q = oos_mul(heads, attention->head_dim), k = oos_mul(kv_heads, attention->head_dim);
    uint64_t const qkv = oos_add(oos_add(q, k), oos_mul(kv_heads, attention->head_dim_v));
    uint64_t columns = oos_add(qkv, oos_mul(heads, attention->head_dim_v));
    if (stream->head_norms) columns = oos_add(columns, oos_add(q, k));
    if (stream->gated)
        return oos_add(columns, oos_max(oos_mul(4, q), oos_add(oos_mul(3, q), step->model->hidden)));
    /* compiled code holds the rotated queries instead of the output projection (Qwen3-30B-A3B) */
    uint64_t const last = stream->head_norms && step->compiled ? q : 0;
    columns = oos_add(columns, oos_max(step->model->hidden, last));
    if (!step->compiled && step->model->code.query_norm_fp32)
        columns = oos_max(columns, oos_add(qkv, oos_mul(5, q)));
    return columns;
}

/* Sparse attention gathers no context. */
static uint64_t mla_context(const oos_forward *step, const oos_attention *attention)
{
    if (attention->indexer_topk) return 0;
    uint64_t const heads = oos_per_rank(attention->heads, step->tp);
    uint64_t const width = oos_mul(heads, oos_add(attention->nope_dim, attention->value_dim));
    return oos_mul(oos_mul(step->context, width), oos_forward_item(step));
}

/* Latent and its normed part, queries (by way of their own latent), output. While profiling the engine also claims what
 * the up projection of the longest chunk of context would take (mla_attention.py forward_impl), and gives it back
 * before the output projection. */
static uint64_t mla_bytes(const oos_forward *step, const oos_attention *attention)
{
    uint64_t const heads = oos_per_rank(attention->heads, step->tp);
    uint64_t columns = oos_mul(heads, oos_add(attention->nope_dim, attention->rope_dim));
    columns = oos_add(columns, oos_add(oos_mul(2, attention->kv_lora_rank), attention->rope_dim));
    columns = oos_add(columns, oos_mul(2, attention->q_lora_rank));
    columns = oos_add(columns, oos_mul(heads, attention->value_dim));
    uint64_t const out = oos_mul(step->model->hidden, oos_forward_column(step));
    return oos_add(oos_mul(columns, oos_forward_column(step)), oos_max(out, mla_context(step, attention)));
}

/* Triton times its kernels over a buffer that flushes the L2 cache: get_empty_cache_for_benchmark(), 256 MiB. */
static const uint64_t triton_bench = 256 * OOS_MIB;

/* Projection of gate, convolution and step sizes; output of the scan. Then either the first call's autotuning, or the
 * gated norm, which with several groups is written in PyTorch and makes two fp32 copies (mamba_mixer2.py). */
static uint64_t mamba2_bytes(const oos_forward *step, const oos_attention *attention)
{
    uint64_t const inner = oos_per_rank(oos_mul(attention->state_heads, attention->state_head_dim), step->tp);
    uint64_t const conv = oos_per_rank(attention->conv_dim, step->tp);
    uint64_t const steps = oos_per_rank(attention->state_heads, step->tp);
    uint64_t const columns = oos_add(oos_add(inner, conv), oos_add(steps, inner));
    uint64_t const norm = attention->groups > 1 && !step->compiled ? oos_mul(oos_mul(inner, step->tokens), 8)
                                                                   : oos_mul(inner, oos_forward_column(step));
    return oos_add(oos_mul(columns, oos_forward_column(step)),
                   oos_max(norm, oos_add(triton_bench, 16 * OOS_MIB)));
}

/* Kimi's delta attention: q, k, v with two low-rank projections in one product, both gates, the core's output. */
static uint64_t kda_bytes(const oos_forward *step, const oos_attention *attention)
{
    uint64_t const value =
        oos_per_rank(oos_mul(attention->value_heads, attention->value_dim_state), step->tp);
    uint64_t const conv = oos_per_rank(attention->conv_dim, step->tp);
    uint64_t const columns = oos_add(oos_add(conv, oos_mul(3, value)), step->model->hidden);
    return oos_mul(oos_add(columns, oos_add(attention->key_dim, attention->value_heads)),
                   oos_forward_column(step));
}

/* Gated delta net: q, k, v, z in one product, the core's output, its gated norm, the output projection. Qwen3-Next
 * interleaves its heads, and putting them in order copies all of them (fix_query_key_value_ordering). */
static uint64_t gdn_bytes(const oos_forward *step, const oos_attention *attention)
{
    uint64_t const value =
        oos_per_rank(oos_mul(attention->value_heads, attention->value_dim_state), step->tp);
    uint64_t const conv = oos_per_rank(attention->conv_dim, step->tp);
    uint64_t columns = oos_add(oos_add(conv, oos_mul(3, value)), step->model->hidden);
    if (step->model->code.interleaved_gdn && !step->compiled)
        columns = oos_add(columns, oos_add(oos_mul(2, conv), value)); /* q, k, v in order and joined; z */
    return oos_mul(columns, oos_forward_column(step));
}

static uint64_t state_bytes(const oos_forward *step, const oos_attention *attention)
{
    uint64_t const inner = oos_per_rank(attention->conv_dim, step->tp);
    return oos_mul(oos_add(oos_mul(4, inner), step->model->hidden), oos_forward_column(step));
}

uint64_t oos_forward_mixer(const oos_forward *step, const oos_attention *attention,
                           const oos_residual *stream)
{
    uint64_t bytes = 0;
    switch (attention->mixer) {
    case OOS_MIXER_NONE: return 0;
    case OOS_MIXER_FULL:
    case OOS_MIXER_SLIDING:
    case OOS_MIXER_CHUNKED:
    case OOS_MIXER_ENCODER:
    case OOS_MIXER_CROSS:
        bytes = oos_mul(plain_columns(step, attention, stream), oos_forward_column(step));
        break;
    case OOS_MIXER_MLA: bytes = mla_bytes(step, attention); break;
    case OOS_MIXER_MAMBA2: bytes = mamba2_bytes(step, attention); break;
    case OOS_MIXER_KDA: bytes = kda_bytes(step, attention); break;
    case OOS_MIXER_GDN: bytes = gdn_bytes(step, attention); break;
    case OOS_MIXER_MAMBA1:
    case OOS_MIXER_LINEAR:
    case OOS_MIXER_CONV: bytes = state_bytes(step, attention); break;
    }
    uint64_t const around = oos_mul(oos_add(stream->outer, stream->copies), step->model->hidden);
    return oos_add(bytes, oos_mul(around, oos_forward_column(step)));
}

/* The pieces decoders are made of, as the engine's layers create them (vLLM 0.32, model_executor/layers/linear.py,
 * vocab_parallel_embedding.py, fused_moe). */
#include "model/arch/arch.h"

void oos_put_column(oos_arch *a, oos_module module, const char *name, uint64_t out, uint64_t in, bool bias,
                    uint8_t shards)
{
    oos_put(a, module,
            (oos_matrix){.name = name,
                         .out = out,
                         .in = in,
                         .split = OOS_SPLIT_OUT,
                         .bias = bias,
                         .linear = true,
                         .shards = shards});
}

void oos_put_row(oos_arch *a, oos_module module, const char *name, uint64_t out, uint64_t in, bool bias)
{
    oos_put(a, module,
            (oos_matrix){
                .name = name, .out = out, .in = in, .split = OOS_SPLIT_IN, .bias = bias, .linear = true});
}

void oos_put_plain(oos_arch *a, oos_module module, const char *name, uint64_t out, uint64_t in,
                   oos_dtype dtype)
{
    oos_put(a, module,
            (oos_matrix){.name = name, .out = out, .in = in, .split = OOS_SPLIT_NONE, .dtype = dtype});
}

void oos_put_divided(oos_arch *a, oos_module module, const char *name, uint64_t out, uint64_t in,
                     oos_dtype dtype)
{
    oos_put(a, module,
            (oos_matrix){.name = name, .out = out, .in = in, .split = OOS_SPLIT_OUT, .dtype = dtype});
}

void oos_put_norm(oos_arch *a, const char *name, uint64_t size)
{
    oos_put_plain(a, OOS_MODULE_NORM, name, size, 1, OOS_DTYPE_UNKNOWN);
}

void oos_put_qkv(oos_arch *a, const char *name, const oos_attention *t, uint64_t query_factor, bool bias)
{
    uint64_t const queries = oos_mul(oos_mul(t->heads, t->head_dim), query_factor);
    uint64_t const keys = oos_mul(t->kv_heads, oos_add(t->head_dim, t->head_dim_v));
    oos_put(a, OOS_MODULE_ATTN,
            (oos_matrix){.name = name,
                         .out = oos_add(queries, keys),
                         .in = a->model->hidden,
                         .kv_out = keys,
                         .kv_heads = t->kv_heads,
                         .split = OOS_SPLIT_KV,
                         .bias = bias,
                         .linear = true,
                         .shards = 3});
}

void oos_put_experts(oos_arch *a, const char *name, uint64_t experts, uint64_t hidden, uint64_t inner,
                     bool gated, bool bias)
{
    oos_matrix up = {.name = name,
                     .out = oos_mul(gated ? 2 : 1, inner),
                     .in = hidden,
                     .count = experts,
                     .split = OOS_SPLIT_OUT,
                     .bias = bias,
                     .linear = true,
                     .expert = true,
                     .shards = gated ? 2 : 1};
    oos_matrix down = up;
    down.out = hidden;
    down.in = inner;
    down.split = OOS_SPLIT_IN;
    down.shards = 1;
    if (experts == 0) return;
    oos_put(a, OOS_MODULE_EXPERTS, up);
    oos_put(a, OOS_MODULE_EXPERTS, down);
}

void oos_put_kv_scales(oos_arch *a)
{
    uint64_t floats = 0, zeros = 0;
    bool const latent = a->attention_count > 0 && a->attentions[a->now.attention].mixer == OOS_MIXER_MLA;
    oos_quantizer_kv_parameters(a->quantizer, latent, &floats, &zeros);
    oos_put_plain(a, OOS_MODULE_ATTN, "attn.scales", floats, 1, OOS_DTYPE_F32);
    oos_put_plain(a, OOS_MODULE_ATTN, "attn.zero_points", zeros, 1, OOS_DTYPE_UNKNOWN);
}

/* The head is beside the decoder: "model." -> "", "language_model.model." -> "language_model.". */
static const char *head_prefix(const oos_arch *a)
{
    size_t const len = strlen(a->prefix), tail = strlen("model.");
    if (len < tail || strcmp(a->prefix + len - tail, "model.") != 0) return "";
    const char *prefix = oos_arena_copy(a->arena, (oos_view){a->prefix, len - tail});
    return prefix ? prefix : "";
}

void oos_put_ends(oos_arch *a, uint64_t norm_vectors, uint64_t head_rows)
{
    oos_model *m = a->model;
    oos_range_open(a, a->prefix);
    oos_put(a, OOS_MODULE_EMBED,
            (oos_matrix){.name = "embed_tokens", .out = m->vocab, .in = m->hidden, .split = OOS_SPLIT_VOCAB});
    oos_range_close(a, m->first_stage);
    oos_range_open(a, head_prefix(a));
    oos_put_norm(a, "norm", oos_mul(norm_vectors, m->hidden));
    if (!m->tied)
        oos_put(a, OOS_MODULE_LM_HEAD,
                (oos_matrix){.name = "lm_head",
                             .out = head_rows,
                             .in = m->hidden,
                             .split = OOS_SPLIT_VOCAB,
                             .linear = true});
    oos_range_close(a, m->last_stage);
}

/* The next tokens foreseen by layers of the same kind: two norms and a projection around them; embedding and head are the model's own. */
void oos_put_nextn(oos_arch *a, void (*layer)(oos_arch *a, uint64_t i))
{
    oos_model *m = a->model;
    uint64_t const count = oos_arch_u64(a, "num_nextn_predict_layers", 0);
    oos_arch_mtp_layers(a, count, a->layer_prefix, m->layer_count, layer);
    if (count == 0) return;
    oos_range_open(a, a->prefix);
    oos_put_norm(a, "enorm", m->hidden);
    oos_put_norm(a, "hnorm", m->hidden);
    oos_put_norm(a, "shared_head.norm", m->hidden);
    oos_put_plain(a, OOS_MODULE_OTHER, "eh_proj", m->hidden, oos_mul(2, m->hidden), OOS_DTYPE_UNKNOWN);
    oos_range_close(a, m->mtp_matrices);
}

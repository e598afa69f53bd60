/* The busiest instant of a decoder layer, counted in columns: a column is one value for every token of the batch. What
 * is alive was read from memory snapshots of whole starts on a stand-in device, and from the engine's model code.
 * Layers of equal kind are counted once. */
#include "plan/activation_parts.h"

/* How a model's code treats the residual stream between its matrix products, when nothing is compiled. */
typedef struct stream {
    uint64_t around_mlp;  /* hidden-wide tensors alive beside the MLP's own at its busiest instant */
    uint64_t around_attn; /* the same for attention, its output included */
} stream;

static bool starts_with(const char *text, const char *prefix)
{
    return text && strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Llama and relatives: residual, normed input, output; the fused norm works in place. Gemma's norm is written in
 * PyTorch and makes two more. OPT keeps token and position embeddings, and rectifies before the second product. */
static stream stream_of(const oos_setup *setup)
{
    const char *type = setup->model->model_type;
    if (!setup->eager) return (stream){1, 2};
    if (starts_with(type, "gemma")) return (stream){5, 5};
    if (starts_with(type, "qwen3_next") || starts_with(type, "qwen3_5")) return (stream){5, 5};
    if (starts_with(type, "opt")) return (stream){4, 5};
    return (stream){3, 3};
}

static uint64_t per_rank(uint64_t columns, uint64_t ranks)
{
    return oos_cdiv(columns, oos_max(1, ranks));
}

/* ---- attention ---- */

static bool norms_heads(const oos_setup *setup)
{
    const char *type = setup->model->model_type;
    return starts_with(type, "qwen3") || starts_with(type, "gemma3") || starts_with(type, "gemma4") ||
           starts_with(type, "olmo") || starts_with(type, "glm4_moe");
}

static uint64_t plain_columns(const oos_setup *setup, const oos_attention *attention)
{
    uint64_t const heads = per_rank(attention->heads, setup->tp);
    uint64_t const kv_heads = oos_max(1, attention->kv_heads / oos_max(1, setup->tp));
    uint64_t const q = oos_mul(heads, attention->head_dim);
    uint64_t const kv = oos_mul(kv_heads, oos_add(attention->head_dim, attention->head_dim_v));
    uint64_t columns = oos_add(q, kv);                                 /* qkv */
    columns = oos_add(columns, oos_mul(heads, attention->head_dim_v)); /* output of attention */
    if (norms_heads(setup) && setup->eager)
        columns = oos_add(columns, oos_add(q, oos_mul(kv_heads, attention->head_dim)));
    return columns;
}

/* MLA: query, latent and its normed copy, output of attention. While profiling the engine also claims what an up
 * projection of the longest chunk of context would take (mla_attention.py forward_impl). */
static uint64_t mla_columns(const oos_setup *setup, const oos_attention *attention)
{
    uint64_t const heads = per_rank(attention->heads, setup->tp);
    uint64_t const q = oos_mul(heads, oos_add(attention->nope_dim, attention->rope_dim));
    uint64_t const latent = oos_add(oos_mul(attention->kv_lora_rank, 2), attention->rope_dim);
    uint64_t columns = oos_add(oos_add(q, latent), oos_mul(heads, attention->value_dim));
    if (attention->q_lora_rank) columns = oos_add(columns, oos_mul(attention->q_lora_rank, 2));
    return columns;
}

/* determine_chunked_prefill_workspace_size(): min(max(8 lengths, 4 blocks a sequence), 64 Ki tokens) */
static uint64_t mla_context_bytes(const oos_batch *batch, const oos_attention *attention)
{
    const oos_setup *setup = batch->setup;
    if (attention->indexer_topk || attention->value_dim == 0) return 0;
    uint64_t const cap = (setup->rules->version < OOS_VERSION(0, 11, 0) ? 128 : 64) * OOS_KIB;
    uint64_t const wish = oos_max(oos_mul(8, setup->max_model_len), oos_mul(4 * 16, setup->max_num_seqs));
    uint64_t const tokens = oos_min(wish, cap);
    uint64_t const width =
        oos_mul(per_rank(attention->heads, setup->tp), oos_add(attention->nope_dim, attention->value_dim));
    return oos_mul(oos_mul(tokens, width), batch->item);
}

static uint64_t state_columns(const oos_setup *setup, const oos_attention *attention)
{
    uint64_t const inner = oos_mul(attention->state_heads, attention->state_head_dim);
    uint64_t const value = oos_mul(attention->value_heads, attention->value_dim_state);
    uint64_t const wide = oos_max(inner, value);
    uint64_t const conv = oos_max(attention->conv_dim, wide);
    /* projection (gate and convolution input), convolved copy, output */
    return per_rank(oos_add(oos_mul(2, wide), oos_mul(2, conv)), setup->tp);
}

static uint64_t mixer_bytes(const oos_batch *batch, const oos_attention *attention, stream flow)
{
    const oos_setup *setup = batch->setup;
    uint64_t const around = oos_mul(flow.around_attn, setup->model->hidden);
    uint64_t columns = 0, extra = 0;
    switch (attention->mixer) {
    case OOS_MIXER_NONE: return 0;
    case OOS_MIXER_FULL:
    case OOS_MIXER_SLIDING:
    case OOS_MIXER_CHUNKED:
    case OOS_MIXER_CROSS: columns = plain_columns(setup, attention); break;
    case OOS_MIXER_MLA:
        columns = mla_columns(setup, attention);
        extra = mla_context_bytes(batch, attention);
        break;
    case OOS_MIXER_MAMBA1:
    case OOS_MIXER_MAMBA2:
    case OOS_MIXER_GDN:
    case OOS_MIXER_KDA:
    case OOS_MIXER_LINEAR:
    case OOS_MIXER_CONV: columns = state_columns(setup, attention); break;
    }
    return oos_add(oos_mul(oos_add(columns, around), batch->row_bytes), extra);
}

/* ---- feed-forward ---- */

/* Widths of an MLP on one rank: what the first product writes, and what goes into the second. */
typedef struct mlp {
    uint64_t up, act;
} mlp;

static mlp dense_mlp(const oos_setup *setup, const oos_layer *layer)
{
    const oos_model *model = setup->model;
    mlp widths = {0, 0};
    for (uint32_t i = 0; i < layer->matrix_count; i++) {
        const oos_matrix *matrix = &model->matrices[layer->first_matrix + i];
        if (!matrix->module || strcmp(matrix->module, "mlp") != 0 || matrix->in <= 1) continue;
        if (matrix->split == OOS_SPLIT_OUT) widths.up = oos_max(widths.up, matrix->out);
        if (matrix->split == OOS_SPLIT_IN) widths.act = oos_max(widths.act, matrix->in);
    }
    if (widths.up == 0 || widths.act == 0) {
        widths.act = model->intermediate;
        widths.up = starts_with(model->model_type, "opt") ? widths.act : oos_mul(2, widths.act);
    }
    return (mlp){per_rank(widths.up, setup->tp), per_rank(widths.act, setup->tp)};
}

static uint64_t mlp_bytes(const oos_batch *batch, mlp widths, stream flow)
{
    uint64_t const around = oos_mul(flow.around_mlp, batch->setup->model->hidden);
    return oos_mul(oos_add(oos_add(widths.up, widths.act), around), batch->row_bytes);
}

/* Triton's fused experts: two caches of topk rows per token, max(I, H) and max(2I, H) wide (fused_moe). To 0.14 the
 * batch went through in chunks of VLLM_FUSED_MOE_CHUNK_SIZE rows, 64 Ki by default. */
static uint64_t expert_workspace(const oos_batch *batch)
{
    const oos_setup *setup = batch->setup;
    const oos_moe *moe = &setup->model->moe;
    uint64_t const hidden = setup->model->hidden;
    uint64_t const inner = setup->ep > 1 ? moe->intermediate : per_rank(moe->intermediate, setup->tp);
    uint64_t const columns = oos_add(oos_max(inner, hidden), oos_max(oos_mul(2, inner), hidden));
    return oos_mul(oos_mul(columns, moe->per_token), batch->row_bytes);
}

static uint64_t moe_bytes(const oos_batch *batch, stream flow)
{
    const oos_setup *setup = batch->setup;
    const oos_moe *moe = &setup->model->moe;
    uint64_t const around = oos_mul(flow.around_mlp, setup->model->hidden);
    uint64_t const shared =
        moe->shared ? oos_add(setup->model->hidden, per_rank(moe->shared_intermediate, setup->tp)) : 0;
    return oos_mul(oos_add(oos_add(around, shared), oos_mul(moe->experts, 2)), batch->row_bytes);
}

void oos_activation_layers(const oos_batch *batch, oos_layer_peak *ret_peak)
{
    const oos_setup *setup = batch->setup;
    const oos_model *model = setup->model;
    stream const flow = stream_of(setup);
    *ret_peak = (oos_layer_peak){.cublas = true};
    const oos_layer *before = NULL;
    for (uint64_t i = 0; i < batch->count && batch->layer + i < model->layer_count; i++) {
        const oos_layer *layer = &model->layers[batch->layer + i];
        if (before && before->attention == layer->attention && before->moe == layer->moe &&
            before->first_matrix == layer->first_matrix)
            continue;
        before = layer;
        uint64_t const mixer = mixer_bytes(batch, &model->attentions[layer->attention], flow);
        uint64_t const feed =
            layer->moe ? moe_bytes(batch, flow) : mlp_bytes(batch, dense_mlp(setup, layer), flow);
        ret_peak->moment = oos_max(ret_peak->moment, oos_max(mixer, feed));
        if (layer->moe) ret_peak->workspace = expert_workspace(batch);
    }
}

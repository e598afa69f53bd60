/* Gemma 4: full layers have heads of their own, the E-models share the cache of earlier layers. */
#include "model/arch/arch.h"

static void gemma_norms(oos_arch *a)
{
    oos_put_norm(a, "input_layernorm", a->model->hidden);
    oos_put_norm(a, "post_attention_layernorm", a->model->hidden);
    oos_put_norm(a, "pre_feedforward_layernorm", a->model->hidden);
    oos_put_norm(a, "post_feedforward_layernorm", a->model->hidden);
}

/* The last num_kv_shared_layers layers read the cache of the last layer of their kind before them. */
static bool shares_kv(const oos_arch *a, uint64_t i, uint64_t shared)
{
    uint64_t const layers = oos_arch_u64(a, "num_hidden_layers", 0);
    return shared > 0 && i >= oos_sub(layers, shared);
}

/* A layer that shares a cache has queries only. */
static void gemma4_attention(oos_arch *a, const oos_attention *t)
{
    const oos_model *m = a->model;
    bool const bias = oos_arch_yes(a, "attention_bias", false);
    uint64_t const width = oos_mul(t->heads, t->head_dim);
    if (t->shares_kv)
        oos_put_column(a, OOS_MODULE_ATTN, "self_attn.q_proj", width, m->hidden, bias, 1);
    else
        oos_put_qkv(a, "self_attn.qkv_proj", t, 1, bias);
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", m->hidden, width, bias);
    oos_put_kv_scales(a);
    oos_put_norm(a, "self_attn.q_norm", t->head_dim);
    if (!t->shares_kv) oos_put_norm(a, "self_attn.k_norm", t->head_dim);
}

static void gemma4_experts(oos_arch *a)
{
    const oos_model *m = a->model;
    oos_put_plain(a, OOS_MODULE_ROUTER, "router.scale", m->hidden, 1, OOS_DTYPE_UNKNOWN);
    oos_put_plain(a, OOS_MODULE_ROUTER, "router.per_expert_scale", m->moe.experts, 1, OOS_DTYPE_UNKNOWN);
    oos_put_plain(a, OOS_MODULE_ROUTER, "router.proj", m->moe.experts, m->hidden, OOS_DTYPE_UNKNOWN);
    oos_put_experts(a, "moe.experts", m->moe.experts, m->hidden, m->moe.intermediate, true, false);
    oos_put_norm(a, "post_feedforward_layernorm_1", m->hidden);
    oos_put_norm(a, "post_feedforward_layernorm_2", m->hidden);
    oos_put_norm(a, "pre_feedforward_layernorm_2", m->hidden);
}

/* Full layers of Gemma 4 have heads of their own size and, where keys serve as values, their own number of them. The
 * last layer is always full. */
static void gemma4_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    uint64_t const layers = oos_arch_u64(a, "num_hidden_layers", 0);
    uint64_t const per_layer = oos_arch_u64(a, "hidden_size_per_layer_input", 0);
    uint64_t const window = i + 1 == layers ? 0 : oos_arch_window(a, i, 6, 512);
    oos_attention plain = oos_arch_plain(a, window);
    if (window == 0) {
        plain.head_dim = plain.head_dim_v = oos_arch_u64(a, "global_head_dim", 512);
        if (oos_arch_yes(a, "attention_k_eq_v", false))
            plain.kv_heads = oos_arch_u64(a, "num_global_key_value_heads", plain.kv_heads);
    }
    plain.shares_kv = shares_kv(a, i, oos_arch_u64(a, "num_kv_shared_layers", 0));
    a->now.moe = oos_arch_yes(a, "enable_moe_block", false);
    oos_arch_attention(a, plain);

    gemma4_attention(a, &plain);
    bool const wide = plain.shares_kv && oos_arch_yes(a, "use_double_wide_mlp", false);
    oos_put_gated_mlp(a, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", m->hidden,
                      oos_mul(wide ? 2 : 1, m->intermediate), false);
    gemma_norms(a);
    if (a->now.moe) gemma4_experts(a);
    if (per_layer > 0) {
        oos_put_copy(a, OOS_MODULE_OTHER, "per_layer_input_gate", per_layer, m->hidden, false);
        oos_put_copy(a, OOS_MODULE_OTHER, "per_layer_projection", m->hidden, per_layer, false);
        oos_put_norm(a, "post_per_layer_input_norm", m->hidden);
    }
}

/* The E-models give every layer an embedding of its own: one wide table, on every stage. */
static void gemma4_per_layer(oos_arch *a)
{
    oos_model *m = a->model;
    uint64_t const per_layer = oos_arch_u64(a, "hidden_size_per_layer_input", 0);
    uint64_t const width = oos_mul(per_layer, m->layer_count);
    if (per_layer == 0) return;
    oos_range_open(a, a->prefix);
    oos_put(a, OOS_MODULE_EMBED,
            (oos_matrix){.name = "embed_tokens_per_layer",
                         .out = oos_arch_u64(a, "vocab_size_per_layer_input", m->vocab),
                         .in = width,
                         .split = OOS_SPLIT_VOCAB});
    oos_put_column(a, OOS_MODULE_OTHER, "per_layer_model_projection", width, m->hidden, false, 1);
    oos_put_norm(a, "per_layer_projection_norm", per_layer);
    oos_range_close(a, m->every_stage);
}

void oos_build_gemma4(oos_arch *a)
{
    const char *both = oos_arch_str(a, "use_bidirectional_attention");
    a->model->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    a->model->head_dim = oos_arch_u64(a, "head_dim", 256);
    a->model->bidirectional_images = a->vision && both && strcmp(both, "vision") == 0;
    oos_arch_layers(a, oos_arch_layer_count(a), gemma4_layer);
    oos_put_ends(a, 1);
    gemma4_per_layer(a);
}

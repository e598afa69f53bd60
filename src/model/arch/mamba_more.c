/* Decoders with Mamba 2 beside attention in their own ways: Bamba, Granite 4, Falcon-H1, Zamba 2. */
#include "model/arch/arch.h"

static void put_attention(oos_arch *a, const oos_attention *t, bool bias)
{
    oos_put_qkv(a, "self_attn.qkv_proj", t, 1, bias);
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", a->model->hidden, oos_mul(t->heads, t->head_dim),
                bias);
    oos_put_kv_scales(a);
}

/* The names Bamba, Granite 4 and Falcon-H1 share. */
static oos_mamba2 mamba_of(const oos_arch *a)
{
    uint64_t const wide = oos_mul(oos_arch_u64(a, "mamba_expand", 2), a->model->hidden);
    uint64_t const heads = oos_arch_u64(a, "mamba_n_heads", 128),
                   inner = oos_arch_u64(a, "mamba_d_ssm", wide);
    return (oos_mamba2){.heads = heads,
                        .head_dim = oos_arch_u64(a, "mamba_d_head", heads ? inner / heads : 0),
                        .groups = oos_arch_u64(a, "mamba_n_groups", 1),
                        .state = oos_arch_u64(a, "mamba_d_state", 128),
                        .kernel = oos_arch_u64(a, "mamba_d_conv", 4),
                        .bias = oos_arch_yes(a, "mamba_proj_bias", false),
                        .conv_bias = oos_arch_yes(a, "mamba_conv_bias", true),
                        .norm = oos_arch_yes(a, "mamba_rms_norm", true)};
}

/* ---- Bamba, Granite 4 ---- */

static bool attends(const oos_arch *a, uint64_t i)
{
    const json_t *types = oos_arch_list(a, "layer_types");
    if (!types) types = oos_arch_list(a, "layers_block_type");
    if (types) return oos_arch_item_is(types, i, "attention") || oos_arch_item_is(types, i, "full_attention");
    return oos_arch_list_holds(oos_arch_list(a, "attn_layer_indices"), i);
}

static void bamba_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    if (attends(a, i)) {
        oos_attention const plain = oos_arch_plain(a, 0);
        oos_arch_attention(a, plain);
        put_attention(a, &plain, oos_arch_yes(a, "attention_bias", false));
    } else {
        oos_mamba2 const mamba = mamba_of(a);
        oos_put_mamba2(a, &mamba);
    }
    a->now.moe = m->moe.experts > 0;
    if (a->now.moe) {
        oos_put_plain(a, OOS_MODULE_ROUTER, "block_sparse_moe.gate", m->moe.experts, m->hidden,
                      OOS_DTYPE_UNKNOWN);
        oos_put_experts(a, "block_sparse_moe.experts", m->moe.experts, m->hidden, m->intermediate, true,
                        false);
        if (m->moe.shared_intermediate > 0)
            oos_put_gated_mlp(a, OOS_MODULE_SHARED_EXPERT, "shared_mlp.input_linear",
                              "shared_mlp.output_linear", m->hidden, m->moe.shared_intermediate, false);
    } else if (m->moe.shared_intermediate > 0) {
        oos_put_gated_mlp(a, OOS_MODULE_MLP, "shared_mlp.input_linear", "shared_mlp.output_linear", m->hidden,
                          m->moe.shared_intermediate, false);
    } else {
        oos_put_gated_mlp(a, OOS_MODULE_MLP, "feed_forward.gate_up_proj", "feed_forward.down_proj", m->hidden,
                          m->intermediate, false);
    }
    oos_put_norm(a, "norms", oos_mul(2, m->hidden));
}

void oos_build_bamba(oos_arch *a)
{
    oos_model *m = a->model;
    m->moe.intermediate = m->intermediate;
    m->moe.shared_intermediate = oos_arch_u64(a, "shared_intermediate_size", 0);
    oos_arch_layers(a, oos_arch_layer_count(a), bamba_layer);
    oos_put_ends(a, 1);
}

/* ---- Falcon-H1: every layer attends and remembers. The cache of its attention is the record; the state is added by
 * its own layer of the engine, which our one record per layer cannot hold: the recurrent one is kept. ---- */

static void falcon_h1_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    const oos_model *m = a->model;
    oos_mamba2 const mamba = mamba_of(a);
    oos_attention const plain = oos_arch_plain(a, 0);
    oos_put_mamba2(a, &mamba);
    put_attention(a, &plain, oos_arch_yes(a, "attention_bias", false));
    oos_attention both = a->attentions[a->now.attention];
    both.heads = plain.heads;
    both.kv_heads = plain.kv_heads;
    both.head_dim = plain.head_dim;
    both.head_dim_v = plain.head_dim_v;
    oos_arch_attention(a, both);
    oos_put_gated_mlp(a, OOS_MODULE_MLP, "feed_forward.gate_up_proj", "feed_forward.down_proj", m->hidden,
                      m->intermediate, oos_arch_yes(a, "mlp_bias", false));
    oos_put_norm(a, "norms", oos_mul(2, m->hidden));
}

void oos_build_falcon_h1(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), falcon_h1_layer);
    oos_put_ends(a, 1);
    oos_arch_note(
        a, "each layer of %s has attention and a recurrent state: the cache is computed from the state alone",
        a->model->architecture);
}

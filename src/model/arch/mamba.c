/* Mamba and its hybrids: Mamba 1 and 2, Nemotron-H, Jamba. */
#include "model/arch/arch.h"

static oos_dtype ssm_dtype(const oos_arch *a)
{
    const char *word = oos_arch_str(a, "mamba_ssm_cache_dtype");
    return word ? oos_dtype_find(word) : OOS_DTYPE_UNKNOWN;
}

/* ---- Mamba 2 ---- */

/* Groups are kept whole: a rank has at least one (vLLM 0.32, mamba_mixer2.py). */
void oos_put_mamba2(oos_arch *a, const oos_mamba2 *t)
{
    uint64_t const inner = oos_mul(t->heads, t->head_dim), groups = oos_mul(2, oos_mul(t->groups, t->state));
    uint64_t const conv = oos_add(inner, groups), hidden = a->model->hidden;
    oos_arch_attention(a, (oos_attention){.mixer = OOS_MIXER_MAMBA2,
                                          .state_heads = t->heads,
                                          .state_head_dim = t->head_dim,
                                          .state_size = t->state,
                                          .groups = t->groups,
                                          .conv_kernel = t->kernel,
                                          .conv_dim = conv,
                                          .state_dtype = ssm_dtype(a)});
    oos_put(a, OOS_MODULE_MIXER,
            (oos_matrix){.name = "mixer.conv1d",
                         .out = conv,
                         .in = t->kernel,
                         .kv_out = groups,
                         .kv_heads = t->groups,
                         .split = OOS_SPLIT_KV,
                         .bias = t->conv_bias});
    oos_put(a, OOS_MODULE_MIXER,
            (oos_matrix){.name = "mixer.in_proj",
                         .out = oos_add(oos_add(inner, conv), t->heads),
                         .in = hidden,
                         .kv_out = groups,
                         .kv_heads = t->groups,
                         .split = OOS_SPLIT_KV,
                         .bias = t->bias,
                         .linear = true,
                         .shards = 5});
    oos_put_divided(a, OOS_MODULE_MIXER, "mixer.A", t->heads, 1, OOS_DTYPE_F32);
    oos_put_divided(a, OOS_MODULE_MIXER, "mixer.D", t->heads, 1, OOS_DTYPE_UNKNOWN);
    oos_put_divided(a, OOS_MODULE_MIXER, "mixer.dt_bias", t->heads, 1, OOS_DTYPE_UNKNOWN);
    if (t->norm) oos_put_divided(a, OOS_MODULE_MIXER, "mixer.norm", inner, 1, OOS_DTYPE_UNKNOWN);
    oos_put_row(a, OOS_MODULE_MIXER, "mixer.out_proj", hidden, inner, t->bias);
}

static void mamba2_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    uint64_t const inner = oos_mul(oos_arch_u64(a, "expand", 2), a->model->hidden);
    uint64_t const dim = oos_arch_u64(a, "head_dim", 64);
    oos_mamba2 const t = {.heads = oos_arch_u64(a, "num_heads", dim ? inner / dim : 0),
                          .head_dim = dim,
                          .groups = oos_arch_u64(a, "n_groups", 8),
                          .state = oos_arch_u64(a, "state_size", 128),
                          .kernel = oos_arch_u64(a, "conv_kernel", 4),
                          .bias = oos_arch_yes(a, "use_bias", false),
                          .conv_bias = oos_arch_yes(a, "use_conv_bias", true),
                          .norm = oos_arch_yes(a, "rms_norm", true)};
    oos_put_mamba2(a, &t);
    oos_put_norm(a, "norm", a->model->hidden);
}

void oos_build_mamba2(oos_arch *a)
{
    a->model->heads = a->model->kv_heads = a->model->head_dim = 0;
    oos_arch_layers(a, oos_arch_layer_count(a), mamba2_layer);
    oos_put_ends(a, 1);
}

/* ---- Nemotron-H: M Mamba, * attention, - MLP, E experts ---- */

static void nemotron_experts(oos_arch *a)
{
    const oos_model *m = a->model;
    uint64_t const latent = oos_arch_u64(a, "moe_latent_size", 0), width = latent ? latent : m->hidden;
    bool const bias = oos_arch_yes(a, "mlp_bias", false);
    oos_put_plain(a, OOS_MODULE_ROUTER, "mixer.gate", m->moe.experts, m->hidden, OOS_DTYPE_UNKNOWN);
    oos_put_plain(a, OOS_MODULE_ROUTER, "mixer.gate.e_score_correction_bias", m->moe.experts, 1,
                  OOS_DTYPE_F32);
    if (m->moe.shared > 0) {
        oos_put_column(a, OOS_MODULE_SHARED_EXPERT, "mixer.shared_experts.up_proj",
                       m->moe.shared_intermediate, m->hidden, bias, 1);
        oos_put_row(a, OOS_MODULE_SHARED_EXPERT, "mixer.shared_experts.down_proj", m->hidden,
                    m->moe.shared_intermediate, bias);
    }
    if (latent > 0) {
        oos_put_copy(a, OOS_MODULE_MLP, "mixer.fc1_latent_proj", latent, m->hidden, bias);
        oos_put_copy(a, OOS_MODULE_MLP, "mixer.fc2_latent_proj", m->hidden, latent, bias);
    }
    oos_put_experts(a, "mixer.experts", m->moe.experts, width, m->moe.intermediate, false, false);
}

static void nemotron_kind(oos_arch *a, char kind)
{
    const oos_model *m = a->model;
    bool const bias = oos_arch_yes(a, "attention_bias", false), mlp_bias = oos_arch_yes(a, "mlp_bias", false);
    oos_attention const plain = oos_arch_plain(a, 0);
    oos_mamba2 const t = {.heads = oos_arch_u64(a, "mamba_num_heads", 128),
                          .head_dim = oos_arch_u64(a, "mamba_head_dim", 64),
                          .groups = oos_arch_u64(a, "n_groups", 8),
                          .state = oos_arch_u64(a, "ssm_state_size", 128),
                          .kernel = oos_arch_u64(a, "conv_kernel", 4),
                          .bias = oos_arch_yes(a, "use_bias", false),
                          .conv_bias = oos_arch_yes(a, "use_conv_bias", true),
                          .norm = true};
    switch (kind) {
    case 'M': oos_put_mamba2(a, &t); break;
    case '*':
        oos_arch_attention(a, plain);
        oos_put_qkv(a, "mixer.qkv_proj", &plain, 1, bias);
        oos_put_row(a, OOS_MODULE_ATTN, "mixer.o_proj", m->hidden, oos_mul(m->heads, m->head_dim), bias);
        oos_put_kv_scales(a);
        break;
    case 'E':
        oos_arch_attention(a, (oos_attention){.mixer = OOS_MIXER_NONE});
        a->now.moe = true;
        nemotron_experts(a);
        break;
    default:
        oos_arch_attention(a, (oos_attention){.mixer = OOS_MIXER_NONE});
        oos_put_column(a, OOS_MODULE_MLP, "mixer.up_proj", m->intermediate, m->hidden, mlp_bias, 1);
        oos_put_row(a, OOS_MODULE_MLP, "mixer.down_proj", m->hidden, m->intermediate, mlp_bias);
        break;
    }
    oos_put_norm(a, "norm", m->hidden);
}

static char kind_at(const oos_arch *a, const char *text_key, const char *list_key, uint64_t i)
{
    const char *pattern = oos_arch_str(a, text_key);
    if (pattern) return i < strlen(pattern) ? pattern[i] : '-';
    const json_t *list = oos_arch_list(a, list_key);
    if (oos_arch_item_is(list, i, "mamba") || oos_arch_item_is(list, i, "linear_attention")) return 'M';
    if (oos_arch_item_is(list, i, "attention") || oos_arch_item_is(list, i, "full_attention")) return '*';
    return oos_arch_item_is(list, i, "moe") ? 'E' : '-';
}

static void nemotron_layer(oos_arch *a, uint64_t i)
{
    nemotron_kind(a, kind_at(a, "hybrid_override_pattern", "layers_block_type", i));
}

static void nemotron_mtp_layer(oos_arch *a, uint64_t i)
{
    const char *pattern = oos_arch_str(a, "mtp_hybrid_override_pattern");
    size_t const len = pattern ? strlen(pattern) : 0;
    nemotron_kind(a, len ? pattern[i % len] : '*');
}

void oos_build_nemotron_h(oos_arch *a)
{
    oos_model *m = a->model;
    uint64_t const shared = oos_arch_u64(a, "moe_shared_expert_intermediate_size", 0);
    m->moe.shared_intermediate = oos_mul(m->moe.shared ? m->moe.shared : 1, shared);
    const json_t *kinds = oos_arch_list(a, "layers_block_type");
    bool const listed = kinds && !oos_arch_has(a, "num_hidden_layers"); /* Ultra leaves the number out */
    oos_arch_layers(a, listed ? json_array_size(kinds) : oos_arch_layer_count(a), nemotron_layer);
    oos_put_ends(a, 1);
    const char *pattern = oos_arch_str(a, "mtp_hybrid_override_pattern");
    uint64_t const mtp = oos_arch_u64(a, "num_nextn_predict_layers", 0);
    oos_arch_mtp_layers(a, oos_mul(mtp, pattern ? strlen(pattern) : 1), "mtp.layers.", 0, nemotron_mtp_layer);
}

/* ---- Mamba 1, Jamba ---- */

typedef struct mamba1 {
    uint64_t inner, state, kernel, step_rank;
    bool bias, conv_bias, norms;
} mamba1;

static void put_mamba1(oos_arch *a, const char *const names[7], const mamba1 *t)
{
    uint64_t const hidden = a->model->hidden, mixed = oos_add(t->step_rank, oos_mul(2, t->state));
    oos_arch_attention(a, (oos_attention){.mixer = OOS_MIXER_MAMBA1,
                                          .state_size = t->state,
                                          .conv_kernel = t->kernel,
                                          .conv_dim = t->inner,
                                          .state_dtype = ssm_dtype(a)});
    oos_put(a, OOS_MODULE_MIXER,
            (oos_matrix){.name = names[0],
                         .out = t->inner,
                         .in = t->kernel,
                         .split = OOS_SPLIT_OUT,
                         .bias = t->conv_bias});
    oos_put_column(a, OOS_MODULE_MIXER, names[1], oos_mul(2, t->inner), hidden, t->bias, 2);
    oos_put_row(a, OOS_MODULE_MIXER, names[2], mixed, t->inner, false);
    oos_put_column(a, OOS_MODULE_MIXER, names[3], t->inner, t->step_rank, true, 1);
    oos_put_divided(a, OOS_MODULE_MIXER, names[4], t->inner, t->state, OOS_DTYPE_F32);
    oos_put_divided(a, OOS_MODULE_MIXER, names[5], t->inner, 1, OOS_DTYPE_UNKNOWN);
    oos_put_row(a, OOS_MODULE_MIXER, names[6], hidden, t->inner, t->bias);
    if (t->norms) oos_put_plain(a, OOS_MODULE_MIXER, "norms", mixed, 1, OOS_DTYPE_UNKNOWN);
}

static void mamba_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    static const char *const names[7] = {"mixer.conv1d", "mixer.in_proj", "mixer.x_proj",  "mixer.dt_proj",
                                         "mixer.A",      "mixer.D",       "mixer.out_proj"};
    uint64_t const wide = oos_mul(oos_arch_u64(a, "expand", 2), a->model->hidden);
    mamba1 const t = {.inner = oos_arch_u64(a, "intermediate_size", wide),
                      .state = oos_arch_u64(a, "state_size", 16),
                      .kernel = oos_arch_u64(a, "conv_kernel", 4),
                      .step_rank = oos_arch_u64(a, "time_step_rank", oos_cdiv(a->model->hidden, 16)),
                      .bias = oos_arch_yes(a, "use_bias", false),
                      .conv_bias = oos_arch_yes(a, "use_conv_bias", true),
                      .norms = false};
    put_mamba1(a, names, &t);
    oos_put_norm(a, "norm", a->model->hidden);
}

void oos_build_mamba(oos_arch *a)
{
    a->model->heads = a->model->kv_heads = a->model->head_dim = 0;
    a->model->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    oos_arch_layers(a, oos_arch_layer_count(a), mamba_layer);
    oos_put_ends(a, 1);
}

static void jamba_layer(oos_arch *a, uint64_t i)
{
    static const char *const names[7] = {"mamba.conv1d", "mamba.in_proj", "mamba.x_proj",  "mamba.dt_proj",
                                         "mamba.A",      "mamba.D",       "mamba.out_proj"};
    const oos_model *m = a->model;
    uint64_t const period = oos_arch_u64(a, "attn_layer_period", 8);
    uint64_t const expert_period = oos_arch_u64(a, "expert_layer_period", 2);
    a->now.moe = m->moe.experts > 1 && expert_period > 0 &&
                 i % expert_period == oos_arch_u64(a, "expert_layer_offset", 1);
    oos_put_norm(a, "input_layernorm", m->hidden);
    if (period > 0 && i % period == oos_arch_u64(a, "attn_layer_offset", 4)) {
        oos_attention const plain = oos_arch_plain(a, 0);
        oos_arch_attention(a, plain);
        oos_put_qkv(a, "self_attn.qkv_proj", &plain, 1, false);
        oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", m->hidden, oos_mul(m->heads, m->head_dim), false);
        oos_put_kv_scales(a);
    } else {
        mamba1 const t = {.inner = oos_mul(oos_arch_u64(a, "mamba_expand", 2), m->hidden),
                          .state = oos_arch_u64(a, "mamba_d_state", 16),
                          .kernel = oos_arch_u64(a, "mamba_d_conv", 4),
                          .step_rank = oos_arch_u64(a, "mamba_dt_rank", oos_cdiv(m->hidden, 16)),
                          .bias = oos_arch_yes(a, "mamba_proj_bias", false),
                          .conv_bias = oos_arch_yes(a, "mamba_conv_bias", true),
                          .norms = true};
        put_mamba1(a, names, &t);
    }
    oos_put_norm(a, "pre_ff_layernorm", m->hidden);
    if (!a->now.moe) {
        oos_put_gated_mlp(a, OOS_MODULE_MLP, "feed_forward.gate_up_proj", "feed_forward.down_proj", m->hidden,
                          m->intermediate, false);
        return;
    }
    oos_put_plain(a, OOS_MODULE_ROUTER, "feed_forward.router", m->moe.experts, m->hidden, OOS_DTYPE_UNKNOWN);
    oos_put_experts(a, "feed_forward.experts", m->moe.experts, m->hidden, m->intermediate, true, false);
}

void oos_build_jamba(oos_arch *a)
{
    a->model->moe.intermediate = a->model->intermediate;
    oos_arch_layers(a, oos_arch_layer_count(a), jamba_layer);
    oos_put_ends(a, 1);
}

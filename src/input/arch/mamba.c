/* Mamba and its hybrids: Mamba 1 and 2, Nemotron-H, Jamba. */
#include "input/arch.h"

static oos_dtype ssm_dtype(const oos_arch *a)
{
    const char *word = oos_arch_str(a, "mamba_ssm_cache_dtype");
    return word ? oos_dtype_find(word) : OOS_DTYPE_UNKNOWN;
}

static void mamba2_state(oos_arch *a, uint64_t heads, uint64_t head_dim, uint64_t groups, uint64_t state,
                         uint64_t kernel)
{
    uint64_t const inner = oos_mul(heads, head_dim);
    oos_arch_attention(a, (oos_attention){.mixer = OOS_MIXER_MAMBA2,
                                          .state_heads = heads,
                                          .state_head_dim = head_dim,
                                          .state_size = state,
                                          .groups = groups,
                                          .conv_kernel = kernel,
                                          .conv_dim = oos_add(inner, oos_mul(2, oos_mul(groups, state))),
                                          .state_dtype = ssm_dtype(a)});
}

/* Nemotron-H spells its layers: M Mamba, * attention, - MLP, E experts. */
static void nemotron_kind(oos_arch *a, char kind)
{
    switch (kind) {
    case 'M':
        mamba2_state(a, oos_arch_u64(a, "mamba_num_heads", 128), oos_arch_u64(a, "mamba_head_dim", 64),
                     oos_arch_u64(a, "n_groups", 8), oos_arch_u64(a, "ssm_state_size", 128),
                     oos_arch_u64(a, "conv_kernel", 4));
        break;
    case '*': oos_arch_attention(a, oos_arch_plain(a, 0)); break;
    default:
        oos_arch_attention(a, (oos_attention){.mixer = OOS_MIXER_NONE});
        a->now.moe = kind == 'E';
        break;
    }
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
    m->moe.shared_intermediate = oos_arch_u64(a, "moe_shared_expert_intermediate_size", 0);
    const json_t *kinds = oos_arch_list(a, "layers_block_type");
    bool const listed = kinds && !oos_arch_has(a, "num_hidden_layers"); /* Ultra leaves the number out */
    oos_arch_layers(a, listed ? json_array_size(kinds) : oos_arch_layer_count(a), nemotron_layer);
    const char *pattern = oos_arch_str(a, "mtp_hybrid_override_pattern");
    uint64_t const mtp = oos_arch_u64(a, "num_nextn_predict_layers", 0);
    oos_arch_mtp_layers(a, oos_mul(mtp, pattern ? strlen(pattern) : 1), nemotron_mtp_layer);
}

static void mamba2_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    uint64_t const inner = oos_mul(oos_arch_u64(a, "expand", 2), a->model->hidden);
    uint64_t const dim = oos_arch_u64(a, "head_dim", 64);
    uint64_t const heads = oos_arch_u64(a, "num_heads", dim ? inner / dim : 0);
    mamba2_state(a, heads, dim, oos_arch_u64(a, "n_groups", 8), oos_arch_u64(a, "state_size", 128),
                 oos_arch_u64(a, "conv_kernel", 4));
}

void oos_build_mamba2(oos_arch *a)
{
    a->model->heads = a->model->kv_heads = a->model->head_dim = 0;
    oos_arch_layers(a, oos_arch_layer_count(a), mamba2_layer);
}

static void mamba1_state(oos_arch *a, uint64_t inner, uint64_t state, uint64_t kernel)
{
    oos_arch_attention(a, (oos_attention){.mixer = OOS_MIXER_MAMBA1,
                                          .state_size = state,
                                          .conv_kernel = kernel,
                                          .conv_dim = inner,
                                          .state_dtype = ssm_dtype(a)});
}

static void mamba_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    uint64_t const inner =
        oos_arch_u64(a, "intermediate_size", oos_mul(oos_arch_u64(a, "expand", 2), a->model->hidden));
    mamba1_state(a, inner, oos_arch_u64(a, "state_size", 16), oos_arch_u64(a, "conv_kernel", 4));
}

void oos_build_mamba(oos_arch *a)
{
    a->model->heads = a->model->kv_heads = a->model->head_dim = 0;
    a->model->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    oos_arch_layers(a, oos_arch_layer_count(a), mamba_layer);
}

static void jamba_layer(oos_arch *a, uint64_t i)
{
    uint64_t const period = oos_arch_u64(a, "attn_layer_period", 8);
    uint64_t const expert_period = oos_arch_u64(a, "expert_layer_period", 2);
    a->now.moe = a->model->moe.experts > 1 && expert_period > 0 &&
                 i % expert_period == oos_arch_u64(a, "expert_layer_offset", 1);
    if (period > 0 && i % period == oos_arch_u64(a, "attn_layer_offset", 4))
        oos_arch_attention(a, oos_arch_plain(a, 0));
    else
        mamba1_state(a, oos_mul(oos_arch_u64(a, "mamba_expand", 2), a->model->hidden),
                     oos_arch_u64(a, "mamba_d_state", 16), oos_arch_u64(a, "mamba_d_conv", 4));
}

void oos_build_jamba(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), jamba_layer);
}

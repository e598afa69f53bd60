/* Decoders that mix full attention with a recurrent state: gated delta nets (Qwen3-Next, 3.5, 3.6), Kimi's delta
 * attention, LFM2's short convolution. */
#include "input/arch.h"

static oos_dtype state_dtype(const oos_arch *a)
{
    const char *word = oos_arch_str(a, "mamba_ssm_dtype");
    return word ? oos_dtype_find(word) : OOS_DTYPE_UNKNOWN;
}

static void full_layer(oos_arch *a)
{
    oos_arch_attention(a, oos_arch_plain(a, 0));
}

static void gdn_layer(oos_arch *a)
{
    oos_attention gdn = {.mixer = OOS_MIXER_GDN,
                         .key_heads = oos_arch_u64(a, "linear_num_key_heads", 16),
                         .value_heads = oos_arch_u64(a, "linear_num_value_heads", 32),
                         .key_dim = oos_arch_u64(a, "linear_key_head_dim", 128),
                         .value_dim_state = oos_arch_u64(a, "linear_value_head_dim", 128),
                         .conv_kernel = oos_arch_u64(a, "linear_conv_kernel_dim", 4),
                         .state_dtype = state_dtype(a)};
    gdn.conv_dim = oos_add(oos_mul(2, oos_mul(gdn.key_heads, gdn.key_dim)),
                           oos_mul(gdn.value_heads, gdn.value_dim_state));
    oos_arch_attention(a, gdn);
}

static void qwen3_next_layer(oos_arch *a, uint64_t i)
{
    const json_t *types = oos_arch_list(a, "layer_types");
    uint64_t const interval = oos_arch_u64(a, "full_attention_interval", 4);
    bool const full =
        types ? oos_arch_item_is(types, i, "full_attention") : interval > 0 && (i + 1) % interval == 0;
    if (full)
        full_layer(a);
    else
        gdn_layer(a);
    uint64_t const step = oos_arch_u64(a, "decoder_sparse_step", 1);
    a->now.moe = a->model->moe.experts > 0 && step > 0 && (i + 1) % step == 0 &&
                 !oos_arch_list_holds(oos_arch_list(a, "mlp_only_layers"), i);
}

static void qwen3_next_mtp_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    full_layer(a);
    a->now.moe = a->model->moe.experts > 0;
}

void oos_build_qwen3_next(oos_arch *a)
{
    oos_model *m = a->model;
    m->head_dim = oos_arch_u64(a, "head_dim", 256);
    m->moe.shared_intermediate =
        m->moe.experts > 0 ? oos_arch_u64(a, "shared_expert_intermediate_size", 512) : 0;
    oos_arch_layers(a, oos_arch_layer_count(a), qwen3_next_layer);
    uint64_t const mtp =
        oos_arch_u64(a, "mtp_num_hidden_layers", oos_arch_u64(a, "num_nextn_predict_layers", 1));
    oos_arch_mtp_layers(a, mtp, qwen3_next_mtp_layer);
}

/* Kimi counts its layers from one. */
static void kimi_layer(oos_arch *a, uint64_t i)
{
    const json_t *linear = json_object_get(a->text, "linear_attn_config");
    bool const kda = oos_arch_list_holds(json_object_get(linear, "kda_layers"), i + 1);
    a->now.moe = a->model->moe.experts > 0 && i >= oos_arch_u64(a, "first_k_dense_replace", 0);
    if (!kda) {
        oos_attention mla = {.mixer = OOS_MIXER_MLA,
                             .heads = a->model->heads,
                             .kv_heads = 1,
                             .kv_lora_rank = oos_arch_u64(a, "kv_lora_rank", 512),
                             .q_lora_rank = oos_arch_u64(a, "q_lora_rank", 0),
                             .rope_dim = oos_arch_u64(a, "qk_rope_head_dim", 64),
                             .nope_dim = oos_arch_u64(a, "qk_nope_head_dim", 128),
                             .value_dim = oos_arch_u64(a, "v_head_dim", 128)};
        mla.head_dim = oos_add(mla.kv_lora_rank, mla.rope_dim);
        oos_arch_attention(a, mla);
        return;
    }
    uint64_t heads = 0, dim = 0, kernel = 4;
    (void)oos_json_u64(linear, "num_heads", &heads);
    (void)oos_json_u64(linear, "head_dim", &dim);
    (void)oos_json_u64(linear, "short_conv_kernel_size", &kernel);
    oos_arch_attention(a, (oos_attention){.mixer = OOS_MIXER_KDA,
                                          .key_heads = heads,
                                          .value_heads = heads,
                                          .key_dim = dim,
                                          .value_dim_state = dim,
                                          .conv_kernel = kernel,
                                          .conv_dim = oos_mul(3, oos_mul(heads, dim)),
                                          .state_dtype = OOS_DTYPE_F32});
}

void oos_build_kimi_linear(oos_arch *a)
{
    a->model->head_dim =
        oos_add(oos_arch_u64(a, "kv_lora_rank", 512), oos_arch_u64(a, "qk_rope_head_dim", 64));
    a->model->kv_heads = 1;
    oos_arch_layers(a, oos_arch_layer_count(a), kimi_layer);
}

static void lfm2_layer(oos_arch *a, uint64_t i)
{
    const json_t *types = oos_arch_list(a, "layer_types");
    bool const full = types ? oos_arch_item_is(types, i, "full_attention")
                            : oos_arch_list_holds(oos_arch_list(a, "full_attn_idxs"), i);
    if (full) {
        full_layer(a);
        return;
    }
    oos_arch_attention(a, (oos_attention){.mixer = OOS_MIXER_CONV,
                                          .conv_kernel = oos_arch_u64(a, "conv_L_cache", 3),
                                          .conv_dim = oos_arch_u64(a, "conv_dim", a->model->hidden)});
}

void oos_build_lfm2(oos_arch *a)
{
    a->model->tied = oos_arch_yes(a, "tie_embedding", oos_arch_yes(a, "tie_word_embeddings", true));
    oos_arch_layers(a, oos_arch_layer_count(a), lfm2_layer);
}

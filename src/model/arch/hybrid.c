/* Decoders that mix full attention with a recurrent state: gated delta nets (Qwen3-Next, 3.5, 3.6), Kimi's delta
 * attention, LFM2's short convolution. */
#include "model/arch/arch.h"

/* ---- Qwen3-Next, 3.5, 3.6 ---- */

static oos_dtype state_dtype(const oos_arch *a)
{
    const char *word = oos_arch_str(a, "mamba_ssm_dtype");
    return word ? oos_dtype_find(word) : OOS_DTYPE_UNKNOWN;
}

/* An output gate doubles the rows of the queries. */
static void qwen3_next_attention(oos_arch *a)
{
    const oos_model *m = a->model;
    oos_attention const plain = oos_arch_plain(a, 0);
    uint64_t const factor = oos_arch_yes(a, "attn_output_gate", true) ? 2 : 1;
    oos_arch_attention(a, plain);
    oos_put_qkv(a, "self_attn.qkv_proj", &plain, factor, oos_arch_yes(a, "qkv_bias", false));
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", m->hidden, oos_mul(m->heads, m->head_dim), false);
    oos_put_norm(a, "self_attn.q_norm", m->head_dim);
    oos_put_norm(a, "self_attn.k_norm", m->head_dim);
    oos_put_kv_scales(a);
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
    uint64_t const hidden = a->model->hidden, values = oos_mul(gdn.value_heads, gdn.value_dim_state);
    gdn.conv_dim = oos_add(oos_mul(2, oos_mul(gdn.key_heads, gdn.key_dim)), values);
    oos_arch_attention(a, gdn);
    oos_put_column(a, OOS_MODULE_MIXER, "linear_attn.in_proj_qkvz", oos_add(gdn.conv_dim, values), hidden,
                   false, 4);
    oos_put_column(a, OOS_MODULE_MIXER, "linear_attn.in_proj_ba", oos_mul(2, gdn.value_heads), hidden, false,
                   2);
    oos_put_divided(a, OOS_MODULE_MIXER, "linear_attn.conv1d", gdn.conv_dim, gdn.conv_kernel,
                    OOS_DTYPE_UNKNOWN);
    oos_put_divided(a, OOS_MODULE_MIXER, "linear_attn.dt_bias", gdn.value_heads, 1, OOS_DTYPE_UNKNOWN);
    oos_put_divided(a, OOS_MODULE_MIXER, "linear_attn.A_log", gdn.value_heads, 1, OOS_DTYPE_F32);
    oos_put_plain(a, OOS_MODULE_MIXER, "linear_attn.norm", gdn.value_dim_state, 1, OOS_DTYPE_UNKNOWN);
    oos_put_row(a, OOS_MODULE_MIXER, "linear_attn.out_proj", hidden, values, false);
}

static void qwen3_next_mlp(oos_arch *a)
{
    const oos_model *m = a->model;
    oos_put_norm(a, "input_layernorm", m->hidden);
    oos_put_norm(a, "post_attention_layernorm", m->hidden);
    if (!a->now.moe) {
        oos_put_gated_mlp(a, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", m->hidden, m->intermediate,
                          false);
        return;
    }
    oos_put_plain(a, OOS_MODULE_ROUTER, "mlp.gate", m->moe.experts, m->hidden, OOS_DTYPE_UNKNOWN);
    oos_put_plain(a, OOS_MODULE_SHARED_EXPERT, "mlp.shared_expert_gate", 1, m->hidden, OOS_DTYPE_UNKNOWN);
    oos_put_gated_mlp(a, OOS_MODULE_SHARED_EXPERT, "mlp.shared_expert.gate_up_proj",
                      "mlp.shared_expert.down_proj", m->hidden, m->moe.shared_intermediate, false);
    oos_put_experts(a, "mlp.experts", m->moe.experts, m->hidden, m->moe.intermediate, true, false);
}

static void qwen3_next_layer(oos_arch *a, uint64_t i)
{
    const json_t *types = oos_arch_list(a, "layer_types");
    uint64_t const interval = oos_arch_u64(a, "full_attention_interval", 4);
    uint64_t const step = oos_arch_u64(a, "decoder_sparse_step", 1);
    bool const full =
        types ? oos_arch_item_is(types, i, "full_attention") : interval > 0 && (i + 1) % interval == 0;
    a->now.moe = a->model->moe.experts > 0 && step > 0 && (i + 1) % step == 0 &&
                 !oos_arch_list_holds(oos_arch_list(a, "mlp_only_layers"), i);
    if (full)
        qwen3_next_attention(a);
    else
        gdn_layer(a);
    qwen3_next_mlp(a);
}

static void qwen3_next_mtp_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    a->now.moe = a->model->moe.experts > 0;
    qwen3_next_attention(a);
    qwen3_next_mlp(a);
}

void oos_build_qwen3_next(oos_arch *a)
{
    oos_model *m = a->model;
    m->head_dim = oos_arch_u64(a, "head_dim", 256);
    m->moe.shared_intermediate =
        m->moe.experts > 0 ? oos_arch_u64(a, "shared_expert_intermediate_size", 512) : 0;
    oos_arch_layers(a, oos_arch_layer_count(a), qwen3_next_layer);
    oos_put_ends(a, 1);
    uint64_t const mtp =
        oos_arch_u64(a, "mtp_num_hidden_layers", oos_arch_u64(a, "num_nextn_predict_layers", 1));
    oos_arch_mtp_layers(a, mtp, "mtp.layers.", 0, qwen3_next_mtp_layer);
    oos_range_open(a, "mtp.");
    oos_put_column(a, OOS_MODULE_OTHER, "fc", m->hidden, oos_mul(2, m->hidden), false, 1);
    oos_put_norm(a, "norm", m->hidden);
    oos_put_norm(a, "pre_fc_norm_hidden", m->hidden);
    oos_put_norm(a, "pre_fc_norm_embedding", m->hidden);
    oos_range_close(a, m->mtp_matrices);
}

/* ---- Kimi Linear, Kimi K3 ---- */

typedef struct kda {
    uint64_t heads, dim, kernel;
    bool full_rank_gate;
} kda;

static kda kda_of(const oos_arch *a)
{
    const json_t *linear = json_object_get(a->text, "linear_attn_config");
    kda k = {.kernel = 4};
    (void)oos_json_u64(linear, "num_heads", &k.heads);
    (void)oos_json_u64(linear, "head_dim", &k.dim);
    (void)oos_json_u64(linear, "short_conv_kernel_size", &k.kernel);
    (void)oos_json_bool(linear, "use_full_rank_gate", &k.full_rank_gate);
    return k;
}

/* The narrow projection of the decay is a copy on every rank inside the fused one (kimi_gdn_linear_attn.py). */
static void put_kda(oos_arch *a, const kda *k)
{
    uint64_t const hidden = a->model->hidden, wide = oos_mul(k->heads, k->dim);
    uint64_t const rows = oos_add(oos_mul(k->full_rank_gate ? 4 : 3, wide), k->heads);
    oos_put(a, OOS_MODULE_MIXER,
            (oos_matrix){.name = "self_attn.in_proj_qkvgfab",
                         .out = oos_add(rows, k->dim),
                         .in = hidden,
                         .kv_out = k->dim,
                         .kv_heads = 1,
                         .split = OOS_SPLIT_KV,
                         .unit = k->full_rank_gate ? 16 : 1,
                         .linear = true,
                         .shards = 5});
    oos_put_column(a, OOS_MODULE_MIXER, "self_attn.f_b_proj", wide, k->dim, false, 1);
    oos_put_divided(a, OOS_MODULE_MIXER, "self_attn.dt_bias", wide, 1, OOS_DTYPE_F32);
    oos_put_divided(a, OOS_MODULE_MIXER, "self_attn.conv1d", oos_mul(3, wide), k->kernel, OOS_DTYPE_F32);
    oos_put_divided(a, OOS_MODULE_MIXER, "self_attn.A_log", k->heads, 1, OOS_DTYPE_F32);
    if (!k->full_rank_gate) {
        oos_put_copy(a, OOS_MODULE_MIXER, "self_attn.g_a_proj", k->dim, hidden, false);
        oos_put_column(a, OOS_MODULE_MIXER, "self_attn.g_b_proj", wide, k->dim, false, 1);
    }
    oos_put_plain(a, OOS_MODULE_MIXER, "self_attn.o_norm", k->dim, 1, OOS_DTYPE_UNKNOWN);
    oos_put_row(a, OOS_MODULE_MIXER, "self_attn.o_proj", hidden, wide, false);
}

/* K3: the gate of the output rides along with the compressed streams, which are copies on every rank. */
static void put_gated_latent(oos_arch *a, const oos_attention *t)
{
    uint64_t const streams = oos_add(t->q_lora_rank, t->head_dim);
    oos_put(a, OOS_MODULE_ATTN,
            (oos_matrix){.name = "self_attn.fused_qkv_a_g_proj",
                         .out = oos_add(streams, oos_mul(t->heads, t->value_dim)),
                         .in = a->model->hidden,
                         .kv_out = streams,
                         .kv_heads = 1,
                         .split = OOS_SPLIT_KV,
                         .linear = true,
                         .shards = 3});
    oos_put_latent_up(a, t);
}

/* K3: experts work on a narrower stream, and sublayers attend over the residuals of earlier ones. */
static uint64_t put_narrow_stream(oos_arch *a)
{
    const oos_model *m = a->model;
    uint64_t const narrow = oos_arch_u64(a, "routed_expert_hidden_size", 0);
    if (narrow == 0 || narrow == m->hidden) return m->hidden;
    oos_put_plain(a, OOS_MODULE_MLP, "block_sparse_moe.routed_expert_down_proj", narrow, m->hidden,
                  OOS_DTYPE_UNKNOWN);
    oos_put_plain(a, OOS_MODULE_MLP, "block_sparse_moe.routed_expert_up_proj", m->hidden, narrow,
                  OOS_DTYPE_UNKNOWN);
    if (oos_arch_yes(a, "latent_moe_use_norm", false))
        oos_put_norm(a, "block_sparse_moe.routed_expert_norm", narrow);
    return narrow;
}

static void kimi_mlp(oos_arch *a)
{
    const oos_model *m = a->model;
    oos_put_norm(a, "input_layernorm", m->hidden);
    oos_put_norm(a, "post_attention_layernorm", m->hidden);
    if (oos_arch_has(a, "attn_res_block_size")) oos_put_norm(a, "residual_attention", oos_mul(4, m->hidden));
    if (!a->now.moe) {
        oos_put_gated_mlp(a, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", m->hidden, m->intermediate,
                          false);
        return;
    }
    oos_put_plain(a, OOS_MODULE_ROUTER, "block_sparse_moe.gate", m->moe.experts, m->hidden,
                  OOS_DTYPE_UNKNOWN);
    oos_put_plain(a, OOS_MODULE_ROUTER, "block_sparse_moe.gate.e_score_correction_bias", m->moe.experts, 1,
                  OOS_DTYPE_F32);
    oos_put_gated_mlp(a, OOS_MODULE_SHARED_EXPERT, "block_sparse_moe.shared_experts.gate_up_proj",
                      "block_sparse_moe.shared_experts.down_proj", m->hidden, m->moe.shared_intermediate,
                      false);
    oos_put_experts(a, "block_sparse_moe.experts", m->moe.experts, put_narrow_stream(a), m->moe.intermediate,
                    true, false);
}

/* Kimi counts its layers from one. */
static void kimi_layer(oos_arch *a, uint64_t i)
{
    const json_t *linear = json_object_get(a->text, "linear_attn_config");
    kda const k = kda_of(a);
    a->now.moe = a->model->moe.experts > 0 && i >= oos_arch_u64(a, "first_k_dense_replace", 0);
    if (oos_arch_list_holds(json_object_get(linear, "kda_layers"), i + 1)) {
        oos_arch_attention(a, (oos_attention){.mixer = OOS_MIXER_KDA,
                                              .key_heads = k.heads,
                                              .value_heads = k.heads,
                                              .key_dim = k.dim,
                                              .value_dim_state = k.dim,
                                              .conv_kernel = k.kernel,
                                              .conv_dim = oos_mul(3, oos_mul(k.heads, k.dim)),
                                              .state_dtype = OOS_DTYPE_F32});
        put_kda(a, &k);
    } else {
        oos_attention const mla = oos_arch_latent(a);
        oos_arch_attention(a, mla);
        if (oos_arch_yes(a, "mla_use_output_gate", false) && mla.q_lora_rank > 0)
            put_gated_latent(a, &mla);
        else
            oos_put_latent(a, &mla, false);
    }
    kimi_mlp(a);
}

void oos_build_kimi_linear(oos_arch *a)
{
    oos_model *m = a->model;
    m->head_dim = oos_add(oos_arch_u64(a, "kv_lora_rank", 512), oos_arch_u64(a, "qk_rope_head_dim", 64));
    m->kv_heads = 1;
    m->moe.shared_intermediate = oos_mul(m->moe.shared, m->moe.intermediate);
    oos_arch_layers(a, oos_arch_layer_count(a), kimi_layer);
    oos_put_ends(a, 1);
    if (!oos_arch_has(a, "attn_res_block_size")) return;
    oos_range_open(a, a->prefix);
    oos_put_norm(a, "output_attn_res", oos_mul(2, m->hidden));
    oos_range_close(a, m->every_stage);
}

/* ---- LFM2 ---- */

/* block_auto_adjust_ff_dim: two thirds, times a factor, rounded up (vLLM 0.32, lfm2.py). */
static uint64_t lfm2_inner(const oos_arch *a)
{
    uint64_t inner = oos_arch_u64(a, "block_ff_dim", a->model->intermediate);
    uint64_t const unit = oos_arch_u64(a, "block_multiple_of", 256);
    if (!oos_arch_yes(a, "block_auto_adjust_ff_dim", true)) return inner;
    inner = oos_mul(2, inner) / 3;
    double const factor = oos_arch_f64(a, "block_ffn_dim_multiplier", 1.0);
    double const exact = (double)inner * factor;
    if (exact >= 0 && exact < (double)OOS_JSON_MAX) inner = (uint64_t)exact;
    return unit > 0 ? oos_round_up(inner, unit) : inner;
}

/* The first layers are dense, of the width that is written. */
static void lfm2_moe(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    a->now.moe = i >= oos_arch_u64(a, "num_dense_layers", 2);
    if (!a->now.moe) {
        oos_put_gated_mlp(a, OOS_MODULE_MLP, "feed_forward.w13", "feed_forward.w2", m->hidden,
                          m->intermediate, false);
        return;
    }
    oos_put_plain(a, OOS_MODULE_ROUTER, "feed_forward.gate", m->moe.experts, m->hidden, OOS_DTYPE_UNKNOWN);
    if (oos_arch_yes(a, "use_expert_bias", true))
        oos_put_plain(a, OOS_MODULE_ROUTER, "feed_forward.gate.bias", m->moe.experts, 1, OOS_DTYPE_F32);
    oos_put_experts(a, "feed_forward.experts", m->moe.experts, m->hidden, m->moe.intermediate, true, false);
}

static void lfm2_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    const json_t *types = oos_arch_list(a, "layer_types");
    bool const full = types ? oos_arch_item_is(types, i, "full_attention")
                            : oos_arch_list_holds(oos_arch_list(a, "full_attn_idxs"), i);
    bool const bias = oos_arch_yes(a, "conv_bias", false);
    uint64_t const conv = oos_arch_u64(a, "conv_dim", m->hidden), kernel = oos_arch_u64(a, "conv_L_cache", 3);
    if (full) {
        oos_attention const plain = oos_arch_plain(a, 0);
        oos_arch_attention(a, plain);
        oos_put_qkv(a, "self_attn.qkv_proj", &plain, 1, false);
        oos_put_row(a, OOS_MODULE_ATTN, "self_attn.out_proj", m->hidden, oos_mul(m->heads, m->head_dim),
                    false);
        oos_put_norm(a, "self_attn.q_layernorm", m->head_dim);
        oos_put_norm(a, "self_attn.k_layernorm", m->head_dim);
        oos_put_kv_scales(a);
    } else {
        oos_arch_attention(a,
                           (oos_attention){.mixer = OOS_MIXER_CONV, .conv_kernel = kernel, .conv_dim = conv});
        oos_put(
            a, OOS_MODULE_MIXER,
            (oos_matrix){
                .name = "short_conv.conv", .out = conv, .in = kernel, .split = OOS_SPLIT_OUT, .bias = bias});
        oos_put_column(a, OOS_MODULE_MIXER, "short_conv.in_proj", oos_mul(3, conv), m->hidden, bias, 3);
        oos_put_row(a, OOS_MODULE_MIXER, "short_conv.out_proj", m->hidden, conv, bias);
    }
    if (strcmp(m->architecture, "Lfm2MoeForCausalLM") == 0)
        lfm2_moe(a, i);
    else
        oos_put_gated_mlp(a, OOS_MODULE_MLP, "feed_forward.w13", "feed_forward.w2", m->hidden, lfm2_inner(a),
                          false);
    oos_put_norm(a, "operator_norm", m->hidden);
    oos_put_norm(a, "ffn_norm", m->hidden);
}

void oos_build_lfm2(oos_arch *a)
{
    a->model->tied = oos_arch_yes(a, "tie_embedding", oos_arch_yes(a, "tie_word_embeddings", true));
    oos_arch_layers(a, oos_arch_layer_count(a), lfm2_layer);
    oos_put_ends(a, 1);
}

/* Attention as usual, experts in most layers: Mixtral, Qwen MoE, GLM-4 MoE, MiniMax, GPT-OSS, Step. */
#include "model/arch/arch.h"

static void put_attention(oos_arch *a, const oos_attention *t, bool bias, bool o_bias, bool head_norms)
{
    const oos_model *m = a->model;
    oos_put_norm(a, "input_layernorm", m->hidden);
    oos_put_qkv(a, "self_attn.qkv_proj", t, 1, bias);
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", m->hidden, oos_mul(t->heads, t->head_dim_v), o_bias);
    if (head_norms) {
        oos_put_norm(a, "self_attn.q_norm", t->head_dim);
        oos_put_norm(a, "self_attn.k_norm", t->head_dim);
    }
    oos_put_kv_scales(a);
    oos_put_norm(a, "post_attention_layernorm", m->hidden);
}

static void put_dense(oos_arch *a)
{
    oos_put_gated_mlp(a, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", a->model->hidden,
                      a->model->intermediate, false);
}

/* ---- Qwen 2 and 3 MoE ---- */

static void qwen_moe_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    uint64_t const step = oos_arch_u64(a, "decoder_sparse_step", 1);
    bool const second = strcmp(m->architecture, "Qwen2MoeForCausalLM") == 0;
    a->now.moe = m->moe.experts > 0 && step > 0 && (i + 1) % step == 0 &&
                 !oos_arch_list_holds(oos_arch_list(a, "mlp_only_layers"), i);
    bool const slides = oos_arch_yes(a, "use_sliding_window", false);
    oos_attention const plain = oos_arch_plain(a, slides ? oos_arch_window(a, i, 0, 4096) : 0);
    oos_arch_attention(a, plain);
    put_attention(a, &plain,
                  second ? oos_arch_yes(a, "qkv_bias", true) : oos_arch_yes(a, "attention_bias", false),
                  false, !second);
    if (!a->now.moe) {
        put_dense(a);
        return;
    }
    oos_put_copy(a, OOS_MODULE_ROUTER, "mlp.gate", m->moe.experts, m->hidden, false);
    if (m->moe.shared_intermediate > 0) {
        oos_put_plain(a, OOS_MODULE_SHARED_EXPERT, "mlp.shared_expert_gate", 1, m->hidden, OOS_DTYPE_UNKNOWN);
        oos_put_gated_mlp(a, OOS_MODULE_SHARED_EXPERT, "mlp.shared_expert.gate_up_proj",
                          "mlp.shared_expert.down_proj", m->hidden, m->moe.shared_intermediate, false);
    }
    oos_put_experts(a, "mlp.experts", m->moe.experts, m->hidden, m->moe.intermediate, true, false);
}

void oos_build_qwen_moe(oos_arch *a)
{
    a->model->moe.shared_intermediate = oos_arch_u64(a, "shared_expert_intermediate_size", 0);
    oos_arch_layers(a, oos_arch_layer_count(a), qwen_moe_layer);
    oos_put_ends(a);
}

/* ---- GLM-4 MoE ---- */

static void glm4_moe_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    oos_attention const plain = oos_arch_plain(a, 0);
    a->now.moe = m->moe.experts > 0 && i >= oos_arch_u64(a, "first_k_dense_replace", 1);
    oos_arch_attention(a, plain);
    put_attention(a, &plain, oos_arch_yes(a, "attention_bias", false), false,
                  oos_arch_yes(a, "use_qk_norm", false));
    if (!a->now.moe) {
        put_dense(a);
        return;
    }
    oos_put_plain(a, OOS_MODULE_ROUTER, "mlp.gate", m->moe.experts, m->hidden, OOS_DTYPE_F32);
    oos_put_plain(a, OOS_MODULE_ROUTER, "mlp.gate.e_score_correction_bias", m->moe.experts, 1, OOS_DTYPE_F32);
    if (m->moe.shared > 0)
        oos_put_gated_mlp(a, OOS_MODULE_SHARED_EXPERT, "mlp.shared_experts.gate_up_proj",
                          "mlp.shared_experts.down_proj", m->hidden, m->moe.shared_intermediate, false);
    oos_put_experts(a, "mlp.experts", m->moe.experts, m->hidden, m->moe.intermediate, true, false);
}

static void glm4_moe_mtp_layer(oos_arch *a, uint64_t i)
{
    glm4_moe_layer(a, oos_add(a->model->layer_count, i));
}

void oos_build_glm4_moe(oos_arch *a)
{
    oos_model *m = a->model;
    m->moe.shared_intermediate = oos_mul(m->moe.shared, m->moe.intermediate);
    oos_arch_layers(a, oos_arch_layer_count(a), glm4_moe_layer);
    oos_put_ends(a);
    uint64_t const mtp = oos_arch_u64(a, "num_nextn_predict_layers", 0);
    oos_arch_mtp_layers(a, mtp, a->layer_prefix, m->layer_count, glm4_moe_mtp_layer);
    if (mtp == 0) return;
    oos_range_open(a, a->prefix);
    oos_put_norm(a, "enorm", m->hidden);
    oos_put_norm(a, "hnorm", m->hidden);
    oos_put_norm(a, "shared_head.norm", m->hidden);
    oos_put_plain(a, OOS_MODULE_OTHER, "eh_proj", m->hidden, oos_mul(2, m->hidden), OOS_DTYPE_UNKNOWN);
    oos_range_close(a, m->mtp_matrices);
}

/* ---- Mixtral, MiniMax M2 ---- */

static void mixtral_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    oos_attention const plain = oos_arch_plain(a, oos_arch_window(a, i, 0, 0));
    a->now.moe = true;
    oos_arch_attention(a, plain);
    put_attention(a, &plain, false, false, false);
    oos_put_plain(a, OOS_MODULE_ROUTER, "block_sparse_moe.gate", m->moe.experts, m->hidden,
                  OOS_DTYPE_UNKNOWN);
    oos_put_experts(a, "block_sparse_moe.experts", m->moe.experts, m->hidden, m->intermediate, true, false);
}

void oos_build_mixtral(oos_arch *a)
{
    a->model->moe.intermediate = a->model->intermediate;
    oos_arch_layers(a, oos_arch_layer_count(a), mixtral_layer);
    oos_put_ends(a);
}

/* MiniMax M2 normalises queries and keys over all heads of a rank, and routes in fp32. */
static void minimax_m2_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    const json_t *windows = oos_arch_list(a, "attn_window_size_list");
    oos_attention const plain = oos_arch_plain(a, windows ? oos_arch_item_u64(windows, i, 0) : 0);
    a->now.moe = true;
    oos_arch_attention(a, plain);
    put_attention(a, &plain, oos_arch_yes(a, "attention_bias", false), false, false);
    if (oos_arch_yes(a, "use_qk_norm", true)) {
        oos_put_divided(a, OOS_MODULE_NORM, "self_attn.q_norm", oos_mul(m->heads, m->head_dim), 1,
                        OOS_DTYPE_UNKNOWN);
        oos_put(a, OOS_MODULE_NORM,
                (oos_matrix){.name = "self_attn.k_norm",
                             .out = oos_mul(m->kv_heads, m->head_dim),
                             .in = 1,
                             .split = OOS_SPLIT_KV,
                             .kv_out = oos_mul(m->kv_heads, m->head_dim),
                             .kv_heads = m->kv_heads});
    }
    oos_put_plain(a, OOS_MODULE_ROUTER, "block_sparse_moe.gate", m->moe.experts, m->hidden, OOS_DTYPE_F32);
    if (oos_arch_yes(a, "use_routing_bias", true))
        oos_put_plain(a, OOS_MODULE_ROUTER, "block_sparse_moe.e_score_correction_bias", m->moe.experts, 1,
                      OOS_DTYPE_F32);
    oos_put_experts(a, "block_sparse_moe.experts", m->moe.experts, m->hidden, m->intermediate, true, false);
}

void oos_build_minimax_m2(oos_arch *a)
{
    a->model->moe.intermediate = a->model->intermediate;
    oos_arch_layers(a, oos_arch_layer_count(a), minimax_m2_layer);
    oos_put_ends(a);
}

/* ---- GPT-OSS ---- */

/* Every other layer slides, beginning with the first; all have sinks. */
static void gpt_oss_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    oos_attention plain = oos_arch_plain(a, i % 2 == 0 ? oos_arch_u64(a, "sliding_window", 128) : 0);
    plain.sinks = true;
    a->now.moe = true;
    oos_arch_attention(a, plain);
    oos_put_norm(a, "input_layernorm", m->hidden);
    oos_put_divided(a, OOS_MODULE_ATTN, "attn.sinks", m->heads, 1, OOS_DTYPE_UNKNOWN);
    oos_put_qkv(a, "attn.qkv_proj", &plain, 1, true);
    oos_put_row(a, OOS_MODULE_ATTN, "attn.o_proj", m->hidden, oos_mul(m->heads, m->head_dim), true);
    oos_put_norm(a, "post_attention_layernorm", m->hidden);
    oos_put(a, OOS_MODULE_ROUTER,
            (oos_matrix){.name = "mlp.router", .out = m->moe.experts, .in = m->hidden, .bias = true});
    oos_put_experts(a, "mlp.experts", m->moe.experts, m->hidden, m->intermediate, true, true);
}

void oos_build_gpt_oss(oos_arch *a)
{
    a->model->moe.intermediate = a->model->intermediate;
    oos_arch_layers(a, oos_arch_layer_count(a), gpt_oss_layer);
    oos_put_ends(a);
}

/* ---- Step 3.5 and 3.7 ---- */

/* moe_layers_enum is a text, "3,4,5"; without it every layer but the first has experts. */
static bool step3_is_moe(const oos_arch *a, uint64_t i)
{
    const char *list = oos_arch_str(a, "moe_layers_enum");
    if (oos_arch_has(a, "first_k_dense_replace")) return i >= oos_arch_u64(a, "first_k_dense_replace", 0);
    if (!list) return i >= 1;
    for (const char *at = list; *at;) {
        uint64_t number = 0;
        size_t digits = 0;
        for (; *at >= '0' && *at <= '9' && digits < 9; at++, digits++)
            number = number * 10 + (uint64_t)(*at - '0');
        if (digits > 0 && number == i) return true;
        while (*at && !(*at >= '0' && *at <= '9')) at++;
    }
    return false;
}

/* layer_types, with other head counts in the layers that attention_other_setting names. */
static void step3_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    const json_t *types = oos_arch_list(a, "layer_types");
    const json_t *other = json_object_get(a->text, "attention_other_setting");
    const char *other_type = NULL;
    bool const slides = types ? oos_arch_item_is(types, i, "sliding_attention") : i % 2 == 0;
    oos_attention plain = oos_arch_plain(a, slides ? oos_arch_u64(a, "sliding_window", 0) : 0);
    if (oos_json_str(other, "attention_type", &other_type) && oos_arch_item_is(types, i, other_type)) {
        (void)oos_json_u64(other, "num_attention_heads", &plain.heads);
        (void)oos_json_u64(other, "num_attention_groups", &plain.kv_heads);
        if (oos_json_u64(other, "head_dim", &plain.head_dim)) plain.head_dim_v = plain.head_dim;
    }
    a->now.moe = m->moe.experts > 0 && step3_is_moe(a, i);
    oos_arch_attention(a, plain);
    put_attention(a, &plain, false, false, true);
    if (oos_arch_yes(a, "use_head_wise_attn_gate", false))
        oos_put_column(a, OOS_MODULE_ATTN, "self_attn.g_proj", plain.heads, m->hidden, false, 1);
    if (!a->now.moe) {
        put_dense(a);
        return;
    }
    oos_put_plain(a, OOS_MODULE_ROUTER, "moe.gate", m->moe.experts, m->hidden, OOS_DTYPE_F32);
    oos_put_plain(a, OOS_MODULE_ROUTER, "moe.router_bias", m->moe.experts, 1, OOS_DTYPE_F32);
    oos_put_gated_mlp(a, OOS_MODULE_SHARED_EXPERT, "moe.share_expert.gate_up_proj",
                      "moe.share_expert.down_proj", m->hidden, m->moe.shared_intermediate, false);
    oos_put_experts(a, "moe.experts", m->moe.experts, m->hidden, m->moe.intermediate, true, false);
}

void oos_build_step3(oos_arch *a)
{
    a->model->moe.shared_intermediate = oos_arch_u64(a, "share_expert_dim", 0);
    oos_arch_layers(a, oos_arch_layer_count(a), step3_layer);
    oos_put_ends(a);
}

/* ---- Phi-3.5 MoE, OLMoE ---- */

/* Layer norms with biases, and biases in attention and head. */
static void phimoe_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    bool const bias = oos_arch_yes(a, "attention_bias", false);
    oos_attention const plain = oos_arch_plain(a, oos_arch_window(a, i, 0, 0));
    a->now.moe = true;
    oos_arch_attention(a, plain);
    put_attention(a, &plain, bias, bias, false);
    oos_put_norm(a, "norm.biases", oos_mul(2, m->hidden));
    oos_put_plain(a, OOS_MODULE_ROUTER, "block_sparse_moe.gate", m->moe.experts, m->hidden,
                  OOS_DTYPE_UNKNOWN);
    oos_put_experts(a, "block_sparse_moe.experts", m->moe.experts, m->hidden, m->intermediate, true, false);
}

void oos_build_phimoe(oos_arch *a)
{
    oos_model *m = a->model;
    m->moe.intermediate = m->intermediate;
    oos_arch_layers(a, oos_arch_layer_count(a), phimoe_layer);
    oos_put_ends(a);
    oos_range_open(a, a->prefix);
    oos_put_norm(a, "norm.bias", m->hidden);
    oos_put(a, OOS_MODULE_LM_HEAD,
            (oos_matrix){.name = "lm_head.bias", .out = m->vocab, .in = 1, .split = OOS_SPLIT_VOCAB});
    oos_range_close(a, m->every_stage);
}

/* Queries and keys are normalised over all heads. */
static void olmoe_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    const oos_model *m = a->model;
    oos_attention const plain = oos_arch_plain(a, 0);
    a->now.moe = true;
    oos_arch_attention(a, plain);
    put_attention(a, &plain, oos_arch_yes(a, "attention_bias", false), false, false);
    oos_put_divided(a, OOS_MODULE_NORM, "self_attn.q_norm", oos_mul(m->heads, m->head_dim), 1,
                    OOS_DTYPE_UNKNOWN);
    oos_put_divided(a, OOS_MODULE_NORM, "self_attn.k_norm", oos_mul(m->kv_heads, m->head_dim), 1,
                    OOS_DTYPE_UNKNOWN);
    oos_put_plain(a, OOS_MODULE_ROUTER, "mlp.gate", m->moe.experts, m->hidden, OOS_DTYPE_UNKNOWN);
    oos_put_experts(a, "mlp.experts", m->moe.experts, m->hidden, m->intermediate, true, false);
}

void oos_build_olmoe(oos_arch *a)
{
    a->model->moe.intermediate = a->model->intermediate;
    oos_arch_layers(a, oos_arch_layer_count(a), olmoe_layer);
    oos_put_ends(a);
}

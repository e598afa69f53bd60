/* Experts behind ordinary attention, routed by a gate with or without a bias: ERNIE 4.5 MoE, Ling and Ring (BailingMoe), the
 * first DeepSeek MoE, MiniCPM. vLLM 0.32, the model files of these names. */
#include "model/arch/arch.h"

typedef struct traits {
    bool qkv_bias, o_bias, mlp_bias;
    uint64_t head_norm_vectors; /* of the head size, for queries and keys together; 0: none */
    oos_dtype router;           /* OOS_DTYPE_UNKNOWN: the model's */
    bool router_bias;           /* in fp32 */
} traits;

static void put_attention(oos_arch *a, const traits *t)
{
    const oos_model *m = a->model;
    oos_attention const plain = oos_arch_plain(a, 0);
    oos_arch_attention(a, plain);
    oos_put_norm(a, "input_layernorm", m->hidden);
    oos_put_qkv(a, "self_attn.qkv_proj", &plain, 1, t->qkv_bias);
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", m->hidden, oos_mul(plain.heads, plain.head_dim),
                t->o_bias);
    oos_put_norm(a, "self_attn.qk_norm", oos_mul(t->head_norm_vectors, plain.head_dim));
    oos_put_kv_scales(a);
    oos_put_norm(a, "post_attention_layernorm", m->hidden);
}

static void put_mlp(oos_arch *a, const traits *t)
{
    const oos_model *m = a->model;
    if (!a->now.moe) {
        oos_put_gated_mlp(a, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", m->hidden, m->intermediate,
                          t->mlp_bias);
        return;
    }
    oos_put_plain(a, OOS_MODULE_ROUTER, "mlp.gate", m->moe.experts, m->hidden, t->router);
    if (t->router_bias)
        oos_put_plain(a, OOS_MODULE_ROUTER, "mlp.gate.bias", m->moe.experts, 1, OOS_DTYPE_F32);
    if (m->moe.shared > 0)
        oos_put_gated_mlp(a, OOS_MODULE_SHARED_EXPERT, "mlp.shared_experts.gate_up_proj",
                          "mlp.shared_experts.down_proj", m->hidden, m->moe.shared_intermediate, t->mlp_bias);
    oos_put_experts(a, "mlp.experts", m->moe.experts, m->hidden, m->moe.intermediate, true, false);
}

/* The first and the last layers may be dense; only those have biases in the MLP. */
static void ernie_moe_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    uint64_t const every = oos_arch_u64(a, "moe_layer_interval", 1),
                   last = oos_arch_u64(a, "moe_layer_end_index", m->layer_count ? m->layer_count - 1 : 0);
    bool const bias = oos_arch_yes(a, "use_bias", false);
    a->now.moe = oos_arch_yes(a, "use_moe", m->moe.experts > 0) && every > 0 && (i + 1) % every == 0 &&
                 i >= oos_arch_u64(a, "moe_layer_start_index", 0) && i <= last;
    traits const t = {
        .qkv_bias = bias, .mlp_bias = bias && !a->now.moe, .router = OOS_DTYPE_F32, .router_bias = true};
    put_attention(a, &t);
    put_mlp(a, &t);
}

void oos_build_ernie_moe(oos_arch *a)
{
    oos_model *m = a->model;
    uint64_t const layers = oos_arch_layer_count(a);
    m->layer_count = layers;
    m->moe.per_token = oos_arch_u64(a, "moe_k", m->moe.per_token);
    m->moe.shared = oos_arch_u64(a, "moe_num_shared_experts", 0);
    m->moe.shared_intermediate = oos_mul(m->moe.shared, m->moe.intermediate);
    oos_arch_layers(a, layers, ernie_moe_layer);
    oos_put_ends(a);
}

static void bailing_layer(oos_arch *a, uint64_t i)
{
    const char *router = oos_arch_str(a, "router_dtype");
    bool const bias = oos_arch_yes(a, "use_bias", false), rms = oos_arch_yes(a, "use_rmsnorm", false);
    a->now.moe = i >= oos_arch_u64(a, "first_k_dense_replace", 0);
    traits const t = {.qkv_bias = bias || oos_arch_yes(a, "use_qkv_bias", false),
                      .o_bias = bias,
                      .mlp_bias = bias,
                      .head_norm_vectors = !oos_arch_yes(a, "use_qk_norm", false) ? 0
                                           : rms                                  ? 2
                                                                                  : 4,
                      .router = !router                       ? OOS_DTYPE_UNKNOWN
                                : strcmp(router, "fp32") == 0 ? OOS_DTYPE_F32
                                                              : OOS_DTYPE_BF16,
                      .router_bias = oos_arch_yes(a, "moe_router_enable_expert_bias", false)};
    put_attention(a, &t);
    put_mlp(a, &t);
}

void oos_build_bailing(oos_arch *a)
{
    oos_model *m = a->model;
    uint64_t const inner = oos_arch_u64(a, "moe_shared_expert_intermediate_size", m->moe.intermediate);
    m->moe.shared_intermediate = oos_mul(m->moe.shared, inner);
    oos_arch_layers(a, oos_arch_layer_count(a), bailing_layer);
    oos_put_ends(a);
}

static void deepseek_moe_layer(oos_arch *a, uint64_t i)
{
    uint64_t const every = oos_arch_u64(a, "moe_layer_freq", 1);
    a->now.moe = a->model->moe.experts > 0 && i >= oos_arch_u64(a, "first_k_dense_replace", 0) && every > 0 &&
                 i % every == 0;
    const char *method = oos_arch_str(a, "topk_method");
    traits const t = {.router_bias = method && strcmp(method, "noaux_tc") == 0};
    put_attention(a, &t);
    put_mlp(a, &t);
}

void oos_build_deepseek_moe(oos_arch *a)
{
    oos_model *m = a->model;
    m->moe.shared_intermediate = oos_mul(m->moe.shared, m->moe.intermediate);
    oos_arch_layers(a, oos_arch_layer_count(a), deepseek_moe_layer);
    oos_put_ends(a);
}

/* Experts in every layer, or in none. */
static void minicpm_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    a->now.moe = a->model->moe.experts > 0;
    put_attention(a, &(traits){0});
    put_mlp(a, &(traits){0});
}

void oos_build_minicpm(oos_arch *a)
{
    a->model->moe.intermediate = a->model->intermediate;
    a->model->head_dim = a->model->heads ? a->model->hidden / a->model->heads : 0;
    oos_arch_layers(a, oos_arch_layer_count(a), minicpm_layer);
    oos_put_ends(a);
}

/* ---- an architecture that is not known ---- */

/* By the fields that most configs share: which layers have experts, how many, how wide, and those that every token takes. */
static void unknown_moe_layer(oos_arch *a, uint64_t i)
{
    uint64_t const every =
        oos_arch_u64(a, "moe_layer_freq",
                     oos_arch_u64(a, "decoder_sparse_step", oos_arch_u64(a, "moe_layer_interval", 1)));
    a->now.moe = i >= oos_arch_u64(a, "first_k_dense_replace", 0) && every > 0 && i % every == 0;
    bool const bias = oos_arch_yes(a, "attention_bias", oos_arch_yes(a, "use_bias", false));
    traits const t = {.qkv_bias = bias, .o_bias = bias};
    put_attention(a, &t);
    put_mlp(a, &t);
}

void oos_build_unknown(oos_arch *a)
{
    oos_model *m = a->model;
    m->common = true;
    if (m->moe.experts == 0) {
        oos_build_common(a);
        return;
    }
    uint64_t const one = oos_arch_u64(a, "shared_expert_intermediate_size", 0);
    if (one > 0 && m->moe.shared == 0) m->moe.shared = 1;
    m->moe.shared_intermediate = one ? one : oos_mul(m->moe.shared, m->moe.intermediate);
    oos_arch_layers(a, oos_arch_layer_count(a), unknown_moe_layer);
    oos_put_ends(a);
}

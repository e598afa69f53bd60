/* Latent attention: DeepSeek V2, V3, V3.2 and the models that took it over (GLM-4.7 Flash, GLM-5, Kimi K2). */
#include "model/arch/arch.h"

oos_attention oos_arch_latent(const oos_arch *a)
{
    oos_attention mla = {.mixer = OOS_MIXER_MLA,
                         .heads = a->model->heads,
                         .kv_heads = 1,
                         .kv_lora_rank = oos_arch_u64(a, "kv_lora_rank", 512),
                         .q_lora_rank = oos_arch_u64(a, "q_lora_rank", 0),
                         .rope_dim = oos_arch_u64(a, "qk_rope_head_dim", 64),
                         .nope_dim = oos_arch_u64(a, "qk_nope_head_dim", 128),
                         .value_dim = oos_arch_u64(a, "v_head_dim", 128)};
    mla.head_dim = oos_add(mla.kv_lora_rank, mla.rope_dim);
    return mla;
}

/* The down projections are a copy on every rank, fused where the queries are compressed too; the up projections are
 * divided by heads. */
void oos_put_latent(oos_arch *a, const oos_attention *t, bool fused)
{
    uint64_t const hidden = a->model->hidden;
    bool const bias = oos_arch_yes(a, "attention_bias", false);
    if (t->q_lora_rank > 0 && fused) {
        oos_put(a, OOS_MODULE_ATTN,
                (oos_matrix){.name = "self_attn.fused_qkv_a_proj",
                             .out = oos_add(t->q_lora_rank, t->head_dim),
                             .in = hidden,
                             .linear = true,
                             .bias = bias,
                             .shards = 2});
    } else {
        if (t->q_lora_rank > 0)
            oos_put_copy(a, OOS_MODULE_ATTN, "self_attn.q_a_proj", t->q_lora_rank, hidden, bias);
        oos_put_copy(a, OOS_MODULE_ATTN, "self_attn.kv_a_proj_with_mqa", t->head_dim, hidden, bias);
    }
    oos_put_latent_up(a, t);
}

void oos_put_latent_up(oos_arch *a, const oos_attention *t)
{
    uint64_t const hidden = a->model->hidden;
    uint64_t const query = oos_mul(t->heads, oos_add(t->nope_dim, t->rope_dim));
    if (t->q_lora_rank > 0) {
        oos_put_norm(a, "self_attn.q_a_layernorm", t->q_lora_rank);
        oos_put_column(a, OOS_MODULE_ATTN, "self_attn.q_b_proj", query, t->q_lora_rank, false, 1);
    } else {
        oos_put_column(a, OOS_MODULE_ATTN, "self_attn.q_proj", query, hidden, false, 1);
    }
    oos_put_norm(a, "self_attn.kv_a_layernorm", t->kv_lora_rank);
    oos_put(a, OOS_MODULE_ATTN,
            (oos_matrix){.name = "self_attn.kv_b_proj",
                         .out = oos_mul(t->heads, oos_add(t->nope_dim, t->value_dim)),
                         .in = t->kv_lora_rank,
                         .split = OOS_SPLIT_OUT,
                         .linear = true,
                         .unfolds = true});
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", hidden, oos_mul(t->heads, t->value_dim),
                oos_arch_yes(a, "attention_bias", false));
    oos_put_kv_scales(a);
}

static void put_indexer(oos_arch *a, const oos_attention *t)
{
    if (t->indexer_dim == 0) return;
    oos_put_copy(a, OOS_MODULE_ATTN, "self_attn.indexer.wq_b", oos_mul(t->indexer_heads, t->indexer_dim),
                 t->q_lora_rank, false);
    oos_put_plain(a, OOS_MODULE_ATTN, "self_attn.indexer.wk_weights_proj",
                  oos_add(t->indexer_dim, t->indexer_heads), a->model->hidden, OOS_DTYPE_UNKNOWN);
    oos_put_plain(a, OOS_MODULE_NORM, "self_attn.indexer.k_norm", oos_mul(2, t->indexer_dim), 1,
                  OOS_DTYPE_F32);
}

/* vLLM 0.32, deepseek_v32/attention.py: GLM-5.2 lets most layers reuse the choice of an earlier indexer. */
static bool has_indexer(const oos_arch *a, uint64_t i)
{
    if (!oos_arch_has(a, "index_topk")) return false;
    const char *pattern = oos_arch_str(a, "index_topk_pattern");
    if (i >= oos_arch_u64(a, "num_hidden_layers", 0)) return true; /* the drafter chooses for itself */
    if (pattern) return i >= strlen(pattern) || pattern[i] != 'S';
    uint64_t const every = oos_arch_u64(a, "index_topk_freq", 1);
    uint64_t const offset = oos_arch_u64(a, "index_skip_topk_offset", 2);
    return every <= 1 || oos_sub(i + 1, offset) % every == 0;
}

/* The GLM classes keep the router in fp32 (vLLM 0.32, glm4_moe_lite.py). */
static oos_dtype router_dtype(const oos_arch *a)
{
    return strcmp(a->model->architecture, "Glm4MoeLiteForCausalLM") == 0 ? OOS_DTYPE_F32 : OOS_DTYPE_UNKNOWN;
}

/* What the config classes say where the file does not. */
static bool corrects_unasked(const oos_arch *a)
{
    return router_dtype(a) == OOS_DTYPE_F32 || strcmp(a->model->architecture, "AXK1ForCausalLM") == 0;
}

static void put_experts(oos_arch *a)
{
    const oos_model *m = a->model;
    const char *method = oos_arch_str(a, "topk_method");
    bool const corrected = method ? strcmp(method, "noaux_tc") == 0 : corrects_unasked(a);
    oos_put_plain(a, OOS_MODULE_ROUTER, "mlp.gate", m->moe.experts, m->hidden, router_dtype(a));
    if (corrected)
        oos_put_plain(a, OOS_MODULE_ROUTER, "mlp.gate.e_score_correction_bias", m->moe.experts, 1,
                      OOS_DTYPE_F32);
    if (m->moe.shared > 0)
        oos_put_gated_mlp(a, OOS_MODULE_SHARED_EXPERT, "mlp.shared_experts.gate_up_proj",
                          "mlp.shared_experts.down_proj", m->hidden, m->moe.shared_intermediate, false);
    oos_put_experts(a, "mlp.experts", m->moe.experts, m->hidden, m->moe.intermediate, true, false);
}

static bool is_moe(const oos_arch *a, uint64_t i)
{
    uint64_t const every = oos_arch_u64(a, "moe_layer_freq", 1);
    return a->model->moe.experts > 0 && i >= oos_arch_u64(a, "first_k_dense_replace", 0) &&
           (every <= 1 || i % every == 0);
}

static void deepseek_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    oos_attention mla = oos_arch_latent(a);
    if (has_indexer(a, i)) {
        mla.indexer_heads = oos_arch_u64(a, "index_n_heads", 64);
        mla.indexer_dim = oos_arch_u64(a, "index_head_dim", 128);
        mla.indexer_topk = oos_arch_u64(a, "index_topk", 2048);
    }
    a->now.moe = is_moe(a, i);
    oos_arch_attention(a, mla);

    oos_put_norm(a, "input_layernorm", m->hidden);
    oos_put_latent(a, &mla, true);
    put_indexer(a, &mla);
    oos_put_norm(a, "post_attention_layernorm", m->hidden);
    if (a->now.moe)
        put_experts(a);
    else
        oos_put_gated_mlp(a, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", m->hidden, m->intermediate,
                          false);
    oos_put_also(a);
}

static void mtp_layer(oos_arch *a, uint64_t i)
{
    deepseek_layer(a, oos_add(a->model->layer_count, i));
}

void oos_build_deepseek(oos_arch *a)
{
    oos_model *m = a->model;
    m->head_dim = oos_arch_latent(a).head_dim;
    m->kv_heads = 1;
    m->moe.shared_intermediate = oos_mul(m->moe.shared, m->moe.intermediate);
    oos_arch_layers(a, oos_arch_layer_count(a), deepseek_layer);
    oos_put_ends(a, 1);
    oos_put_nextn(a, mtp_layer);
}

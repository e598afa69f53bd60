/* Latent attention: DeepSeek V2, V3, V3.2 and the models that took it over (GLM-4.7 Flash, GLM-5, Kimi K2); DeepSeek
 * V4, which caches a compressed stream beside a sliding one. */
#include "input/arch.h"

static oos_attention latent(const oos_arch *a)
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

/* vLLM 0.32, deepseek_v32/attention.py: GLM-5.2 lets most layers reuse the choice of an earlier indexer. */
static bool has_indexer(const oos_arch *a, uint64_t i)
{
    if (!oos_arch_has(a, "index_topk")) return false;
    const char *pattern = oos_arch_str(a, "index_topk_pattern");
    if (pattern) return i >= strlen(pattern) || pattern[i] != 'S';
    uint64_t const every = oos_arch_u64(a, "index_topk_freq", 1);
    uint64_t const offset = oos_arch_u64(a, "index_skip_topk_offset", 2);
    return every <= 1 || oos_sub(i + 1, offset) % every == 0;
}

static void deepseek_layer(oos_arch *a, uint64_t i)
{
    oos_attention mla = latent(a);
    if (has_indexer(a, i)) {
        mla.indexer_heads = oos_arch_u64(a, "index_n_heads", 64);
        mla.indexer_dim = oos_arch_u64(a, "index_head_dim", 128);
        mla.indexer_topk = oos_arch_u64(a, "index_topk", 2048);
    }
    a->now.moe = a->model->moe.experts > 0 && i >= oos_arch_u64(a, "first_k_dense_replace", 0);
    oos_arch_attention(a, mla);
}

static void mtp_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    deepseek_layer(a, a->model->layer_count);
}

void oos_build_deepseek(oos_arch *a)
{
    a->model->head_dim = latent(a).head_dim;
    a->model->kv_heads = 1;
    oos_arch_layers(a, oos_arch_layer_count(a), deepseek_layer);
    oos_arch_mtp_layers(a, oos_arch_u64(a, "num_nextn_predict_layers", 0), mtp_layer);
}

/* Every layer has a sliding cache; a compress ratio above 1 adds one state per that many tokens, and ratio 4 an
 * indexer to choose among them (vLLM 0.32, deepseek_v4/attention.py). */
static void v4_layer(oos_arch *a, uint64_t i)
{
    uint64_t const ratio = oos_arch_item_u64(oos_arch_list(a, "compress_ratios"), i, 0);
    oos_attention mla = {.mixer = OOS_MIXER_MLA,
                         .heads = a->model->heads,
                         .kv_heads = 1,
                         .head_dim = oos_arch_u64(a, "head_dim", 512),
                         .q_lora_rank = oos_arch_u64(a, "q_lora_rank", 0),
                         .rope_dim = oos_arch_u64(a, "qk_rope_head_dim", 64),
                         .window = oos_arch_u64(a, "sliding_window", 128),
                         .compress_ratio = ratio > 1 ? ratio : 0,
                         .sinks = true};
    mla.nope_dim = oos_sub(mla.head_dim, mla.rope_dim);
    if (ratio == 4) {
        mla.indexer_heads = oos_arch_u64(a, "index_n_heads", 64);
        mla.indexer_dim = oos_arch_u64(a, "index_head_dim", 128);
        mla.indexer_topk = oos_arch_u64(a, "index_topk", 512);
    }
    a->now.moe = true;
    oos_arch_attention(a, mla);
}

static void v4_mtp_layer(oos_arch *a, uint64_t i)
{
    v4_layer(a, oos_add(a->model->layer_count, i));
}

void oos_build_deepseek_v4(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), v4_layer);
    oos_arch_mtp_layers(a, oos_arch_u64(a, "num_nextn_predict_layers", 0), v4_mtp_layer);
}

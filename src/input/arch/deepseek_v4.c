/* DeepSeek V4: a compressed stream of states is cached beside a sliding one. */
#include "input/arch.h"

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
    oos_put_ends(a);
    oos_arch_mtp_layers(a, oos_arch_u64(a, "num_nextn_predict_layers", 0), v4_mtp_layer);
}

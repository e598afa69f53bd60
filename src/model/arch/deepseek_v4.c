/* DeepSeek V4: a compressed stream of states is cached beside a sliding one, several residual streams are mixed, and
 * the first layers route by a table of tokens (vLLM 0.32, vllm/models/deepseek_v4). */
#include "model/arch/arch.h"

/* One compressor: keys and gates of a window, overlapping where the ratio is 4. */
static void put_compressor(oos_arch *a, const char *position, const char *fused, const char *norm,
                           uint64_t ratio, uint64_t dim)
{
    uint64_t const overlap = ratio == 4 ? 2 : 1;
    oos_put_plain(a, OOS_MODULE_ATTN, position, ratio, oos_mul(overlap, dim), OOS_DTYPE_F32);
    oos_put_plain(a, OOS_MODULE_ATTN, fused, oos_mul(oos_mul(2, overlap), dim), a->model->hidden,
                  OOS_DTYPE_UNKNOWN);
    oos_put_norm(a, norm, dim);
}

static void put_attention(oos_arch *a, const oos_attention *t)
{
    uint64_t const hidden = a->model->hidden, wide = oos_mul(t->heads, t->head_dim);
    uint64_t const groups = oos_max(1, oos_arch_u64(a, "o_groups", 8)),
                   rank = oos_arch_u64(a, "o_lora_rank", 1024);
    oos_put(a, OOS_MODULE_ATTN,
            (oos_matrix){.name = "attn.attn_sink",
                         .out = t->heads,
                         .in = 1,
                         .unit = 64, /* the kernel takes 64 or 128 heads */
                         .split = OOS_SPLIT_OUT,
                         .dtype = OOS_DTYPE_F32});
    oos_put(a, OOS_MODULE_ATTN,
            (oos_matrix){.name = "attn.fused_wqa_wkv",
                         .out = oos_add(t->q_lora_rank, t->head_dim),
                         .in = hidden,
                         .linear = true,
                         .shards = 2});
    oos_put_norm(a, "attn.q_norm", t->q_lora_rank);
    oos_put_column(a, OOS_MODULE_ATTN, "attn.wq_b", wide, t->q_lora_rank, false, 1);
    oos_put_norm(a, "attn.kv_norm", t->head_dim);
    oos_put_column(a, OOS_MODULE_ATTN, "attn.wo_a", oos_mul(groups, rank), wide / groups, false, 1);
    oos_put_row(a, OOS_MODULE_ATTN, "attn.wo_b", hidden, oos_mul(groups, rank), false);
    if (t->indexer_dim > 0) {
        oos_put_copy(a, OOS_MODULE_ATTN, "attn.indexer.wq_b", oos_mul(t->indexer_heads, t->indexer_dim),
                     t->q_lora_rank, false);
        oos_put_plain(a, OOS_MODULE_ATTN, "attn.indexer.weights_proj", t->indexer_heads, hidden,
                      OOS_DTYPE_UNKNOWN);
        put_compressor(a, "attn.indexer.compressor.ape", "attn.indexer.compressor.fused_wkv_wgate",
                       "attn.indexer.compressor.norm", t->compress_ratio, t->indexer_dim);
    }
    if (t->compress_ratio > 0)
        put_compressor(a, "attn.compressor.ape", "attn.compressor.fused_wkv_wgate", "attn.compressor.norm",
                       t->compress_ratio, t->head_dim);
}

/* Mixing of the residual streams, before attention and before the experts. */
static void put_streams(oos_arch *a)
{
    uint64_t const streams = oos_arch_u64(a, "hc_mult", 4), rows = oos_mul(oos_add(2, streams), streams);
    uint64_t const wide = oos_mul(streams, a->model->hidden);
    oos_put(a, OOS_MODULE_OTHER,
            (oos_matrix){.name = "hc_fn", .out = rows, .in = wide, .count = 2, .dtype = OOS_DTYPE_F32});
    oos_put_plain(a, OOS_MODULE_OTHER, "hc_base", oos_mul(2, rows), 1, OOS_DTYPE_F32);
    oos_put_plain(a, OOS_MODULE_OTHER, "hc_scale", 6, 1, OOS_DTYPE_F32);
}

static void put_experts(oos_arch *a, bool by_table)
{
    const oos_model *m = a->model;
    oos_put_plain(a, OOS_MODULE_ROUTER, "ffn.gate", m->moe.experts, m->hidden, OOS_DTYPE_UNKNOWN);
    if (by_table)
        oos_put_plain(a, OOS_MODULE_ROUTER, "ffn.gate.tid2eid", m->vocab, m->moe.per_token, OOS_DTYPE_I32);
    else
        oos_put_plain(a, OOS_MODULE_ROUTER, "ffn.gate.e_score_correction_bias", m->moe.experts, 1,
                      OOS_DTYPE_F32);
    oos_put_gated_mlp(a, OOS_MODULE_SHARED_EXPERT, "ffn.shared_experts.gate_up_proj",
                      "ffn.shared_experts.down_proj", m->hidden, m->moe.shared_intermediate, false);
    oos_put_experts(a, "ffn.experts", m->moe.experts, m->hidden, m->moe.intermediate, true, false);
}

/* Every layer has a sliding cache; a compress ratio above 1 adds one state per that many tokens, and ratio 4 an
 * indexer to choose among them. */
static void v4_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    bool const drafts = i >= oos_arch_u64(a, "num_hidden_layers", 0);
    uint64_t const ratio = drafts ? 0 : oos_arch_item_u64(oos_arch_list(a, "compress_ratios"), i, 0);
    oos_attention mla = {.mixer = OOS_MIXER_MLA,
                         .heads = m->heads,
                         .kv_heads = 1,
                         .head_dim = oos_arch_u64(a, "head_dim", 512),
                         .q_lora_rank = oos_arch_u64(a, "q_lora_rank", 1024),
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
    put_streams(a);
    oos_put_norm(a, "attn_norm", m->hidden);
    oos_put_norm(a, "ffn_norm", m->hidden);
    put_attention(a, &mla);
    put_experts(a, i < oos_arch_u64(a, "num_hash_layers", 0));
}

static void v4_mtp_layer(oos_arch *a, uint64_t i)
{
    v4_layer(a, oos_add(a->model->layer_count, i));
}

void oos_build_deepseek_v4(oos_arch *a)
{
    oos_model *m = a->model;
    m->moe.shared_intermediate = oos_mul(m->moe.shared, m->moe.intermediate);
    oos_arch_layers(a, oos_arch_layer_count(a), v4_layer);
    oos_put_ends(a, 1);
    uint64_t const streams = oos_arch_u64(a, "hc_mult", 4);
    oos_range_open(a, a->prefix);
    oos_put_plain(a, OOS_MODULE_OTHER, "hc_head_fn", streams, oos_mul(streams, m->hidden), OOS_DTYPE_F32);
    oos_put_plain(a, OOS_MODULE_OTHER, "hc_head_base", oos_add(streams, 1), 1, OOS_DTYPE_F32);
    oos_range_close(a, m->every_stage);
    uint64_t const mtp = oos_arch_u64(a, "num_nextn_predict_layers", 0);
    oos_arch_mtp_layers(a, mtp, a->layer_prefix, m->layer_count, v4_mtp_layer);
}

/* Experts beside attention of a kind of its own: MiniMax M3, Llama 4, and Mllama, whose layers are dense. */
#include "model/arch/arch.h"

static void put_dense(oos_arch *a, uint64_t inner)
{
    oos_put_gated_mlp(a, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", a->model->hidden, inner, false);
}

/* The indexer's queries are cut like the keys, its one key is a copy on every rank; all are fused with the rest. */
static void put_m3_attention(oos_arch *a, const oos_attention *t)
{
    const oos_model *m = a->model;
    uint64_t const keys = oos_mul(t->kv_heads, oos_add(t->head_dim, t->head_dim_v));
    uint64_t const index = oos_mul(t->indexer_heads, t->indexer_dim);
    oos_put_norm(a, "input_layernorm", m->hidden);
    oos_put(a, OOS_MODULE_ATTN,
            (oos_matrix){.name = "self_attn.qkv_proj",
                         .out = oos_add(oos_mul(t->heads, t->head_dim), oos_add(keys, index)),
                         .in = m->hidden,
                         .kv_out = oos_add(keys, index),
                         .kv_heads = t->kv_heads,
                         .split = OOS_SPLIT_KV,
                         .linear = true,
                         .shards = 3});
    if (t->indexer_dim > 0) {
        oos_put_copy(a, OOS_MODULE_ATTN, "self_attn.qkv_proj", t->indexer_dim, m->hidden, false);
        oos_put_norm(a, "self_attn.index_norms", oos_mul(2, t->indexer_dim));
    }
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", m->hidden, oos_mul(t->heads, t->head_dim), false);
    oos_put_norm(a, "self_attn.q_norm", t->head_dim);
    oos_put_norm(a, "self_attn.k_norm", t->head_dim);
    oos_put_kv_scales(a);
    oos_put_norm(a, "post_attention_layernorm", m->hidden);
}

/* MiniMax M3: from a layer on, an indexer chooses the blocks that are attended to. */
static void minimax_m3_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    const json_t *sparse = json_object_get(a->text, "sparse_attention_config");
    const json_t *experts = oos_arch_list(a, "moe_layer_freq");
    oos_attention plain = oos_arch_plain(a, 0);
    bool use = false;
    (void)oos_json_bool(sparse, "use_sparse_attention", &use);
    if (use && oos_arch_item_u64(json_object_get(sparse, "sparse_attention_freq"), i, 0) != 0) {
        uint64_t blocks = 0, block = 0;
        (void)oos_json_u64(sparse, "sparse_num_index_heads", &plain.indexer_heads);
        (void)oos_json_u64(sparse, "sparse_index_dim", &plain.indexer_dim);
        (void)oos_json_u64(sparse, "sparse_topk_blocks", &blocks);
        (void)oos_json_u64(sparse, "sparse_block_size", &block);
        plain.indexer_topk = oos_mul(blocks, block);
    }
    a->now.moe = m->moe.experts > 0 && (experts ? oos_arch_item_u64(experts, i, 1) != 0
                                                : i >= oos_arch_u64(a, "first_k_dense_replace", 0));
    oos_arch_attention(a, plain);
    put_m3_attention(a, &plain);
    if (!a->now.moe) {
        put_dense(a, oos_arch_u64(a, "dense_intermediate_size", m->intermediate));
        return;
    }
    oos_put_plain(a, OOS_MODULE_ROUTER, "block_sparse_moe.gate", m->moe.experts, m->hidden, OOS_DTYPE_F32);
    if (oos_arch_yes(a, "use_routing_bias", true))
        oos_put_plain(a, OOS_MODULE_ROUTER, "block_sparse_moe.e_score_correction_bias", m->moe.experts, 1,
                      OOS_DTYPE_F32);
    if (m->moe.shared_intermediate > 0)
        oos_put_gated_mlp(a, OOS_MODULE_SHARED_EXPERT, "block_sparse_moe.shared_experts.gate_up_proj",
                          "block_sparse_moe.shared_experts.down_proj", m->hidden, m->moe.shared_intermediate,
                          false);
    oos_put_experts(a, "block_sparse_moe.experts", m->moe.experts, m->hidden, m->intermediate, true, false);
}

void oos_build_minimax_m3(oos_arch *a)
{
    a->model->moe.shared_intermediate = oos_arch_u64(a, "shared_intermediate_size", 0);
    a->model->moe.intermediate = a->model->intermediate;
    oos_arch_layers(a, oos_arch_layer_count(a), minimax_m3_layer);
    oos_put_ends(a, 1);
}

/* Llama 4: layers with rope attend within chunks, the others over everything (no_rope_layers: 0 means no rope). */
static void llama4_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    const json_t *rope = oos_arch_list(a, "no_rope_layers");
    uint64_t const interval = oos_arch_u64(a, "no_rope_layer_interval", 4);
    bool const with_rope =
        rope ? oos_arch_item_u64(rope, i, 1) != 0 : interval == 0 || (i + 1) % interval != 0;
    oos_attention plain = oos_arch_plain(a, 0);
    plain.window = with_rope ? oos_arch_u64(a, "attention_chunk_size", 0) : 0;
    if (plain.window > 0) plain.mixer = OOS_MIXER_CHUNKED;
    uint64_t const step = oos_arch_u64(a, "interleave_moe_layer_step", 1);
    const json_t *experts = oos_arch_list(a, "moe_layers");
    a->now.moe = experts ? oos_arch_list_holds(experts, i) : step > 0 && (i + 1) % step == 0;
    oos_arch_attention(a, plain);

    bool const bias = oos_arch_yes(a, "attention_bias", false);
    oos_put_norm(a, "input_layernorm", m->hidden);
    oos_put_qkv(a, "self_attn.qkv_proj", &plain, 1, bias);
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", m->hidden, oos_mul(m->heads, m->head_dim), bias);
    oos_put_kv_scales(a);
    oos_put_norm(a, "post_attention_layernorm", m->hidden);
    if (!a->now.moe) {
        oos_put_gated_mlp(a, OOS_MODULE_MLP, "feed_forward.gate_up_proj", "feed_forward.down_proj", m->hidden,
                          oos_arch_u64(a, "intermediate_size_mlp", m->intermediate), false);
        return;
    }
    oos_put_plain(a, OOS_MODULE_ROUTER, "feed_forward.router", m->moe.experts, m->hidden, OOS_DTYPE_UNKNOWN);
    oos_put_gated_mlp(a, OOS_MODULE_SHARED_EXPERT, "feed_forward.shared_expert.gate_up_proj",
                      "feed_forward.shared_expert.down_proj", m->hidden, m->intermediate, false);
    oos_put_experts(a, "feed_forward.experts", m->moe.experts, m->hidden, m->intermediate, true, false);
}

void oos_build_llama4(oos_arch *a)
{
    oos_model *m = a->model;
    m->head_dim = oos_arch_u64(a, "head_dim", 128);
    m->moe.intermediate = m->moe.shared_intermediate = m->intermediate;
    oos_arch_layers(a, oos_arch_layer_count(a), llama4_layer);
    oos_put_ends(a, 1);
}

/* Mllama: some layers attend over the image instead of the text. */
static void mllama_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    bool const cross = oos_arch_list_holds(oos_arch_list(a, "cross_attention_layers"), i);
    oos_attention plain = oos_arch_plain(a, 0);
    if (cross) plain.mixer = OOS_MIXER_CROSS;
    oos_arch_attention(a, plain);
    oos_put_norm(a, "input_layernorm", m->hidden);
    oos_put_qkv(a, cross ? "cross_attn.qkv_proj" : "self_attn.qkv_proj", &plain, 1, false);
    oos_put_row(a, OOS_MODULE_ATTN, cross ? "cross_attn.o_proj" : "self_attn.o_proj", m->hidden,
                oos_mul(m->heads, m->head_dim), false);
    if (cross) {
        oos_put_norm(a, "cross_attn.q_norm", m->head_dim);
        oos_put_norm(a, "cross_attn.k_norm", m->head_dim);
        oos_put_plain(a, OOS_MODULE_OTHER, "gates", 2, 1, OOS_DTYPE_UNKNOWN);
    }
    oos_put_kv_scales(a);
    oos_put_norm(a, "post_attention_layernorm", m->hidden);
    put_dense(a, m->intermediate);
}

void oos_build_mllama(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), mllama_layer);
    oos_put_ends(a, 1);
}

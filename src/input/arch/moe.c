/* Attention as usual, experts in most layers: Mixtral, Qwen MoE, GLM-4 MoE, GPT-OSS, MiniMax, MiMo-V2, Step, Llama 4. */
#include "input/arch.h"

/* GPT-OSS: every other layer slides, beginning with the first; all have sinks. */
static void gpt_oss_layer(oos_arch *a, uint64_t i)
{
    oos_attention plain = oos_arch_plain(a, i % 2 == 0 ? oos_arch_u64(a, "sliding_window", 128) : 0);
    plain.sinks = true;
    a->now.moe = true;
    oos_arch_attention(a, plain);
}

void oos_build_gpt_oss(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), gpt_oss_layer);
}

/* MiMo-V2: hybrid_layer_pattern 1 slides, with heads of its own. */
static void mimo_v2_layer(oos_arch *a, uint64_t i)
{
    bool const slides = oos_arch_item_u64(oos_arch_list(a, "hybrid_layer_pattern"), i, 0) == 1;
    const json_t *experts = oos_arch_list(a, "moe_layer_freq");
    uint64_t const window = oos_arch_u64(a, "sliding_window_size", oos_arch_u64(a, "sliding_window", 128));
    oos_attention plain = oos_arch_plain(a, slides ? window : 0);
    plain.head_dim_v = oos_arch_u64(a, "v_head_dim", plain.head_dim);
    plain.sinks =
        oos_arch_yes(a, slides ? "add_swa_attention_sink_bias" : "add_full_attention_sink_bias", false);
    if (slides) {
        plain.heads = oos_arch_u64(a, "swa_num_attention_heads", plain.heads);
        plain.kv_heads = oos_arch_u64(a, "swa_num_key_value_heads", plain.kv_heads);
        plain.head_dim = oos_arch_u64(a, "swa_head_dim", plain.head_dim);
        plain.head_dim_v = oos_arch_u64(a, "swa_v_head_dim", plain.head_dim_v);
    }
    a->now.moe = a->model->moe.experts > 0 && oos_arch_item_u64(experts, i, 1) != 0;
    oos_arch_attention(a, plain);
}

void oos_build_mimo_v2(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), mimo_v2_layer);
}

static void moe_layer(oos_arch *a, uint64_t i)
{
    uint64_t const step = oos_arch_u64(a, "decoder_sparse_step", 1);
    a->now.moe = a->model->moe.experts > 0 && i >= oos_arch_u64(a, "first_k_dense_replace", 0) && step > 0 &&
                 (i + 1) % step == 0 && !oos_arch_list_holds(oos_arch_list(a, "mlp_only_layers"), i);
    bool const slides = oos_arch_yes(a, "use_sliding_window", oos_arch_has(a, "layer_types"));
    oos_arch_attention(a, oos_arch_plain(a, slides ? oos_arch_window(a, i, 0, 0) : 0));
}

void oos_build_moe(oos_arch *a)
{
    a->model->moe.shared_intermediate = oos_arch_u64(a, "shared_expert_intermediate_size", 0);
    oos_arch_layers(a, oos_arch_layer_count(a), moe_layer);
}

static void glm4_moe_mtp_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    moe_layer(a, oos_sub(a->model->layer_count, 1));
}

void oos_build_glm4_moe(oos_arch *a)
{
    oos_build_moe(a);
    oos_arch_mtp_layers(a, oos_arch_u64(a, "num_nextn_predict_layers", 0), glm4_moe_mtp_layer);
}

static void mixtral_layer(oos_arch *a, uint64_t i)
{
    a->now.moe = true;
    oos_arch_attention(a, oos_arch_plain(a, oos_arch_window(a, i, 0, 0)));
}

void oos_build_mixtral(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), mixtral_layer);
}

/* MiniMax M3: from a layer on, an indexer chooses the blocks that are attended to. */
static void minimax_m3_layer(oos_arch *a, uint64_t i)
{
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
    a->now.moe = a->model->moe.experts > 0 && (experts ? oos_arch_item_u64(experts, i, 1) != 0
                                                       : i >= oos_arch_u64(a, "first_k_dense_replace", 0));
    oos_arch_attention(a, plain);
}

void oos_build_minimax_m3(oos_arch *a)
{
    a->model->moe.shared_intermediate = oos_arch_u64(a, "shared_intermediate_size", 0);
    oos_arch_layers(a, oos_arch_layer_count(a), minimax_m3_layer);
}

/* Step 3.5 and 3.7: layer_types, with other head counts in the layers that attention_other_setting names. */
static void step3_layer(oos_arch *a, uint64_t i)
{
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
    const char *list = oos_arch_str(a, "moe_layers_enum"); /* "3,4,5,..." */
    a->now.moe = a->model->moe.experts > 0 && i >= oos_arch_u64(a, "first_k_dense_replace", list ? 3 : 1);
    oos_arch_attention(a, plain);
}

void oos_build_step3(oos_arch *a)
{
    a->model->moe.shared_intermediate = oos_arch_u64(a, "share_expert_dim", 0);
    oos_arch_layers(a, oos_arch_layer_count(a), step3_layer);
}

/* Llama 4: layers with rope attend within chunks, the others over everything (no_rope_layers: 0 means no rope). */
static void llama4_layer(oos_arch *a, uint64_t i)
{
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
}

void oos_build_llama4(oos_arch *a)
{
    a->model->head_dim = oos_arch_u64(a, "head_dim", 128);
    oos_arch_layers(a, oos_arch_layer_count(a), llama4_layer);
}

/* Mllama: some layers attend over the image instead of the text. */
static void mllama_layer(oos_arch *a, uint64_t i)
{
    oos_attention plain = oos_arch_plain(a, 0);
    if (oos_arch_list_holds(oos_arch_list(a, "cross_attention_layers"), i)) plain.mixer = OOS_MIXER_CROSS;
    oos_arch_attention(a, plain);
}

void oos_build_mllama(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), mllama_layer);
}

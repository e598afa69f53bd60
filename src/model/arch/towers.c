/* Vision towers that the engine builds from its own layers, cut over ranks like the decoder: Qwen 2, 2.5 and 3 VL,
 * SigLIP (Gemma 3). One matrix stands for all blocks: `count` is the depth, and block 0 speaks for all to the
 * quantiser. */
#include "model/arch/arch.h"

uint64_t oos_tower_u64(const json_t *config, const char *key, uint64_t fallback)
{
    uint64_t value;
    return oos_json_u64(config, key, &value) ? value : fallback;
}

void oos_vision_fill(oos_vision *vision, const oos_vision *defaults)
{
    if (!vision->present) return;
#define FILL(field)                                                                                          \
    if (vision->field == 0) vision->field = defaults->field
    FILL(depth);
    FILL(hidden);
    FILL(intermediate);
    FILL(heads);
    FILL(patch);
    FILL(temporal_patch);
    FILL(merge);
    FILL(out_hidden);
    FILL(image_size);
    FILL(channels);
#undef FILL
}

/* A matrix of every block. Vectors (in == 1) are plain copies. */
void oos_put_block(oos_arch *a, const char *name, uint64_t out, uint64_t in, oos_split split, bool bias,
                   uint64_t depth)
{
    oos_put(a, OOS_MODULE_VISION,
            (oos_matrix){.name = name,
                         .out = out,
                         .in = in,
                         .count = depth,
                         .split = split,
                         .bias = bias,
                         .linear = in > 1});
}

void oos_put_tower_plain(oos_arch *a, const char *name, uint64_t out, uint64_t in)
{
    oos_put_plain(a, OOS_MODULE_VISION, name, out, in, OOS_DTYPE_UNKNOWN);
}

static uint64_t patch_inputs(const oos_vision *v)
{
    return oos_mul(oos_mul(v->channels, v->temporal_patch), oos_mul(v->patch, v->patch));
}

/* Two linear layers over merged patches. */
static void put_merger(oos_arch *a, const char *first, const char *second, uint64_t wide, uint64_t out,
                       uint64_t count)
{
    oos_put_block(a, first, wide, wide, OOS_SPLIT_OUT, true, count);
    oos_put_block(a, second, out, wide, OOS_SPLIT_IN, true, count);
}

void oos_tower_qwen2_vl(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    if (!a->vision) return;
    oos_vision_fill(v, &(oos_vision){.depth = 32,
                                     .hidden = 1280,
                                     .heads = 16,
                                     .patch = 14,
                                     .temporal_patch = 2,
                                     .merge = 2,
                                     .channels = 3});
    uint64_t const h = v->hidden, depth = v->depth, ratio = oos_tower_u64(a->vision, "mlp_ratio", 4);
    uint64_t const wide = oos_mul(h, oos_mul(v->merge, v->merge));
    oos_range_open(a, "visual.");
    oos_put_tower_plain(a, "patch_embed.proj", h, patch_inputs(v));
    oos_put_block(a, "blocks.0.norms", oos_mul(4, h), 1, OOS_SPLIT_NONE, false,
                  depth); /* two, weight and bias */
    oos_put_block(a, "blocks.0.attn.qkv", oos_mul(3, h), h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "blocks.0.attn.proj", h, h, OOS_SPLIT_IN, true, depth);
    oos_put_block(a, "blocks.0.mlp.fc1", oos_mul(ratio, h), h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "blocks.0.mlp.fc2", h, oos_mul(ratio, h), OOS_SPLIT_IN, true, depth);
    oos_put_tower_plain(a, "merger.ln_q", oos_mul(2, h), 1);
    put_merger(a, "merger.mlp.0", "merger.mlp.2", wide,
               oos_tower_u64(a->vision, "hidden_size", a->model->hidden), 1);
    oos_range_close(a, a->model->vision_matrices);
}

void oos_tower_qwen2_5_vl(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    if (!a->vision) return;
    oos_vision_fill(v, &(oos_vision){.depth = 32,
                                     .hidden = 3584,
                                     .intermediate = 3420,
                                     .heads = 16,
                                     .patch = 14,
                                     .temporal_patch = 2,
                                     .merge = 2,
                                     .out_hidden = 3584,
                                     .channels = 3});
    uint64_t const h = v->hidden, depth = v->depth, wide = oos_mul(h, oos_mul(v->merge, v->merge));
    oos_range_open(a, "visual.");
    oos_put_tower_plain(a, "patch_embed.proj", h, patch_inputs(v));
    oos_put_block(a, "blocks.0.norms", oos_mul(2, h), 1, OOS_SPLIT_NONE, false, depth);
    oos_put_block(a, "blocks.0.attn.qkv", oos_mul(3, h), h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "blocks.0.attn.proj", h, h, OOS_SPLIT_IN, true, depth);
    oos_put_block(a, "blocks.0.mlp.gate_up_proj", oos_mul(2, v->intermediate), h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "blocks.0.mlp.down_proj", h, v->intermediate, OOS_SPLIT_IN, true, depth);
    oos_put_tower_plain(a, "merger.ln_q", h, 1);
    put_merger(a, "merger.mlp.0", "merger.mlp.2", wide, v->out_hidden, 1);
    oos_range_close(a, a->model->vision_matrices);
}

/* Qwen 3 VL, 3.5, 3.6: deep features have mergers of their own, with a norm over the merged patch. */
void oos_tower_qwen3_vl(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    if (!a->vision) return;
    oos_vision_fill(v, &(oos_vision){.depth = 27,
                                     .hidden = 1152,
                                     .intermediate = 4304,
                                     .heads = 16,
                                     .patch = 16,
                                     .temporal_patch = 2,
                                     .merge = 2,
                                     .out_hidden = 3584,
                                     .channels = 3});
    uint64_t const h = v->hidden, depth = v->depth, wide = oos_mul(h, oos_mul(v->merge, v->merge));
    uint64_t const deep = json_array_size(json_object_get(a->vision, "deepstack_visual_indexes"));
    oos_range_open(a, "visual.");
    oos_put(a, OOS_MODULE_VISION,
            (oos_matrix){.name = "patch_embed.proj", .out = h, .in = patch_inputs(v), .bias = true});
    oos_put_tower_plain(a, "pos_embed", oos_tower_u64(a->vision, "num_position_embeddings", 2304), h);
    oos_put_block(a, "blocks.0.norms", oos_mul(4, h), 1, OOS_SPLIT_NONE, false, depth);
    oos_put_block(a, "blocks.0.attn.qkv", oos_mul(3, h), h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "blocks.0.attn.proj", h, h, OOS_SPLIT_IN, true, depth);
    oos_put_block(a, "blocks.0.mlp.linear_fc1", v->intermediate, h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "blocks.0.mlp.linear_fc2", h, v->intermediate, OOS_SPLIT_IN, true, depth);
    oos_put_tower_plain(a, "merger.norm", oos_mul(2, h), 1);
    put_merger(a, "merger.linear_fc1", "merger.linear_fc2", wide, v->out_hidden, 1);
    if (deep > 0) {
        oos_put_block(a, "deepstack_merger_list.0.norm", oos_mul(2, wide), 1, OOS_SPLIT_NONE, false, deep);
        put_merger(a, "deepstack_merger_list.0.linear_fc1", "deepstack_merger_list.0.linear_fc2", wide,
                   v->out_hidden, deep);
    }
    oos_range_close(a, a->model->vision_matrices);
}

/* SigLIP blocks, with biases everywhere. */
static void put_siglip_blocks(oos_arch *a)
{
    const oos_vision *v = &a->model->vision;
    uint64_t const h = v->hidden, depth = v->depth;
    oos_put_block(a, "encoder.layers.0.self_attn.qkv_proj", oos_mul(3, h), h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "encoder.layers.0.self_attn.out_proj", h, h, OOS_SPLIT_IN, true, depth);
    oos_put_block(a, "encoder.layers.0.norms", oos_mul(4, h), 1, OOS_SPLIT_NONE, false, depth);
    oos_put_block(a, "encoder.layers.0.mlp.fc1", v->intermediate, h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "encoder.layers.0.mlp.fc2", h, v->intermediate, OOS_SPLIT_IN, true, depth);
}

/* Gemma 3: the last norm stays although its output is not used; one projection into the decoder. */
void oos_tower_gemma3(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    if (!a->vision) return;
    oos_vision_fill(v, &(oos_vision){.depth = 12,
                                     .hidden = 768,
                                     .intermediate = 3072,
                                     .heads = 12,
                                     .patch = 16,
                                     .image_size = 224,
                                     .channels = 3});
    uint64_t const h = v->hidden, side = v->patch ? v->image_size / v->patch : 0;
    oos_range_open(a, "vision_tower.vision_model.");
    oos_put(a, OOS_MODULE_VISION,
            (oos_matrix){.name = "embeddings.patch_embedding",
                         .out = h,
                         .in = oos_mul(v->channels, oos_mul(v->patch, v->patch)),
                         .bias = true});
    oos_put_tower_plain(a, "embeddings.position_embedding", oos_mul(side, side), h);
    put_siglip_blocks(a);
    oos_put_tower_plain(a, "post_layernorm", oos_mul(2, h), 1);
    oos_put_tower_plain(a, "multi_modal_projector.mm_input_projection_weight", h, a->model->hidden);
    oos_put_tower_plain(a, "multi_modal_projector.mm_soft_emb_norm", h, 1);
    oos_range_close(a, a->model->vision_matrices);
}

/* A vision transformer by the fields that nearly all configs have, and two linear layers between it and the decoder: LLaVA and its
 * relatives (vLLM 0.32, llava*.py, clip.py, siglip.py), InternVL, and an estimate for wrappers we do not know. GLM-4V (glm4_1v.py). */
#include "model/arch/arch.h"

static double tower_f64(const json_t *config, const char *key, double fallback)
{
    double value;
    return oos_json_f64(config, key, &value) ? value : fallback;
}

/* Patches are put together two by two where the config says so in either of its ways. */
static uint64_t merge_of(const oos_arch *a, uint64_t merge)
{
    double const ratio = tower_f64(a->root, "downsample_ratio", 1); /* InternVL */
    if (merge) return merge;
    if (ratio > 0.1 && ratio < 1) return (uint64_t)(1 / ratio + 0.5);
    return oos_tower_u64(a->root, "scale_factor", 1); /* Idefics 3 */
}

/* What the fields leave out. False: there is nothing to build from. */
static bool fill(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    if (!a->vision || v->depth == 0 || v->hidden == 0 || v->depth > OOS_LAYERS_MAX) return false;
    double const inner = (double)v->hidden * tower_f64(a->vision, "mlp_ratio", 4);
    v->merge = merge_of(a, v->merge);
    oos_vision_fill(v, &(oos_vision){.intermediate = inner > 0 && inner < 1e9 ? (uint64_t)inner : 0,
                                     .patch = 14,
                                     .temporal_patch = 1,
                                     .channels = 3,
                                     .image_size = 224});
    return true;
}

static uint64_t patch_inputs(const oos_vision *v)
{
    return oos_mul(oos_mul(v->channels, v->temporal_patch), oos_mul(v->patch, v->patch));
}

static void put_blocks(oos_arch *a, uint64_t depth)
{
    const oos_vision *v = &a->model->vision;
    uint64_t const h = v->hidden, grid = v->image_size / oos_max(v->patch, 1);
    oos_put_tower_plain(a, "patch_embed", h, patch_inputs(v));
    /* one more: a class token, or the bias of the patches */
    oos_put_tower_plain(a, "positions", oos_add(oos_mul(grid, grid), 1), h);
    oos_put_block(a, "blocks.0.norms", oos_mul(4, h), 1, OOS_SPLIT_NONE, false, depth);
    oos_put_block(a, "blocks.0.attn.qkv", oos_mul(3, h), h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "blocks.0.attn.proj", h, h, OOS_SPLIT_IN, true, depth);
    oos_put_block(a, "blocks.0.mlp.fc1", v->intermediate, h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "blocks.0.mlp.fc2", h, v->intermediate, OOS_SPLIT_IN, true, depth);
}

void oos_tower_common(oos_arch *a)
{
    if (!fill(a)) return;
    const oos_vision *v = &a->model->vision;
    uint64_t const merged = oos_mul(v->hidden, oos_mul(v->merge, v->merge)), out = a->model->hidden;
    oos_range_open(a, "vision_tower.");
    put_blocks(a, v->depth);
    oos_put_block(a, "projector.0", out, merged, OOS_SPLIT_NONE, true, 1);
    oos_put_block(a, "projector.1", out, out, OOS_SPLIT_NONE, true, 1);
    oos_range_close(a, a->model->vision_matrices);
}

/* How many layers are built when the output of layer `key` is used: negative ones count from the end. A positive one is the
 * number of layers, or one less. */
static uint64_t depth_used(const oos_arch *a, const char *key, json_int_t fallback, uint64_t more)
{
    uint64_t const depth = a->model->vision.depth;
    const json_t *given = json_object_get(a->root, key);
    json_int_t const layer = json_is_integer(given) ? json_integer_value(given) : fallback;
    if (layer < 0 && layer > -OOS_LAYERS_MAX && (uint64_t)-layer <= depth)
        return depth - ((uint64_t)-layer - 1);
    if (layer >= 0 && (uint64_t)layer + more <= depth) return (uint64_t)layer + more;
    return depth;
}

/* Layers behind the one whose output is used are not built; only a whole CLIP or SigLIP has its last norm. */
void oos_tower_llava(oos_arch *a)
{
    if (!fill(a)) return;
    const oos_vision *v = &a->model->vision;
    const char *type = NULL, *class = a->model->architecture;
    bool const clip = oos_json_str(a->vision, "model_type", &type) && strncmp(type, "clip", 4) == 0;
    oos_range_open(a, "vision_tower.");
    put_blocks(a, depth_used(a, "vision_feature_layer", -2, 0));
    if (clip) oos_put_tower_plain(a, "class_embedding_and_pre_norm", oos_mul(3, v->hidden), 1);
    bool const whole = strcmp(class, "LlavaOnevisionForConditionalGeneration") == 0; /* not cut over ranks */
    oos_put_block(a, "projector.0", a->model->hidden, v->hidden, whole ? OOS_SPLIT_NONE : OOS_SPLIT_OUT, true,
                  1);
    oos_put_block(a, "projector.1", a->model->hidden, a->model->hidden, whole ? OOS_SPLIT_NONE : OOS_SPLIT_IN,
                  true, 1);
    if (strcmp(class, "LlavaForConditionalGeneration") != 0)
        oos_put_tower_plain(a, "image_newline", a->model->hidden, 1);
    oos_range_close(a, a->model->vision_matrices);
}

/* InternVL (intern_vit.py): a scale behind each sublayer; heads that do not divide are copied to every rank. */
void oos_tower_internvl(oos_arch *a)
{
    if (!fill(a)) return;
    const oos_vision *v = &a->model->vision;
    const char *norm = NULL;
    bool qkv_bias = true, qk_norm = false;
    (void)oos_json_bool(a->vision, "qkv_bias", &qkv_bias);
    (void)oos_json_bool(a->vision, "qk_normalization", &qk_norm);
    bool const rms = oos_json_str(a->vision, "norm_type", &norm) && strcmp(norm, "rms_norm") == 0;
    uint64_t const h = v->hidden, out = a->model->hidden, grid = v->image_size / oos_max(v->patch, 1);
    uint64_t const merged = oos_mul(h, oos_mul(v->merge, v->merge)),
                   depth = depth_used(a, "select_layer", -1, 1);
    oos_range_open(a, "vision_model.");
    oos_put_tower_plain(a, "embeddings.patch_embedding", h, oos_add(patch_inputs(v), 1));
    oos_put_tower_plain(a, "embeddings.positions_and_class", oos_add(oos_mul(grid, grid), 2), h);
    oos_put_block(a, "encoder.layers.0.norms_and_scales", oos_mul((rms ? 4U : 6U) + (qk_norm ? 2U : 0U), h),
                  1, OOS_SPLIT_NONE, false, depth);
    oos_put_block(a, "encoder.layers.0.attn.qkv", oos_mul(3, h), h, OOS_SPLIT_OUT, qkv_bias, depth);
    oos_put_block(a, "encoder.layers.0.attn.proj", h, h, OOS_SPLIT_IN, true, depth);
    oos_put_block(a, "encoder.layers.0.mlp.fc1", v->intermediate, h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "encoder.layers.0.mlp.fc2", h, v->intermediate, OOS_SPLIT_IN, true, depth);
    oos_put_tower_plain(a, "mlp1.0", oos_mul(2, merged), 1);
    oos_put_tower_plain(a, "mlp1.1", out, oos_add(merged, 1));
    oos_put_tower_plain(a, "mlp1.3", out, oos_add(out, 1));
    oos_range_close(a, a->model->vision_matrices);
}

/* GLM-4.1V, GLM-4.5V: gated MLPs as wide as the decoder; `intermediate_size` is the merger's. */
void oos_tower_glm4v(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    if (!a->vision) return;
    oos_vision_fill(v, &(oos_vision){.depth = 24,
                                     .hidden = 1536,
                                     .intermediate = 13696,
                                     .heads = 12,
                                     .patch = 14,
                                     .temporal_patch = 2,
                                     .merge = 2,
                                     .out_hidden = 4096,
                                     .image_size = 336,
                                     .channels = 3});
    uint64_t const h = v->hidden, depth = v->depth, out = v->out_hidden,
                   grid = v->image_size / oos_max(v->patch, 1);
    oos_range_open(a, "visual.");
    oos_put_tower_plain(a, "patch_embed.proj", h, oos_add(patch_inputs(v), 1)); /* with its bias */
    oos_put_tower_plain(a, "embeddings.position_embedding", oos_mul(grid, grid), h);
    oos_put_tower_plain(a, "norms", oos_mul(2, h), 1);
    oos_put_block(a, "blocks.0.norms", oos_mul(2, h), 1, OOS_SPLIT_NONE, false, depth);
    oos_put_block(a, "blocks.0.attn.qkv", oos_mul(3, h), h, OOS_SPLIT_OUT, false, depth);
    oos_put_block(a, "blocks.0.attn.proj", h, h, OOS_SPLIT_IN, false, depth);
    oos_put_block(a, "blocks.0.mlp.gate_up_proj", oos_mul(2, out), h, OOS_SPLIT_OUT, false, depth);
    oos_put_block(a, "blocks.0.mlp.down_proj", h, out, OOS_SPLIT_IN, false, depth);
    oos_put_tower_plain(a, "downsample", out, oos_add(oos_mul(h, oos_mul(v->merge, v->merge)), 1));
    oos_put_block(a, "merger.proj", out, out, OOS_SPLIT_OUT, false, 1);
    oos_put_tower_plain(a, "merger.post_projection_norm", oos_mul(2, out), 1);
    oos_put_block(a, "merger.gate_up_proj", oos_mul(2, v->intermediate), out, OOS_SPLIT_OUT, false, 1);
    oos_put_block(a, "merger.down_proj", out, v->intermediate, OOS_SPLIT_IN, false, 1);
    oos_range_close(a, a->model->vision_matrices);
}

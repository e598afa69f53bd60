/* More towers built from the engine's own layers: MoonViT (Kimi), Pixtral (Mistral 3), SigLIP 2 (LFM2-VL), Llama 4,
 * MiniMax M3, and the hearing of Qwen 2.5 Omni. */
#include "model/arch/arch.h"

static void put_norms(oos_arch *a, const char *name, uint64_t size, uint64_t count)
{
    oos_put_block(a, name, size, 1, OOS_SPLIT_NONE, false, count);
}

static void put_conv(oos_arch *a, const char *name, uint64_t out, uint64_t in, bool bias)
{
    oos_put(a, OOS_MODULE_VISION, (oos_matrix){.name = name, .out = out, .in = in, .bias = bias});
}

static bool yes(const json_t *config, const char *key, bool fallback)
{
    bool value;
    return oos_json_bool(config, key, &value) ? value : fallback;
}

/* ---- Kimi K2.5, K3 ---- */

/* Divided like any other, but left out of quantisation. */
static void put_plain_block(oos_arch *a, const char *name, uint64_t out, uint64_t in, oos_split split,
                            bool bias, uint64_t depth)
{
    oos_put(a, OOS_MODULE_VISION,
            (oos_matrix){.name = name, .out = out, .in = in, .count = depth, .split = split, .bias = bias});
}

/* Layer norms have biases, RMS norms (K3) have none. The projector is a copy on every rank. */
void oos_tower_moonvit(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    const json_t *c = a->vision;
    if (!c) return;
    oos_vision_fill(v, &(oos_vision){.depth = 27,
                                     .hidden = 1152,
                                     .intermediate = 4304,
                                     .heads = 16,
                                     .patch = 14,
                                     .merge = 2,
                                     .channels = 3});
    const char *norm = NULL, *projector = NULL;
    bool const rms = oos_json_str(c, "norm_type", &norm) && strcmp(norm, "rmsnorm") == 0;
    bool const second =
        oos_json_str(c, "mm_projector_type", &projector) && strcmp(projector, "patchmergerv2") == 0;
    bool const attn_bias = yes(c, "attn_bias", true), bias = yes(c, "linear_bias", true);
    uint64_t const h = v->hidden, depth = v->depth, norm_size = oos_mul(rms ? 1 : 2, h);
    uint64_t const qkv = oos_tower_u64(c, "qkv_hidden_size", h), out = a->model->hidden;
    uint64_t const wide = oos_mul(oos_tower_u64(c, "mm_hidden_size", h), oos_mul(v->merge, v->merge));
    oos_range_open(a, "vision_tower.");
    put_conv(a, "patch_embed.proj", h, oos_mul(v->channels, oos_mul(v->patch, v->patch)),
             yes(c, "patch_embed_proj_bias", true));
    oos_put_tower_plain(
        a, "patch_embed.pos_emb",
        oos_mul(oos_tower_u64(c, "init_pos_emb_height", 64), oos_tower_u64(c, "init_pos_emb_width", 64)), h);
    put_norms(a, "encoder.blocks.0.norms", oos_mul(2, norm_size), depth);
    put_plain_block(a, "encoder.blocks.0.mlp.fc0", v->intermediate, h, OOS_SPLIT_OUT, bias, depth);
    put_plain_block(a, "encoder.blocks.0.mlp.fc1", h, v->intermediate, OOS_SPLIT_IN, bias, depth);
    put_plain_block(a, "encoder.blocks.0.wqkv", oos_mul(3, qkv), h, OOS_SPLIT_OUT, attn_bias, depth);
    put_plain_block(a, "encoder.blocks.0.wo", h, qkv, OOS_SPLIT_IN, attn_bias, depth);
    put_norms(a, "encoder.final_layernorm", norm_size, 1);
    put_norms(a, "mm_projector.norm", second ? out : norm_size, 1);
    put_plain_block(a, "mm_projector.linear_1", wide, wide, OOS_SPLIT_NONE, !second, 1);
    put_plain_block(a, "mm_projector.linear_2", out, wide, OOS_SPLIT_NONE, !second, 1);
    oos_range_close(a, a->model->vision_matrices);
}

/* ---- Mistral 3 ---- */

void oos_tower_pixtral(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    if (!a->vision) return;
    oos_vision_fill(v, &(oos_vision){.depth = 24,
                                     .hidden = 1024,
                                     .intermediate = 4096,
                                     .heads = 16,
                                     .patch = 16,
                                     .image_size = 1024,
                                     .channels = 3});
    bool const bias = yes(a->root, "multimodal_projector_bias", true);
    uint64_t const merge = oos_tower_u64(a->root, "spatial_merge_size", 2);
    uint64_t const h = v->hidden, depth = v->depth, out = a->model->hidden;
    oos_range_open(a, "vision_tower.");
    put_conv(a, "patch_conv", h, oos_mul(v->channels, oos_mul(v->patch, v->patch)), false);
    put_norms(a, "ln_pre", h, 1);
    put_norms(a, "transformer.layers.0.norms", oos_mul(2, h), depth);
    oos_put_block(a, "transformer.layers.0.attention.qkv_proj", oos_mul(3, h), h, OOS_SPLIT_OUT, false,
                  depth);
    oos_put_block(a, "transformer.layers.0.attention.o_proj", h, h, OOS_SPLIT_IN, false, depth);
    oos_put_block(a, "transformer.layers.0.feed_forward.gate_up_proj", oos_mul(2, v->intermediate), h,
                  OOS_SPLIT_OUT, false, depth);
    oos_put_block(a, "transformer.layers.0.feed_forward.down_proj", h, v->intermediate, OOS_SPLIT_IN, false,
                  depth);
    put_norms(a, "multi_modal_projector.norm", h, 1);
    oos_put_tower_plain(a, "multi_modal_projector.patch_merger.merging_layer", h,
                        oos_mul(h, oos_mul(merge, merge)));
    oos_put_block(a, "multi_modal_projector.linear_1", out, h, OOS_SPLIT_OUT, bias, 1);
    oos_put_block(a, "multi_modal_projector.linear_2", out, out, OOS_SPLIT_IN, bias, 1);
    oos_range_close(a, a->model->vision_matrices);
}

/* ---- LFM2-VL ---- */

void oos_tower_siglip2(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    if (!a->vision) return;
    oos_vision_fill(v, &(oos_vision){.depth = 12,
                                     .hidden = 768,
                                     .intermediate = 3072,
                                     .heads = 12,
                                     .patch = 16,
                                     .merge = 2,
                                     .channels = 3});
    bool const bias = yes(a->root, "projector_bias", true);
    uint64_t const factor = oos_tower_u64(a->root, "downsample_factor", 2);
    uint64_t const h = v->hidden, depth = v->depth, out = a->model->hidden, f = v->intermediate;
    uint64_t const wide = oos_mul(h, oos_mul(factor, factor)),
                   mid = oos_tower_u64(a->root, "projector_hidden_size", 2560);
    oos_range_open(a, "vision_tower.vision_model.");
    put_conv(a, "embeddings.patch_embedding", h, oos_mul(v->channels, oos_mul(v->patch, v->patch)), true);
    oos_put_tower_plain(a, "embeddings.position_embedding", oos_tower_u64(a->vision, "num_patches", 256), h);
    put_norms(a, "encoder.layers.0.norms", oos_mul(4, h), depth);
    oos_put_block(a, "encoder.layers.0.self_attn.qkv_proj", oos_mul(3, h), h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "encoder.layers.0.self_attn.out_proj", h, h, OOS_SPLIT_IN, true, depth);
    oos_put_block(a, "encoder.layers.0.mlp.fc1", f, h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "encoder.layers.0.mlp.fc2", h, f, OOS_SPLIT_IN, true, depth);
    put_norms(a, "post_layernorm", oos_mul(2, h), 1);
    if (yes(a->root, "projector_use_layernorm", true))
        put_norms(a, "multi_modal_projector.layer_norm", oos_mul(2, wide), 1);
    put_conv(a, "multi_modal_projector.linear_1", mid, wide, bias);
    put_conv(a, "multi_modal_projector.linear_2", out, mid, bias);
    oos_range_close(a, a->model->vision_matrices);
}

/* ---- Llama 4 ---- */

/* The published files may leave the tower out: it is then built from the defaults of its class. */
void oos_tower_llama4(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    const json_t *c = a->vision;
    v->present = a->model->multimodal = true;
    oos_vision_fill(v, &(oos_vision){.depth = 34,
                                     .hidden = 768,
                                     .intermediate = 5632,
                                     .heads = 16,
                                     .patch = 14,
                                     .image_size = 448,
                                     .channels = 3,
                                     .merge = 2});
    uint64_t const h = v->hidden, depth = v->depth, f = v->intermediate;
    uint64_t const side = v->patch ? v->image_size / v->patch : 0;
    uint64_t const mid = oos_tower_u64(c, "projector_input_dim", 4096),
                   after = oos_tower_u64(c, "projector_output_dim", 4096);
    oos_range_open(a, "vision_model.");
    oos_put_tower_plain(a, "class_embedding", h, 1);
    oos_put_tower_plain(a, "positional_embedding_vlm", oos_add(oos_mul(side, side), 1), h);
    oos_put_block(a, "patch_embedding.linear", h, oos_mul(v->channels, oos_mul(v->patch, v->patch)),
                  OOS_SPLIT_OUT, false, 1);
    put_norms(a, "layernorm_pre", oos_mul(4, h), 1); /* and layernorm_post */
    oos_put_block(a, "model.layers.0.self_attn.qkv_proj", oos_mul(3, h), h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "model.layers.0.self_attn.o_proj", h, h, OOS_SPLIT_IN, true, depth);
    oos_put_block(a, "model.layers.0.mlp.fc1", f, h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "model.layers.0.mlp.fc2", h, f, OOS_SPLIT_IN, true, depth);
    put_norms(a, "model.layers.0.norms", oos_mul(4, h), depth);
    oos_put_block(a, "vision_adapter.mlp.fc1", mid, f, OOS_SPLIT_OUT, false, 1);
    oos_put_block(a, "vision_adapter.mlp.fc2", after, mid, OOS_SPLIT_IN, false, 1);
    oos_put_block(a, "multi_modal_projector.linear_1", a->model->hidden,
                  oos_tower_u64(c, "vision_output_dim", 7680), OOS_SPLIT_OUT, false, 1);
    oos_range_close(a, a->model->vision_matrices);
}

/* ---- MiniMax M3 ---- */

void oos_tower_minimax_m3(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    if (!a->vision) return;
    const json_t *compression = json_object_get(a->vision, "img_token_compression_config");
    v->merge = oos_tower_u64(compression, "spatial_merge_size", 2);
    v->temporal_patch = oos_tower_u64(compression, "temporal_patch_size", 2);
    oos_vision_fill(
        v, &(oos_vision){
               .depth = 32, .hidden = 1280, .intermediate = 5120, .heads = 16, .patch = 14, .channels = 3});
    bool const bias = yes(a->root, "multimodal_projector_bias", true);
    uint64_t const h = v->hidden, depth = v->depth, f = v->intermediate, out = a->model->hidden;
    uint64_t const mid = oos_tower_u64(a->root, "projector_hidden_size", out);
    uint64_t const patch = oos_mul(oos_mul(v->channels, v->temporal_patch), oos_mul(v->patch, v->patch));
    oos_range_open(a, "vision_tower.vision_model.");
    put_conv(a, "embeddings.patch_embedding", h, patch, false);
    put_norms(a, "pre_layrnorm", oos_mul(2, h), 1);
    put_norms(a, "encoder.layers.0.norms", oos_mul(4, h), depth);
    oos_put_block(a, "encoder.layers.0.self_attn.qkv_proj", oos_mul(3, h), h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "encoder.layers.0.self_attn.out_proj", h, h, OOS_SPLIT_IN, true, depth);
    oos_put_block(a, "encoder.layers.0.fc1", f, h, OOS_SPLIT_OUT, true, depth);
    oos_put_block(a, "encoder.layers.0.fc2", h, f, OOS_SPLIT_IN, true, depth);
    oos_put_block(a, "multi_modal_projector.linear_1", mid, h, OOS_SPLIT_OUT, bias, 1);
    oos_put_block(a, "multi_modal_projector.linear_2", out, mid, OOS_SPLIT_IN, bias, 1);
    oos_put_block(a, "patch_merge_mlp.linear_1", mid, oos_mul(out, oos_mul(v->merge, v->merge)),
                  OOS_SPLIT_OUT, bias, 1);
    oos_put_block(a, "patch_merge_mlp.linear_2", out, mid, OOS_SPLIT_IN, bias, 1);
    oos_range_close(a, a->model->vision_matrices);
}

/* ---- Qwen 2.5 Omni: the eyes of Qwen 2.5 VL, and a Whisper-like encoder that every rank has whole ---- */

static void hear(oos_arch *a, const char *name, uint64_t out, uint64_t in, bool bias, uint64_t depth)
{
    oos_put(a, OOS_MODULE_AUDIO,
            (oos_matrix){.name = name, .out = out, .in = in, .bias = bias, .count = depth});
}

void oos_tower_omni(oos_arch *a)
{
    const json_t *c = json_object_get(json_object_get(a->root, "thinker_config"), "audio_config");
    oos_tower_qwen2_5_vl(a);
    if (!json_is_object(c)) return;
    uint64_t const h = oos_tower_u64(c, "d_model", 1280), f = oos_tower_u64(c, "encoder_ffn_dim", 5120);
    uint64_t const depth = oos_tower_u64(c, "encoder_layers", 32),
                   mels = oos_tower_u64(c, "num_mel_bins", 128);
    uint64_t const out = oos_tower_u64(c, "output_dim", 3584);
    uint32_t ears[2];
    oos_range_open(a, "audio_tower.");
    hear(a, "conv1", h, oos_mul(3, mels), true, 1);
    hear(a, "conv2", h, oos_mul(3, h), true, 1);
    hear(a, "audio_bos_eos_token", 2, out, false, 1);
    hear(a, "layers.0.self_attn", oos_mul(4, h), h, false, depth);
    hear(a, "layers.0.self_attn.biases", oos_mul(3, h), 1, false, depth); /* keys have none */
    hear(a, "layers.0.norms", oos_mul(4, h), 1, false, depth);
    hear(a, "layers.0.fc1", f, h, true, depth);
    hear(a, "layers.0.fc2", h, f, true, depth);
    hear(a, "ln_post", oos_mul(2, h), 1, false, 1);
    hear(a, "proj", out, h, true, 1);
    oos_range_close(a, ears);
    a->model->vision_matrices[1] += ears[1]; /* they follow one another */
    if (!a->vision) memcpy(a->model->vision_matrices, ears, sizeof ears);
}

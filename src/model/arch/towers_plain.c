/* Towers that the engine takes whole from transformers: every rank has a full copy. Gemma 4's vision and audio. */
#include "model/arch/arch.h"

/* A matrix of every block, never cut, never quantised. */
static void put(oos_arch *a, oos_module module, const char *name, uint64_t out, uint64_t in, uint64_t depth)
{
    oos_put(a, module, (oos_matrix){.name = name, .out = out, .in = in, .count = depth});
}

static void gemma4_vision(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    oos_vision_fill(v, &(oos_vision){.depth = 16,
                                     .hidden = 768,
                                     .intermediate = 3072,
                                     .heads = 12,
                                     .patch = 16,
                                     .merge = 3,
                                     .channels = 3});
    uint64_t const h = v->hidden, depth = v->depth, f = v->intermediate;
    uint64_t const dim = oos_tower_u64(a->vision, "head_dim", v->heads ? h / v->heads : 0);
    uint64_t const queries = oos_mul(v->heads, dim);
    uint64_t const keys = oos_mul(oos_tower_u64(a->vision, "num_key_value_heads", v->heads), dim);
    put(a, OOS_MODULE_VISION, "vision_tower.patch_embedder.position_embedding_table",
        oos_mul(2, oos_tower_u64(a->vision, "position_embedding_size", 10240)), h, 1);
    put(a, OOS_MODULE_VISION, "vision_tower.patch_embedder.input_proj", h,
        oos_mul(v->channels, oos_mul(v->patch, v->patch)), 1);
    put(a, OOS_MODULE_VISION, "vision_tower.encoder.layers.N.self_attn.qkv",
        oos_add(queries, oos_mul(2, keys)), h, depth);
    put(a, OOS_MODULE_VISION, "vision_tower.encoder.layers.N.self_attn.o_proj", h, queries, depth);
    put(a, OOS_MODULE_VISION, "vision_tower.encoder.layers.N.self_attn.norms", oos_mul(2, dim), 1, depth);
    put(a, OOS_MODULE_VISION, "vision_tower.encoder.layers.N.mlp", oos_mul(3, f), h, depth);
    put(a, OOS_MODULE_VISION, "vision_tower.encoder.layers.N.norms", oos_mul(4, h), 1, depth);
    put(a, OOS_MODULE_VISION, "embed_vision.embedding_projection", a->model->hidden, h, 1);
}

/* A conformer: two feed-forwards, attention with relative keys, and a convolution per layer. */
static void gemma4_audio(oos_arch *a, const json_t *c)
{
    uint64_t const h = oos_tower_u64(c, "hidden_size", 1024),
                   depth = oos_tower_u64(c, "num_hidden_layers", 12);
    uint64_t const kernel = oos_tower_u64(c, "conv_kernel_size", 5),
                   heads = oos_tower_u64(c, "num_attention_heads", 8);
    uint64_t const out = oos_tower_u64(c, "output_proj_dims", 1536), square = oos_mul(h, h);
    const json_t *channels = json_object_get(c, "subsampling_conv_channels");
    uint64_t const first = oos_arch_item_u64(channels, 0, 128), second = oos_arch_item_u64(channels, 1, 32);
    uint64_t const mels = 128; /* the feature extractor's; two convolutions halve it twice */
    put(a, OOS_MODULE_AUDIO, "audio_tower.subsample.layer0", first, 9, 1);
    put(a, OOS_MODULE_AUDIO, "audio_tower.subsample.layer1", second, oos_mul(first, 9), 1);
    put(a, OOS_MODULE_AUDIO, "audio_tower.subsample.norms", oos_add(first, second), 1, 1);
    put(a, OOS_MODULE_AUDIO, "audio_tower.subsample.input_proj_linear", h, oos_mul(second, mels / 4), 1);
    put(a, OOS_MODULE_AUDIO, "audio_tower.layers.N.feed_forward", oos_mul(16, square), 1, depth);
    put(a, OOS_MODULE_AUDIO, "audio_tower.layers.N.self_attn", oos_mul(5, square), 1, depth);
    put(a, OOS_MODULE_AUDIO, "audio_tower.layers.N.self_attn.per_dim_scale", heads ? h / heads : 0, 1, depth);
    put(a, OOS_MODULE_AUDIO, "audio_tower.layers.N.lconv1d", oos_add(oos_mul(3, square), oos_mul(h, kernel)),
        1, depth);
    put(a, OOS_MODULE_AUDIO, "audio_tower.layers.N.norms", oos_mul(9, h), 1, depth);
    oos_put(a, OOS_MODULE_AUDIO,
            (oos_matrix){.name = "audio_tower.output_proj", .out = out, .in = h, .bias = true});
    put(a, OOS_MODULE_AUDIO, "embed_audio.embedding_projection", a->model->hidden, out, 1);
}

void oos_tower_gemma4(oos_arch *a)
{
    const json_t *audio = json_object_get(a->root, "audio_config");
    oos_range_open(a, "");
    if (a->vision) gemma4_vision(a);
    if (json_is_object(audio)) gemma4_audio(a, audio);
    oos_range_close(a, a->model->vision_matrices);
}

/* The multimodal encoder's dummy run: how many items of the largest size, and the busiest instant of a vision block. The
 * item sizes are the engine's; the instant is an estimate, since encoders run as plain PyTorch and differ much. */
#include "plan/activation/activation_parts.h"

/* The largest dummy item: what it claims of the encoder's budget, and the tokens that come out of it. */
typedef struct item {
    uint64_t claimed, tokens;
} item;

static item plain(uint64_t tokens)
{
    return (item){tokens, tokens};
}

/* Qwen's processors allow 12.8 or 16.8 million pixels, both 16,384 tokens after merging. A video of Qwen3-VL has the pixels
 * of 12,288 tokens however many frames it has, but claims 12.5 times as many for its time stamps. Gemma 4 profiles with a
 * video of 32 frames (13 of them were counted for 32,768 tokens); Gemma 3 puts four words around its 256 tokens (63 items
 * in 16,384); towers of fixed size say it themselves. */
static item largest_item(const oos_setup *setup)
{
    const oos_vision *vision = &setup->model->vision;
    if (oos_model_type_is(setup, "qwen3_vl") && setup->rules->video_timestamps_counted &&
        oos_u64_or(setup->serve->mm_videos, 1) > 0)
        return (item){12288 * 25 / 2, 12288};
    if (oos_model_type_is(setup, "qwen")) return plain(16384);
    if (oos_model_type_is(setup, "gemma4")) return plain(2496);
    if (oos_model_type_is(setup, "gemma3") && vision->max_image_tokens)
        return (item){oos_add(vision->max_image_tokens, 4), vision->max_image_tokens};
    if (vision->max_image_tokens) return plain(vision->max_image_tokens);
    uint64_t const side = vision->patch ? vision->image_size / vision->patch : 0;
    uint64_t const merge = oos_max(1, vision->merge);
    return plain(oos_max(1, oos_mul(side, side) / oos_mul(merge, merge)));
}

/* Vision patches behind one token of the decoder. */
static uint64_t patches_per_token(const oos_setup *setup, uint64_t tokens)
{
    const oos_vision *vision = &setup->model->vision;
    uint64_t const side = vision->patch ? vision->image_size / vision->patch : 0;
    if (vision->max_image_tokens && side && tokens == vision->max_image_tokens)
        return oos_max(1, oos_mul(side, side) / tokens); /* pooled: Gemma 3 */
    return oos_mul(oos_max(1, vision->merge), oos_max(1, vision->merge));
}

/* MultiModalBudget: as many items as the batch has tokens for, at least one, no more than the requests may bring. */
static uint64_t item_count(const oos_batch *batch, uint64_t tokens)
{
    const oos_setup *setup = batch->setup;
    uint64_t const limit = oos_u64_or(setup->serve->mm_images, batch->first_engine ? 1 : 999);
    uint64_t const prompt = oos_max(1, oos_min(limit, setup->max_model_len / tokens));
    return oos_max(1, oos_min(batch->tokens / tokens, oos_mul(setup->max_num_seqs, prompt)));
}

/* Columns over the patches. The MLP: residual, normed input, widths. Attention where positions are rotated in fp32
 * (Qwen): q, k, v, their copies and both rotated halves; 16.6 hidden widths explain a measured start of Qwen2.5-VL-7B
 * (2.71 GiB), 22 one of Qwen3.6-35B. */
static uint64_t block_columns(const oos_setup *setup)
{
    const oos_vision *vision = &setup->model->vision;
    bool const rotates = oos_model_type_is(setup, "qwen");
    bool const gated = oos_model_type_is(setup, "qwen2_5") || oos_model_type_is(setup, "gemma4") ||
                       oos_model_type_is(setup, "mistral") || oos_model_type_is(setup, "pixtral");
    uint64_t const wide = oos_per_rank(vision->intermediate, setup->tp);
    uint64_t const own = oos_per_rank(vision->hidden, setup->tp);
    uint64_t const mlp = oos_add(oos_mul(3, vision->hidden), oos_mul(gated ? 3 : 2, wide));
    uint64_t const attention = oos_add(oos_mul(4, vision->hidden), oos_mul(rotates ? 14 : 4, own));
    uint64_t const pixels = oos_mul(oos_mul(vision->channels, oos_mul(vision->patch, vision->patch)),
                                    oos_max(1, vision->temporal_patch));
    return oos_add(oos_max(mlp, attention), pixels);
}

void oos_activation_encoder(const oos_batch *batch, uint64_t *ret_run_bytes, uint64_t *ret_output_bytes)
{
    const oos_setup *setup = batch->setup;
    const oos_vision *vision = &setup->model->vision;
    *ret_run_bytes = *ret_output_bytes = 0;
    if (!setup->multimodal || !vision->present || vision->hidden == 0) return;
    if (oos_flag_or(setup->serve->skip_mm_profiling, false)) return;
    item const one = largest_item(setup);
    uint64_t const items = item_count(batch, one.claimed), tokens = oos_mul(items, one.tokens);
    uint64_t const patches = oos_mul(tokens, patches_per_token(setup, one.tokens));
    uint64_t const out = oos_mul(vision->out_hidden ? vision->out_hidden : setup->model->hidden,
                                 oos_add(1, vision->deepstack));
    uint64_t const budget = oos_max(batch->tokens, one.claimed);
    bool const widened = setup->rules->encoder_outputs_widened && one.tokens < budget;
    *ret_run_bytes = oos_mul(oos_mul(patches, block_columns(setup)), batch->item);
    *ret_output_bytes = oos_mul(oos_mul(widened ? oos_mul(items, budget) : tokens, out), batch->item);
}

/* The multimodal encoder's dummy run: how many items of the largest size, and the busiest instant of a vision block. The
 * item sizes are the engine's; the instant is an estimate, since encoders run as plain PyTorch and differ much. */
#include "sizes/forward/parts.h"

#include <math.h>

/* The largest dummy item: what it claims of the encoder's budget, and the tokens that come out of it. */
typedef struct item {
    uint64_t claimed, tokens;
} item;

static item plain(uint64_t tokens)
{
    return (item){tokens, tokens};
}

/* Tokens that `pixels` give, by what --mm-processor-kwargs says before what the processor's files do; `usual`: neither says it. */
static uint64_t tokens_of(const oos_forward *step, uint64_t pixels, uint64_t usual)
{
    const oos_vision *vision = &step->model->vision;
    uint64_t const side = oos_mul(vision->patch, oos_max(1, vision->merge));
    uint64_t const most = oos_u64_or(step->media.max_pixels, pixels);
    return most && side ? oos_max(1, most / oos_mul(side, side)) : usual;
}

/* The processors that Qwen publishes allow 12.8 or 16.8 million pixels, both 16,384 tokens after merging. */
static uint64_t largest_image(const oos_forward *step)
{
    return tokens_of(step, step->model->vision.image_pixels, step->model->code.image_tokens);
}

/* The limit of Qwen3-VL's videos is of all frames, and two of them are one token: get_max_video_tokens(), 0.32. */
static uint64_t largest_video(const oos_forward *step)
{
    uint64_t const pairs = oos_max(1, step->model->vision.temporal_patch);
    uint64_t const usual = oos_mul(step->model->code.video_tokens, pairs);
    return tokens_of(step, step->model->vision.video_pixels, usual) / pairs;
}

/* The shorter side of the rectangle nearest to a square with so many tokens. */
static uint64_t side_of(uint64_t tokens)
{
    uint64_t side = 1;
    for (uint64_t i = 2; i * i <= tokens; i++)
        if (tokens % i == 0) side = i;
    return side;
}

/* A frame of the largest image, made smaller. That image is the rectangle nearest to a square that is not longer than 200 times its
 * other side (get_image_size_with_most_features(), from 0.13), and both sides are rounded down to whole tokens (smart_resize() of
 * Transformers). */
static uint64_t frame_tokens(uint64_t image, uint64_t most)
{
    enum { ASPECT = 200, TOKENS_MOST = 1 << 24 }; /* no processor has more */
    if (most >= image || image > TOKENS_MOST) return oos_min(image, most);
    uint64_t side = side_of(image);
    while (image > ASPECT * side * side) side = side_of(--image);
    double const smaller = sqrt((double)most / (double)image);
    uint64_t const rows = (uint64_t)((double)side * smaller);
    uint64_t const columns = (uint64_t)((double)(image / side) * smaller);
    return oos_mul(oos_max(1, rows), oos_max(1, columns));
}

/* Frames of the dummy video of Qwen 2 and 2.5, two to a token: as many of the largest image as the length has room for. */
static uint64_t frame_pairs(const oos_forward *step, uint64_t image)
{
    uint64_t const room = step->media.beside_image ? oos_sub(step->length, image) : step->length;
    return oos_max(1, oos_min(step->media.frames / 2, room / oos_max(1, image)));
}

/* A video of Qwen3-VL has the same pixels however many frames it has; to 0.12 it claims 12.5 times as many tokens for its time
 * stamps. The engine tries what claims more. */
static item larger_of(const oos_forward *step, uint64_t image)
{
    const oos_code *code = &step->model->code;
    uint64_t const video = largest_video(step);
    if (!step->media.stamped) return plain(oos_max(image, video));
    if (step->media.max_pixels.known) return plain(image);
    uint64_t const claimed = oos_mul(video, code->video_claims) / oos_max(1, code->video_tokens);
    return claimed > image ? (item){claimed, video} : plain(image);
}

/* Llama 4 cuts an image into tiles, at most so many, and adds one of the whole image where they are several (Mllama4ProcessingInfo). Pixtral
 * makes it as long as its limit and rounds up to whole tokens (Mistral3HFEncoderInfo). LFM2 VL takes the square that its limit has room for
 * (get_image_size_with_most_features()). All other towers have the size of their config. */
static uint64_t tokens_by_size(const oos_forward *step)
{
    const oos_vision *vision = &step->model->vision;
    const oos_code *code = &step->model->code;
    uint64_t const merge = oos_max(1, vision->merge);
    if (vision->image_tokens) {
        uint64_t const side = (uint64_t)sqrt((double)vision->image_tokens);
        return oos_mul(side, side);
    }
    if (code->by_edge && vision->image_pixels && vision->patch) {
        uint64_t const token = oos_mul(vision->patch, merge);
        uint64_t const side = oos_add(vision->image_pixels, token - 1) / token;
        return oos_mul(side, side);
    }
    uint64_t const side = vision->patch ? vision->image_size / vision->patch : 0;
    uint64_t const tile = oos_mul(side, side) / oos_mul(merge, merge);
    uint64_t const tiles = vision->image_tiles ? vision->image_tiles : code->tiles;
    return code->tiles && tiles > 1 ? oos_mul(tile, oos_add(tiles, 1)) : tile;
}

/* Frames of Qwen 2 VL and 2.5 VL keep the size of the largest image (their processors' saved limit holds for both), those
 * of Omni are made smaller, to 768 tokens (0.10.2 and 0.21, two starts; its video processor has a limit of its own). Gemma 4
 * profiles with a video of 32 frames (13 of them were counted for 32,768 tokens); Gemma 3 puts four words around its 256 tokens,
 * which count in some releases (63 items in 16,384 on 0.8.0, 32 in 8,192 on 0.32). */
static item largest_item(const oos_forward *step)
{
    const oos_vision *vision = &step->model->vision;
    const oos_code *code = &step->model->code;
    bool const videos = oos_u64_or(step->media.videos, 1) > 0;
    if (code->video_tokens && videos && !code->video_claims) return plain(code->video_tokens);
    if (code->image_tokens) {
        uint64_t const image = largest_image(step);
        if (code->video_claims && videos) return larger_of(step, image);
        if (!code->frame_pairs || !videos) return plain(image);
        uint64_t const pairs = frame_pairs(step, image);
        uint64_t const own = tokens_of(step, step->model->vision.video_pixels, image);
        uint64_t const most = code->frame_tokens_most ? code->frame_tokens_most : image;
        return (item){oos_mul(pairs, image), oos_mul(pairs, oos_min(frame_tokens(image, own), most))};
    }
    if (vision->max_image_tokens) {
        uint64_t const around = step->media.embeds_only ? 0 : code->around;
        return (item){oos_add(vision->max_image_tokens, around), vision->max_image_tokens};
    }
    return plain(oos_max(1, tokens_by_size(step)));
}

/* Vision patches behind one token of the decoder. */
static uint64_t patches_per_token(const oos_forward *step, uint64_t tokens)
{
    const oos_vision *vision = &step->model->vision;
    uint64_t const side = vision->patch ? vision->image_size / vision->patch : 0;
    if (vision->max_image_tokens && side && tokens == vision->max_image_tokens)
        return oos_max(1, oos_mul(side, side) / tokens); /* pooled: Gemma 3 */
    return oos_mul(oos_max(1, vision->merge), oos_max(1, vision->merge));
}

/* MultiModalBudget: as many items as the batch has tokens for, at least one, no more than the requests may bring. */
static uint64_t item_count(const oos_forward *step, uint64_t tokens)
{
    uint64_t const limit = oos_u64_or(step->media.images, step->media.images_most);
    uint64_t const prompt = oos_max(1, oos_min(limit, step->length / tokens));
    return oos_max(1, oos_min(step->tokens / tokens, oos_mul(step->slots, prompt)));
}

/* Attention of Qwen's towers, read from qwen2_5_vl.py release by release. Alive at the busiest instant, in hidden widths: the
 * residual and its norm (held by the caller of the module), and of this rank's heads
 *   0  q, k, v as computed and copied, then one of them in fp32, rotated in fp32, and back          3 + 3 + 2 + 2 + 1
 *   1  the same with q and k joined first                                                           3 + 3 + 2 + 4 + 4 + 2
 *   2  q and k gathered once                                                                        3 + 2 + 4 + 4 + 2
 *   3  in the model's own type; then what attention gives                                           3 + 2 + 2 + 1
 * where in the last the projection's output is alive as well. A start of Qwen2.5-VL-7B on 0.9.2 has 16.6 in all with
 * pixels and outputs, where this gives 14; two of Qwen3.5 and 3.6 (0.23, 0.24) have 13.6 and 14.6, where this gives 13.5. */
static uint64_t rotating_attention(const oos_forward *step, uint64_t hidden, uint64_t own)
{
    static const struct {
        unsigned whole, heads;
    } widths[] = {{2, 11}, {2, 18}, {2, 15}, {3, 8}};
    uint64_t const rule = oos_min(step->media.rotation, 3);
    return oos_add(oos_mul(widths[rule].whole, hidden), oos_mul(widths[rule].heads, own));
}

/* Columns over the patches: the busier of attention and MLP (residual, normed input, widths), and what is alive all the time:
 * pixels; where positions are learnt, their rows; where levels are taken out on the way, those. */
static uint64_t block_columns(const oos_forward *step)
{
    const oos_vision *vision = &step->model->vision;
    const oos_code *code = &step->model->code;
    uint64_t const wide = oos_per_rank(vision->intermediate, step->tp);
    uint64_t const own = oos_per_rank(vision->hidden, step->tp);
    uint64_t const mlp = oos_add(oos_mul(3, vision->hidden), oos_mul(code->mlp_gated ? 3 : 2, wide));
    uint64_t const attention = code->rotates ? rotating_attention(step, vision->hidden, own)
                                             : oos_add(oos_mul(4, vision->hidden), oos_mul(4, own));
    uint64_t const pixels = oos_mul(oos_mul(vision->channels, oos_mul(vision->patch, vision->patch)),
                                    oos_max(1, vision->temporal_patch));
    uint64_t const positions = code->learnt_positions ? vision->hidden : 0;
    uint64_t const merged = oos_mul(oos_max(1, vision->merge), oos_max(1, vision->merge));
    uint64_t const levels = oos_mul(vision->deepstack, vision->out_hidden / merged);
    return oos_add(oos_max(mlp, attention), oos_add(oos_add(pixels, positions), levels));
}

/* Gemma 4's tower is transformers' own. To 0.21 it is given one frame at a time, with the patches of a whole image (three starts of
 * 0.19 of two sources say so; the 70 tokens that are asked for a frame are lost between the two libraries), and the rows of
 * its positions are picked by a one-hot matrix of 64-bit numbers, two for each patch, and a copy of it in the model's type:
 * nothing in its blocks comes near that. From 0.22 frames of 70 tokens run together, as many as fit a tenth of the device by
 * that matrix (_encoder_chunk: min(free / 2, total / 10)); newer releases of transformers look the rows up
 * instead. The pixels of all frames are there all the time. */
static uint64_t frames_run(const oos_forward *step, item one, uint64_t items)
{
    const oos_vision *vision = &step->model->vision;
    bool const together = step->media.frames_together, video = one.tokens != vision->max_image_tokens;
    uint64_t const frames = oos_mul(items, video ? oos_max(1, step->model->code.frames) : 1);
    uint64_t const tokens = video && together && step->model->code.frame_tokens
                                ? step->model->code.frame_tokens
                                : vision->max_image_tokens;
    uint64_t const patches = oos_mul(tokens, oos_mul(oos_max(1, vision->merge), oos_max(1, vision->merge)));
    uint64_t const numbers = oos_mul(oos_mul(patches, 2), vision->one_hot_rows);
    uint64_t const fit = oos_max(1, step->device->total_bytes / 10 / oos_max(1, oos_mul(numbers, 16)));
    uint64_t const pixels = oos_mul(vision->channels, oos_mul(vision->patch, vision->patch));
    uint64_t const all = oos_mul(oos_mul(oos_mul(frames, patches), pixels), oos_forward_item(step));
    uint64_t const run = together
                             ? oos_mul(oos_mul(oos_mul(oos_min(frames, fit), patches), block_columns(step)),
                                       oos_forward_item(step))
                             : oos_mul(numbers, oos_add(8, oos_forward_item(step)));
    return oos_add(run, all);
}

/* The dummy items themselves: both engines have them in a variable until the profile run returns, so they lie beside the decoder and the
 * sampler (0.19.0, Gemma 3 of three sizes: 0.14 to 0.15 GiB more than those take, 32 images of 4.6 MiB). To 0.8 they come in fp32 and the
 * encoder makes a copy in its own type (0.8.0, Gemma 3 with 63 images: 0.51 GiB more than the copy explains); the newer runner lets go of
 * them. */
static uint64_t inputs_of(const oos_forward *step, uint64_t patches, uint64_t item_bytes)
{
    const oos_vision *vision = &step->model->vision;
    if (step->media.released || vision->one_hot_rows) return 0;
    uint64_t const pixels = oos_mul(vision->channels, oos_mul(vision->patch, vision->patch));
    return oos_mul(oos_mul(patches, oos_mul(pixels, oos_max(1, vision->temporal_patch))),
                   step->media.cast ? item_bytes : 4);
}

void oos_forward_encoder(const oos_forward *step, uint64_t *ret_run_bytes, uint64_t *ret_output_bytes,
                         uint64_t *ret_input_bytes)
{
    const oos_vision *vision = &step->model->vision;
    *ret_run_bytes = *ret_output_bytes = *ret_input_bytes = 0;
    if (!step->media.runs || !vision->present || vision->hidden == 0) return;
    item const one = largest_item(step);
    uint64_t const items = item_count(step, one.claimed), tokens = oos_mul(items, one.tokens);
    uint64_t const patches = oos_mul(tokens, patches_per_token(step, one.tokens));
    uint64_t const out =
        oos_mul(vision->out_hidden ? vision->out_hidden : step->model->hidden, oos_add(1, vision->deepstack));
    uint64_t const budget = oos_max(step->tokens, one.claimed);
    bool const widened = step->media.widened && one.tokens < budget;
    *ret_run_bytes = vision->one_hot_rows
                         ? frames_run(step, one, items)
                         : oos_mul(oos_mul(patches, block_columns(step)), oos_forward_item(step));
    *ret_input_bytes = inputs_of(step, patches, oos_forward_item(step));
    *ret_output_bytes =
        oos_mul(oos_mul(widened ? oos_mul(items, budget) : tokens, out), oos_forward_item(step));
}

/* The multimodal encoder's dummy run: how many items, their tokens, and the widest instant of a vision block. */
#include "plan/activation_parts.h"

/* MultiModalBudget: the compute budget is max_num_batched_tokens, raised to the largest item; as many items as fit. */
static uint64_t encoder_tokens(const oos_batch *batch, uint64_t item_tokens)
{
    uint64_t const budget = oos_max(batch->tokens, item_tokens);
    return oos_mul(oos_max(1, budget / item_tokens), item_tokens);
}

void oos_activation_encoder(const oos_batch *batch, uint64_t *ret_run_bytes, uint64_t *ret_output_bytes)
{
    const oos_setup *setup = batch->setup;
    const oos_vision *vision = &setup->model->vision;
    *ret_run_bytes = *ret_output_bytes = 0;
    if (!setup->multimodal || !vision->present || oos_flag_or(setup->serve->skip_mm_profiling, false)) return;
    if (vision->hidden == 0) return;
    uint64_t item_tokens = vision->max_image_tokens;
    if (item_tokens == 0) {
        uint64_t const side = vision->patch ? vision->image_size / vision->patch : 0;
        uint64_t const merge = oos_max(1, vision->merge);
        item_tokens = side ? oos_max(1, oos_mul(side, side) / oos_mul(merge, merge)) : batch->tokens;
    }
    uint64_t const merge = oos_max(1, vision->merge);
    uint64_t const tokens = encoder_tokens(batch, item_tokens);
    uint64_t const patches = oos_mul(tokens, oos_mul(merge, merge));
    uint64_t const out = vision->out_hidden ? vision->out_hidden : setup->model->hidden;
    /* residual, normed input, up and activation of the block's MLP */
    uint64_t const columns =
        oos_add(oos_mul(3, vision->hidden), oos_mul(2, oos_cdiv(vision->intermediate, setup->tp)));
    *ret_run_bytes = oos_mul(oos_mul(patches, columns), batch->item);
    *ret_output_bytes = oos_mul(oos_mul(tokens, out), batch->item);
}

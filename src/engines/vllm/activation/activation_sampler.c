/* The dummy sampler run of profiling: how many copies of the logits live at once, by runner and release. */
#include "engines/vllm/activation/activation_parts.h"

/* Bytes per logit at the busiest instant of the older runner's sampler, beside the logits in the model's type:
 *   sort   fp32 logits 4, sorted values 4, int64 indices 8, and the sort's own buffers 8 + 12 (seen in a snapshot of
 *          0.11.0 on a stand-in device: 49.1 + 98.2 + 98.2 + 147.3 MiB for 256 x 50,272 logits); fewer than 128 rows
 *          are sorted as one long row, which takes 12 more
 *   fused  fp32 logits 4, probabilities 4, noise of the same shape 4
 * `sort` is the PyTorch way; the rule `sampler` says which release takes which. Where FlashInfer is used if it is
 * installed, no flag tells: measured starts are half and half, exact to 0.01 GiB in either case. */
enum { FUSED = 12, SORT = 36, SORT_FEW = 48 };
enum { SAMPLER_SORTS, SAMPLER_BY_PACKAGE, SAMPLER_BY_REQUEST, SAMPLER_IN_PLACE };

bool oos_activation_sampler_open(const oos_setup *setup)
{
    return setup->rules->sampler == SAMPLER_BY_PACKAGE && !setup->v2_runner &&
           !setup->env->flashinfer_sampler.known && !setup->env->image && !oos_activation_first_engine(setup);
}

/* Sorting is the larger of the two, so it is meant where nothing tells. */
static bool sorts(const oos_batch *batch)
{
    const oos_setup *setup = batch->setup;
    oos_flag const asked = setup->env->flashinfer_sampler;
    if (batch->first_engine) return true;
    switch (setup->rules->sampler) {
    case SAMPLER_BY_PACKAGE: return !oos_flag_or(asked, setup->env->image);
    case SAMPLER_BY_REQUEST: return !oos_flag_or(asked, false);
    case SAMPLER_IN_PLACE: return false;
    default: return true;
    }
}

/* With a drafter the older runner tries its rejection sampler next, on one draft token a request: logits of both rows, and the bonus rows once
 * more, in the model's type (rule `rejection_logit_bytes`). */
static uint64_t rejection(const oos_batch *batch, uint64_t logits)
{
    const oos_setup *setup = batch->setup;
    uint64_t const each = setup->rules->rejection_logit_bytes;
    if (!setup->speculative_tokens || !each) return 0;
    uint64_t const few =
        setup->rules->sampler != SAMPLER_IN_PLACE && batch->requests < 128 ? SORT_FEW - SORT : 0;
    return oos_mul(logits, oos_add(oos_mul(3, batch->item), oos_add(each, few)));
}

uint64_t oos_activation_sampler(const oos_batch *batch, uint64_t *ret_low)
{
    const oos_setup *setup = batch->setup;
    uint64_t const vocab = setup->model->vocab, rows = batch->requests;
    uint64_t const logits = oos_mul(rows, vocab);
    uint64_t const hidden =
        oos_mul(setup->v2_runner ? 1 : 2, oos_mul(rows, setup->model->hidden)); /* and a random copy */
    uint64_t bytes = oos_mul(oos_add(hidden, logits), batch->item);
    if (setup->v2_runner) {
        /* gathering: this rank's part, what was gathered, and that once more with the parts side by side */
        uint64_t const parts =
            oos_mul(oos_add(logits, oos_mul(rows, oos_cdiv(vocab, setup->tp))), batch->item);
        uint64_t const gather = setup->tp > 1 ? oos_add(bytes, parts) : bytes;
        /* later, when only the result is left: a copy in fp32; since 0.28 only when a request asks for something */
        if (setup->rules->v2_logits_in_fp32) bytes = oos_add(bytes, oos_mul(logits, 4));
        *ret_low = oos_max(bytes, gather);
        return *ret_low;
    }
    uint64_t const sort = rows < 128 ? SORT_FEW : SORT;
    uint64_t const rejecting = oos_add(oos_mul(hidden, batch->item), rejection(batch, logits));
    uint64_t const whole = oos_max(rejecting, oos_add(bytes, oos_mul(logits, sorts(batch) ? sort : FUSED)));
    *ret_low = oos_activation_sampler_open(setup) ? oos_add(bytes, oos_mul(logits, FUSED)) : whole;
    return whole;
}

/* warmup.py of the newer runner: as many requests as go, with top-k, top-p and penalties, a row for every draft token: logits, a copy in
 * fp32, probabilities and noise. */
uint64_t oos_activation_sampler_warmup(const oos_batch *batch)
{
    const oos_setup *setup = batch->setup;
    if (!setup->v2_runner || !setup->rules->v2_warms_sampler) return 0;
    uint64_t const query = oos_add(1, setup->speculative_tokens);
    uint64_t const requests = oos_min(setup->max_num_seqs, batch->tokens / oos_add(query, 1));
    uint64_t const logits = oos_mul(oos_mul(oos_max(1, requests), query), setup->model->vocab);
    uint64_t const copies = setup->rules->v2_warmup_clones_logits ? 2 : 1;
    return oos_mul(logits, oos_add(oos_mul(copies, batch->item), FUSED));
}

/* topk_topp_triton.py, from 0.17: a row of the vocabulary in fp32 for every program, as many as multiprocessors. The
 * newer runner's dummy request asks for neither top-k nor top-p. */
uint64_t oos_activation_topk_buffer(const oos_batch *batch)
{
    const oos_setup *setup = batch->setup;
    if (setup->v2_runner || !setup->rules->topk_triton_buffer || batch->requests < 8) return 0;
    uint64_t const units = setup->device.sms ? setup->device.sms : 100;
    uint64_t rows = 1;
    while (rows < oos_min(units, batch->requests)) rows *= 2;
    return oos_mul(oos_mul(oos_min(rows, units), setup->model->vocab), 4);
}

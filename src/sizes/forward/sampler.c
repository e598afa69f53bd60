/* The dummy sampler run of profiling: how many copies of the logits live at once, by runner and release. */
#include "sizes/forward/parts.h"

/* Bytes per logit at the busiest instant of the older runner's sampler, beside the logits in the model's type:
 *   sort   fp32 logits 4, sorted values 4, int64 indices 8, and the sort's own buffers 8 + 12 (seen in a snapshot of
 *          0.11.0 on a stand-in device: 49.1 + 98.2 + 98.2 + 147.3 MiB for 256 x 50,272 logits); fewer than 128 rows
 *          are sorted as one long row, which takes 12 more
 *   fused  fp32 logits 4, probabilities 4, noise of the same shape 4
 * `sort` is the PyTorch way; the rule `sampler` says which release takes which. Where FlashInfer is used if it is
 * installed, no flag tells: measured starts are half and half, exact to 0.01 GiB in either case. */
enum { FUSED = 12, SORT = 36, SORT_FEW = 48 };

/* With a drafter the older runner tries its rejection sampler next, on one draft token a request: logits of both rows, and the bonus rows once
 * more, in the model's type (rule `rejection_logit_bytes`). */
static uint64_t rejection(const oos_forward *step, uint64_t logits)
{
    uint64_t const each = step->sampler.rejection_bytes;
    if (!each) return 0;
    uint64_t const few = step->sampler.few_apart && step->requests < 128 ? SORT_FEW - SORT : 0;
    return oos_mul(logits, oos_add(oos_mul(3, oos_forward_item(step)), oos_add(each, few)));
}

uint64_t oos_forward_sampling(const oos_forward *step, uint64_t *ret_low)
{
    uint64_t const vocab = step->model->vocab, rows = step->requests;
    uint64_t const logits = oos_mul(rows, vocab);
    uint64_t const hidden =
        oos_mul(step->sampler.gathers ? 1 : 2, oos_mul(rows, step->model->hidden)); /* and a random copy */
    uint64_t bytes = oos_mul(oos_add(hidden, logits), oos_forward_item(step));
    if (step->sampler.gathers) {
        /* gathering: this rank's part, what was gathered, and that once more with the parts side by side */
        uint64_t const parts =
            oos_mul(oos_add(logits, oos_mul(rows, oos_cdiv(vocab, step->tp))), oos_forward_item(step));
        uint64_t const gather = step->tp > 1 ? oos_add(bytes, parts) : bytes;
        /* later, when only the result is left: a copy in fp32; since 0.28 only when a request asks for something */
        if (step->sampler.widens) bytes = oos_add(bytes, oos_mul(logits, 4));
        bytes = oos_add(bytes, oos_mul(logits, step->sampler.profiled_bytes));
        if (step->sampler.learned_logit)
            bytes = oos_add(oos_mul(hidden, oos_forward_item(step)),
                            oos_mul(logits, step->sampler.learned_logit) / 1000);
        *ret_low = oos_max(bytes, gather);
        return *ret_low;
    }
    uint64_t const sort = rows < 128 ? SORT_FEW : SORT;
    uint64_t const rejecting = oos_add(oos_mul(hidden, oos_forward_item(step)), rejection(step, logits));
    uint64_t const whole =
        oos_max(rejecting, oos_add(bytes, oos_mul(logits, step->sampler.sorts ? sort : FUSED)));
    *ret_low = step->sampler.open ? oos_add(bytes, oos_mul(logits, FUSED)) : whole;
    return whole;
}

/* warmup.py of the newer runner: as many requests as go, with top-k, top-p and penalties, a row for every draft token: logits, a copy in
 * fp32, probabilities and noise. */
uint64_t oos_forward_sampler_warmup(const oos_forward *step)
{
    const oos_forward_sampler *sampler = &step->sampler;
    uint64_t const logits = oos_mul(sampler->warm_rows, step->model->vocab);
    uint64_t const at_once = sampler->chunk_bytes ? oos_min(logits, sampler->chunk_bytes / 4) : logits;
    return oos_add(oos_mul(oos_mul(logits, sampler->warm_copies), oos_forward_item(step)),
                   oos_mul(at_once, FUSED));
}

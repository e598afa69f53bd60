/* The dummy sampler run of profiling: how many copies of the logits live at once, by runner and release. */
#include "plan/activation_parts.h"

/* Bytes per logit at the busiest instant of the older runner's sampler, beside the logits in the model's type:
 *   sort   fp32 logits 4, sorted values 4, int64 indices 8, and the sort's own buffers 8 + 12 (seen in a snapshot of
 *          0.11.0 on a stand-in device: 49.1 + 98.2 + 98.2 + 147.3 MiB for 256 x 50,272 logits); fewer than 128 rows
 *          are sorted as one long row, which takes 12 more
 *   fused  fp32 logits 4, probabilities 4, noise of the same shape 4
 * `sort` is the PyTorch way. To 0.9.1 always: FlashInfer is missing or too new for it. 0.9.2 to 0.11.0 use FlashInfer
 * where it is installed, as in the published images, and sort where it is not, as after a plain pip; measured starts are
 * of both kinds. Which one cannot be seen from outside, so the guess lies between, near the first, and the range has
 * both. 0.11.1 to 0.16 use it on request only; 0.17 to 0.20 mask in place with Triton; from 0.21 it is the default. */
enum { FUSED = 12, UNSURE = 18, SORT = 36, SORT_FEW = 48 };

static void sampler_items(const oos_batch *batch, uint64_t *ret_item, uint64_t *ret_high)
{
    const oos_setup *setup = batch->setup;
    oos_version const version = setup->rules->version;
    oos_flag const asked = setup->env->flashinfer_sampler;
    *ret_item = *ret_high = batch->requests < 128 ? SORT_FEW : SORT;
    if (version >= OOS_VERSION(0, 17, 0) || (asked.known && asked.value)) {
        *ret_item = *ret_high = FUSED;
    } else if (!asked.known && version >= OOS_VERSION(0, 9, 2) && version < OOS_VERSION(0, 11, 1)) {
        *ret_item = UNSURE;
    }
}

uint64_t oos_activation_sampler(const oos_batch *batch, uint64_t *ret_high)
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
        if (setup->rules->version < OOS_VERSION(0, 28, 0)) bytes = oos_add(bytes, oos_mul(logits, 4));
        bytes = oos_max(bytes, gather);
    }
    *ret_high = bytes;
    if (setup->v2_runner) return bytes;
    uint64_t item, high;
    sampler_items(batch, &item, &high);
    *ret_high = oos_add(bytes, oos_mul(logits, high));
    return oos_add(bytes, oos_mul(logits, item));
}

/* topk_topp_triton.py, from 0.17: a row of the vocabulary in fp32 for every program, as many as multiprocessors. The
 * newer runner's dummy request asks for neither top-k nor top-p. */
uint64_t oos_activation_topk_buffer(const oos_batch *batch)
{
    const oos_setup *setup = batch->setup;
    if (setup->v2_runner || setup->rules->version < OOS_VERSION(0, 17, 0) || batch->requests < 8) return 0;
    uint64_t const units = setup->device.sms ? setup->device.sms : 100;
    uint64_t rows = 1;
    while (rows < oos_min(units, batch->requests)) rows *= 2;
    return oos_mul(oos_mul(oos_min(rows, units), setup->model->vocab), 4);
}

/* The dummy sampler run of profiling: how many copies of the logits live at once, by runner and release. */
#include "plan/activation_parts.h"

/* Bytes per logit at the busiest instant of the older runner's sampler, beside the logits in the model's type:
 *   sort   fp32 logits 4, sorted values 4, int64 indices 8, and the sort's own buffers 8 + 12 (seen in a snapshot of
 *          0.11.0 on a stand-in device: 49.1 + 98.2 + 98.2 + 147.3 MiB for 256 x 50,272 logits)
 *   fused  fp32 logits 4, probabilities 4, noise of the same shape 4
 * `sort` is the PyTorch way. To 0.9.1 always: FlashInfer is missing or too new for it. 0.9.2 to 0.11.0 use FlashInfer
 * where it is installed, as in the published images, and sort where it is not, as after a plain pip: the first is
 * assumed. 0.11.1 to 0.16 use it on request only; 0.17 to 0.20 mask in place with Triton; from 0.21 it is the default. */
static uint64_t sampler_item(const oos_setup *setup)
{
    oos_version const version = setup->rules->version;
    if (version >= OOS_VERSION(0, 17, 0)) return 12;
    bool const flashinfer = version >= OOS_VERSION(0, 9, 2) && version < OOS_VERSION(0, 11, 1);
    return oos_flag_or(setup->env->flashinfer_sampler, flashinfer) ? 12 : 36;
}

uint64_t oos_activation_sampler(const oos_batch *batch)
{
    const oos_setup *setup = batch->setup;
    uint64_t const vocab = setup->model->vocab, rows = batch->requests;
    uint64_t const logits = oos_mul(rows, vocab);
    uint64_t const hidden = oos_mul(oos_mul(rows, setup->model->hidden), batch->item);
    uint64_t bytes = oos_add(hidden, oos_mul(logits, batch->item));
    if (setup->tp > 1)
        bytes = oos_add(bytes, oos_mul(oos_mul(rows, oos_cdiv(vocab, setup->tp)), batch->item));
    if (setup->v2_runner) return bytes;
    return oos_add(bytes, oos_mul(logits, sampler_item(setup)));
}

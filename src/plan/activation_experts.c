/* The buffers of expert kernels, by the kernel the engine chooses for the quantisation and the device. */
#include "plan/activation_parts.h"

static oos_quant_kind expert_quant(const oos_model *model)
{
    for (size_t i = 0; i < model->matrix_count; i++)
        if (model->matrices[i].expert && model->matrices[i].quant < model->quant_count)
            return model->quants[model->matrices[i].quant].kind;
    for (size_t i = 1; i < model->quant_count; i++)
        if (model->quants[i].kind != OOS_QUANT_NONE) return model->quants[i].kind;
    return OOS_QUANT_NONE;
}

/* Experts without a gate write one half only (Nemotron's squared rectifier). */
static bool gated(const oos_setup *setup)
{
    return !oos_model_type_is(setup, "nemotron");
}

/* VLLM_FUSED_MOE_CHUNK_SIZE: rows that go through the kernels at once. 64 Ki to 0.11, 16 Ki to 0.17, then all. */
static uint64_t chunk_rows(const oos_setup *setup)
{
    if (setup->rules->version >= OOS_VERSION(0, 18, 0)) return UINT64_MAX;
    return (setup->rules->version >= OOS_VERSION(0, 12, 0) ? 16 : 64) * OOS_KIB;
}

/* Triton's fused experts: two caches of topk rows a token. With the workspace manager (0.13) they are max(I, H) and
 * max(2I, H) wide and stay (fused_moe/experts/triton_moe.py); before, max(2I, H) and I, for the call
 * (fused_experts_impl). MXFP4 on Hopper takes OpenAI's kernels: activated and final rows, and one more output, for the
 * call (gpt_oss_triton_kernels_moe.py). */
uint64_t oos_activation_experts(const oos_batch *batch, bool *ret_kept)
{
    const oos_setup *setup = batch->setup;
    const oos_moe *moe = &setup->model->moe;
    uint64_t const hidden = setup->model->hidden;
    uint64_t const inner = setup->ep > 1 ? moe->intermediate : oos_per_rank(moe->intermediate, setup->tp);
    uint64_t const both = gated(setup) ? oos_mul(2, inner) : inner;
    uint64_t const rows = oos_mul(oos_min(batch->tokens, chunk_rows(setup)), batch->item);
    *ret_kept = false;
    if (expert_quant(setup->model) == OOS_QUANT_MXFP4 && setup->device.capability == 90)
        return oos_mul(oos_add(oos_mul(oos_add(inner, hidden), moe->per_token), hidden), rows);
    *ret_kept = setup->rules->version >= OOS_VERSION(0, 13, 0);
    uint64_t const columns = oos_add(*ret_kept ? oos_max(inner, hidden) : inner, oos_max(both, hidden));
    return oos_mul(oos_mul(columns, moe->per_token), rows);
}

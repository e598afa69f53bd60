/* The buffers of expert kernels, by the kernel the engine chooses for the quantisation, the device and the release. */
#include "sizes/forward/parts.h"

oos_quant_kind oos_expert_quant(const oos_model *model)
{
    for (size_t i = 0; i < model->matrix_count; i++)
        if (model->matrices[i].expert && model->matrices[i].quant < model->quant_count)
            return model->quants[model->matrices[i].quant].kind;
    for (size_t i = 1; i < model->quant_count; i++)
        if (model->quants[i].kind != OOS_QUANT_NONE) return model->quants[i].kind;
    return OOS_QUANT_NONE;
}

uint64_t oos_forward_experts(const oos_forward *step, bool *ret_kept)
{
    const oos_moe *moe = &step->model->moe;
    uint64_t const hidden = step->model->hidden;
    uint64_t const inner = step->ep > 1 ? moe->intermediate : oos_per_rank(moe->intermediate, step->tp);
    uint64_t const both = !step->model->code.ungated_experts ? oos_mul(2, inner) : inner;
    uint64_t const rows = oos_mul(step->expert_rows ? oos_min(step->tokens, step->expert_rows) : step->tokens,
                                  oos_forward_item(step));
    uint64_t columns = 0;
    switch (step->experts) {
    case OOS_EXPERTS_CACHES: columns = oos_add(oos_max(inner, hidden), oos_max(both, hidden)); break;
    case OOS_EXPERTS_CALL: columns = oos_add(inner, oos_max(both, hidden)); break;
    case OOS_EXPERTS_CUTLASS:
        columns = oos_add(oos_mul(3, hidden), oos_add(inner, oos_max(both, hidden)));
        break;
    case OOS_EXPERTS_FLASH: columns = oos_add(oos_mul(2, hidden), oos_add(both, inner)); break;
    case OOS_EXPERTS_OPENAI:
    case OOS_EXPERTS_TRTLLM: columns = oos_add(inner, hidden); break;
    }
    *ret_kept = step->experts == OOS_EXPERTS_CACHES;
    return oos_mul(oos_mul(columns, moe->per_token), rows);
}

/* The buffers of expert kernels, by the kernel the engine chooses for the quantisation, the device and the release. */
#include "engines/vllm/activation/activation_parts.h"

/* What a kernel holds for every token beside the layer's input and output, in columns of its topk rows. */
typedef enum kernel {
    KERNEL_CACHES, /* Triton, CUTLASS: two caches, max(I, H) and max(2I, H), from the workspace manager since 0.13 */
    KERNEL_CALL,    /* the same work before, and Marlin's own call to 0.26: I and max(2I, H), given back */
    KERNEL_OPENAI,  /* OpenAI's MXFP4 kernels: activated and final rows, given back */
    KERNEL_CUTLASS, /* vLLM's CUTLASS for NVFP4, when asked for: the two caches, the permuted input, the rows put back in order and
                     * weighed (run_cutlass_moe_fp4) */
    KERNEL_FLASH, /* FlashInfer CUTLASS: permuted input, both halves and their product, output, given back */
    KERNEL_TRTLLM /* FlashInfer TRT-LLM: product and output, given back */
} kernel;

static oos_quant_kind expert_quant(const oos_model *model)
{
    for (size_t i = 0; i < model->matrix_count; i++)
        if (model->matrices[i].expert && model->matrices[i].quant < model->quant_count)
            return model->quants[model->matrices[i].quant].kind;
    for (size_t i = 1; i < model->quant_count; i++)
        if (model->quants[i].kind != OOS_QUANT_NONE) return model->quants[i].kind;
    return OOS_QUANT_NONE;
}

static kernel marlin(const oos_setup *setup)
{
    return setup->rules->marlin_experts_cached ? KERNEL_CACHES : KERNEL_CALL;
}

/* fused_moe/oracle of 0.20 to 0.32: the first of each list that the device supports. FlashInfer's kernels are passed over
 * on Hopper; before 0.20 they had to be asked for. */
static kernel kernel_of(const oos_setup *setup)
{
    unsigned const family = setup->device.capability / 10;
    const char *asked = setup->serve->moe_backend;
    bool const flash = setup->rules->flashinfer_experts && setup->loras == 0;
    kernel const triton = setup->rules->triton_experts_cached ? KERNEL_CACHES : KERNEL_CALL;
    kernel const blackwell = family == 12 ? KERNEL_FLASH : KERNEL_TRTLLM;
    switch (expert_quant(setup->model)) {
    case OOS_QUANT_NONE: return flash && family >= 10 ? blackwell : triton;
    case OOS_QUANT_FP8_TENSOR:
    case OOS_QUANT_FP8_CHANNEL:
    case OOS_QUANT_FP8_BLOCK:
    case OOS_QUANT_MXFP8: return flash && family == 10 ? KERNEL_TRTLLM : triton;
    case OOS_QUANT_NVFP4:
        if (family >= 10 && asked && strcmp(asked, "cutlass") == 0) return KERNEL_CUTLASS;
        return family >= 10 ? blackwell : marlin(setup);
    case OOS_QUANT_MXFP4:
        if (family == 9) return KERNEL_OPENAI;
        return family == 10 ? KERNEL_TRTLLM : marlin(setup);
    case OOS_QUANT_AWQ:
    case OOS_QUANT_GPTQ:
    case OOS_QUANT_PACKED_INT: return marlin(setup);
    case OOS_QUANT_INT8:
    case OOS_QUANT_BNB:
    case OOS_QUANT_UNKNOWN: break;
    }
    return triton;
}

/* Experts without a gate write one half only (Nemotron's squared rectifier). */
static bool gated(const oos_setup *setup)
{
    return !setup->model->code.ungated_experts;
}

/* Rows that go through the kernels at once. */
static uint64_t chunk_rows(const oos_setup *setup)
{
    return setup->rules->experts_chunk_rows ? setup->rules->experts_chunk_rows : UINT64_MAX;
}

uint64_t oos_activation_experts(const oos_batch *batch, bool *ret_kept)
{
    const oos_setup *setup = batch->setup;
    const oos_moe *moe = &setup->model->moe;
    uint64_t const hidden = setup->model->hidden;
    uint64_t const inner = setup->ep > 1 ? moe->intermediate : oos_per_rank(moe->intermediate, setup->tp);
    uint64_t const both = gated(setup) ? oos_mul(2, inner) : inner;
    uint64_t const rows = oos_mul(oos_min(batch->tokens, chunk_rows(setup)), batch->item);
    uint64_t columns = 0;
    kernel const chosen = kernel_of(setup);
    switch (chosen) {
    case KERNEL_CACHES: columns = oos_add(oos_max(inner, hidden), oos_max(both, hidden)); break;
    case KERNEL_CALL: columns = oos_add(inner, oos_max(both, hidden)); break;
    case KERNEL_CUTLASS: columns = oos_add(oos_mul(3, hidden), oos_add(inner, oos_max(both, hidden))); break;
    case KERNEL_FLASH: columns = oos_add(oos_mul(2, hidden), oos_add(both, inner)); break;
    case KERNEL_OPENAI:
    case KERNEL_TRTLLM: columns = oos_add(inner, hidden); break;
    }
    *ret_kept = chosen == KERNEL_CACHES;
    return oos_mul(oos_mul(columns, moe->per_token), rows);
}

/* Memory outside PyTorch's allocator, and what serving takes beside the budget. Each constant is a fit on measured starts
 * (constants.json; docs/evidence/accuracy.md says how well). CUDA graphs are in graphs.c. */
#include "engines/vllm/outside.h"
#include "engines/vllm/activation/activation.h"
#include "engines/vllm/constants.h"

#define FITTED(name) vllm_constant_of(setup, VLLM_##name)

static oos_amount guess(uint64_t bytes, uint64_t low, uint64_t high, const char *how)
{
    return oos_amount_guess(bytes, oos_min(low, bytes), oos_max(high, bytes), how);
}

/* Driver, context and the modules loaded at start. */
static oos_amount context_of(const oos_driver *driver)
{
    return guess(driver->context_bytes, driver->context_low, driver->context_high,
                 "CUDA context of this device");
}

/* One for every group of ranks (parallel_state.py): tensor parallel; experts, to 0.13 whatever the model; decode context; stages; replicas; and
 * from 0.23 that of all ranks, which is made at once so that others can be split from it. */
static uint64_t communicators_of(const oos_setup *setup)
{
    const oos_rules *rules = setup->rules;
    uint64_t const ranks = oos_mul(setup->tp, setup->pp);
    bool const experts = rules->experts_group_always || setup->model->moe.experts > 0;
    return (uint64_t)(setup->tp > 1) + (setup->pp > 1) + (setup->dp > 1) + (setup->dcp > 1) +
           (experts && oos_mul(setup->tp, setup->dp) > 1) + (rules->world_group_eager && ranks > 1);
}

/* Communicators and the custom all-reduce buffers. NCCL keeps buffers for each channel, two to four of them over PCIe, up to 32 over NVLink.
 * Before 0.11 they come after the engine's first look and count as its own growth. */
static oos_amount nccl_of(const oos_setup *setup, const oos_driver *driver)
{
    uint64_t const ranks = oos_mul(setup->tp, setup->pp);
    if (ranks <= 1 && setup->dp <= 1) return oos_amount_exact(0, OOS_SOURCE_DERIVED, NULL);
    uint64_t const bytes = setup->rules->nccl_before_snapshot
                               ? oos_mul(communicators_of(setup), driver->communicator_bytes)
                               : FITTED(communicators_late).value;
    uint64_t const most = setup->rules->nccl_before_snapshot
                              ? oos_mul(communicators_of(setup), driver->communicator_high)
                              : FITTED(communicators_late).high;
    return guess(bytes, 0, oos_max(oos_max(driver->communicators_high, most), oos_mul(bytes, 5) / 4),
                 "NCCL communicators and all-reduce buffers");
}

/* Experts in MXFP4 on Hopper with torch 2.8 (before, Marlin runs them): the layout is not swizzled, and Triton's kernel for it spills. CUDA keeps
 * the local memory of every thread that can be resident: 2,048 a multiprocessor. */
static uint64_t mxfp4_spill(const oos_setup *setup, oos_constant_end end)
{
    if (setup->device.capability != 90 || setup->rules->torch_minor != 8) return 0;
    bool mxfp4 = false;
    for (size_t i = 0; i < setup->model->quant_count; i++)
        mxfp4 = mxfp4 || setup->model->quants[i].kind == OOS_QUANT_MXFP4;
    uint64_t const units = setup->device.sms ? setup->device.sms : 132;
    return mxfp4 ? oos_mul(oos_mul(units, 2048), vllm_end(setup, VLLM_mxfp4_spill, end)) : 0;
}

/* Gated delta nets: from 0.18 the profile run tries every variant of their Triton kernels (_warmup_prefill_kernels), and on 12.x some of them
 * spill; what they needed stays with the context, for 1,536 threads a multiprocessor. None of it on 8.x (0.19.0 to 0.27.1, four starts). */
static uint64_t delta_spill(const oos_setup *setup, oos_constant_end end)
{
    if (setup->device.capability / 10 != 12) return 0;
    bool delta = false;
    for (size_t i = 0; i < setup->model->attention_count; i++)
        delta = delta || setup->model->attentions[i].mixer == OOS_MIXER_GDN;
    uint64_t const units = setup->device.sms ? setup->device.sms : 170;
    return delta ? oos_mul(oos_mul(units, 1536), vllm_end(setup, VLLM_delta_spill, end)) : 0;
}

/* NCCL's buffers of the first large all-reduce. Before 0.11 the communicators come later and count here. Next to nothing on A30 and other
 * parts without NVLink. */
static uint64_t collectives_of(const oos_setup *setup, uint64_t *ret_low, uint64_t *ret_high)
{
    unsigned const capability = setup->device.capability;
    *ret_low = *ret_high = 0;
    if (setup->tp <= 1) return 0;
    if (capability / 10 == 10) *ret_high = FITTED(first_reduce_10x).high;
    if (capability != 90) return 0;
    oos_constant const first =
        setup->rules->nccl_before_snapshot ? FITTED(first_reduce) : FITTED(first_reduce_late);
    uint64_t const compiled = setup->eager ? 0 : FITTED(compiled_reduce).value;
    uint64_t const bytes = oos_add(first.value, compiled);
    *ret_low = oos_min(bytes / 2, oos_add(first.low, compiled / 2));
    *ret_high = oos_max(oos_max(oos_mul(bytes, 3) / 2, oos_add(first.high, compiled)),
                        oos_add(bytes, FITTED(first_reduce_more).value));
    return bytes;
}

static uint64_t spill_of(const oos_setup *setup, oos_constant_end end)
{
    return oos_add(mxfp4_spill(setup, end), delta_spill(setup, end));
}

/* "non-torch forward increase": kernel images (facts/driver.c), NCCL's buffers, the stack of spilling kernels; on unified memory the engine's
 * own host memory is taken from the same free bytes. */
static oos_amount growth_of(const oos_setup *setup, const oos_driver *driver)
{
    uint64_t bytes = driver->kernels_bytes, high = driver->kernels_high;
    uint64_t low, collectives_high;
    uint64_t const collectives = collectives_of(setup, &low, &collectives_high);
    if (setup->device.capability == 90) {
        bytes = oos_add(bytes, FITTED(more_kernels).value);
        high = oos_add(high, FITTED(more_kernels).high);
    }
    bytes = oos_add(bytes, collectives);
    high = oos_add(high, collectives_high);
    if (setup->device.unified) {
        bytes = oos_add(bytes, FITTED(unified_growth).value);
        high = oos_add(high, FITTED(unified_growth).high);
    }
    uint64_t const spill = spill_of(setup, OOS_CONSTANT_VALUE);
    return guess(oos_add(bytes, spill), oos_add(low, spill_of(setup, OOS_CONSTANT_LOW)),
                 oos_add(high, spill_of(setup, OOS_CONSTANT_HIGH)),
                 spill ? "kernel images, library buffers, and what spilling kernels keep for each thread"
                       : "kernel images and library buffers of the profile run");
}

/* ---- serving ---- */

static uint64_t round128(uint64_t number)
{
    return oos_round_up(number, 128);
}

/* FlexAttention before torch 2.9 builds its mask for the whole cache: batch tokens x KV tokens bytes in Inductor's own
 * graph pool, on the second batch shape; then about 1 GiB of per-step tables waits for the garbage collector. Read from
 * the generated code and the steps of 0.11.0 (OPT-2.7B: 1.72 GiB of mask, 0.9 - 1.3 GiB of growth). */
static bool flex_mask(const oos_setup *setup, const oos_backend_choice *backend, uint64_t kv_tokens,
                      oos_amount *ret_growth)
{
    if (!backend->name || strcmp(backend->name, "FLEX_ATTENTION") != 0 || setup->rules->torch_minor >= 9)
        return false;
    uint64_t const mask = oos_mul(round128(setup->max_num_batched_tokens), round128(kv_tokens));
    uint64_t const tables = oos_mul(oos_mul(setup->max_num_seqs, kv_tokens / 16), 8);
    uint64_t const growth = oos_min(oos_mul(tables, FITTED(flex_tables).value), FITTED(flex_most).value);
    uint64_t const bytes = oos_add(mask, growth);
    *ret_growth = guess(bytes, mask, oos_add(bytes, FITTED(flex_more).value),
                        "mask of batch tokens x KV tokens, and tables of every step");
    return true;
}

static oos_amount runtime_of(const oos_setup *setup, const oos_backend_choice *backend, uint64_t kv_tokens,
                             const char **ret_cause)
{
    oos_amount growth;
    *ret_cause = NULL;
    if (flex_mask(setup, backend, kv_tokens, &growth)) {
        *ret_cause =
            "FlexAttention builds a mask of batch tokens x KV tokens bytes that no profiling run has seen";
        return growth;
    }
    /* capture has taken FlashInfer's workspace already */
    bool const captured = !setup->eager && backend->name && strcmp(backend->name, "FLASHINFER") == 0;
    uint64_t const workspace = captured ? 0 : backend->workspace_bytes;
    return guess(oos_add(workspace, FITTED(serving_growth).value), 0,
                 oos_add(workspace, FITTED(serving_growth).high),
                 "attention workspaces, kernels first used under load, fragmentation");
}

void oos_outside_serving(const oos_setup *setup, const oos_backend_choice *backend, uint64_t kv_tokens,
                         oos_outside *outside)
{
    outside->runtime_growth = runtime_of(setup, backend, kv_tokens, &outside->runtime_cause);
}

oomsight_status oos_outside_of(oos_arena *arena, const oos_setup *setup, const oos_backend_choice *backend,
                               uint64_t kv_tokens, oos_outside *ret_outside, oomsight_error *reterr)
{
    (void)arena, (void)reterr;
    oos_driver const driver = oos_setup_driver(setup);
    *ret_outside = (oos_outside){.context = context_of(&driver),
                                 .nccl = nccl_of(setup, &driver),
                                 .profile_growth = growth_of(setup, &driver)};
    oos_outside_serving(setup, backend, kv_tokens, ret_outside);
    return OOMSIGHT_OK;
}

/* Words for the phase that decided: the cause (a word of the corpus) and the mechanism with its numbers. */
#include "plan/plan.h"
#include "engines/vllm/phases/phases.h"

const oos_moment *oos_phases_deciding(const oos_plan *plan)
{
    for (size_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].phase == plan->answer.phase) return &plan->phases[i];
    return NULL;
}

static double gib(uint64_t bytes)
{
    return (double)bytes / 0x1p30;
}

static bool is_tight(const oos_plan *plan)
{
    return plan->answer.verdict == OOMSIGHT_VERDICT_TIGHT;
}

static const char *explain_free_check(oos_arena *arena, oos_plan *plan)
{
    const oos_setup *setup = vllm_setup(plan);
    bool const others =
        setup->device.used_bytes > oos_sub(setup->device.total_bytes, plan->sizes.budget_bytes) / 2;
    plan->answer.cause = others ? OOS_CAUSE_OTHER_PROCESS : OOS_CAUSE_GMU_HIGH;
    oos_amount const held = oos_moment_others(plan);
    const char *who = held.source == OOS_SOURCE_ESTIMATED
                          ? oos_arena_format(arena,
                                             "the host's part of unified memory (%.1f GiB, perhaps %.1f to "
                                             "%.1f; set it with --gpu-used)",
                                             gib(held.bytes), gib(held.low), gib(held.high))
                          : oos_arena_format(arena, "other processes (%.2f GiB)", gib(held.bytes));
    return oos_arena_format(
        arena,
        "The engine requires %.2f GiB of free memory at start (%.2f GiB x %g); its CUDA context%s and %s %s "
        "less.",
        gib(plan->sizes.budget_bytes), gib(setup->device.total_bytes), setup->gpu_memory_utilization,
        vllm_of(plan)->outside.nccl.bytes && setup->rules->nccl_before_snapshot ? ", its communicators" : "",
        who ? who : "others", is_tight(plan) ? "may leave" : "leave");
}

static const char *explain_load(oos_arena *arena, oos_plan *plan)
{
    plan->answer.cause = OOS_CAUSE_WEIGHTS;
    if (plan->sizes.weights.loaded_bytes < vllm_setup(plan)->device.total_bytes &&
        plan->sizes.weights.load_transient_bytes)
        return oos_arena_format(
            arena, "Weights need %.2f GiB of %.2f GiB per GPU, and %.2f GiB more while they are loaded.",
            gib(plan->sizes.weights.loaded_bytes), gib(vllm_setup(plan)->device.total_bytes),
            gib(plan->sizes.weights.load_transient_bytes));
    const oos_moment *moment = oos_phases_deciding(plan);
    uint64_t const others = oos_sub(moment->peak_bytes, plan->sizes.weights.loaded_bytes);
    if (plan->sizes.weights.loaded_bytes < vllm_setup(plan)->device.total_bytes && others)
        return oos_arena_format(arena,
                                "Weights need %.2f GiB per GPU, and %.2f GiB are in use before they are "
                                "loaded; the GPU has %.2f GiB.",
                                gib(plan->sizes.weights.loaded_bytes), gib(others),
                                gib(vllm_setup(plan)->device.total_bytes));
    return oos_arena_format(arena, "Weights need %.2f GiB per GPU; the GPU has %.2f GiB.",
                            gib(plan->sizes.weights.loaded_bytes), gib(vllm_setup(plan)->device.total_bytes));
}

static const char *explain_repack(oos_arena *arena, oos_plan *plan)
{
    if (vllm_of(plan)->strand_bytes == 0) {
        plan->answer.cause = OOS_CAUSE_REPACK;
        return oos_arena_format(arena,
                                "The weights fit (%.2f GiB), but repacking them needs %.2f GiB more for a "
                                "short time.",
                                gib(plan->sizes.weights.loaded_bytes),
                                gib(plan->sizes.weights.repack_transient_bytes));
    }
    plan->answer.cause = OOS_CAUSE_POOL_STRAND;
    return oos_arena_format(
        arena,
        "Sleep mode loads into a memory pool that never returns freed segments. This version loads "
        "with max_split_size_mb:20, so each freed 20 MiB segment counts as oversize and is not reused: "
        "repacking the experts strands %.1f GiB on top of %.1f GiB of weights.",
        gib(vllm_of(plan)->strand_bytes), gib(plan->sizes.weights.loaded_bytes));
}

static const char *explain_profile(oos_arena *arena, oos_plan *plan)
{
    const oos_setup *setup = vllm_setup(plan);
    if (vllm_of(plan)->activation.sampler.bytes > vllm_of(plan)->activation.forward.bytes) {
        plan->answer.cause = OOS_CAUSE_LOGITS;
        return oos_arena_format(
            arena,
            "The sampler of the profiling run makes logits for %llu sequences x %llu tokens of the "
            "vocabulary, with copies in fp32: %.2f GiB on top of %.2f GiB of weights.",
            (unsigned long long)setup->max_num_seqs, (unsigned long long)setup->model->vocab,
            gib(vllm_of(plan)->activation.sampler.bytes), gib(plan->sizes.weights.loaded_bytes));
    }
    plan->answer.cause = OOS_CAUSE_ACTIVATION;
    return oos_arena_format(
        arena, "The profiling run (%llu tokens) needs %.2f GiB on top of %.2f GiB of weights.",
        (unsigned long long)setup->max_num_batched_tokens, gib(vllm_of(plan)->activation.forward.bytes),
        gib(plan->sizes.weights.loaded_bytes));
}

static const char *explain_graph_profile(oos_arena *arena, oos_plan *plan)
{
    const oos_kv_shape *shape = &vllm_of(plan)->kv_shape;
    plan->answer.cause = OOS_CAUSE_GRAPHS;
    return oos_arena_format(
        arena,
        "To measure CUDA graph memory the engine first allocates a temporary KV cache of %llu blocks: %llu "
        "tensors x %.4g GiB = %.2f GiB (one block is %llu tokens, %llu B per tensor) on top of %.2f GiB of "
        "weights. Its size does not depend on gpu_memory_utilization or max_model_len.",
        (unsigned long long)vllm_of(plan)->trial_blocks, (unsigned long long)shape->tensor_count,
        gib(oos_mul(vllm_of(plan)->trial_blocks, shape->page_bytes)),
        gib(oos_mul(vllm_of(plan)->trial_blocks, shape->block_bytes)),
        (unsigned long long)shape->block_tokens, (unsigned long long)shape->page_bytes,
        gib(plan->sizes.weights.loaded_bytes));
}

static const char *explain_kv(oos_arena *arena, oos_plan *plan)
{
    if (vllm_of(plan)->kv_shape.error) {
        plan->answer.cause = OOS_CAUSE_CONFIG;
        return vllm_of(plan)->kv_shape.error;
    }
    bool const nothing = plan->sizes.non_kv.bytes >= plan->sizes.budget_bytes &&
                         !vllm_setup(plan)->kv_cache_memory_bytes.known;
    if (nothing) {
        bool const hopeless = plan->sizes.weights.loaded_bytes >= vllm_setup(plan)->device.total_bytes;
        plan->answer.cause = hopeless ? OOS_CAUSE_WEIGHTS : OOS_CAUSE_GMU_LOW;
        return oos_arena_format(arena,
                                "Weights and activations need %.2f GiB; the memory budget is %.2f GiB (%.2f "
                                "GiB x %g): nothing is left for the KV cache.",
                                gib(plan->sizes.non_kv.bytes), gib(plan->sizes.budget_bytes),
                                gib(vllm_setup(plan)->device.total_bytes),
                                vllm_setup(plan)->gpu_memory_utilization);
    }
    if (vllm_setup(plan)->blocks_override.known && vllm_setup(plan)->rules->override_in_check) {
        plan->answer.cause = OOS_CAUSE_CONTEXT;
        return oos_arena_format(
            arena,
            "One request at max_model_len (%llu tokens) needs %.2f GiB of KV cache; the %llu blocks of "
            "--num-gpu-blocks-override hold %.2f GiB, however much memory there is.",
            (unsigned long long)vllm_setup(plan)->max_model_len, gib(plan->kv.insisted_bytes),
            (unsigned long long)vllm_setup(plan)->blocks_override.value,
            gib(oos_mul(vllm_setup(plan)->blocks_override.value, vllm_of(plan)->kv_shape.block_bytes)));
    }
    bool const by_states =
        plan->kv.insisted_bytes > oos_add(plan->kv.needed_bytes, vllm_of(plan)->kv_shape.block_bytes);
    if (plan->kv.needed_bytes > plan->kv.available_bytes || !by_states) {
        plan->answer.cause = OOS_CAUSE_CONTEXT;
        bool const given = vllm_setup(plan)->kv_cache_memory_bytes.known;
        uint64_t const left = plan->kv.available_bytes,
                       least = given ? left : oos_sub(plan->sizes.budget_bytes, plan->sizes.non_kv.high),
                       most = given ? left : oos_sub(plan->sizes.budget_bytes, plan->sizes.non_kv.low);
        const char *needs = oos_arena_format(
            arena,
            "One request at max_model_len (%llu tokens) needs %.2f GiB of KV cache; %.2f GiB are available",
            (unsigned long long)vllm_setup(plan)->max_model_len, gib(plan->kv.needed_bytes), gib(left));
        return !needs || least >= most || least > left || most < left
                   ? oos_arena_format(arena, "%s.", needs ? needs : "")
                   : oos_arena_format(arena, "%s (%.2f to %.2f).", needs, gib(least), gib(most));
    }
    plan->answer.cause = OOS_CAUSE_STATE_SLOTS;
    return oos_arena_format(
        arena,
        "Each running sequence needs a state block of its own: %llu blocks are there for %llu sequences.",
        (unsigned long long)plan->kv.blocks, (unsigned long long)vllm_setup(plan)->max_num_seqs);
}

static const char *explain_after(oos_arena *arena, oos_plan *plan, const oos_moment *moment)
{
    bool const graphs = plan->answer.phase == OOS_PHASE_CUDAGRAPH_CAPTURE;
    if (vllm_of(plan)->outside.runtime_cause && plan->answer.phase == OOS_PHASE_RUNTIME_OTHER) {
        plan->answer.cause = OOS_CAUSE_WORKSPACE;
        return vllm_of(plan)->outside.runtime_cause;
    }
    plan->answer.cause = graphs ? OOS_CAUSE_GRAPHS : OOS_CAUSE_GMU_HIGH;
    return oos_arena_format(arena,
                            "The KV cache takes %.2f GiB of the memory budget; what is not in the budget "
                            "(%s) %s fit: %.2f GiB (%.2f to %.2f) are needed of %.2f GiB.",
                            gib(oos_ledger_bytes(&moment->ledger, OOS_OWNER_KV_CACHE)),
                            graphs ? "context, graphs" : "context, graphs, the forward peak while serving",
                            is_tight(plan) ? "may not" : "does not", gib(moment->peak_bytes),
                            gib(moment->peak_low), gib(moment->peak_high), gib(moment->limit_bytes));
}

static const char *words(oos_arena *arena, oos_plan *plan, const oos_moment *moment)
{
    switch (plan->answer.phase) {
    case OOS_PHASE_INIT_FREE_MEMORY_CHECK: return explain_free_check(arena, plan);
    case OOS_PHASE_WEIGHT_LOAD: return explain_load(arena, plan);
    case OOS_PHASE_QUANT_POSTPROCESS: return explain_repack(arena, plan);
    case OOS_PHASE_PROFILE_RUN: return explain_profile(arena, plan);
    case OOS_PHASE_CUDAGRAPH_PROFILE: return explain_graph_profile(arena, plan);
    case OOS_PHASE_KV_SIZING: return explain_kv(arena, plan);
    case OOS_PHASE_DISTRIBUTED_INIT:
        plan->answer.cause = vllm_setup(plan)->device.used_bytes ? OOS_CAUSE_OTHER_PROCESS : OOS_CAUSE_NCCL;
        return "The communicators of this rank do not fit on top of what is on the GPU already.";
    case OOS_PHASE_MM_PROFILE:
        plan->answer.cause = OOS_CAUSE_ENCODER;
        return oos_arena_format(arena, "The dummy images of the profile run need %.2f GiB in the encoder.",
                                gib(vllm_of(plan)->activation.encoder.bytes));
    case OOS_PHASE_KV_ALLOC:
    case OOS_PHASE_COMPILE:
    case OOS_PHASE_CUDAGRAPH_CAPTURE:
    case OOS_PHASE_SAMPLER_WARMUP:
    case OOS_PHASE_RUNTIME_PREFILL:
    case OOS_PHASE_RUNTIME_SAMPLER:
    case OOS_PHASE_RUNTIME_OTHER: return explain_after(arena, plan, moment);
    case OOS_PHASE_ARGUMENTS:
    case OOS_PHASE_ENV:
    case OOS_PHASE_SLEEP_WAKE:
    case OOS_PHASE_HOST_MEMORY:
    case OOS_PHASE_NOT_OOM:
    case OOS_PHASE_UNKNOWN:
    case OOS_PHASE_COUNT: break;
    }
    return "";
}

oomsight_status oos_phases_explain(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_moment *moment = oos_phases_deciding(plan);
    if (!moment) return OOMSIGHT_OK;
    plan->answer.why = words(arena, plan, moment);
    return plan->answer.why ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the explanation");
}

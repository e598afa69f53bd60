/* From the first look at the device to the trial capture of graphs: everything before the cache is sized. */
#include "plan/plan.h"
#include "engines/vllm/phases/phases.h"
#include "sizes/sizes.h"

/* What is there for this engine: the device less what others hold is compared row by row, so the limit is the device. */
static uint64_t device_limit(const oos_plan *plan)
{
    return vllm_setup(plan)->device.total_bytes;
}

/* free < total * gpu_memory_utilization: the engine refuses (0.9.1 and later). */
static oomsight_status free_memory_check(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_setup *setup = vllm_setup(plan);
    if (!setup->rules->free_memory_check) return OOMSIGHT_OK;
    oos_moment *moment = oos_moment_open(arena, plan, OOS_PHASE_INIT_FREE_MEMORY_CHECK);
    moment->refusal = true;
    oos_moment_hold(moment, OOS_OWNER_ASKED,
                    oos_amount_exact(plan->sizes.budget_bytes, OOS_SOURCE_DERIVED,
                                     "total x gpu_memory_utilization must be free at start"));
    /* a larger device asks for more as well */
    OOS_TRY(oos_moment_close(moment, oos_limit_device(plan, oos_outside_budget(setup)), reterr));
    if ((moment->ok && !moment->tight) || setup->trial) return OOMSIGHT_OK;
    uint64_t const free_bytes = oos_sub(device_limit(plan), moment->peak_bytes - plan->sizes.budget_bytes);
    moment->message =
        oos_arena_format(arena,
                         "Free memory on device (%.2f/%.2f GiB) on startup is less than desired GPU memory "
                         "utilization (%g, %.2f GiB).",
                         (double)free_bytes / 0x1p30, (double)setup->device.total_bytes / 0x1p30,
                         setup->gpu_memory_utilization, (double)plan->sizes.budget_bytes / 0x1p30);
    return moment->message ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a message");
}

static oomsight_status distributed_init(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    if (vllm_of(plan)->outside.nccl.bytes == 0) return OOMSIGHT_OK;
    oos_moment *moment = oos_moment_open(arena, plan, OOS_PHASE_DISTRIBUTED_INIT);
    return oos_moment_close(moment, oos_limit_device(plan, 1), reterr);
}

static void hold_model(oos_moment *moment, const oos_plan *plan)
{
    oos_moment_hold(moment, OOS_OWNER_BATCH_BUFFERS, vllm_of(plan)->activation.persistent);
    oos_amount weights = oos_weights_amount(&plan->sizes.weights);
    weights.how = "parameters, buffers and repacked copies of this rank";
    oos_moment_hold(moment, OOS_OWNER_WEIGHTS, weights);
}

/* Which parameter fails depends on what else is held, which is an estimate: it is named only where both ends agree. */
static uint64_t tried_while_loading(const oos_plan *plan, const oos_moment *moment)
{
    uint64_t least = 0, most = 0;
    for (const oos_hold *row = moment->ledger.first; row; row = row->next) {
        if (row->owner == OOS_OWNER_WEIGHTS || row->owner == OOS_OWNER_LOADING_COPIES) continue;
        least = oos_add(least, row->amount.low);
        most = oos_add(most, row->amount.high);
    }
    oos_shard const shard = oos_setup_shard(vllm_setup(plan));
    uint64_t const at_most = oos_weights_tried(&shard, plan->sizes.stage, oos_sub(device_limit(plan), least));
    uint64_t const at_least = oos_weights_tried(&shard, plan->sizes.stage, oos_sub(device_limit(plan), most));
    return at_most == at_least ? at_most : 0;
}

static oomsight_status weight_load(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    oos_moment *moment = oos_moment_open(arena, plan, OOS_PHASE_WEIGHT_LOAD);
    hold_model(moment, plan);
    oos_moment_hold(moment, OOS_OWNER_LOADING_COPIES,
                    oos_amount_exact(plan->sizes.weights.load_transient_bytes, OOS_SOURCE_DERIVED,
                                     "held until the weights are in their final form"));
    OOS_TRY(oos_moment_close(moment, oos_limit_device(plan, 1), reterr));
    if (!moment->ok) moment->tried_bytes = tried_while_loading(plan, moment);
    if (plan->sizes.weights.repack_transient_bytes == 0 && vllm_of(plan)->strand_bytes == 0)
        return OOMSIGHT_OK;

    moment = oos_moment_open(arena, plan, OOS_PHASE_QUANT_POSTPROCESS);
    hold_model(moment, plan);
    oos_moment_hold(moment, OOS_OWNER_REPACK_COPY,
                    oos_amount_exact(plan->sizes.weights.repack_transient_bytes, OOS_SOURCE_DERIVED,
                                     "copies of the largest layer while it is repacked"));
    oos_moment_hold(moment, OOS_OWNER_STRANDED,
                    oos_amount_exact(vllm_of(plan)->strand_bytes, OOS_SOURCE_DERIVED,
                                     "20 MiB segments that the 20 MiB split limit forbids to reuse"));
    if (vllm_of(plan)->strand_bytes) moment->tried_bytes = 20 * OOS_MIB;
    return oos_moment_close(moment, oos_limit_device(plan, 1), reterr);
}

static oomsight_status profile_run(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_activation *activation = &vllm_of(plan)->activation;
    if (vllm_setup(plan)->multimodal && activation->encoder.bytes) {
        oos_moment *moment = oos_moment_open(arena, plan, OOS_PHASE_MM_PROFILE);
        hold_model(moment, plan);
        oos_moment_hold(moment, OOS_OWNER_ENCODER, activation->encoder);
        oos_moment_hold(moment, OOS_OWNER_KEPT, activation->retained);
        OOS_TRY(oos_moment_close(moment, oos_limit_device(plan, 1), reterr));
    }
    oos_moment *moment = oos_moment_open(arena, plan, OOS_PHASE_PROFILE_RUN);
    hold_model(moment, plan);
    bool const sampler = activation->sampler.bytes > activation->forward.bytes;
    oos_moment_hold(moment, OOS_OWNER_ENCODER_OUTPUTS, activation->encoder_cache);
    if (activation->compile_bytes)
        oos_moment_hold(moment, OOS_OWNER_COMPILING, activation->peak);
    else
        oos_moment_hold(moment, sampler ? OOS_OWNER_SAMPLER : OOS_OWNER_ACTIVATIONS,
                        sampler ? activation->sampler : activation->forward);
    oos_moment_hold(moment, OOS_OWNER_KEPT, activation->retained);
    oos_moment_hold(moment, OOS_OWNER_KERNELS, vllm_of(plan)->outside.profile_growth);
    return oos_moment_close(moment, oos_limit_device(plan, 1), reterr);
}

/* Trial capture: runs on CUDA unless graphs are off or the KV bytes are given; the newer runner only since it measures. */
static bool graph_profiling_runs(const oos_setup *setup)
{
    if (!setup->rules->graph_profiling || setup->eager || setup->kv_cache_memory_bytes.known) return false;
    return !setup->v2_runner || setup->rules->v2_runner_estimates_graphs;
}

static oomsight_status cudagraph_profile(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_setup *setup = vllm_setup(plan);
    const oos_kv_shape *shape = &vllm_of(plan)->kv_shape;
    if (!graph_profiling_runs(setup) || shape->block_bytes == 0) return OOMSIGHT_OK;
    vllm_of(plan)->trial_blocks = oos_max(1, setup->capture_top);
    if (setup->rules->graph_profiling == 2)
        vllm_of(plan)->trial_blocks = oos_max(1, oos_min(setup->max_num_seqs, setup->capture_top));

    oos_moment *moment = oos_moment_open(arena, plan, OOS_PHASE_CUDAGRAPH_PROFILE);
    hold_model(moment, plan);
    oos_moment_hold(moment, OOS_OWNER_KEPT, vllm_of(plan)->activation.retained);
    oos_moment_hold(moment, OOS_OWNER_KERNELS, vllm_of(plan)->outside.profile_growth);
    uint64_t const trial_bytes = oos_mul(vllm_of(plan)->trial_blocks, shape->block_bytes);
    oos_moment_hold(
        moment, OOS_OWNER_TRIAL_KV,
        oos_amount_exact(
            trial_bytes, OOS_SOURCE_DERIVED,
            "max_cudagraph_capture_size blocks (from vLLM 0.26: at most max_num_seqs), whatever the budget"));
    oos_moment_hold(moment, OOS_OWNER_TRIAL_GRAPHS, vllm_of(plan)->graphs.estimate);
    moment->tried_bytes = setup->rules->kv_in_one_tensor
                              ? trial_bytes
                              : oos_mul(vllm_of(plan)->trial_blocks, shape->page_bytes);
    return oos_moment_close(moment, oos_limit_device(plan, 1), reterr);
}

oomsight_status oos_phases_load(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    OOS_TRY(distributed_init(arena, plan, reterr));
    OOS_TRY(free_memory_check(arena, plan, reterr));
    return weight_load(arena, plan, reterr);
}

oomsight_status oos_phases_profile(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    OOS_TRY(profile_run(arena, plan, reterr));
    return cudagraph_profile(arena, plan, reterr);
}

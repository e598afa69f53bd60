/* Sizing the cache: what the engine counts as not KV, what is left, and whether it is content with that. */
#include "plan/moment.h"
#include "plan/phases.h"

/* What the engine subtracts from its budget, by version (Worker.determine_available_memory). The older engine measures
 * against a reading it took before its communicators and after its context (vllm/worker/worker.py, baseline_snapshot). */
static void hold_non_kv(oos_plan_phase *moment, const oos_plan *plan)
{
    const oos_rules *rules = plan->setup->rules;
    const oos_outside *outside = &plan->outside;
    bool const first_engine = oos_activation_first_engine(plan->setup);
    oos_moment_hold(moment, "weights", oos_weights_amount(&plan->weights));
    oos_moment_hold(moment, "activation peak", plan->activation.peak);
    oos_moment_hold(moment, "outside PyTorch", outside->profile_growth);
    if (!rules->nccl_before_snapshot) oos_moment_hold(moment, "communicators", outside->nccl);
    bool const counts_all = rules->profile_counts_other_processes && !first_engine;
    if (rules->profile_from_free_memory || counts_all)
        oos_moment_hold(moment, "batch buffers", plan->activation.persistent);
    if (counts_all) {
        oos_moment_hold(moment, "CUDA context", outside->context);
        oos_moment_hold(moment, "other processes", oos_moment_others(plan));
    }
    if (plan->setup->graph_estimate_applied)
        oos_moment_hold(moment, "graph estimate", outside->graph_estimate);
}

static int64_t available_from(const oos_plan *plan, uint64_t non_kv_bytes)
{
    uint64_t const budget = plan->budget_bytes;
    if (non_kv_bytes <= budget) return (int64_t)oos_min(budget - non_kv_bytes, INT64_MAX);
    return -(int64_t)oos_min(non_kv_bytes - budget, INT64_MAX);
}

/* Would the engine refuse at an end of the error bar? */
static oomsight_status refused_at(oos_arena *arena, const oos_plan *plan, uint64_t non_kv_bytes,
                                  bool *ret_refused, oomsight_error *reterr)
{
    oos_kv_fill fill;
    OOS_TRY(oos_kv_fill_in(arena, plan->setup, &plan->kv_shape, available_from(plan, non_kv_bytes), &fill,
                           reterr));
    *ret_refused = fill.refused;
    return OOMSIGHT_OK;
}

static oomsight_status size_by_budget(oos_arena *arena, oos_plan *plan, oos_plan_phase *moment,
                                      oomsight_error *reterr)
{
    hold_non_kv(moment, plan);
    OOS_TRY(oos_moment_close(moment, plan->budget_bytes, reterr));
    plan->non_kv = oos_amount_guess(moment->peak_bytes, moment->peak_low, moment->peak_high,
                                    "what the engine subtracts from its budget");
    bool at_least, at_most;
    OOS_TRY(oos_kv_fill_in(arena, plan->setup, &plan->kv_shape, available_from(plan, plan->non_kv.bytes),
                           &plan->kv, reterr));
    OOS_TRY(refused_at(arena, plan, plan->non_kv.low, &at_least, reterr));
    OOS_TRY(refused_at(arena, plan, plan->non_kv.high, &at_most, reterr));
    moment->tight = at_least != at_most;
    return OOMSIGHT_OK;
}

oomsight_status oos_phases_kv(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_setup *setup = plan->setup;
    oos_plan_phase *moment = &plan->phases[plan->phase_count++];
    *moment = (oos_plan_phase){.phase = OOS_PHASE_KV_SIZING, .refusal = true};
    oos_ledger_init(&moment->ledger, arena);
    uint64_t limit = plan->budget_bytes;
    if (setup->kv_cache_memory_bytes.known) { /* nothing is measured, the number is taken */
        limit = setup->kv_cache_memory_bytes.value;
        OOS_TRY(oos_kv_fill_in(arena, setup, &plan->kv_shape, (int64_t)oos_min(limit, INT64_MAX), &plan->kv,
                               reterr));
    } else {
        OOS_TRY(size_by_budget(arena, plan, moment, reterr));
    }
    bool const tight = moment->tight;
    oos_moment_hold(moment, "one request of the longest length",
                    oos_amount_exact(plan->kv.needed_bytes, OOS_SOURCE_DERIVED,
                                     "what the engine insists on before it starts"));
    OOS_TRY(oos_moment_close(moment, limit, reterr));
    moment->ok = !plan->kv.refused;
    moment->tight = tight;
    moment->message = plan->kv.refusal;
    return OOMSIGHT_OK;
}

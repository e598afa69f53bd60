/* Sizing the cache: what the engine counts as not KV, what is left, and whether it is content with that. */
#include "plan/moment.h"
#include "plan/phases.h"

#include <math.h>

/* What the engine subtracts from its budget, by version (Worker.determine_available_memory). */
static oos_amount non_kv(const oos_plan *plan)
{
    const oos_rules *rules = plan->setup->rules;
    const oos_outside *outside = &plan->outside;
    oos_amount sum = {plan->weights.loaded_bytes, plan->weights.loaded_low, plan->weights.loaded_high,
                      plan->weights.source, NULL};
    sum = oos_amount_sum(sum, plan->activation.peak);
    sum = oos_amount_sum(sum, outside->profile_growth);
    if (!rules->nccl_before_snapshot) sum = oos_amount_sum(sum, outside->nccl);
    if (rules->profile_from_free_memory || rules->profile_counts_other_processes)
        sum = oos_amount_sum(sum, plan->activation.persistent);
    if (rules->profile_counts_other_processes) {
        sum = oos_amount_sum(sum, outside->context);
        sum = oos_amount_sum(sum, oos_amount_exact(plan->setup->device.used_bytes, OOS_SOURCE_READ, NULL));
    }
    if (plan->setup->graph_estimate_applied) sum = oos_amount_sum(sum, outside->graph_estimate);
    return sum;
}

/* Half-width of the sum of independent errors, as squares. */
static uint64_t error_of(const oos_plan *plan, bool upward)
{
    const oos_amount parts[] = {plan->activation.peak,
                                plan->outside.profile_growth,
                                plan->outside.graph_estimate,
                                {plan->weights.loaded_bytes, plan->weights.loaded_low,
                                 plan->weights.loaded_high, plan->weights.source, NULL}};
    double squares = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double const part = upward ? (double)oos_sub(parts[i].high, parts[i].bytes)
                                   : (double)oos_sub(parts[i].bytes, parts[i].low);
        squares += part * part;
    }
    return (uint64_t)sqrt(squares);
}

static int64_t available_from(const oos_plan *plan, uint64_t non_kv_bytes)
{
    uint64_t const budget = plan->budget_bytes;
    if (non_kv_bytes <= budget) return (int64_t)oos_min(budget - non_kv_bytes, INT64_MAX);
    return -(int64_t)oos_min(non_kv_bytes - budget, INT64_MAX);
}

oomsight_status oos_phases_kv(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_setup *setup = plan->setup;
    plan->non_kv = non_kv(plan);
    uint64_t const more = error_of(plan, true), less = error_of(plan, false);
    plan->non_kv.low = oos_sub(plan->non_kv.bytes, less);
    plan->non_kv.high = oos_add(plan->non_kv.bytes, more);

    bool const given = setup->kv_cache_memory_bytes.known;
    int64_t available = available_from(plan, plan->non_kv.bytes);
    if (given) available = (int64_t)oos_min(setup->kv_cache_memory_bytes.value, INT64_MAX);
    OOS_TRY(oos_kv_fill_in(arena, setup, &plan->kv_shape, available, &plan->kv, reterr));

    oos_plan_phase *moment = &plan->phases[plan->phase_count++];
    *moment = (oos_plan_phase){.phase = OOS_PHASE_KV_SIZING, .refusal = true};
    oos_ledger_init(&moment->ledger, arena);
    if (!given) {
        oos_moment_hold(moment, "weights",
                        (oos_amount){plan->weights.loaded_bytes, plan->weights.loaded_low,
                                     plan->weights.loaded_high, plan->weights.source, NULL});
        oos_moment_hold(moment, "activation peak", plan->activation.peak);
        oos_moment_hold(moment, "outside PyTorch", plan->outside.profile_growth);
        if (!setup->rules->nccl_before_snapshot) oos_moment_hold(moment, "communicators", plan->outside.nccl);
        if (setup->rules->profile_from_free_memory || setup->rules->profile_counts_other_processes)
            oos_moment_hold(moment, "batch buffers", plan->activation.persistent);
        if (setup->rules->profile_counts_other_processes) {
            oos_moment_hold(moment, "CUDA context", plan->outside.context);
            oos_moment_hold(
                moment, "other processes",
                oos_amount_exact(setup->device.used_bytes, OOS_SOURCE_READ, "given with --gpu-used"));
        }
        if (setup->graph_estimate_applied)
            oos_moment_hold(moment, "graph estimate", plan->outside.graph_estimate);
    }
    uint64_t const needed = plan->kv.needed_bytes;
    oos_moment_hold(
        moment, "one request of the longest length",
        oos_amount_exact(needed, OOS_SOURCE_DERIVED, "what the engine insists on before it starts"));
    OOS_TRY(
        oos_moment_close(moment, given ? setup->kv_cache_memory_bytes.value : plan->budget_bytes, reterr));
    moment->ok = !plan->kv.refused;
    moment->message = plan->kv.refusal;
    if (given) moment->tight = false;
    return OOMSIGHT_OK;
}

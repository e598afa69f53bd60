/* Sizing the cache: what the engine counts as not KV, what is left, and whether it is content with that. */
#include "plan/plan.h"
#include "base/check.h"
#include "engines/vllm/phases/phases.h"
#include "engines/vllm/vllm.h"

#define VALUE(name) vllm_value(vllm_setup(plan), VLLM_##name)

#include <math.h>

/* What the engine subtracts from its budget, by version (Worker.determine_available_memory). The older engine measures
 * against a reading it took before its communicators and after its context (vllm/worker/worker.py, baseline_snapshot). */
static void hold_non_kv(oos_moment *moment, const oos_plan *plan)
{
    const vllm_rules *rules = vllm_setup(plan)->rules;
    const oos_outside *outside = &vllm_of(plan)->outside;
    bool const first_engine = oos_activation_first_engine(vllm_setup(plan));
    oos_moment_hold(moment, OOS_OWNER_WEIGHTS, oos_weights_amount(&plan->sizes.weights));
    oos_moment_hold(moment, OOS_OWNER_ACTIVATION_PEAK, vllm_of(plan)->activation.peak);
    oos_moment_hold(moment, OOS_OWNER_OUTSIDE, outside->profile_growth);
    if (!rules->nccl_before_snapshot) oos_moment_hold(moment, OOS_OWNER_COMMUNICATORS, outside->nccl);
    bool const counts_all = rules->profile_counts_other_processes && !first_engine;
    if (rules->profile_from_free_memory || counts_all)
        oos_moment_hold(moment, OOS_OWNER_BATCH_BUFFERS, vllm_of(plan)->activation.persistent);
    if (counts_all) {
        oos_moment_hold(moment, OOS_OWNER_CONTEXT, outside->context);
        oos_moment_hold(moment, OOS_OWNER_OTHERS, oos_moment_others(plan));
    }
    if (vllm_setup(plan)->graph_estimate_applied)
        oos_moment_hold(moment, OOS_OWNER_GRAPH_ESTIMATE, vllm_of(plan)->graphs.estimate);
}

static int64_t whole_bytes(double bytes)
{
    return bytes >= 0x1p62 ? INT64_MAX / 2 : bytes <= -0x1p62 ? INT64_MIN / 2 : (int64_t)bytes;
}

static bool refused_at(const oos_plan *plan, double available)
{
    return oos_kv_refused(vllm_setup(plan), &vllm_of(plan)->kv_shape, whole_bytes(available));
}

/* The least the engine is content with, between a refused and an accepted amount. */
static double least_accepted(const oos_plan *plan, double refused, double accepted)
{
    while (accepted - refused > (double)OOS_MIB) {
        double const middle = (refused + accepted) / 2;
        if (refused_at(plan, middle))
            refused = middle;
        else
            accepted = middle;
    }
    return accepted;
}

/* The engine's own budget. */
static oos_limit budget_limit(const oos_plan *plan)
{
    oos_limit const device = oos_limit_device(plan, vllm_setup(plan)->gpu_memory_utilization);
    uint64_t const less = device.bytes - device.low, more = device.high - device.bytes;
    uint64_t const budget = plan->sizes.budget_bytes;
    return (oos_limit){budget, oos_sub(budget, less), oos_add(budget, more)};
}

/* Would the engine refuse at either end of what may be left? */
static void judge(const oos_plan *plan, oos_limit limit, oos_moment *moment)
{
    const oos_amount *used = &plan->sizes.non_kv;
    double const left = (double)limit.bytes - (double)used->bytes;
    double const less = hypot((double)(used->high - used->bytes), (double)(limit.bytes - limit.low)),
                 more = hypot((double)(used->bytes - used->low), (double)(limit.high - limit.bytes));
    moment->tight = refused_at(plan, left - less) && !refused_at(plan, left + more);
    moment->chance = plan->kv.refused ? 0 : 1;
    if (!moment->tight) return;
    double const least = least_accepted(plan, left - less, left + more);
    moment->chance = oos_moment_chance(left - least, less, more);
}

/* What no term explains takes memory more often than it gives some: of the plans that are off by a hundredth of the device, and whose
 * sampler is known, 18 of 23 foresaw too much for the cache. So the range is wider on that side (docs/evidence/accuracy.md). Independent of
 * the rows, so it adds as a square. Twice as much of a release that nobody has run. */
static uint64_t share_of(const oos_setup *setup, uint64_t least, uint64_t part)
{
    return oos_max(least, setup->device.total_bytes / oos_max(1, part));
}

/* Bytes that starts of the installed release left open: a model is as that which was started of its kind. */
static void rest_of(const oos_setup *setup, double *ret_less, double *ret_more)
{
    const oos_learned_terms *terms = setup->rules->terms;
    *ret_less = *ret_more = 0;
    if (!terms) return;
    bool const states = setup->model->hybrid || setup->model->attention_free;
    oos_learned_rest const kind = states                          ? OOS_REST_HYBRID
                                  : setup->model->moe.experts > 0 ? OOS_REST_MOE
                                                                  : OOS_REST_DENSE;
    oos_learned_term const of[] = {terms->rests[kind], setup->graph_estimate_applied
                                                           ? terms->rests[OOS_REST_GRAPHS]
                                                           : (oos_learned_term){0}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        if (!of[i].known) continue;
        *ret_less += -fmin(of[i].low, 0);
        *ret_more += fmax(of[i].high, 0);
    }
}

static oos_amount with_unexplained(const oos_plan *plan, const oos_moment *moment)
{
    double const wider = vllm_setup(plan)->rules->measured ? 1 : 2;
    double const more =
        wider * (double)share_of(vllm_setup(plan), VALUE(unexplained_more), VALUE(unexplained_more_part));
    double const less =
        wider * (double)share_of(vllm_setup(plan), VALUE(unexplained_less), VALUE(unexplained_less_part));
    double rest_less, rest_more;
    rest_of(vllm_setup(plan), &rest_less, &rest_more);
    double const below = (double)(moment->peak_bytes - moment->peak_low) + rest_less;
    double const above = (double)(moment->peak_high - moment->peak_bytes) + rest_more;
    oos_drift const drift = oos_device_drift(&vllm_setup(plan)->device, vllm_setup(plan)->rules->beyond);
    return oos_amount_guess(
        moment->peak_bytes,
        oos_sub(moment->peak_bytes, (uint64_t)hypot(hypot(below, less), (double)drift.less)),
        oos_add(moment->peak_bytes, (uint64_t)hypot(hypot(above, more), (double)drift.more)),
        "what the engine subtracts from its budget");
}

static oomsight_status size_by_budget(oos_arena *arena, oos_plan *plan, oos_moment *moment,
                                      oomsight_error *reterr)
{
    hold_non_kv(moment, plan);
    oos_limit const limit = budget_limit(plan);
    OOS_TRY(oos_moment_close(moment, limit, reterr));
    plan->sizes.non_kv = with_unexplained(plan, moment);
    double const left = (double)plan->sizes.budget_bytes - (double)plan->sizes.non_kv.bytes;
    OOS_TRY(oos_kv_fill_in(arena, vllm_setup(plan), &vllm_of(plan)->kv_shape, whole_bytes(left), &plan->kv,
                           reterr));
    judge(plan, limit, moment);
    return OOMSIGHT_OK;
}

static void hold_insisted(oos_moment *moment, const oos_kv_fill *fill)
{
    oos_moment_hold(moment, OOS_OWNER_ONE_REQUEST,
                    oos_amount_exact(fill->needed_bytes, OOS_SOURCE_DERIVED,
                                     "what the engine insists on before it starts"));
    oos_moment_hold(moment, OOS_OWNER_NULL_BLOCK,
                    oos_amount_exact(oos_sub(fill->insisted_bytes, fill->needed_bytes), OOS_SOURCE_DERIVED,
                                     "a block the engine keeps to itself, a state for every sequence"));
}

/* An override of the blocks stands for any amount of memory in the check: what the profile measured does not enter. */
static bool checked_by_override(const oos_setup *setup)
{
    return setup->blocks_override.known && setup->rules->override_in_check;
}

static oomsight_status fill_cache(oos_arena *arena, oos_plan *plan, oos_moment *moment, oos_limit *ret_limit,
                                  oomsight_error *reterr)
{
    const oos_setup *setup = vllm_setup(plan);
    *ret_limit = budget_limit(plan);
    if (setup->kv_cache_memory_bytes.known) { /* nothing is measured, the number is taken */
        uint64_t const given = oos_min(setup->kv_cache_memory_bytes.value, INT64_MAX);
        *ret_limit = oos_limit_exact(setup->kv_cache_memory_bytes.value);
        OOS_TRY(oos_kv_fill_in(arena, setup, &vllm_of(plan)->kv_shape, (int64_t)given, &plan->kv, reterr));
        moment->chance = plan->kv.refused ? 0 : 1;
    } else {
        OOS_TRY(size_by_budget(arena, plan, moment, reterr));
    }
    if (!checked_by_override(setup)) return OOMSIGHT_OK;
    *ret_limit = oos_limit_exact(oos_mul(setup->blocks_override.value, vllm_of(plan)->kv_shape.block_bytes));
    oos_ledger_init(&moment->ledger, arena);
    return OOMSIGHT_OK;
}

oomsight_status oos_phases_kv(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    oos_assert(plan->phase_count < OOS_PHASE_COUNT);
    oos_moment *moment = &plan->phases[plan->phase_count++];
    oos_moment_init(moment, arena, OOS_PHASE_KV_SIZING);
    moment->refusal = true;
    oos_limit limit;
    OOS_TRY(fill_cache(arena, plan, moment, &limit, reterr));
    bool const tight = moment->tight;
    double const chance = moment->chance;
    hold_insisted(moment, &plan->kv);
    OOS_TRY(oos_moment_close(moment, limit, reterr));
    moment->ok = !plan->kv.refused;
    moment->tight = tight;
    moment->chance = chance;
    moment->message = plan->kv.refusal;
    return OOMSIGHT_OK;
}

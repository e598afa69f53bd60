/* Which side of the span of shares a planned command is on, by the phase that it fails in. */
#include "engines/vllm/solve/solve.h"

enum {
    HIGHEST = 970, /* thousandths: the rest is the driver's and the desktop's */
    LOWEST = 50
};

oos_side oos_trial_side(const oos_search *s, const oos_trial *t)
{
    oos_phase const phase = s->tight_too ? t->first_short : t->first_doubtful;
    if (oos_trial_fits(s, t)) return OOS_SIDE_FITS;
    if (phase == OOS_PHASE_KV_SIZING) return OOS_SIDE_SMALL;              /* the cache is refused */
    if (phase == OOS_PHASE_INIT_FREE_MEMORY_CHECK) return OOS_SIDE_LARGE; /* others hold too much */
    return phase > OOS_PHASE_KV_SIZING && phase <= OOS_PHASE_SLEEP_WAKE ? OOS_SIDE_LARGE : OOS_SIDE_NEITHER;
}

static oos_side try_share(void *of, uint64_t share)
{
    oos_budget *b = of;
    if (share)
        oos_set_gmu_thousandths(&b->t->serve, share);
    else
        b->t->serve.gpu_memory_utilization = vllm_setup(b->s->plan)->serve->gpu_memory_utilization;
    if (!oos_trial_plan_other(b->s, b->t, b->device, NULL, NULL)) return OOS_SIDE_NEITHER;
    return oos_trial_side(b->s, b->t);
}

void oos_budget_bounds(const oos_search *s, uint64_t *ret_own, uint64_t *ret_lowest, uint64_t *ret_highest)
{
    *ret_own = (uint64_t)(vllm_setup(s->plan)->gpu_memory_utilization * 1000 + 0.5);
    *ret_lowest = LOWEST;
    *ret_highest = HIGHEST;
    if (s->plan->device.unified) /* no answer above what its own sentence calls safe */
        *ret_highest = oos_min(HIGHEST, (uint64_t)(oos_plan_safe_share(s->plan) * 1000 + 0.5));
}

oos_share oos_budget_of(oos_budget *b)
{
    oos_share share = {.at = try_share, .of = b};
    oos_budget_bounds(b->s, &share.own, &share.lowest, &share.highest);
    return share;
}

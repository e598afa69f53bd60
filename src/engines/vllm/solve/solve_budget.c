/* Halving the span of shares, led by the phase that a share fails in. */
#include "engines/vllm/solve/solve.h"

enum {
    STEP = 10,     /* thousandths */
    HIGHEST = 970, /* the rest is the driver's and the desktop's */
    LOWEST = 50
};

typedef enum side {
    FITS,
    TOO_SMALL, /* the cache is refused */
    TOO_LARGE, /* what lies outside has no room, or others hold too much */
    NEITHER    /* another share changes nothing about it */
} side;

static side side_of(const oos_search *s, const oos_trial *t)
{
    oos_phase const phase = s->tight_too ? t->first_short : t->first_doubtful;
    if (oos_trial_fits(s, t)) return FITS;
    if (phase == OOS_PHASE_KV_SIZING) return TOO_SMALL;
    if (phase == OOS_PHASE_INIT_FREE_MEMORY_CHECK) return TOO_LARGE;
    return phase > OOS_PHASE_KV_SIZING && phase <= OOS_PHASE_SLEEP_WAKE ? TOO_LARGE : NEITHER;
}

static side try_share(oos_budget *b, uint64_t share)
{
    if (share)
        oos_set_gmu_thousandths(&b->t->serve, share);
    else
        b->t->serve.gpu_memory_utilization = vllm_setup(b->s->plan)->serve->gpu_memory_utilization;
    if (!oos_trial_plan_other(b->s, b->t, b->device, NULL, NULL)) return NEITHER;
    return side_of(b->s, b->t);
}

oos_budget oos_budget_of(oos_search *s, oos_trial *t, const oos_device_facts *device)
{
    double const own = vllm_setup(s->plan)->gpu_memory_utilization;
    return (oos_budget){s, t, device, (uint64_t)(own * 1000 + 0.5), LOWEST, HIGHEST};
}

bool oos_budget_fits(oos_budget *b, uint64_t share)
{
    return try_share(b, share) == FITS;
}

bool oos_budget_find(oos_budget *b, uint64_t hint, uint64_t *ret_share)
{
    uint64_t small = b->lowest - STEP, large = b->highest + STEP; /* known to be too small, too large */
    for (uint64_t share = 0, next = hint;; share = next) {
        uint64_t const value = share ? share : b->own;
        switch (try_share(b, share)) {
        case FITS: *ret_share = share; return true;
        case TOO_SMALL: small = oos_max(small, value / STEP * STEP); break;
        case TOO_LARGE: large = oos_min(large, oos_round_up(value, STEP)); break;
        case NEITHER: return false;
        }
        if (share || !hint) {
            if (small + STEP >= large) return false;
            next = (small + (large - small) / 2) / STEP * STEP;
        }
    }
}

/* From `good`, which fits, towards `bad`, which does not: the last that does. */
static uint64_t last_good(oos_budget *b, uint64_t good, uint64_t bad)
{
    while (good > bad ? good - bad > STEP : bad - good > STEP) {
        uint64_t middle = (good + bad) / 2 / STEP * STEP;
        if (middle == good || middle == bad) middle = good > bad ? bad + STEP : good + STEP;
        if (try_share(b, middle) == FITS)
            good = middle;
        else
            bad = middle;
    }
    return good;
}

uint64_t oos_budget_nearest(oos_budget *b, uint64_t share)
{
    if (!share || try_share(b, 0) == FITS) return 0;
    return last_good(b, share, share > b->own ? b->own / STEP * STEP : oos_round_up(b->own, STEP));
}

uint64_t oos_budget_highest(oos_budget *b, uint64_t share)
{
    uint64_t const from = share ? share : b->own / STEP * STEP;
    if (from >= b->highest) return share;
    if (try_share(b, b->highest) == FITS) return b->highest;
    uint64_t const best = last_good(b, from, b->highest);
    return best > from ? best : share;
}

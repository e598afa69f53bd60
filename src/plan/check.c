/* What holds of every plan: the moments are in the order of a start, each adds up, and the verdict is that of the moments. */
#include "plan/plan.h"

_Static_assert(OOS_PHASE_COUNT <= 32, "a bit for each phase that was seen");

static bool moments_are_sound(const oos_plan *plan)
{
    uint32_t seen = 0;
    for (size_t i = 0; i < plan->phase_count; i++) {
        const oos_moment *moment = &plan->phases[i];
        if (seen >> moment->phase & 1) return false; /* a phase is gone through once */
        seen |= (uint32_t)1 << moment->phase;
        if (moment->ledger.held_bytes != moment->peak_bytes) return false;
        if (moment->chance < 0 || moment->chance > 1) return false;
    }
    return plan->answer.phase == OOS_PHASE_COUNT || seen >> plan->answer.phase & 1;
}

static bool verdict_is_sound(const oos_plan *plan)
{
    bool const fits = plan->answer.verdict == OOMSIGHT_VERDICT_FITS;
    if (plan->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN) return plan->answer.probability < 0;
    if (fits != (plan->answer.phase == OOS_PHASE_COUNT))
        return plan->answer.verdict == OOMSIGHT_VERDICT_TIGHT && plan->doubt_count > 0;
    for (size_t i = 0; fits && i < plan->phase_count; i++)
        if (!plan->phases[i].ok || plan->phases[i].tight) return false;
    return plan->answer.probability >= 0 && plan->answer.probability <= 1;
}

/* A fix changes something, and is certain only where no phase of its plan fails. */
static bool fixes_are_sound(const oos_plan *plan)
{
    for (size_t i = 0; i < plan->help.fix_count; i++) {
        const oos_fix *fix = &plan->help.fixes[i];
        if (fix->change_count == 0 && !fix->without && !fix->release) return false;
        if (fix->probability > 1) return false;
        if (fix->verdict == OOMSIGHT_VERDICT_FITS && fix->phase != OOS_PHASE_COUNT) return false;
    }
    return true;
}

bool oos_plan_is_sound(const oos_plan *plan)
{
    return plan->phase_count <= OOS_PHASE_COUNT && moments_are_sound(plan) && verdict_is_sound(plan) &&
           fixes_are_sound(plan);
}

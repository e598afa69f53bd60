/* The verdict of a plan, by its moments or by a refusal. */
#include "plan/plan.h"
#include "base/check.h"

#include <math.h>

/* Of 21 measured starts between the two certain answers as many started as their chance says, within what so few can tell
 * (tools/figures.py, docs/evidence/accuracy.md). What lies outside the model moves both ends. */
double oos_plan_probability(double chance)
{
    oos_assert(chance >= 0 && chance <= 1);
    double const low = OOS_PROBABILITY_FAILS + 0.05, high = OOS_PROBABILITY_FITS - 0.05;
    return rint((low + (high - low) * chance) * 100) / 100; /* further digits say nothing */
}

static void decided_by(oos_plan *plan, const oos_moment *moment)
{
    plan->answer.phase = moment->phase;
    plan->answer.tried_bytes = moment->tried_bytes ? oos_u64_of(moment->tried_bytes) : (oos_u64){0};
    plan->answer.phase_probability = rint((1 - moment->chance) * 100) / 100;
}

/* The first phase that fails at the best guess; where none does, the first that is about as doubtful as the most doubtful one. What goes
 * wrong first is what is seen. */
static const oos_moment *first_to_fail(const oos_plan *plan)
{
    for (size_t i = 0; i < plan->phase_count; i++)
        if (!plan->phases[i].ok) return &plan->phases[i];
    for (size_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].tight && plan->phases[i].chance < plan->answer.chance + 0.05)
            return &plan->phases[i];
    return NULL;
}

/* One phase that cannot be passed is enough to fail; the one that is named may come before it. */
void oos_plan_judge(oos_plan *plan)
{
    bool certain = false;
    plan->answer.verdict = OOMSIGHT_VERDICT_FITS;
    plan->answer.phase = OOS_PHASE_COUNT;
    plan->answer.phase_probability = 0;
    plan->answer.chance = 1;
    for (size_t i = 0; i < plan->phase_count; i++) {
        const oos_moment *moment = &plan->phases[i];
        certain = certain || (!moment->ok && !moment->tight);
        if (moment->chance < plan->answer.chance) plan->answer.chance = moment->chance;
    }
    const oos_moment *first = first_to_fail(plan);
    if (first) decided_by(plan, first);
    if (certain) {
        oos_assert(first != NULL); /* a phase that cannot be passed fails at the best guess */
        bool const refused = first->refusal && !first->tight;
        plan->answer.verdict = refused ? OOMSIGHT_VERDICT_REFUSED : OOMSIGHT_VERDICT_FAILS;
        plan->answer.chance = 0;
        plan->answer.probability = OOS_PROBABILITY_FAILS;
    } else if (first) {
        plan->answer.verdict = OOMSIGHT_VERDICT_TIGHT;
        plan->answer.probability = oos_plan_probability(plan->answer.chance);
    } else {
        plan->answer.probability = OOS_PROBABILITY_FITS;
    }
}

void oos_plan_refused(oos_plan *plan, oos_phase phase, bool may_be_over)
{
    plan->answer.verdict = may_be_over ? OOMSIGHT_VERDICT_TIGHT : OOMSIGHT_VERDICT_REFUSED;
    plan->answer.phase = phase;
    plan->answer.cause = OOS_CAUSE_CONFIG;
    plan->answer.chance = plan->answer.probability = may_be_over ? OOS_PROBABILITY_REFUSED_BEFORE : 0;
    plan->answer.phase_probability = 1 - plan->answer.probability;
    plan->answer.tried_bytes = (oos_u64){0};
}

/* What the engine does not take comes first and decides. The figures behind it stay: they are the command's as if it were taken,
 * which is what a reader wants to know next. */
oomsight_status oos_plan_refuse(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_refusal *r = &plan->refusal;
    plan->answer.why = oos_arena_format(arena, OOS_EXPECTED_ERROR "%s", r->sentence);
    if (!plan->answer.why) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a refusal");
    for (size_t i = plan->phase_count; i > 0; i--)
        if (plan->phases[i - 1].phase == r->phase)
            plan->phase_count = i - 1; /* what it refuses it does not reach */
    oos_assert(plan->phase_count < OOS_PHASE_COUNT);
    memmove(plan->phases + 1, plan->phases, plan->phase_count * sizeof *plan->phases);
    plan->phases[0] = (oos_moment){.phase = r->phase, .refusal = true, .message = r->sentence};
    plan->phase_count++;
    oos_plan_refused(plan, r->phase, r->may_be_over);
    return OOMSIGHT_OK;
}

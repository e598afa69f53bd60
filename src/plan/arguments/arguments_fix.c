/* Mending a refused command: each change is planned again, and only what is then not refused is offered. */
#include "base/shown.h"
#include "plan/arguments/arguments.h"
#include "plan/solve/solve_levers.h"

#include <stdio.h>

static bool mend(oos_search *s, oos_trial *t, const oos_mend *m)
{
    if (m->instead_of && !oos_serve_leave_out(s->arena, &t->serve, m->instead_of)) return false;
    if (m->leave_out) return oos_serve_leave_out(s->arena, &t->serve, m->flag);
    return oos_serve_set_u64(s->arena, &t->serve, m->flag, m->value);
}

bool oos_levers_mend(oos_search *s, const oos_refusal *refusal)
{
    for (size_t i = 0; i < refusal->mend_count; i++) {
        const oos_mend *m = &refusal->mends[i];
        oos_trial t = oos_trial_start(s);
        char number[32];
        if (!mend(s, &t, m) || !oos_trial_plan(s, &t) || t.phase == OOS_PHASE_ARGUMENTS ||
            (t.verdict == OOMSIGHT_VERDICT_REFUSED && t.phase == s->plan->phase))
            continue;
        if (m->leave_out) {
            t.words[t.word_count++] = "without";
            t.words[t.word_count] = oos_shown(s->arena, m->flag);
            if (!t.words[t.word_count++]) return false;
        } else {
            snprintf(number, sizeof number, "%llu", (unsigned long long)m->value);
            t.words[t.word_count++] = m->flag;
            t.words[t.word_count++] = number;
        }
        t.keeps = "everything else";
        t.gives_up = m->instead_of  ? "nothing: it was misspelt"
                     : m->leave_out ? "that flag"
                                    : "the number asked for";
        bool const starts = t.verdict == OOMSIGHT_VERDICT_FITS || t.verdict == OOMSIGHT_VERDICT_TIGHT;
        if (!(starts ? oos_trial_offer(s, &t) : oos_trial_offer_if_it_fits(s, &t))) return false;
    }
    return true;
}

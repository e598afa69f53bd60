/* The answers of a plan, one by one. */
#include "api/api.h"
#include "report/report.h"

#include <string.h>

const oos_plan *oos_api_plan(const oomsight_plan *plan)
{
    return &plan->plan;
}

const char *oos_api_plan_unknown_flag(const oomsight_plan *plan)
{
    for (size_t i = 0; i < plan->serve.flag_count; i++) {
        const oos_given_flag *flag = &plan->serve.flags[i];
        if (flag->effect == OOS_FLAG_UNKNOWN) return flag->name;
        oos_flag_hit const hit =
            oos_flags_find(&plan->facts->flags, oos_view_of(flag->name), plan->start.version);
        if (hit.record && !hit.here) return flag->name; /* another version has it */
    }
    return NULL;
}

oomsight_verdict oomsight_plan_verdict(const oomsight_plan *plan)
{
    return plan->plan.answer.verdict;
}

const char *oomsight_plan_answer(const oomsight_plan *plan)
{
    return oos_report_answer_word(&plan->plan);
}

int oomsight_plan_choices(const oomsight_plan *plan)
{
    return plan->plan.help.choices ? (int)plan->plan.help.choice_count : -1;
}

double oomsight_plan_probability(const oomsight_plan *plan)
{
    return plan->plan.answer.probability;
}

const char *oomsight_plan_phase(const oomsight_plan *plan)
{
    return plan->plan.answer.phase == OOS_PHASE_COUNT ? NULL : oos_phase_word(plan->plan.answer.phase);
}

uint64_t oomsight_plan_weights_bytes(const oomsight_plan *plan)
{
    return plan->plan.sizes.weights.loaded_bytes;
}

uint64_t oomsight_plan_kv_tokens(const oomsight_plan *plan)
{
    return plan->plan.kv.tokens;
}

const char *oomsight_plan_best_flags(const oomsight_plan *plan)
{
    if (oos_plan_needs_nothing(&plan->plan)) return "";
    for (size_t i = 0; i < plan->plan.help.fix_count; i++) /* what is taken out is no flag to add */
        if (!plan->plan.help.fixes[i].without && plan->plan.help.fixes[i].change_count)
            return plan->fix_flags[i];
    return NULL;
}

const char *oomsight_plan_best_command(const oomsight_plan *plan)
{
    return plan->plan.help.fix_count ? plan->plan.help.fixes[0].command : NULL;
}

const char *oomsight_plan_cause(const oomsight_plan *plan)
{
    return oos_cause_word(plan->plan.answer.cause);
}

size_t oomsight_plan_moment_count(const oomsight_plan *plan)
{
    return plan->plan.phase_count;
}

int oomsight_plan_moment(const oomsight_plan *plan, size_t index, oomsight_moment *ret_moment)
{
    return index < plan->plan.phase_count && oos_api_moment_give(&plan->plan.phases[index], ret_moment);
}

int oomsight_plan_hold(const oomsight_plan *plan, size_t moment_index, size_t index, oomsight_hold *ret_hold)
{
    return moment_index < plan->plan.phase_count &&
           oos_api_hold_give(&plan->plan.phases[moment_index].ledger, index, ret_hold);
}

oomsight_fix oos_api_fix_of(const oos_fix *fix, const char *flags)
{
    return (oomsight_fix){.flags = flags,
                          .verdict = fix->verdict,
                          .kv_tokens = fix->kv_tokens,
                          .keeps = fix->keeps,
                          .gives_up = fix->gives_up,
                          .name = fix->name,
                          .command = fix->command,
                          .without = fix->without,
                          .probability = fix->probability,
                          .likely_length = fix->likely_length,
                          .certain_length = fix->certain_length,
                          .planned = 1};
}

size_t oomsight_plan_fix_count(const oomsight_plan *plan)
{
    return plan->plan.help.fix_count;
}

int oomsight_plan_fix(const oomsight_plan *plan, size_t index, oomsight_fix *ret_fix)
{
    if (index >= plan->plan.help.fix_count) return 0;
    oomsight_fix const fix = oos_api_fix_of(&plan->plan.help.fixes[index], plan->fix_flags[index]);
    oos_params_give(ret_fix, &fix, sizeof fix);
    return 1;
}

const char *oomsight_plan_note(const oomsight_plan *plan, size_t index)
{
    return index < plan->plan.told.note_count ? plan->plan.told.notes[index] : NULL;
}

/* An assignment goes before the command, a blank takes a word apart, and what is taken out cannot be added. */
static bool survives_shell(const oos_fix *fix)
{
    if (fix->without || fix->release) return false;
    for (size_t i = 0; i < fix->change_count; i++)
        if (strpbrk(fix->change[i], " \t\n*?")) return false;
    return fix->change_count && fix->change[0][0] == '-';
}

/* What was given is not taken back. */
static bool keeps_given(const oomsight_plan *plan, const oos_fix *fix)
{
    if (fix->rung > OOS_RUNG_UNASKED) return false;
    for (size_t i = 0; i < fix->change_count; i++)
        if (oos_serve_given(&plan->serve, fix->change[i])) return false;
    return true;
}

const char *const *oomsight_plan_best_words(const oomsight_plan *plan, size_t *ret_count)
{
    static const char *const none[] = {NULL};
    *ret_count = 0;
    if (oos_plan_needs_nothing(&plan->plan)) return none;
    for (size_t i = 0; i < plan->plan.help.fix_count; i++) {
        const oos_fix *fix = &plan->plan.help.fixes[i];
        if (!survives_shell(fix) || !keeps_given(plan, fix)) continue;
        *ret_count = fix->change_count;
        return fix->change;
    }
    return NULL;
}

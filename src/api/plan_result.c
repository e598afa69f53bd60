/* The answers of a plan, one by one. */
#include "api/plan_handle.h"
#include "report/plan.h"

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
    return plan->plan.verdict;
}

const char *oomsight_plan_answer(const oomsight_plan *plan)
{
    return oos_report_answer_word(&plan->plan);
}

int oomsight_plan_choices(const oomsight_plan *plan)
{
    return plan->plan.choices ? (int)plan->plan.choice_count : -1;
}

double oomsight_plan_probability(const oomsight_plan *plan)
{
    return plan->plan.probability;
}

const char *oomsight_plan_phase(const oomsight_plan *plan)
{
    return plan->plan.phase == OOS_PHASE_COUNT ? NULL : oos_phase_word(plan->plan.phase);
}

uint64_t oomsight_plan_weights_bytes(const oomsight_plan *plan)
{
    return plan->plan.weights.loaded_bytes;
}

uint64_t oomsight_plan_kv_tokens(const oomsight_plan *plan)
{
    return plan->plan.kv.tokens;
}

const char *oomsight_plan_best_flags(const oomsight_plan *plan)
{
    if (oos_plan_needs_nothing(&plan->plan)) return "";
    for (size_t i = 0; i < plan->plan.fix_count; i++) /* what is taken out is no flag to add */
        if (!plan->plan.fixes[i].without && plan->plan.fixes[i].change_count) return plan->fix_flags[i];
    return NULL;
}

const char *oomsight_plan_best_command(const oomsight_plan *plan)
{
    return plan->plan.fix_count ? plan->plan.fixes[0].command : NULL;
}

const char *oomsight_plan_cause(const oomsight_plan *plan)
{
    return oos_cause_word(plan->plan.cause);
}

size_t oomsight_plan_moment_count(const oomsight_plan *plan)
{
    return plan->plan.phase_count;
}

static size_t hold_count(const oos_ledger *ledger)
{
    size_t count = 0;
    for (const oos_hold *row = ledger->first; row; row = row->next) count++;
    return count;
}

int oomsight_plan_moment(const oomsight_plan *plan, size_t index, oomsight_moment *ret_moment)
{
    if (index >= plan->plan.phase_count) return 0;
    const oos_moment *p = &plan->plan.phases[index];
    oomsight_moment const moment = {.phase = oos_phase_word(p->phase),
                                    .peak_bytes = p->peak_bytes,
                                    .peak_low = p->peak_low,
                                    .peak_high = p->peak_high,
                                    .limit_bytes = p->limit_bytes,
                                    .ok = p->ok,
                                    .hold_count = hold_count(&p->ledger)};
    oos_params_give(ret_moment, &moment, sizeof moment);
    return 1;
}

int oomsight_plan_hold(const oomsight_plan *plan, size_t moment_index, size_t index, oomsight_hold *ret_hold)
{
    if (moment_index >= plan->plan.phase_count) return 0;
    const oos_hold *row = plan->plan.phases[moment_index].ledger.first;
    for (size_t i = 0; row && i < index; i++) row = row->next;
    if (!row) return 0;
    oomsight_hold const hold = {.owner = oos_owner_word(row->owner),
                                .bytes = row->amount.bytes,
                                .low = row->amount.low,
                                .high = row->amount.high,
                                .source = oos_source_word(row->amount.source),
                                .how = row->amount.how};
    oos_params_give(ret_hold, &hold, sizeof hold);
    return 1;
}

size_t oomsight_plan_fix_count(const oomsight_plan *plan)
{
    return plan->plan.fix_count;
}

int oomsight_plan_fix(const oomsight_plan *plan, size_t index, oomsight_fix *ret_fix)
{
    if (index >= plan->plan.fix_count) return 0;
    const oos_fix *found = &plan->plan.fixes[index];
    oomsight_fix const fix = {.flags = plan->fix_flags[index],
                              .verdict = found->verdict,
                              .kv_tokens = found->kv_tokens,
                              .keeps = found->keeps,
                              .gives_up = found->gives_up,
                              .name = found->name,
                              .command = found->command,
                              .without = found->without,
                              .probability = found->probability,
                              .likely_length = found->likely_length,
                              .certain_length = found->certain_length};
    oos_params_give(ret_fix, &fix, sizeof fix);
    return 1;
}

const char *oomsight_plan_note(const oomsight_plan *plan, size_t index)
{
    return index < plan->plan.note_count ? plan->plan.notes[index] : NULL;
}

/* An assignment goes before the command, a blank takes a word apart, and what is taken out cannot be added. */
static bool survives_shell(const oos_fix *fix)
{
    if (fix->without) return false;
    for (size_t i = 0; i < fix->change_count; i++)
        if (strpbrk(fix->change[i], " \t\n*?")) return false;
    return fix->change_count && fix->change[0][0] == '-';
}

const char *const *oomsight_plan_best_words(const oomsight_plan *plan, size_t *ret_count)
{
    static const char *const none[] = {NULL};
    *ret_count = 0;
    if (oos_plan_needs_nothing(&plan->plan)) return none;
    for (size_t i = 0; i < plan->plan.fix_count; i++) {
        const oos_fix *fix = &plan->plan.fixes[i];
        if (!survives_shell(fix)) continue;
        *ret_count = fix->change_count;
        return fix->change;
    }
    return NULL;
}

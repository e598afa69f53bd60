/* Rules of which the source of a learned release is another than that of the newest known one. A rule is asked for where the plan is another
 * with another value of it: such a change is a doubt, the others are none for this command. */
#include "api/api.h"
#include "base/check.h"
#include "base/shown.h"

#include <stdlib.h>

enum { TOLD_MAX = 3, WORDS_MAX = 200 };

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* What a reader of the two would see. */
static bool is_alike(const oos_plan *a, const oos_plan *b)
{
    if (a->answer.verdict != b->answer.verdict || a->answer.phase != b->answer.phase ||
        !same_text(a->refusal.sentence, b->refusal.sentence) || a->kv.tokens != b->kv.tokens ||
        a->phase_count != b->phase_count)
        return false;
    for (size_t i = 0; i < a->phase_count; i++)
        if (a->phases[i].peak_bytes != b->phases[i].peak_bytes || a->phases[i].ok != b->phases[i].ok ||
            a->phases[i].limit_bytes != b->phases[i].limit_bytes)
            return false;
    return true;
}

/* With what the installed engine said of the command, where it took it: that is no matter of a rule. */
static oos_start start_of(const oomsight_plan *plan, const oos_plan_ask *ask)
{
    oos_start start = plan->start;
    const oos_exact_told *told = plan->plan.exact;
    if (!told || told->problem || told->answer->verdict != OOS_EXACT_TAKEN) return start;
    start.exact = told->answer;
    if (told->sized && !ask->params->kv_layers_json) start.kv_layers_json = told->answer->kv_layers_json;
    return start;
}

/* `scratch` is reset. */
static bool is_asked_for(const oomsight_plan *plan, oos_start start, oos_arena *scratch,
                         const oos_plan *without, oos_view rule)
{
    oos_rule_trial trials[OOS_RULE_TRIALS_MAX];
    size_t const count = oos_rule_trials(plan->facts->rules, rule, trials);
    for (size_t i = 0; i < count; i++) {
        oos_plan other = {0};
        start.trial = &trials[i];
        oos_arena_reset(scratch);
        if (plan->engine->plan(scratch, &start, plan->facts, &other, NULL) != OOMSIGHT_OK ||
            !is_alike(without, &other))
            return true;
    }
    return false;
}

static const char *quoted(oos_arena *arena, oos_view raw)
{
    const char *text = oos_scan_text(arena, raw);
    const char *copy = text ? oos_arena_copy(arena, oos_shown_beginning(oos_view_of(text), WORDS_MAX)) : NULL;
    return copy ? oos_shown(arena, copy) : NULL;
}

static const char *sentence(oos_arena *arena, const oos_learned_doubt *doubt)
{
    const char *rule = quoted(arena, doubt->rule), *unit = quoted(arena, doubt->unit);
    const char *first = doubt->added_count ? quoted(arena, doubt->added[0]) : "",
               *second = doubt->added_count > 1 ? quoted(arena, doubt->added[1]) : "";
    if (!rule || !unit || !first || !second) return NULL;
    if (doubt->gone)
        return oos_arena_format(arena, "The rule %s may no longer hold: %s is gone.", rule, unit);
    if (!doubt->added_count)
        return oos_arena_format(arena, "The rule %s may no longer hold: %s has %llu statements less.", rule,
                                unit, (unsigned long long)doubt->removed);
    return doubt->added_count > 1
               ? oos_arena_format(arena, "The rule %s may no longer hold: %s now has `%s` and `%s`.", rule,
                                  unit, first, second)
               : oos_arena_format(arena, "The rule %s may no longer hold: %s now has `%s`.", rule, unit,
                                  first);
}

/* Into ask->changed: a sentence for each of the first, and one that names the others. */
static oomsight_status changed_tell(oomsight_plan *plan, oos_plan_ask *ask,
                                    const oos_learned_doubt *const *used, size_t count,
                                    oomsight_error *reterr)
{
    oos_text rest = {0};
    for (size_t i = 0; i < count && i < TOLD_MAX; i++)
        ask->changed[ask->changed_count++] = sentence(plan->arena, used[i]);
    for (size_t i = TOLD_MAX; i < count; i++)
        oos_text_printf(&rest, "%s%s", i > TOLD_MAX ? ", " : "", quoted(plan->arena, used[i]->rule));
    if (count > TOLD_MAX)
        ask->changed[ask->changed_count++] =
            rest.failed ? NULL
                        : oos_arena_format(plan->arena, "Rules that may no longer hold as well: %.*s.",
                                           (int)rest.len, rest.ptr);
    oos_text_free(&rest);
    for (size_t i = 0; i < ask->changed_count; i++)
        if (!ask->changed[i]) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a doubt");
    return OOMSIGHT_OK;
}

static oomsight_status changed_find(oomsight_plan *plan, oos_plan_ask *ask, const oos_learned_doubt *list,
                                    size_t count, oomsight_error *reterr)
{
    oos_plan without = {0};
    oos_start const start = start_of(plan, ask);
    oos_arena *own = oos_arena_create(16 << 10), *scratch = oos_arena_create(32 << 10);
    const oos_learned_doubt **used = OOS_NEW_ARRAY(plan->arena, const oos_learned_doubt *, count);
    size_t used_count = 0;
    oomsight_status status = own && scratch && used
                                 ? plan->engine->plan(own, &start, plan->facts, &without, reterr)
                                 : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a plan");
    for (size_t i = 0; status == OOMSIGHT_OK && i < count; i++)
        if (is_asked_for(plan, start, scratch, &without, list[i].rule)) used[used_count++] = &list[i];
    if (status == OOMSIGHT_OK) status = changed_tell(plan, ask, used, used_count, reterr);
    oos_arena_free(scratch);
    oos_arena_free(own);
    return status;
}

oomsight_status oos_ask_changed(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr)
{
    bool const refused = plan->plan.exact && plan->plan.exact->refused_after_all;
    if (!ask->compared.rules.len || refused) return OOMSIGHT_OK;
    size_t count;
    oos_learned_doubt *list = OOS_NEW_ARRAY(plan->arena, oos_learned_doubt, OOS_LEARNED_DOUBTS_MAX);
    ask->changed = OOS_NEW_ARRAY(plan->arena, const char *, TOLD_MAX + 1);
    if (!list || !ask->changed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for doubts");
    if (!oos_learned_doubts(&ask->compared, list, OOS_LEARNED_DOUBTS_MAX, &count)) return OOMSIGHT_OK;
    OOS_TRY(changed_find(plan, ask, list, count, reterr));
    ask->newer = ask->changed_count
                     ? "This version is newer than any supported one: its flags were read from the "
                       "installed engine, and rules that this command uses have changed in its source."
                     : "This version is newer than any supported one: its flags were read from the "
                       "installed engine, and no rule that this command uses has changed in its source.";
    return OOMSIGHT_OK;
}

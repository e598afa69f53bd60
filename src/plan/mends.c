/* A refused command is corrected and planned again, until the engine takes it. */
#include "base/check.h"
#include "base/shown.h"
#include "plan/plan.h"

#include <string.h>

bool oos_check_words(oos_check *c)
{
    const oos_serve_refusal *r = &c->serve->refusal;
    oos_refusal *refusal = c->refusal;
    if (!r->sentence) return false;
    oos_assert(refusal->mend_count == 0);
    refusal->may_be_over = r->may_be_over;
    if (r->nearest) /* a switch that was given a value, or a flag that was misspelt */
        refusal->mends[refusal->mend_count++] = (oos_mend){.flag = r->nearest,
                                                           .instead_of = r->misspelt ? r->misspelt : r->flag,
                                                           .misspelt = r->misspelt,
                                                           .rewritten = r->meant_value && !r->misspelt,
                                                           .text = r->meant_value};
    if (r->flag) oos_check_mend_without(c, r->flag);
    return oos_check_refuse(c, "%s", r->sentence);
}

bool oos_mend_apply(oos_arena *arena, oos_serve *serve, const oos_mend *m)
{
    if (m->instead_of && !oos_serve_leave_out(arena, serve, m->instead_of)) return false;
    if (m->leave_out) return oos_serve_leave_out(arena, serve, m->flag);
    if (m->value == 0) return oos_serve_give(arena, serve, m->flag, m->text);
    return oos_serve_set_u64(arena, serve, m->flag, m->value);
}

/* A number that was given to a flag which then has to go is not said. */
static void unsay(oos_mended *said, const char *flag)
{
    size_t count = 0;
    for (size_t i = 0; i + 1 < said->word_count; i += 2) {
        if (strcmp(said->words[i], flag) == 0) continue;
        said->words[count++] = said->words[i];
        said->words[count++] = said->words[i + 1];
    }
    said->word_count = count;
}

static const char that_flag[] = "without that flag"; /* the only one */

/* NULL: no memory. */
static const char *without(oos_search *s, const char *flag)
{
    return *flag == '-' ? oos_arena_format(s->arena, "without %s", flag)
                        : "without the words that belong to no flag";
}

static bool leave_out(oos_search *s, oos_mended *said, const char *flag)
{
    oos_assert(said->leave_out_count < OOS_MENDED_MAX);
    const char *shown = oos_shown(s->arena, flag);
    if (shown) said->leave_out[said->leave_out_count++] = shown;
    return shown;
}

static bool say(oos_search *s, oos_mended *said, const oos_mend *m)
{
    const char *price = m->rewritten ? "the number is written as the engine reads it"
                        : m->misspelt || (m->instead_of && m->text) ? "the flag with the nearest name is used"
                        : m->instead_of                             ? "a switch takes no value"
                                                                    : "another value than the requested one";
    unsay(said, m->flag);
    if (m->leave_out) {
        if (!leave_out(s, said, m->flag)) return false;
        price = said->gives_up ? without(s, said->leave_out[said->leave_out_count - 1]) : that_flag;
    } else {
        const char *word = m->text    ? oos_shown(s->arena, m->text)
                           : m->value ? oos_arena_format(s->arena, "%llu", (unsigned long long)m->value)
                                      : NULL;
        if ((!word && (m->text || m->value)) || (m->misspelt && !leave_out(s, said, m->instead_of)))
            return false;
        oos_assert(said->word_count + 2 <= 2 * OOS_MENDED_MAX);
        said->words[said->word_count++] = m->flag;
        said->words[said->word_count++] = word; /* NULL: a switch */
    }
    if (!price || (said->gives_up && strcmp(said->gives_up, price) == 0)) return price;
    if (said->gives_up == that_flag) said->gives_up = without(s, said->leave_out[0]);
    said->gives_up = said->gives_up ? oos_arena_format(s->arena, "%s; %s", said->gives_up, price) : price;
    return said->gives_up;
}

const char *oos_refusal_sentence(const oos_plan *plan)
{
    if (plan->refusal.sentence) return plan->refusal.sentence;
    return plan->answer.phase == OOS_PHASE_ENV && plan->answer.verdict == OOMSIGHT_VERDICT_REFUSED
               ? plan->answer.why
               : NULL;
}

static bool same_refusal(const oos_plan *a, const oos_plan *b)
{
    const char *one = oos_refusal_sentence(a), *other = oos_refusal_sentence(b);
    return one && other && strcmp(one, other) == 0;
}

/* What the refusal names, and what the engine adds. */
static size_t mends_of(const oos_search *s, const oos_plan *plan, oos_mend *ret_mends)
{
    size_t const count = plan->refusal.mend_count;
    oos_assert(count <= OOS_MENDS_MAX);
    memcpy(ret_mends, plan->refusal.mends, count * sizeof *ret_mends);
    return s->table->mends_add ? s->table->mends_add(plan, ret_mends, count) : count;
}

bool oos_repair_step(oos_search *s, oos_repair *r, const oos_mend *mends, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const oos_plan *next = s->table->plan_mended(s, r->plan, &mends[i]);
        if (!next || same_refusal(r->plan, next)) continue;
        if (!say(s, &r->said, &mends[i])) return false;
        r->plan = next;
        return true;
    }
    return false;
}

bool oos_repair_follow(oos_search *s, const oos_mend *first, oos_repair *ret_repair)
{
    oos_repair r = {.plan = s->plan};
    bool goes_on = oos_repair_step(s, &r, first, 1);
    for (int steps = 1; goes_on && steps < OOS_MENDED_MAX; steps++) {
        oos_mend mends[OOS_MENDS_MAX];
        if (!oos_refusal_sentence(r.plan) && !(s->table->is_held_down && s->table->is_held_down(r.plan)))
            break;
        goes_on = oos_repair_step(s, &r, mends, mends_of(s, r.plan, mends));
    }
    *ret_repair = r;
    return r.plan != s->plan && !oos_refusal_sentence(r.plan);
}

bool oos_repair_offer(oos_search *s, const oos_repair *r)
{
    oos_search mended = *s;
    oos_trial const t = {.verdict = r->plan->answer.verdict,
                         .phase = r->plan->answer.phase,
                         .probability = r->plan->answer.probability,
                         .kv_tokens = r->plan->kv.tokens,
                         .keeps = "everything else"};
    mended.mended = r->said;
    bool const enough_memory = oos_trial_offer(&mended, &t);
    s->count = mended.count;
    return enough_memory;
}

bool oos_repairs_find(oos_search *s, oos_repair *ret_short, size_t *ret_short_count)
{
    oos_mend mends[OOS_MENDS_MAX];
    size_t const count = mends_of(s, s->plan, mends);
    *ret_short_count = 0;
    for (size_t i = 0; i < count; i++) {
        oos_repair r;
        if (!oos_repair_follow(s, &mends[i], &r)) continue;
        if (!oos_answer_starts(r.plan->answer.verdict, r.plan->answer.probability) ||
            oos_plan_too_full(r.plan, r.plan->doubtful.share))
            ret_short[(*ret_short_count)++] = r;
        else if (!oos_repair_offer(s, &r))
            return false;
        if (mends[i].instead_of) break; /* what was meant is known: nothing is left out in its place */
    }
    return true;
}

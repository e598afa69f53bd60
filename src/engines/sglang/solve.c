/* What would help, by the rungs of the ladder: a rung is gone down to only where nothing above it starts. Within one the fewest flags
 * are tried first. Everything that is offered was planned again. */
#include "engines/sglang/sglang.h"
/* ---- down the ladder ---- */

#define LAST(...)                                                                                            \
    {                                                                                                        \
        .rung = OOS_RUNG_ASKED, .tokens = LEAST_TOKENS, .parallel = true, __VA_ARGS__                        \
    }
static const sglang_stage stages[] = {
    {.rung = OOS_RUNG_NOTHING, .tokens = USUAL_TOKENS},
    {.rung = OOS_RUNG_UNASKED, .tokens = USUAL_TOKENS},
    {.rung = OOS_RUNG_LITTLE, .tokens = USUAL_TOKENS},
    {.rung = OOS_RUNG_ASKED, .tokens = USUAL_TOKENS},
    {.rung = OOS_RUNG_UNASKED, .tokens = LEAST_TOKENS},
    {.rung = OOS_RUNG_LITTLE, .tokens = LEAST_TOKENS},
    {.rung = OOS_RUNG_ASKED, .tokens = LEAST_TOKENS},
    LAST(.eager = false),
    LAST(.weights = true),
    LAST(.eager = true),
    LAST(.weights = true, .eager = true),
};
enum { STAGES = sizeof stages / sizeof *stages };

/* Between these it is not worth while to be certain: each group is tried again where a start is only likely. */
static const size_t groups[] = {3, 4, 7, STAGES};

/* A second answer gives more than the first: a longer request, or more of them. It may cost a little, and use GPUs that are idle. */
static bool offer_more(sglang_search *s, sglang_stage at)
{
    const oos_fix first = s->fixes[s->count - 1];
    uint64_t const length = sglang_of(s->plan)->context_length;
    bool const longer = first.kv_tokens < length;
    sglang_point p;
    if (at.rung < OOS_RUNG_LITTLE) at.rung = OOS_RUNG_LITTLE;
    at.parallel = true;
    sglang_levers_of(s, &at);
    if (!sglang_most_tokens(s, &p)) return true;
    size_t const before = s->count;
    if (!sglang_offer(s, &p, longer ? "longest_context" : "most_requests")) return false;
    if (s->count == before) return true;
    const oos_fix *more = &s->fixes[before];
    bool const worth = longer ? oos_min(more->kv_tokens, length) > first.kv_tokens + first.kv_tokens / 20
                              : more->requests > first.requests + first.requests / 10;
    if (!worth) s->count = before;
    return true;
}

static bool answers_find(sglang_search *s, bool *ret_eager)
{
    size_t const most = sizeof groups / sizeof *groups - (s->gpus ? 0 : 1);
    for (size_t group = 0; group < most; group++)
        for (int round = 0; round < 2; round++) {
            s->certain = round == 0;
            for (size_t i = group ? groups[group - 1] : 0; i < groups[group]; i++) {
                sglang_point p;
                sglang_levers_of(s, &stages[i]);
                if (!sglang_least_change(s, &p)) continue;
                *ret_eager = p.at[LEVER_EAGER] != 0;
                if (!sglang_offer(s, &p, "least_change")) return false;
                return s->count == 0 || !s->gpus || offer_more(s, stages[i]);
            }
            if (oos_plan_likely(s->plan)) break; /* no more certain than what there is */
        }
    return true;
}

/* It starts, and turns requests of its own length away: what costs little and holds them. */
static bool room_find(sglang_search *s)
{
    static const sglang_stage tries[] = {{.rung = OOS_RUNG_NOTHING},
                                         {.rung = OOS_RUNG_LITTLE, .parallel = true}};
    sglang_point p;
    s->certain = true;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        sglang_levers_of(s, &tries[i]);
        s->counts[LEVER_CONTEXT] = 1;
        s->need = sglang_of(s->plan)->context_length;
        if (sglang_least_change(s, &p)) return sglang_offer(s, &p, "least_change");
    }
    return true;
}
/* ---- the search ---- */

/* False when memory runs out. */
static bool find(sglang_search *s, oos_plan *plan)
{
    bool eager = false;
    if (plan->answer.verdict == OOMSIGHT_VERDICT_FITS && !s->mended.known) return room_find(s);
    if (s->gpus && !s->mended.known && !oos_plan_likely(plan) && !sglang_release_find(s)) return false;
    if (!answers_find(s, &eager)) return false;
    if (oos_plan_likely(plan)) return true;
    return (s->count && !eager) || sglang_needs_find(s, &plan->help.needs);
}

/* A context length above the model's own is refused, and the model's own is not: then what that takes. What this GPU has no kernels for
 * may start on another. */
static bool mend(sglang_search *s, oos_plan *plan)
{
    uint64_t const own = s->start->model->stated_length;
    oos_plan *mended = OOS_NEW(s->arena, oos_plan);
    if (!mended) return false;
    if (s->start->serve->refusal.sentence) return true;
    if (!s->request.context.known || s->request.context.value <= own)
        return sglang_needs_find(s, &plan->help.needs);
    s->mended = s->request.context = oos_u64_of(own);
    if (sglang_plan(s->arena, s->start, s->rules, &s->request, mended, NULL) != OOMSIGHT_OK ||
        mended->refusal.sentence || mended->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN)
        return true;
    s->plan = mended;
    if (!find(s, mended)) return false;
    plan->help.needs = mended->help.needs;
    return true;
}

static oomsight_status begin(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                             const oos_engine_facts *facts, const oos_gpus *gpus, const oos_plan *plan,
                             sglang_search *ret_search, oomsight_error *reterr)
{
    sglang_rules *rules = OOS_NEW(arena, sglang_rules);
    bool beyond;
    *ret_search = (sglang_search){.arena = arena,
                                  .scratch = scratch,
                                  .start = start,
                                  .facts = facts,
                                  .gpus = gpus,
                                  .rules = rules,
                                  .plan = plan,
                                  .fixes = OOS_NEW_ARRAY(arena, oos_fix, FIXES_MAX)};
    if (!rules || !ret_search->fixes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    OOS_TRY(oos_rules_fill(facts->rules, start->version, rules, &beyond, reterr));
    rules->version = start->version;
    rules->facts = oos_rule_book_facts(facts->rules);
    sglang_request_read(arena, start->serve, &ret_search->request);
    return OOMSIGHT_OK;
}

oomsight_status sglang_solve(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                             const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                             oomsight_error *reterr)
{
    sglang_search s;
    bool const asked = plan->answer.verdict == OOMSIGHT_VERDICT_FITS
                           ? plan->kv.tokens < sglang_of(plan)->context_length
                           : true;
    if (!asked || plan->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN) return OOMSIGHT_OK;
    OOS_TRY(begin(arena, scratch, start, facts, gpus, plan, &s, reterr));
    bool const enough_memory = plan->refusal.sentence ? mend(&s, plan) : find(&s, plan);
    if (!enough_memory) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    plan->help.fixes = s.fixes;
    plan->help.fix_count = plan->help.answer_count = s.count;
    return OOMSIGHT_OK;
}

oomsight_status sglang_choose(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                              const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                              oomsight_error *reterr)
{
    sglang_search s;
    OOS_TRY(begin(arena, scratch, start, facts, gpus, plan, &s, reterr));
    oos_elsewhere const e = sglang_elsewhere(&s);
    bool const fixed = sglang_is_given(&s, "--tp-size");
    if (oos_elsewhere_choices(arena, &e, fixed, &plan->help.choices, &plan->help.choice_count))
        return OOMSIGHT_OK;
    return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the devices");
}

/* What would help, by the rungs of the ladder: a rung is gone down to only where nothing above it starts. Within one the fewest flags
 * are tried first. Everything that is offered was planned again. */
#include "engines/sglang/sglang.h"

#include <inttypes.h>
#include <string.h>

#define LAST(...)                                                                                            \
    {                                                                                                        \
        .rung = OOS_RUNG_ASKED, .tokens = OOS_LEAST_TOKENS, .parallel = true, __VA_ARGS__                    \
    }
static const oos_stage stages[] = {
    {.rung = OOS_RUNG_NOTHING, .tokens = OOS_USUAL_TOKENS},
    {.rung = OOS_RUNG_UNASKED, .tokens = OOS_USUAL_TOKENS},
    {.rung = OOS_RUNG_LITTLE, .tokens = OOS_USUAL_TOKENS},
    {.rung = OOS_RUNG_ASKED, .tokens = OOS_USUAL_TOKENS},
    {.rung = OOS_RUNG_UNASKED, .tokens = OOS_LEAST_TOKENS},
    {.rung = OOS_RUNG_LITTLE, .tokens = OOS_LEAST_TOKENS},
    {.rung = OOS_RUNG_ASKED, .tokens = OOS_LEAST_TOKENS},
    LAST(.eager = false),
    LAST(.way = 1),
    LAST(.eager = true, .last = true),
    LAST(.way = 1, .eager = true, .last = true),
};
enum { STAGES = sizeof stages / sizeof *stages };

/* Between these it is not worth while to be certain: each group is tried again where a start is only likely. */
static const size_t groups[] = {3, 4, 7, STAGES};

static bool sglang_is_given(const oos_serve *serve, const char *flag)
{
    return oos_serve_given(serve, flag) != NULL;
}

/* NULL: it cannot be changed so, or not planned. */
static const oos_plan *plan_mended(oos_search *search, const oos_plan *from, const oos_mend *mend)
{
    const sglang_search *s = search->of;
    oos_arena *arena = search->arena;
    oos_start *start = OOS_NEW(arena, oos_start);
    oos_serve *serve = OOS_NEW(arena, oos_serve);
    sglang_request *request = OOS_NEW(arena, sglang_request);
    oos_plan *plan = OOS_NEW(arena, oos_plan);
    if (!start || !serve || !request || !plan) return NULL;
    *start = *sglang_of(from)->asked;
    *serve = *start->serve;
    start->serve = serve;
    if (!oos_mend_apply(arena, serve, mend)) return NULL;
    oos_sglang_request_read(arena, serve, request);
    return oos_sglang_plan(arena, start, s->rules, request, plan, NULL) == OOMSIGHT_OK ? plan : NULL;
}

static const uint8_t let_go[] = {LEVER_EAGER,  LEVER_WEIGHTS, LEVER_ADAPTERS, LEVER_KV,      LEVER_CONTEXT,
                                 LEVER_GRAPHS, LEVER_CHUNK,   LEVER_REQUESTS, LEVER_PARALLEL};

static const oos_lever_table levers_of_sglang = {.stages = stages,
                                                 .groups = groups,
                                                 .group_count = sizeof groups / sizeof *groups,
                                                 .let_go = let_go,
                                                 .let_go_count = sizeof let_go / sizeof *let_go,
                                                 .share = OOS_LEVERS_MAX,
                                                 .length = OOS_LEVERS_MAX,
                                                 .forced = OOS_LEVERS_MAX,
                                                 .cache = OOS_LEVERS_MAX,
                                                 .context = LEVER_CONTEXT,
                                                 .eager = LEVER_EAGER,
                                                 .step = OOS_LEVERS_MAX,
                                                 .requests = LEVER_REQUESTS,
                                                 .sizes_max = 2,
                                                 .first_of_size = true,
                                                 .upwards = true,
                                                 .by_tokens = true,
                                                 .levers_of = oos_sglang_levers_of,
                                                 .plan = oos_sglang_point_plan,
                                                 .offer = oos_sglang_offer,
                                                 .is_given = sglang_is_given,
                                                 .starts_with = oos_sglang_starts_with,
                                                 .plan_mended = plan_mended};

/* It starts, and turns requests of its own length away: what costs little and holds them, or else half as long ones, and so on, as long as
 * that is twice what it holds now. */
static bool room_find(sglang_search *s)
{
    static const oos_stage tries[] = {{.rung = OOS_RUNG_NOTHING},
                                      {.rung = OOS_RUNG_LITTLE, .parallel = true}};
    const oos_plan *plan = s->base.plan;
    uint64_t const whole = sglang_of(plan)->context_length;
    oos_levers levers;
    oos_answer least;
    for (uint64_t need = whole; need == whole || need / 2 >= plan->kv.tokens; need /= 2)
        for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
            (void)oos_sglang_levers_of(&s->base, &tries[i], &levers);
            levers.counts[LEVER_CONTEXT] = 1;
            levers.need = need;
            if (oos_answers_least(&s->base, &levers, &least))
                return oos_sglang_offer(&s->base, &levers, &least);
        }
    return true;
}

/* False when memory runs out. */
static bool find(sglang_search *s, oos_plan *plan)
{
    bool eager = false;
    if (plan->answer.verdict == OOMSIGHT_VERDICT_FITS && !s->mended.known) return room_find(s);
    if (s->gpus && !s->mended.known && !oos_release_find(&s->base)) return false;
    if (!oos_answers_find(&s->base, &eager)) return false;
    if (oos_plan_likely(plan)) return true;
    return (s->base.count && !eager) || oos_sglang_needs_find(s, &plan->help.needs);
}

/* The engine takes it once it is corrected, and memory is short. */
static bool solve_memory(sglang_search *s, oos_plan *plan, const oos_repair *repair)
{
    sglang_search inner = *s;
    oos_plan corrected = *repair->plan;
    inner.start = sglang_of(&corrected)->asked;
    oos_sglang_request_read(s->base.arena, inner.start->serve, &inner.request);
    inner.base.of = &inner;
    inner.base.plan = &corrected;
    inner.base.serve = inner.start->serve;
    inner.base.mended = repair->said;
    if (!find(&inner, &corrected)) return false;
    s->base.count = inner.base.count;
    plan->help.needs = corrected.help.needs;
    return true;
}

static bool correct(sglang_search *s, oos_plan *plan)
{
    oos_repair short_of[OOS_MENDS_MAX];
    size_t count;
    if (!oos_repairs_find(&s->base, short_of, &count)) return false;
    if (s->base.count) s->base.fixes[0].name = "least_change";
    for (size_t i = 0; i < count && !s->base.count && !plan->help.needs; i++)
        if (!solve_memory(s, plan, &short_of[i])) return false;
    if (s->base.count || plan->help.needs || s->start->serve->refusal.sentence) return true;
    return oos_sglang_needs_find(
        s, &plan->help.needs); /* what this GPU has no kernels for may start on another */
}

/* A context length above the model's own is refused, and the model's own is not: then what that takes. */
static bool mend(sglang_search *s, oos_plan *plan)
{
    uint64_t const own = s->start->model->stated_length;
    oos_plan *mended = OOS_NEW(s->base.arena, oos_plan);
    if (!mended) return false;
    if (s->start->serve->refusal.sentence || !s->request.context.known || s->request.context.value <= own)
        return correct(s, plan);
    s->mended = s->request.context = oos_u64_of(own);
    oos_mended *said = &s->base.mended;
    said->words[said->word_count++] = "--context-length";
    said->words[said->word_count++] = oos_arena_format(s->base.arena, "%" PRIu64, own);
    said->gives_up = oos_arena_format(s->base.arena, "no requests longer than %" PRIu64 " tokens", own);
    if (!said->words[1] || !said->gives_up) return false;
    if (oos_sglang_plan(s->base.arena, s->start, s->rules, &s->request, mended, NULL) != OOMSIGHT_OK ||
        mended->refusal.sentence || mended->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN)
        return true;
    s->base.plan = mended;
    s->base.as_it_is = true;
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
    oos_fix *fixes = OOS_NEW_ARRAY(arena, oos_fix, FIXES_MAX);
    *ret_search = (sglang_search){.base = {.arena = arena,
                                           .scratch = scratch,
                                           .plan = plan,
                                           .table = &levers_of_sglang,
                                           .serve = start->serve,
                                           .version = start->version,
                                           .fixes = fixes},
                                  .asked = {.flags = &facts->flags,
                                            .ladder = facts->ladder,
                                            .rules = facts->rules,
                                            .flags_alone = !gpus},
                                  .start = start,
                                  .facts = facts,
                                  .gpus = gpus,
                                  .rules = rules};
    ret_search->base.of = ret_search;
    ret_search->base.facts = &ret_search->asked;
    if (!rules || !fixes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    OOS_TRY(oos_rules_fill(facts->rules, start->version, rules, &beyond, reterr));
    rules->version = start->version;
    rules->facts = oos_rule_book_facts(facts->rules);
    rules->refusals = oos_rule_book_refusals(facts->rules);
    oos_sglang_request_read(arena, start->serve, &ret_search->request);
    return OOMSIGHT_OK;
}

oomsight_status oos_sglang_solve(oos_arena *arena, oos_arena *scratch, const oos_start *start,
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
    plan->help.fixes = s.base.fixes;
    plan->help.fix_count = s.base.count;
    while (plan->help.answer_count < s.base.count && s.base.fixes[plan->help.answer_count].name)
        plan->help.answer_count++;
    return OOMSIGHT_OK;
}

oomsight_status oos_sglang_choose(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                                  const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                                  oomsight_error *reterr)
{
    sglang_search s;
    OOS_TRY(begin(arena, scratch, start, facts, gpus, plan, &s, reterr));
    oos_elsewhere const e = oos_sglang_elsewhere(&s);
    bool const fixed = sglang_is_given(start->serve, "--tp-size");
    if (oos_elsewhere_choices(arena, &e, fixed, &plan->help.choices, &plan->help.choice_count))
        return OOMSIGHT_OK;
    return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the devices");
}

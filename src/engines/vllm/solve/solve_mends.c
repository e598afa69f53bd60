/* The first refusal is mended and the command planned again, until the engine takes it. Then it starts, or memory decides, and what
 * helps against that is looked for from there. */
#include "engines/vllm/solve/solve.h"

#include "engines/vllm/arguments/arguments.h"

/* NULL: it cannot be changed so, or not planned. */
const oos_plan *oos_vllm_plan_mended(oos_search *s, const oos_plan *from, const oos_mend *m)
{
    const oos_setup *old = vllm_setup(from);
    oos_setup *setup = OOS_NEW(s->arena, oos_setup);
    oos_plan *plan = OOS_NEW(s->arena, oos_plan);
    oos_serve *serve = OOS_NEW(s->arena, oos_serve);
    if (!setup || !plan || !serve) return NULL;
    *serve = *old->serve;
    if (!oos_mend_apply(s->arena, serve, m) ||
        oos_setup_resolve(s->arena, old->model, old->draft, serve, old->env, &old->device, old->rules, setup,
                          NULL) != OOMSIGHT_OK ||
        oos_plan_make(s->arena, setup, s->facts->kv_layers_json, plan, NULL) != OOMSIGHT_OK)
        return NULL;
    if (plan->answer.verdict == OOMSIGHT_VERDICT_FITS && oos_forks_plan(s->arena, plan, NULL) != OOMSIGHT_OK)
        return NULL;
    plan->help.fix_count = 0;
    return plan;
}

bool oos_mends_needed(const oos_plan *plan)
{
    return oos_refusal_sentence(plan);
}

/* Too small a cache is refused, too large a one leaves no room for what comes with it or after it. */
static bool is_of_cache(oos_phase phase)
{
    return phase >= OOS_PHASE_KV_SIZING && phase <= OOS_PHASE_SLEEP_WAKE;
}

bool oos_mends_limits(const oos_plan *plan)
{
    const oos_serve *serve = vllm_setup(plan)->serve;
    return is_of_cache(plan->answer.phase) && (oos_serve_given(serve, "--num-gpu-blocks-override") ||
                                               oos_serve_given(serve, "--kv-cache-memory-bytes"));
}

/* Where the refusal names nothing, the flags that leave no attention backend or hold the cache down. */
size_t oos_vllm_mends_add(const oos_plan *plan, oos_mend *mends, size_t count)
{
    static const char one_cache[] = "--disable-hybrid-kv-cache-manager";
    static const struct {
        oos_phase phase;
        const char *flag;
    } limits[] = {{OOS_PHASE_ENV, "--attention-backend"},
                  {OOS_PHASE_ENV, "--kv-cache-dtype"},
                  {OOS_PHASE_ENV, "--block-size"},
                  {OOS_PHASE_KV_SIZING, "--num-gpu-blocks-override"},
                  {OOS_PHASE_KV_SIZING, "--kv-cache-memory-bytes"}};
    if (plan->refusal.sentence) return count;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if ((limits[i].phase == OOS_PHASE_KV_SIZING ? is_of_cache(plan->answer.phase)
                                                    : plan->answer.phase == limits[i].phase) &&
            oos_serve_given(vllm_setup(plan)->serve, limits[i].flag) && count < OOS_MENDS_MAX)
            mends[count++] = (oos_mend){.flag = limits[i].flag, .leave_out = true};
    const oos_setup *setup = vllm_setup(plan);
    if (plan->answer.phase == OOS_PHASE_ENV && setup->kv_dtype == OOS_KV_FP8 &&
        !oos_serve_given(setup->serve, "--kv-cache-dtype") &&
        count < OOS_MENDS_MAX) /* the checkpoint's own */
        mends[count++] = (oos_mend){.flag = "--kv-cache-dtype", .text = oos_dtype_word(setup->dtype)};
    if (vllm_of(plan)->kv_shape.error && count < OOS_MENDS_MAX &&
        oos_serve_given(vllm_setup(plan)->serve, one_cache))
        mends[count++] = (oos_mend){.flag = one_cache, .leave_out = true};
    return count;
}

/* The engine takes it, and memory is short. */
static bool solve_memory(oos_search *s, oos_plan *plan, const oos_repair *r)
{
    oos_search inner = *s;
    bool last = false;
    inner.plan = r->plan;
    inner.serve = vllm_setup(r->plan)->serve;
    inner.mended = r->said;
    if (!oos_answers_find(&inner, &last)) return false;
    s->count = inner.count;
    plan->help.answer_count = oos_min(inner.count, OOS_ANSWERS_MAX);
    return (plan->help.answer_count && !last) || oos_needs_find(&inner, &plan->help.needs);
}

/* Short of memory, with a limit of its own that is left. */
bool oos_vllm_is_held_down(const oos_plan *plan)
{
    return oos_mends_limits(plan) && !oos_answer_starts(plan->answer.verdict, plan->answer.probability);
}

/* What starts once it is corrected is offered; the rest is left in the list. */
static bool offer_starts(oos_search *s, oos_plan *plan, oos_repair *ret_short, size_t *ret_short_count)
{
    size_t const before = s->count; /* a release that takes it as it is */
    if (!oos_repairs_find(s, ret_short, ret_short_count)) return false;
    if (s->count > before) s->fixes[before].name = "least_change";
    plan->help.answer_count = before + (s->count > before);
    return true;
}

bool oos_mends_start(oos_search *s, oos_plan *plan)
{
    oos_repair short_of[OOS_MENDS_MAX];
    size_t short_count;
    return offer_starts(s, plan, short_of, &short_count);
}

/* The command without what it says of the size of its cache. False: it says nothing, or cannot be planned so. */
static bool drop_limits(oos_search *s, oos_repair *ret_repair)
{
    static const char *const flags[] = {"--num-gpu-blocks-override", "--kv-cache-memory-bytes"};
    oos_repair r = {.plan = s->plan};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        oos_mend const mend = {.flag = flags[i], .leave_out = true};
        if (oos_serve_given(vllm_setup(r.plan)->serve, flags[i]) && !oos_repair_step(s, &r, &mend, 1))
            return false;
    }
    *ret_repair = r;
    return r.plan != s->plan && !oos_refusal_sentence(r.plan);
}

static bool is_cheaper(const oos_fix *a, const oos_fix *b)
{
    bool const as_certain = a->verdict == OOMSIGHT_VERDICT_FITS || b->verdict != OOMSIGHT_VERDICT_FITS;
    return as_certain && a->rung < b->rung;
}

bool oos_mends_cheaper(oos_search *s, size_t from, bool *ret_last)
{
    oos_fix kept[OOS_ANSWERS_MAX];
    size_t const count = s->count - from;
    oos_search inner = *s;
    oos_repair r;
    bool last = false;
    if (count > OOS_ANSWERS_MAX || (count && s->fixes[from].rung == OOS_RUNG_NOTHING) || !drop_limits(s, &r))
        return true;
    memcpy(kept, s->fixes + from, count * sizeof *kept);
    inner.plan = r.plan;
    inner.serve = vllm_setup(r.plan)->serve;
    inner.mended = r.said;
    inner.count = from;
    if (!oos_answers_find(&inner, &last)) return false;
    if (inner.count > from && (!count || is_cheaper(&inner.fixes[from], kept))) {
        s->count = inner.count;
        *ret_last = last;
    } else {
        memcpy(s->fixes + from, kept, count * sizeof *kept);
    }
    return true;
}

bool oos_mends_find(oos_search *s, oos_plan *plan)
{
    oos_repair short_of[OOS_MENDS_MAX];
    size_t short_count;
    size_t const before = s->count;
    if (!offer_starts(s, plan, short_of, &short_count)) return false;
    for (size_t i = 0; s->count == before && !plan->help.needs && i < short_count; i++)
        if (!solve_memory(s, plan, &short_of[i])) return false;
    if (s->count == before && !plan->help.needs && !oos_release_find(s)) return false;
    plan->help.answer_count = oos_max(plan->help.answer_count, s->count ? 1 : 0);
    return s->count || plan->help.needs || oos_needs_find(s, &plan->help.needs);
}

/* The first refusal is mended and the command planned again, until the engine takes it. Then it starts, or memory decides, and what
 * helps against that is looked for from there. */
#include "engines/vllm/solve/solve.h"

#include "base/shown.h"
#include "engines/vllm/arguments/arguments.h"

typedef struct repair {
    const oos_plan *plan; /* of the command so far */
    oos_mended said;
} repair;

static bool change(oos_arena *arena, oos_serve *serve, const oos_mend *m)
{
    if (m->instead_of && !oos_serve_leave_out(arena, serve, m->instead_of)) return false;
    if (m->leave_out) return oos_serve_leave_out(arena, serve, m->flag);
    if (m->value == 0) return oos_serve_give(arena, serve, m->flag, m->text);
    return oos_serve_set_u64(arena, serve, m->flag, m->value);
}

/* NULL: it cannot be changed so, or not planned. */
static const oos_plan *plan_changed(oos_search *s, const oos_plan *from, const oos_mend *m)
{
    const oos_setup *old = vllm_setup(from);
    oos_setup *setup = OOS_NEW(s->arena, oos_setup);
    oos_plan *plan = OOS_NEW(s->arena, oos_plan);
    oos_serve *serve = OOS_NEW(s->arena, oos_serve);
    if (!setup || !plan || !serve) return NULL;
    *serve = *old->serve;
    if (!change(s->arena, serve, m) ||
        oos_setup_resolve(s->arena, old->model, old->draft, serve, old->env, &old->device, old->rules, setup,
                          NULL) != OOMSIGHT_OK ||
        oos_plan_make(s->arena, setup, s->facts->kv_layers_json, plan, NULL) != OOMSIGHT_OK)
        return NULL;
    plan->help.fix_count = 0;
    return plan;
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

static bool say(oos_search *s, oos_mended *said, const oos_mend *m)
{
    const char *price = m->instead_of && !m->text ? "none: a switch takes no value"
                        : m->instead_of           ? "none (a misspelling is corrected)"
                                                  : "another value than the requested one";
    unsay(said, m->flag);
    if (m->leave_out) {
        const char *flag = oos_shown(s->arena, m->flag);
        if (!flag) return false;
        price = said->gives_up ? without(s, flag) : that_flag;
        said->leave_out[said->leave_out_count++] = flag;
    } else {
        const char *word = m->text    ? oos_shown(s->arena, m->text)
                           : m->value ? oos_arena_format(s->arena, "%llu", (unsigned long long)m->value)
                                      : NULL;
        if (!word && (m->text || m->value)) return false;
        said->words[said->word_count++] = m->flag;
        said->words[said->word_count++] = word; /* NULL: a switch */
    }
    if (!price || (said->gives_up && strcmp(said->gives_up, price) == 0)) return price;
    if (said->gives_up == that_flag) said->gives_up = without(s, said->leave_out[0]);
    said->gives_up = said->gives_up ? oos_arena_format(s->arena, "%s; %s", said->gives_up, price) : price;
    return said->gives_up;
}

static const char *sentence_of(const oos_plan *plan)
{
    if (plan->refusal.sentence) return plan->refusal.sentence;
    return plan->answer.phase == OOS_PHASE_ENV && plan->answer.verdict == OOMSIGHT_VERDICT_REFUSED
               ? plan->answer.why
               : NULL;
}

bool oos_mends_needed(const oos_plan *plan)
{
    return sentence_of(plan);
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

/* What the refusal names; where it names nothing, the flags that leave no attention backend or hold the cache down. */
static size_t mends_of(const oos_plan *plan, oos_mend *ret_mends)
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
    const oos_refusal *refusal = &plan->refusal;
    size_t count = refusal->mend_count;
    memcpy(ret_mends, refusal->mends, count * sizeof *ret_mends);
    for (size_t i = 0; !refusal->sentence && i < sizeof limits / sizeof *limits; i++)
        if ((limits[i].phase == OOS_PHASE_KV_SIZING ? is_of_cache(plan->answer.phase)
                                                    : plan->answer.phase == limits[i].phase) &&
            oos_serve_given(vllm_setup(plan)->serve, limits[i].flag) && count < OOS_MENDS_MAX)
            ret_mends[count++] = (oos_mend){.flag = limits[i].flag, .leave_out = true};
    const oos_setup *setup = vllm_setup(plan);
    if (!refusal->sentence && plan->answer.phase == OOS_PHASE_ENV && setup->kv_dtype == OOS_KV_FP8 &&
        !oos_serve_given(setup->serve, "--kv-cache-dtype") &&
        count < OOS_MENDS_MAX) /* the checkpoint's own */
        ret_mends[count++] = (oos_mend){.flag = "--kv-cache-dtype", .text = oos_dtype_word(setup->dtype)};
    if (!refusal->sentence && vllm_of(plan)->kv_shape.error && count < OOS_MENDS_MAX &&
        oos_serve_given(vllm_setup(plan)->serve, one_cache))
        ret_mends[count++] = (oos_mend){.flag = one_cache, .leave_out = true};
    return count;
}

static bool same_refusal(const oos_plan *a, const oos_plan *b)
{
    const char *one = sentence_of(a), *other = sentence_of(b);
    return one && other && strcmp(one, other) == 0;
}

/* One mend further; false: none of them changes the refusal. */
static bool step(oos_search *s, repair *r, const oos_mend *mends, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const oos_plan *next = plan_changed(s, r->plan, &mends[i]);
        if (!next || same_refusal(r->plan, next)) continue;
        if (!say(s, &r->said, &mends[i])) return false;
        r->plan = next;
        return true;
    }
    return false;
}

/* Refused, or short of memory with a limit of its own that is left. */
static bool is_to_mend(const oos_plan *plan)
{
    return sentence_of(plan) ||
           (oos_mends_limits(plan) && !oos_answer_starts(plan->answer.verdict, plan->answer.probability));
}

/* Begun with one mend, as far as it goes. False: the engine still refuses it. */
static bool follow(oos_search *s, const oos_mend *first, repair *ret_repair)
{
    repair r = {.plan = s->plan};
    bool goes_on = step(s, &r, first, 1);
    for (int steps = 1; goes_on && is_to_mend(r.plan) && steps < OOS_MENDED_MAX; steps++) {
        oos_mend mends[OOS_MENDS_MAX];
        goes_on = step(s, &r, mends, mends_of(r.plan, mends));
    }
    *ret_repair = r;
    return r.plan != s->plan && !sentence_of(r.plan);
}

static bool offer_start(oos_search *s, const repair *r)
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

/* The engine takes it, and memory is short. */
static bool solve_memory(oos_search *s, oos_plan *plan, const repair *r)
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

/* What starts once it is mended is offered; the rest is left in the list. */
static bool offer_starts(oos_search *s, oos_plan *plan, repair *ret_short, size_t *ret_short_count)
{
    oos_mend mends[OOS_MENDS_MAX];
    size_t const count = mends_of(plan, mends);
    size_t const before = s->count; /* a release that takes it as it is */
    *ret_short_count = 0;
    for (size_t i = 0; i < count; i++) {
        repair r;
        if (!follow(s, &mends[i], &r)) continue;
        if (!oos_answer_starts(r.plan->answer.verdict, r.plan->answer.probability) ||
            oos_plan_too_full(r.plan, r.plan->doubtful.share))
            ret_short[(*ret_short_count)++] = r;
        else if (!offer_start(s, &r))
            return false;
    }
    if (s->count > before) s->fixes[before].name = "least_change";
    plan->help.answer_count = before + (s->count > before);
    return true;
}

bool oos_mends_start(oos_search *s, oos_plan *plan)
{
    repair short_of[OOS_MENDS_MAX];
    size_t short_count;
    return offer_starts(s, plan, short_of, &short_count);
}

/* The command without what it says of the size of its cache. False: it says nothing, or cannot be planned so. */
static bool drop_limits(oos_search *s, repair *ret_repair)
{
    static const char *const flags[] = {"--num-gpu-blocks-override", "--kv-cache-memory-bytes"};
    repair r = {.plan = s->plan};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        oos_mend const mend = {.flag = flags[i], .leave_out = true};
        if (oos_serve_given(vllm_setup(r.plan)->serve, flags[i]) && !step(s, &r, &mend, 1)) return false;
    }
    *ret_repair = r;
    return r.plan != s->plan && !sentence_of(r.plan);
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
    repair r;
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
    repair short_of[OOS_MENDS_MAX];
    size_t short_count;
    size_t const before = s->count;
    if (!offer_starts(s, plan, short_of, &short_count)) return false;
    for (size_t i = 0; s->count == before && !plan->help.needs && i < short_count; i++)
        if (!solve_memory(s, plan, &short_of[i])) return false;
    if (s->count == before && !plan->help.needs && !oos_release_find(s)) return false;
    plan->help.answer_count = oos_max(plan->help.answer_count, s->count ? 1 : 0);
    return s->count || plan->help.needs || oos_needs_find(s, &plan->help.needs);
}

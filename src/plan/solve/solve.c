/* Searching for flags that fit. A lever changes the serve command, the start is planned again, and only what then fits is
 * offered. When nothing fits well, what starts with little to spare is offered and says so. */
#include "plan/solve/solve.h"

#include "base/shown.h"
#include "plan/solve/solve_answers.h"
#include "plan/solve/solve_levers.h"
#include "plan/solve/solve_needs.h"

/* ---- inert flags ------------------------------------------------------------------------------------------------ */

enum { PUSHES_MAX = 4 };

/* A flag that people would try, pushed to where it could matter: when at none of these the room in the phase that decides
 * moves by a hundredth of what is missing there, it is inert. (A length moves its block tables by a few MiB.) */
typedef struct push {
    const char *flag;
    oos_set_value set;
    uint64_t values[PUSHES_MAX];
    size_t count; /* 0: there is nothing to push */
} push;

static void set_fp8(oos_serve *serve, uint64_t value)
{
    serve->kv_cache_dtype = value ? "fp8_e5m2" : "fp8";
}
static void set_eager(oos_serve *serve, uint64_t value)
{
    serve->enforce_eager = (oos_flag){true, value != 0};
}

static const oos_moment *deciding(const oos_plan *plan)
{
    for (size_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].phase == plan->phase) return &plan->phases[i];
    return NULL;
}

static bool moves_room(const oos_moment *now, const oos_trial *t)
{
    double const missing = (double)now->peak_bytes - (double)now->limit_bytes;
    double const moved = ((double)t->need_bytes - (double)t->limit_bytes) - missing;
    return (moved < 0 ? -moved : moved) * 100 > (missing < 0 ? -missing : missing);
}

static bool moves_nothing(oos_search *s, const push *p)
{
    const oos_moment *now = deciding(s->plan);
    for (size_t i = 0; now && i < p->count; i++) {
        oos_trial t = oos_trial_start(s);
        p->set(&t.serve, p->values[i]);
        if (!oos_trial_plan(s, &t)) return false;
        if (t.phase == OOS_PHASE_ARGUMENTS) continue; /* no value the engine takes */
        if (!t.reached || oos_trial_fits(s, &t)) return false;
        if (moves_room(now, &t) || t.phase_ok != now->ok || t.phase_tight != now->tight) return false;
    }
    return now && p->count;
}

/* A flag in a fix is no flag that changes nothing. */
static bool is_in_a_fix(const oos_search *s, const char *flag)
{
    for (size_t i = 0; i < s->count; i++)
        for (size_t k = 0; k < s->fixes[i].change_count; k++)
            if (strcmp(s->fixes[i].change[k], flag) == 0) return true;
    return false;
}

static oomsight_status find_inert(oos_search *s, oos_plan *plan, oomsight_error *reterr)
{
    const oos_setup *setup = plan->setup;
    uint64_t const seqs = setup->max_num_seqs, tokens = setup->max_num_batched_tokens;
    const push pushes[] = {
        {"--gpu-memory-utilization", oos_set_gmu_thousandths, {50, 400, 980}, 3},
        {"--max-model-len", oos_set_length, {oos_min(setup->max_model_len, 256), 8192, 131072}, 3},
        {"--max-num-seqs", oos_set_seqs, {1, seqs / 2 + 1, oos_max(seqs * 2, 1024)}, 3},
        {"--max-num-batched-tokens",
         oos_set_tokens,
         {oos_min(tokens, seqs), tokens / 2 + 1, oos_max(tokens * 4, 131072)},
         3},
        {"--kv-cache-dtype", set_fp8, {0, 1}, setup->kv_dtype == OOS_KV_MODEL_DTYPE ? 2 : 0},
        {"--enforce-eager", set_eager, {1}, setup->eager ? 0 : 1},
    };
    enum { PUSHES = sizeof pushes / sizeof *pushes };
    oos_inert *inert = OOS_NEW_ARRAY(s->arena, oos_inert, PUSHES);
    const char *why = oos_arena_format(
        s->arena,
        "no value of it moves what %s needs, or what is there for it, by a hundredth of what is missing",
        oos_phase_word(plan->phase));
    if (!inert || !why) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the inert flags");
    size_t count = 0;
    for (size_t i = 0; i < PUSHES; i++)
        if (!is_in_a_fix(s, pushes[i].flag) && moves_nothing(s, &pushes[i]))
            inert[count++] = (oos_inert){pushes[i].flag, why};
    plan->inert = inert;
    plan->inert_count = count;
    return OOMSIGHT_OK;
}

/* ---- a refused command ---------------------------------------------------------------------------------------------- */

/* A mend after which the engine takes the command but memory is short: what helps then is looked for from there. */
static oomsight_status solve_mended(oos_search *s, oos_plan *plan, const oos_mend *m, oomsight_error *reterr)
{
    const oos_setup *old = plan->setup;
    oos_setup *setup = OOS_NEW(s->arena, oos_setup);
    oos_plan *mended = OOS_NEW(s->arena, oos_plan);
    oos_serve *serve = OOS_NEW(s->arena, oos_serve);
    if (!setup || !mended || !serve)
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a mended command");
    *serve = *old->serve;
    if (m->instead_of && !oos_serve_leave_out(s->arena, serve, m->instead_of)) return OOMSIGHT_OK;
    if (!(m->leave_out ? oos_serve_leave_out(s->arena, serve, m->flag)
                       : oos_serve_set_u64(s->arena, serve, m->flag, m->value)))
        return OOMSIGHT_OK;
    if (oos_setup_resolve(s->arena, old->model, old->draft, serve, old->env, &old->device, old->rules, setup,
                          NULL) != OOMSIGHT_OK ||
        oos_plan_make(s->arena, setup, s->facts->kv_layers_json, mended, NULL) != OOMSIGHT_OK ||
        mended->refusal.sentence || mended->verdict == OOMSIGHT_VERDICT_FITS)
        return OOMSIGHT_OK;
    oos_search inner = *s;
    bool offloads;
    inner.plan = mended;
    inner.mend_without = m->leave_out ? oos_shown(s->arena, m->flag) : NULL;
    if (!m->leave_out) {
        inner.mend_words[0] = m->flag;
        inner.mend_words[1] = oos_arena_format(s->arena, "%llu", (unsigned long long)m->value);
    }
    if (!oos_answers_find(&inner, &plan->answer_count, &offloads) ||
        (plan->answer_count == 0 && !oos_needs_find(&inner, &plan->needs)))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    s->count = inner.count;
    return OOMSIGHT_OK;
}

static oomsight_status solve_refused(oos_search *s, oos_plan *plan, oomsight_error *reterr)
{
    const oos_refusal *refusal = &plan->refusal;
    if (!oos_levers_mend(s, refusal)) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    if (s->count && oos_answer_starts(s->fixes[0].verdict, s->fixes[0].probability)) {
        s->fixes[0].name = "least_change";
        plan->answer_count = 1;
    }
    for (size_t i = 0; s->count == 0 && i < refusal->mend_count && !plan->needs; i++)
        OOS_TRY(solve_mended(s, plan, &refusal->mends[i], reterr));
    if (s->count == 0 && !plan->needs && !oos_needs_find(s, &plan->needs))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    plan->fixes = s->fixes;
    plan->fix_count = s->count;
    return OOMSIGHT_OK;
}

/* A single lever that an answer already is need not be named twice. */
static void drop_doubles(oos_search *s, size_t answers)
{
    size_t count = answers;
    for (size_t i = answers; i < s->count; i++) {
        bool again = false;
        for (size_t k = 0; k < count && !again; k++) {
            again = s->fixes[k].change_count == s->fixes[i].change_count;
            for (size_t w = 0; again && w < s->fixes[i].change_count; w++)
                again = strcmp(s->fixes[k].change[w], s->fixes[i].change[w]) == 0;
        }
        if (!again) s->fixes[count++] = s->fixes[i];
    }
    s->count = count;
}

oomsight_status oos_plan_solve(oos_arena *arena, oos_arena *scratch, oos_plan *plan,
                               const oos_solve_facts *facts, oomsight_error *reterr)
{
    if (plan->verdict == OOMSIGHT_VERDICT_FITS || plan->verdict == OOMSIGHT_VERDICT_UNKNOWN)
        return OOMSIGHT_OK;
    oos_search s = {.arena = arena, .scratch = scratch, .plan = plan, .facts = facts};
    s.fixes = OOS_NEW_ARRAY(arena, oos_fix, OOS_FIXES_MAX);
    if (!s.fixes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    if (plan->refusal.sentence) return solve_refused(&s, plan, reterr);
    bool offloads = false;
    size_t answers = 0;
    bool enough_memory = oos_answers_find(&s, &answers, &offloads);
    if (enough_memory && answers && !offloads) enough_memory = oos_levers_try(&s);
    drop_doubles(&s, answers);
    if (enough_memory && (answers == 0 || offloads)) enough_memory = oos_needs_find(&s, &plan->needs);
    if (!enough_memory) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    plan->fixes = s.fixes;
    plan->fix_count = s.count;
    plan->answer_count = answers;
    return find_inert(&s, plan, reterr);
}

oomsight_status oos_plan_choose(oos_arena *arena, oos_arena *scratch, oos_plan *plan,
                                const oos_solve_facts *facts, oomsight_error *reterr)
{
    oos_search s = {.arena = arena, .scratch = scratch, .plan = plan, .facts = facts};
    if (oos_choices_find(&s, &plan->choices, &plan->choice_count)) return OOMSIGHT_OK;
    return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the devices");
}

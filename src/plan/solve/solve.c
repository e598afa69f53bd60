/* Searching for flags that fit. A lever changes the serve command, the start is planned again, and only what then fits is
 * offered. When nothing fits well, what starts with little to spare is offered and says so. */
#include "plan/solve/solve.h"

#include "plan/solve/solve_levers.h"

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

oomsight_status oos_plan_solve(oos_arena *arena, oos_arena *scratch, oos_plan *plan,
                               const char *kv_layers_json, oomsight_error *reterr)
{
    if (plan->verdict == OOMSIGHT_VERDICT_FITS || plan->verdict == OOMSIGHT_VERDICT_UNKNOWN)
        return OOMSIGHT_OK;
    oos_search s = {.arena = arena, .scratch = scratch, .plan = plan, .kv_layers_json = kv_layers_json};
    s.fixes = OOS_NEW_ARRAY(arena, oos_fix, OOS_FIXES_MAX);
    if (!s.fixes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    if (plan->refusal.sentence) {
        if (!oos_levers_mend(&s, &plan->refusal))
            return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
        plan->fixes = s.fixes;
        plan->fix_count = s.count;
        return OOMSIGHT_OK;
    }
    bool enough_memory = oos_levers_try(&s);
    if (enough_memory && s.count == 0 && plan->verdict != OOMSIGHT_VERDICT_TIGHT) {
        s.tight_too = true;
        enough_memory = oos_levers_try(&s);
        s.tight_too = false;
    }
    if (!enough_memory) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    plan->fixes = s.fixes;
    plan->fix_count = s.count;
    return find_inert(&s, plan, reterr);
}

/* Searching for flags that fit. A lever changes the serve command, the start is planned again, and only what then fits is
 * offered. When nothing fits well, what starts with little to spare is offered and says so. */
#include "plan/solve.h"

#include "plan/solve_levers.h"

/* ---- inert flags ------------------------------------------------------------------------------------------------ */

/* A flag that people would try, pushed to its ends: when it fails in the same phase even there, it is inert. */
typedef struct push {
    const char *flag;
    oos_set_value set;
    uint64_t low, high; /* high 0: only one end makes sense */
    bool set_already;   /* there is nothing to push */
} push;

static void set_fp8(oos_serve *serve, uint64_t value)
{
    (void)value;
    serve->kv_cache_dtype = "fp8";
}
static void set_eager(oos_serve *serve, uint64_t value)
{
    serve->enforce_eager = (oos_flag){true, value != 0};
}

static bool ends_the_same(oos_search *s, const push *p, uint64_t value)
{
    oos_trial t = oos_trial_start(s);
    p->set(&t.serve, value);
    return oos_trial_plan(s, &t) && !oos_trial_fits(s, &t) && t.verdict != OOMSIGHT_VERDICT_TIGHT &&
           t.phase == s->plan->phase;
}

static oomsight_status find_inert(oos_search *s, oos_plan *plan, oomsight_error *reterr)
{
    const oos_setup *setup = plan->setup;
    const push pushes[] = {
        {"--gpu-memory-utilization", oos_set_gmu_thousandths, 50, 980, false},
        {"--max-model-len", oos_set_length, oos_min(setup->max_model_len, 256), 0, false},
        {"--max-num-seqs", oos_set_seqs, 1, 0, false},
        {"--max-num-batched-tokens", oos_set_tokens,
         oos_min(setup->max_num_batched_tokens, setup->max_num_seqs), 0, false},
        {"--kv-cache-dtype", set_fp8, 0, 0, setup->kv_dtype != OOS_KV_MODEL_DTYPE},
        {"--enforce-eager", set_eager, 1, 0, setup->eager},
    };
    enum { PUSHES = sizeof pushes / sizeof *pushes };
    oos_inert *inert = OOS_NEW_ARRAY(s->arena, oos_inert, PUSHES);
    const char *why = oos_arena_format(
        s->arena, "no value of it alone changes the end: planned at its ends, %s fails still",
        oos_phase_word(plan->phase));
    if (!inert || !why) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the inert flags");
    size_t count = 0;
    for (size_t i = 0; i < PUSHES; i++) {
        if (pushes[i].set_already) continue;
        bool same = ends_the_same(s, &pushes[i], pushes[i].low);
        if (same && pushes[i].high) same = ends_the_same(s, &pushes[i], pushes[i].high);
        if (same) inert[count++] = (oos_inert){pushes[i].flag, why};
    }
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

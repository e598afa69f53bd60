/* Searching for flags that fit. A lever changes the serve command, the start is planned again, and only what then fits is
 * offered. When nothing fits well, what starts with little to spare is offered and says so. */
#include "engines/vllm/solve/solve.h"
#include "engines/vllm/phases/phases.h"

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

static bool moves_room(const oos_moment *now, const oos_trial *t)
{
    double const missing = (double)now->peak_bytes - (double)now->limit_bytes;
    double const moved = ((double)t->need_bytes - (double)t->limit_bytes) - missing;
    return (moved < 0 ? -moved : moved) * 100 > (missing < 0 ? -missing : missing);
}

static bool moves_nothing(oos_search *s, const push *p)
{
    const oos_moment *now = oos_phases_deciding(s->plan);
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

/* Where the phase that is named may yet be passed, another one makes the failure certain: what helps there is not inert either. */
static bool helps_nowhere(oos_search *s, const push *p)
{
    if (!moves_nothing(s, p)) return false;
    const oos_moment *named = oos_phases_deciding(s->plan);
    for (size_t i = 0; named->tight && i < s->plan->phase_count; i++) {
        const oos_moment *moment = &s->plan->phases[i];
        if (moment->ok || moment->tight) continue;
        oos_plan other = *s->plan;
        oos_search there = *s;
        other.answer.phase = moment->phase;
        there.plan = &other;
        return moves_nothing(&there, p);
    }
    return true;
}

/* The phase for which the first answer has a flag that does nothing for the one that decides. */
static oos_phase later_phase(const oos_search *s, const char *flag)
{
    for (size_t i = 0; i < s->later_count; i++)
        if (strcmp(s->later_flags[i], flag) == 0 && s->later_phases[i] > s->plan->answer.phase)
            return s->later_phases[i];
    return OOS_PHASE_COUNT;
}

static bool add_inert(oos_search *s, const char *flag, oos_inert *ret_inert)
{
    const char *why = oos_arena_format(s->arena, "no value of it alone gets past %s",
                                       oos_phase_word(s->plan->answer.phase));
    *ret_inert = (oos_inert){flag, why, later_phase(s, flag)};
    return why;
}

static oomsight_status find_inert(oos_search *s, oos_plan *plan, oomsight_error *reterr)
{
    const oos_setup *setup = vllm_setup(plan);
    uint64_t const seqs = setup->max_num_seqs, tokens = setup->max_num_batched_tokens;
    uint64_t const length = setup->max_model_len, longest = oos_setup_derived_length(setup);
    const push pushes[] = {
        {"--gpu-memory-utilization", oos_set_gmu_thousandths, {50, 400, 980}, 3},
        {"--max-model-len",
         oos_set_length,
         {oos_min(length, 256), 8192, oos_min(length * 4, longest), longest},
         4},
        {"--max-num-seqs", oos_set_seqs, {1, seqs / 2 + 1, oos_max(seqs * 2, 1024)}, 3},
        {"--max-num-batched-tokens",
         oos_set_tokens,
         {oos_min(tokens, seqs), tokens / 2 + 1, oos_max(tokens * 4, 131072)},
         3},
        {"--kv-cache-dtype", set_fp8, {0, 1}, setup->kv_dtype == OOS_KV_MODEL_DTYPE ? 2 : 0},
        {"--enforce-eager", set_eager, {1}, setup->eager ? 0 : 1},
    };
    enum { PUSHES = sizeof pushes / sizeof *pushes };
    oos_inert *inert = OOS_NEW_ARRAY(s->arena, oos_inert, PUSHES + 1);
    if (!inert) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the inert flags");
    size_t count = 0;
    for (size_t i = 0; i < PUSHES; i++)
        if (helps_nowhere(s, &pushes[i]) && !add_inert(s, pushes[i].flag, &inert[count++]))
            return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the inert flags");
    if (setup->serve->cpu_offload_gb.known && oos_setup_offload_ignored(setup))
        inert[count++] = (oos_inert){"--cpu-offload-gb",
                                     "the V2 model runner of this release has no offloader", OOS_PHASE_COUNT};
    plan->help.inert = inert;
    plan->help.inert_count = count;
    return OOMSIGHT_OK;
}

/* ---- the search ------------------------------------------------------------------------------------------------------ */

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

/* Far less than what was asked for, or than one can work with. */
static bool is_short(const oos_plan *plan)
{
    const oos_setup *setup = vllm_setup(plan);
    uint64_t const wanted = setup->serve->max_model_len.known ? setup->max_model_len : 0;
    uint64_t longest = 0;
    for (size_t i = 0; i < plan->help.answer_count; i++)
        longest =
            oos_max(longest, oos_max(plan->help.fixes[i].certain_length, plan->help.fixes[i].likely_length));
    return longest < wanted / 2 || longest < oos_min(setup->max_model_len, OOS_USUAL_TOKENS);
}

/* Another release, then flags by the ladder; where none are enough, what the command itself forbids, and what it takes beside flags. */
static bool search(oos_search *s, oos_plan *plan)
{
    bool last = false;
    if (oos_mends_limits(plan)) { /* its own limit of the cache: without it nothing is lost */
        bool const too_small = plan->answer.phase == OOS_PHASE_KV_SIZING;
        if (!(too_small ? oos_mends_find(s, plan) : oos_mends_start(s, plan))) return false;
        if (plan->help.answer_count) return true;
        plan->help.needs = NULL;
    }
    if (!oos_release_find(s)) return false;
    size_t const release = s->count;
    if (!oos_answers_find(s, &last) || !oos_mends_cheaper(s, release, &last)) return false;
    plan->help.fixes = s->fixes;
    plan->help.answer_count = oos_min(s->count, OOS_ANSWERS_MAX);
    if (plan->help.answer_count == 0) /* what likely starts needs nothing else */
        return oos_plan_likely(plan) || oos_mends_find(s, plan);
    if ((last || is_short(plan)) && !oos_needs_find(s, &plan->help.needs)) return false;
    size_t const answers = plan->help.answer_count;
    const oos_needs *needs = plan->help.needs;
    if (last && needs &&
        (needs->checkpoint_bytes ||
         needs->gpu_count)) { /* one of these stands behind it, as what else helps */
        plan->help.answer_count = release;
        s->count = release + 1;
    }
    if (last) return true;
    s->most = s->fixes[answers - 1].rung > OOS_RUNG_LITTLE ? s->fixes[answers - 1].rung : OOS_RUNG_LITTLE;
    if (!oos_levers_try(s)) return false;
    drop_doubles(s, answers);
    return true;
}

oomsight_status oos_plan_solve(oos_arena *arena, oos_arena *scratch, oos_plan *plan,
                               const oos_search_facts *facts, oomsight_error *reterr)
{
    if (plan->answer.verdict == OOMSIGHT_VERDICT_FITS || plan->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN)
        return OOMSIGHT_OK;
    oos_search s = {
        .arena = arena, .scratch = scratch, .plan = plan, .table = &oos_vllm_levers, .facts = facts};
    s.serve = vllm_setup(plan)->serve;
    s.version = vllm_setup(plan)->rules->version;
    s.fixes = OOS_NEW_ARRAY(arena, oos_fix, OOS_PLAN_FIXES_MAX);
    if (!s.fixes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    if (facts->flags_alone) {
        bool last;
        if (!oos_answers_find(&s, &last)) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
        plan->help.fixes = s.fixes;
        plan->help.fix_count = plan->help.answer_count = s.count;
        return OOMSIGHT_OK;
    }
    bool const refused = oos_mends_needed(plan);
    bool enough_memory = refused ? oos_mends_find(&s, plan) : search(&s, plan);
    if (!enough_memory) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    plan->help.fixes = s.fixes;
    plan->help.fix_count = s.count;
    return refused ? OOMSIGHT_OK : find_inert(&s, plan, reterr);
}

oomsight_status oos_plan_choose(oos_arena *arena, oos_arena *scratch, oos_plan *plan,
                                const oos_search_facts *facts, oomsight_error *reterr)
{
    oos_search s = {.arena = arena, .scratch = scratch, .plan = plan, .facts = facts};
    if (oos_choices_find(&s, &plan->help.choices, &plan->help.choice_count)) return OOMSIGHT_OK;
    return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the devices");
}

/* Each open fork is closed the other way and planned again. What the plan itself takes is the larger of the two. */
#include "engines/vllm/vllm.h"
#include "base/check.h"

typedef struct way {
    const char *meant, *other;       /* names of what the plan takes, and of the other way */
    const char *closed_by, *kept_by; /* the second: keeps it as planned */
    const char *only, *only_other;   /* starts as planned alone, and the other way alone */
    oos_engine_env env;              /* in which the other way is taken */
} way;

static size_t ways_of(const oos_setup *setup, way *ret_ways)
{
    size_t count = 0;
    if (oos_activation_compile_open(setup)) {
        way *w = &ret_ways[count++];
        *w = (way){.meant = "cold torch.compile cache",
                   .other = "warm torch.compile cache",
                   .closed_by =
                       "keep VLLM_CACHE_ROOT on a persistent volume, or set VLLM_DISABLE_COMPILE_CACHE=1",
                   .kept_by = "VLLM_DISABLE_COMPILE_CACHE=1 keeps it cold",
                   .only = "starts with a cold torch.compile cache, fails with a warm one",
                   .only_other = "fails with a cold torch.compile cache, starts with a warm one",
                   .env = *setup->env};
        w->env.cold_compile = (oos_flag){true, false};
    }
    if (oos_activation_sampler_open(setup)) {
        way *w = &ret_ways[count++];
        *w = (way){.meant = "sampler that sorts",
                   .other = "FlashInfer sampler",
                   .closed_by = "set VLLM_USE_FLASHINFER_SAMPLER=1 (needs FlashInfer) or 0",
                   .kept_by = "VLLM_USE_FLASHINFER_SAMPLER=0 keeps it off",
                   .only = "starts without FlashInfer's sampler, fails with it",
                   .only_other = "fails without FlashInfer's sampler, starts with it",
                   .env = *setup->env};
        w->env.flashinfer_sampler = (oos_flag){true, true};
    }
    return count;
}

static bool fails(oomsight_verdict verdict)
{
    return verdict == OOMSIGHT_VERDICT_FAILS || verdict == OOMSIGHT_VERDICT_REFUSED;
}

/* A start that likely fails the other way does not fit, and nobody knows which way it goes; the figures stay those of what is planned. */
static bool doubt(oos_arena *arena, oos_plan *plan, const oos_plan *other, const way *w)
{
    oomsight_verdict const own = plan->answer.verdict, there = other->answer.verdict;
    if (fails(own) && there == OOMSIGHT_VERDICT_FITS) plan->answer.parted = w->only_other;
    if (own != OOMSIGHT_VERDICT_FITS || there == OOMSIGHT_VERDICT_UNKNOWN || oos_plan_likely(other))
        return true;
    if (fails(there)) plan->answer.parted = w->only;
    oos_assert(other->answer.phase < OOS_PHASE_COUNT); /* what likely fails names where */
    plan->answer.verdict = OOMSIGHT_VERDICT_TIGHT;
    plan->answer.phase = other->answer.phase;
    plan->answer.phase_probability = other->answer.phase_probability;
    plan->answer.chance = 0.5;
    plan->answer.probability =
        vllm_setup(plan)->trial ? other->answer.probability : 0.5; /* what is offered starts both ways */
    for (size_t i = 0; i < plan->phase_count; i++) {
        if (plan->phases[i].phase != other->answer.phase) continue;
        plan->phases[i].tight = true;
        plan->phases[i].chance = 0.5;
    }
    if (vllm_setup(plan)->trial) return true;
    oos_assert(other->answer.why != NULL);
    plan->answer.why =
        oos_arena_format(arena, "%s This is with a %s; %s.", other->answer.why, w->other, w->kept_by);
    return plan->answer.why != NULL;
}

/* The range is that of both ways. */
static void cover(oos_amount *range, const oos_amount *other)
{
    range->low = oos_min(range->low, other->low);
    range->high = oos_max(range->high, other->high);
}

oomsight_status oos_forks_plan(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    way ways[OOS_FORKS_MAX];
    if (plan->refusal.sentence) return OOMSIGHT_OK; /* refused whichever way */
    size_t const count = ways_of(vllm_setup(plan), ways);
    oos_fork *forks = OOS_NEW_ARRAY(arena, oos_fork, count + 1);
    if (!forks) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the forks");
    oos_plan others[OOS_FORKS_MAX]; /* each of the plan as it is before any of them doubts it */
    for (size_t i = 0; i < count; i++) {
        oos_setup setup = *vllm_setup(plan);
        setup.env = &ways[i].env;
        OOS_TRY(oos_plan_other_way(arena, plan, &setup, &others[i], reterr));
    }
    oos_plan_answer const own = plan->answer;
    for (size_t i = 0; i < count; i++) {
        const oos_plan *other = &others[i];
        forks[i] = (oos_fork){.meant = ways[i].meant,
                              .other = ways[i].other,
                              .closed_by = ways[i].closed_by,
                              .kv_bytes = plan->kv.available_bytes,
                              .kv_tokens = plan->kv.tokens,
                              .other_kv_bytes = other->kv.available_bytes,
                              .verdict = own.verdict,
                              .phase = own.phase,
                              .other_kv_tokens = other->kv.tokens,
                              .other_verdict = other->answer.verdict,
                              .other_phase = other->answer.phase};
        if (!doubt(arena, plan, other, &ways[i]))
            return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the forks");
        if (!vllm_setup(plan)->trial) cover(&plan->sizes.non_kv, &other->sizes.non_kv);
    }
    plan->help.forks = forks;
    plan->help.fork_count = count;
    return OOMSIGHT_OK;
}

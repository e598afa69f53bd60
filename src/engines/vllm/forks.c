/* Each open fork is closed the other way and planned again. What the plan itself takes is the larger of the two. */
#include "engines/vllm/vllm.h"

typedef struct way {
    const char *meant, *other; /* names of what the plan takes, and of the other way */
    const char *closed_by;
    oos_engine_env env; /* in which the other way is taken */
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
                   .env = *setup->env};
        w->env.cold_compile = (oos_flag){true, false};
    }
    if (oos_activation_sampler_open(setup)) {
        way *w = &ret_ways[count++];
        *w = (way){.meant = "sampler that sorts",
                   .other = "FlashInfer sampler",
                   .closed_by = "set VLLM_USE_FLASHINFER_SAMPLER=1 (needs FlashInfer) or 0",
                   .env = *setup->env};
        w->env.flashinfer_sampler = (oos_flag){true, true};
    }
    return count;
}

/* A start that fails the other way does not fit; one that is only less certain there is told by the fork itself. */
static void doubt(oos_plan *plan, const oos_plan *other)
{
    if (plan->answer.verdict != OOMSIGHT_VERDICT_FITS || oos_plan_likely(other)) return;
    plan->answer.verdict = OOMSIGHT_VERDICT_TIGHT;
    plan->answer.phase = other->answer.phase;
    plan->answer.phase_probability = other->answer.phase_probability;
    plan->answer.chance = other->answer.chance;
    plan->answer.probability = other->answer.probability;
    plan->answer.why = other->answer.why;
    for (size_t i = 0; i < plan->phase_count; i++) {
        if (plan->phases[i].phase != other->answer.phase) continue;
        plan->phases[i].tight = true;
        plan->phases[i].chance = other->answer.chance;
    }
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
    for (size_t i = 0; i < count; i++) {
        const oos_plan *other = &others[i];
        forks[i] = (oos_fork){.meant = ways[i].meant,
                              .other = ways[i].other,
                              .closed_by = ways[i].closed_by,
                              .kv_bytes = plan->kv.available_bytes,
                              .kv_tokens = plan->kv.tokens,
                              .other_kv_bytes = other->kv.available_bytes,
                              .verdict = plan->answer.verdict,
                              .other_kv_tokens = other->kv.tokens,
                              .other_verdict = other->answer.verdict};
        doubt(plan, other);
    }
    plan->help.forks = forks;
    plan->help.fork_count = count;
    return OOMSIGHT_OK;
}

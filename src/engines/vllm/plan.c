/* One start, phase by phase, in the order of the engine. What each phase holds is computed elsewhere; here it is put
 * together, compared with the device, and the first phase that fails is named. */
#include "base/check.h"
#include "plan/plan.h"
#include "plan/moment.h"
#include "engines/vllm/phases/phases.h"
#include "engines/vllm/pool.h"
#include "engines/vllm/workspace.h"

#include <math.h>

/* The attention that decides the backend: the first with a KV cache. */
static const oos_attention *main_attention(const oos_model *model)
{
    for (size_t i = 0; i < model->layer_count; i++) {
        const oos_attention *attention = &model->attentions[model->layers[i].attention];
        switch (attention->mixer) {
        case OOS_MIXER_FULL:
        case OOS_MIXER_MLA: return attention;
        case OOS_MIXER_NONE:
        case OOS_MIXER_SLIDING:
        case OOS_MIXER_CHUNKED:
        case OOS_MIXER_CROSS:
        case OOS_MIXER_MAMBA1:
        case OOS_MIXER_MAMBA2:
        case OOS_MIXER_GDN:
        case OOS_MIXER_KDA:
        case OOS_MIXER_LINEAR:
        case OOS_MIXER_CONV: break;
        }
    }
    for (size_t i = 0; i < model->attention_count; i++)
        if (model->attentions[i].mixer == OOS_MIXER_SLIDING ||
            model->attentions[i].mixer == OOS_MIXER_CHUNKED)
            return &model->attentions[i];
    for (size_t i = 0; i < model->attention_count; i++) /* recurrent layers alone */
        if (model->attentions[i].mixer != OOS_MIXER_NONE) return &model->attentions[i];
    return NULL;
}

/* Weights of every stage; the plan keeps the heaviest. */
static oomsight_status weigh(oos_arena *arena, const oos_setup *setup, oos_plan *plan, oomsight_error *reterr)
{
    uint64_t *param_bytes = OOS_NEW_ARRAY(arena, uint64_t, setup->pp);
    if (!param_bytes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the stages");
    oos_shard const shard = oos_setup_shard(setup);
    for (uint64_t stage = 0; stage < setup->pp; stage++) {
        oos_weights weights;
        OOS_TRY(oos_weights_of_stage(arena, &shard, stage, &weights, reterr));
        oos_weights_add_built(&weights, oos_workspace_of(setup, &plan->backend).built);
        param_bytes[stage] = weights.param_bytes;
        if (stage == 0 || weights.loaded_bytes > plan->weights.loaded_bytes) {
            plan->weights = weights;
            plan->stage = stage;
        }
    }
    plan->stage_param_bytes = param_bytes;
    return OOMSIGHT_OK;
}

/* vLLM request_memory(): total * gpu_memory_utilization, rounded up since 0.14. */
static uint64_t budget(const oos_setup *setup)
{
    double const product = (double)setup->device.total_bytes * setup->gpu_memory_utilization;
    if (!(product > 0)) return 0;
    return oos_u64_from(setup->rules->budget_rounds_up ? ceil(product) : floor(product));
}

/* Of 21 measured starts between the two certain answers as many started as their chance says, within what so few can tell
 * (tools/reliability.py, docs/evidence/accuracy.md). What lies outside the model moves both ends. */
double oos_plan_probability(double chance)
{
    double const low = OOS_PROBABILITY_FAILS + 0.05, high = OOS_PROBABILITY_FITS - 0.05;
    return rint((low + (high - low) * chance) * 100) / 100; /* further digits say nothing */
}

static void decided_by(oos_plan *plan, const oos_moment *moment)
{
    plan->phase = moment->phase;
    plan->tried_bytes = moment->tried_bytes ? oos_u64_of(moment->tried_bytes) : (oos_u64){0};
    plan->phase_probability = rint((1 - moment->chance) * 100) / 100;
}

/* The first phase that fails at the best guess; where none does, the first that is about as doubtful as the most doubtful one. What goes
 * wrong first is what is seen. */
static const oos_moment *first_to_fail(const oos_plan *plan)
{
    for (size_t i = 0; i < plan->phase_count; i++)
        if (!plan->phases[i].ok) return &plan->phases[i];
    for (size_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].tight && plan->phases[i].chance < plan->chance + 0.05) return &plan->phases[i];
    return NULL;
}

/* One phase that cannot be passed is enough to fail; the one that is named may come before it. */
void oos_plan_judge(oos_plan *plan)
{
    bool certain = false;
    plan->verdict = OOMSIGHT_VERDICT_FITS;
    plan->phase = OOS_PHASE_COUNT;
    plan->phase_probability = 0;
    plan->chance = 1;
    for (size_t i = 0; i < plan->phase_count; i++) {
        const oos_moment *moment = &plan->phases[i];
        certain = certain || (!moment->ok && !moment->tight);
        if (moment->chance < plan->chance) plan->chance = moment->chance;
    }
    const oos_moment *first = first_to_fail(plan);
    if (first) decided_by(plan, first);
    if (certain) {
        bool const refused = first->refusal && !first->tight;
        plan->verdict = refused ? OOMSIGHT_VERDICT_REFUSED : OOMSIGHT_VERDICT_FAILS;
        plan->chance = 0;
        plan->probability = OOS_PROBABILITY_FAILS;
    } else if (first) {
        plan->verdict = OOMSIGHT_VERDICT_TIGHT;
        plan->probability = oos_plan_probability(plan->chance);
    } else {
        plan->probability = OOS_PROBABILITY_FITS;
    }
}

/* What keeps an answer from being certain, NULL: nothing. */
static const char *not_known(oos_arena *arena, const oos_plan *plan)
{
    const oos_model *model = plan->setup->model;
    const oos_weights *weights = &plan->weights;
    if (model->common)
        return oos_arena_format(arena,
                                "Architecture %s is not known here: weights (%.2f to %.2f GiB) and KV cache "
                                "are estimated from the "
                                "fields most configs share.",
                                model->architecture, (double)weights->loaded_low / 0x1p30,
                                (double)weights->loaded_high / 0x1p30);
    if (model->quant_unknown && weights->source == OOS_SOURCE_ESTIMATED)
        return oos_arena_format(arena,
                                "Quantisation %s is not known here and there are no weight files to read: "
                                "the weights take %.2f to "
                                "%.2f GiB.",
                                model->quant_method ? model->quant_method : "of this checkpoint",
                                (double)weights->loaded_low / 0x1p30, (double)weights->loaded_high / 0x1p30);
    return NULL;
}

/* A range that holds the limit is no answer where it stands for something that is not known. Nor is a cache that fits or does
 * not, where its shape is a guess. */
static void admit(oos_arena *arena, oos_plan *plan)
{
    bool const by_cache = plan->verdict == OOMSIGHT_VERDICT_FITS || plan->phase >= OOS_PHASE_KV_SIZING;
    const char *reason = not_known(arena, plan);
    if (!reason || !(plan->verdict == OOMSIGHT_VERDICT_TIGHT || (plan->setup->model->common && by_cache)))
        return;
    plan->verdict = OOMSIGHT_VERDICT_UNKNOWN;
    plan->phase = OOS_PHASE_COUNT;
    plan->phase_probability = 0;
    plan->tried_bytes = (oos_u64){0};
    plan->probability = OOS_PROBABILITY_NONE;
    plan->why = reason;
}

/* Backends that cannot be captured whole leave piecewise graphs only ("CUDAGraphMode ... is not supported with"). */
static oomsight_status without_full_graphs(oos_arena *arena, const oos_setup **setup, oomsight_error *reterr)
{
    oos_setup *changed = OOS_NEW(arena, oos_setup);
    if (!changed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
    *changed = **setup;
    changed->graph_mode = OOS_GRAPH_PIECEWISE;
    *setup = changed;
    return OOMSIGHT_OK;
}

static oomsight_status choose_backend(oos_arena *arena, const oos_setup **setup, oos_plan *plan,
                                      oomsight_error *reterr)
{
    const oos_attention *attention = main_attention((*setup)->model);
    plan->backend = (oos_backend_choice){.name = "NONE", .kernel_block = 16, .full_graphs = true};
    if (attention) OOS_TRY(oos_backend_choose(arena, *setup, attention, &plan->backend, reterr));
    bool const whole = (*setup)->graph_mode != OOS_GRAPH_NONE && (*setup)->graph_mode != OOS_GRAPH_PIECEWISE;
    return whole && !plan->backend.full_graphs ? without_full_graphs(arena, setup, reterr) : OOMSIGHT_OK;
}

/* The engine raises before it touches the device: there is nothing to account for. */
static void refuse(oos_plan *plan)
{
    plan->phases[plan->phase_count++] =
        (oos_moment){.phase = OOS_PHASE_ENV, .refusal = true, .message = plan->backend.reason};
    plan->verdict = OOMSIGHT_VERDICT_REFUSED;
    plan->phase = OOS_PHASE_ENV;
    plan->cause = OOS_CAUSE_CONFIG;
    plan->why = plan->backend.reason;
}

/* Groups of the cache whose layers attend: each has a metadata builder of its own. */
static uint64_t attention_groups(const oos_kv_shape *shape)
{
    uint64_t groups = 0;
    for (size_t i = 0; i < shape->group_count; i++)
        if (shape->groups[i].kind != OOS_KV_KIND_STATE) groups++;
    return groups;
}

/* What the engine does not take comes first and decides. The figures behind it stay: they are the command's as if it were taken,
 * which is what a reader wants to know next. */
oomsight_status oos_plan_refuse(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    const oos_refusal *r = &plan->refusal;
    plan->why = oos_arena_format(arena, "The engine will say: %s", r->sentence);
    if (!plan->why) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a refusal");
    for (size_t i = plan->phase_count; i > 0; i--)
        if (plan->phases[i - 1].phase == r->phase)
            plan->phase_count = i - 1; /* what it refuses it does not reach */
    memmove(plan->phases + 1, plan->phases, plan->phase_count * sizeof *plan->phases);
    plan->phases[0] = (oos_moment){.phase = r->phase, .refusal = true, .message = r->sentence};
    plan->phase_count++;
    plan->verdict = OOMSIGHT_VERDICT_REFUSED;
    plan->phase = r->phase;
    plan->cause = OOS_CAUSE_CONFIG;
    plan->chance = plan->probability = 0;
    plan->phase_probability = 1;
    plan->tried_bytes = (oos_u64){0};
    return OOMSIGHT_OK;
}

/* From the profile run on: what depends on the variables of the environment that a fork closes. */
static oomsight_status plan_from_profile(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    OOS_TRY(oos_phases_profile(arena, plan, reterr));
    OOS_TRY(oos_phases_kv(arena, plan, reterr));
    /* refused at the best guess but perhaps not: what comes after may be certain */
    if (!plan->kv.refused || plan->phases[plan->phase_count - 1].tight) {
        oos_outside_serving(plan->setup, &plan->backend, plan->kv.tokens, &plan->outside);
        OOS_TRY(oos_phases_after_kv(arena, plan, reterr));
    }
    oos_plan_judge(plan);
    admit(arena, plan);
    OOS_TRY(oos_phases_explain(arena, plan, reterr));
    return OOMSIGHT_OK;
}

static oomsight_status plan_memory(oos_arena *arena, const oos_setup *setup, const char *kv_layers_json,
                                   oos_plan *plan, oomsight_error *reterr)
{
    OOS_TRY(choose_backend(arena, &setup, plan, reterr));
    plan->setup = setup;
    OOS_TRY(weigh(arena, setup, plan, reterr));
    if (plan->backend.refused) {
        refuse(plan);
        return OOMSIGHT_OK;
    }
    OOS_TRY(oos_activation_of(arena, setup, &plan->backend, setup->pp - 1, &plan->activation, reterr));
    OOS_TRY(oos_kv_shape_of(arena, setup, kv_layers_json, &plan->kv_shape, reterr));
    OOS_TRY(oos_outside_of(arena, setup, &plan->backend, 0, &plan->outside, reterr));
    oos_graphs_of(setup, &plan->backend, attention_groups(&plan->kv_shape), plan->activation.forward.bytes,
                  &plan->graphs);
    plan->budget_bytes = budget(setup);
    plan->strand_bytes = oos_pool_strand(setup, plan->stage);
    OOS_TRY(oos_phases_load(arena, plan, reterr));
    return plan_from_profile(arena, plan, reterr);
}

oomsight_status oos_plan_make(oos_arena *arena, const oos_setup *setup, const char *kv_layers_json,
                              oos_plan *ret_plan, oomsight_error *reterr)
{
    oos_plan *plan = ret_plan;
    *plan = (oos_plan){.engine = oos_engine_default, .phase = OOS_PHASE_COUNT};
    plan->setup = setup;
    if (!kv_layers_json) OOS_TRY(oos_arguments_check(arena, setup, &plan->refusal, reterr));
    OOS_TRY(plan_memory(arena, setup, kv_layers_json, plan, reterr));
    if (plan->refusal.sentence) OOS_TRY(oos_plan_refuse(arena, plan, reterr));
    oos_assert(oos_plan_is_sound(plan));
    return OOMSIGHT_OK;
}

static bool amounts_same(oos_amount a, oos_amount b)
{
    return a.bytes == b.bytes && a.low == b.low && a.high == b.high;
}

oomsight_status oos_plan_other_way(oos_arena *arena, const oos_plan *plan, const oos_setup *setup,
                                   oos_plan *ret_other, oomsight_error *reterr)
{
    *ret_other = *plan;
    if (plan->backend.refused) return OOMSIGHT_OK;
    oos_activation now;
    oos_activation_other_way(&plan->activation, setup, &plan->backend, setup->pp - 1, &now);
    const oos_activation *was = &plan->activation;
    if (amounts_same(now.sampler, was->sampler) && amounts_same(now.peak, was->peak) &&
        amounts_same(now.warmup, was->warmup) && now.compile_bytes == was->compile_bytes)
        return OOMSIGHT_OK;
    ret_other->setup = setup;
    ret_other->activation = now;
    ret_other->phase_count = 0;
    while (plan->phases[ret_other->phase_count].phase < OOS_PHASE_PROFILE_RUN) ret_other->phase_count++;
    ret_other->phase = OOS_PHASE_COUNT;
    ret_other->cause = OOS_CAUSE_NONE;
    ret_other->why = NULL;
    ret_other->tried_bytes = (oos_u64){0};
    OOS_TRY(plan_from_profile(arena, ret_other, reterr));
    oos_assert(oos_plan_is_sound(ret_other));
    return OOMSIGHT_OK;
}

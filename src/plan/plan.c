/* One start, phase by phase, in the order of the engine. What each phase holds is computed elsewhere; here it is put
 * together, compared with the device, and the first phase that fails is named. */
#include "plan/plan.h"
#include "plan/moment.h"
#include "plan/phases.h"
#include "plan/pool.h"
#include "plan/workspace.h"

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
    for (uint64_t stage = 0; stage < setup->pp; stage++) {
        oos_weights weights;
        OOS_TRY(oos_weights_of_stage(arena, setup, stage, &weights, reterr));
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
    return (uint64_t)(setup->rules->budget_rounds_up ? ceil(product) : floor(product));
}

/* The first phase that is not ok decides; one whose limit lies inside the error bar makes the answer `tight`. */
static void judge(oos_plan *plan)
{
    plan->verdict = OOMSIGHT_VERDICT_FITS;
    plan->phase = OOS_PHASE_COUNT;
    for (size_t i = 0; i < plan->phase_count; i++) {
        const oos_plan_phase *moment = &plan->phases[i];
        if (moment->ok && !moment->tight) continue;
        if (!moment->ok && !moment->tight)
            plan->verdict = moment->refusal ? OOMSIGHT_VERDICT_REFUSED : OOMSIGHT_VERDICT_FAILS;
        else if (plan->verdict == OOMSIGHT_VERDICT_FITS)
            plan->verdict = OOMSIGHT_VERDICT_TIGHT;
        else
            continue; /* tight before, tight again: the first is named */
        plan->phase = moment->phase;
        plan->tried_bytes = moment->tried_bytes ? oos_u64_of(moment->tried_bytes) : (oos_u64){0};
        if (plan->verdict != OOMSIGHT_VERDICT_TIGHT) return;
    }
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
        (oos_plan_phase){.phase = OOS_PHASE_ENV, .refusal = true, .message = plan->backend.reason};
    plan->verdict = OOMSIGHT_VERDICT_REFUSED;
    plan->phase = OOS_PHASE_ENV;
    plan->cause = "bad_config";
    plan->why = plan->backend.reason;
}

oomsight_status oos_plan_make(oos_arena *arena, const oos_setup *setup, const char *kv_layers_json,
                              oos_plan *ret_plan, oomsight_error *reterr)
{
    oos_plan *plan = ret_plan;
    *plan = (oos_plan){.phase = OOS_PHASE_COUNT};
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
    plan->budget_bytes = budget(setup);
    plan->strand_bytes = oos_pool_strand(setup, plan->stage);

    OOS_TRY(oos_phases_before_kv(arena, plan, reterr));
    OOS_TRY(oos_phases_kv(arena, plan, reterr));
    if (!plan->kv.refused) {
        OOS_TRY(oos_outside_of(arena, setup, &plan->backend, plan->kv.tokens, &plan->outside, reterr));
        OOS_TRY(oos_phases_after_kv(arena, plan, reterr));
    }
    judge(plan);
    return oos_phases_explain(arena, plan, reterr);
}

/* One start, phase by phase, in the order of the engine. What each phase holds is computed elsewhere; here it is put
 * together, compared with the device, and the first phase that fails is named. */
#include "base/check.h"
#include "engines/engines.h"
#include "engines/vllm/vllm.h"
#include "plan/plan.h"
#include "engines/vllm/phases/phases.h"

#include <math.h>

/* The attention that decides the backend: the first with a KV cache. */
static const oos_attention *main_attention(const oos_model *model)
{
    for (size_t i = 0; i < model->layer_count; i++) {
        const oos_attention *attention = &model->attentions[model->layers[i].attention];
        if (attention->mixer == OOS_MIXER_FULL || attention->mixer == OOS_MIXER_MLA) return attention;
    }
    for (size_t i = 0; i < model->attention_count; i++)
        if (model->attentions[i].mixer == OOS_MIXER_SLIDING ||
            model->attentions[i].mixer == OOS_MIXER_CHUNKED)
            return &model->attentions[i];
    for (size_t i = 0; i < model->attention_count; i++) /* recurrent layers alone */
        if (model->attentions[i].mixer != OOS_MIXER_NONE) return &model->attentions[i];
    return NULL;
}

/* What the installed engine's own classes create, in the place of what is known of them. */
static void weights_take(const oos_setup *setup, uint64_t stage, oos_weights *weights)
{
    const oos_exact *exact = setup->exact;
    if (!exact || exact->stage_count != setup->pp) return;
    uint64_t const now = exact->param_bytes[stage], was = weights->param_bytes;
    if (weights->source == OOS_SOURCE_ESTIMATED) weights->source = OOS_SOURCE_DERIVED;
    weights->param_bytes = now;
    weights->loaded_bytes = oos_sub(oos_add(weights->loaded_bytes, now), was);
    weights->loaded_low = weights->loaded_high = weights->loaded_bytes;
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
        weights_take(setup, stage, &weights);
        oos_weights_add_built(&weights, oos_workspace_of(setup, &vllm_of(plan)->backend).built);
        param_bytes[stage] = weights.param_bytes;
        if (stage == 0 || weights.loaded_bytes > plan->sizes.weights.loaded_bytes) {
            plan->sizes.weights = weights;
            plan->sizes.stage = stage;
        }
    }
    plan->sizes.stage_param_bytes = param_bytes;
    return OOMSIGHT_OK;
}

/* vLLM request_memory(): total * gpu_memory_utilization, rounded up since 0.14. */
static uint64_t budget(const oos_setup *setup)
{
    double const product = (double)setup->device.total_bytes * setup->gpu_memory_utilization;
    if (!(product > 0)) return 0;
    return oos_u64_from(setup->rules->budget_rounds_up ? ceil(product) : floor(product));
}

/* The releases that were read have a class for the model, and the installed one lists none. */
static bool class_is_gone(const oos_setup *setup)
{
    oos_version other;
    const vllm_rules *rules = setup->rules;
    const char *name = setup->model->architecture;
    return rules->architectures.len && !oos_learned_lists(rules->architectures, name) &&
           oos_architecture_known_at(rules->facts, name, rules->version, &other) == OOS_ARCHITECTURE_HERE;
}

/* What keeps an answer from being certain, NULL: nothing. */
static const char *not_known(oos_arena *arena, const oos_plan *plan)
{
    const oos_model *model = vllm_setup(plan)->model;
    const oos_weights *weights = &plan->sizes.weights;
    const oos_exact *exact = vllm_setup(plan)->exact;
    const vllm_rules *rules = vllm_setup(plan)->rules;
    bool const listed = oos_learned_lists(rules->architectures, model->architecture);
    if (exact && exact->stage_count && exact->kv_layers_json) return NULL;
    if (class_is_gone(vllm_setup(plan)))
        return oos_arena_format(arena, "The installed release has no class for architecture %s.",
                                model->architecture);
    if (model->common)
        return oos_arena_format(
            arena,
            "Architecture %s is not known here: weights (%.2f to %.2f GiB) and KV cache "
            "are estimated from the "
            "fields most configs share.%s",
            model->architecture, (double)weights->loaded_low / 0x1p30, (double)weights->loaded_high / 0x1p30,
            listed ? " The installed release has a class for it: --exact asks that." : "");
    if (model->encoder_only && !vllm_setup(plan)->rules->encoders_unprofiled)
        return "This release starts a model without a KV cache in a way that is not known here.";
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
    bool const by_cache =
        plan->answer.verdict == OOMSIGHT_VERDICT_FITS || plan->answer.phase >= OOS_PHASE_KV_SIZING;
    const oos_model *model = vllm_setup(plan)->model;
    const char *reason = not_known(arena, plan);
    bool const guessed = model->common || model->encoder_only || class_is_gone(vllm_setup(plan));
    if (!reason || !(plan->answer.verdict == OOMSIGHT_VERDICT_TIGHT || (guessed && by_cache))) return;
    plan->answer.verdict = OOMSIGHT_VERDICT_UNKNOWN;
    plan->answer.phase = OOS_PHASE_COUNT;
    plan->answer.phase_probability = 0;
    plan->answer.tried_bytes = (oos_u64){0};
    plan->answer.probability = OOS_PROBABILITY_NONE;
    plan->answer.why = reason;
}

/* Backends that cannot be captured whole leave piecewise graphs only ("CUDAGraphMode ... is not supported with"). */
static oomsight_status without_full_graphs(oos_arena *arena, const oos_setup **setup, oomsight_error *reterr)
{
    oos_setup *changed = oos_arena_take_raw(arena, sizeof *changed);
    if (!changed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
    *changed = **setup;
    changed->graph_mode = OOS_GRAPH_PIECEWISE;
    *setup = changed;
    return OOMSIGHT_OK;
}

/* Attention.forward(): queries are quantised as the cache is, which is asserted to be e4m3. */
static bool query_ends(const oos_setup *setup, const oos_attention *attention,
                       const oos_backend_choice *choice)
{
    const char *kv = setup->kv_dtype_word;
    if (choice->refused || attention->mixer == OOS_MIXER_MLA || !kv || strcmp(kv, "fp8_e5m2") != 0)
        return false;
    return (setup->rules->query_in_fp8 >= 1 && strcmp(choice->name, "FLASH_ATTN") == 0) ||
           (setup->rules->query_in_fp8 >= 2 && strcmp(choice->name, "TRITON_ATTN") == 0);
}

static oomsight_status choose_backend(oos_arena *arena, const oos_setup **setup, oos_plan *plan,
                                      oomsight_error *reterr)
{
    const oos_attention *attention = main_attention((*setup)->model);
    vllm_of(plan)->backend = (oos_backend_choice){.name = "NONE", .kernel_block = 16, .full_graphs = true};
    if (attention) OOS_TRY(oos_backend_choose(arena, *setup, attention, &vllm_of(plan)->backend, reterr));
    if (attention && query_ends(*setup, attention, &vllm_of(plan)->backend)) {
        vllm_of(plan)->backend.refused = vllm_of(plan)->backend.raises = true;
        vllm_of(plan)->backend.reason =
            "AssertionError: assert self.kv_cache_dtype in {\"fp8\", \"fp8_e4m3\"}";
    }
    bool const whole = (*setup)->graph_mode != OOS_GRAPH_NONE && (*setup)->graph_mode != OOS_GRAPH_PIECEWISE;
    return whole && !vllm_of(plan)->backend.full_graphs ? without_full_graphs(arena, setup, reterr)
                                                        : OOMSIGHT_OK;
}

/* The engine raises before it touches the device, or whatever there is on it: there is nothing to account for. */
static oomsight_status refuse(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    oos_phase const phase = vllm_of(plan)->backend.raises ? OOS_PHASE_PROFILE_RUN : OOS_PHASE_ENV;
    plan->answer.why = oos_arena_format(arena, OOS_EXPECTED_ERROR "%s", vllm_of(plan)->backend.reason);
    if (!plan->answer.why) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a refusal");
    oos_assert(plan->phase_count < OOS_PHASE_COUNT);
    plan->phases[plan->phase_count++] =
        (oos_moment){.phase = phase, .refusal = true, .message = vllm_of(plan)->backend.reason};
    /* which backend takes what changes with most releases */
    oos_plan_refused(plan, phase, vllm_setup(plan)->rules->beyond > 0);
    return OOMSIGHT_OK;
}

/* Groups of the cache whose layers attend: each has a metadata builder of its own. */
static uint64_t attention_groups(const oos_kv_shape *shape)
{
    uint64_t groups = 0;
    for (size_t i = 0; i < shape->group_count; i++)
        if (shape->groups[i].kind != OOS_KV_KIND_STATE) groups++;
    return groups;
}

/* From the profile run on: what depends on the variables of the environment that a fork closes. */
static oomsight_status plan_from_profile(oos_arena *arena, oos_plan *plan, oomsight_error *reterr)
{
    if (!plan->model
             ->encoder_only) { /* where nothing is cached nothing is profiled (EngineCore._initialize_kv_caches) */
        OOS_TRY(oos_phases_profile(arena, plan, reterr));
        OOS_TRY(oos_phases_kv(arena, plan, reterr));
    }
    /* refused at the best guess but perhaps not: what comes after may be certain */
    if (!plan->kv.refused || plan->phases[plan->phase_count - 1].tight) {
        oos_outside_serving(vllm_setup(plan), &vllm_of(plan)->backend, plan->kv.tokens,
                            &vllm_of(plan)->outside);
        OOS_TRY(oos_phases_after_kv(arena, plan, reterr));
    }
    oos_plan_judge(plan);
    admit(arena, plan);
    return vllm_setup(plan)->trial ? OOMSIGHT_OK : oos_phases_explain(arena, plan, reterr);
}

static oomsight_status plan_memory(oos_arena *arena, const oos_setup *setup, const char *kv_layers_json,
                                   oos_plan *plan, oomsight_error *reterr)
{
    OOS_TRY(choose_backend(arena, &setup, plan, reterr));
    vllm_of(plan)->setup = setup;
    OOS_TRY(weigh(arena, setup, plan, reterr));
    if (vllm_of(plan)->backend.refused) return refuse(arena, plan, reterr);
    oos_activation_of(setup, &vllm_of(plan)->backend, setup->pp - 1, &vllm_of(plan)->activation);
    OOS_TRY(oos_kv_shape_of(arena, setup, kv_layers_json, &vllm_of(plan)->kv_shape, reterr));
    oos_outside_of(setup, &vllm_of(plan)->backend, 0, &vllm_of(plan)->outside);
    plan->sizes.context = vllm_of(plan)->outside.context;
    plan->sizes.communicators = vllm_of(plan)->outside.nccl;
    oos_graphs_of(setup, &vllm_of(plan)->backend, attention_groups(&vllm_of(plan)->kv_shape),
                  vllm_of(plan)->activation.forward.bytes, &vllm_of(plan)->graphs);
    plan->sizes.budget_bytes = budget(setup);
    vllm_of(plan)->strand_bytes = oos_pool_strand(setup, plan->sizes.stage);
    OOS_TRY(oos_phases_load(arena, plan, reterr));
    return plan_from_profile(arena, plan, reterr);
}

oomsight_status oos_plan_make(oos_arena *arena, const oos_setup *setup, const char *kv_layers_json,
                              oos_plan *ret_plan, oomsight_error *reterr)
{
    oos_plan *plan = ret_plan;
    vllm_detail *detail = OOS_NEW(arena, vllm_detail);
    if (!detail) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the plan");
    detail->setup = setup;
    *plan = (oos_plan){.engine = oos_engine_vllm.words,
                       .answer.phase = OOS_PHASE_COUNT,
                       .detail = detail,
                       .model = setup->model,
                       .device = setup->device,
                       .serving.tp = setup->tp,
                       .serving.pp = setup->pp,
                       .serving.dp = setup->dp};
    if (!kv_layers_json && !setup->exact) OOS_TRY(oos_arguments_check(arena, setup, &plan->refusal, reterr));
    OOS_TRY(plan_memory(arena, setup, kv_layers_json, plan, reterr));
    oos_vllm_doubtful_tell(plan);
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
    if (vllm_of(plan)->backend.refused) return OOMSIGHT_OK;
    oos_activation now;
    oos_activation_other_way(&vllm_of(plan)->activation, setup, &vllm_of(plan)->backend, setup->pp - 1, &now);
    const oos_activation *was = &vllm_of(plan)->activation;
    if (amounts_same(now.sampler, was->sampler) && amounts_same(now.peak, was->peak) &&
        amounts_same(now.warmup, was->warmup) && now.compile_bytes == was->compile_bytes)
        return OOMSIGHT_OK;
    vllm_detail *detail = oos_arena_take_raw(arena, sizeof *detail);
    if (!detail) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the plan");
    *detail = *vllm_of(plan);
    detail->activation = now;
    detail->setup = setup;
    ret_other->detail = detail;
    ret_other->phase_count = 0;
    while (plan->phases[ret_other->phase_count].phase < OOS_PHASE_PROFILE_RUN) ret_other->phase_count++;
    oos_assert(ret_other->phase_count < plan->phase_count); /* the profile run is among them */
    ret_other->answer.phase = OOS_PHASE_COUNT;
    ret_other->answer.cause = OOS_CAUSE_NONE;
    ret_other->answer.why = NULL;
    ret_other->answer.tried_bytes = (oos_u64){0};
    OOS_TRY(plan_from_profile(arena, ret_other, reterr));
    oos_assert(oos_plan_is_sound(ret_other));
    return OOMSIGHT_OK;
}

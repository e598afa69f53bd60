/* Looking beyond the command: the same model in 4 bits, and the same command on other devices. */
#include "engines/vllm/solve/solve.h"
#include "plan/plan.h"

#include <stdio.h>

enum { FEWER_SEQS = 16 }; /* requests at once, where more do not fit */
/* ---- a 4-bit checkpoint --------------------------------------------------------------------------------------------- */

/* Linear layers of the decoder in groups of 128, as AWQ, GPTQ and W4A16 checkpoints have them; embedding, head, routers, towers
 * and norms stay. */
static bool is_packed(const oos_matrix *matrix)
{
    static const char *const stay[] = {"embed", "lm_head", "vision", "norm", "router"};
    if (!matrix->linear || matrix->in % 128 != 0 || matrix->out % 8 != 0) return false;
    for (size_t i = 0; i < sizeof stay / sizeof *stay; i++)
        if (matrix->module && strcmp(matrix->module, stay[i]) == 0) return false;
    return !matrix->name || !strstr(matrix->name, "gate.");
}

static const oos_model *in_four_bits(oos_arena *arena, const oos_model *model)
{
    oos_model *packed = OOS_NEW(arena, oos_model);
    oos_matrix *matrices = OOS_NEW_ARRAY(arena, oos_matrix, model->matrix_count);
    oos_quant *quants = OOS_NEW_ARRAY(arena, oos_quant, 2);
    if (!packed || !matrices || !quants) return NULL;
    quants[1] = (oos_quant){
        .kind = OOS_QUANT_PACKED_INT, .bits = 4, .group = 128, .symmetric = true, .weight_only = true};
    for (size_t i = 0; i < model->matrix_count; i++) {
        matrices[i] = model->matrices[i];
        matrices[i].quant = is_packed(&matrices[i]) ? 1 : 0;
    }
    *packed = *model;
    packed->matrices = matrices;
    packed->quants = quants;
    packed->quant_count = 2;
    packed->quant_method = "compressed-tensors";
    packed->quant_unknown = packed->quant_by_flag = false;
    packed->tensors = NULL; /* the files of another checkpoint */
    packed->headers = (oos_headers){0};
    return packed;
}

/* Another machine need not be a certain one. */
static bool likely(const oos_trial *t)
{
    return oos_answer_starts(t->verdict, t->probability) &&
           (t->verdict == OOMSIGHT_VERDICT_FITS || t->starts);
}

/* Worth naming when it is clearly smaller and starts with a length one can work with. */
static bool find_checkpoint(oos_search *s, oos_needs *needs)
{
    const oos_setup *setup = vllm_setup(s->plan);
    if (setup->model->common || setup->draft || setup->model->quant_unknown ||
        oos_model_in_four_bits(setup->model))
        return true;
    const oos_model *packed = in_four_bits(s->arena, setup->model);
    if (!packed) return false;
    uint64_t const usual = oos_min(setup->max_model_len, OOS_USUAL_TOKENS);
    oos_trial t = oos_trial_start(s);
    uint64_t bytes = 0;
    t.serve.quantization = NULL;
    if (oos_plan_too_full(s->plan, s->plan->doubtful.share))
        t.serve.gpu_memory_utilization = (oos_f64){true, oos_plan_safe_share(s->plan)};
    oos_set_length(&t.serve, usual);
    bool const planned = oos_trial_plan_other(s, &t, NULL, packed, &bytes);
    if (!planned || bytes > s->plan->sizes.weights.loaded_bytes / 10 * 9) return true;
    if (!likely(&t)) {
        oos_set_length(&t.serve, oos_trial_least_length(s));
        oos_set_seqs(&t.serve, oos_min(setup->max_num_seqs, FEWER_SEQS));
        if (!oos_trial_plan_other(s, &t, NULL, packed, &bytes) || !likely(&t)) return true;
    }
    needs->checkpoint_bytes = bytes;
    needs->checkpoint_tokens = t.kv_tokens;
    return true;
}

/* ---- other devices --------------------------------------------------------------------------------------------------- */

static void say(oos_need_gpu *need, const char *flag, const char *value)
{
    if (need->flag_count + 2 > OOS_NEED_FLAGS_MAX) return;
    need->flags[need->flag_count++] = flag;
    if (value) need->flags[need->flag_count++] = value; /* none behind a switch */
}

static const char *whole(oos_search *s, uint64_t value)
{
    return oos_arena_format(s->arena, "%llu", (unsigned long long)value);
}

/* The command at `count` of a device: how it is cut, with which share and which length it starts. */
typedef struct cell {
    oos_device_facts device;
    oos_serve serve; /* as it is, on so many devices */
    oos_trial t;
    uint64_t share, length, seqs; /* 0: as it is */
} cell;

/* Starts, or likely does, with this length and some share of the device. */
static bool starts_with(oos_search *s, cell *c, uint64_t length)
{
    c->t = (oos_trial){.serve = c->serve};
    if (c->seqs) oos_set_seqs(&c->t.serve, c->seqs);
    if (length) oos_set_length(&c->t.serve, length);
    oos_budget b = {s, &c->t, &c->device};
    oos_share line = oos_budget_of(&b);
    uint64_t share;
    double const usual = vllm_setup(s->plan)->rules->default_gpu_memory_utilization;
    line.highest =
        oos_max(line.own, (uint64_t)(usual * 1000 + 0.5)) / 10 * 10; /* not by its last hundredths */
    if (!oos_share_find(&line, c->share, &share)) return false;
    share = oos_share_nearest(&line, share);
    if (line.at(&b, share) != OOS_SIDE_FITS || !likely(&c->t)) return false;
    c->share = share;
    c->length = length;
    return true;
}

/* The whole length, or the longest of a few: a usual one has to do at least. */
static bool starts_somehow(oos_search *s, cell *c)
{
    static const uint64_t lengths[] = {131072, 32768, 16384};
    uint64_t const asked = vllm_setup(s->plan)->max_model_len;
    if (starts_with(s, c, 0)) return true;
    if (c->t.first_short != OOS_PHASE_KV_SIZING || asked <= OOS_USUAL_TOKENS) return false;
    if (!starts_with(s, c, OOS_USUAL_TOKENS)) return false;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        if (lengths[i] < asked && starts_with(s, c, lengths[i])) return true;
    return starts_with(s, c, OOS_USUAL_TOKENS);
}

/* With fewer requests at once: their states, their logits and the graphs for them. */
static bool starts_with_fewer(oos_search *s, cell *c)
{
    c->seqs = FEWER_SEQS;
    c->share = 0;
    return vllm_setup(s->plan)->max_num_seqs > FEWER_SEQS && starts_somehow(s, c);
}

static bool try_cut(oos_search *s, const oos_gpu *gpu, uint64_t tp, uint64_t pp, bool fewer,
                    oos_need_gpu *ret_need, bool *ret_refused)
{
    const oos_setup *setup = vllm_setup(s->plan);
    cell c = {.device = oos_device_of_gpu(gpu, tp * pp, setup->device.host_bytes), .serve = *setup->serve};
    c.serve.data_parallel_size = (oos_u64){0};
    c.serve.tensor_parallel_size = oos_u64_of(tp);
    c.serve.pipeline_parallel_size = oos_u64_of(pp);
    bool const before = s->tight_too;
    s->tight_too = true;
    bool starts = starts_somehow(s, &c);
    *ret_refused = c.t.phase == OOS_PHASE_ARGUMENTS;
    if (!starts && fewer && c.t.first_short >= OOS_PHASE_PROFILE_RUN) starts = starts_with_fewer(s, &c);
    s->tight_too = before;
    if (!starts) return false;
    oos_need_gpu need = {.gpu = oos_elsewhere_name(s->facts->gpus, gpu),
                         .count = tp * pp,
                         .memory_bytes = gpu->nvml_total_bytes,
                         .kv_tokens = c.t.kv_tokens,
                         .verdict = c.t.verdict,
                         .probability = c.t.probability};
    for (size_t i = 0; i + 1 < s->mended.word_count; i += 2)
        if (!c.length || strcmp(s->mended.words[i], "--max-model-len") != 0)
            say(&need, s->mended.words[i], s->mended.words[i + 1]);
    if (tp != setup->tp) say(&need, "--tensor-parallel-size", whole(s, tp));
    if (pp != setup->pp) say(&need, "--pipeline-parallel-size", whole(s, pp));
    if (c.share)
        say(&need, "--gpu-memory-utilization",
            oos_arena_format(s->arena, "0.%02u", (unsigned)(c.share / 10)));
    if (c.seqs) say(&need, "--max-num-seqs", whole(s, c.seqs));
    if (c.length) say(&need, "--max-model-len", whole(s, c.length));
    *ret_need = need;
    return true;
}

/* One device of `count` that is asked for: cut as the command is, or by tensors, or in pipeline stages. */
static bool try_gpus(void *of, const oos_gpu *gpu, uint64_t count, bool fewer, oos_need_gpu *ret_need)
{
    oos_search *s = of;
    const oos_setup *setup = vllm_setup(s->plan);
    uint64_t const pp = count > 8 ? count / 8 : 1;
    bool refused;
    if (count == setup->tp * setup->pp)
        return try_cut(s, gpu, setup->tp, setup->pp, fewer, ret_need, &refused);
    if (try_cut(s, gpu, count / pp, pp, fewer, ret_need, &refused)) return true;
    return pp == 1 && refused && try_cut(s, gpu, 1, count, fewer, ret_need, &refused);
}

static oos_elsewhere elsewhere(oos_search *s)
{
    return (oos_elsewhere){.gpus = s->facts->gpus,
                           .plan = s->plan,
                           .ranks = oos_mul(s->plan->serving.tp, s->plan->serving.pp),
                           .starts = try_gpus,
                           .of = s};
}

/* ---- another release ------------------------------------------------------------------------------------------------- */

/* The newest that takes the command: a model or a method that this one does not have, or no longer. */
static bool find_release(oos_search *s, oos_needs *needs)
{
    const oos_setup *old = vllm_setup(s->plan);
    const oos_version *versions;
    if (!s->facts->rules || !s->plan->refusal.sentence) return true;
    for (size_t i = oos_rule_book_versions(s->facts->rules, &versions); i > 0; i--) {
        vllm_rules rules;
        oos_setup setup;
        oos_refusal refusal = {0};
        bool beyond;
        char word[32];
        oos_arena_reset(s->scratch);
        if (versions[i - 1] == old->rules->version ||
            oos_vllm_rules_of(s->facts->rules, versions[i - 1], &rules, &beyond, NULL) != OOMSIGHT_OK ||
            oos_setup_resolve(s->scratch, old->model, old->draft, old->serve, old->env, &old->device, &rules,
                              &setup, NULL) != OOMSIGHT_OK ||
            oos_arguments_check(s->scratch, &setup, &refusal, NULL) != OOMSIGHT_OK || refusal.sentence)
            continue;
        oos_version_print(versions[i - 1], word, sizeof word);
        needs->release = oos_arena_copy(s->arena, oos_view_of(word));
        return needs->release;
    }
    return true;
}

bool oos_needs_find(oos_search *s, const oos_needs **ret_needs)
{
    oos_needs *needs = OOS_NEW(s->arena, oos_needs);
    if (!needs) return false;
    *ret_needs = NULL;
    if (!find_checkpoint(s, needs)) return false;
    oos_elsewhere const e = elsewhere(s);
    if (e.gpus) oos_elsewhere_needs(&e, needs);
    if (needs->gpu_count == 0 && !find_release(s, needs)) return false;
    needs->no_release = s->plan->refusal.sentence && s->facts->rules && !needs->gpu_count && !needs->release;
    needs->no_device = s->facts->gpus && !needs->checkpoint_bytes && !needs->gpu_count && !needs->release &&
                       !needs->no_release;
    bool const nobody_asked = !s->facts->gpus && !s->facts->rules;
    if (!nobody_asked) *ret_needs = needs;
    return true;
}

bool oos_choices_find(oos_search *s, const oos_need_gpu **ret_list, size_t *ret_count)
{
    const oos_serve *serve = vllm_setup(s->plan)->serve;
    oos_elsewhere const e = elsewhere(s);
    bool const fixed = serve->tensor_parallel_size.known || serve->pipeline_parallel_size.known;
    return oos_elsewhere_choices(s->arena, &e, fixed, ret_list, ret_count);
}

/* Looking beyond the command: the same model in 4 bits, and the same command on other devices. */
#include "plan/solve/solve_needs.h"

#include <stdio.h>

/* What people rent and buy, by memory of one card: a choice of ours, without prices. A device that is not here can still be asked for
 * by its name. */
static const char *const common_gpus[] = {"T4",           "RTX 5070 Ti", "L4",   "RTX 3090", "RTX 4090",
                                          "RTX 5090",     "A100 40GB",   "L40S", "H100",     "A100 80GB",
                                          "RTX PRO 6000", "H200",        "B200", "B300"};

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
    const oos_setup *setup = s->plan->setup;
    if (setup->model->common || setup->draft) return true;
    const oos_model *packed = in_four_bits(s->arena, setup->model);
    if (!packed) return false;
    uint64_t const usual = oos_min(setup->max_model_len, OOS_USUAL_TOKENS);
    oos_trial t = oos_trial_start(s);
    uint64_t bytes = 0;
    t.serve.quantization = NULL;
    oos_set_length(&t.serve, usual);
    bool const planned = oos_trial_plan_other(s, &t, NULL, packed, &bytes);
    if (!planned || bytes > s->plan->weights.loaded_bytes / 10 * 9) return true;
    if (!likely(&t)) {
        oos_set_length(&t.serve, oos_trial_least_length(s));
        oos_set_seqs(&t.serve, oos_min(setup->max_num_seqs, 16));
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
    need->flags[need->flag_count++] = value;
}

static const char *whole(oos_search *s, uint64_t value)
{
    return oos_arena_format(s->arena, "%llu", (unsigned long long)value);
}

/* One device of `count` that is asked for: with which flags does the command start there? */
static bool try_gpus(oos_search *s, const oos_gpu *gpu, uint64_t count, oos_need_gpu *ret_need)
{
    const oos_setup *setup = s->plan->setup;
    oos_device_facts const device = oos_device_of_gpu(gpu, count, setup->device.host_bytes);
    bool const as_asked = count == setup->tp * setup->pp;
    uint64_t const pp = as_asked ? setup->pp : count > 8 ? count / 8 : 1, tp = count / pp;
    oos_need_gpu need = {.gpu = gpu->name, .count = count, .memory_bytes = gpu->nvml_total_bytes};
    oos_trial t = oos_trial_start(s);
    t.serve.data_parallel_size = (oos_u64){0};
    t.serve.tensor_parallel_size = oos_u64_of(tp);
    t.serve.pipeline_parallel_size = oos_u64_of(pp);
    if (tp != setup->tp) say(&need, "--tensor-parallel-size", whole(s, tp));
    if (pp != setup->pp) say(&need, "--pipeline-parallel-size", whole(s, pp));
    if (!oos_trial_plan_other(s, &t, &device, NULL, NULL)) return false;
    if (t.phase == OOS_PHASE_KV_SIZING && !likely(&t)) {
        static const uint64_t lengths[] = {131072, 32768, 16384, OOS_USUAL_TOKENS};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths && !likely(&t); i++) {
            if (lengths[i] >= setup->max_model_len) continue;
            oos_set_length(&t.serve, lengths[i]);
            if (!oos_trial_plan_other(s, &t, &device, NULL, NULL)) return false;
            if (likely(&t)) say(&need, "--max-model-len", whole(s, lengths[i]));
        }
    }
    need.kv_tokens = t.kv_tokens;
    need.verdict = t.verdict;
    need.probability = t.probability;
    *ret_need = need;
    return likely(&t);
}

static bool same_device(const oos_setup *setup, const oos_gpu *gpu)
{
    return setup->device.name && strcmp(setup->device.name, gpu->name) == 0;
}

/* More of the device that is asked about. */
static void find_more(oos_search *s, oos_needs *needs)
{
    const oos_setup *setup = s->plan->setup;
    uint64_t ignored;
    const oos_gpu *gpu =
        setup->device.name ? oos_gpus_find(s->facts->gpus, oos_view_of(setup->device.name), &ignored) : NULL;
    if (setup->device.unified) return; /* no two of them are joined */
    for (uint64_t count = oos_max(2, setup->tp * setup->pp * 2); gpu && count <= 16; count *= 2) {
        if (!try_gpus(s, gpu, count, &needs->gpus[needs->gpu_count])) continue;
        needs->gpu_count++;
        return;
    }
}

/* The smallest of others: by the memory of all cards together. */
static void find_others(oos_search *s, oos_needs *needs)
{
    static const uint64_t counts[] = {1, 2, 4, 8, 16};
    enum { COUNTS = sizeof counts / sizeof *counts, GPUS = sizeof common_gpus / sizeof *common_gpus };
    const oos_setup *setup = s->plan->setup;
    uint64_t const held = oos_mul(s->plan->weights.loaded_bytes, oos_mul(setup->tp, setup->pp));
    struct {
        const oos_gpu *gpu;
        uint64_t count;
        bool done;
    } list[GPUS * COUNTS];
    size_t count = 0;
    for (size_t i = 0; i < GPUS; i++) {
        uint64_t ignored;
        const oos_gpu *gpu = oos_gpus_find(s->facts->gpus, oos_view_of(common_gpus[i]), &ignored);
        for (size_t k = 0; gpu && k < COUNTS; k++) {
            bool const enough = gpu->total_bytes / 100 * 97 * counts[k] > held;
            if (!enough || same_device(setup, gpu)) continue;
            list[count].gpu = gpu, list[count].count = counts[k], list[count++].done = false;
        }
    }
    for (size_t tried = 0; tried < count && needs->gpu_count < OOS_NEED_GPUS_MAX; tried++) {
        size_t best = count;
        for (size_t i = 0; i < count; i++) {
            if (list[i].done) continue;
            if (best == count ||
                list[i].gpu->total_bytes * list[i].count < list[best].gpu->total_bytes * list[best].count)
                best = i;
        }
        if (best == count) return;
        list[best].done = true;
        if (!try_gpus(s, list[best].gpu, list[best].count, &needs->gpus[needs->gpu_count])) continue;
        needs->gpu_count++;
        for (size_t i = 0; i < count; i++) /* fewer of the same are enough: more need not be named */
            if (list[i].gpu == list[best].gpu) list[i].done = true;
    }
}

/* ---- another release ------------------------------------------------------------------------------------------------- */

/* The newest that takes the command: a model or a method that this one does not have, or no longer. */
static bool find_release(oos_search *s, oos_needs *needs)
{
    const oos_setup *old = s->plan->setup;
    const oos_version *versions;
    if (!s->facts->rules || !s->plan->refusal.sentence) return true;
    for (size_t i = oos_rule_book_versions(s->facts->rules, &versions); i > 0; i--) {
        oos_rules rules;
        oos_setup setup;
        oos_refusal refusal = {0};
        bool beyond;
        char word[32];
        oos_arena_reset(s->scratch);
        if (versions[i - 1] == old->rules->version ||
            oos_rules_of(s->facts->rules, versions[i - 1], &rules, &beyond, NULL) != OOMSIGHT_OK ||
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
    if (s->facts->gpus) {
        find_more(s, needs);
        find_others(s, needs);
    }
    if (needs->gpu_count == 0 && !find_release(s, needs)) return false;
    if (needs->checkpoint_bytes || needs->gpu_count || needs->release) *ret_needs = needs;
    return true;
}

/* ---- every device ---------------------------------------------------------------------------------------------------- */

static size_t rank_of(const oos_gpus *gpus, const char *name)
{
    for (size_t i = 0; i < sizeof common_gpus / sizeof *common_gpus; i++) {
        uint64_t ignored;
        const oos_gpu *gpu = oos_gpus_find(gpus, oos_view_of(common_gpus[i]), &ignored);
        if (gpu && strcmp(gpu->name, name) == 0) return i;
    }
    return sizeof common_gpus / sizeof *common_gpus;
}

/* Less memory in all, then fewer cards, then fewer flags, then what people have. */
static bool goes_before(const oos_gpus *gpus, const oos_need_gpu *a, const oos_need_gpu *b)
{
    uint64_t const a_all = a->memory_bytes / OOS_GIB * a->count, b_all = b->memory_bytes / OOS_GIB * b->count;
    if (a_all != b_all) return a_all < b_all;
    if (a->count != b->count) return a->count < b->count;
    if (a->flag_count != b->flag_count) return a->flag_count < b->flag_count;
    return rank_of(gpus, a->gpu) < rank_of(gpus, b->gpu);
}

/* No two of them are in one machine. */
static bool is_alone(const oos_gpu *gpu)
{
    return gpu->memory == OOS_MEMORY_UNIFIED || strstr(gpu->name, "Laptop");
}

/* The fewest cards of one kind that are enough. How many there may be the command says, or nobody does. */
static bool try_counts(oos_search *s, const oos_gpu *gpu, oos_need_gpu *ret_need)
{
    static const uint64_t counts[] = {1, 2, 4, 8};
    const oos_setup *setup = s->plan->setup;
    const oos_serve *serve = setup->serve;
    uint64_t const held = oos_mul(s->plan->weights.loaded_bytes, oos_mul(setup->tp, setup->pp));
    if (serve->tensor_parallel_size.known || serve->pipeline_parallel_size.known)
        return (setup->tp * setup->pp == 1 || !is_alone(gpu)) &&
               try_gpus(s, gpu, setup->tp * setup->pp, ret_need);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (counts[i] > 1 && is_alone(gpu)) return false;
        if (gpu->total_bytes / 100 * 97 * counts[i] > held && try_gpus(s, gpu, counts[i], ret_need))
            return true;
    }
    return false;
}

bool oos_choices_find(oos_search *s, const oos_need_gpu **ret_list, size_t *ret_count)
{
    const oos_gpus *gpus = s->facts->gpus;
    oos_need_gpu *list = OOS_NEW_ARRAY(s->arena, oos_need_gpu, gpus->count + 1);
    size_t count = 0;
    if (!list) return false;
    for (size_t i = 0; i < gpus->count; i++) {
        oos_need_gpu need;
        if (gpus->list[i].slice || !try_counts(s, &gpus->list[i], &need)) continue;
        size_t at = count++;
        for (; at > 0 && goes_before(gpus, &need, &list[at - 1]); at--) list[at] = list[at - 1];
        list[at] = need;
    }
    *ret_list = list;
    *ret_count = count;
    return true;
}

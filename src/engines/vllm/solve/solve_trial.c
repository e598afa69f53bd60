/* Planning a changed command, finding the largest number that fits, and keeping what does. Which changes are worth trying
 * is said in solve_levers.c. */
#include "base/json.h"
#include "engines/vllm/vllm.h"
#include "engines/vllm/solve/solve.h"

#include <stdio.h>
#include <stdlib.h>

bool oos_trial_fits(const oos_search *s, const oos_trial *t)
{
    return t->verdict == OOMSIGHT_VERDICT_FITS ||
           (s->tight_too && t->starts && oos_answer_starts(t->verdict, t->probability));
}

/* Plan a changed command. What the plan points to lives until the next one. Only a start that fits can be doubted by a fork. */
static bool plan_again(oos_search *s, const oos_serve *serve, const oos_device_facts *device,
                       const oos_model *model, oos_setup *ret_setup, oos_plan *ret_plan)
{
    const oos_setup *old = vllm_setup(s->plan);
    const char *layers = s->facts->kv_layers_json;
    oos_arena_reset(s->scratch);
    if (oos_setup_resolve(s->scratch, model, old->draft, serve, old->env, device, old->rules, ret_setup,
                          NULL) != OOMSIGHT_OK)
        return false;
    ret_setup->trial = true;
    if (oos_plan_make(s->scratch, ret_setup, layers, ret_plan, NULL) != OOMSIGHT_OK) return false;
    return ret_plan->answer.verdict != OOMSIGHT_VERDICT_FITS ||
           oos_forks_plan(s->scratch, ret_plan, NULL) == OOMSIGHT_OK;
}

bool oos_trial_plan_other(oos_search *s, oos_trial *t, const oos_device_facts *device, const oos_model *model,
                          uint64_t *ret_weights_bytes)
{
    const oos_setup *old = vllm_setup(s->plan);
    oos_setup setup;
    oos_plan plan;
    if (!plan_again(s, &t->serve, device ? device : &old->device, model ? model : old->model, &setup, &plan))
        return false;
    t->verdict = plan.answer.verdict;
    t->probability = plan.answer.probability;
    t->phase = plan.answer.phase;
    t->kv_tokens = plan.kv.tokens;
    t->first_short = t->first_doubtful = OOS_PHASE_COUNT;
    t->reached = false;
    if (ret_weights_bytes) *ret_weights_bytes = plan.sizes.weights.loaded_bytes;
    for (size_t i = 0; i < plan.phase_count; i++) {
        const oos_moment *moment = &plan.phases[i];
        if (!moment->ok && t->first_short == OOS_PHASE_COUNT) t->first_short = moment->phase;
        if ((!moment->ok || moment->tight) && t->first_doubtful == OOS_PHASE_COUNT)
            t->first_doubtful = moment->phase;
        if (moment->phase != s->plan->answer.phase) continue;
        t->reached = true;
        t->phase_ok = moment->ok, t->phase_tight = moment->tight;
        t->need_bytes = moment->peak_bytes, t->limit_bytes = moment->limit_bytes;
    }
    if (oos_plan_too_full(&plan, plan.doubtful.share) ||
        (!device && !plan.doubtful.cache_bytes && oos_plan_too_full(s->plan, plan.doubtful.share))) {
        /* the host would be left without, by its own figure or by the one that the answer says */
        t->verdict = OOMSIGHT_VERDICT_FAILS;
        t->probability = 0;
        t->first_short = t->first_doubtful = t->phase = OOS_PHASE_KV_ALLOC;
    }
    t->starts = t->first_short == OOS_PHASE_COUNT;
    return true;
}

bool oos_trial_plan(oos_search *s, oos_trial *t)
{
    return oos_trial_plan_other(s, t, NULL, NULL, NULL);
}

bool oos_may_go_eager(const oos_search *s)
{
    const oos_setup *setup = vllm_setup(s->plan);
    return !setup->eager && !setup->serve->enforce_eager.known;
}

bool oos_may_shrink_cache(const oos_search *s)
{
    const oos_setup *setup = vllm_setup(s->plan);
    const char *asked = setup->serve->kv_cache_dtype;
    return setup->kv_dtype == OOS_KV_MODEL_DTYPE && (!asked || strcmp(asked, "auto") == 0);
}

/* Who limits images or says how they are read has some. */
bool oos_may_drop_media(const oos_search *s)
{
    static const char *const about[] = {"--mm-", "--media-", "--interleave-mm", "--allowed-local-media",
                                        "--allowed-media"};
    const oos_serve *serve = vllm_setup(s->plan)->serve;
    if (!vllm_setup(s->plan)->multimodal || !oos_trial_has_flag(s, "--language-model-only")) return false;
    if (serve->mm_limits_given && !serve->mm_all_zero) return false;
    for (size_t i = 0; i < serve->flag_count; i++)
        for (size_t k = 0; k < sizeof about / sizeof *about; k++)
            if (strncmp(serve->flags[i].name, about[k], strlen(about[k])) == 0) return false;
    return true;
}

bool oos_trial_has_flag(const oos_search *s, const char *flag)
{
    return oos_flags_find(s->facts->flags, oos_view_of(flag), vllm_setup(s->plan)->rules->version).here;
}

bool oos_vllm_is_given(const oos_serve *serve, const char *flag)
{
    if (strcmp(flag, "--compilation-config") == 0)
        return serve->compilation.max_capture_size.known || serve->compilation.capture_sizes_given;
    return oos_serve_given(serve, flag);
}

oos_trial oos_trial_start(const oos_search *s)
{
    return (oos_trial){.serve = *vllm_setup(s->plan)->serve};
}

/* What helps against the failure may leave a cache too small for the longest request: then a shorter length is offered
 * with it. Declared here, at the heart of the matter; the search for a length is below. */
static bool offer_with_length(oos_search *s, oos_trial *t);

bool oos_trial_offer_if_it_fits(oos_search *s, oos_trial *t)
{
    if (!oos_trial_plan(s, t)) return true;
    return oos_trial_fits(s, t) ? oos_trial_offer(s, t) : offer_with_length(s, t);
}

oos_compilation_given oos_compilation_look(const oos_serve *serve, const char **ret_value)
{
    static const char flag[] = "--compilation-config";
    oos_compilation_given found = OOS_COMPILATION_NONE;
    *ret_value = NULL;
    for (size_t i = 0; i < serve->flag_count; i++) {
        const char *name = serve->flags[i].name;
        if (!name || (strncmp(name, flag, sizeof flag - 1) != 0 && strncmp(name, "-O", 2) != 0)) continue;
        if (found != OOS_COMPILATION_NONE || strcmp(name, flag) != 0) return OOS_COMPILATION_PARTS;
        found = OOS_COMPILATION_WHOLE;
        *ret_value = serve->flags[i].value;
    }
    return found;
}

const char *oos_compilation_merged(oos_arena *arena, const char *value, uint64_t size)
{
    const char *merged = NULL;
    json_t *config = value ? oos_json_parse(oos_view_of(value), 0) : NULL;
    if (json_is_object(config) &&
        json_object_set_new(config, "max_cudagraph_capture_size", json_integer((json_int_t)size)) == 0) {
        (void)json_object_del(config, "cudagraph_capture_sizes");
        char *text = oos_json_text(config, JSON_COMPACT);
        if (text) merged = oos_arena_copy(arena, oos_view_of(text));
        free(text);
    }
    json_decref(config);
    return merged;
}

void oos_set_seqs(oos_serve *serve, uint64_t value)
{
    serve->max_num_seqs = oos_u64_of(value);
}
void oos_set_tokens(oos_serve *serve, uint64_t value)
{
    serve->max_num_batched_tokens = oos_u64_of(value);
}
void oos_set_length(oos_serve *serve, uint64_t value)
{
    serve->max_model_len = oos_u64_of(value);
    serve->max_model_len_auto = false;
}
void oos_set_capture(oos_serve *serve, uint64_t value)
{
    serve->compilation.max_capture_size = oos_u64_of(value);
    serve->compilation.capture_sizes_given = false;
}
void oos_set_gmu_thousandths(oos_serve *serve, uint64_t value)
{
    serve->gpu_memory_utilization = (oos_f64){true, (double)value / 1000};
}
void oos_set_kv_mib(oos_serve *serve, uint64_t value)
{
    serve->kv_cache_memory_bytes = oos_u64_of(value * OOS_MIB);
}

/* A trial with one value after another. */
typedef struct changing {
    oos_search *s;
    oos_trial *t;
    oos_set_value set;
} changing;

static bool fits_with(void *of, uint64_t value)
{
    changing *c = of;
    c->set(&c->t->serve, value);
    return oos_trial_plan(c->s, c->t) && oos_trial_fits(c->s, c->t);
}

uint64_t oos_trial_largest(oos_search *s, oos_trial *t, oos_set_value set, uint64_t low, uint64_t high,
                           uint64_t step)
{
    changing c = {s, t, set};
    return oos_largest(fits_with, &c, low, high, step);
}

/* The same for a failure before the cache is sized: the lever is found at a short length, so that it answers that failure
 * alone; how long requests may then be is asked when it is offered. */
uint64_t oos_trial_best(oos_search *s, oos_trial *t, oos_set_value set, uint64_t low, uint64_t high,
                        uint64_t step)
{
    const oos_serve *given = vllm_setup(s->plan)->serve;
    if (s->plan->answer.phase < OOS_PHASE_KV_SIZING)
        oos_set_length(&t->serve, oos_min(vllm_setup(s->plan)->max_model_len, 1024));
    uint64_t const best = oos_trial_largest(s, t, set, low, high, step);
    t->serve.max_model_len = given->max_model_len;
    t->serve.max_model_len_auto = given->max_model_len_auto;
    if (best) set(&t->serve, best);
    return best;
}

uint64_t oos_trial_least_length(const oos_search *s)
{
    return oos_min(2048, vllm_setup(s->plan)->max_model_len);
}

uint64_t oos_trial_longest(oos_search *s, oos_trial *t, uint64_t most)
{
    changing c = {s, t, oos_set_length};
    return oos_longest(fits_with, &c, 0, oos_trial_least_length(s), most, oos_trial_step(s, "model_len"));
}

/* A lever's promise without the length it can no longer keep. */
static const char *without_length(oos_arena *arena, const char *keeps)
{
    static const char phrase[] = "context length";
    const char *at = strstr(keeps, phrase);
    if (!at) return strcmp(keeps, "everything") == 0 ? "everything else" : keeps;
    const char *after = at + sizeof phrase - 1;
    if (strncmp(after, ", ", 2) == 0) after += 2;
    int before = (int)(at - keeps);
    if (*after == '\0' && before >= 2) before -= 2; /* the comma in front */
    const char *rest = oos_arena_format(arena, "%.*s%s", before, keeps, after);
    return rest && *rest ? rest : "the model";
}

static bool offer_with_length(oos_search *s, oos_trial *t)
{
    uint64_t const length_now = vllm_setup(s->plan)->max_model_len;
    if (t->phase != OOS_PHASE_KV_SIZING || s->plan->answer.phase == OOS_PHASE_KV_SIZING ||
        t->word_count + 2 > OOS_TRIAL_WORDS_MAX)
        return true;
    uint64_t const length = oos_trial_longest(s, t, length_now - 1);
    if (length == 0) return true;
    char number[32];
    snprintf(number, sizeof number, "%llu", (unsigned long long)length);
    t->words[t->word_count++] = "--max-model-len", t->words[t->word_count++] = number;
    t->keeps = without_length(s->arena, t->keeps);
    t->gives_up = oos_arena_format(s->arena, "%s; %s", t->gives_up, oos_trial_cost(s, "model_len"));
    return t->gives_up && oos_trial_offer(s, t);
}

/* Searching for flags that fit. A lever changes the serve command, the start is planned again, and only what then fits is
 * offered. Levers are tried from what costs least to what costs most; a number is found by bisection. */
#include "plan/solve.h"

#include <stdio.h>

enum { FIXES_MAX = 12, WORDS_MAX = 6 };

typedef struct trial {
    oos_serve serve;              /* the changed command */
    const char *words[WORDS_MAX]; /* what to paste */
    size_t word_count;
    const char *keeps, *gives_up;
    oomsight_verdict verdict;
    oos_phase phase;
    uint64_t kv_tokens;
} trial;

typedef struct search {
    oos_arena *arena, *scratch;
    const oos_plan *plan;
    const char *kv_layers_json;
    oos_fix *fixes;
    size_t count;
} search;

static bool fits(oomsight_verdict verdict)
{
    return verdict == OOMSIGHT_VERDICT_FITS;
}

/* Plan a changed command. What the plan points to lives until the next one. */
static bool plan_again(search *s, const oos_serve *serve, oos_setup *ret_setup, oos_plan *ret_plan)
{
    const oos_setup *old = s->plan->setup;
    oos_arena_reset(s->scratch);
    return oos_setup_resolve(s->scratch, old->model, old->draft, serve, old->env, &old->device, old->rules,
                             ret_setup, NULL) == OOMSIGHT_OK &&
           oos_plan_make(s->scratch, ret_setup, s->kv_layers_json, ret_plan, NULL) == OOMSIGHT_OK;
}

static bool plan_trial(search *s, trial *t)
{
    oos_setup setup;
    oos_plan plan;
    if (!plan_again(s, &t->serve, &setup, &plan)) return false;
    t->verdict = plan.verdict;
    t->phase = plan.phase;
    t->kv_tokens = plan.kv.tokens;
    return true;
}

static bool offer(search *s, const trial *t)
{
    if (s->count == FIXES_MAX) return true;
    const char **words = OOS_NEW_ARRAY(s->arena, const char *, t->word_count);
    if (!words) return false;
    for (size_t i = 0; i < t->word_count; i++) words[i] = oos_arena_copy(s->arena, oos_view_of(t->words[i]));
    s->fixes[s->count++] = (oos_fix){.change = words,
                                     .change_count = t->word_count,
                                     .verdict = t->verdict,
                                     .phase = t->phase,
                                     .kv_tokens = t->kv_tokens,
                                     .keeps = t->keeps,
                                     .gives_up = t->gives_up};
    return true;
}

static trial start(const search *s)
{
    return (trial){.serve = *s->plan->setup->serve};
}

/* What helps against the failure may leave a cache too small for the longest request: then a shorter length is offered
 * with it. Declared here, at the heart of the matter; the search for a length is below. */
static bool offer_with_length(search *s, trial *t);

static bool offer_if_it_fits(search *s, trial *t)
{
    if (!plan_trial(s, t)) return true;
    return fits(t->verdict) ? offer(s, t) : offer_with_length(s, t);
}

/* ---- levers with a number: the largest value that fits ---------------------------------------------------------- */

typedef void (*set_value)(oos_serve *serve, uint64_t value);

static void set_seqs(oos_serve *serve, uint64_t value)
{
    serve->max_num_seqs = oos_u64_of(value);
}
static void set_tokens(oos_serve *serve, uint64_t value)
{
    serve->max_num_batched_tokens = oos_u64_of(value);
}
static void set_length(oos_serve *serve, uint64_t value)
{
    serve->max_model_len = oos_u64_of(value);
    serve->max_model_len_auto = false;
}
static void set_capture(oos_serve *serve, uint64_t value)
{
    serve->compilation.max_capture_size = oos_u64_of(value);
    serve->compilation.capture_sizes_given = false;
}
static void set_gmu_thousandths(oos_serve *serve, uint64_t value)
{
    serve->gpu_memory_utilization = (oos_f64){true, (double)value / 1000};
}
static void set_kv_mib(oos_serve *serve, uint64_t value)
{
    serve->kv_cache_memory_bytes = oos_u64_of(value * OOS_MIB);
}

/* The largest value in [low, high] on the grid of `step` that fits, 0 when none does. Fitting is monotone in these. */
static uint64_t largest_that_fits(search *s, trial *t, set_value set, uint64_t low, uint64_t high,
                                  uint64_t step)
{
    uint64_t best = 0, from = oos_cdiv(low, step), to = high / step;
    while (from <= to && to > 0) {
        uint64_t const middle = from + (to - from) / 2;
        set(&t->serve, middle * step);
        if (plan_trial(s, t) && fits(t->verdict)) {
            best = middle * step;
            from = middle + 1;
        } else {
            if (middle == 0) break;
            to = middle - 1;
        }
    }
    if (best) {
        set(&t->serve, best);
        if (!plan_trial(s, t)) return 0;
    }
    return best;
}

/* The same for a failure before the cache is sized: the lever is found at a short length, so that it answers that failure
 * alone; how long requests may then be is asked when it is offered. */
static uint64_t best_value(search *s, trial *t, set_value set, uint64_t low, uint64_t high, uint64_t step)
{
    const oos_serve *given = s->plan->setup->serve;
    if (s->plan->phase < OOS_PHASE_KV_SIZING)
        set_length(&t->serve, oos_min(s->plan->setup->max_model_len, 1024));
    uint64_t const best = largest_that_fits(s, t, set, low, high, step);
    t->serve.max_model_len = given->max_model_len;
    t->serve.max_model_len_auto = given->max_model_len_auto;
    if (best) set(&t->serve, best);
    return best;
}

static bool offer_with_length(search *s, trial *t)
{
    uint64_t const length_now = s->plan->setup->max_model_len;
    if (t->phase != OOS_PHASE_KV_SIZING || s->plan->phase == OOS_PHASE_KV_SIZING ||
        t->word_count + 2 > WORDS_MAX)
        return true;
    uint64_t const length = largest_that_fits(s, t, set_length, 1024, length_now - 1, 256);
    if (length == 0) return true;
    char number[32];
    snprintf(number, sizeof number, "%llu", (unsigned long long)length);
    t->words[t->word_count++] = "--max-model-len", t->words[t->word_count++] = number;
    return offer(s, t);
}

/* A number people would choose: the largest power of two not above it, unless that gives away more than a third. */
static uint64_t round_down(uint64_t value)
{
    uint64_t power = 1;
    while (power * 2 <= value) power *= 2;
    return power;
}

static bool try_seqs(search *s)
{
    uint64_t const now = s->plan->setup->max_num_seqs;
    trial t = start(s);
    uint64_t best = best_value(s, &t, set_seqs, 1, now ? now - 1 : 0, 1);
    if (best == 0) return true;
    best = round_down(best);
    set_seqs(&t.serve, best);
    char number[32];
    snprintf(number, sizeof number, "%llu", (unsigned long long)best);
    t.words[0] = "--max-num-seqs", t.words[1] = number, t.word_count = 2;
    t.keeps = s->plan->setup->eager ? "the budget" : "CUDA graphs";
    t.gives_up = "sequences running at once";
    return offer_if_it_fits(s, &t);
}

static bool try_capture(search *s)
{
    const oos_setup *setup = s->plan->setup;
    if (setup->eager || setup->capture_top <= 1 || setup->rules->capture_list < 2) return true;
    trial t = start(s);
    uint64_t best = best_value(s, &t, set_capture, 1, setup->capture_top - 1, 1);
    if (best == 0) return true;
    best = round_down(best);
    set_capture(&t.serve, best);
    char json[80];
    snprintf(json, sizeof json, "{\"max_cudagraph_capture_size\": %llu}", (unsigned long long)best);
    t.words[0] = "--compilation-config", t.words[1] = json, t.word_count = 2;
    t.keeps = "CUDA graphs for small batches, sequences";
    t.gives_up = "graphs for batches above that size";
    return offer_if_it_fits(s, &t);
}

static bool try_tokens(search *s)
{
    const oos_setup *setup = s->plan->setup;
    trial t = start(s);
    uint64_t const least = oos_max(setup->max_num_seqs, 512);
    if (setup->max_num_batched_tokens <= least) return true;
    uint64_t best = best_value(s, &t, set_tokens, least, setup->max_num_batched_tokens - 1, 256);
    if (best == 0) return true;
    if (round_down(best) >= least) best = round_down(best);
    set_tokens(&t.serve, best);
    char number[32];
    snprintf(number, sizeof number, "%llu", (unsigned long long)best);
    t.words[0] = "--max-num-batched-tokens", t.words[1] = number, t.word_count = 2;
    t.keeps = setup->eager ? "sequences, context length" : "CUDA graphs, sequences, context length";
    t.gives_up = "prefill in larger chunks (time to first token)";
    return offer_if_it_fits(s, &t);
}

static bool try_length(search *s)
{
    const oos_setup *setup = s->plan->setup;
    trial t = start(s);
    uint64_t const best = largest_that_fits(s, &t, set_length, 256, setup->max_model_len - 1, 256);
    if (best == 0) return true;
    char number[32];
    snprintf(number, sizeof number, "%llu", (unsigned long long)best);
    t.words[0] = "--max-model-len", t.words[1] = number, t.word_count = 2;
    t.keeps = setup->eager ? "sequences" : "CUDA graphs, sequences";
    t.gives_up = "longer requests";
    return offer(s, &t);
}

static bool try_lower_gmu(search *s)
{
    const oos_setup *setup = s->plan->setup;
    trial t = start(s);
    uint64_t const now = (uint64_t)(setup->gpu_memory_utilization * 1000);
    uint64_t const best = best_value(s, &t, set_gmu_thousandths, 50, now ? now - 1 : 0, 10);
    if (best == 0) return true;
    char number[32];
    snprintf(number, sizeof number, "%.2f", (double)best / 1000);
    t.words[0] = "--gpu-memory-utilization", t.words[1] = number, t.word_count = 2;
    t.keeps = setup->eager ? "context length" : "CUDA graphs, context length";
    t.gives_up = "KV cache (sequences running at once)";
    return offer_if_it_fits(s, &t);
}

static bool try_higher_gmu(search *s)
{
    const oos_setup *setup = s->plan->setup;
    for (uint64_t value = (uint64_t)(setup->gpu_memory_utilization * 1000) / 10 * 10 + 10; value < 990;
         value += 10) {
        trial t = start(s);
        set_gmu_thousandths(&t.serve, value);
        if (!plan_trial(s, &t)) return true;
        if (!fits(t.verdict)) continue;
        char number[32];
        snprintf(number, sizeof number, "%.2f", (double)value / 1000);
        t.words[0] = "--gpu-memory-utilization", t.words[1] = number, t.word_count = 2;
        t.keeps = setup->eager ? "context length, sequences" : "CUDA graphs, context length, sequences";
        t.gives_up = "headroom for other processes";
        return offer(s, &t);
    }
    return true;
}

/* Giving the KV bytes by hand skips graph profiling and keeps every graph. */
static bool try_kv_bytes(search *s)
{
    const oos_setup *setup = s->plan->setup;
    if (setup->kv_cache_memory_bytes.known || setup->rules->version < OOS_VERSION(0, 10, 2)) return true;
    trial t = start(s);
    /* leave an eighth of what would fit: nothing else guards this number */
    uint64_t best = best_value(s, &t, set_kv_mib, 64, setup->device.total_bytes / OOS_MIB, 64);
    best = best - best / 8;
    if (best == 0) return true;
    set_kv_mib(&t.serve, best);
    char number[32];
    snprintf(number, sizeof number, "%llu", (unsigned long long)(best * OOS_MIB));
    t.words[0] = "--kv-cache-memory-bytes", t.words[1] = number, t.word_count = 2;
    t.keeps = "all CUDA graphs, sequences";
    t.gives_up = "the engine's own sizing: the number holds for this GPU only";
    return offer_if_it_fits(s, &t);
}

static bool try_switch(search *s, trial *t, const char *word, const char *value, const char *keeps,
                       const char *gives_up)
{
    t->words[0] = word, t->words[1] = value, t->word_count = value ? 2 : 1;
    t->keeps = keeps;
    t->gives_up = gives_up;
    return offer_if_it_fits(s, t);
}

static bool try_fp8_kv(search *s)
{
    if (s->plan->setup->kv_dtype != OOS_KV_MODEL_DTYPE) return true;
    trial t = start(s);
    t.serve.kv_cache_dtype = "fp8";
    return try_switch(s, &t, "--kv-cache-dtype", "fp8", "context length, sequences",
                      "some accuracy of the cache");
}

static bool try_no_sleep(search *s)
{
    if (!s->plan->setup->sleep_pool) return true;
    trial t = start(s);
    t.serve.enable_sleep_mode = (oos_flag){true, false};
    t.serve.enable_cumem_allocator = (oos_flag){true, false};
    return try_switch(s, &t, "--no-enable-sleep-mode", NULL, "everything else", "sleep and wake");
}

static bool try_text_only(search *s)
{
    if (!s->plan->setup->multimodal || s->plan->setup->rules->version < OOS_VERSION(0, 14, 0)) return true;
    trial t = start(s);
    t.serve.language_model_only = (oos_flag){true, true};
    return try_switch(s, &t, "--language-model-only", NULL, "text", "images, video and audio");
}

static bool try_eager(search *s)
{
    if (s->plan->setup->eager) return true;
    trial t = start(s);
    t.serve.enforce_eager = (oos_flag){true, true};
    return try_switch(s, &t, "--enforce-eager", NULL, "context length, sequences",
                      "CUDA graphs (decoding slows down)");
}

static bool try_backend(search *s)
{
    const oos_setup *setup = s->plan->setup;
    if (!s->plan->outside.runtime_cause || setup->serve->attention_backend) return true;
    bool const by_flag = setup->rules->version >= OOS_VERSION(0, 11, 1);
    trial t = start(s);
    t.serve.attention_backend = "TRITON_ATTN";
    if (by_flag)
        return try_switch(s, &t, "--attention-backend", "TRITON_ATTN", "sequences, context length",
                          "nothing measured");
    return try_switch(s, &t, "VLLM_ATTENTION_BACKEND=TRITON_ATTN", NULL, "sequences, context length",
                      "nothing measured");
}

static bool try_parallel(search *s)
{
    const oos_setup *setup = s->plan->setup;
    size_t const before = s->count;
    for (uint64_t tp = setup->tp * 2; tp <= 8 && s->count == before && setup->model->heads % tp == 0;
         tp *= 2) {
        trial t = start(s);
        t.serve.tensor_parallel_size = oos_u64_of(tp);
        char number[32];
        snprintf(number, sizeof number, "%llu", (unsigned long long)tp);
        if (!try_switch(s, &t, "--tensor-parallel-size", number, "everything", "more GPUs")) return false;
    }
    return true;
}

/* Two levers together, when no single one was enough. */
static bool try_pairs(search *s)
{
    static const uint64_t seqs[] = {64, 32, 16, 8, 4, 1};
    const oos_setup *setup = s->plan->setup;
    for (size_t i = 0; i < sizeof seqs / sizeof *seqs; i++) {
        if (seqs[i] >= setup->max_num_seqs) continue;
        trial t = start(s);
        set_seqs(&t.serve, seqs[i]);
        uint64_t const length = largest_that_fits(s, &t, set_length, 256, setup->max_model_len, 256);
        if (length < oos_min(1024, setup->max_model_len)) continue;
        char first[32], second[32];
        snprintf(first, sizeof first, "%llu", (unsigned long long)seqs[i]);
        snprintf(second, sizeof second, "%llu", (unsigned long long)length);
        t.words[0] = "--max-num-seqs", t.words[1] = first, t.words[2] = "--max-model-len",
        t.words[3] = second;
        t.word_count = 4;
        t.keeps = setup->eager ? "the model" : "CUDA graphs";
        t.gives_up = "sequences running at once and longer requests";
        return offer(s, &t);
    }
    return true;
}

static bool try_levers(search *s)
{
    switch (s->plan->phase) {
    case OOS_PHASE_KV_SIZING:
        return try_higher_gmu(s) && try_length(s) && try_fp8_kv(s) && try_seqs(s) && try_tokens(s) &&
               try_text_only(s) && try_eager(s) && try_parallel(s);
    case OOS_PHASE_CUDAGRAPH_PROFILE:
        return try_kv_bytes(s) && try_capture(s) && try_seqs(s) && try_eager(s) && try_parallel(s);
    case OOS_PHASE_ENV:
    case OOS_PHASE_INIT_FREE_MEMORY_CHECK:
    case OOS_PHASE_DISTRIBUTED_INIT:
    case OOS_PHASE_WEIGHT_LOAD:
    case OOS_PHASE_QUANT_POSTPROCESS:
    case OOS_PHASE_PROFILE_RUN:
    case OOS_PHASE_MM_PROFILE:
    case OOS_PHASE_KV_ALLOC:
    case OOS_PHASE_COMPILE:
    case OOS_PHASE_CUDAGRAPH_CAPTURE:
    case OOS_PHASE_SAMPLER_WARMUP:
    case OOS_PHASE_RUNTIME_PREFILL:
    case OOS_PHASE_RUNTIME_SAMPLER:
    case OOS_PHASE_RUNTIME_OTHER:
    case OOS_PHASE_SLEEP_WAKE:
    case OOS_PHASE_HOST_MEMORY:
    case OOS_PHASE_NOT_OOM:
    case OOS_PHASE_UNKNOWN:
    case OOS_PHASE_COUNT: break;
    }
    return try_backend(s) && try_lower_gmu(s) && try_no_sleep(s) && try_capture(s) && try_tokens(s) &&
           try_seqs(s) && try_text_only(s) && try_eager(s) && try_parallel(s);
}

/* ---- inert flags ------------------------------------------------------------------------------------------------ */

/* A flag that people would try, pushed to its ends: when it fails in the same phase even there, it is inert. */
typedef struct push {
    const char *flag;
    set_value set;
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

static bool ends_the_same(search *s, const push *p, uint64_t value)
{
    trial t = start(s);
    p->set(&t.serve, value);
    return plan_trial(s, &t) && !fits(t.verdict) && t.verdict != OOMSIGHT_VERDICT_TIGHT &&
           t.phase == s->plan->phase;
}

static oomsight_status find_inert(search *s, oos_plan *plan, oomsight_error *reterr)
{
    const oos_setup *setup = plan->setup;
    const push pushes[] = {
        {"--gpu-memory-utilization", set_gmu_thousandths, 50, 980, false},
        {"--max-model-len", set_length, oos_min(setup->max_model_len, 256), 0, false},
        {"--max-num-seqs", set_seqs, 1, 0, false},
        {"--max-num-batched-tokens", set_tokens, oos_min(setup->max_num_batched_tokens, setup->max_num_seqs),
         0, false},
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
    search s = {.arena = arena, .scratch = scratch, .plan = plan, .kv_layers_json = kv_layers_json};
    s.fixes = OOS_NEW_ARRAY(arena, oos_fix, FIXES_MAX);
    if (!s.fixes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    if (!try_levers(&s) || (s.count == 0 && !try_pairs(&s)))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    plan->fixes = s.fixes;
    plan->fix_count = s.count;
    return find_inert(&s, plan, reterr);
}

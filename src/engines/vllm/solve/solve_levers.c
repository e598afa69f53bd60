/* The levers, from what costs the user least to what costs most. Each is tried by planning again. */
#include "engines/vllm/solve/solve.h"
#include "base/locale.h"
#include <stdio.h>

/* A number people would choose: the largest power of two not above it. */
static uint64_t round_down(uint64_t value)
{
    uint64_t power = 1;
    while (power * 2 <= value) power *= 2;
    return power;
}

enum { NUMBER_BYTES = 32 };

static const char *whole(char number[NUMBER_BYTES], uint64_t value)
{
    snprintf(number, NUMBER_BYTES, "%llu", (unsigned long long)value);
    return number;
}

static const char *fraction(char number[NUMBER_BYTES], uint64_t thousandths)
{
    oos_format(number, NUMBER_BYTES, "%.2f", (double)thousandths / 1000);
    return number;
}

/* As people write it: the engine takes 7G and 512M wherever it takes bytes. */
static const char *memory(char number[NUMBER_BYTES], uint64_t mib)
{
    bool const gib = mib % 1024 == 0;
    snprintf(number, NUMBER_BYTES, "%llu%c", (unsigned long long)(gib ? mib / 1024 : mib), gib ? 'G' : 'M');
    return number;
}

/* What to paste, and what it means for the user. */
static void say(oos_trial *t, const char *word, const char *value, const char *keeps, const char *gives_up)
{
    t->words[0] = word, t->words[1] = value, t->word_count = value ? 2 : 1;
    t->keeps = keeps;
    t->gives_up = gives_up;
}

/* A rung that is dearer than what is answered anyway is not offered beside it. */
static bool may(const oos_search *s, const char *id)
{
    return oos_trial_rung(s, id) <= s->most;
}

static bool try_switch(oos_search *s, oos_trial *t, const char *word, const char *value, const char *keeps,
                       const char *gives_up)
{
    say(t, word, value, keeps, gives_up);
    return oos_trial_offer_if_it_fits(s, t);
}

static bool try_seqs(oos_search *s)
{
    if (!may(s, "num_seqs")) return true;
    uint64_t const now = vllm_setup(s->plan)->max_num_seqs;
    oos_trial t = oos_trial_start(s);
    uint64_t best = oos_trial_best(s, &t, oos_set_seqs, 1, now ? now - 1 : 0, 1);
    if (best == 0) return true;
    best = round_down(best);
    oos_set_seqs(&t.serve, best);
    char number[NUMBER_BYTES];
    return try_switch(s, &t, "--max-num-seqs", whole(number, best),
                      vllm_setup(s->plan)->eager ? "the budget" : "CUDA graphs",
                      oos_trial_cost(s, "num_seqs"));
}

static bool try_capture(oos_search *s)
{
    if (!may(s, "capture")) return true;
    const oos_setup *setup = vllm_setup(s->plan);
    if (setup->eager || setup->capture_top <= 1 || setup->rules->capture_list < 2) return true;
    oos_trial t = oos_trial_start(s);
    uint64_t best = oos_trial_best(s, &t, oos_set_capture, 1, setup->capture_top - 1, 1);
    if (best == 0) return true;
    best = round_down(best);
    oos_set_capture(&t.serve, best);
    const char *value;
    oos_compilation_given const kind = oos_compilation_look(setup->serve, &value);
    bool const given = kind == OOS_COMPILATION_WHOLE;
    const char *merged = given ? oos_compilation_merged(s->arena, value, best) : NULL;
    if (kind == OOS_COMPILATION_PARTS || (given && !merged)) return true;
    char number[NUMBER_BYTES];
    return try_switch(s, &t,
                      given ? "--compilation-config" : "--compilation-config.max_cudagraph_capture_size",
                      given ? merged : whole(number, best), "CUDA graphs for small batches, sequences",
                      oos_trial_cost(s, "capture"));
}

static bool try_tokens(oos_search *s)
{
    if (!may(s, "batched_tokens")) return true;
    const oos_setup *setup = vllm_setup(s->plan);
    oos_trial t = oos_trial_start(s);
    uint64_t const least = oos_max(setup->max_num_seqs, 512);
    if (setup->max_num_batched_tokens <= least) return true;
    uint64_t best = oos_trial_best(s, &t, oos_set_tokens, least, setup->max_num_batched_tokens - 1, 256);
    if (best == 0) return true;
    if (round_down(best) >= least) best = round_down(best);
    oos_set_tokens(&t.serve, best);
    char number[NUMBER_BYTES];
    return try_switch(s, &t, "--max-num-batched-tokens", whole(number, best),
                      setup->eager ? "sequences, context length" : "CUDA graphs, sequences, context length",
                      oos_trial_cost(s, "batched_tokens"));
}

static bool try_length(oos_search *s)
{
    if (!may(s, "model_len")) return true;
    const oos_setup *setup = vllm_setup(s->plan);
    oos_trial t = oos_trial_start(s);
    uint64_t const best = oos_trial_longest(s, &t, setup->max_model_len - 1);
    if (best == 0) return true;
    char number[NUMBER_BYTES];
    say(&t, "--max-model-len", whole(number, best), setup->eager ? "sequences" : "CUDA graphs, sequences",
        oos_trial_cost(s, "model_len"));
    return oos_trial_offer(s, &t);
}

/* The engine chooses the length that its own figures allow: it holds where ours are off. */
static bool try_auto_length(oos_search *s)
{
    if (!may(s, "model_len_auto")) return true;
    const oos_setup *setup = vllm_setup(s->plan);
    if (!setup->rules->auto_fit || setup->auto_model_len) return true;
    oos_trial t = oos_trial_start(s);
    t.serve.max_model_len = (oos_u64){0};
    t.serve.max_model_len_auto = true;
    return try_switch(s, &t, "--max-model-len", "auto", setup->eager ? "sequences" : "CUDA graphs, sequences",
                      oos_trial_cost(s, "model_len_auto"));
}

/* The next share that fits, upwards for the cache, downwards for what lies outside. */
static bool try_budget(oos_search *s)
{
    const oos_setup *setup = vllm_setup(s->plan);
    oos_trial t = oos_trial_start(s);
    oos_budget b = {s, &t, NULL};
    oos_share const line = oos_budget_of(&b);
    uint64_t share;
    if (!oos_share_find(&line, 0, &share) || share == 0) return true;
    share = oos_share_nearest(&line, share);
    bool const higher = share > line.own;
    if (line.at(&b, share) != OOS_SIDE_FITS) return true;
    char number[NUMBER_BYTES];
    say(&t, "--gpu-memory-utilization", fraction(number, share),
        setup->eager ? "context length" : "CUDA graphs, context length",
        oos_trial_cost(s, higher ? "utilization_up" : "utilization_down"));
    return oos_trial_offer(s, &t);
}

/* Giving the KV bytes by hand skips graph profiling and keeps every graph. */
static bool try_kv_bytes(oos_search *s)
{
    if (!may(s, "kv_bytes")) return true;
    const oos_setup *setup = vllm_setup(s->plan);
    if (setup->kv_cache_memory_bytes.known || !oos_trial_has_flag(s, "--kv-cache-memory-bytes")) return true;
    oos_trial t = oos_trial_start(s);
    /* leave an eighth of what would fit: nothing else guards this number */
    uint64_t best = oos_trial_best(s, &t, oos_set_kv_mib, 64, setup->device.total_bytes / OOS_MIB, 64);
    best = best - best / 8;
    best = best >= 4096 ? best / 1024 * 1024 : best / 64 * 64;
    if (best == 0) return true;
    oos_set_kv_mib(&t.serve, best);
    char number[NUMBER_BYTES];
    return try_switch(s, &t, "--kv-cache-memory-bytes", memory(number, best), "all CUDA graphs, sequences",
                      oos_trial_cost(s, "kv_bytes"));
}

static bool try_fp8_kv(oos_search *s)
{
    if (!may(s, "kv_fp8")) return true;
    if (!oos_may_shrink_cache(s)) return true;
    oos_trial t = oos_trial_start(s);
    t.serve.kv_cache_dtype = "fp8";
    return try_switch(s, &t, "--kv-cache-dtype", "fp8", "context length, sequences",
                      oos_trial_cost(s, "kv_fp8"));
}

static bool try_no_sleep(oos_search *s)
{
    if (!may(s, "sleep_off")) return true;
    if (!vllm_setup(s->plan)->sleep_pool) return true;
    oos_trial t = oos_trial_start(s);
    t.serve.enable_sleep_mode = (oos_flag){true, false};
    t.serve.enable_cumem_allocator = (oos_flag){true, false};
    return try_switch(s, &t, "--no-enable-sleep-mode", NULL, "everything else",
                      oos_trial_cost(s, "sleep_off"));
}

static bool try_text_only(oos_search *s)
{
    if (!may(s, "text_only")) return true;
    if (!oos_may_drop_media(s)) return true;
    oos_trial t = oos_trial_start(s);
    t.serve.language_model_only = (oos_flag){true, true};
    return try_switch(s, &t, "--language-model-only", NULL, "text", oos_trial_cost(s, "text_only"));
}

static bool try_eager(oos_search *s)
{
    if (!may(s, "eager")) return true;
    if (!oos_may_go_eager(s)) return true;
    oos_trial t = oos_trial_start(s);
    t.serve.enforce_eager = (oos_flag){true, true};
    return try_switch(s, &t, "--enforce-eager", NULL, "context length, sequences",
                      oos_trial_cost(s, "eager"));
}

static bool try_backend(oos_search *s)
{
    const oos_setup *setup = vllm_setup(s->plan);
    if (!vllm_of(s->plan)->outside.runtime_cause || setup->serve->attention_backend) return true;
    bool const by_flag = oos_trial_has_flag(s, "--attention-backend");
    oos_trial t = oos_trial_start(s);
    t.serve.attention_backend = "TRITON_ATTN";
    if (by_flag)
        return try_switch(s, &t, "--attention-backend", "TRITON_ATTN", "sequences, context length",
                          oos_trial_cost(s, "backend"));
    return try_switch(s, &t, "VLLM_ATTENTION_BACKEND=TRITON_ATTN", NULL, "sequences, context length",
                      oos_trial_cost(s, "backend"));
}

/* Quantised while it is loaded; before 8.0 no kernel reads FP8 weights. */
static bool try_fp8_weights(oos_search *s)
{
    if (!may(s, "weights_fp8")) return true;
    const oos_setup *setup = vllm_setup(s->plan);
    if (setup->model->quant_method || setup->serve->quantization || setup->device.capability < 80)
        return true;
    oos_trial t = oos_trial_start(s);
    t.serve.quantization = "fp8";
    return try_switch(s, &t, "--quantization", "fp8", "context length, sequences",
                      oos_trial_cost(s, "weights_fp8"));
}

/* Single levers, beside the answers. */
bool oos_levers_try(oos_search *s)
{
    switch (s->plan->answer.phase) {
    case OOS_PHASE_KV_SIZING:
        return try_budget(s) && try_length(s) && try_auto_length(s) && try_fp8_kv(s) && try_seqs(s) &&
               try_tokens(s) && try_text_only(s) && try_fp8_weights(s) && try_eager(s);
    case OOS_PHASE_CUDAGRAPH_PROFILE: return try_kv_bytes(s) && try_capture(s) && try_seqs(s) && try_eager(s);
    case OOS_PHASE_ARGUMENTS:
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
    return try_backend(s) && try_budget(s) && try_no_sleep(s) && try_capture(s) && try_tokens(s) &&
           try_seqs(s) && try_text_only(s) && try_fp8_weights(s) && try_eager(s);
}

/* What would help: levers of SGLang, one at a time, each planned again; only what then starts, or likely does, is offered. */
#include "engines/sglang/sglang.h"

#include <inttypes.h>

enum { FIXES_MAX = 8, WORDS_MAX = 4 };

typedef struct search {
    oos_arena *arena, *scratch;
    const oos_start *start;
    const sglang_rules *rules;
    const oos_plan *plan;
    oos_fix *fixes;
    size_t count;
} search;

/* A changed command and the words that change it. */
typedef struct trial {
    sglang_request request;
    const char *words[WORDS_MAX];
    size_t word_count;
    const char *keeps, *gives_up;
} trial;

/* With room for a request of 2,048 tokens: a pool of a few tokens is nobody's answer, and within the plan's error the engine refuses it. */
static bool starts(search *s, const trial *t, oos_plan *ret_plan)
{
    return sglang_plan(s->scratch, s->start, s->rules, &t->request, ret_plan, NULL) == OOMSIGHT_OK &&
           oos_answer_starts(ret_plan->verdict, ret_plan->probability) &&
           ret_plan->kv.tokens >= oos_min(2048, ret_plan->setup->max_model_len);
}

static bool offer(search *s, const trial *t)
{
    oos_plan plan;
    if (s->count == FIXES_MAX || !starts(s, t, &plan)) return true;
    const char **words = OOS_NEW_ARRAY(s->arena, const char *, WORDS_MAX);
    if (!words) return false;
    memcpy(words, t->words, t->word_count * sizeof *words);
    s->fixes[s->count++] = (oos_fix){.change = words,
                                     .change_count = t->word_count,
                                     .verdict = plan.verdict,
                                     .probability = plan.probability,
                                     .phase = plan.phase,
                                     .kv_tokens = plan.kv.tokens,
                                     .keeps = t->keeps,
                                     .gives_up = t->gives_up};
    oos_arena_reset(s->scratch);
    return true;
}

static trial begin(const search *s, const char *keeps, const char *gives_up)
{
    trial t = {.keeps = keeps, .gives_up = gives_up};
    sglang_request_read(s->scratch, s->start->serve, &t.request);
    return t;
}

static bool say(search *s, trial *t, const char *flag, const char *format, double value)
{
    const char *word = oos_arena_format(s->arena, format, value);
    if (!word) return false;
    t->words[t->word_count++] = flag;
    t->words[t->word_count++] = word;
    return true;
}

/* The fraction by hundredths, from the largest down: the first that certainly starts, or else likely does. */
static bool try_fraction(search *s, double most, double least, const char *gives_up)
{
    for (int sure = 1; sure >= 0; sure--)
        for (int i = 0; most - i * 0.01 >= least; i++) {
            trial t = begin(s, "context, batch and graphs", gives_up);
            oos_plan plan;
            t.request.fraction = (oos_f64){true, most - i * 0.01};
            bool const found = starts(s, &t, &plan) && (!sure || plan.verdict == OOMSIGHT_VERDICT_FITS);
            oos_arena_reset(s->scratch);
            if (found)
                return say(s, &t, "--mem-fraction-static", "%.2f", t.request.fraction.value) && offer(s, &t);
        }
    return true;
}

static bool offer_fraction(search *s, double fraction, const char *gives_up)
{
    trial t = begin(s, "context, batch and graphs", gives_up);
    t.request.fraction = (oos_f64){true, fraction};
    return say(s, &t, "--mem-fraction-static", "%.2f", fraction) && offer(s, &t);
}

/* The fraction by hundredths, upwards: the first at which the pool holds a whole request. Where none does, the smallest step that
 * starts, if asked for, and the largest that certainly does. */
static bool try_room(search *s, double least, double most, bool smallest)
{
    double first = 0, best = 0;
    uint64_t tokens = 0;
    bool whole = false;
    for (int percent = (int)(least * 100) + 1; !whole && percent <= (int)(most * 100 + 0.5); percent++) {
        trial t = begin(s, NULL, NULL);
        oos_plan plan;
        t.request.fraction = (oos_f64){true, percent / 100.0};
        bool const found = starts(s, &t, &plan);
        bool const sure = found && plan.verdict == OOMSIGHT_VERDICT_FITS;
        whole = sure && plan.kv.tokens >= plan.setup->max_model_len;
        if (found && first == 0) {
            first = percent / 100.0;
            tokens = plan.kv.tokens;
        }
        if (sure) best = percent / 100.0;
        oos_arena_reset(s->scratch);
    }
    const char *short_pool = oos_arena_format(s->arena, "requests of more than %" PRIu64 " tokens", tokens);
    if (!short_pool) return false;
    size_t const before = s->count;
    if (!whole && smallest && first > 0 && first < best && !offer_fraction(s, first, short_pool))
        return false;
    bool const second = s->count > before;
    if (best > 0 && !offer_fraction(s, best, "room for activations and graphs")) return false;
    if (second && s->count > before + 1) {
        s->fixes[s->count - 1].name = "longest_context";
        s->fixes[s->count - 1].certain_length = s->fixes[s->count - 1].kv_tokens;
    }
    return true;
}

static bool try_chunk(search *s)
{
    for (uint64_t chunk = s->plan->setup->max_num_batched_tokens / 2; chunk >= 512; chunk /= 2) {
        trial t = begin(s, "context and graphs", "speed of long prompts");
        oos_plan plan;
        /* the engine would take what is saved for its pool: the fraction stays */
        t.request.fraction = (oos_f64){true, s->plan->setup->gpu_memory_utilization};
        t.request.chunk = oos_u64_of(chunk);
        bool const found = starts(s, &t, &plan);
        oos_arena_reset(s->scratch);
        if (!found) continue;
        return say(s, &t, "--chunked-prefill-size", "%.0f", (double)chunk) &&
               say(s, &t, "--mem-fraction-static", "%.3f", s->plan->setup->gpu_memory_utilization) &&
               offer(s, &t);
    }
    return true;
}

static bool try_graphs(search *s)
{
    if (s->plan->setup->eager) return true;
    trial t = begin(s, "context and chunk", "graphs of batches above 8: decoding them is slower");
    t.request.fraction = (oos_f64){true, s->plan->setup->gpu_memory_utilization};
    t.request.decode_batch = oos_u64_of(8);
    return say(s, &t, "--cuda-graph-max-bs-decode", "%.0f", 8) &&
           say(s, &t, "--mem-fraction-static", "%.3f", s->plan->setup->gpu_memory_utilization) &&
           offer(s, &t);
}

/* The table of requests is as wide as the longest context. */
static bool try_context(search *s)
{
    for (uint64_t length = s->plan->setup->max_model_len / 2; length >= 2048; length /= 2) {
        trial t = begin(s, "batch, chunk and graphs", "requests longer than that");
        oos_plan plan;
        t.request.context = oos_u64_of(length);
        bool const found = starts(s, &t, &plan);
        oos_arena_reset(s->scratch);
        if (found) return say(s, &t, "--context-length", "%.0f", (double)length) && offer(s, &t);
    }
    return true;
}

static bool try_kv(search *s)
{
    if (s->plan->setup->kv_dtype == OOS_KV_FP8) return true;
    trial t = begin(s, "context, batch and graphs", "some precision of the cache");
    t.request.kv_dtype = "fp8_e4m3";
    t.words[t.word_count++] = "--kv-cache-dtype";
    t.words[t.word_count++] = "fp8_e4m3";
    return offer(s, &t);
}

static bool try_weights(search *s)
{
    unsigned const capability = s->plan->setup->device.capability;
    if (s->plan->setup->model->quant_method || s->plan->setup->serve->quantization || capability < 89)
        return true;
    trial t = begin(s, "context, batch and graphs", "some precision of the weights");
    t.request.quantization = "fp8";
    t.words[t.word_count++] = "--quantization";
    t.words[t.word_count++] = "fp8";
    return offer(s, &t);
}

/* As many devices as there are, where their number was said. */
static bool try_parallel(search *s)
{
    const oos_device_facts *device = &s->plan->setup->device;
    uint64_t const most = device->count_given ? device->count : 8;
    for (uint64_t tp = s->plan->setup->tp * 2; tp <= most; tp *= 2) {
        trial t = begin(s, "context, batch and precision", "GPUs that could do something else");
        oos_plan plan;
        if (s->plan->setup->model->heads % tp) break;
        t.request.tp = tp;
        bool const found = starts(s, &t, &plan);
        oos_arena_reset(s->scratch);
        if (found) return say(s, &t, "--tp-size", "%.0f", (double)tp) && offer(s, &t);
    }
    return true;
}

/* A context length above the model's own is refused: the model's own is not. */
static bool try_own_context(search *s)
{
    uint64_t const own = s->start->model->stated_length;
    trial t = begin(s, "everything else", "requests longer than the model's own context");
    if (!t.request.context.known || t.request.context.value <= own) return true;
    t.request.context = oos_u64_of(own);
    return say(s, &t, "--context-length", "%.0f", (double)own) && offer(s, &t);
}

static bool levers(search *s)
{
    oos_phase const phase = s->plan->phase;
    static const char *const less_room = "room for activations and graphs", *const fewer =
                                                                                "tokens of the cache";
    double const now = s->plan->setup->gpu_memory_utilization;
    if (s->plan->refusal.sentence) return s->start->serve->refusal.sentence ? true : try_own_context(s);
    if (s->plan->verdict == OOMSIGHT_VERDICT_FITS) /* it starts, and turns requests of its own length away */
        return try_room(s, now, 0.95, false) && try_kv(s) && try_parallel(s);
    if (phase == OOS_PHASE_KV_SIZING) /* more than nine tenths only where less does not do */
        return try_room(s, now, 0.9, true) && (s->count || try_fraction(s, 0.97, now, less_room)) &&
               try_parallel(s) && try_weights(s);
    if (phase < OOS_PHASE_KV_SIZING) return try_parallel(s) && try_weights(s);
    return try_fraction(s, (double)(int)(now * 100) / 100, 0.3, fewer) && try_chunk(s) && try_graphs(s) &&
           try_context(s) && try_kv(s) && try_parallel(s);
}

oomsight_status sglang_solve(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                             const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                             oomsight_error *reterr)
{
    (void)gpus;
    bool const short_pool = plan->kv.tokens < plan->setup->max_model_len;
    bool const asked =
        (plan->verdict != OOMSIGHT_VERDICT_FITS || short_pool) && plan->verdict != OOMSIGHT_VERDICT_UNKNOWN;
    if (!asked) return OOMSIGHT_OK;
    sglang_rules *rules = OOS_NEW(arena, sglang_rules);
    search s = {.arena = arena, .scratch = scratch, .start = start, .rules = rules, .plan = plan};
    s.fixes = OOS_NEW_ARRAY(arena, oos_fix, FIXES_MAX);
    if (!rules || !s.fixes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    bool beyond;
    OOS_TRY(oos_rules_fill(facts->rules, start->version, rules, &beyond, reterr));
    rules->shared.facts = oos_rule_book_facts(facts->rules);
    if (!levers(&s)) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    plan->fixes = s.fixes;
    plan->fix_count = s.count;
    if (s.count) {
        s.fixes[0].name = "least_change";
        plan->answer_count = s.count > 1 && s.fixes[1].name ? 2 : 1;
    }
    return OOMSIGHT_OK;
}

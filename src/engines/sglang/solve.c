/* What would help, by the rungs of the ladder: a rung is gone down to only where nothing above it starts. Within one the fewest flags
 * are tried first. Everything that is offered was planned again. */
#include "engines/sglang/sglang.h"
#include "plan/elsewhere.h"

#include <inttypes.h>
#include <stdio.h>

/* In the order in which they are tried, the cheapest first. */
typedef enum lever {
    LEVER_CHUNK,
    LEVER_GRAPHS,
    LEVER_REQUESTS,
    LEVER_CONTEXT,
    LEVER_KV,
    LEVER_PARALLEL,
    LEVER_WEIGHTS,
    LEVER_EAGER,
    LEVERS
} lever;

enum { FIXES_MAX = 4, WORDS_MAX = 2 * (LEVERS + 1), VALUES_MAX = 12 };
enum { USUAL_TOKENS = 8192, LEAST_TOKENS = 2048 }; /* of a request: one that a server takes, and the least */
enum { REQUESTS_FEW = 32, REQUESTS_LEAST = 4 };    /* at once: before and after what is asked for goes */
enum { LOWEST = 30, HIGHEST = 97 };                /* hundredths of --mem-fraction-static */

/* How far down the ladder the search may go; of the last rung what is named. */
typedef struct stage {
    oos_rung rung;
    uint64_t tokens; /* of a request that the pool has to hold, where the whole one may go */
    bool parallel, weights, eager;
} stage;

/* A lever stands at one of its values, 0 is as it is; the fraction in hundredths, 0 is as it is. */
typedef struct point {
    uint8_t at[LEVERS];
    unsigned fraction;
} point;

typedef struct search {
    oos_arena *arena, *scratch;
    const oos_start *start;
    const oos_engine_facts *facts;
    const oos_gpus *gpus;
    const sglang_rules *rules;
    const oos_plan *plan;
    sglang_request request; /* as it is */
    uint64_t values[LEVERS][VALUES_MAX];
    size_t counts[LEVERS]; /* 1: there is nothing to move */
    bool fraction_moves;
    uint64_t need;    /* tokens that the pool has to hold */
    oos_u64 mended;   /* the context length in place of one that the engine refuses: in every answer */
    bool certain;     /* only what starts at both ends of the ranges */
    bool unknown_too; /* a GPU that holds the weights, where nobody can tell whether it starts */
    oos_fix *fixes;
    size_t count;
} search;

static const struct {
    const char *id, *flag;
} levers[LEVERS] = {{"chunk", "--chunked-prefill-size"},   {"capture", "--cuda-graph-max-bs-decode"},
                    {"running", "--max-running-requests"}, {"context", "--context-length"},
                    {"kv_fp8", "--kv-cache-dtype"},        {"parallel", "--tp-size"},
                    {"weights_fp8", "--quantization"},     {"eager", "--disable-cuda-graph"}};

static bool is_given(const search *s, const char *flag)
{
    return oos_serve_given(s->start->serve, flag) != NULL;
}

static const oos_lever_record *record_of(const search *s, const char *id)
{
    return s->facts->ladder ? oos_ladder_find(s->facts->ladder, id) : NULL;
}

/* OOS_RUNG_COUNT: not in this release. */
static oos_rung rung_of(const search *s, const char *id)
{
    const oos_lever_record *record = record_of(s, id);
    if (!record || !oos_lever_here(record, s->start->version)) return OOS_RUNG_COUNT;
    return record->flag && is_given(s, record->flag) ? record->given : record->rung;
}

static const char *cost_of(const search *s, const char *id)
{
    const oos_lever_record *record = record_of(s, id);
    return record ? record->cost.en : "nothing";
}

/* ---- a point, planned ---- */

static uint64_t value_at(const search *s, const point *p, lever which)
{
    return s->values[which][p->at[which]];
}

static sglang_request request_at(const search *s, const point *p)
{
    sglang_request r = s->request;
    if (p->at[LEVER_CHUNK]) r.chunk = oos_u64_of(value_at(s, p, LEVER_CHUNK)), r.chunk_negative = false;
    if (p->at[LEVER_GRAPHS]) r.decode_batch = oos_u64_of(value_at(s, p, LEVER_GRAPHS));
    if (p->at[LEVER_REQUESTS]) r.requests = oos_u64_of(value_at(s, p, LEVER_REQUESTS));
    if (p->at[LEVER_CONTEXT]) r.context = oos_u64_of(value_at(s, p, LEVER_CONTEXT));
    if (p->at[LEVER_KV]) r.kv_dtype = "fp8_e4m3";
    if (p->at[LEVER_PARALLEL]) r.tp = value_at(s, p, LEVER_PARALLEL);
    if (p->at[LEVER_WEIGHTS]) r.quantization = "fp8";
    if (p->at[LEVER_EAGER]) r.decode_off = r.prefill_off = true;
    if (p->fraction) r.fraction = (oos_f64){true, p->fraction / 100.0};
    return r;
}

/* The pool is too small; good; what comes after the pool does not fit; nothing that a fraction mends. */
typedef enum fit { FIT_SHORT, FIT_GOOD, FIT_OVER, FIT_NOT } fit;

static fit fit_of(const search *s, const oos_plan *plan)
{
    bool const good = s->certain ? plan->verdict == OOMSIGHT_VERDICT_FITS
                                 : oos_answer_starts(plan->verdict, plan->probability);
    if (plan->refusal.sentence || plan->verdict == OOMSIGHT_VERDICT_UNKNOWN) return FIT_NOT;
    if (good) return plan->kv.tokens >= oos_min(s->need, plan->setup->max_model_len) ? FIT_GOOD : FIT_SHORT;
    for (int tight = 0; tight < 2; tight++)
        for (size_t i = 0; i < plan->phase_count; i++) {
            const oos_moment *moment = &plan->phases[i];
            if (tight ? !moment->tight : moment->ok) continue;
            return moment->phase < OOS_PHASE_KV_SIZING    ? FIT_NOT
                   : moment->phase == OOS_PHASE_KV_SIZING ? FIT_SHORT
                                                          : FIT_OVER;
        }
    return FIT_NOT;
}

static fit try_point(search *s, const point *p, oos_plan *ret_plan)
{
    sglang_request const request = request_at(s, p);
    oos_arena_reset(s->scratch);
    if (sglang_plan(s->scratch, s->start, s->rules, &request, ret_plan, NULL) != OOMSIGHT_OK) return FIT_NOT;
    return fit_of(s, ret_plan);
}

/* ---- the fraction ---- */

/* Some fraction that does: the pool grows with it, and so does what is then missing beside the pool. */
static bool find_fraction(search *s, point *p, oos_plan *ret_plan)
{
    unsigned low = LOWEST, high = HIGHEST;
    while (low <= high) {
        p->fraction = low + (high - low) / 2;
        fit const at = try_point(s, p, ret_plan);
        if (at == FIT_GOOD) return true;
        if (at == FIT_NOT) return false;
        if (at == FIT_SHORT)
            low = p->fraction + 1;
        else
            high = p->fraction - 1;
    }
    return false;
}

/* From one that does towards `to`, as far as it does. */
static void move_fraction(search *s, point *p, unsigned to)
{
    oos_plan plan;
    point trial = *p;
    unsigned good = p->fraction, bad = to;
    trial.fraction = to;
    if (good == to) return;
    if (try_point(s, &trial, &plan) == FIT_GOOD) {
        p->fraction = to;
        return;
    }
    while (good > bad ? good - bad > 1 : bad - good > 1) {
        trial.fraction = good > bad ? bad + (good - bad) / 2 : good + (bad - good) / 2;
        if (try_point(s, &trial, &plan) == FIT_GOOD)
            good = trial.fraction;
        else
            bad = trial.fraction;
    }
    p->fraction = good;
}

static unsigned own_fraction(const search *s)
{
    double const share = s->plan->setup->gpu_memory_utilization;
    return share * 100 < LOWEST ? LOWEST : share * 100 > HIGHEST ? HIGHEST : (unsigned)(share * 100);
}

/* With the fraction as it is, or with another one if it may move. One that the command gives moves least; else it is the one next to
 * the engine's own that has nearly the largest pool. */
static bool place(search *s, point *p)
{
    oos_plan plan;
    uint64_t const need = s->need;
    p->fraction = 0;
    if (try_point(s, p, &plan) == FIT_GOOD) return true;
    if (!s->fraction_moves || !find_fraction(s, p, &plan)) return false;
    if (!s->request.fraction.known) {
        move_fraction(s, p, HIGHEST);
        if (try_point(s, p, &plan) != FIT_GOOD) return false;
        uint64_t const reached = oos_min(plan.kv.tokens, plan.setup->max_model_len);
        s->need = oos_max(need, reached >= plan.setup->max_model_len ? reached : reached - reached / 64);
    }
    move_fraction(s, p, own_fraction(s));
    s->need = need;
    return true;
}

/* ---- levers ---- */

/* Halves of `now` down to `least`. */
static void halve(search *s, lever which, uint64_t now, uint64_t least)
{
    for (uint64_t value = now / 2; value >= least && s->counts[which] < VALUES_MAX; value /= 2)
        s->values[which][s->counts[which]++] = value;
}

static void one_value(search *s, lever which, uint64_t value)
{
    s->values[which][s->counts[which]++] = value;
}

/* As many as there are, where their number is known. */
static void parallel_values(search *s)
{
    const oos_device_facts *device = &s->start->device;
    uint64_t const heads = s->start->model->heads;
    uint64_t const most = device->count_given && s->request.dp == 1 ? device->count : 0;
    for (uint64_t tp = s->request.tp * 2; tp <= most && s->counts[LEVER_PARALLEL] < VALUES_MAX; tp *= 2)
        if (heads % tp == 0) one_value(s, LEVER_PARALLEL, tp);
}

static bool may_move(const search *s, const stage *at, lever which)
{
    oos_rung const rung = rung_of(s, levers[which].id);
    if (which == LEVER_PARALLEL) return at->parallel;
    if (which == LEVER_WEIGHTS) return at->weights;
    if (which == LEVER_EAGER) return at->eager;
    return rung <= at->rung;
}

static void levers_of(search *s, const stage *at)
{
    const oos_setup *setup = s->plan->setup;
    const sglang_request *r = &s->request;
    bool const context_moves = may_move(s, at, LEVER_CONTEXT);
    for (size_t i = 0; i < LEVERS; i++) s->counts[i] = 1;
    if (may_move(s, at, LEVER_CHUNK) && !r->chunk_negative)
        halve(s, LEVER_CHUNK, setup->max_num_batched_tokens, oos_max(512, r->page));
    if (may_move(s, at, LEVER_GRAPHS) && !setup->eager && !r->decode_sizes.known)
        halve(s, LEVER_GRAPHS, setup->capture_top, 8);
    if (may_move(s, at, LEVER_REQUESTS)) /* their number follows from the pool, if there is one */
        halve(s, LEVER_REQUESTS, setup->max_num_seqs ? setup->max_num_seqs : s->rules->requests_least,
              at->rung < OOS_RUNG_ASKED ? REQUESTS_FEW : REQUESTS_LEAST);
    if (context_moves) halve(s, LEVER_CONTEXT, setup->max_model_len, at->tokens);
    if (may_move(s, at, LEVER_KV) && setup->kv_dtype != OOS_KV_FP8 && setup->device.capability >= 80)
        one_value(s, LEVER_KV, 1);
    if (may_move(s, at, LEVER_PARALLEL)) parallel_values(s);
    if (may_move(s, at, LEVER_WEIGHTS) && !setup->model->quant_method && !r->quantization &&
        setup->device.capability >= 89)
        one_value(s, LEVER_WEIGHTS, 1);
    if (may_move(s, at, LEVER_EAGER) && !setup->eager) one_value(s, LEVER_EAGER, 1);
    s->fraction_moves =
        rung_of(s, "fraction_up") <= at->rung || (at->rung > OOS_RUNG_NOTHING && !r->fraction.known);
    /* requests that are longer than the pool are turned away: what the command asks for stays whole */
    s->need = context_moves && at->rung > OOS_RUNG_NOTHING ? oos_min(at->tokens, setup->max_model_len)
                                                           : setup->max_model_len;
}

static unsigned movable(const search *s)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < LEVERS; i++)
        if (s->counts[i] > 1) mask |= 1U << i;
    return mask;
}

static point strongest(const search *s, unsigned mask)
{
    point p = {0};
    for (unsigned i = 0; i < LEVERS; i++)
        if (mask & 1U << i) p.at[i] = (uint8_t)(s->counts[i] - 1);
    return p;
}

/* Each is let go as far as it still starts, the dearest first. */
static void relax(search *s, point *p)
{
    static const lever dearest[] = {LEVER_EAGER,  LEVER_WEIGHTS, LEVER_KV,       LEVER_CONTEXT,
                                    LEVER_GRAPHS, LEVER_CHUNK,   LEVER_REQUESTS, LEVER_PARALLEL};
    for (size_t i = 0; i < sizeof dearest / sizeof *dearest; i++)
        for (unsigned at = 0; at < p->at[dearest[i]]; at++) {
            point trial = *p;
            trial.at[dearest[i]] = (uint8_t)at;
            if (!place(s, &trial)) continue;
            *p = trial;
            break;
        }
}

static unsigned bits(unsigned mask)
{
    unsigned count = 0;
    for (; mask; mask &= mask - 1) count++;
    return count;
}

static unsigned flags_of(const point *p)
{
    unsigned count = p->fraction != 0;
    for (size_t i = 0; i < LEVERS; i++) count += p->at[i] != 0;
    return count;
}

/* The fewest levers, of those with one and with two; or all of them, let go. In the order of the list. */
static bool least_change(search *s, point *ret_point)
{
    unsigned const all = movable(s);
    point p = strongest(s, all);
    if (!place(s, &p)) return false;
    bool found = false;
    for (unsigned count = 0; count <= 2 && !found; count++)
        for (unsigned mask = 0; mask <= all; mask++) {
            if ((mask & all) != mask || bits(mask) != count) continue;
            point trial = strongest(s, mask);
            if (!place(s, &trial)) continue;
            relax(s, &trial);
            if (!found || flags_of(&trial) < flags_of(&p)) p = trial;
            found = true;
        }
    if (!found) relax(s, &p);
    *ret_point = p;
    return flags_of(&p) > 0 || s->mended.known;
}

/* The largest pool that the levers give; then each is let go as far as the pool stays, nearly. */
static bool most_tokens(search *s, point *ret_point)
{
    oos_plan plan;
    point p = strongest(s, movable(s) & ~(1U << LEVER_CONTEXT));
    bool const moves = s->fraction_moves;
    if (!place(s, &p)) return false;
    if (moves && !p.fraction && !find_fraction(s, &p, &plan)) return false;
    if (p.fraction) move_fraction(s, &p, HIGHEST);
    if (try_point(s, &p, &plan) != FIT_GOOD) return false;
    uint64_t const enough = oos_min(plan.kv.tokens - plan.kv.tokens / 32, plan.setup->max_model_len);
    if (enough > s->need) s->need = enough;
    relax(s, &p);
    *ret_point = p;
    return true;
}

/* ---- what it is called ---- */

typedef struct saying {
    search *s;
    const char **words;
    size_t count;
    const char *gives_up; /* NULL: nothing yet */
    oos_rung rung;
    bool failed;
} saying;

static void word(saying *w, const char *text)
{
    if (!text || w->count == WORDS_MAX)
        w->failed = true;
    else
        w->words[w->count++] = text;
}

static void price(saying *w, oos_rung rung, const char *text)
{
    w->gives_up = w->gives_up && text ? oos_arena_format(w->s->arena, "%s; %s", w->gives_up, text) : text;
    w->failed |= !w->gives_up;
    if (rung > w->rung && rung < OOS_RUNG_COUNT) w->rung = rung;
}

static const char *number(saying *w, uint64_t value)
{
    return oos_arena_format(w->s->arena, "%" PRIu64, value);
}

static void say_lever(saying *w, const point *p, lever which)
{
    search *s = w->s;
    uint64_t const value = value_at(s, p, which);
    oos_rung const rung = rung_of(s, levers[which].id);
    const char *cost = cost_of(s, levers[which].id);
    const char *flag = levers[which].flag;
    if (which == LEVER_GRAPHS && !oos_flags_find(&s->facts->flags, oos_view_of(flag), s->start->version).here)
        flag = "--cuda-graph-max-bs";
    word(w, flag);
    switch (which) {
    case LEVER_KV: word(w, "fp8_e4m3"); break;
    case LEVER_WEIGHTS: word(w, "fp8"); break;
    case LEVER_EAGER: break;
    case LEVER_GRAPHS:
        word(w, number(w, value));
        cost = oos_arena_format(s->arena, "CUDA graphs for more than %" PRIu64 " concurrent requests", value);
        break;
    case LEVER_REQUESTS:
        word(w, number(w, value));
        cost = oos_arena_format(s->arena, "more than %" PRIu64 " concurrent requests", value);
        break;
    case LEVER_CONTEXT:
        word(w, number(w, value));
        cost = oos_arena_format(s->arena, "requests longer than %" PRIu64 " tokens", value);
        break;
    case LEVER_CHUNK:
    case LEVER_PARALLEL:
    case LEVERS: word(w, number(w, value)); break;
    }
    price(w, rung, cost);
}

static void say_fraction(saying *w, const point *p)
{
    bool const higher = p->fraction / 100.0 > w->s->plan->setup->gpu_memory_utilization;
    const char *id = higher ? "fraction_up" : "fraction_down";
    word(w, "--mem-fraction-static");
    word(w, oos_arena_format(w->s->arena, "%.2f", p->fraction / 100.0));
    price(w, rung_of(w->s, id), cost_of(w->s, id));
}

static bool offer(search *s, const point *p, const char *name)
{
    oos_plan plan;
    if (s->count == FIXES_MAX || try_point(s, p, &plan) != FIT_GOOD) return true;
    uint64_t const length = plan.setup->max_model_len, held = oos_min(plan.kv.tokens, length);
    saying w = {.s = s, .words = OOS_NEW_ARRAY(s->arena, const char *, WORDS_MAX)};
    oos_fix fix = {.verdict = plan.verdict,
                   .probability = plan.probability,
                   .phase = plan.phase,
                   .kv_tokens = plan.kv.tokens,
                   .name = name,
                   .requests = plan.kv.tokens / oos_max(1, oos_min(length, USUAL_TOKENS)),
                   .request_tokens = oos_min(length, USUAL_TOKENS),
                   .likely_length = held,
                   .certain_length = plan.verdict == OOMSIGHT_VERDICT_FITS ? held : 0};
    fix.requests = oos_min(fix.requests, plan.setup->max_num_seqs);
    if (!w.words) return false;
    if (s->mended.known && !p->at[LEVER_CONTEXT]) {
        word(&w, "--context-length");
        word(&w, number(&w, s->mended.value));
        price(&w, OOS_RUNG_NOTHING,
              oos_arena_format(s->arena, "requests longer than %" PRIu64 " tokens", s->mended.value));
    }
    for (size_t i = 0; i < LEVERS; i++)
        if (p->at[i]) say_lever(&w, p, (lever)i);
    if (p->fraction) say_fraction(&w, p);
    if (held < length) {
        oos_rung const rung = rung_of(s, "context");
        price(&w, rung, oos_arena_format(s->arena, "requests of more than %" PRIu64 " tokens", held));
    }
    fix.change = w.words;
    fix.change_count = w.count;
    fix.rung = w.rung;
    fix.gives_up = w.gives_up ? w.gives_up : "nothing";
    fix.keeps = held < length ? "batch and graphs" : "context length";
    if (!w.failed) s->fixes[s->count++] = fix;
    return !w.failed;
}

/* ---- down the ladder ---- */

#define LAST(...)                                                                                            \
    {                                                                                                        \
        .rung = OOS_RUNG_ASKED, .tokens = LEAST_TOKENS, .parallel = true, __VA_ARGS__                        \
    }
static const stage stages[] = {
    {.rung = OOS_RUNG_NOTHING, .tokens = USUAL_TOKENS},
    {.rung = OOS_RUNG_UNASKED, .tokens = USUAL_TOKENS},
    {.rung = OOS_RUNG_LITTLE, .tokens = USUAL_TOKENS},
    {.rung = OOS_RUNG_ASKED, .tokens = USUAL_TOKENS},
    {.rung = OOS_RUNG_UNASKED, .tokens = LEAST_TOKENS},
    {.rung = OOS_RUNG_LITTLE, .tokens = LEAST_TOKENS},
    {.rung = OOS_RUNG_ASKED, .tokens = LEAST_TOKENS},
    LAST(.eager = false),
    LAST(.weights = true),
    LAST(.eager = true),
    LAST(.weights = true, .eager = true),
};
enum { STAGES = sizeof stages / sizeof *stages };

/* Between these it is not worth while to be certain: each group is tried again where a start is only likely. */
static const size_t groups[] = {3, 4, 7, STAGES};

/* A second answer gives more than the first: a longer request, or more of them. It may cost a little, and use GPUs that are idle. */
static bool offer_more(search *s, stage at)
{
    const oos_fix first = s->fixes[s->count - 1];
    uint64_t const length = s->plan->setup->max_model_len;
    bool const longer = first.kv_tokens < length;
    point p;
    if (at.rung < OOS_RUNG_LITTLE) at.rung = OOS_RUNG_LITTLE;
    at.parallel = true;
    levers_of(s, &at);
    if (!most_tokens(s, &p)) return true;
    size_t const before = s->count;
    if (!offer(s, &p, longer ? "longest_context" : "most_requests")) return false;
    if (s->count == before) return true;
    const oos_fix *more = &s->fixes[before];
    bool const worth = longer ? oos_min(more->kv_tokens, length) > first.kv_tokens + first.kv_tokens / 20
                              : more->requests > first.requests + first.requests / 10;
    if (!worth) s->count = before;
    return true;
}

static bool answers_find(search *s, bool *ret_eager)
{
    for (size_t group = 0; group < sizeof groups / sizeof *groups; group++)
        for (int round = 0; round < 2; round++) {
            s->certain = round == 0;
            for (size_t i = group ? groups[group - 1] : 0; i < groups[group]; i++) {
                point p;
                levers_of(s, &stages[i]);
                if (!least_change(s, &p)) continue;
                *ret_eager = p.at[LEVER_EAGER] != 0;
                return offer(s, &p, "least_change") && (s->count == 0 || offer_more(s, stages[i]));
            }
            if (oos_plan_likely(s->plan)) break; /* no more certain than what there is */
        }
    return true;
}

/* It starts, and turns requests of its own length away: what costs little and holds them. */
static bool room_find(search *s)
{
    static const stage tries[] = {{.rung = OOS_RUNG_NOTHING}, {.rung = OOS_RUNG_LITTLE, .parallel = true}};
    point p;
    s->certain = true;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        levers_of(s, &tries[i]);
        s->counts[LEVER_CONTEXT] = 1;
        s->need = s->plan->setup->max_model_len;
        if (least_change(s, &p)) return offer(s, &p, "least_change");
    }
    return true;
}

/* ---- another release ---- */

enum { NEWER_MAX = 8, OLDER_MAX = 3 };

static bool has_flags(const search *s, oos_version version)
{
    const oos_serve *serve = s->start->serve;
    for (size_t i = 0; i < serve->flag_count; i++)
        if (!oos_flags_find(&s->facts->flags, oos_view_of(serve->flags[i].name), version).here) return false;
    return true;
}

/* With the defaults of this release and with its own: a flag is the smaller change where one of them is the reason. */
static bool starts_with(search *s, oos_version version, oos_plan *ret_plan)
{
    const oos_setup *setup = s->plan->setup;
    sglang_rules rules;
    oos_start start = *s->start;
    bool beyond;
    start.version = version;
    if (oos_rules_fill(s->facts->rules, version, &rules, &beyond, NULL) != OOMSIGHT_OK) return false;
    rules.shared.version = version;
    rules.shared.facts = oos_rule_book_facts(s->facts->rules);
    oos_torch_support const support = oos_torch_supports(
        oos_torch_find(&s->facts->torch, rules.shared.torch_minor), start.device.capability);
    if (support == OOS_TORCH_NONE || support == OOS_TORCH_OTHER || !has_flags(s, version)) return false;
    for (int own = 0; own < 2; own++) {
        sglang_request request = s->request;
        if (!own) {
            request.fraction = (oos_f64){true, setup->gpu_memory_utilization};
            if (!request.chunk_negative) request.chunk = oos_u64_of(setup->max_num_batched_tokens);
            if (!setup->eager) request.decode_batch = oos_u64_of(setup->capture_top);
        }
        oos_arena_reset(s->scratch);
        if (sglang_plan(s->scratch, &start, &rules, &request, ret_plan, NULL) != OOMSIGHT_OK ||
            ret_plan->verdict != OOMSIGHT_VERDICT_FITS ||
            ret_plan->kv.tokens < ret_plan->setup->max_model_len)
            return false;
    }
    return true;
}

static bool release_find(search *s)
{
    const oos_version *list;
    size_t const count = oos_rule_book_versions(s->facts->rules, &list);
    oos_version found = 0;
    oos_plan plan;
    size_t at = 0;
    char text[32];
    if (rung_of(s, "release") != OOS_RUNG_NOTHING) return true;
    while (at < count && list[at] <= s->start->version) at++;
    for (size_t i = at; i < count && i < at + NEWER_MAX && !found; i++)
        if (starts_with(s, list[i], &plan)) found = list[i];
    for (size_t i = at; i > 0 && i + OLDER_MAX > at && !found; i--)
        if (list[i - 1] < s->start->version && starts_with(s, list[i - 1], &plan)) found = list[i - 1];
    if (!found) return true;
    oos_version_print(found, text, sizeof text);
    oos_fix *fix = &s->fixes[s->count++];
    *fix = (oos_fix){.verdict = plan.verdict,
                     .probability = plan.probability,
                     .phase = plan.phase,
                     .kv_tokens = plan.kv.tokens,
                     .keeps = "everything else",
                     .gives_up = cost_of(s, "release"),
                     .release = oos_arena_copy(s->arena, oos_view_of(text)),
                     .name = "least_change",
                     .likely_length = s->plan->setup->max_model_len,
                     .certain_length = s->plan->setup->max_model_len};
    return fix->release;
}

/* ---- other GPUs ---- */

static void need_say(oos_need_gpu *need, const char *flag, const char *value)
{
    if (!value || need->flag_count + 2 > OOS_NEED_FLAGS_MAX) return;
    need->flags[need->flag_count++] = flag;
    need->flags[need->flag_count++] = value;
}

/* With tensors over all of them, and with another fraction where the command's own is the reason. */
static bool starts_on(void *of, const oos_gpu *gpu, uint64_t count, bool fewer, oos_need_gpu *ret_need)
{
    search there = *(search *)of, *s = &there;
    oos_start start = *s->start;
    oos_plan plan;
    point p = {0};
    (void)fewer;
    if (start.model->heads % count || s->request.dp > 1) return false;
    start.device = oos_device_of_gpu(gpu, count, start.device.host_bytes);
    s->start = &start;
    s->request.tp = count;
    s->need = USUAL_TOKENS;
    s->certain = false;
    s->fraction_moves = true;
    fit const as_is = try_point(s, &p, &plan);
    bool const unknown = s->unknown_too && plan.verdict == OOMSIGHT_VERDICT_UNKNOWN;
    if (!unknown && as_is != FIT_GOOD && !place(s, &p)) return false;
    if (!unknown && try_point(s, &p, &plan) != FIT_GOOD) return false;
    *ret_need = (oos_need_gpu){.gpu = oos_elsewhere_name(s->gpus, gpu),
                               .count = count,
                               .memory_bytes = gpu->nvml_total_bytes,
                               .kv_tokens = unknown ? 0 : plan.kv.tokens,
                               .verdict = plan.verdict,
                               .probability = plan.probability};
    if (count != ((search *)of)->request.tp)
        need_say(ret_need, "--tp-size", oos_arena_format(s->arena, "%" PRIu64, count));
    if (s->mended.known)
        need_say(ret_need, "--context-length", oos_arena_format(s->arena, "%" PRIu64, s->mended.value));
    if (p.fraction)
        need_say(ret_need, "--mem-fraction-static", oos_arena_format(s->arena, "%.2f", p.fraction / 100.0));
    return true;
}

static oos_elsewhere elsewhere(search *s)
{
    return (oos_elsewhere){
        .gpus = s->gpus, .plan = s->plan, .ranks = s->request.tp, .starts = starts_on, .of = s};
}

static bool needs_find(search *s, const oos_needs **ret_needs)
{
    oos_needs *needs = OOS_NEW(s->arena, oos_needs);
    oos_elsewhere const e = elsewhere(s);
    if (!needs) return false;
    if (!s->gpus || s->request.dp > 1) return true; /* replicas are not divided anew */
    s->unknown_too = true;
    oos_elsewhere_needs(&e, needs);
    needs->no_device = !needs->gpu_count && s->start->model->heads % 16 == 0;
    if (needs->gpu_count || needs->no_device) *ret_needs = needs;
    return true;
}

/* ---- the search ---- */

/* False when memory runs out. */
static bool find(search *s, oos_plan *plan)
{
    bool eager = false;
    if (plan->verdict == OOMSIGHT_VERDICT_FITS && !s->mended.known) return room_find(s);
    if (!s->mended.known && !oos_plan_likely(plan) && !release_find(s)) return false;
    if (!answers_find(s, &eager)) return false;
    if (oos_plan_likely(plan)) return true;
    return (s->count && !eager) || needs_find(s, &plan->needs);
}

/* A context length above the model's own is refused, and the model's own is not: then what that takes. */
static bool mend(search *s, oos_plan *plan)
{
    uint64_t const own = s->start->model->stated_length;
    oos_plan *mended = OOS_NEW(s->arena, oos_plan);
    if (!mended) return false;
    if (s->start->serve->refusal.sentence || !s->request.context.known || s->request.context.value <= own)
        return true;
    s->mended = s->request.context = oos_u64_of(own);
    if (sglang_plan(s->arena, s->start, s->rules, &s->request, mended, NULL) != OOMSIGHT_OK ||
        mended->refusal.sentence || mended->verdict == OOMSIGHT_VERDICT_UNKNOWN)
        return true;
    s->plan = mended;
    if (!find(s, mended)) return false;
    plan->needs = mended->needs;
    return true;
}

static oomsight_status begin(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                             const oos_engine_facts *facts, const oos_gpus *gpus, const oos_plan *plan,
                             search *ret_search, oomsight_error *reterr)
{
    sglang_rules *rules = OOS_NEW(arena, sglang_rules);
    bool beyond;
    *ret_search = (search){.arena = arena,
                           .scratch = scratch,
                           .start = start,
                           .facts = facts,
                           .gpus = gpus,
                           .rules = rules,
                           .plan = plan,
                           .fixes = OOS_NEW_ARRAY(arena, oos_fix, FIXES_MAX)};
    if (!rules || !ret_search->fixes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    OOS_TRY(oos_rules_fill(facts->rules, start->version, rules, &beyond, reterr));
    rules->shared.version = start->version;
    rules->shared.facts = oos_rule_book_facts(facts->rules);
    sglang_request_read(arena, start->serve, &ret_search->request);
    return OOMSIGHT_OK;
}

oomsight_status sglang_solve(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                             const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                             oomsight_error *reterr)
{
    search s;
    bool const asked =
        plan->verdict == OOMSIGHT_VERDICT_FITS ? plan->kv.tokens < plan->setup->max_model_len : true;
    if (!asked || plan->verdict == OOMSIGHT_VERDICT_UNKNOWN) return OOMSIGHT_OK;
    OOS_TRY(begin(arena, scratch, start, facts, gpus, plan, &s, reterr));
    bool const enough_memory = plan->refusal.sentence ? mend(&s, plan) : find(&s, plan);
    if (!enough_memory) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    plan->fixes = s.fixes;
    plan->fix_count = plan->answer_count = s.count;
    return OOMSIGHT_OK;
}

oomsight_status sglang_choose(oos_arena *arena, oos_arena *scratch, const oos_start *start,
                              const oos_engine_facts *facts, const oos_gpus *gpus, oos_plan *plan,
                              oomsight_error *reterr)
{
    search s;
    OOS_TRY(begin(arena, scratch, start, facts, gpus, plan, &s, reterr));
    oos_elsewhere const e = elsewhere(&s);
    bool const fixed = is_given(&s, "--tp-size");
    if (oos_elsewhere_choices(arena, &e, fixed, &plan->choices, &plan->choice_count)) return OOMSIGHT_OK;
    return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the devices");
}

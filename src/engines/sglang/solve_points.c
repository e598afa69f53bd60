/* Levers, the points among them, and the share that each point takes. */
#include "engines/sglang/sglang.h"

const sglang_lever_name sglang_levers[LEVERS] = {
    {"chunk", "--chunked-prefill-size"},   {"capture", "--cuda-graph-max-bs-decode"},
    {"running", "--max-running-requests"}, {"context", "--context-length"},
    {"kv_fp8", "--kv-cache-dtype"},        {"parallel", "--tp-size"},
    {"weights_fp8", "--quantization"},     {"eager", "--disable-cuda-graph"}};

bool sglang_is_given(const sglang_search *s, const char *flag)
{
    return oos_serve_given(s->start->serve, flag) != NULL;
}

static const oos_lever_record *record_of(const sglang_search *s, const char *id)
{
    return s->facts->ladder ? oos_ladder_find(s->facts->ladder, id) : NULL;
}

oos_rung sglang_rung_of(const sglang_search *s, const char *id)
{
    const oos_lever_record *record = record_of(s, id);
    if (!record || !oos_lever_here(record, s->start->version)) return OOS_RUNG_COUNT;
    return record->flag && sglang_is_given(s, record->flag) ? record->given : record->rung;
}

const char *sglang_cost_of(const sglang_search *s, const char *id)
{
    const oos_lever_record *record = record_of(s, id);
    return record ? record->cost.en : "none";
}

/* ---- a point, planned ---- */

uint64_t sglang_value_at(const sglang_search *s, const sglang_point *p, sglang_lever which)
{
    return p->at[which] && p->exact[which] ? p->exact[which] : s->values[which][p->at[which]];
}

static sglang_request request_at(const sglang_search *s, const sglang_point *p)
{
    sglang_request r = s->request;
    if (p->at[LEVER_CHUNK])
        r.chunk = oos_u64_of(sglang_value_at(s, p, LEVER_CHUNK)), r.chunk_negative = false;
    if (p->at[LEVER_GRAPHS]) r.decode_batch = oos_u64_of(sglang_value_at(s, p, LEVER_GRAPHS));
    if (p->at[LEVER_REQUESTS]) r.requests = oos_u64_of(sglang_value_at(s, p, LEVER_REQUESTS));
    if (p->at[LEVER_CONTEXT]) r.context = oos_u64_of(sglang_value_at(s, p, LEVER_CONTEXT));
    if (p->at[LEVER_KV]) r.kv_dtype = "fp8_e4m3";
    if (p->at[LEVER_PARALLEL]) r.tp = sglang_value_at(s, p, LEVER_PARALLEL);
    if (p->at[LEVER_WEIGHTS]) r.quantization = "fp8";
    if (p->at[LEVER_EAGER]) r.decode_off = r.prefill_off = true;
    if (p->fraction) r.fraction = (oos_f64){true, p->fraction / 100.0};
    return r;
}

static sglang_fit fit_of(const sglang_search *s, const oos_plan *plan)
{
    bool const good = s->certain ? plan->answer.verdict == OOMSIGHT_VERDICT_FITS
                                 : oos_answer_starts(plan->answer.verdict, plan->answer.probability);
    if (plan->refusal.sentence || plan->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN) return FIT_NOT;
    if (good)
        return plan->kv.tokens >= oos_min(s->need, sglang_of(plan)->context_length) ? FIT_GOOD : FIT_SHORT;
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

sglang_fit sglang_try(sglang_search *s, const sglang_point *p, oos_plan *ret_plan)
{
    sglang_request const request = request_at(s, p);
    oos_arena_reset(s->scratch);
    if (sglang_plan(s->scratch, s->start, s->rules, &request, ret_plan, NULL) != OOMSIGHT_OK) return FIT_NOT;
    return fit_of(s, ret_plan);
}

/* ---- the fraction ---- */

/* Some fraction that does: the pool grows with it, and so does what is then missing beside the pool. */
static bool find_fraction(sglang_search *s, sglang_point *p, oos_plan *ret_plan)
{
    unsigned low = LOWEST, high = HIGHEST;
    while (low <= high) {
        p->fraction = low + (high - low) / 2;
        sglang_fit const at = sglang_try(s, p, ret_plan);
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
static void move_fraction(sglang_search *s, sglang_point *p, unsigned to)
{
    oos_plan plan;
    sglang_point trial = *p;
    unsigned good = p->fraction, bad = to;
    trial.fraction = to;
    if (good == to) return;
    if (sglang_try(s, &trial, &plan) == FIT_GOOD) {
        p->fraction = to;
        return;
    }
    while (good > bad ? good - bad > 1 : bad - good > 1) {
        trial.fraction = good > bad ? bad + (good - bad) / 2 : good + (bad - good) / 2;
        if (sglang_try(s, &trial, &plan) == FIT_GOOD)
            good = trial.fraction;
        else
            bad = trial.fraction;
    }
    p->fraction = good;
}

static unsigned own_fraction(const sglang_search *s)
{
    double const share = sglang_of(s->plan)->static_fraction;
    return share * 100 < LOWEST ? LOWEST : share * 100 > HIGHEST ? HIGHEST : (unsigned)(share * 100);
}

bool sglang_place(sglang_search *s, sglang_point *p)
{
    oos_plan plan;
    uint64_t const need = s->need;
    p->fraction = 0;
    if (sglang_try(s, p, &plan) == FIT_GOOD) return true;
    if (!s->fraction_moves || !find_fraction(s, p, &plan)) return false;
    if (!s->request.fraction.known) {
        move_fraction(s, p, HIGHEST);
        if (sglang_try(s, p, &plan) != FIT_GOOD) return false;
        uint64_t const reached = oos_min(plan.kv.tokens, sglang_of(&plan)->context_length);
        s->need =
            oos_max(need, reached >= sglang_of(&plan)->context_length ? reached : reached - reached / 64);
    }
    move_fraction(s, p, own_fraction(s));
    s->need = need;
    return true;
}

/* ---- levers ---- */

/* Halves of `now` down to `least`. */
static void halve(sglang_search *s, sglang_lever which, uint64_t now, uint64_t least)
{
    s->values[which][0] = now;
    for (uint64_t value = now / 2; value >= least && s->counts[which] < VALUES_MAX; value /= 2)
        s->values[which][s->counts[which]++] = value;
}

static void one_value(sglang_search *s, sglang_lever which, uint64_t value)
{
    s->values[which][s->counts[which]++] = value;
}

/* As many as there are, where their number is known. */
static void parallel_values(sglang_search *s)
{
    const oos_device_facts *device = &s->start->device;
    uint64_t const heads = s->start->model->heads;
    uint64_t const most = device->count_given && s->request.dp == 1 ? device->count : 0;
    for (uint64_t tp = s->request.tp * 2; tp <= most && s->counts[LEVER_PARALLEL] < VALUES_MAX; tp *= 2)
        if (heads % tp == 0) one_value(s, LEVER_PARALLEL, tp);
}

static bool may_move(const sglang_search *s, const sglang_stage *at, sglang_lever which)
{
    oos_rung const rung = sglang_rung_of(s, sglang_levers[which].id);
    if (which == LEVER_PARALLEL) return at->parallel;
    if (which == LEVER_WEIGHTS) return at->weights;
    if (which == LEVER_EAGER) return at->eager;
    return rung <= at->rung;
}

void sglang_levers_of(sglang_search *s, const sglang_stage *at)
{
    const sglang_start *setup = sglang_of(s->plan);
    const sglang_request *r = &s->request;
    bool const context_moves = may_move(s, at, LEVER_CONTEXT);
    for (size_t i = 0; i < LEVERS; i++) s->counts[i] = 1;
    if (may_move(s, at, LEVER_CHUNK) && !r->chunk_negative)
        halve(s, LEVER_CHUNK, setup->chunk_tokens, oos_max(512, r->page));
    if (may_move(s, at, LEVER_GRAPHS) && !setup->eager && !r->decode_sizes.known)
        halve(s, LEVER_GRAPHS, setup->capture_top, 8);
    if (may_move(s, at, LEVER_REQUESTS)) /* their number follows from the pool, if there is one */
        halve(s, LEVER_REQUESTS,
              setup->max_running_requests ? setup->max_running_requests : s->rules->requests_least,
              at->rung < OOS_RUNG_ASKED ? REQUESTS_FEW : REQUESTS_LEAST);
    if (context_moves) halve(s, LEVER_CONTEXT, setup->context_length, at->tokens);
    if (may_move(s, at, LEVER_KV) && !setup->kv_fp8 && setup->device.capability >= 80)
        one_value(s, LEVER_KV, 1);
    if (may_move(s, at, LEVER_PARALLEL)) parallel_values(s);
    if (may_move(s, at, LEVER_WEIGHTS) && !setup->model->quant_method && !r->quantization &&
        setup->device.capability >= 89)
        one_value(s, LEVER_WEIGHTS, 1);
    if (may_move(s, at, LEVER_EAGER) && !setup->eager) one_value(s, LEVER_EAGER, 1);
    s->fraction_moves =
        sglang_rung_of(s, "fraction_up") <= at->rung || (at->rung > OOS_RUNG_NOTHING && !r->fraction.known);
    /* requests that are longer than the pool are turned away: what the command asks for stays whole */
    s->need = context_moves && at->rung > OOS_RUNG_NOTHING ? oos_min(at->tokens, setup->context_length)
                                                           : setup->context_length;
}

static unsigned movable(const sglang_search *s)
{
    unsigned mask = 0;
    for (unsigned i = 0; i < LEVERS; i++)
        if (s->counts[i] > 1) mask |= 1U << i;
    return mask;
}

static sglang_point strongest(const sglang_search *s, unsigned mask)
{
    sglang_point p = {0};
    for (unsigned i = 0; i < LEVERS; i++)
        if (mask & 1U << i) p.at[i] = (uint8_t)(s->counts[i] - 1);
    return p;
}

static const sglang_lever dearest[] = {LEVER_EAGER,  LEVER_WEIGHTS, LEVER_KV,       LEVER_CONTEXT,
                                       LEVER_GRAPHS, LEVER_CHUNK,   LEVER_REQUESTS, LEVER_PARALLEL};

/* Each is let go as far as it still starts, the dearest first. */
static void relax(sglang_search *s, sglang_point *p)
{
    for (size_t i = 0; i < sizeof dearest / sizeof *dearest; i++)
        for (unsigned at = 0; at < p->at[dearest[i]]; at++) {
            sglang_point trial = *p;
            trial.at[dearest[i]] = (uint8_t)at;
            if (!sglang_place(s, &trial) || (trial.fraction && !p->fraction)) continue; /* no flag more */
            *p = trial;
            break;
        }
}

/* Between the value of the list that does and the next weaker one, which does not: the weakest number that does. */
static void refine_one(sglang_search *s, sglang_point *p, sglang_lever which)
{
    const oos_lever_record *record = record_of(s, sglang_levers[which].id);
    if (!p->at[which] || !record || !record->step) return;
    bool const pages = which == LEVER_CHUNK; /* whole ones */
    uint64_t const step = pages ? oos_round_up(record->step, oos_max(1, s->request.page)) : record->step;
    uint64_t good = sglang_value_at(s, p, which) / step,
             bad = oos_cdiv(s->values[which][p->at[which] - 1], step);
    while (bad > good + 1) {
        uint64_t const middle = good + (bad - good) / 2;
        sglang_point trial = *p;
        oos_plan plan;
        trial.exact[which] = middle * step;
        if (sglang_try(s, &trial, &plan) == FIT_GOOD)
            *p = trial, good = middle;
        else
            bad = middle;
    }
}

static void refine(sglang_search *s, sglang_point *p)
{
    for (size_t i = 0; i < sizeof dearest / sizeof *dearest; i++) refine_one(s, p, dearest[i]);
}

static unsigned bits(unsigned mask)
{
    unsigned count = 0;
    for (; mask; mask &= mask - 1) count++;
    return count;
}

static unsigned flags_of(const sglang_point *p)
{
    unsigned count = p->fraction != 0;
    for (size_t i = 0; i < LEVERS; i++) count += p->at[i] != 0;
    return count;
}

bool sglang_least_change(sglang_search *s, sglang_point *ret_point)
{
    unsigned const all = movable(s);
    sglang_point p = strongest(s, all);
    if (!sglang_place(s, &p)) return false;
    bool found = false;
    for (unsigned count = 0; count <= 2 && !found; count++)
        for (unsigned mask = 0; mask <= all; mask++) {
            if ((mask & all) != mask || bits(mask) != count) continue;
            sglang_point trial = strongest(s, mask);
            if (!sglang_place(s, &trial)) continue;
            relax(s, &trial);
            if (!found || flags_of(&trial) < flags_of(&p)) p = trial;
            found = true;
        }
    if (!found) relax(s, &p);
    refine(s, &p);
    *ret_point = p;
    return flags_of(&p) > 0 || s->mended.known;
}

bool sglang_most_tokens(sglang_search *s, sglang_point *ret_point)
{
    oos_plan plan;
    sglang_point p = strongest(s, movable(s) & ~(1U << LEVER_CONTEXT));
    bool const moves = s->fraction_moves;
    if (!sglang_place(s, &p)) return false;
    if (moves && !p.fraction && !find_fraction(s, &p, &plan)) return false;
    if (p.fraction) move_fraction(s, &p, HIGHEST);
    if (sglang_try(s, &p, &plan) != FIT_GOOD) return false;
    uint64_t const enough = oos_min(plan.kv.tokens - plan.kv.tokens / 32, sglang_of(&plan)->context_length);
    if (enough > s->need) s->need = enough;
    relax(s, &p);
    refine(s, &p);
    *ret_point = p;
    return true;
}

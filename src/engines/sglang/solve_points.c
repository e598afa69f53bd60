/* Levers, how far each may move at a stage, and a point among them, planned. */
#include "engines/sglang/sglang.h"

const oos_lever_words oos_sglang_levers[LEVERS] = {
    {"chunk", "--chunked-prefill-size", .price = {0}},
    {"capture", "--cuda-graph-max-bs-decode", NULL, "no CUDA graphs for more than", "concurrent requests",
     .price = {0}},
    {"running", "--max-running-requests", NULL, "at most", "concurrent requests", .price = {0}},
    {"lora_slots", "--max-loras-per-batch", NULL, "at most", "adapters in one batch", .price = {0}},
    {"context", "--context-length", NULL, "no requests longer than", "tokens", .price = {0}},
    {"kv_fp8", "--kv-cache-dtype", "fp8_e4m3", .price = {0}},
    {"parallel", "--tp-size", .price = {0}},
    {"weights_fp8", "--quantization", "fp8", .price = {0}},
    {"eager", "--disable-cuda-graph", "", .price = {0}}};

void oos_sglang_tell(const oos_plan *plan, oos_trial *ret_trial)
{
    ret_trial->verdict = plan->answer.verdict;
    ret_trial->probability = plan->answer.probability;
    ret_trial->phase = plan->answer.phase;
    ret_trial->kv_tokens = plan->kv.tokens;
    ret_trial->length = sglang_of(plan)->context_length;
    if (plan->doubtful.untried && plan->answer.verdict == OOMSIGHT_VERDICT_FITS) /* as when that is planned */
        oos_doubts_lower(plan, &ret_trial->verdict, &ret_trial->probability);
}

/* ---- a point, planned ---- */

static sglang_request request_at(const sglang_search *s, const oos_levers *levers, const oos_point *p)
{
    sglang_request r = s->request;
    if (p->at[LEVER_CHUNK])
        r.chunk = oos_u64_of(oos_point_value(levers, p, LEVER_CHUNK)), r.chunk_negative = false;
    if (p->at[LEVER_GRAPHS]) r.decode_batch = oos_u64_of(oos_point_value(levers, p, LEVER_GRAPHS));
    if (p->at[LEVER_REQUESTS]) r.requests = oos_u64_of(oos_point_value(levers, p, LEVER_REQUESTS));
    if (p->at[LEVER_ADAPTERS]) r.adapters = oos_point_value(levers, p, LEVER_ADAPTERS);
    if (p->at[LEVER_CONTEXT]) r.context = oos_u64_of(oos_point_value(levers, p, LEVER_CONTEXT));
    if (p->at[LEVER_KV]) r.kv_dtype = "fp8_e4m3";
    if (p->at[LEVER_PARALLEL]) r.tp = oos_point_value(levers, p, LEVER_PARALLEL);
    if (p->at[LEVER_WEIGHTS]) r.quantization = "fp8";
    if (p->at[LEVER_EAGER]) r.decode_off = r.prefill_off = true;
    if (p->share) r.fraction = (oos_f64){true, sglang_share_said(p->share)};
    return r;
}

static oos_side fit_of(const oos_search *s, uint64_t need, const oos_plan *plan)
{
    bool const good = s->tight_too ? oos_answer_starts(plan->answer.verdict, plan->answer.probability)
                                   : plan->answer.verdict == OOMSIGHT_VERDICT_FITS;
    if (plan->refusal.sentence || plan->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN) return OOS_SIDE_NEITHER;
    if (good &&
        (oos_plan_too_full(plan, plan->doubtful.share) || oos_plan_too_full(s->plan, plan->doubtful.share)))
        return OOS_SIDE_LARGE;
    if (good)
        return plan->kv.tokens >= oos_min(need, sglang_of(plan)->context_length) ? OOS_SIDE_FITS
                                                                                 : OOS_SIDE_SMALL;
    for (int tight = 0; tight < 2; tight++)
        for (size_t i = 0; i < plan->phase_count; i++) {
            const oos_moment *moment = &plan->phases[i];
            if (tight ? !moment->tight : moment->ok) continue;
            return moment->phase < OOS_PHASE_KV_SIZING    ? OOS_SIDE_NEITHER
                   : moment->phase == OOS_PHASE_KV_SIZING ? OOS_SIDE_SMALL
                                                          : OOS_SIDE_LARGE;
        }
    return OOS_SIDE_NEITHER;
}

oos_side oos_sglang_try(sglang_search *s, const oos_levers *levers, const oos_point *p, oos_plan *ret_plan)
{
    sglang_request const request = request_at(s, levers, p);
    oos_arena_reset(s->base.scratch);
    if (oos_sglang_plan(s->base.scratch, s->start, s->rules, &request, ret_plan, NULL) != OOMSIGHT_OK)
        return OOS_SIDE_NEITHER;
    return fit_of(&s->base, levers->need, ret_plan);
}

oos_side oos_sglang_point_plan(oos_search *s, const oos_levers *levers, const oos_point *p,
                               oos_trial *ret_trial)
{
    oos_plan plan;
    oos_side const side = oos_sglang_try(s->of, levers, p, &plan);
    if (side == OOS_SIDE_FITS) oos_sglang_tell(&plan, ret_trial);
    return side;
}

void oos_sglang_share_bounds(const sglang_search *s, oos_levers *levers)
{
    uint64_t const own = (uint64_t)(sglang_of(s->base.plan)->static_fraction * 100) * 10;
    levers->lowest = 50;
    levers->highest = 970;
    if (s->base.plan->device.unified)
        levers->highest = oos_min(970, (uint64_t)(oos_plan_safe_share(s->base.plan) * 1000 + 0.5));
    levers->own = oos_min(oos_max(own, levers->lowest), levers->highest);
    levers->share_given = s->request.fraction.known;
}

/* Halves of `now` down to `least`. */
static void halve(oos_levers *levers, sglang_lever which, uint64_t now, uint64_t least)
{
    levers->values[which][0] = now;
    for (uint64_t value = now / 2; value >= least && levers->counts[which] < VALUES_MAX; value /= 2)
        levers->values[which][levers->counts[which]++] = value;
}

static void one_value(oos_levers *levers, sglang_lever which, uint64_t value)
{
    levers->values[which][levers->counts[which]++] = value;
}

/* As many as there are, where their number is known. */
static void parallel_values(const sglang_search *s, oos_levers *levers)
{
    const oos_device_facts *device = &s->start->device;
    uint64_t const heads = s->start->model->heads;
    uint64_t const most = device->count_given && s->request.dp == 1 ? device->count : 0;
    for (uint64_t tp = s->request.tp * 2; tp <= most && levers->counts[LEVER_PARALLEL] < VALUES_MAX; tp *= 2)
        if (heads % tp == 0) one_value(levers, LEVER_PARALLEL, tp);
}

static bool may_move(const sglang_search *s, const oos_stage *at, sglang_lever which)
{
    oos_rung const rung = oos_trial_rung(&s->base, oos_sglang_levers[which].id);
    if (which == LEVER_PARALLEL) return at->parallel;
    if (which == LEVER_WEIGHTS) return at->way != 0;
    if (which == LEVER_EAGER) return at->eager;
    return rung <= at->rung;
}

bool oos_sglang_levers_of(oos_search *search, const oos_stage *at, oos_levers *ret_levers)
{
    const sglang_search *s = search->of;
    const sglang_start *setup = sglang_of(search->plan);
    const sglang_request *r = &s->request;
    oos_levers *levers = ret_levers;
    bool const context_moves = may_move(s, at, LEVER_CONTEXT);
    *levers = (oos_levers){.stage = *at, .most = setup->context_length};
    for (size_t i = 0; i < LEVERS; i++) levers->counts[i] = 1;
    for (size_t i = 0; i <= LEVER_CONTEXT; i++)
        levers->steps[i] = oos_trial_step(search, oos_sglang_levers[i].id);
    levers->steps[LEVER_CHUNK] =
        oos_round_up(levers->steps[LEVER_CHUNK], oos_max(1, r->page)); /* whole pages */
    if (may_move(s, at, LEVER_CHUNK) && !r->chunk_negative)
        halve(levers, LEVER_CHUNK, setup->chunk_tokens, oos_max(512, r->page));
    if (may_move(s, at, LEVER_GRAPHS) && !setup->eager && !r->decode_sizes.known)
        halve(levers, LEVER_GRAPHS, setup->capture_top, 8);
    if (may_move(s, at, LEVER_REQUESTS)) /* their number follows from the pool, if there is one */
        halve(levers, LEVER_REQUESTS,
              setup->max_running_requests ? setup->max_running_requests : s->rules->requests_least,
              at->rung < OOS_RUNG_ASKED ? REQUESTS_FEW : REQUESTS_LEAST);
    if (may_move(s, at, LEVER_ADAPTERS) && r->adapters > 1) halve(levers, LEVER_ADAPTERS, r->adapters, 1);
    if (context_moves) halve(levers, LEVER_CONTEXT, setup->context_length, at->tokens);
    if (may_move(s, at, LEVER_KV) && !setup->kv_fp8 && setup->device.capability >= 80)
        one_value(levers, LEVER_KV, 1);
    if (may_move(s, at, LEVER_PARALLEL)) parallel_values(s, levers);
    if (may_move(s, at, LEVER_WEIGHTS) && !setup->model->quant_method && !r->quantization &&
        setup->device.capability >= 89)
        one_value(levers, LEVER_WEIGHTS, 1);
    if (may_move(s, at, LEVER_EAGER) && !setup->eager) one_value(levers, LEVER_EAGER, 1);
    oos_sglang_share_bounds(s, levers);
    levers->share_moves = oos_trial_rung(&s->base, "fraction_up") <= at->rung ||
                          (at->rung > OOS_RUNG_NOTHING && !r->fraction.known);
    /* requests that are longer than the pool are turned away: what the command asks for stays whole */
    levers->need = context_moves && at->rung > OOS_RUNG_NOTHING ? oos_min(at->tokens, setup->context_length)
                                                                : setup->context_length;
    return true;
}

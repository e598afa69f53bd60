/* The same command with another release, and on other GPUs. */
#include "engines/sglang/sglang.h"

#include <inttypes.h>
#include <string.h>

/* ---- another release ---- */

/* With the defaults of this release and with its own: a flag is the smaller change where one of them is the reason. */
bool oos_sglang_starts_with(oos_search *search, oos_version version, oos_trial *ret_trial)
{
    const sglang_search *s = search->of;
    oos_plan plan;
    const sglang_start *setup = sglang_of(s->base.plan);
    sglang_rules rules = {0};
    oos_start start = *s->start;
    bool beyond;
    start.version = version;
    start.beyond = 0; /* it is one of the book */
    if (oos_rules_fill(s->facts->rules, version, &rules, &beyond, NULL) != OOMSIGHT_OK) return false;
    rules.version = version;
    rules.facts = oos_rule_book_facts(s->facts->rules);
    rules.refusals = oos_rule_book_refusals(s->facts->rules);
    oos_torch_support const support =
        oos_torch_supports(oos_torch_find(&s->facts->torch, rules.torch_minor), start.device.capability);
    if (support == OOS_TORCH_NONE || support == OOS_TORCH_OTHER) return false;
    for (int own = 0; own < 2; own++) {
        sglang_request request = s->request;
        if (!own) {
            request.fraction = (oos_f64){true, setup->static_fraction};
            if (!request.chunk_negative) request.chunk = oos_u64_of(setup->chunk_tokens);
            if (!setup->eager) request.decode_batch = oos_u64_of(setup->capture_top);
        }
        oos_arena_reset(s->base.scratch);
        if (oos_sglang_plan(s->base.scratch, &start, &rules, &request, &plan, NULL) != OOMSIGHT_OK ||
            plan.answer.verdict != OOMSIGHT_VERDICT_FITS || plan.kv.tokens < sglang_of(&plan)->context_length)
            return false;
    }
    oos_sglang_tell(&plan, ret_trial);
    ret_trial->length = setup->context_length;
    return true;
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
    sglang_search there = *(sglang_search *)of, *s = &there;
    oos_start start = *s->start;
    oos_plan plan;
    oos_point p = {0};
    (void)fewer;
    if (start.model->heads % count || s->request.dp > 1) return false;
    start.device = oos_device_of_gpu(gpu, count, start.device.host_bytes);
    s->start = &start;
    s->request.tp = count;
    s->base.of = s;
    s->base.tight_too = true;
    oos_levers levers = {.need = OOS_USUAL_TOKENS};
    oos_trial t;
    oos_sglang_share_bounds(s, &levers);
    oos_side const as_is = oos_sglang_try(s, &levers, &p, &plan);
    bool const unknown = s->unknown_too && plan.answer.verdict == OOMSIGHT_VERDICT_UNKNOWN;
    if (!unknown && as_is != OOS_SIDE_FITS && !oos_point_place(&s->base, &levers, &p, true, &t)) return false;
    if (!unknown && oos_sglang_try(s, &levers, &p, &plan) != OOS_SIDE_FITS) return false;
    *ret_need = (oos_need_gpu){.gpu = oos_elsewhere_name(s->gpus, gpu),
                               .count = count,
                               .memory_bytes = gpu->nvml_total_bytes,
                               .kv_tokens = unknown ? 0 : plan.kv.tokens,
                               .verdict = plan.answer.verdict,
                               .probability = plan.answer.probability};
    if (count != ((sglang_search *)of)->request.tp)
        need_say(ret_need, "--tp-size", oos_arena_format(s->base.arena, "%" PRIu64, count));
    const oos_mended *mended = &s->base.mended;
    for (size_t i = 0; i + 1 < mended->word_count; i += 2) {
        const char *flag = mended->words[i], *value = mended->words[i + 1];
        if (strcmp(flag, "--tp-size") == 0 || (p.share && strcmp(flag, "--mem-fraction-static") == 0))
            continue;
        if (value)
            need_say(ret_need, flag, value);
        else if (ret_need->flag_count < OOS_NEED_FLAGS_MAX)
            ret_need->flags[ret_need->flag_count++] = flag; /* a switch */
    }
    if (p.share)
        need_say(ret_need, "--mem-fraction-static",
                 oos_arena_format(s->base.arena, "%.2f", sglang_share_said(p.share)));
    return true;
}

oos_elsewhere oos_sglang_elsewhere(sglang_search *s)
{
    return (oos_elsewhere){
        .gpus = s->gpus, .plan = s->base.plan, .ranks = s->request.tp, .starts = starts_on, .of = s};
}

bool oos_sglang_needs_find(sglang_search *s, const oos_needs **ret_needs)
{
    oos_needs *needs = OOS_NEW(s->base.arena, oos_needs);
    oos_elsewhere const e = oos_sglang_elsewhere(s);
    if (!needs) return false;
    if (!s->gpus || s->request.dp > 1) return true; /* replicas are not divided anew */
    s->unknown_too = true;
    oos_elsewhere_needs(&e, needs);
    needs->no_device =
        !needs->gpu_count && !s->base.plan->refusal.sentence && s->start->model->heads % 16 == 0;
    if (needs->gpu_count || needs->no_device) *ret_needs = needs;
    return true;
}

/* The same command with another release, and on other GPUs. */
#include "engines/sglang/sglang.h"

#include <inttypes.h>

/* ---- another release ---- */

enum { NEWER_MAX = 8, OLDER_MAX = 3 };

static bool has_flags(const sglang_search *s, oos_version version)
{
    const oos_serve *serve = s->start->serve;
    for (size_t i = 0; i < serve->flag_count; i++)
        if (!oos_flags_find(&s->facts->flags, oos_view_of(serve->flags[i].name), version).here) return false;
    return true;
}

/* With the defaults of this release and with its own: a flag is the smaller change where one of them is the reason. */
static bool starts_with(sglang_search *s, oos_version version, oos_plan *ret_plan)
{
    const sglang_start *setup = sglang_of(s->plan);
    sglang_rules rules = {0};
    oos_start start = *s->start;
    bool beyond;
    start.version = version;
    if (oos_rules_fill(s->facts->rules, version, &rules, &beyond, NULL) != OOMSIGHT_OK) return false;
    rules.version = version;
    rules.facts = oos_rule_book_facts(s->facts->rules);
    oos_torch_support const support =
        oos_torch_supports(oos_torch_find(&s->facts->torch, rules.torch_minor), start.device.capability);
    if (support == OOS_TORCH_NONE || support == OOS_TORCH_OTHER || !has_flags(s, version)) return false;
    for (int own = 0; own < 2; own++) {
        sglang_request request = s->request;
        if (!own) {
            request.fraction = (oos_f64){true, setup->static_fraction};
            if (!request.chunk_negative) request.chunk = oos_u64_of(setup->chunk_tokens);
            if (!setup->eager) request.decode_batch = oos_u64_of(setup->capture_top);
        }
        oos_arena_reset(s->scratch);
        if (sglang_plan(s->scratch, &start, &rules, &request, ret_plan, NULL) != OOMSIGHT_OK ||
            ret_plan->answer.verdict != OOMSIGHT_VERDICT_FITS ||
            ret_plan->kv.tokens < sglang_of(ret_plan)->context_length)
            return false;
    }
    return true;
}

bool sglang_release_find(sglang_search *s)
{
    const oos_version *list;
    size_t const count = oos_rule_book_versions(s->facts->rules, &list);
    oos_version found = 0;
    oos_plan plan;
    size_t at = 0;
    char text[32];
    if (sglang_rung_of(s, "release") != OOS_RUNG_NOTHING) return true;
    while (at < count && list[at] <= s->start->version) at++;
    for (size_t i = at; i < count && i < at + NEWER_MAX && !found; i++)
        if (starts_with(s, list[i], &plan)) found = list[i];
    for (size_t i = at; i > 0 && i + OLDER_MAX > at && !found; i--)
        if (list[i - 1] < s->start->version && starts_with(s, list[i - 1], &plan)) found = list[i - 1];
    if (!found) return true;
    oos_version_print(found, text, sizeof text);
    oos_fix *fix = &s->fixes[s->count++];
    *fix = (oos_fix){.verdict = plan.answer.verdict,
                     .probability = plan.answer.probability,
                     .phase = plan.answer.phase,
                     .kv_tokens = plan.kv.tokens,
                     .keeps = "everything else",
                     .gives_up = sglang_cost_of(s, "release"),
                     .release = oos_arena_copy(s->arena, oos_view_of(text)),
                     .name = "least_change",
                     .likely_length = sglang_of(s->plan)->context_length,
                     .certain_length = sglang_of(s->plan)->context_length};
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
    sglang_search there = *(sglang_search *)of, *s = &there;
    oos_start start = *s->start;
    oos_plan plan;
    sglang_point p = {0};
    (void)fewer;
    if (start.model->heads % count || s->request.dp > 1) return false;
    start.device = oos_device_of_gpu(gpu, count, start.device.host_bytes);
    s->start = &start;
    s->request.tp = count;
    s->need = USUAL_TOKENS;
    s->certain = false;
    s->fraction_moves = true;
    sglang_fit const as_is = sglang_try(s, &p, &plan);
    bool const unknown = s->unknown_too && plan.answer.verdict == OOMSIGHT_VERDICT_UNKNOWN;
    if (!unknown && as_is != FIT_GOOD && !sglang_place(s, &p)) return false;
    if (!unknown && sglang_try(s, &p, &plan) != FIT_GOOD) return false;
    *ret_need = (oos_need_gpu){.gpu = oos_elsewhere_name(s->gpus, gpu),
                               .count = count,
                               .memory_bytes = gpu->nvml_total_bytes,
                               .kv_tokens = unknown ? 0 : plan.kv.tokens,
                               .verdict = plan.answer.verdict,
                               .probability = plan.answer.probability};
    if (count != ((sglang_search *)of)->request.tp)
        need_say(ret_need, "--tp-size", oos_arena_format(s->arena, "%" PRIu64, count));
    if (s->mended.known)
        need_say(ret_need, "--context-length", oos_arena_format(s->arena, "%" PRIu64, s->mended.value));
    if (p.fraction)
        need_say(ret_need, "--mem-fraction-static", oos_arena_format(s->arena, "%.2f", p.fraction / 100.0));
    return true;
}

oos_elsewhere sglang_elsewhere(sglang_search *s)
{
    return (oos_elsewhere){
        .gpus = s->gpus, .plan = s->plan, .ranks = s->request.tp, .starts = starts_on, .of = s};
}

bool sglang_needs_find(sglang_search *s, const oos_needs **ret_needs)
{
    oos_needs *needs = OOS_NEW(s->arena, oos_needs);
    oos_elsewhere const e = sglang_elsewhere(s);
    if (!needs) return false;
    if (!s->gpus || s->request.dp > 1) return true; /* replicas are not divided anew */
    s->unknown_too = true;
    oos_elsewhere_needs(&e, needs);
    needs->no_device = !needs->gpu_count && !s->plan->refusal.sentence && s->start->model->heads % 16 == 0;
    if (needs->gpu_count || needs->no_device) *ret_needs = needs;
    return true;
}

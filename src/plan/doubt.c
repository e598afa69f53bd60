/* Doubts of a plan, the gravest first. */
#include "plan/plan.h"
#include "base/check.h"
#include "base/locale.h"

#include <math.h>
#include <stdlib.h>

enum { DOUBTS_MAX = 16 };

typedef struct list {
    oos_arena *arena;
    const char **texts;
    size_t count;
    bool failed;
} list;

static void add(list *l, const char *text)
{
    if (!text)
        l->failed = true;
    else if (l->count < DOUBTS_MAX)
        l->texts[l->count++] = text;
}

static const char *capability(list *l, unsigned capability)
{
    const char *text = oos_arena_format(l->arena, "%u.%u", capability / 10, capability % 10);
    l->failed = l->failed || !text;
    return text ? text : "";
}

/* ---- PyTorch ---- */

/* Boards with a processor of their own run other builds, which are not listed: those are made for them. */
static bool own_builds(const oos_device_facts *device)
{
    return device->unified;
}

static void by_torch(list *l, const oos_doubt_facts *facts, oos_plan *plan)
{
    const oos_torch_build *build = oos_torch_find(facts->torch, plan->doubtful.torch_minor);
    oos_torch_support const support = oos_torch_supports(build, plan->device.capability);
    if (support == OOS_TORCH_WHEEL || own_builds(&plan->device)) return;
    const char *has = capability(l, plan->device.capability);
    if (support == OOS_TORCH_UNKNOWN) {
        add(l, oos_arena_format(l->arena, "Which GPUs the PyTorch of %s %s has code for is not known here.",
                                facts->title, facts->release));
        return;
    }
    oos_assert(build != NULL); /* else nothing is known of it */
    plan->no_code = support == OOS_TORCH_NONE || plan->device.capability < build->sm[0];
    add(l, oos_arena_format(
               l->arena,
               plan->no_code
                   ? "PyTorch 2.%llu of %s %s (CUDA %s) has no code for compute capability %s: the engine "
                     "ends with "
                     "\"no kernel image is available\", unless PyTorch and the engine are built for it."
                   : "PyTorch 2.%llu of %s %s, as pip installs it (CUDA %s), has no code for compute "
                     "capability %s: "
                     "it takes the build for a newer CUDA.",
               (unsigned long long)build->minor, facts->title, facts->release, build->cuda, has));
}

/* ---- the release ---- */

static void by_release(list *l, const oos_doubt_facts *facts)
{
    if (facts->newer)
        add(l, facts->newer);
    else if (!facts->measured)
        add(l, oos_arena_format(l->arena, "No start of %s %s was measured; other releases were.",
                                facts->title, facts->release));
    for (size_t i = 0; i < facts->changed_count; i++) add(l, facts->changed[i]);
}

/* ---- the command ---- */

static void by_flags(list *l, const oos_serve *serve)
{
    for (size_t i = 0; serve && i < serve->flag_count; i++)
        if (serve->flags[i].effect == OOS_FLAG_UNMODELLED)
            add(l,
                oos_arena_format(l->arena, "%s can move memory but is not modelled", serve->flags[i].name));
}

static void by_variables(list *l, const oos_engine_env *env)
{
    for (size_t i = 0; env && i < env->variable_count; i++) {
        const oos_given_variable *v = &env->variables[i];
        if (v->effect != OOS_ENV_UNMODELLED) continue;
        add(l, v->why ? oos_arena_format(l->arena, "%s can move memory but is not modelled (%s)", v->name,
                                         v->why)
                      : oos_arena_format(l->arena, "%s: whether it moves memory is not known", v->name));
    }
}

/* Combinations of which no measured start was foreseen well. */
static const char *not_seen(const oos_plan *plan)
{
    unsigned const family = plan->device.capability / 10;
    for (size_t i = 0; i < plan->model->attention_count; i++) {
        const oos_attention *attention = &plan->model->attentions[i];
        if (attention->compress_ratio) return "Not seen before: the compressed cache of DeepSeek V4.";
        if (attention->mixer == OOS_MIXER_MLA && attention->indexer_dim && family != 9 && family != 10)
            return "Not seen before: sparse attention on this compute capability.";
    }
    return plan->doubtful.drafter ? "Not measured: speculative decoding with a separate draft model." : NULL;
}

static bool has_mxfp4(const oos_model *model)
{
    for (size_t i = 0; i < model->quant_count; i++)
        if (model->quants[i].kind == OOS_QUANT_MXFP4) return true;
    return false;
}

/* What few starts, or none that came up, stand for. */
static void by_support(list *l, const oos_plan *plan)
{
    if (plan->serving.pp > 1) add(l, "Few starts with pipeline stages were measured.");
    if (plan->model->encoder_only && !plan->kv.tokens)
        add(l, "Few starts of models without a KV cache were measured.");
    if (plan->serving.tp > 1 && plan->doubtful.torch_minor == 10 && has_mxfp4(plan->model))
        add(l, "Experts in MXFP4 on two GPUs ran out with PyTorch 2.10 where there was room, by "
               "fragmentation (one report).");
}

/* ---- the host ---- */

static uint64_t above(oos_amount amount)
{
    return amount.high;
}

/* What comes on top of the budget: what the host holds, the context, graphs and serving, and the engine's own host memory, up to 7 GiB on
 * GB10. A host with 112 of 119 GiB taken hung (GB10, 0.70); so a tenth is to stay free. */
double oos_plan_safe_share(const oos_plan *plan)
{
    double const total = (double)plan->device.total_bytes;
    double const taken = (double)above(oos_moment_others(plan)) + (double)above(plan->sizes.context) +
                         (double)plan->doubtful.beside_bytes + (double)(7 * OOS_GIB) + 0.1 * total;
    double const share = total > 0 ? floor((total - taken) / total * 20) / 20 : 0;
    return share > 0.05 ? share : 0.05;
}

/* Of a cache that has a size of its own: the same tenth, by what it may take in all. */
static uint64_t safe_cache(const oos_plan *plan)
{
    uint64_t most = 0;
    for (size_t i = 0; i < plan->phase_count; i++) most = oos_max(most, plan->phases[i].peak_high);
    uint64_t const over = oos_sub(most, plan->device.total_bytes / 10 * 9);
    return oos_sub(plan->doubtful.cache_bytes, over);
}

bool oos_plan_too_full(const oos_plan *plan, double share)
{
    if (!plan->device.unified) return false;
    if (plan->doubtful.cache_bytes) return safe_cache(plan) < plan->doubtful.cache_bytes;
    return share > oos_plan_safe_share(plan) + 1e-9;
}

static void by_unified(list *l, const oos_plan *plan)
{
    if (!oos_plan_too_full(plan, plan->doubtful.share)) return;
    if (plan->doubtful.cache_bytes)
        add(l, oos_arena_format(l->arena,
                                "The host shares this memory: when it runs out, the machine can hang. At "
                                "%s %lluM or less about a tenth of it stays free.",
                                plan->doubtful.cache_flag, (unsigned long long)(safe_cache(plan) / OOS_MIB)));
    else
        add(l, oos_arena_format(l->arena,
                                "The host shares this memory: when it runs out, the machine can hang. At "
                                "%s %.2f or less about a tenth of it stays free.",
                                plan->doubtful.share_flag, oos_plan_safe_share(plan)));
}

/* Offloaded weights lie in pinned memory, and PyTorch rounds each pinned tensor up to a power of two: one to two times
 * what is asked for, 1.9 times in a report (vllm#56410). */
static bool host_enough(const oos_plan *plan, double gib)
{
    double const host = (double)plan->device.host_bytes / 0x1p30;
    return !(gib > 0) || !plan->doubtful.offload_flag || (host > 0 && host >= 2 * gib);
}

static double offloaded(const oos_plan *plan, double asked)
{
    return asked * (double)(plan->serving.tp * plan->serving.pp);
}

bool oos_doubts_host(const oos_plan *plan)
{
    return !host_enough(plan, offloaded(plan, plan->doubtful.offload_gib));
}

static void by_host_memory(list *l, oos_plan *plan)
{
    const char *flag = plan->doubtful.offload_flag;
    double const gib = offloaded(plan, plan->doubtful.offload_gib),
                 host = (double)plan->device.host_bytes / 0x1p30;
    if (!oos_doubts_host(plan)) return;
    plan->host_short = host > 0 && 1.9 * gib > host;
    add(l, host > 0 ? oos_arena_format(l->arena,
                                       "%s takes %.0f to %.0f GiB of host memory, as pinned tensors are "
                                       "rounded up to powers of two; the host has %.0f GiB.",
                                       flag, gib, 2 * gib, host)
                    : oos_arena_format(l->arena,
                                       "%s takes %.0f to %.0f GiB of host memory: give "
                                       "--host-ram to check that it is there.",
                                       flag, gib, 2 * gib));
}

/* The offloaded part of the KV cache is as large as its flag says, over all ranks (config/cache.py). */
static void by_host_cache(list *l, const oos_serve *serve, oos_plan *plan)
{
    const char *name = plan->doubtful.offload_cache_flag;
    const oos_given_flag *flag = serve && name ? oos_serve_given(serve, name) : NULL;
    double const host = (double)plan->device.host_bytes / 0x1p30;
    char *end;
    double const gib = flag && flag->value ? oos_real_read(flag->value, &end) : 0;
    if (!(host > 0 && gib > host)) return;
    plan->host_short = true;
    add(l, oos_arena_format(l->arena, "%s takes %.0f GiB of host memory; the host has %.0f GiB.", name, gib,
                            host));
}

oomsight_status oos_doubts_find(oos_arena *arena, const oos_doubt_facts *facts, oos_plan *plan,
                                oomsight_error *reterr)
{
    list l = {.arena = arena, .texts = OOS_NEW_ARRAY(arena, const char *, DOUBTS_MAX)};
    if (!l.texts) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the doubts");
    by_torch(&l, facts, plan);
    size_t const of_build = l.count;
    by_host_memory(&l, plan);
    by_host_cache(&l, facts->serve, plan);
    by_unified(&l, plan);
    if (plan->doubtful.drafter_unknown) /* of a value: a change that drops the drafter ends it */
        add(&l, "The layers that the model drafts with are not known here: their memory is not counted.");
    size_t const of_values = l.count;
    if (plan->doubtful.untried) add(&l, plan->doubtful.untried);
    by_flags(&l, facts->serve);
    by_variables(&l, facts->env);
    size_t const before = l.count;
    by_release(&l, facts);
    plan->release_doubts = of_build + l.count - before;
    by_support(&l, plan);
    plan->unseen = not_seen(plan);
    if (plan->unseen) add(&l, plan->unseen);
    if (l.failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the doubts");
    plan->doubts = l.texts;
    plan->doubt_count = l.count;
    plan->lasting_doubts = l.count - of_values + of_build;
    oos_assert(plan->release_doubts <= plan->lasting_doubts && plan->lasting_doubts <= plan->doubt_count);
    return OOMSIGHT_OK;
}

/* ---- answers ---- */

void oos_doubts_lower(const oos_plan *plan, oomsight_verdict *verdict, double *probability)
{
    if (*verdict == OOMSIGHT_VERDICT_FITS) *verdict = OOMSIGHT_VERDICT_TIGHT;
    if (*verdict != OOMSIGHT_VERDICT_TIGHT) return;
    if (*probability > OOS_PROBABILITY_DOUBTED) *probability = OOS_PROBABILITY_DOUBTED;
    if (plan->unseen && *probability > OOS_PROBABILITY_UNSEEN) *probability = OOS_PROBABILITY_UNSEEN;
}

/* The number behind a flag of the change, else `own`. */
static double changed(const oos_fix *fix, const char *flag, double own)
{
    char *end;
    for (size_t i = 0; flag && i + 1 < fix->change_count; i++)
        if (strcmp(fix->change[i], flag) == 0) own = oos_real_read(fix->change[i + 1], &end);
    return own;
}

/* Of the doubts of a plan those of values may go with a change, those of a release with another one, and a change may bring one. */
static bool doubted(const oos_plan *plan, const oos_fix *fix)
{
    const oos_doubtful *doubtful = &plan->doubtful;
    bool const drafts = doubtful->drafter_unknown && !(fix->without && strstr(fix->without, "--spec"));
    bool const lasting = fix->release ? fix->unmeasured || plan->lasting_doubts > plan->release_doubts
                                      : plan->lasting_doubts > 0;
    return lasting || drafts || fix->host_open ||
           oos_plan_too_full(plan, changed(fix, doubtful->share_flag, doubtful->share)) ||
           !host_enough(plan, offloaded(plan, changed(fix, doubtful->offload_flag, doubtful->offload_gib)));
}

static bool reaches(const oos_plan *plan, oos_phase phase)
{
    for (size_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].phase == phase) return true;
    return false;
}

/* What fits is likely, what no PyTorch runs cannot be told. */
static void doubt(oos_plan *plan)
{
    oos_assert(plan->doubt_count > 0);
    bool const fits = plan->answer.verdict == OOMSIGHT_VERDICT_FITS;
    oos_doubts_lower(plan, &plan->answer.verdict, &plan->answer.probability);
    if (!plan->answer.why) plan->answer.why = plan->doubts[0];
    if (fits && plan->unseen && reaches(plan, OOS_PHASE_KV_SIZING)) {
        plan->answer.phase = OOS_PHASE_KV_SIZING; /* what was not seen before is a cache of another shape */
        plan->answer.phase_probability = 1 - plan->answer.probability;
    }
    if (plan->host_short) plan->answer.probability = OOS_PROBABILITY_HOST_SHORT;
    if (!plan->no_code) return;
    plan->answer.verdict = OOMSIGHT_VERDICT_UNKNOWN;
    plan->answer.probability = OOS_PROBABILITY_NONE;
    plan->answer.phase = OOS_PHASE_COUNT;
    plan->answer.phase_probability = 0;
    plan->answer.tried_bytes = (oos_u64){0};
    plan->answer.why = plan->doubts[0];
}

void oos_doubts_apply(oos_plan *plan, oos_fix *fixes)
{
    bool const open =
        plan->answer.verdict == OOMSIGHT_VERDICT_FITS || plan->answer.verdict == OOMSIGHT_VERDICT_TIGHT;
    if (plan->no_code) { /* no flag brings code for the GPU, only another release */
        size_t kept = 0, answers = 0;
        for (size_t i = 0; i < plan->help.fix_count; i++) {
            if (!fixes[i].release) continue;
            answers += i < plan->help.answer_count;
            fixes[kept++] = fixes[i];
        }
        plan->help.fix_count = kept;
        plan->help.answer_count = answers;
    }
    for (size_t i = 0; i < plan->help.fix_count; i++) {
        if (!doubted(plan, &fixes[i])) continue;
        if (plan->unseen && fixes[i].verdict == OOMSIGHT_VERDICT_FITS) fixes[i].phase = OOS_PHASE_KV_SIZING;
        oos_doubts_lower(plan, &fixes[i].verdict, &fixes[i].probability);
    }
    /* It fails whatever they do, or cannot be told for another reason. That no flag brings code for the GPU is said with it. */
    if (!open) plan->doubt_count = plan->no_code ? 1 : 0;
    if (open && plan->doubt_count) doubt(plan);
}

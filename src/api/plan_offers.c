/* What a plan offers: fixes with their whole commands, GPUs on which it starts; and how certain each is. */
#include "api/api.h"
#include "base/check.h"
#include "base/secret.h"
#include "base/text.h"
#include "command/command.h"
#include "report/report.h"

#include <string.h>

const char *oos_offers_command(oomsight_plan *plan, const oos_plan_ask *ask, const char *const *words,
                               const oos_serve *serve, const oos_fix *fix)
{
    const oomsight_plan_params *params = ask->params;
    size_t const line = oos_wrapped_line(params->command, params->command_count);
    bool const wrapped = line < params->command_count;
    size_t const from =
        params->environment_count + (wrapped ? oos_wrapped_line_first(params->command, line) : 0);
    const char *inner = oos_serve_whole(plan->arena, words, ask->word_count, from, serve, fix->change,
                                        fix->change_count, fix->leave_out, fix->leave_out_count);
    if (fix->release && inner && !wrapped && !plan->start.env->image)
        return oos_arena_format(plan->arena, "pip install %s==%s && %s", plan->engine->words->name,
                                fix->release, inner);
    if (!wrapped || !inner) return inner;
    oos_text text = {0};
    oos_command_put(plan->arena, &text, params->command, line);
    oos_text_put(&text, " ");
    oos_serve_quote(&text, inner);
    oos_view const whole = {text.ptr, text.len};
    /* Where a writer would hide part of the line, its quotation would be hidden with it. */
    const char *copy = text.failed                ? NULL
                       : oos_secret_inside(whole) ? inner
                                                  : oos_arena_copy(plan->arena, whole);
    oos_text_free(&text);
    return copy;
}

/* In a file its words can be changed, if they are those that were read. */
static void edited_form(oomsight_plan *plan, const oos_plan_ask *ask)
{
    const oomsight_plan_params *params = ask->params;
    const oos_fix *fix = plan->plan.help.fixes;
    bool same = plan->plan.help.fix_count && !fix->release && !params->environment_count &&
                ask->word_count == params->command_count;
    for (size_t i = 0; same && i < ask->word_count; i++)
        same = strcmp(ask->words[i], params->command[i]) == 0;
    if (same)
        plan->edited = oos_serve_edited(plan->arena, ask->words, ask->word_count, &plan->serve, fix->change,
                                        fix->change_count, fix->leave_out, fix->leave_out_count, fix->model,
                                        &plan->edited_count);
}

static oomsight_status flags_form(oomsight_plan *plan, const oos_plan_ask *ask, oos_fix *fixes,
                                  oomsight_error *reterr)
{
    size_t const count = plan->plan.help.fix_count;
    plan->fix_flags = OOS_NEW_ARRAY(plan->arena, const char *, count + 1);
    if (!plan->fix_flags) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the flags");
    for (size_t i = 0; i < count; i++) {
        if (!fixes[i].model) /* that of a checkpoint is whole */
            fixes[i].command = oos_offers_command(plan, ask, ask->words, &plan->serve, &fixes[i]);
        plan->fix_flags[i] = oos_report_plan_change(plan->arena, &fixes[i]);
        if (!plan->fix_flags[i] || !fixes[i].command)
            return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the flags");
    }
    edited_form(plan, ask);
    return OOMSIGHT_OK;
}

/* What would help; for every GPU: which of them it takes, and that is the answer, so it is never left out. */
static oomsight_status search(oomsight_plan *plan, const oos_plan_ask *ask, oomsight_error *reterr)
{
    bool const every = oos_ask_is_every_gpu(ask);
    if (ask->params->skip_fixes && !every) return OOMSIGHT_OK;
    if (plan->plan.exact && plan->plan.exact->refused_after_all)
        return OOMSIGHT_OK; /* by rules that refuse nothing here */
    if (every && !plan->engine->choose)
        return oos_fail_of(reterr,
                           oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "all GPUs are tried for %s only",
                                    oos_engine_default->title),
                           "gpu");
    oos_arena *scratch = oos_arena_create(64 << 10);
    if (!scratch) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the search");
    oomsight_status const status = (every ? plan->engine->choose : plan->engine->solve)(
        plan->arena, scratch, &plan->start, plan->facts, &ask->params->data->gpus, &plan->plan, reterr);
    oos_arena_free(scratch);
    return status;
}

/* GPUs that the release's PyTorch has code for; of others none is offered. */
static size_t runnable(const oomsight_plan *plan, const oos_gpus *gpus, oos_need_gpu *list, size_t count)
{
    const oos_torch_build *build = oos_torch_find(&plan->facts->torch, plan->plan.doubtful.torch_minor);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t ignored;
        const oos_gpu *gpu = oos_gpus_find(gpus, oos_view_of(list[i].gpu), &ignored);
        oos_torch_support const support = gpu && gpu->memory != OOS_MEMORY_UNIFIED
                                              ? oos_torch_supports(build, gpu->capability)
                                              : OOS_TORCH_WHEEL;
        if (support == OOS_TORCH_NONE || (support == OOS_TORCH_OTHER && gpu->capability < build->sm[0]))
            continue;
        list[kept] = list[i];
        if (plan->plan.doubt_count && list[kept].verdict == OOMSIGHT_VERDICT_FITS)
            list[kept].verdict = OOMSIGHT_VERDICT_TIGHT;
        kept++;
    }
    return kept;
}

/* Of a plan for every GPU the answer is that of the best of them, not of the one that was tried first. */
static void answer_of_choices(oos_plan *plan)
{
    const oos_need_gpu *best = NULL;
    for (size_t i = 0; i < plan->help.choice_count; i++)
        if (!best || plan->help.choices[i].probability > best->probability) best = &plan->help.choices[i];
    if (!best) return;
    plan->answer.verdict = best->verdict;
    plan->answer.probability = best->probability;
    plan->kv.tokens = best->kv_tokens;
    plan->answer.phase = OOS_PHASE_COUNT;
    plan->doubt_count = 0;
}

/* The whole command for each GPU; of a refused one the corrections are in the flags alone. */
static oomsight_status needs_form(oomsight_plan *plan, const oos_plan_ask *ask, oos_needs *needs,
                                  oomsight_error *reterr)
{
    for (size_t i = 0; !plan->plan.refusal.sentence && i < needs->gpu_count; i++) {
        oos_fix const fix = {.change = needs->gpus[i].flags, .change_count = needs->gpus[i].flag_count};
        needs->gpus[i].command = oos_offers_command(plan, ask, ask->words, &plan->serve, &fix);
        if (!needs->gpus[i].command) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the needs");
    }
    return OOMSIGHT_OK;
}

static oomsight_status offers_settle(oomsight_plan *plan, const oos_plan_ask *ask, oomsight_error *reterr)
{
    const oos_gpus *gpus = &ask->params->data->gpus;
    oos_plan *p = &plan->plan;
    if (p->help.choices) {
        oos_need_gpu *list = OOS_NEW_ARRAY(plan->arena, oos_need_gpu, p->help.choice_count + 1);
        if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the choices");
        for (size_t i = 0; i < p->help.choice_count; i++) list[i] = p->help.choices[i];
        p->help.choice_count = runnable(plan, gpus, list, p->help.choice_count);
        p->help.choices = list;
        answer_of_choices(p);
    }
    if (p->help.needs) {
        oos_needs *needs = OOS_NEW(plan->arena, oos_needs);
        if (!needs) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the needs");
        *needs = *p->help.needs;
        needs->gpu_count = runnable(plan, gpus, needs->gpus, needs->gpu_count);
        p->help.needs = needs;
        return needs_form(plan, ask, needs, reterr);
    }
    return OOMSIGHT_OK;
}

oomsight_status oos_ask_offers(oomsight_plan *plan, const oos_plan_ask *ask, oomsight_error *reterr)
{
    OOS_TRY(search(plan, ask, reterr));
    /* What is certain, now that everything is known: the plan, its fixes and what else is offered. */
    oos_doubt_facts const facts = {
        .serve = &plan->serve,
        .env = &plan->env,
        .torch = &plan->facts->torch,
        .title = plan->plan.engine->title,
        .release = plan->plan.engine_version,
        .measured = oos_rule_book_measured(plan->facts->rules, plan->start.version),
        .newer = ask->newer,
        .changed = ask->changed,
        .changed_count = ask->changed_count,
    };
    OOS_TRY(oos_doubts_find(plan->arena, &facts, &plan->plan, reterr));
    OOS_TRY(offers_settle(plan, ask, reterr));
    bool const refused = plan->plan.exact && plan->plan.exact->refused_after_all;
    if (!ask->params->skip_fixes && !oos_ask_is_every_gpu(ask) && !refused)
        OOS_TRY(oos_ask_checkpoints(plan, ask, &facts, reterr));
    oos_fix *fixes = OOS_NEW_ARRAY(plan->arena, oos_fix, plan->plan.help.fix_count + 1);
    if (!fixes || !oos_inert_settle(plan->arena, &plan->plan.help))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the fixes");
    for (size_t i = 0; i < plan->plan.help.fix_count; i++) fixes[i] = plan->plan.help.fixes[i];
    oos_doubts_apply(&plan->plan, fixes);
    plan->plan.help.fixes = fixes;
    oos_assert(oos_plan_is_sound(&plan->plan));
    return flags_form(plan, ask, fixes, reterr);
}

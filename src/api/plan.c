/* The public face of planning: words in, a plan out. */
#include "api/api.h"
#include "base/text.h"
#include "command/command.h"
#include "report/report.h"

static oomsight_status models_open(oomsight_plan *plan, const oos_plan_ask *ask, oomsight_error *reterr)
{
    const oomsight_plan_params *params = ask->params;
    plan->start.model = params->model ? &params->model->model : NULL;
    if (!plan->start.model) {
        if (!plan->serve.model) return oos_fail(reterr, OOMSIGHT_USAGE, "the command names no model");
        const char *name = oos_wrapped_path(plan->arena, ask->words, ask->word_count, plan->serve.model);
        if (name && plan->serve.revision)
            name = oos_arena_format(plan->arena, "%s@%s", name, plan->serve.revision);
        if (!name) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a name");
        OOS_TRY(oos_api_model_open(params->data, name, params->allow_hub, plan->serve.hf_overrides_json,
                                   &plan->own_model, reterr));
        plan->start.model = &plan->own_model->model;
    }
    if (plan->serve.speculative.present && plan->serve.speculative.model) {
        OOS_TRY(oos_api_model_open(params->data, plan->serve.speculative.model, params->allow_hub, NULL,
                                   &plan->draft, reterr));
        plan->start.draft = &plan->draft->model;
    }
    return OOMSIGHT_OK;
}

static oomsight_status plan_fill(oomsight_plan *plan, oos_plan_ask *ask, oomsight_error *reterr)
{
    OOS_TRY(oos_ask_words(plan, ask, reterr));
    OOS_TRY(oos_ask_release(plan, ask, reterr));
    OOS_TRY(oos_ask_device(plan, ask, reterr));
    OOS_TRY(oos_serve_read_as(plan->engine->dialect, plan->arena, ask->words, ask->word_count,
                              &plan->facts->flags, plan->start.version, &plan->serve, &plan->env, reterr));
    OOS_TRY(oos_ask_taken(plan, ask, reterr));
    OOS_TRY(models_open(plan, ask, reterr));
    plan->start.serve = &plan->serve;
    plan->start.env = &plan->env;
    plan->start.kv_layers_json = ask->params->kv_layers_json;
    plan->words = ask->words;
    plan->word_count = ask->word_count;
    OOS_TRY(plan->engine->plan(plan->arena, &plan->start, plan->facts, &plan->plan, reterr));
    if (ask->exact) OOS_TRY(oos_ask_exact(plan, ask, reterr));
    OOS_TRY(oos_ask_changed(plan, ask, reterr));
    plan->plan.serving.ranks = ask->ranks.here;
    char version[32];
    oos_version_print(plan->start.version, version, sizeof version);
    plan->plan.engine_version = oos_arena_copy(plan->arena, oos_view_of(version));
    if (!plan->plan.engine_version) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the version");
    OOS_TRY(oos_ask_notes(plan, ask, reterr));
    return oos_ask_offers(plan, ask, reterr);
}

/* An answer that nobody can read is none. */
static oomsight_status answer_read(oos_arena *arena, oos_plan_ask *ask, oomsight_error *reterr)
{
    static const oomsight_exact broken = {.problem = "its answer cannot be read"};
    oos_exact *answer = OOS_NEW(arena, oos_exact);
    if (!answer) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for an answer");
    if (!ask->exact->answer) return OOMSIGHT_OK;
    if (oos_exact_read(arena, (oos_view){ask->exact->answer, ask->exact->answer_bytes}, answer))
        ask->answer = answer;
    else
        ask->exact = &broken;
    return OOMSIGHT_OK;
}

oomsight_status oomsight_plan_create(const oomsight_plan_params *params, oomsight_plan **ret_plan,
                                     oomsight_error *reterr)
{
    return oomsight_plan_create_exact(params, NULL, ret_plan, reterr);
}

static oomsight_status plan_make(const oomsight_plan_params *params, const oomsight_exact *exact,
                                 const oos_learned *learned, oomsight_plan **ret_plan, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_plan_params, params);
    if (!params->data) return oos_fail(reterr, OOMSIGHT_USAGE, "a plan needs data");
    oos_arena *arena = oos_arena_create(32 << 10);
    oomsight_plan *plan = arena ? OOS_NEW(arena, oomsight_plan) : NULL;
    if (!plan) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the plan");
    }
    plan->arena = arena;
    oos_plan_ask ask = {.params = params,
                        .machine = params->machine ? &params->machine->machine : NULL,
                        .exact = exact,
                        .learned = learned};
    oomsight_status status = exact ? answer_read(arena, &ask, reterr) : OOMSIGHT_OK;
    if (status == OOMSIGHT_OK) status = OOS_WHOLE_STATUS(params, plan_fill(plan, &ask, reterr));
    if (status != OOMSIGHT_OK) {
        oomsight_plan_free(plan);
        return status;
    }
    *ret_plan = plan;
    return OOMSIGHT_OK;
}

oomsight_status oomsight_plan_create_exact(const oomsight_plan_params *params, const oomsight_exact *exact,
                                           oomsight_plan **ret_plan, oomsight_error *reterr)
{
    return plan_make(params, exact, NULL, ret_plan, reterr);
}

oomsight_status oos_api_plan_learned(const oomsight_plan_params *params, const oos_learned *learned,
                                     oomsight_plan **ret_plan, oomsight_error *reterr)
{
    return plan_make(params, NULL, learned, ret_plan, reterr);
}

void oomsight_plan_free(oomsight_plan *plan)
{
    if (!plan) return;
    oomsight_model_close(plan->own_model);
    oomsight_model_close(plan->draft);
    oos_arena_free(plan->arena);
}

oomsight_status oomsight_plan_render(const oomsight_plan *plan, const oomsight_render_params *params,
                                     char **ret_text, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_text text = {0};
    const oos_plan *const only = &plan->plan;
    if (only->help.choices) {
        if (params->format == OOMSIGHT_FORMAT_JSON)
            oos_report_choices_json(&text, only);
        else if (params->format == OOMSIGHT_FORMAT_HTML)
            oos_report_choices_html(&text, only, params);
        else if (params->format == OOMSIGHT_FORMAT_TEXT)
            oos_report_choices_text(&text, only, params);
        else
            return oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                            "which GPU it takes is written as text, JSON or HTML");
        return OOS_WHOLE_TEXT(params, &text, ret_text);
    }
    switch (params->format) {
    case OOMSIGHT_FORMAT_TEXT: oos_report_plan_text(&text, &plan->plan, params); break;
    case OOMSIGHT_FORMAT_JSON: oos_report_plan_json(&text, &plan->plan); break;
    case OOMSIGHT_FORMAT_MARKDOWN: oos_report_plan_markdown(&text, &plan->plan, params); break;
    case OOMSIGHT_FORMAT_HTML: oos_report_plan_html(&text, &only, 1, params); break;
    case OOMSIGHT_FORMAT_GITHUB:
    case OOMSIGHT_FORMAT_SARIF:
    case OOMSIGHT_FORMAT_JUNIT:
    case OOMSIGHT_FORMAT_PATCH:
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "plans are written as text, JSON, Markdown or HTML");
    }
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}

oomsight_status oomsight_plans_render(const oomsight_plan *const *plans, size_t count,
                                      const oomsight_render_params *params, char **ret_text,
                                      oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    const oos_plan *list[16];
    if (count > sizeof list / sizeof *list)
        return oos_fail(reterr, OOMSIGHT_USAGE, "at most %zu plans side by side", sizeof list / sizeof *list);
    for (size_t i = 0; i < count; i++) list[i] = &plans[i]->plan;
    oos_text text = {0};
    if (params->format == OOMSIGHT_FORMAT_HTML)
        oos_report_plan_html(&text, list, count, params);
    else
        oos_report_plans(&text, list, count, params);
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}

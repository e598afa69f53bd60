/* The public side of explain. Here explain and plan meet: what the log tells of model, flags and device is planned, and
 * the fixes are plan's where it reproduces the failure. */
#include "api/api.h"
#include "base/ascii.h"
#include "base/locale.h"
#include "base/text.h"
#include "explain/explain.h"
#include "facts/facts.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *kept(oos_arena *arena, const char *text)
{
    return text ? oos_arena_copy(arena, oos_view_of(text)) : NULL;
}

static const char *const *kept_words(oos_arena *arena, const char *const *words, size_t count)
{
    const char **list = OOS_NEW_ARRAY(arena, const char *, count + 1);
    for (size_t i = 0; list && i < count; i++)
        if (!(list[i] = kept(arena, words[i]))) return NULL;
    return list;
}

/* The fixes outlive their plan: of thousands of incidents no plan is kept. NULL: out of memory. */
static const oos_fix *kept_fixes(oos_arena *arena, const oos_fix *fixes, size_t count)
{
    oos_fix *list = OOS_NEW_ARRAY(arena, oos_fix, count + 1);
    for (size_t i = 0; list && i < count; i++) {
        oos_fix *fix = &list[i];
        *fix = fixes[i];
        fix->change = kept_words(arena, fix->change, fix->change_count);
        fix->leave_out = kept_words(arena, fix->leave_out, fix->leave_out_count);
        const char **texts[] = {&fix->without, &fix->keeps, &fix->gives_up, &fix->name, &fix->command};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) *texts[k] = kept(arena, *texts[k]);
        if (!fix->change || !fix->leave_out || !fix->command) return NULL;
    }
    return list;
}

static void take_plan_fixes(oos_arena *arena, const oomsight_plan *plan, oos_incident_notes *notes)
{
    const oos_plan *of = oos_api_plan(plan);
    notes->fixes = kept_fixes(arena, of->help.fixes, of->help.fix_count);
    notes->fix_count = notes->fixes ? of->help.fix_count : 0;
    notes->plan_flags = kept(arena, oomsight_plan_best_flags(plan));
    const char **inert = OOS_NEW_ARRAY(arena, const char *, of->help.inert_count + 1);
    for (size_t i = 0; inert && i < of->help.inert_count; i++)
        if ((inert[notes->inert_count] = kept(arena, of->help.inert[i].flag))) notes->inert_count++;
    notes->inert = inert;
}

/* Whether what the log and the plan leave for the KV cache is the same, where the failure is about that: within a twentieth of the
 * device. "No available memory" is nothing left, whatever the length. `ret_read`: what the log says. */
static bool kv_agrees(const oos_incident *incident, const oos_plan *plan, double *ret_read)
{
    bool const none = strcmp(incident->verdict_rule, "kv.none") == 0;
    if (incident->phase != OOS_PHASE_KV_SIZING || (!none && !oos_known(incident, OOS_NUMBER_kv_available)))
        return true;
    double const planned = (double)(int64_t)plan->kv.available_bytes, /* below zero: the engine refuses */
        slack = (double)oos_value(incident, OOS_NUMBER_total) / 20;
    *ret_read = none ? 0 : (double)(int64_t)oos_value(incident, OOS_NUMBER_kv_available);
    return none ? planned <= slack : fabs(planned - *ret_read) <= slack;
}

/* What the log tells of the command, and of the release that it is for. */
static bool command_of(oos_arena *arena, const oomsight_data *data, const oos_incident *incident,
                       oos_logged_command *ret_command)
{
    const oos_engine_words *words = incident->engine ? oos_engine_words_find(incident->engine) : NULL;
    const oos_engine *engine = words ? oos_engine_find(words) : NULL;
    const oos_engine_facts *facts;
    oos_logged_command command = {0};
    if (!engine) return false;
    if (engine->logged && incident->setup.args && oos_api_facts(data, engine, &facts, NULL) == OOMSIGHT_OK &&
        engine->logged(arena, &facts->flags, incident->setup.args, ret_command))
        return true;
    const char *args = engine->logged ? NULL : incident->setup.args, *line = incident->setup.command;
    command.words = OOS_NEW_ARRAY(arena, const char *, OOS_COMMAND_WORDS_MAX);
    if (!command.words || !oos_command_words(arena, args, line, command.words, &command.count)) return false;
    *ret_command = command;
    return true;
}

/* The plan of what the log names; NULL: it names too little, or it cannot be planned. */
static oomsight_plan *plan_of(oos_arena *arena, const oomsight_data *data, int allow_hub,
                              const oos_incident *incident, const char *gpu)
{
    oos_logged_command command;
    char release[32];
    if (!command_of(arena, data, incident, &command)) return NULL;
    oos_version_print(command.version, release, sizeof release);
    oomsight_plan_params plan_params = OOMSIGHT_PLAN_PARAMS_INIT;
    plan_params.data = data;
    plan_params.command = command.words;
    plan_params.command_count = command.count;
    plan_params.gpu = incident->setup.gpu ? incident->setup.gpu : gpu;
    plan_params.gpu_total_bytes = oos_value(incident, OOS_NUMBER_total);
    plan_params.engine_version = incident->setup.version ? incident->setup.version
                                 : command.version       ? release
                                                         : NULL;
    plan_params.allow_hub = allow_hub;
    oomsight_plan *plan = NULL;
    return oomsight_plan_create(&plan_params, &plan, NULL) == OOMSIGHT_OK ? plan : NULL;
}

/* The plan fails where the log does; where the text leaves several phases, in one of them. */
static bool fails_there(const oos_incident *incident, const char *phase)
{
    bool there = phase && strcmp(phase, oos_phase_word(incident->phase)) == 0;
    for (size_t i = 0; phase && incident->phase == OOS_PHASE_UNKNOWN && i < incident->phase_count; i++)
        there |= strcmp(phase, oos_phase_word(incident->phases[i])) == 0;
    return there;
}

static void join_plan(oos_arena *arena, const oomsight_data *data, int allow_hub,
                      const oos_incident *incident, oos_incident_notes *notes)
{
    if (!incident->is_oom || !oos_known(incident, OOS_NUMBER_total)) return;
    oomsight_plan *plan = plan_of(arena, data, allow_hub, incident, notes->gpu_guess);
    if (!plan) return;
    const char *phase = oomsight_plan_phase(plan);
    bool same = fails_there(incident, phase);
    double const read = (double)oos_value(incident, OOS_NUMBER_weights),
                 planned = (double)oomsight_plan_weights_bytes(plan);
    bool const weighed = read > 0 && planned > 0;
    double const off = weighed ? fabs(planned - read) / read * 100 : 0;
    double kv_read = 0;
    if (same && !kv_agrees(incident, oos_api_plan(plan), &kv_read)) {
        same = false;
        notes->plan_check = oos_arena_format(
            arena,
            "plan does not reproduce this failure: it leaves %.2f GiB for the KV cache, the log says %.2f. A "
            "flag, another process or a larger model is missing here.",
            (double)(int64_t)oos_api_plan(plan)->kv.available_bytes / 0x1p30, kv_read / 0x1p30);
    } else if (weighed)
        notes->plan_check = oos_arena_format(
            arena, "plan %s this failure (%s); its weights are %.2f GiB, the log's %.2f (%.1f %% apart).",
            same ? "reproduces" : "does not reproduce", phase ? phase : "it starts", planned / 0x1p30,
            read / 0x1p30, off);
    else
        notes->plan_check =
            oos_arena_format(arena, "plan %s this failure (%s).", same ? "reproduces" : "does not reproduce",
                             phase ? phase : "it starts");
    if (same && off < 10) take_plan_fixes(arena, plan, notes);
    oomsight_plan_free(plan);
}

/* The devices that are known by their totals are NVIDIA's: PyTorch names another platform in its message. */
static bool is_another_platform(const oos_incident *incident)
{
    static const char *const others[] = {"HIP out of memory", "NPU out of memory", "XPU out of memory",
                                         "MPS backend out of memory"};
    for (size_t i = 0; i < incident->evidence_count; i++)
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (strstr(incident->evidence[i].text, others[k])) return true;
    return false;
}

void oos_api_note_incident(oos_arena *arena, const oomsight_data *data, int allow_hub,
                           const oos_incident *incident, oos_incident_notes *notes)
{
    const oos_gpu *gpu = oos_known(incident, OOS_NUMBER_total) && !is_another_platform(incident)
                             ? oos_device_by_total(&data->gpus, oos_value(incident, OOS_NUMBER_total))
                             : NULL;
    if (gpu) notes->gpu_guess = gpu->name;
    notes->gpu_sure = gpu && oos_device_is_only(&data->gpus, gpu, oos_value(incident, OOS_NUMBER_total));
    join_plan(arena, data, allow_hub, incident, notes);
}

typedef bool left_out(const oos_incident_notes *notes, const oos_advice *advice);

static void leave_out(oos_arena *arena, const oos_incident_notes *notes, left_out *of,
                      const oos_advice **list, size_t *count)
{
    oos_advice *rest = OOS_NEW_ARRAY(arena, oos_advice, *count + 1);
    size_t kept = 0;
    if (!rest) return;
    for (size_t i = 0; i < *count; i++)
        if (!of(notes, &(*list)[i])) rest[kept++] = (*list)[i];
    *list = rest;
    *count = kept;
}

static bool is_inert(const oos_incident_notes *notes, const oos_advice *advice)
{
    for (size_t i = 0; i < notes->inert_count; i++) {
        const char *at = strstr(advice->change[0], notes->inert[i]);
        if (at && strchr(" ,", at[strlen(notes->inert[i])])) return true;
    }
    return false;
}

/* One value of a flag on a page: the plan's, which knows this model and device. */
static void leave_to_plan(oos_arena *arena, const oos_incident_notes *notes, oos_incident *incident)
{
    leave_out(arena, notes, oos_report_repeats, &incident->fixes, &incident->fix_count);
    leave_out(arena, notes, is_inert, &incident->fixes, &incident->fix_count);
    leave_out(arena, notes, oos_report_contradicts, &incident->dead_ends, &incident->dead_end_count);
}

/* The command that the log has with one flag of the advice, as the engine reads it; NULL: it cannot be said so. */
static const char *command_with(oos_arena *arena, const oos_engine *engine, const oos_engine_facts *facts,
                                const oos_logged_command *command, oos_version version,
                                const oos_advice *advice)
{
    oos_serve serve, changed;
    oos_engine_env env;
    size_t count;
    bool const flag = advice->change_count && strncmp(advice->change[0], "--", 2) == 0 &&
                      !strpbrk(advice->change[0], " ,=");
    if (!flag || oos_serve_read_as(engine->dialect, arena, command->words, command->count, &facts->flags,
                                   version, &serve, &env, NULL) != OOMSIGHT_OK)
        return NULL;
    const oos_edited_word *edited =
        oos_serve_edited(arena, command->words, command->count, &serve, advice->change, advice->change_count,
                         NULL, 0, NULL, &count);
    const char **words = edited ? OOS_NEW_ARRAY(arena, const char *, count + 1) : NULL;
    for (size_t i = 0; words && i < count; i++) words[i] = edited[i].word;
    if (!words || oos_serve_read_as(engine->dialect, arena, words, count, &facts->flags, version, &changed,
                                    &env, NULL) != OOMSIGHT_OK)
        return NULL;
    const oos_given_flag *given = oos_serve_given(&changed, advice->change[0]);
    bool const taken = given && !given->absent && given->effect != OOS_FLAG_UNKNOWN &&
                       (given->value != NULL) == (advice->change_count > 1);
    if (changed.refusal.sentence || !taken) return NULL;
    oos_text text = {0};
    oos_command_put(arena, &text, words, count);
    const char *whole = text.failed ? NULL : oos_arena_copy(arena, (oos_view){text.ptr, text.len});
    oos_text_free(&text);
    return whole;
}

/* Where no plan has them. */
static void give_commands(oos_arena *arena, const oomsight_data *data, oos_incident *incident)
{
    const oos_engine_words *words = incident->engine ? oos_engine_words_find(incident->engine) : NULL;
    const oos_engine *engine = words ? oos_engine_find(words) : NULL;
    const oos_engine_facts *facts;
    const oos_version *versions;
    oos_logged_command command;
    oos_advice *list = OOS_NEW_ARRAY(arena, oos_advice, incident->fix_count + 1);
    if (!engine || !list || !incident->fix_count ||
        oos_api_facts(data, engine, &facts, NULL) != OOMSIGHT_OK ||
        !command_of(arena, data, incident, &command))
        return;
    oos_version version = command.version;
    size_t const count = oos_rule_book_versions(facts->rules, &versions);
    if (!incident->setup.version || !oos_version_parse(oos_view_of(incident->setup.version), &version))
        version = version ? version : versions[count - 1];
    for (size_t i = 0; i < incident->fix_count; i++) {
        list[i] = incident->fixes[i];
        list[i].command = command_with(arena, engine, facts, &command, version, &list[i]);
    }
    incident->fixes = list;
}

/* Of several inputs each incident tells its own; inside an archive it has a name already. */
static void name_inputs(oomsight_explanation *e, size_t from, const char *path)
{
    for (size_t i = from; i < e->explanation.count; i++)
        if (!*e->explanation.incidents[i].file) {
            const char *name = oos_arena_copy(e->arena, oos_view_of(path));
            if (name) e->explanation.incidents[i].file = name;
        }
}

/* What the caller knows and the log does not tell: a plan and the advice need it. */
static oomsight_status fill_given(oomsight_explanation *e, const oomsight_explain_params *params,
                                  oomsight_error *reterr)
{
    uint64_t count;
    const oos_gpu *gpu =
        params->gpu ? oos_gpus_find(&params->data->gpus, oos_view_of(params->gpu), &count) : NULL;
    if (params->gpu && !gpu) return oos_device_unknown(&params->data->gpus, params->gpu, reterr);
    OOS_TRY(oos_api_engine_known(params->engine, reterr));
    const oos_engine_words *told =
        params->engine ? oos_engine_words_find(params->engine) : oos_engine_default;
    for (size_t i = 0; i < e->explanation.count; i++) {
        oos_incident *incident = &e->explanation.incidents[i];
        oos_setup_text *setup = &incident->setup;
        oos_number *total = &incident->numbers[OOS_NUMBER_total];
        bool const of_it = !params->engine || !incident->engine || strcmp(incident->engine, told->name) == 0;
        if (params->engine && !incident->engine) incident->engine = told->name;
        if (params->engine_version && !setup->version && of_it)
            setup->version = oos_arena_copy(e->arena, oos_view_of(params->engine_version));
        if (gpu && !setup->gpu) setup->gpu = gpu->name;
        if (gpu && !total->known) *total = (oos_number){.known = true, .value = gpu->total_bytes};
        if (!params->model) continue;
        if (!setup->model) setup->model = oos_arena_copy(e->arena, oos_view_of(params->model));
        const oos_engine_words *engine = incident->engine ? oos_engine_words_find(incident->engine) : NULL;
        if (!engine) engine = told;
        if (!setup->args && !setup->command)
            setup->command = oos_arena_format(e->arena, "%s serve %s", engine->name, params->model);
        if (!incident->engine) incident->engine = engine->name;
    }
    bool const more = params->engine_version || gpu || params->model;
    for (size_t i = 0; more && i < e->explanation.count; i++)
        oos_advise(e->arena, &e->knowledge.advisers, &e->knowledge.kb, &e->explanation.incidents[i]);
    return OOMSIGHT_OK;
}

/* Of a local folder, of the cache, or built in: nothing is asked of the network. */
static bool is_text_model(const void *models, const oos_incident *incident)
{
    oos_arena *arena = oos_arena_create(64 << 10);
    oomsight_plan *plan = arena ? plan_of(arena, models, 0, incident, "h100") : NULL;
    const oos_model *model = plan ? oos_api_plan(plan)->model : NULL;
    bool const text = model && model->known && !model->multimodal && !model->encoder_decoder;
    oomsight_plan_free(plan);
    oos_arena_free(arena);
    return text;
}

/* What a path or an id says of the size, as 4 of "qwen3-4b"; 0: nothing. What stands behind a letter is a part: the A3B of a
 * mixture of experts. */
static double billions_in(const char *name)
{
    double most = 0;
    for (const char *at = name; *at; at++) {
        bool const begins = oos_is_digit(*at) && (at == name || (!oos_is_alnum(at[-1]) && at[-1] != '.'));
        if (!begins) continue;
        char *end;
        double const count = oos_real_read(at, &end);
        if ((*end == 'b' || *end == 'B') && !oos_is_alnum(end[1]) && count < 2000) most = fmax(most, count);
    }
    return most;
}

/* At most: of a model that is known as planned, of another by the count in its name, at the 4 or 2 bytes that nothing exceeds. */
static uint64_t weights_of(const void *models, const oos_incident *incident)
{
    oos_arena *arena = oos_arena_create(64 << 10);
    oomsight_plan *plan = arena ? plan_of(arena, models, 0, incident, "h100") : NULL;
    uint64_t weights = plan ? oomsight_plan_weights_bytes(plan) : 0;
    oomsight_plan_free(plan);
    oos_logged_command command;
    if (weights == 0 && arena && command_of(arena, models, incident, &command)) {
        double most = 0, each = 2e9;
        bool two = false;
        for (size_t i = 0; i < command.count; i++) {
            most = fmax(most, billions_in(command.words[i]));
            if (strstr(command.words[i], "float32") || strcmp(command.words[i], "float") == 0) each = 4e9;
            two |= strstr(command.words[i], "speculative") != NULL; /* whose weights are both there */
        }
        weights = two ? 0 : (uint64_t)(most * each);
    }
    oos_arena_free(arena);
    return weights;
}

void oos_api_knows_models(const oomsight_data *data, oos_knowledge *knowledge)
{
    knowledge->is_text_model = is_text_model;
    knowledge->weights_of = weights_of;
    knowledge->models = data;
}

static oomsight_status read_inputs(oomsight_explanation *e, const oomsight_explain_params *params,
                                   oomsight_error *reterr)
{
    OOS_TRY(oos_knowledge_load(e->arena, params->data->dir, &e->knowledge, reterr));
    oos_api_knows_models(params->data, &e->knowledge);
    size_t const inputs = params->text ? 1 : params->path_count;
    e->lost = OOS_NEW_ARRAY(e->arena, const char *, inputs);
    if (!e->lost) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for an explanation");
    for (size_t i = 0; i < inputs; i++) {
        size_t const before = e->explanation.count;
        oos_logstream *stream;
        if (params->text)
            OOS_TRY(oos_logstream_open_bytes((oos_view){params->text, params->text_bytes},
                                             params->expand_limit_bytes, &stream, reterr));
        else
            OOS_TRY(oos_logstream_open(params->paths[i], params->expand_limit_bytes, &stream, reterr));
        oomsight_status const status =
            oos_explain_stream(e->arena, &e->knowledge, stream, &e->explanation, reterr);
        bool const lost = oos_logstream_is_lost(stream);
        oos_logstream_close(stream);
        if (status != OOMSIGHT_OK)
            return params->text ? status : oos_fail_in(reterr, status, params->paths[i]);
        if (lost && !(e->lost[e->lost_count++] = kept(e->arena, params->text ? "" : params->paths[i])))
            return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for an explanation");
        if (inputs > 1) name_inputs(e, before, params->paths[i]);
    }
    if (e->lost_count == inputs) {
        oomsight_status const status = oos_fail(
            reterr, OOMSIGHT_MALFORMED, "the archive is damaged or encrypted: nothing of it could be read");
        return params->text ? status : oos_fail_in(reterr, status, params->paths[0]);
    }
    if (!params->text && inputs == 1) e->path = oos_arena_copy(e->arena, oos_view_of(params->paths[0]));
    OOS_TRY(fill_given(e, params, reterr));
    e->notes = OOS_NEW_ARRAY(e->arena, oos_incident_notes, e->explanation.count);
    if (!e->notes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for an explanation");
    for (size_t i = 0; i < e->explanation.count; i++) {
        oos_api_note_incident(e->arena, params->data, params->allow_hub, &e->explanation.incidents[i],
                              &e->notes[i]);
        if (e->notes[i].fix_count || e->notes[i].inert_count)
            leave_to_plan(e->arena, &e->notes[i], &e->explanation.incidents[i]);
        if (!e->notes[i].fix_count) give_commands(e->arena, params->data, &e->explanation.incidents[i]);
    }
    return oos_api_explain_fixes(e, reterr);
}

oomsight_status oomsight_explain_create(const oomsight_explain_params *params,
                                        oomsight_explanation **ret_explanation, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_explain_params, params);
    if (!params->data || (!params->text && !params->path_count))
        return oos_fail(reterr, OOMSIGHT_USAGE, "an explanation needs data and a log");
    oos_arena *arena = oos_arena_create(256 << 10);
    oomsight_explanation *e = arena ? OOS_NEW(arena, oomsight_explanation) : NULL;
    if (!e) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for an explanation");
    }
    e->arena = arena;
    oomsight_status const status = OOS_WHOLE_STATUS(params, read_inputs(e, params, reterr));
    if (status != OOMSIGHT_OK) {
        oos_arena_free(arena);
        return status;
    }
    *ret_explanation = e;
    return OOMSIGHT_OK;
}

const char *oomsight_explain_lost(const oomsight_explanation *explanation, size_t index)
{
    return index < explanation->lost_count ? explanation->lost[index] : NULL;
}

void oomsight_explain_free(oomsight_explanation *explanation)
{
    if (explanation) oos_arena_free(explanation->arena);
}

oomsight_status oomsight_explain_render(const oomsight_explanation *explanation,
                                        const oomsight_render_params *params, char **ret_text,
                                        oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_text text = {0};
    oos_style const style = oos_style_of(&text, params);
    oos_explain_page const page = {.explanation = &explanation->explanation,
                                   .notes = explanation->notes,
                                   .path = explanation->path,
                                   .chinese = style.chinese,
                                   .whole = params->verbose || params->explain ||
                                            params->format == OOMSIGHT_FORMAT_HTML};
    switch (params->format) {
    case OOMSIGHT_FORMAT_TEXT: oos_report_explain_text(&page, &style); break;
    case OOMSIGHT_FORMAT_JSON: oos_report_explain_json(&page, &text); break;
    case OOMSIGHT_FORMAT_MARKDOWN: oos_report_explain_markdown(&page, &style); break;
    case OOMSIGHT_FORMAT_GITHUB: oos_report_explain_github(&page, &text); break;
    case OOMSIGHT_FORMAT_SARIF: oos_report_explain_sarif(&page, &text); break;
    case OOMSIGHT_FORMAT_HTML: oos_report_explain_html(&text, &page, params); break;
    case OOMSIGHT_FORMAT_JUNIT:
    case OOMSIGHT_FORMAT_PATCH:
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "an explanation is not written as JUnit or as a patch");
    }
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}

/* The engine that is installed, asked: what to ask it, and what its answer changes in a plan. Where it has no answer, or it is another
 * release, the plan is the one that is made without it, and says so. */
#include "api/api.h"
#include "base/ascii.h"
#include "base/file.h"
#include "base/shown.h"
#include "command/command.h"

#include <stdlib.h>
#include <string.h>

/* NAME=value */
static bool is_assignment(const char *word)
{
    const char *at = word;
    while (*at == '_' || oos_is_alnum(*at)) at++;
    return at > word && *at == '=' && !oos_is_digit(*word);
}

static bool entry_find(const oomsight_plan *plan, oos_serve_entry *ret_entry, size_t *ret_at)
{
    for (size_t i = 0; i < plan->word_count; i++) {
        *ret_entry = (oos_serve_entry){0};
        if (!plan->engine->dialect->entry_at(plan->words, plan->word_count, i, ret_entry)) continue;
        *ret_at = i;
        return true;
    }
    return false;
}

/* The model first, as the sub-command takes it, and without the flag that named it. */
static void words_move_model(const oomsight_plan *plan, const char **list, size_t *count)
{
    const char *flag = plan->engine->dialect->model_flag;
    size_t const len = strlen(flag);
    size_t kept = 1;
    for (size_t i = 1; i < *count; i++) {
        if (strcmp(list[i], flag) == 0)
            i++;
        else if (strncmp(list[i], flag, len) != 0 || list[i][len] != '=')
            list[kept++] = list[i];
    }
    list[0] = plan->serve.model;
    *count = kept;
}

oomsight_status oomsight_plan_question(oomsight_plan *plan, oomsight_question *ret_question,
                                       oomsight_error *reterr)
{
    oos_serve_entry entry;
    size_t at;
    if (!entry_find(plan, &entry, &at) || entry.bench || entry.keywords || entry.client || entry.own ||
        !plan->serve.model)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "the installed engine answers for `%s` alone",
                        plan->engine->dialect->start);
    const char **list = OOS_NEW_ARRAY(plan->arena, const char *, plan->word_count + 1),
               **environment = OOS_NEW_ARRAY(plan->arena, const char *, plan->word_count + 1);
    if (!list || !environment) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
    char printed[32];
    oos_version_print(plan->start.version, printed, sizeof printed);
    const char *release = oos_arena_copy(plan->arena, oos_view_of(printed));
    oomsight_question q = {.engine = plan->engine->words->name,
                           .title = plan->engine->words->title,
                           .release = plan->release_named ? release : NULL,
                           .words = list,
                           .environment = environment,
                           .model = plan->serve.model};
    bool const served = strcmp(plan->words[entry.first - 1], "serve") == 0;
    q.word_count = served ? 0 : 1;
    for (size_t i = entry.first; i < plan->word_count; i++) list[q.word_count++] = plan->words[i];
    if (!served) words_move_model(plan, list, &q.word_count);
    for (size_t i = 0; i < at; i++)
        if (is_assignment(plan->words[i])) environment[q.environment_count++] = plan->words[i];
    const oos_device_facts *device = &plan->plan.device;
    q.gpu = device->name;
    q.total_bytes = device->total_bytes;
    q.capability = device->capability;
    q.count = (unsigned)oos_min(
        device->count_given ? device->count : oos_max(device->count, plan->plan.serving.ranks), 64);
    *ret_question = q;
    return OOMSIGHT_OK;
}

oomsight_status oomsight_plan_create_asked(const oomsight_plan_params *params, const oomsight_asker *asker,
                                           oomsight_plan **ret_plan, oomsight_error *reterr)
{
    if (!asker) return oomsight_plan_create(params, ret_plan, reterr);
    oomsight_plan *alone = NULL;
    oomsight_question question;
    oomsight_exact exact = {0};
    oomsight_error error = {0};
    oomsight_plan_params first = *params;
    first.skip_fixes = 1;
    OOS_TRY(oomsight_plan_create(&first, &alone, reterr));
    if (oomsight_plan_question(alone, &question, &error) != OOMSIGHT_OK) {
        exact.problem = strdup(error.text);
    } else {
        if (params->model && oos_file_is_dir(params->model->name)) question.place = params->model->name;
        asker->ask(asker->own, &question, &exact);
    }
    oomsight_status const status = oomsight_plan_create_exact(params, &exact, ret_plan, reterr);
    free((char *)exact.answer);
    free((char *)exact.problem);
    oomsight_plan_free(alone);
    return status;
}

oomsight_answer_state oomsight_answer_look(const char *bytes, size_t len, uint64_t id, size_t *ret_len)
{
    const char *end = len ? memchr(bytes, '\n', len) : NULL;
    size_t const line = end ? (size_t)(end - bytes) : len;
    if (line >= OOMSIGHT_ANSWER_BYTES) return OOMSIGHT_ANSWER_BROKEN;
    if (!end) return OOMSIGHT_ANSWER_PART;
    oos_arena *arena = oos_arena_create(4096);
    oos_exact *answer = arena ? OOS_NEW(arena, oos_exact) : NULL;
    bool const whole = answer && len == line + 1 && /* nothing was asked that comes behind it */
                       oos_exact_read(arena, (oos_view){bytes, line}, answer) && answer->id == id;
    oos_arena_free(arena);
    *ret_len = line;
    return whole ? OOMSIGHT_ANSWER_WHOLE : OOMSIGHT_ANSWER_BROKEN;
}

static bool settings_same(const oos_setting *a, const oos_setting *b)
{
    if (a->kind != b->kind || a->whole != b->whole || a->most != b->most || a->real != b->real) return false;
    return a->text == b->text || (a->text && b->text && strcmp(a->text, b->text) == 0);
}

static void change_add(oos_exact_told *told, oos_setting plan, oos_setting engine)
{
    if (!settings_same(&plan, &engine) && told->change_count < OOS_EXACT_VALUES_MAX)
        told->changes[told->change_count++] = (struct oos_exact_change){plan, engine};
}

static void count_add(oos_exact_told *told, const char *name, uint64_t plan, uint64_t engine)
{
    change_add(told, oos_setting_whole(name, plan), oos_setting_whole(name, engine));
}

static void changes_find(const oos_plan *before, const oos_plan *after, oos_exact_told *told)
{
    const oos_kv_layout *was = &before->layout, *is = &after->layout;
    const oos_exact *answer = told->answer;
    for (size_t i = 0; i < before->told.setting_count && i < after->told.setting_count; i++)
        change_add(told, before->told.settings[i], after->told.settings[i]);
    if (before->serving.pp == after->serving.pp && after->sizes.stage < after->serving.pp)
        count_add(told, "param_bytes", before->sizes.stage_param_bytes[after->sizes.stage],
                  after->sizes.stage_param_bytes[after->sizes.stage]);
    if (!told->sized || was->blocks_given) return;
    count_add(told, "block_tokens", was->block_tokens, is->block_tokens);
    if (is->page_bytes != is->block_bytes) count_add(told, "page_bytes", was->page_bytes, is->page_bytes);
    count_add(told, "block_bytes", was->block_bytes, is->block_bytes);
    if (answer->blocks && is->block_bytes)
        count_add(told, "kv_blocks", answer->budget_bytes / is->block_bytes, answer->blocks);
}

static void value_put(oos_text *text, const oos_setting *setting)
{
    switch (setting->kind) {
    case OOS_SETTING_TEXT: oos_text_put(text, setting->text ? setting->text : "none"); break;
    case OOS_SETTING_REAL: oos_text_printf(text, "%g", setting->real); break;
    case OOS_SETTING_YES: oos_text_put(text, setting->whole ? "yes" : "no"); break;
    case OOS_SETTING_WHOLE:
    case OOS_SETTING_SIZES:
    case OOS_SETTING_GIB: oos_text_printf(text, "%llu", (unsigned long long)setting->whole); break;
    }
}

static const char *changes_say(oos_arena *arena, const char *title, const char *version,
                               const oos_exact_told *told)
{
    oos_text text = {0};
    oos_text_printf(&text, "From the installed %s %s: ", title, version);
    for (size_t i = 0; i < told->change_count; i++) {
        const oos_setting *is = &told->changes[i].engine;
        oos_text_printf(&text, "%s%s ", i ? ", " : "", is->called ? is->called : is->name);
        value_put(&text, is);
        oos_text_put(&text, " (plan: ");
        value_put(&text, &told->changes[i].plan);
        oos_text_put(&text, ")");
    }
    const char *copy = text.failed ? NULL : oos_arena_copy(arena, (oos_view){text.ptr, text.len});
    oos_text_free(&text);
    return copy;
}

/* What the engine refuses is refused, whatever plan would have said. */
static oomsight_status refuse(oomsight_plan *plan, const oos_exact *answer, oos_exact_told *told,
                              oomsight_error *reterr)
{
    oos_plan *p = &plan->plan;
    told->refused_after_all = p->refusal.sentence == NULL || p->refusal.may_be_over;
    if (p->refusal.sentence && p->phase_count && p->phases[0].refusal) { /* its own words, once */
        memmove(p->phases, p->phases + 1, (p->phase_count - 1) * sizeof *p->phases);
        p->phase_count--;
    }
    if (!p->refusal.sentence) p->refusal.phase = OOS_PHASE_ARGUMENTS;
    p->refusal.sentence = answer->sentence;
    p->refusal.may_be_over = false;
    return oos_plan_refuse(plan->arena, p, reterr);
}

static oomsight_status take(oomsight_plan *plan, const oos_exact *answer, oos_exact_told *told,
                            oomsight_error *reterr)
{
    oos_plan const before = plan->plan;
    oos_start start = plan->start;
    oomsight_status status = OOMSIGHT_MALFORMED;
    start.exact = answer;
    if (answer->kv_layers_json && !start.kv_layers_json) {
        start.kv_layers_json = answer->kv_layers_json;
        status = plan->engine->plan(plan->arena, &start, plan->facts, &plan->plan, NULL);
        told->sized = status == OOMSIGHT_OK && answer->stage_count;
        start.kv_layers_json = NULL;
    }
    if (status != OOMSIGHT_OK) /* layers of a kind that is not known here */
        OOS_TRY(plan->engine->plan(plan->arena, &start, plan->facts, &plan->plan, reterr));
    told->sized |= answer->stage_count && answer->tokens;
    told->taken_after_all = before.refusal.sentence != NULL;
    changes_find(&before, &plan->plan, told);
    return OOMSIGHT_OK;
}

/* Why it is not used; NULL: it is. */
static const char *unusable(oomsight_plan *plan, const oos_exact *answer)
{
    const char *title = plan->engine->words->title;
    oos_version version = 0;
    if (strcmp(answer->engine, plan->engine->words->name) != 0)
        return oos_arena_format(plan->arena, "the answer is of %s", answer->engine);
    if (!answer->version) return answer->sentence ? answer->sentence : "it could not be imported";
    if (!oos_version_parse(oos_view_of(answer->version), &version) || version != plan->start.version) {
        char planned[32];
        oos_version_print(plan->start.version, planned, sizeof planned);
        return oos_arena_format(plan->arena, "%s %s is installed, and %s is planned", title, answer->version,
                                planned);
    }
    if (answer->verdict == OOS_EXACT_UNKNOWN || (answer->verdict == OOS_EXACT_REFUSED && !answer->sentence))
        return answer->sentence ? answer->sentence : "it has no answer";
    return NULL;
}

static const char *say(oomsight_plan *plan, const oos_exact_told *told)
{
    const char *title = plan->engine->words->title;
    oos_arena *arena = plan->arena;
    if (told->problem) {
        size_t len = strlen(told->problem);
        while (len && told->problem[len - 1] == '.') len--;
        return oos_arena_format(arena, "The installed %s was not used: %.*s.", title, (int)len,
                                told->problem);
    }
    const char *version = told->answer->version;
    if (told->answer->verdict == OOS_EXACT_REFUSED)
        return oos_arena_format(arena, "Refused by the installed %s %s.", title, version);
    if (told->change_count) return changes_say(arena, title, version, told);
    return oos_arena_format(
        arena,
        told->taken_after_all ? "The installed %s %s takes this command, which plan alone refuses."
        : told->sized         ? "The installed %s %s takes this command: the same values, weights and pages."
                              : "The installed %s %s takes this command and resolves the same values.",
        title, version);
}

oomsight_status oos_ask_exact(oomsight_plan *plan, const oos_plan_ask *ask, oomsight_error *reterr)
{
    oos_exact_told *told = OOS_NEW(plan->arena, oos_exact_told);
    if (!told) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for an answer");
    const oos_exact *answer = told->answer = ask->answer;
    told->problem = answer ? unusable(plan, answer) : /* the caller's is let go */
                        oos_shown(plan->arena, oos_arena_copy(plan->arena, oos_view_of(ask->exact->problem)));
    if (!told->problem && answer->verdict == OOS_EXACT_REFUSED)
        OOS_TRY(refuse(plan, answer, told, reterr));
    else if (!told->problem)
        OOS_TRY(take(plan, answer, told, reterr));
    told->said = say(plan, told);
    if (!told->said) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for an answer");
    plan->plan.exact = told;
    return OOMSIGHT_OK;
}

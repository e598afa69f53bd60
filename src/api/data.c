/* Public handles of data and models, and what serves every command. */
#include "api/api.h"
#include "base/place.h"
#include "base/secret.h"
#include "base/shown.h"
#include "base/text.h"
#include "model/model.h"
#include "report/report.h"

#include <stdlib.h>

const char *oomsight_version(void)
{
    return OOMSIGHT_VERSION;
}

void oomsight_text_free(char *text)
{
    free(text);
}

int oomsight_size_parse(const char *word, uint64_t *ret_bytes)
{
    return oos_size_given(oos_view_of(word), ret_bytes);
}

oomsight_status oomsight_words(const char *language, const char *english, char **ret_text,
                               oomsight_error *reterr)
{
    oomsight_render_params params = OOMSIGHT_RENDER_PARAMS_INIT;
    params.language = language;
    oos_text text = {0};
    if (oos_words_chinese(&params))
        oos_words_put(&text, oos_view_of(english));
    else
        oos_text_put(&text, english);
    return oos_text_take(&text, ret_text, reterr);
}

oomsight_status oomsight_output_write(const char *path, const char *text, oomsight_error *reterr)
{
    return oos_place_write(path, text, strlen(text), reterr);
}

oomsight_status oomsight_output_open(const char *path, int append, int *ret_fd, oomsight_error *reterr)
{
    return oos_place_open(path, append != 0, append ? 0640 : 0666, ret_fd, reterr);
}

oomsight_status oos_api_facts(const oomsight_data *shared, const oos_engine *engine,
                              const oos_engine_facts **ret_facts, oomsight_error *reterr)
{
    oomsight_data *data = (oomsight_data *)shared; /* what is read late is behind the lock */
    size_t const at = oos_engine_place(engine->words);
    oomsight_status status = OOMSIGHT_OK;
    pthread_mutex_lock(&data->lock);
    if (!data->known[at])
        status = oos_engine_facts_load(data->arena, engine, data->dir, &data->facts[at], reterr);
    data->known[at] |= status == OOMSIGHT_OK;
    pthread_mutex_unlock(&data->lock);
    *ret_facts = &data->facts[at];
    return status;
}

oomsight_status oos_api_first_facts(const oomsight_data *data, const oos_engine_facts **ret_facts,
                                    oomsight_error *reterr)
{
    return oos_api_facts(data, oos_engine_find(oos_engine_default), ret_facts, reterr);
}

oomsight_status oomsight_data_open(const char *dir, oomsight_data **ret_data, oomsight_error *reterr)
{
    oos_arena *arena = oos_arena_create(256 << 10);
    oomsight_data *data = arena ? OOS_NEW(arena, oomsight_data) : NULL;
    if (!data) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the data");
    }
    data->arena = arena;
    pthread_mutex_init(&data->lock, NULL);
    data->dir = dir ? oos_arena_copy(arena, oos_view_of(dir)) : NULL;
    oomsight_status const status = oos_gpus_load(arena, data->dir, &data->gpus, reterr);
    if (status != OOMSIGHT_OK) {
        oomsight_data_close(data);
        return status;
    }
    *ret_data = data;
    return OOMSIGHT_OK;
}

void oomsight_data_close(oomsight_data *data)
{
    if (!data) return;
    pthread_mutex_destroy(&data->lock);
    oos_arena_free(data->arena);
}

/* Every engine with the releases that are known of it. */
static oomsight_status engines_render(const oomsight_data *data, const oomsight_render_params *params,
                                      oos_text *text, oomsight_error *reterr)
{
    const oos_rule_book *books[OOS_ENGINE_COUNT];
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++) {
        const oos_engine_facts *facts;
        OOS_TRY(oos_api_facts(data, oos_engine_find(oos_engine_list[i]), &facts, reterr));
        books[i] = facts->rules;
    }
    oos_report_engines(text, books, params);
    return OOMSIGHT_OK;
}

oomsight_status oomsight_data_render(const oomsight_data *data, const char *what,
                                     const oomsight_render_params *params, char **ret_text,
                                     oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_text text = {0};
    if (strcmp(what, "gpus") == 0)
        oos_report_gpus(&text, &data->gpus, params);
    else if (strcmp(what, "engines") == 0)
        OOS_TRY(engines_render(data, params, &text, reterr));
    else {
        const oos_engine_facts *first;
        OOS_TRY(oos_api_first_facts(data, &first, reterr));
        if (!oos_report_words(&text, what, &data->gpus, first->rules, &first->flags))
            return oos_fail(reterr, OOMSIGHT_USAGE, "no table is called '%s'", what);
    }
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}

oomsight_status oomsight_text_redact(const char *text, char **ret_text, oomsight_error *reterr)
{
    oos_text shown = {0};
    oos_shown_put(&shown, oos_view_of(text), true);
    return oos_text_take(&shown, ret_text, reterr);
}

struct oomsight_redactor {
    oos_redactor own;
};

oomsight_status oomsight_redactor_create(oomsight_redactor **ret_redactor, oomsight_error *reterr)
{
    oomsight_redactor *made = calloc(1, sizeof *made);
    if (!made) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to hide secrets");
    *ret_redactor = made;
    return OOMSIGHT_OK;
}

oomsight_status oomsight_redactor_feed(oomsight_redactor *redactor, const char *bytes, size_t len,
                                       char **ret_text, oomsight_error *reterr)
{
    oos_text hidden = {0}, shown = {0};
    if (len)
        oos_redactor_feed(&redactor->own, (oos_view){bytes, len}, &hidden);
    else
        oos_redactor_finish(&redactor->own, &hidden);
    oos_text_put(&shown, "");
    oos_shown_escape(&shown, (oos_view){hidden.ptr, hidden.len}, true);
    shown.failed |= hidden.failed;
    oos_text_free(&hidden);
    return oos_text_take(&shown, ret_text, reterr);
}

void oomsight_redactor_free(oomsight_redactor *redactor)
{
    if (redactor) oos_redactor_free(&redactor->own);
    free(redactor);
}

oomsight_status oos_api_model_open(const oomsight_data *data, const char *name, int allow_hub,
                                   const char *overrides, oomsight_model **ret_model, oomsight_error *reterr)
{
    oos_arena *arena = oos_arena_create(64 << 10);
    oomsight_model *model = arena ? OOS_NEW(arena, oomsight_model) : NULL;
    if (!model) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the model");
    }
    model->arena = arena;
    model->name = oos_arena_copy(arena, oos_view_of(name));
    oomsight_status const status =
        oos_locate(arena, data ? data->dir : NULL, name, allow_hub != 0, overrides, &model->model, reterr);
    if (status != OOMSIGHT_OK) {
        oos_arena_free(arena);
        return status;
    }
    *ret_model = model;
    return OOMSIGHT_OK;
}

oomsight_status oomsight_model_open(const char *name, int allow_hub, oomsight_model **ret_model,
                                    oomsight_error *reterr)
{
    return oos_api_model_open(NULL, name, allow_hub, NULL, ret_model, reterr);
}

void oomsight_model_close(oomsight_model *model)
{
    if (model) oos_arena_free(model->arena);
}

/* oomsight models: what is known by its id, and a newer list of it. */
#include "api/api.h"
#include "base/ascii.h"
#include "base/file.h"
#include "base/json.h"
#include "base/place.h"

#include <stdlib.h>
#include <sys/stat.h>

/* ---- what is known ---- */

static bool holds(oos_view id, const char *word)
{
    size_t const len = strlen(word);
    for (size_t i = 0; i + len <= id.len; i++)
        if (oos_same_start(id.ptr + i, word, len)) return true;
    return false;
}

static void row_of(const oos_listed *listed, oos_model_row *ret_row)
{
    *ret_row = (oos_model_row){
        .id = listed->id, .level = listed->level, .rests_on = listed->rests_on, .wide = listed->wide};
}

/* Ids with the word, NULL: all. */
static oomsight_status rows_of(oos_arena *arena, oos_view text, const char *word, oos_model_row *rows,
                               size_t *ret_count, oomsight_error *reterr)
{
    oos_view id, value;
    oos_walk walk = oos_walk_begin(text);
    *ret_count = 0;
    while (*ret_count < OOS_CATALOGUE_IDS_MAX && oos_walk_next(&walk, &id, &value)) {
        oos_listed listed;
        if (word && !holds(id, word)) continue;
        const char *name = oos_scan_text(arena, id);
        if (!name) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a name");
        OOS_TRY(oos_catalogue_entry(arena, text, name, &listed, reterr));
        row_of(&listed, &rows[(*ret_count)++]);
    }
    return OOMSIGHT_OK;
}

/* One model with its number of parameters: an id, or a directory. NOT_FOUND: neither. */
static oomsight_status row_of_one(oos_arena *arena, const char *data_dir, oos_view text, const char *word,
                                  oos_model_row *ret_row, oomsight_error *reterr)
{
    oos_model model;
    oos_listed listed;
    if (oos_file_is_dir(word)) {
        OOS_TRY(oos_model_open_dir(arena, data_dir, word, NULL, &model, reterr));
        *ret_row = (oos_model_row){.id = word, .level = "whole"};
    } else {
        OOS_TRY(oos_catalogue_find_in(arena, text, word, &listed, reterr));
        OOS_TRY(oos_catalogue_open(arena, data_dir, &listed, NULL, &model, reterr));
        row_of(&listed, ret_row);
    }
    ret_row->counted = true;
    ret_row->architecture = model.architecture;
    ret_row->parameters = oos_model_parameters(&model);
    return OOMSIGHT_OK;
}

oomsight_status oomsight_models_render(const oomsight_data *data, const char *word,
                                       const oomsight_render_params *params, size_t *ret_count,
                                       char **ret_text, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_arena *arena = oos_arena_create(256 << 10);
    oos_model_row *rows = arena ? OOS_NEW_ARRAY(arena, oos_model_row, OOS_CATALOGUE_IDS_MAX) : NULL;
    oos_view file;
    oos_text text = {0};
    *ret_count = 1;
    oomsight_status status = rows ? oos_catalogue_text(arena, data->dir, &file, reterr)
                                  : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the models");
    if (status == OOMSIGHT_OK && word) {
        status = row_of_one(arena, data->dir, file, word, rows, reterr);
        if (status == OOMSIGHT_NOT_FOUND && !oos_file_is_dir(word))
            status = rows_of(arena, file, word, rows, ret_count, reterr);
    } else if (status == OOMSIGHT_OK)
        status = rows_of(arena, file, NULL, rows, ret_count, reterr);
    if (status == OOMSIGHT_OK) oos_report_models(&text, rows, *ret_count, params);
    oos_arena_free(arena);
    if (status != OOMSIGHT_OK) {
        oos_text_free(&text);
        return status;
    }
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}

/* ---- a newer list ---- */

typedef struct given_id {
    const char *id;
    const json_t *entry;
} given_id;

static int by_id(const void *a, const void *b)
{
    return strcmp(((const given_id *)a)->id, ((const given_id *)b)->id);
}

/* Letters, digits and what ids have besides; no other could be printed as it is, or stand alone in its line. */
static bool is_id(const char *id)
{
    static const char more[] = "/-_.";
    size_t const len = strlen(id);
    const char *slash = strchr(id, '/');
    if (len > 200 || !slash || slash == id || !slash[1] || strchr(slash + 1, '/')) return false;
    for (size_t i = 0; i < len; i++)
        if (!oos_is_alnum(id[i]) && !strchr(more, id[i])) return false;
    return true;
}

/* `of` first: by it the checkpoints of a model are found. */
static char *line_of(const json_t *entry)
{
    json_t *of = json_object_get(entry, "of"), *ordered = of ? json_object() : json_incref((json_t *)entry);
    bool const done = !of || (json_object_set(ordered, "of", of) == 0 &&
                              json_object_update_missing(ordered, (json_t *)entry) == 0);
    char *line =
        ordered && done ? oos_json_text(ordered, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    json_decref(ordered);
    return line;
}

static oomsight_status lines_of(oos_arena *arena, const json_t *models, oos_text *text,
                                oomsight_error *reterr)
{
    size_t const count = json_object_size(models);
    given_id *ids = OOS_NEW_ARRAY(arena, given_id, count + 1);
    size_t at = 0;
    if (!ids) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the models");
    void *it = json_object_iter((json_t *)models);
    for (; it; it = json_object_iter_next((json_t *)models, it)) {
        const char *key = json_object_iter_key(it);
        if (!is_id(key)) return oos_fail(reterr, OOMSIGHT_MALFORMED, "%.120s is not the id of a model", key);
        ids[at++] = (given_id){key, json_object_iter_value(it)};
    }
    qsort(ids, count, sizeof *ids, by_id);
    oos_text_put(text, "{\n\"\":\"" OOS_CATALOGUE_SCHEMA " " OOMSIGHT_VERSION "\",\n");
    for (size_t i = 0; i < count; i++) {
        char *line = line_of(ids[i].entry);
        if (!line) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the models");
        oos_text_printf(text, "\"%s\":%s%s\n", ids[i].id, line, i + 1 < count ? "," : "");
        free(line);
    }
    oos_text_put(text, "}\n");
    return text->failed ? oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the models") : OOMSIGHT_OK;
}

/* Every entry has to be a model. */
static oomsight_status try_all(oos_arena *arena, const oos_text *text, size_t *ret_count,
                               oomsight_error *reterr)
{
    oos_view const whole = {text->ptr, text->len};
    oos_view id, value;
    oos_walk walk = oos_walk_begin(whole);
    *ret_count = 0;
    while (oos_walk_next(&walk, &id, &value)) {
        oos_model_row row;
        oos_arena *own = oos_arena_create(64 << 10);
        const char *name = oos_scan_text(arena, id);
        oomsight_status const status = own && name
                                           ? row_of_one(own, NULL, whole, name, &row, reterr)
                                           : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a model");
        oos_arena_free(own);
        if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, name);
        (*ret_count)++;
    }
    return OOMSIGHT_OK;
}

static oomsight_status keep(oos_arena *arena, const oos_text *text, const char **ret_place,
                            oomsight_error *reterr)
{
    const char *place = oos_catalogue_place(arena);
    if (!place) return oos_fail(reterr, OOMSIGHT_NOT_FOUND, "no HOME to keep the models in");
    *ret_place = place;
    return oos_place_keep(place, text->ptr, text->len, reterr);
}

static oomsight_status update(oos_arena *arena, const char *path, char **ret_text, oomsight_error *reterr)
{
    oos_view bytes, kept;
    json_t *root;
    oos_text lines = {0}, said = {0};
    const char *place = NULL, *schema = NULL;
    size_t count = 0;
    OOS_TRY(oos_file_read(arena, path, OOS_CATALOGUE_BYTES_MAX, &bytes, reterr));
    oomsight_status status = oos_json_load(arena, bytes, &root, reterr);
    if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, path);
    const json_t *models = root;
    if (oos_json_str(root, "schema", &schema)) models = json_object_get(root, "models");
    if (schema && strcmp(schema, OOS_CATALOGUE_SCHEMA) != 0)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                        "the list of models is of the form %.60s, and %s is read", schema,
                        OOS_CATALOGUE_SCHEMA);
    if (!json_is_object(models) || !json_object_size(models) ||
        json_object_size(models) > OOS_CATALOGUE_IDS_MAX)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "not a list of models, or of more than %d",
                        OOS_CATALOGUE_IDS_MAX);
    status = lines_of(arena, models, &lines, reterr);
    if (status == OOMSIGHT_OK) status = try_all(arena, &lines, &count, reterr);
    if (status == OOMSIGHT_OK) status = keep(arena, &lines, &place, reterr);
    if (status == OOMSIGHT_OK && !oos_catalogue_is_updated(arena, &kept))
        status = oos_fail(reterr, OOMSIGHT_IO, "%.200s is not used: others can write it", place);
    oos_text_free(&lines);
    OOS_TRY(status);
    oos_text_printf(&said, "%zu models, kept in %s\n", count, place);
    return oos_text_take(&said, ret_text, reterr);
}

oomsight_status oomsight_models_update(const char *path, char **ret_text, oomsight_error *reterr)
{
    oos_arena *arena = oos_arena_create(256 << 10);
    if (!arena) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the models");
    oomsight_status const status = update(arena, path, ret_text, reterr);
    oos_arena_free(arena);
    return status;
}

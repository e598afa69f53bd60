/* What is it? A text that somebody pasted or dropped is a command, a model's config, a memory snapshot or trace, or a log. Told by the
 * readers of each: nothing is planned or explained here. */
#include "api/api.h"
#include "base/ascii.h"
#include "base/json.h"
#include "base/stream.h"
#include "command/command.h"
#include "explain/explain.h"
#include "facts/facts.h"
#include "log/log.h"
#include "report/report.h"
#include "trace/trace.h"

enum { LOOKED_AT = 16 << 20, TRACE_HEAD = 64 << 10, CONFIG_MAX = 4 << 20, EXPLAINED_MAX = 1 << 20 };

static const oos_what what_command = {"command", "a command that starts an engine", "check", NULL, true};
static const oos_what what_other = {
    "other", "a command of an engine that is not planned; its log can be explained", NULL, NULL, false};
static const oos_what what_config = {"config", "a model's config.json: it is planned together with its model",
                                     NULL, NULL, false};
static const oos_what what_trace = {"trace", "a memory snapshot or trace", "replay", NULL, false};
static const oos_what what_log = {"log", "a log", "explain", NULL, false};
static const oos_what what_empty = {"empty", "nothing: it is empty", NULL, NULL, false};
static const oos_what what_nothing = {"nothing", "nothing that is known here", NULL, NULL, false};

/* The text, as much of it as is looked at. */
static oomsight_status text_read(oos_stream *stream, oos_text *text, oomsight_error *reterr)
{
    oos_view chunk;
    do {
        OOS_TRY(oos_stream_next(stream, &chunk, reterr));
        oos_text_add(text, oos_view_slice(chunk, 0, LOOKED_AT - text->len));
    } while (chunk.len && text->len < LOOKED_AT && !text->failed);
    return text->failed ? oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the text") : OOMSIGHT_OK;
}

static bool is_blank(oos_view text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!oos_is_space(text.ptr[i])) return false;
    return true;
}

/* zip and tar: `explain` takes the logs out of them. */
static bool is_archive(oos_view text)
{
    return oos_view_starts(text, "PK\x03\x04") || oos_view_starts(oos_view_slice(text, 257, 8), "ustar");
}

static bool is_config(oos_view text)
{
    json_t *root = text.len <= CONFIG_MAX ? oos_json_parse(text, 0) : NULL;
    bool const config = json_is_array(json_object_get(root, "architectures")) ||
                        json_is_string(json_object_get(root, "model_type"));
    json_decref(root);
    return config;
}

/* Does `explain` know a line of it? */
static oomsight_status has_incident(oos_arena *arena, const oomsight_data *data, oos_view text, bool *ret_has,
                                    oomsight_error *reterr)
{
    oos_knowledge knowledge;
    oos_explanation explanation = {0};
    oos_logstream *stream;
    OOS_TRY(oos_knowledge_load(arena, data->dir, &knowledge, reterr));
    OOS_TRY(oos_logstream_open_bytes(oos_view_slice(text, 0, EXPLAINED_MAX), 0, &stream, reterr));
    oomsight_status const status = oos_explain_stream(arena, &knowledge, stream, &explanation, reterr);
    oos_logstream_close(stream);
    for (size_t i = 0; i < explanation.count && !*ret_has; i++)
        *ret_has = explanation.incidents[i].is_oom || explanation.incidents[i].evidence_count;
    return status;
}

static oomsight_status recognise(oos_arena *arena, const oomsight_data *data, oos_view text,
                                 oos_what *ret_what, oomsight_error *reterr)
{
    const oos_found *list;
    size_t count;
    oos_found_doubt doubt;
    size_t start = 0;
    *ret_what = what_empty;
    if (is_blank(text)) return OOMSIGHT_OK;
    *ret_what = what_trace;
    if (oos_trace_begins(oos_view_slice(text, 0, TRACE_HEAD))) return OOMSIGHT_OK;
    *ret_what = what_log;
    if (is_archive(text) || text.len == LOOKED_AT) return OOMSIGHT_OK;
    *ret_what = what_nothing;
    if (memchr(text.ptr, '\0', text.len)) return OOMSIGHT_OK;
    while (oos_is_space(text.ptr[start])) start++;
    bool const json = text.ptr[start] == '{' || oos_view_starts(oos_view_slice(text, start, 2), "[{");
    *ret_what = what_config;
    if (json && is_config(text)) return OOMSIGHT_OK;
    OOS_TRY(oos_found_read(arena, "-", text, &list, &count, &doubt, reterr));
    *ret_what = what_log; /* with the command in it, too, as people paste it */
    if (!(json && count) && oos_lines_of_log(text)) return OOMSIGHT_OK;
    const oos_engine_words *engine = count ? oos_engine_words_of(list->words, list->count) : NULL;
    *ret_what = count ? what_command : doubt.other ? what_other : what_nothing;
    ret_what->title = !count ? doubt.other : engine ? engine->title : oos_engine_default->title;
    if (count) return OOMSIGHT_OK;
    bool has = false; /* also below the command of an engine that is not planned */
    OOS_TRY(has_incident(arena, data, text, &has, reterr));
    if (has) *ret_what = what_log;
    return OOMSIGHT_OK;
}

static oomsight_status answer(oos_arena *arena, const oomsight_data *data, const char *path,
                              oos_what *ret_what, oomsight_error *reterr)
{
    oos_stream *stream = NULL;
    oos_text text = {0};
    OOS_TRY(oos_stream_open(path, &stream, reterr));
    oomsight_status status = text_read(stream, &text, reterr);
    oos_stream_close(stream);
    if (status == OOMSIGHT_OK)
        status = recognise(arena, data, (oos_view){text.ptr ? text.ptr : "", text.len}, ret_what, reterr);
    oos_text_free(&text);
    return status == OOMSIGHT_OK ? status : oos_fail_in(reterr, status, path);
}

oomsight_status oomsight_what_render(const oomsight_data *data, const char *path,
                                     const oomsight_render_params *params, char **ret_text,
                                     oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    if (!data || !path) return oos_fail(reterr, OOMSIGHT_USAGE, "no data or no text");
    if (params->format != OOMSIGHT_FORMAT_TEXT && params->format != OOMSIGHT_FORMAT_JSON)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "what a text is, is written as text or JSON");
    oos_arena *arena = oos_arena_create(256 << 10);
    if (!arena) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the text");
    oos_what what;
    oos_text text = {0};
    oos_style const style = oos_style_of(&text, params);
    oomsight_status status = answer(arena, data, path, &what, reterr);
    if (status == OOMSIGHT_OK) oos_report_what(&what, path, &style, params->format == OOMSIGHT_FORMAT_JSON);
    if (status == OOMSIGHT_OK) status = OOS_WHOLE_TEXT(params, &text, ret_text);
    oos_text_free(&text);
    oos_arena_free(arena);
    return status;
}

/* The public side of the knowledge base: showing it and proving it. */
#include "api/api.h"
#include "base/file.h"
#include "base/text.h"
#include "explain/explain.h"
#include "report/report.h"

#include <stdlib.h>

oomsight_status oomsight_kb_render(const oomsight_data *data, const char *id,
                                   const oomsight_render_params *params, char **ret_text,
                                   oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_arena *arena = oos_arena_create(256 << 10);
    if (!arena) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the knowledge base");
    oos_knowledge knowledge;
    oos_text text = {0};
    oos_style const style = oos_style_of(&text, params);
    bool const json = params->format == OOMSIGHT_FORMAT_JSON;
    oomsight_status status = oos_knowledge_load(arena, data->dir, &knowledge, reterr);
    if (status == OOMSIGHT_OK && !id) {
        oos_report_kb_list(&knowledge.kb, &style, json);
    } else if (status == OOMSIGHT_OK) {
        const oos_kb_record *record = oos_kb_find(&knowledge.kb, id);
        if (record)
            oos_report_kb_record(record, &style, json);
        else
            status = oos_fail_of(reterr, oos_fail(reterr, OOMSIGHT_NOT_FOUND, "no record '%s'", id), "id");
    }
    if (status == OOMSIGHT_OK) status = OOS_WHOLE_TEXT(params, &text, ret_text);
    oos_text_free(&text);
    oos_arena_free(arena);
    return status;
}

oomsight_status oomsight_kb_phases(const oomsight_data *data, const char *phase, const char *engine,
                                   const oomsight_render_params *params, char **ret_text,
                                   oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_phase const only = oos_phase_find(phase);
    OOS_TRY(oos_api_engine_known(engine, reterr));
    const oos_engine_words *words = engine ? oos_engine_words_find(engine) : NULL;
    if (phase && only == OOS_PHASE_COUNT)
        return oos_fail(reterr, OOMSIGHT_USAGE, "'%s' is no phase; 'oomsight kb phases' names them", phase);
    oos_arena *arena = oos_arena_create(256 << 10);
    if (!arena) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the knowledge base");
    oos_knowledge knowledge;
    oos_text text = {0};
    oos_style const style = oos_style_of(&text, params);
    oomsight_status status = oos_knowledge_load(arena, data->dir, &knowledge, reterr);
    if (status == OOMSIGHT_OK) {
        oos_report_kb_phases(&knowledge.advisers, only, words, &style,
                             params->format == OOMSIGHT_FORMAT_JSON);
        status = OOS_WHOLE_TEXT(params, &text, ret_text);
    }
    oos_text_free(&text);
    oos_arena_free(arena);
    return status;
}

/* Which record a log is explained with, NULL: none. */
static oomsight_status record_of(oos_arena *arena, const oos_knowledge *knowledge, const char *path,
                                 const oos_kb_record **ret_record, oomsight_error *reterr)
{
    oos_logstream *stream;
    oos_explanation explanation = {0};
    OOS_TRY(oos_logstream_open(path, 0, &stream, reterr));
    oomsight_status const status = oos_explain_stream(arena, knowledge, stream, &explanation, reterr);
    oos_logstream_close(stream);
    *ret_record = status == OOMSIGHT_OK && explanation.count ? explanation.incidents[0].record : NULL;
    return status;
}

static oomsight_status prove(const oos_knowledge *knowledge, const oos_kb_record *record, const char *dir,
                             oos_text *problems, size_t *count, oomsight_error *reterr)
{
    static const char *const kinds[] = {"positive", "negative"};
    oos_arena *arena = oos_arena_create(64 << 10);
    oomsight_status status = arena ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    for (size_t i = 0; i < 2 && status == OOMSIGHT_OK; i++) {
        const oos_kb_record *found;
        char *path = oos_arena_format(arena, "%s/%s/%s.log", dir, record->id, kinds[i]);
        if (!path || !oos_file_exists(path)) {
            oos_text_printf(problems, "%s: no %s fixture\n", record->id, kinds[i]);
            ++*count;
            continue;
        }
        status = record_of(arena, knowledge, path, &found, reterr);
        if (status != OOMSIGHT_OK || (found == record) == (i == 0)) continue;
        oos_text_printf(problems, "%s: its %s fixture is explained by %s\n", record->id, kinds[i],
                        found ? found->id : "no record");
        ++*count;
    }
    oos_arena_free(arena);
    return status;
}

static void lint_links(const oos_kb *kb, const oos_kb_record *record, oos_text *problems, size_t *count)
{
    for (size_t i = 0; i < record->confused_count + record->leads_count; i++) {
        const char *id = i < record->confused_count ? record->confused_with[i]
                                                    : record->leads_to[i - record->confused_count];
        if (oos_kb_find(kb, id)) continue;
        oos_text_printf(problems, "%s: names '%s', which is no record\n", record->id, id);
        ++*count;
    }
    if (record->fix_count == 0) {
        oos_text_printf(problems, "%s: no fix\n", record->id);
        ++*count;
    }
}

oomsight_status oomsight_kb_check(const oomsight_data *data, const char *fixtures_dir, size_t *ret_problems,
                                  char **ret_text, oomsight_error *reterr)
{
    oos_arena *arena = oos_arena_create(256 << 10);
    if (!arena) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the knowledge base");
    oos_knowledge knowledge;
    oos_text text = {0};
    size_t count = 0;
    oomsight_status status = oos_knowledge_load(arena, data->dir, &knowledge, reterr);
    for (size_t i = 0; status == OOMSIGHT_OK && i < knowledge.signals.count; i++) {
        oomsight_error error = {0};
        const oos_signal *signal = &knowledge.signals.list[i];
        if (!signal->pattern || oos_pattern_check(signal->pattern, &error) == OOMSIGHT_OK) continue;
        oos_text_printf(&text, "%s: %s\n", signal->id, error.text);
        count++;
    }
    for (size_t i = 0; status == OOMSIGHT_OK && i < knowledge.kb.count; i++) {
        lint_links(&knowledge.kb, &knowledge.kb.list[i], &text, &count);
        if (fixtures_dir)
            status = prove(&knowledge, &knowledge.kb.list[i], fixtures_dir, &text, &count, reterr);
    }
    if (status == OOMSIGHT_OK) {
        oos_text_printf(&text, "%zu records, %zu signals, %zu problems\n", knowledge.kb.count,
                        knowledge.signals.count, count);
        *ret_problems = count;
        status = oos_text_take(&text, ret_text, reterr);
    }
    oos_text_free(&text);
    oos_arena_free(arena);
    return status;
}

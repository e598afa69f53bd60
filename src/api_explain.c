/* The public side of explain. */
#include "api.h"
#include "base/text.h"
#include "explain/explain.h"
#include "report/explain.h"

struct oomsight_explanation {
    oos_arena *arena;
    oos_knowledge knowledge;
    oos_explanation explanation;
};

static oomsight_status read_inputs(oomsight_explanation *e, const oomsight_explain_params *params,
                                   oomsight_error *reterr)
{
    OOS_TRY(oos_knowledge_load(e->arena, params->data->dir, &e->knowledge, reterr));
    size_t const inputs = params->text ? 1 : params->path_count;
    for (size_t i = 0; i < inputs; i++) {
        oos_logstream *stream;
        if (params->text)
            OOS_TRY(oos_logstream_open_bytes((oos_view){params->text, params->text_bytes},
                                             params->expand_limit_bytes, &stream, reterr));
        else
            OOS_TRY(oos_logstream_open(params->paths[i], params->expand_limit_bytes, &stream, reterr));
        oomsight_status const status =
            oos_explain_stream(e->arena, &e->knowledge, stream, NULL, &e->explanation, reterr);
        oos_logstream_close(stream);
        if (status != OOMSIGHT_OK)
            return params->text ? status : oos_fail_in(reterr, status, params->paths[i]);
    }
    return OOMSIGHT_OK;
}

oomsight_status oomsight_explain_create(const oomsight_explain_params *params,
                                        oomsight_explanation **ret_explanation, oomsight_error *reterr)
{
    if (!params || !params->data || (!params->text && !params->path_count))
        return oos_fail(reterr, OOMSIGHT_USAGE, "an explanation needs data and a log");
    oos_arena *arena = oos_arena_create(256 << 10);
    oomsight_explanation *e = arena ? OOS_NEW(arena, oomsight_explanation) : NULL;
    if (!e) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for an explanation");
    }
    e->arena = arena;
    oomsight_status const status = read_inputs(e, params, reterr);
    if (status != OOMSIGHT_OK) {
        oos_arena_free(arena);
        return status;
    }
    *ret_explanation = e;
    return OOMSIGHT_OK;
}

void oomsight_explain_free(oomsight_explanation *explanation)
{
    if (explanation) oos_arena_free(explanation->arena);
}

size_t oomsight_explain_count(const oomsight_explanation *explanation)
{
    return explanation->explanation.count;
}

int oomsight_explain_is_oom(const oomsight_explanation *explanation, size_t index)
{
    return index < explanation->explanation.count && explanation->explanation.incidents[index].is_oom;
}

const char *oomsight_explain_phase(const oomsight_explanation *explanation, size_t index)
{
    if (index >= explanation->explanation.count) return NULL;
    return oos_phase_word(explanation->explanation.incidents[index].phase);
}

const char *oomsight_explain_cause(const oomsight_explanation *explanation, size_t index)
{
    return index < explanation->explanation.count ? explanation->explanation.incidents[index].cause : NULL;
}

oomsight_status oomsight_explain_render(const oomsight_explanation *explanation,
                                        const oomsight_render_params *params, char **ret_text,
                                        oomsight_error *reterr)
{
    (void)params;
    oos_text text = {0};
    for (size_t i = 0; i < explanation->explanation.count; i++)
        oos_report_incident_json(&explanation->explanation.incidents[i], &text);
    return oos_text_take(&text, ret_text, reterr);
}

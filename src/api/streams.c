/* The public side of reading lines that another program gives. */
#include "api/api.h"
#include "base/json_write.h"
#include "follow/follow.h"

enum { MOST_STREAMS = 4096 };

struct oomsight_streams {
    oos_arena *arena; /* knowledge and parameters */
    oos_teller teller;
    oos_knowledge knowledge;
    oos_streams *streams;
};

static void on_incident(void *context, const oos_stream_told *told)
{
    oomsight_streams *a = context;
    oos_incident_source const source = {.id = told->id,
                                        .seen = oos_logtime_now(),
                                        .path = told->stream,
                                        .origin = told->origin,
                                        .cursor = told->cursor,
                                        .labels = told->labels,
                                        .label_count = told->label_count};
    oos_api_tell(&a->teller, &source, told->incident);
}

static void on_acknowledged(void *context, const char *stream, const char *cursor)
{
    oomsight_streams *a = context;
    oos_json_writer writer = {.text = &a->teller.text, .plain = true}; /* names are compared */
    oos_json_begin_object(&writer);
    oos_json_field_object(&writer, "acknowledged");
    oos_json_field_str(&writer, "stream", stream);
    oos_json_key(&writer, "cursor");
    oos_json_put_json(&writer, cursor);
    oos_json_end_object(&writer);
    oos_json_end_object(&writer);
    oos_text_put(&a->teller.text, "\n");
}

static oomsight_status open_parts(oomsight_streams *a, const oomsight_streams_params *params,
                                  oomsight_error *reterr)
{
    a->teller.notes = oos_arena_create(64 << 10);
    if (!a->teller.notes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to read streams");
    OOS_TRY(oos_knowledge_load(a->arena, params->data->dir, &a->knowledge, reterr));
    oos_api_knows_models(params->data, &a->knowledge);
    oos_streams_params const inner = {.state_folder = params->state_dir,
                                      .most_streams =
                                          params->most_streams ? params->most_streams : MOST_STREAMS,
                                      .context = a,
                                      .on_incident = on_incident,
                                      .on_acknowledged = on_acknowledged};
    return oos_streams_open(&a->knowledge, &inner, &a->streams, reterr);
}

oomsight_status oomsight_streams_open(const oomsight_streams_params *params, oomsight_streams **ret_streams,
                                      oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_streams_params, params);
    if (!params->data) return oos_fail(reterr, OOMSIGHT_USAGE, "streams need data");
    oos_arena *arena = oos_arena_create(256 << 10);
    oomsight_streams *a = arena ? OOS_NEW(arena, oomsight_streams) : NULL;
    if (!a) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to read streams");
    }
    a->arena = arena;
    a->teller = (oos_teller){.data = params->data,
                             .allow_hub = params->allow_hub,
                             .each = params->each,
                             .render = {.size = sizeof a->teller.render, .format = OOMSIGHT_FORMAT_JSON}};
    oomsight_status const status = OOS_WHOLE_STATUS(params, open_parts(a, params, reterr));
    if (status != OOMSIGHT_OK)
        oomsight_streams_close(a);
    else
        *ret_streams = a;
    return status;
}

void oomsight_streams_close(oomsight_streams *a)
{
    if (!a) return;
    oos_streams_close(a->streams);
    oos_api_tell_no_more(&a->teller);
    oos_arena_free(a->arena);
}

oomsight_status oomsight_streams_push(oomsight_streams *a, const char *text, size_t bytes,
                                      oomsight_error *reterr)
{
    return oos_streams_push(a->streams, (oos_view){text, bytes}, reterr);
}

oomsight_status oomsight_streams_next(oomsight_streams *a, int over, const char **ret_text, size_t *ret_bytes,
                                      oomsight_error *reterr)
{
    if (a->teller.text.len == 0) OOS_TRY(oos_streams_step(a->streams, over, reterr));
    return oos_api_told(&a->teller, ret_text, ret_bytes, reterr);
}

int oomsight_streams_delivered(oomsight_streams *a)
{
    bool const kept = oos_streams_delivered(a->streams, a->teller.incidents > 0);
    oos_api_delivered(&a->teller);
    return kept;
}

int oomsight_streams_found_oom(const oomsight_streams *a)
{
    return a->teller.found_oom;
}

uint64_t oomsight_streams_refused(const oomsight_streams *a)
{
    return oos_streams_look(a->streams).refused;
}

/* ---- what goes to a receiver of OpenTelemetry ---- */

oomsight_status oomsight_otlp_request(const char *lines, size_t bytes, char **ret_text, size_t *ret_records,
                                      oomsight_error *reterr)
{
    oos_text text = {0};
    size_t const records = oos_otlp_request((oos_view){lines, bytes}, &text);
    *ret_records = records;
    *ret_text = NULL;
    if (records) return oos_text_take(&text, ret_text, reterr);
    oos_text_free(&text);
    return OOMSIGHT_OK;
}

int oomsight_otlp_answer(const char *text, size_t bytes, int over, oomsight_otlp_reply *ret_reply)
{
    oos_otlp_reply reply;
    int const complete = oos_otlp_answer((oos_view){text, bytes}, over != 0, &reply);
    oomsight_otlp_reply const given = {
        .size = sizeof given, .status = reply.status, .wait_s = reply.wait_s, .rejected = reply.rejected};
    oos_params_give(ret_reply, &given, sizeof given);
    return complete;
}

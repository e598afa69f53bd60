/* The public side of following a log. The knowledge lives as long as the handle; results live in an arena of their own, which
 * is emptied before it has grown much, so that a log may be followed for years. */
#include "api/explain_handle.h"
#include "follow/follow.h"

enum { PENDING_MAX = 64, RESULTS_BYTES = 256 << 10 };
#define POLL_MAX_BYTES ((uint64_t)64 << 20)

struct oomsight_follow {
    oos_arena *arena;   /* knowledge */
    oos_arena *results; /* incidents and notes */
    const oomsight_data *data;
    int allow_hub;
    oos_knowledge knowledge;
    oos_explanation found;
    oos_explainer *explainer;
    oos_follow *file;
    oos_incident pending[PENDING_MAX]; /* ended since the last poll */
    size_t pending_count;
    uint64_t overflow;
    oomsight_explanation shown;
};

static void on_incident(void *context, const oos_incident *incident, bool again)
{
    oomsight_follow *follow = context;
    (void)again; /* it happened once more, and is told once more */
    if (!incident->failed) return;
    if (follow->pending_count < PENDING_MAX)
        follow->pending[follow->pending_count++] = *incident;
    else
        follow->overflow++;
}

oomsight_status oomsight_follow_open(const oomsight_follow_params *params, oomsight_follow **ret_follow,
                                     oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_follow_params, params);
    if (!params->data || !params->path)
        return oos_fail(reterr, OOMSIGHT_USAGE, "following needs data and a path");
    oos_arena *arena = oos_arena_create(256 << 10);
    oomsight_follow *follow = arena ? OOS_NEW(arena, oomsight_follow) : NULL;
    if (!follow) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to follow a file");
    }
    follow->arena = arena;
    follow->data = params->data;
    follow->allow_hub = params->allow_hub;
    follow->shown.path = oos_arena_copy(arena, oos_view_of(params->path));
    follow->results = oos_arena_create(RESULTS_BYTES);
    oomsight_status status = follow->results ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory");
    if (status == OOMSIGHT_OK)
        status = oos_knowledge_load(arena, params->data->dir, &follow->knowledge, reterr);
    if (status == OOMSIGHT_OK)
        status = oos_explainer_open(follow->results, &follow->knowledge, &follow->found, on_incident, follow,
                                    &follow->explainer, reterr);
    if (status == OOMSIGHT_OK)
        status =
            OOS_WHOLE_STATUS(params, oos_follow_open(params->path, follow->explainer, &follow->file, reterr));
    if (status != OOMSIGHT_OK)
        oomsight_follow_close(follow);
    else
        *ret_follow = follow;
    return status;
}

void oomsight_follow_close(oomsight_follow *follow)
{
    if (!follow) return;
    oos_follow_close(follow->file);
    oos_explainer_close(follow->explainer);
    oos_arena_free(follow->results);
    oos_arena_free(follow->arena);
}

static oomsight_status show(oomsight_follow *follow, oomsight_error *reterr)
{
    follow->shown.notes = OOS_NEW_ARRAY(follow->results, oos_incident_notes, follow->pending_count);
    if (!follow->shown.notes) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for an explanation");
    follow->shown.explanation = follow->found;
    follow->shown.explanation.incidents = follow->pending;
    follow->shown.explanation.count = follow->pending_count;
    follow->shown.explanation.dropped = follow->overflow;
    for (size_t i = 0; i < follow->pending_count; i++)
        oos_api_note_incident(follow->results, follow->data, follow->allow_hub, &follow->pending[i],
                              &follow->shown.notes[i]);
    return OOMSIGHT_OK;
}

oomsight_status oomsight_follow_poll(oomsight_follow *follow, int settle, uint64_t *ret_bytes,
                                     const oomsight_explanation **ret_explanation, oomsight_error *reterr)
{
    /* What was shown is over. When there are many, they are forgotten, and counting begins anew. */
    follow->pending_count = 0;
    follow->overflow = 0;
    if (follow->found.count >= OOS_INCIDENTS_MAX / 2) {
        follow->found = (oos_explanation){0};
        oos_arena_reset(follow->results);
    }
    OOS_TRY(oos_follow_read(follow->file, POLL_MAX_BYTES, ret_bytes, reterr));
    if (settle) OOS_TRY(oos_explainer_settle(follow->explainer, reterr));
    if (follow->pending_count) OOS_TRY(show(follow, reterr));
    *ret_explanation = follow->pending_count ? &follow->shown : NULL;
    return OOMSIGHT_OK;
}

/* The public side of following many logs. Here the agent, plan's fixes, the JSON of an incident and the metrics meet. */
#include "api/api.h"
#include "base/file.h"
#include "base/locale.h"
#include "follow/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_FILES = 4096, TEXT_ENOUGH_BYTES = 1 << 20, FILE_MS = 5000, FILE_QUIET_MS = 30000 };

struct oomsight_agent {
    oos_arena *arena; /* knowledge and parameters */
    oos_teller teller;
    oos_knowledge knowledge;
    oos_agent *agent;
    oos_metrics *metrics;
    const char *metrics_file; /* NULL: none */
    char *metrics_fresh;      /* beside it, moved over it */
    int64_t filed_at;
    uint64_t filed_bytes; /* what was read then */
    bool busy, news, file_told;
    void (*on_trouble)(void *context, const char *path, const char *sentence);
    void *trouble_context;
};

static void on_incident(void *context, oos_tail *tail, const oos_incident *incident)
{
    oomsight_agent *a = context;
    oos_tail_look const look = oos_tail_look_at(tail);
    oos_incident_source const source = {.id = oos_tail_incident_id(tail, incident),
                                        .seen = oos_logtime_now(),
                                        .path = look.path,
                                        .origin = look.origin};
    oos_api_tell(&a->teller, &source, incident);
    int64_t const happened = incident->at != OOS_TIME_NONE ? incident->at : look.written;
    oos_metrics_incident(a->metrics, source.origin, incident, happened, source.seen);
}

static bool is_full(void *context)
{
    const oomsight_agent *a = context;
    return a->teller.text.len >= TEXT_ENOUGH_BYTES;
}

static void on_trouble(void *context, const char *path, const char *sentence)
{
    oomsight_agent *a = context;
    if (a->on_trouble) a->on_trouble(a->trouble_context, path, sentence);
}

static oomsight_status open_parts(oomsight_agent *a, const oomsight_agent_params *params,
                                  oomsight_error *reterr)
{
    if (params->metrics_file) {
        a->metrics_file = oos_arena_copy(a->arena, oos_view_of(params->metrics_file));
        a->metrics_fresh = oos_arena_format(a->arena, "%s.%ld.tmp", params->metrics_file, (long)getpid());
        if (!a->metrics_file || !a->metrics_fresh) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory");
    }
    a->teller.notes = oos_arena_create(64 << 10);
    a->metrics = oos_metrics_create();
    if (!a->teller.notes || !a->metrics) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to follow files");
    OOS_TRY(oos_knowledge_load(a->arena, params->data->dir, &a->knowledge, reterr));
    oos_api_knows_models(params->data, &a->knowledge);
    oos_agent_params const inner = {.paths = params->paths,
                                    .path_count = params->path_count,
                                    .state_folder = params->state_dir,
                                    .most_files = params->most_files ? params->most_files : MOST_FILES,
                                    .context = a,
                                    .on_incident = on_incident,
                                    .is_full = is_full,
                                    .on_trouble = on_trouble};
    return oos_agent_open(&a->knowledge, &inner, &a->agent, reterr);
}

oomsight_status oomsight_agent_open(const oomsight_agent_params *params, oomsight_agent **ret_agent,
                                    oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_agent_params, params);
    if (!params->data || !params->paths || !params->path_count)
        return oos_fail(reterr, OOMSIGHT_USAGE, "following needs data and a path");
    oomsight_render_params render = {.size = sizeof render, .format = OOMSIGHT_FORMAT_JSON};
    if (params->render) OOS_TRY(oos_params_take(&render, sizeof render, params->render, reterr));
    if (render.format != OOMSIGHT_FORMAT_JSON && render.format != OOMSIGHT_FORMAT_TEXT)
        return oos_fail(reterr, OOMSIGHT_USAGE, "logs are followed as text or as JSON lines");
    oos_arena *arena = oos_arena_create(256 << 10);
    oomsight_agent *a = arena ? OOS_NEW(arena, oomsight_agent) : NULL;
    if (!a) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to follow files");
    }
    a->arena = arena;
    a->teller = (oos_teller){.data = params->data,
                             .allow_hub = params->allow_hub,
                             .render = render,
                             .each = params->each || render.format == OOMSIGHT_FORMAT_TEXT};
    a->on_trouble = params->on_trouble;
    a->trouble_context = params->trouble_context;
    oomsight_status const status = OOS_WHOLE_STATUS(params, open_parts(a, params, reterr));
    if (status != OOMSIGHT_OK)
        oomsight_agent_close(a);
    else
        *ret_agent = a;
    return status;
}

/* ---- metrics ---- */

static void write_file(oomsight_agent *a, const char *text)
{
    unlink(a->metrics_fresh); /* of an earlier process of this number */
    int const fd = open(a->metrics_fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool done = out && fputs(text, out) != EOF;
    int why = errno;
    if (out && fclose(out) != 0) {
        why = errno;
        done = false;
    }
    if (done && rename(a->metrics_fresh, a->metrics_file) == 0) {
        a->file_told = false;
        return;
    }
    if (done) why = errno;
    unlink(a->metrics_fresh);
    oos_metrics_write_error(a->metrics);
    char sentence[256];
    snprintf(sentence, sizeof sentence, "metrics cannot be written (%s)", oos_errno_text(why));
    if (!a->file_told) on_trouble(a, a->metrics_file, sentence);
    a->file_told = true;
}

/* Less often while nothing is read and nothing is told. */
static void publish(oomsight_agent *a, bool last)
{
    int64_t const now = oos_clock_ms();
    uint64_t const bytes = oos_agent_bytes(a->agent);
    int64_t const pause = a->news || bytes != a->filed_bytes ? FILE_MS : FILE_QUIET_MS;
    char *text;
    if (!a->metrics_file || (!last && a->filed_at && now - a->filed_at < pause)) return;
    a->filed_bytes = bytes;
    a->news = false;
    oos_text all = {0};
    oos_report_metrics(a->metrics, a->agent, &all);
    if (oos_text_take(&all, &text, NULL) != OOMSIGHT_OK) return;
    write_file(a, text);
    free(text);
    a->filed_at = now;
}

void oomsight_agent_close(oomsight_agent *a)
{
    if (!a) return;
    if (a->agent) publish(a, true);
    oos_agent_close(a->agent);
    oos_metrics_free(a->metrics);
    oos_api_tell_no_more(&a->teller);
    oos_arena_free(a->arena);
}

/* ---- rounds ---- */

static oomsight_status hand_out(oomsight_agent *a, const char **ret_text, size_t *ret_bytes,
                                oomsight_error *reterr)
{
    return oos_api_told(&a->teller, ret_text, ret_bytes, reterr);
}

oomsight_status oomsight_agent_poll(oomsight_agent *a, int wait_ms, const char **ret_text, size_t *ret_bytes,
                                    oomsight_error *reterr)
{
    if (a->teller.text.len == 0) {
        if (wait_ms > 0 && !a->busy) oos_agent_wait(a->agent, wait_ms);
        OOS_TRY(oos_agent_step(a->agent, &a->busy, reterr));
    }
    a->news |= a->teller.incidents > 0;
    publish(a, false);
    return hand_out(a, ret_text, ret_bytes, reterr);
}

void oomsight_agent_delivered(oomsight_agent *a)
{
    oos_agent_delivered(a->agent, a->teller.incidents > 0);
    oos_api_delivered(&a->teller);
}

void oomsight_agent_refused(oomsight_agent *a)
{
    oos_metrics_write_error(a->metrics);
    oos_agent_measure(a->agent);
    a->news = true;
    publish(a, false);
}

oomsight_status oomsight_agent_finish(oomsight_agent *a, const char **ret_text, size_t *ret_bytes,
                                      oomsight_error *reterr)
{
    OOS_TRY(oos_agent_finish(a->agent, reterr));
    return hand_out(a, ret_text, ret_bytes, reterr);
}

int oomsight_agent_ended(const oomsight_agent *a)
{
    return oos_agent_ended(a->agent);
}

int oomsight_agent_found_oom(const oomsight_agent *a)
{
    return a->teller.found_oom;
}

uint64_t oomsight_agent_bytes_read(const oomsight_agent *a)
{
    return oos_agent_bytes(a->agent);
}

int oomsight_agent_stands(const char *state_dir, uint64_t device, uint64_t inode, uint64_t *ret_byte)
{
    return oos_state_stands(state_dir, device, inode, ret_byte);
}

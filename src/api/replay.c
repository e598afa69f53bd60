/* The public side of replay. */
#include "oomsight_private.h"
#include "base/params.h"
#include "trace/trace.h"
#include "replay/replay.h"
#include "report/report.h"

#include <stdlib.h>

struct oomsight_replay {
    oos_arena *arena;
    oos_trace *trace;
    oos_scenario scenario;
    oos_analysis *analysis;
};

static oomsight_status backend_parse(const char *word, oos_backend *ret_backend, oomsight_error *reterr)
{
    static const char *const words[] = {"driver", "clean", "sticky"};
    _Static_assert(sizeof words / sizeof *words == OOS_BACKEND_STICKY + 1, "a word for each back-end");
    for (unsigned i = 0; i < 3; i++)
        if (strcmp(word, words[i]) == 0) {
            *ret_backend = (oos_backend)i;
            return OOMSIGHT_OK;
        }
    return oos_fail(reterr, OOMSIGHT_USAGE, "a pool back-end is driver, clean or sticky, not '%s'", word);
}

static oomsight_status scenario_of(const oomsight_replay_params *params, oos_arena *arena,
                                   oos_scenario *ret_scenario, oomsight_error *reterr)
{
    oos_scenario s = {.device = params->device, .sweep_ratio = params->sweep_ratio};
    if (params->settings) {
        s.settings = oos_arena_copy(arena, oos_view_of(params->settings));
        if (!s.settings) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the settings");
    }
    if (params->torch && !oos_version_parse(oos_view_of(params->torch), &s.torch))
        return oos_fail(reterr, OOMSIGHT_USAGE, "'%s' is not a torch version", params->torch);
    if (params->gpu_total_bytes) {
        s.total_bytes = oos_u64_of(params->gpu_total_bytes);
        s.base_bytes = oos_u64_of(params->gpu_used_bytes);
    }
    if (params->pool_backend) {
        s.set_backend = true;
        OOS_TRY(backend_parse(params->pool_backend, &s.backend, reterr));
    }
    *ret_scenario = s;
    return OOMSIGHT_OK;
}

static oomsight_status replay_fill(oomsight_replay *replay, const oomsight_replay_params *params,
                                   oomsight_error *reterr)
{
    OOS_TRY(scenario_of(params, replay->arena, &replay->scenario, reterr));
    OOS_TRY(oos_trace_open(params->path, &replay->trace, reterr));
    if (params->device >= replay->trace->device_count)
        return oos_fail(reterr, OOMSIGHT_USAGE, "device %u, but the input has %u", params->device,
                        replay->trace->device_count);
    bool const driver = replay->trace->driver_calls;
    if (driver && (params->settings || params->try_settings_count))
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                        "%s has driver calls: other settings would have made other calls. Record what "
                        "PyTorch allocates: oomsight dryrun --snapshot FILE",
                        params->path);
    oos_analysis_params const wanted = {.scenario = replay->scenario,
                                        .what_if = !params->skip_what_if && !driver,
                                        .find_smallest = params->find_smallest != 0 && !driver,
                                        .try_settings = params->try_settings,
                                        .try_count = params->try_settings_count};
    return oos_analyse(replay->trace, &wanted, &replay->analysis, reterr);
}

oomsight_status oomsight_replay_create(const oomsight_replay_params *params, oomsight_replay **ret_replay,
                                       oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_replay_params, params);
    if (!params->path) return oos_fail(reterr, OOMSIGHT_USAGE, "no input");
    oos_arena *arena = oos_arena_create(4096);
    oomsight_replay *replay = arena ? OOS_NEW(arena, oomsight_replay) : NULL;
    if (!replay) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a replay");
    }
    replay->arena = arena;
    oomsight_status const status = OOS_WHOLE_STATUS(params, replay_fill(replay, params, reterr));
    if (status != OOMSIGHT_OK) {
        oomsight_replay_free(replay);
        return status;
    }
    *ret_replay = replay;
    return OOMSIGHT_OK;
}

void oomsight_replay_free(oomsight_replay *replay)
{
    if (!replay) return;
    oos_analysis_free(replay->analysis);
    oos_trace_free(replay->trace);
    oos_arena_free(replay->arena);
}

int oomsight_replay_oom(const oomsight_replay *replay)
{
    return replay->analysis->outcome.oom;
}

const char *oomsight_replay_oom_text(const oomsight_replay *replay)
{
    return replay->analysis->outcome.oom_text;
}

uint64_t oomsight_replay_events(const oomsight_replay *replay)
{
    return replay->trace->event_count;
}

uint64_t oomsight_replay_peak_allocated_bytes(const oomsight_replay *replay)
{
    return replay->analysis->outcome.peak_allocated_bytes;
}

uint64_t oomsight_replay_peak_reserved_bytes(const oomsight_replay *replay)
{
    return replay->analysis->outcome.peak_reserved_bytes;
}

oomsight_status oomsight_replay_render(const oomsight_replay *replay, const oomsight_render_params *params,
                                       char **ret_text, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_text text = {0};
    oomsight_status status = OOMSIGHT_OK;
    switch (params->format) {
    case OOMSIGHT_FORMAT_TEXT: oos_replay_text(replay->analysis, params, &text); break;
    case OOMSIGHT_FORMAT_JSON: oos_replay_json(replay->analysis, &text); break;
    case OOMSIGHT_FORMAT_MARKDOWN: oos_replay_markdown(replay->analysis, params, &text); break;
    case OOMSIGHT_FORMAT_GITHUB:
    case OOMSIGHT_FORMAT_SARIF:
    case OOMSIGHT_FORMAT_JUNIT:
    case OOMSIGHT_FORMAT_PATCH:
        status = oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "replay is not written for GitHub or as SARIF");
        break;
    case OOMSIGHT_FORMAT_HTML: status = oos_replay_html(replay->analysis, params, &text, reterr); break;
    }
    if (status != OOMSIGHT_OK) {
        oos_text_free(&text);
        return status;
    }
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}

oomsight_status oomsight_replay_render_events(const oomsight_replay *replay, char **ret_text,
                                              oomsight_error *reterr)
{
    oos_text text = {0};
    oomsight_status const status = oos_replay_events_render(replay->trace, &replay->scenario, &text, reterr);
    if (status != OOMSIGHT_OK) {
        oos_text_free(&text);
        return status;
    }
    return oos_text_take(&text, ret_text, reterr);
}

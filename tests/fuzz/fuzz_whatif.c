/* Any bytes as what `replay` takes, run again with other settings, and every report of it. Two bytes choose release, device and how
 * it is printed; the first line is settings to try. */
#include "support.h"

#include "trace/trace.h"
#include "report/report.h"

enum { HEAD = 2, EVENTS_MAX = 600, EVENTS_SEARCHED = 60 };

static void outcome_check(const oos_outcome *outcome)
{
    FUZZ_REQUIRE(outcome->peak_reserved_bytes >= outcome->peak_allocated_bytes);
    FUZZ_REQUIRE(outcome->peak_allocated_bytes >= outcome->end_allocated_bytes);
}

static void render(const oos_analysis *analysis, uint8_t how)
{
    oomsight_render_params params = OOMSIGHT_RENDER_PARAMS_INIT;
    params.language = how & 1 ? "zh" : "en";
    params.color = how >> 1 & 1;
    params.explain = how >> 2 & 1;
    oos_text texts[4] = {0};
    oos_replay_text(analysis, &params, &texts[0]);
    oos_replay_markdown(analysis, &params, &texts[1]);
    oos_replay_json(analysis, &texts[2]);
    if (how & 8) FUZZ_REQUIRE(oos_replay_html(analysis, &params, &texts[3], NULL) == OOMSIGHT_OK);
    for (size_t i = 0; i < 3 + (how & 8 ? 1u : 0u); i++) {
        char *text = NULL;
        oomsight_status const status = oos_text_take(&texts[i], &text, NULL);
        fuzz_look(status, text, i == 2 ? OOMSIGHT_FORMAT_JSON : OOMSIGHT_FORMAT_TEXT, 0);
    }
}

static void analyse(const oos_trace *trace, const uint8_t *head, const char *settings)
{
    static const oos_version releases[] = {0,
                                           OOS_VERSION(2, 1, 0),
                                           OOS_VERSION(2, 4, 0),
                                           OOS_VERSION(2, 8, 0),
                                           OOS_VERSION(2, 10, 0),
                                           OOS_VERSION(2, 12, 0),
                                           OOS_VERSION(2, 13, 0),
                                           OOS_VERSION(2, 15, 0)};
    oos_analysis_params params = {.what_if = true, .try_settings = &settings, .try_count = 1};
    params.scenario.torch = releases[head[0] & 7];
    params.find_smallest = trace->event_count <= EVENTS_SEARCHED;
    params.scenario.device = head[0] & 8 && trace->device_count > 1 ? 1 : 0;
    if (head[0] & 16) params.scenario.settings = settings;
    if (head[0] & 32) params.scenario.total_bytes = oos_u64_of((uint64_t)(1 + head[1]) << 24);
    if (head[0] & 64)
        params.scenario.set_backend = true, params.scenario.backend = (oos_backend)(head[1] % 3);
    oos_analysis *analysis = NULL;
    oomsight_error error = {0};
    if (oos_analyse(trace, &params, &analysis, &error) != OOMSIGHT_OK) {
        FUZZ_REQUIRE(error.text[0]);
        return;
    }
    outcome_check(&analysis->outcome);
    for (size_t i = 0; i < analysis->what_if_count; i++)
        if (!analysis->what_ifs[i].refused) outcome_check(&analysis->what_ifs[i].outcome);
    render(analysis, head[1]);
    oos_text events = {0};
    if (head[1] & 16) (void)!oos_replay_events_render(trace, &analysis->scenario, &events, NULL);
    oos_text_free(&events);
    oos_analysis_free(analysis);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len < HEAD) return 0;
    oos_view const all = {(const char *)bytes + HEAD, len - HEAD};
    const char *feed = memchr(all.ptr, '\n', all.len);
    if (!feed) return 0;
    char *settings = strndup(all.ptr, (size_t)(feed - all.ptr));
    oos_view const input = oos_view_slice(all, (size_t)(feed - all.ptr) + 1, all.len);
    oos_stream *stream = NULL;
    oos_trace *trace = NULL;
    FUZZ_REQUIRE(settings);
    if (oos_stream_open_bytes(input, &stream, NULL) == OOMSIGHT_OK &&
        oos_trace_read(stream, &trace, NULL) == OOMSIGHT_OK && trace->event_count <= EVENTS_MAX)
        analyse(trace, bytes, settings);
    oos_trace_free(trace);
    oos_stream_close(stream);
    free(settings);
    return 0;
}

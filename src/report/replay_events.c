/* One line per operation: what was asked, what the simulator answered, and the allocator's own events. */
#include "report/report.h"

#include "base/json_write.h"

#include <inttypes.h>
#include <math.h>

typedef struct writer {
    const oos_trace *trace;
    oos_runner *runner;
    oos_sim *sim;
    oos_arena *scratch;
    oos_text *text;
    oomsight_error *reterr;
} writer;

static void put_string(oos_text *text, const char *string)
{
    oos_json_writer json = {.text = text, .after_key = true};
    oos_json_put_str(&json, string);
}

static void put_segment(oos_text *text, const oos_layout *layout, const oos_layout_segment *s)
{
    oos_text_printf(text,
                    "{\"address\":%" PRIu64 ",\"total_size\":%" PRIu64 ",\"stream\":%" PRIu64
                    ",\"is_large\":%s,\"is_expandable\":%s,\"pool\":[%" PRIu64 ",%" PRIu64 "],\"blocks\":[",
                    s->address, s->bytes, s->stream, s->large ? "true" : "false",
                    s->expandable ? "true" : "false", s->pool.first, s->pool.second);
    for (size_t i = 0; i < s->block_count; i++) {
        const oos_layout_block *b = &layout->blocks[s->first_block + i];
        oos_text_printf(text, "%s[%" PRIu64 ",%" PRIu64 ",\"%s\"]", i ? "," : "", b->bytes,
                        b->requested_bytes, oos_block_state_names[b->state]);
    }
    oos_text_put(text, "]}");
}

static oomsight_status put_layout(writer *w)
{
    oos_layout layout;
    oos_arena_reset(w->scratch);
    OOS_TRY(oos_sim_layout(w->sim, w->scratch, &layout, w->reterr));
    oos_text_put(w->text, ",\"segments\":[");
    for (size_t i = 0; i < layout.segment_count; i++) {
        if (i) oos_text_put(w->text, ",");
        put_segment(w->text, &layout, &layout.segments[i]);
    }
    oos_text_put(w->text, "]");
    return OOMSIGHT_OK;
}

static void put_counter(oos_text *text, const char *name, const oos_counter *c)
{
    oos_text_printf(text, "\"%s\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", name, c->current,
                    c->peak, c->added, c->added - c->current);
}

static void put_stats(writer *w)
{
    const oos_stats *stats = oos_sim_stats(w->sim);
    oos_text_put(w->text, ",\"stats\":{");
    for (unsigned i = 0; i < OOS_STAT_COUNT; i++) {
        oos_text_printf(w->text, "\"%s\":{", oos_stat_names[i]);
        put_counter(w->text, "all", &stats->counters[i][OOS_STAT_ALL]);
        oos_text_put(w->text, ",");
        put_counter(w->text, "small_pool", &stats->counters[i][OOS_STAT_SMALL]);
        oos_text_put(w->text, ",");
        put_counter(w->text, "large_pool", &stats->counters[i][OOS_STAT_LARGE]);
        oos_text_put(w->text, "},");
    }
    oos_text_printf(w->text, "\"num_alloc_retries\":%" PRIu64 ",\"num_ooms\":%" PRIu64 ",", stats->retries,
                    stats->ooms);
    if (oos_sim_rules(w->sim)->traces_driver_calls)
        oos_text_printf(w->text,
                        "\"num_sync_all_streams\":%" PRIu64 ",\"num_device_alloc\":%" PRIu64
                        ",\"num_device_free\":%" PRIu64 ",",
                        stats->syncs, stats->device_allocs, stats->device_frees);
    put_counter(w->text, "oversize_allocations", &stats->oversize_allocations);
    oos_text_put(w->text, ",");
    put_counter(w->text, "oversize_segments", &stats->oversize_segments);
    oos_text_put(w->text, "}");
}

static void put_events(writer *w)
{
    const oos_sim_event *events;
    size_t const count = oos_sim_log(w->sim, &events);
    if (!count) return;
    oos_text_put(w->text, ",\"ev\":[");
    for (size_t i = 0; i < count; i++)
        oos_text_printf(w->text, "%s[\"%s\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", i ? "," : "",
                        oos_action_names[events[i].action], events[i].address, events[i].bytes,
                        events[i].stream);
    oos_text_put(w->text, "]");
    oos_sim_log_reset(w->sim);
}

static void put_asked(writer *w, const oos_event *e)
{
    const oos_trace *t = w->trace;
    double fraction;
    switch ((oos_op)e->op) {
    case OOS_OP_MALLOC:
        oos_text_printf(w->text, ",\"size\":%" PRIu64, e->bytes);
        __attribute__((fallthrough));
    case OOS_OP_RECORD_STREAM:
    case OOS_OP_FREE:
        if (e->id < t->id_count) oos_text_printf(w->text, ",\"id\":%" PRIu64, t->ids[e->id]);
        if (e->op != OOS_OP_FREE) oos_text_printf(w->text, ",\"stream\":%" PRIu64, t->streams[e->stream]);
        break;
    case OOS_OP_COMPLETE: oos_text_printf(w->text, ",\"stream\":%" PRIu64, t->streams[e->stream]); break;
    case OOS_OP_SET_FRACTION:
        memcpy(&fraction, &e->bytes, sizeof fraction);
        if (isfinite(fraction)) oos_text_printf(w->text, ",\"fraction\":%.17g", fraction);
        break;
    case OOS_OP_SET_SETTINGS:
        oos_text_put(w->text, ",\"settings\":");
        put_string(w->text, t->strings[e->id]);
        break;
    case OOS_OP_EMPTY_CACHE:
    case OOS_OP_POOL_CREATE:
    case OOS_OP_POOL_BEGIN:
    case OOS_OP_POOL_END:
    case OOS_OP_CAPTURE_BEGIN:
    case OOS_OP_CAPTURE_END:
    case OOS_OP_POOL_RELEASE:
    case OOS_OP_USE_ON_OOM:
    case OOS_OP_NO_SPLIT:
        oos_text_printf(w->text, ",\"pool\":[%" PRIu64 ",%" PRIu64 "]", t->pools[e->pool].first,
                        t->pools[e->pool].second);
        break;
    case OOS_OP_SNAPSHOT:
    case OOS_OP_STATS:
    case OOS_OP_COUNT: break;
    }
}

static oomsight_status put_answer(writer *w, const oos_event *e, const oos_step *step)
{
    uint64_t address, bytes;
    if (step->skipped) oos_text_put(w->text, ",\"skipped\":true");
    if (step->refused) {
        oos_text_put(w->text, ",\"error\":");
        put_string(w->text, step->error->text);
    }
    if (step->oom) {
        oos_text oom = {0};
        char *words = NULL;
        oos_sim_oom_text(w->sim, &oom);
        OOS_TRY(oos_text_take(&oom, &words, w->reterr));
        oos_text_put(w->text, ",\"oom\":");
        put_string(w->text, words);
        oomsight_text_free(words);
    } else if (step->block) {
        uint64_t const at = oos_sim_address(w->sim, step->block);
        oos_text_printf(w->text, ",\"addr\":%" PRIu64, at);
        if (oos_sim_segment(w->sim, step->block, &address, &bytes))
            oos_text_printf(w->text, ",\"seg\":%" PRIu64 ",\"seg_size\":%" PRIu64 ",\"off\":%" PRIu64,
                            address, bytes, at - address);
    } else if (e->op == OOS_OP_MALLOC && !step->skipped) {
        oos_text_put(w->text, ",\"addr\":0");
    }
    if (e->op == OOS_OP_SNAPSHOT) OOS_TRY(put_layout(w));
    if (e->op == OOS_OP_STATS) put_stats(w);
    put_events(w);
    return OOMSIGHT_OK;
}

static oomsight_status put_lines(writer *w)
{
    oomsight_error error;
    oos_step step = {.error = &error};
    for (size_t i = 0; i < w->trace->event_count; i++) {
        const oos_event *e = &w->trace->events[i];
        oos_runner_step(w->runner, e, &step);
        oos_text_printf(w->text, "{\"i\":%zu,\"op\":\"%s\"", i, oos_op_names[e->op]);
        put_asked(w, e);
        OOS_TRY(put_answer(w, e, &step));
        oos_text_put(w->text, "}\n");
        if (oos_sim_failed(w->sim))
            return oos_fail(w->reterr, OOMSIGHT_NOMEM, "no memory for the simulation");
    }
    oos_text_put(w->text, "{\"op\":\"final\"");
    OOS_TRY(put_layout(w));
    put_stats(w);
    const oos_device *device = oos_sim_device(w->sim);
    oos_text_printf(w->text, ",\"device_free\":%" PRIu64 ",\"device_total\":%" PRIu64 "}\n",
                    oos_device_free_bytes(device), device->total_bytes);
    return OOMSIGHT_OK;
}

oomsight_status oos_replay_events_render(const oos_trace *trace, const oos_scenario *scenario, oos_text *text,
                                         oomsight_error *reterr)
{
    oos_scenario logged = *scenario;
    logged.log = true;
    writer w = {.trace = trace, .text = text, .reterr = reterr, .scratch = oos_arena_create(64 << 10)};
    if (!w.scratch) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the report");
    oomsight_status status = oos_runner_create(trace, &logged, &w.runner, reterr);
    if (status == OOMSIGHT_OK) {
        w.sim = oos_runner_sim(w.runner);
        status = put_lines(&w);
    }
    oos_runner_free(w.runner);
    oos_arena_free(w.scratch);
    return status;
}

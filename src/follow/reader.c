/* When a failure is over, in a text that grows, and up to where it was told. */
#include "follow/follow.h"

enum {
    SETTLE_MS = 800,    /* after so long without a further sign */
    LINES_MS = 150,     /* a message may go on in the next line */
    OPEN_MAX_MS = 30000 /* an incident that does not end is told nevertheless */
};

oomsight_status oos_readers_open(const oos_knowledge *knowledge, oos_readers *readers, oomsight_error *reterr)
{
    *readers = (oos_readers){.knowledge = knowledge, .results = oos_arena_create(64 << 10)};
    if (!readers->results) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to follow logs");
    return oos_bench_create(knowledge->signals.literals, &readers->bench, reterr);
}

void oos_readers_close(oos_readers *readers)
{
    oos_bench_free(readers->bench);
    oos_arena_free(readers->results);
}

static void on_incident(void *context, const oos_incident *incident, bool again)
{
    oos_reader *r = context;
    (void)again;
    if (incident->failed) r->on_incident(r->context, incident);
}

oomsight_status oos_reader_open(oos_readers *readers, const oos_standing *from, oos_reader *r,
                                oomsight_error *reterr)
{
    oos_scan_origin start = {.growing = true};
    if (from) start.byte = from->byte, start.lines = from->lines;
    OOS_TRY(oos_explainer_open_growing(readers->results, readers->knowledge, readers->bench, &start,
                                       &readers->found, on_incident, r, &r->explainer, reterr));
    if (from && from->history)
        oos_collector_resume(oos_explainer_collector(r->explainer), from->history, from->told, from->clock);
    return OOMSIGHT_OK;
}

oomsight_status oos_reader_step(oos_reader *r, int64_t now, oomsight_error *reterr)
{
    bool const lines = oos_linescan_waits(oos_explainer_scan(r->explainer));
    if (!lines)
        r->lines_at = 0;
    else if (!r->lines_at)
        r->lines_at = now;
    if (lines && now - r->lines_at >= LINES_MS) {
        r->lines_at = 0;
        OOS_TRY(oos_linescan_settle(oos_explainer_scan(r->explainer), reterr));
    }
    const oos_collector *collector = oos_explainer_collector(r->explainer);
    uint64_t const touched = oos_collector_touched(collector);
    if (touched != r->touched) r->touched_at = now;
    r->touched = touched;
    if (!oos_collector_at(collector).open) {
        r->opened_at = 0;
        return OOMSIGHT_OK;
    }
    if (!r->opened_at) r->opened_at = now;
    oos_assert(r->opened_at <= now && r->touched_at <= now);
    if (now - r->touched_at < SETTLE_MS && now - r->opened_at < OPEN_MAX_MS) return OOMSIGHT_OK;
    return oos_explainer_settle(r->explainer, reterr);
}

oos_collector_point oos_reader_stands(const oos_reader *r, oos_standing *point)
{
    oos_collector_point const at = oos_collector_at(oos_explainer_collector(r->explainer));
    oos_linescan_place(oos_explainer_scan(r->explainer), &point->byte, &point->lines);
    point->clock = at.time;
    point->history = at.history;
    point->version = at.version;
    point->told = at.told;
    return at;
}

/* The run itself with its timeline, and the order of the other questions. */
#include "replay/replay.h"

#include "base/check.h"
#include "trace/trace.h"

#include <stdlib.h>

enum { POINTS = 2000 };

typedef struct timeline {
    oos_analysis *analysis;
    size_t stretch; /* events per point */
} timeline;

static void note_point(timeline *t, size_t event, const oos_sim *sim)
{
    const oos_stats *stats = oos_sim_stats(sim);
    size_t const at = event / t->stretch;
    oos_usage_point const now = {event, stats->counters[OOS_STAT_ALLOCATED_BYTES][OOS_STAT_ALL].current,
                                 stats->counters[OOS_STAT_RESERVED_BYTES][OOS_STAT_ALL].current};
    oos_assert(at <= t->analysis->trace->event_count / t->stretch);
    oos_usage_point *kept = &t->analysis->points[at];
    bool const first = at >= t->analysis->point_count;
    if (first) t->analysis->point_count = at + 1;
    if (first || now.reserved_bytes > kept->reserved_bytes ||
        (now.reserved_bytes == kept->reserved_bytes && now.allocated_bytes > kept->allocated_bytes))
        *kept = now;
}

/* Is the layout the one the snapshot ends with? Requested sizes of free blocks are stale there, so sizes and states. */
static bool same_as_expected(const oos_trace *trace, unsigned device, const oos_layout *layout)
{
    size_t at = 0;
    for (size_t i = 0; i < trace->expected_count; i++) {
        const oos_snapshot_segment *e = &trace->expected[i];
        if (e->device != device) continue;
        const oos_layout_segment *s = &layout->segments[at++];
        if (at > layout->segment_count || s->address != e->address || s->bytes != e->bytes ||
            s->block_count != e->block_count)
            return false;
        for (size_t k = 0; k < e->block_count; k++) {
            const oos_snapshot_block *want = &trace->expected_blocks[e->first_block + k];
            const oos_layout_block *have = &layout->blocks[s->first_block + k];
            if (want->bytes != have->bytes || want->state != (uint8_t)have->state) return false;
        }
    }
    return at == layout->segment_count;
}

static bool as_recorded(const oos_scenario *s)
{
    return !s->settings && !s->total_bytes.known && s->sweep_ratio <= 0 && !s->set_backend;
}

static oomsight_status check_reproduced(oos_analysis *a, oos_runner *runner, oomsight_error *reterr)
{
    if (!a->trace->expected || !as_recorded(&a->scenario) ||
        !oos_run_has_addresses(a->trace, a->scenario.device))
        return OOMSIGHT_OK;
    oos_layout layout;
    OOS_TRY(oos_sim_layout(oos_runner_sim(runner), a->arena, &layout, reterr));
    a->reproduced = (oos_flag){true, same_as_expected(a->trace, a->scenario.device, &layout)};
    return OOMSIGHT_OK;
}

static void observe(void *context, size_t event, oos_runner *runner)
{
    note_point(context, event, oos_runner_sim(runner));
}

static oomsight_status run_itself(oos_analysis *a, oomsight_error *reterr)
{
    timeline t = {a, a->trace->event_count / POINTS + 1};
    a->points = OOS_NEW_ARRAY(a->arena, oos_usage_point, a->trace->event_count / t.stretch + 1);
    if (!a->points) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the timeline");
    oos_runner *runner = NULL;
    OOS_TRY(oos_runner_create(a->trace, &a->scenario, &runner, reterr));
    oomsight_status status = oos_runner_run(runner, observe, &t, &a->outcome, reterr);
    if (status == OOMSIGHT_OK) status = check_reproduced(a, runner, reterr);
    oos_runner_free(runner);
    return status;
}

oomsight_status oos_analyse(const oos_trace *trace, const oos_analysis_params *params,
                            oos_analysis **ret_analysis, oomsight_error *reterr)
{
    oos_arena *arena = oos_arena_create(64 << 10);
    oos_analysis *a = arena ? OOS_NEW(arena, oos_analysis) : NULL;
    if (!a) {
        oos_arena_free(arena);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the analysis");
    }
    a->arena = arena;
    a->trace = trace;
    a->scenario = params->scenario;
    a->settings = a->scenario.settings ? a->scenario.settings : trace->settings ? trace->settings : "";
    oomsight_status status = run_itself(a, reterr);
    if (status == OOMSIGHT_OK) status = oos_moments_fill(a, reterr);
    if (status == OOMSIGHT_OK && params->find_smallest)
        status = oos_smallest_device(trace, &a->scenario, &a->outcome, &a->smallest_bytes, reterr);
    if (status == OOMSIGHT_OK) status = oos_what_ifs_run(a, params, reterr);
    if (status != OOMSIGHT_OK) {
        oos_analysis_free(a);
        return status;
    }
    *ret_analysis = a;
    return OOMSIGHT_OK;
}

void oos_analysis_free(oos_analysis *a)
{
    if (!a) return;
    oos_outcome_release(&a->outcome);
    for (size_t i = 0; i < a->what_if_count; i++) oos_outcome_release(&a->what_ifs[i].outcome);
    oos_arena_free(a->arena);
}

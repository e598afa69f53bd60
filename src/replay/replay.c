/* Events -> calls of the simulator, and what a pass is summed up to. */
#include "replay/replay.h"
#include "base/check.h"

#include <stdlib.h>

struct oos_runner {
    const oos_trace *trace;
    oos_scenario scenario;
    oos_sim *sim;
    uint32_t *live; /* allocation -> block */
};

/* Device after device: the first item of a device. */
static size_t given_from(const oos_given *list, size_t count, unsigned device)
{
    size_t at = 0;
    while (at < count && list[at].device < device) at++;
    return at;
}

bool oos_run_has_addresses(const oos_trace *trace, unsigned device)
{
    return trace->placement == OOS_PLACEMENT_GIVEN && device < 64 && trace->given_devices >> device & 1;
}

static oos_sim_params params_of(const oos_trace *trace, const oos_scenario *scenario)
{
    const char *settings = scenario->settings ? scenario->settings : trace->settings;
    oos_version const torch = scenario->torch ? scenario->torch : trace->torch;
    bool const given = oos_run_has_addresses(trace, scenario->device);
    bool const modelled = trace->placement == OOS_PLACEMENT_GIVEN && (scenario->modelled_addresses || !given);
    size_t const first = given_from(trace->given, trace->given_count, scenario->device);
    size_t const end = given_from(trace->given, trace->given_count, scenario->device + 1);
    size_t const first_range = given_from(trace->given_ranges, trace->given_range_count, scenario->device);
    size_t const end_range = given_from(trace->given_ranges, trace->given_range_count, scenario->device + 1);
    return (oos_sim_params){
        .torch = torch ? torch : OOS_TORCH_DEFAULT,
        .settings = settings,
        .total_bytes =
            oos_u64_or(scenario->total_bytes, oos_u64_or(trace->total_bytes, OOS_UNKNOWN_DEVICE_BYTES)),
        .base_bytes = oos_u64_or(scenario->base_bytes, oos_u64_or(trace->base_bytes, 0)),
        .placement = modelled ? OOS_PLACEMENT_BUMP : trace->placement,
        .device_index = scenario->device,
        .nvml = trace->nvml,
        .log = scenario->log,
        .sweep_ratio = scenario->sweep_ratio,
        .given = given && trace->given ? trace->given + first : NULL,
        .given_ranges = given && trace->given_ranges ? trace->given_ranges + first_range : NULL,
        .given_count = given ? end - first : 0,
        .given_range_count = given ? end_range - first_range : 0,
    };
}

oomsight_status oos_runner_create(const oos_trace *trace, const oos_scenario *scenario,
                                  oos_runner **ret_runner, oomsight_error *reterr)
{
    oos_runner *runner = calloc(1, sizeof *runner);
    if (runner) runner->live = calloc((size_t)trace->id_count + 1, sizeof *runner->live);
    oomsight_status status =
        runner && runner->live ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a run");
    if (status == OOMSIGHT_OK) {
        runner->trace = trace;
        runner->scenario = *scenario;
        oos_sim_params const params = params_of(trace, scenario);
        status = oos_sim_create(&params, &runner->sim, reterr);
    }
    if (status != OOMSIGHT_OK) {
        oos_runner_free(runner);
        return status;
    }
    *ret_runner = runner;
    return OOMSIGHT_OK;
}

void oos_runner_free(oos_runner *runner)
{
    if (!runner) return;
    oos_sim_free(runner->sim);
    free(runner->live);
    free(runner);
}

oos_sim *oos_runner_sim(oos_runner *runner)
{
    return runner->sim;
}

uint32_t oos_runner_block(const oos_runner *runner, uint32_t id)
{
    return id < runner->trace->id_count ? runner->live[id] : 0;
}

static oos_backend backend_of(const oos_runner *runner, const oos_event *e)
{
    return runner->scenario.set_backend ? runner->scenario.backend : (oos_backend)e->value;
}

static void step_malloc(oos_runner *runner, const oos_event *e, oos_step *step)
{
    const oos_trace *t = runner->trace;
    oos_assert(e->pool < t->pool_count && e->stream < t->stream_count);
    if (e->bytes == 0) return; /* torch gives a null pointer without asking the allocator */
    if (e->routed && e->pool) oos_sim_route_push(runner->sim, t->pools[e->pool], backend_of(runner, e));
    step->block = oos_sim_malloc(runner->sim, e->bytes, t->streams[e->stream]);
    if (e->routed && e->pool) oos_sim_route_pop(runner->sim);
    step->oom = step->block == 0;
    if (e->id < t->id_count) runner->live[e->id] = step->block;
}

static void step_settings(oos_runner *runner, const oos_event *e, oos_step *step)
{
    if (runner->scenario.settings) return;
    const char *text = e->id < runner->trace->string_count ? runner->trace->strings[e->id] : "";
    step->refused = oos_sim_set_settings(runner->sim, oos_view_of(text), step->error) != OOMSIGHT_OK;
}

static void step_rare(oos_runner *runner, const oos_event *e, oos_step *step)
{
    oos_assert(e->pool < runner->trace->pool_count && e->stream < runner->trace->stream_count);
    oos_sim *sim = runner->sim;
    const oos_trace *t = runner->trace;
    oos_pool_id const pool = t->pools[e->pool];
    double fraction;
    switch ((oos_op)e->op) {
    case OOS_OP_RECORD_STREAM:
        oos_sim_record_stream(sim, oos_runner_block(runner, e->id), t->streams[e->stream]);
        break;
    case OOS_OP_COMPLETE: oos_sim_complete(sim, t->streams[e->stream]); break;
    case OOS_OP_EMPTY_CACHE: oos_sim_empty_cache(sim, pool); break;
    case OOS_OP_SET_FRACTION:
        memcpy(&fraction, &e->bytes, sizeof fraction);
        oos_sim_set_fraction(sim, fraction);
        break;
    case OOS_OP_SET_SETTINGS: step_settings(runner, e, step); break;
    case OOS_OP_POOL_CREATE: oos_sim_pool_create(sim, pool, backend_of(runner, e)); break;
    case OOS_OP_POOL_BEGIN: oos_sim_pool_begin(sim, pool, false); break;
    case OOS_OP_POOL_END: oos_sim_pool_end(sim, pool, false); break;
    case OOS_OP_CAPTURE_BEGIN: oos_sim_pool_begin(sim, pool, true); break;
    case OOS_OP_CAPTURE_END: oos_sim_pool_end(sim, pool, true); break;
    case OOS_OP_POOL_RELEASE: oos_sim_pool_release(sim, pool); break;
    case OOS_OP_USE_ON_OOM: oos_sim_pool_use_on_oom(sim, pool, e->value != 0); break;
    case OOS_OP_NO_SPLIT: oos_sim_pool_no_split(sim, pool); break;
    case OOS_OP_MALLOC:
    case OOS_OP_FREE:
    case OOS_OP_SNAPSHOT:
    case OOS_OP_STATS:
    case OOS_OP_COUNT: break;
    }
}

void oos_runner_step(oos_runner *runner, const oos_event *e, oos_step *step)
{
    step->block = 0;
    step->oom = step->refused = false;
    step->skipped = e->device != runner->scenario.device;
    if (step->skipped) return;
    if (e->op == OOS_OP_MALLOC) {
        step_malloc(runner, e, step);
        return;
    }
    if (e->op == OOS_OP_FREE || e->op == OOS_OP_RECORD_STREAM)
        step->skipped = !oos_runner_block(runner, e->id);
    if (step->skipped) return;
    if (e->op == OOS_OP_FREE) {
        oos_sim_free_block(runner->sim, runner->live[e->id]);
        runner->live[e->id] = 0;
        return;
    }
    step_rare(runner, e, step);
}

/* Free bytes inside what is reserved, now. */
static void note_stranded(const oos_sim *sim, oos_outcome *outcome)
{
    const oos_stats *stats = oos_sim_stats(sim);
    outcome->stranded_bytes = stats->counters[OOS_STAT_RESERVED_BYTES][OOS_STAT_ALL].current -
                              stats->counters[OOS_STAT_ACTIVE_BYTES][OOS_STAT_ALL].current;
    outcome->stranded_private_bytes = oos_sim_free_private_bytes(sim);
}

static void note_oom(const oos_runner *runner, size_t event, oos_outcome *outcome)
{
    outcome->ooms++;
    if (outcome->oom) return;
    outcome->oom = true;
    outcome->first_oom = event;
    outcome->first_oom_bytes = runner->trace->events[event].bytes;
    oos_text text = {0};
    oos_sim_oom_text(runner->sim, &text);
    if (oos_text_take(&text, &outcome->oom_text, NULL) != OOMSIGHT_OK) outcome->oom_text = NULL;
    note_stranded(runner->sim, outcome);
}

static void sum_up(const oos_sim *sim, oos_outcome *outcome)
{
    const oos_stats *stats = oos_sim_stats(sim);
    const oos_counter *allocated = &stats->counters[OOS_STAT_ALLOCATED_BYTES][OOS_STAT_ALL];
    const oos_counter *reserved = &stats->counters[OOS_STAT_RESERVED_BYTES][OOS_STAT_ALL];
    oos_assert(allocated->current <= allocated->peak && reserved->current <= reserved->peak);
    oos_assert(oos_sim_failed(sim) || allocated->peak <= reserved->peak);
    outcome->peak_allocated_bytes = allocated->peak;
    outcome->peak_reserved_bytes = reserved->peak;
    outcome->end_allocated_bytes = allocated->current;
    outcome->end_reserved_bytes = reserved->current;
    outcome->segments = stats->counters[OOS_STAT_SEGMENT][OOS_STAT_ALL].current;
    outcome->device_allocs = stats->device_allocs;
    outcome->device_frees = stats->device_frees;
    outcome->retries = stats->retries;
}

oomsight_status oos_runner_run(oos_runner *runner, oos_look *look, void *context, oos_outcome *ret_outcome,
                               oomsight_error *reterr)
{
    const oos_trace *trace = runner->trace;
    const oos_stats *stats = oos_sim_stats(runner->sim);
    const oos_counter *allocated = &stats->counters[OOS_STAT_ALLOCATED_BYTES][OOS_STAT_ALL];
    const oos_counter *reserved = &stats->counters[OOS_STAT_RESERVED_BYTES][OOS_STAT_ALL];
    uint64_t highest_allocated = 0, highest_reserved = 0;
    oos_outcome outcome = {0};
    oos_step step = {0};
    for (size_t i = 0; i < trace->event_count && !oos_sim_failed(runner->sim); i++) {
        oos_runner_step(runner, &trace->events[i], &step);
        if (step.oom) note_oom(runner, i, &outcome);
        if (allocated->peak > highest_allocated) {
            highest_allocated = allocated->peak;
            outcome.peak_event = i;
        }
        if (reserved->peak > highest_reserved) {
            highest_reserved = reserved->peak;
            outcome.reserved_peak_event = i;
            if (!outcome.oom) note_stranded(runner->sim, &outcome);
        }
        if (look) look(context, i, runner);
        if (step.oom && runner->scenario.stop_at_oom) break;
    }
    sum_up(runner->sim, &outcome);
    if (oos_sim_failed(runner->sim)) {
        oos_outcome_release(&outcome);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the simulation");
    }
    *ret_outcome = outcome;
    return OOMSIGHT_OK;
}

oomsight_status oos_run(const oos_trace *trace, const oos_scenario *scenario, oos_outcome *ret_outcome,
                        oomsight_error *reterr)
{
    oos_runner *runner = NULL;
    OOS_TRY(oos_runner_create(trace, scenario, &runner, reterr));
    oomsight_status const status = oos_runner_run(runner, NULL, NULL, ret_outcome, reterr);
    oos_runner_free(runner);
    return status;
}

void oos_outcome_release(oos_outcome *outcome)
{
    free(outcome->oom_text);
    outcome->oom_text = NULL;
}

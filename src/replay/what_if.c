/* One pass per setting over the same events, and the search for the smallest device. */
#include "replay/replay.h"
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE (2 * OOS_MIB)
#define SWEEP_RATIO 0.9

/* Settings worth trying, for every trace. A split limit below 64 MiB is left out: it is what strands memory. */
static const char *const worth_trying[] = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:64",
    "max_split_size_mb:256",
    "roundup_power2_divisions:4",
    "garbage_collection_threshold:0.8,per_process_memory_fraction:0.95"};
enum { WORTH_TRYING = sizeof worth_trying / sizeof *worth_trying };

static bool has_sticky_pool(const oos_analysis *a)
{
    if (a->scenario.set_backend) return a->scenario.backend == OOS_BACKEND_STICKY;
    for (size_t i = 0; i < a->trace->event_count; i++) {
        const oos_event *e = &a->trace->events[i];
        if ((e->op == OOS_OP_POOL_CREATE || (e->op == OOS_OP_MALLOC && e->routed)) &&
            e->value == OOS_BACKEND_STICKY)
            return true;
    }
    return false;
}

static oos_what_if *add(oos_analysis *a, const char *label)
{
    oos_what_if *w = &a->what_ifs[a->what_if_count++];
    *w = (oos_what_if){.label = label, .scenario = a->scenario, .settings = a->settings};
    w->scenario.log = false;
    w->scenario.modelled_addresses = true;
    return w;
}

static void add_settings(oos_analysis *a, const char *settings)
{
    oos_what_if *w = add(a, *settings ? settings : "defaults");
    w->scenario.settings = w->settings = settings;
}

static oomsight_status list_what_ifs(oos_analysis *a, const oos_analysis_params *params,
                                     oomsight_error *reterr)
{
    a->what_ifs = OOS_NEW_ARRAY(a->arena, oos_what_if, WORTH_TRYING + 3 + params->try_count);
    if (!a->what_ifs) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the what-ifs");
    for (size_t i = 0; params->what_if && i < WORTH_TRYING; i++)
        if (!a->scenario.settings || strcmp(worth_trying[i], a->scenario.settings) != 0)
            add_settings(a, worth_trying[i]);
    if (params->what_if) {
        add(a, "as recorded, free segments swept at 90 %")->scenario.sweep_ratio = SWEEP_RATIO;
        if (has_sticky_pool(a)) {
            oos_what_if *w = add(a, "as recorded, pool back-end that forgets its error");
            w->scenario.set_backend = true;
            w->scenario.backend = OOS_BACKEND_CLEAN;
        }
    }
    for (size_t i = 0; i < params->try_count; i++) {
        const char *copy = oos_arena_copy(a->arena, oos_view_of(params->try_settings[i]));
        if (!copy) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the what-ifs");
        add_settings(a, copy);
    }
    return OOMSIGHT_OK;
}

oomsight_status oos_what_ifs_run(oos_analysis *a, const oos_analysis_params *params, oomsight_error *reterr)
{
    OOS_TRY(list_what_ifs(a, params, reterr));
    for (size_t i = 0; i < a->what_if_count; i++) {
        oos_what_if *w = &a->what_ifs[i];
        oomsight_error error = {0};
        oomsight_status const status = oos_run(a->trace, &w->scenario, &w->outcome, &error);
        if (status == OOMSIGHT_MALFORMED) { /* this release does not take such settings */
            w->refused = true;
            w->why = oos_arena_copy(a->arena, oos_view_of(error.text));
            continue;
        }
        if (status != OOMSIGHT_OK) {
            if (reterr) *reterr = error;
            return status;
        }
        if (params->find_smallest)
            OOS_TRY(oos_smallest_device(a->trace, &w->scenario, &w->outcome, &w->smallest_bytes, reterr));
    }
    return OOMSIGHT_OK;
}

static oomsight_status survives(const oos_trace *trace, const oos_scenario *scenario, uint64_t total_bytes,
                                bool *ret_survives, oomsight_error *reterr)
{
    oos_scenario s = *scenario;
    s.total_bytes = oos_u64_of(total_bytes);
    s.base_bytes = oos_u64_of(oos_u64_or(scenario->base_bytes, oos_u64_or(trace->base_bytes, 0)));
    s.stop_at_oom = s.modelled_addresses = true;
    oos_outcome outcome;
    OOS_TRY(oos_run(trace, &s, &outcome, reterr));
    *ret_survives = !outcome.oom;
    oos_outcome_release(&outcome);
    return OOMSIGHT_OK;
}

/* By halving, to whole pages. Survival is not strictly monotone in the size of the device (where a segment is given back
 * depends on it), so this is a size that survives and whose halved-down neighbour does not. */
oomsight_status oos_smallest_device(const oos_trace *trace, const oos_scenario *scenario,
                                    const oos_outcome *outcome, oos_u64 *ret_bytes, oomsight_error *reterr)
{
    uint64_t const base = oos_u64_or(scenario->base_bytes, oos_u64_or(trace->base_bytes, 0));
    uint64_t low = (base + outcome->peak_allocated_bytes) / PAGE, high = OOS_UNKNOWN_DEVICE_BYTES / PAGE;
    oos_assert(low <= high);
    bool fits = false;
    OOS_TRY(survives(trace, scenario, high * PAGE, &fits, reterr));
    if (!fits) return OOMSIGHT_OK;
    while (low < high) {
        uint64_t const middle = low + (high - low) / 2;
        OOS_TRY(survives(trace, scenario, middle * PAGE, &fits, reterr));
        if (fits)
            high = middle;
        else
            low = middle + 1;
    }
    *ret_bytes = oos_u64_of(high * PAGE);
    return OOMSIGHT_OK;
}

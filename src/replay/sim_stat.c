/* Names of the counters, and the log of events. */
#include "replay/sim_state.h"

const char *const oos_stat_names[OOS_STAT_COUNT] = {
    "allocation",      "segment",        "active",       "inactive_split",
    "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
    "requested_bytes"};

const char *const oos_action_names[OOS_ACTION_COUNT] = {
    "alloc",        "free_requested", "free_completed", "segment_alloc",
    "segment_free", "segment_map",    "segment_unmap",  "oom"};

const char *const oos_block_state_names[3] = {"active_allocated", "active_pending_free", "inactive"};
_Static_assert(sizeof oos_block_state_names / sizeof *oos_block_state_names == OOS_BLOCK_INACTIVE + 1,
               "a name for each state");

void oos_log_append(oos_sim *sim, oos_sim_event event)
{
    if (GROW(sim, sim->log)) sim->log.list[sim->log.count++] = event;
}

size_t oos_sim_log(const oos_sim *sim, const oos_sim_event **ret_events)
{
    *ret_events = sim->log.list;
    return sim->log.count;
}

void oos_sim_log_reset(oos_sim *sim)
{
    sim->log.count = 0;
}

const oos_stats *oos_sim_stats(const oos_sim *sim)
{
    return &sim->stats;
}

uint64_t oos_sim_free_private_bytes(const oos_sim *sim)
{
    return sim->private_free_bytes;
}

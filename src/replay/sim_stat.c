/* Counters and the log of events. */
#include "replay/sim_state.h"

const char *const oos_stat_names[OOS_STAT_COUNT] = {
    "allocation",      "segment",        "active",       "inactive_split",
    "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
    "requested_bytes"};

const char *const oos_action_names[OOS_ACTION_COUNT] = {
    "alloc",        "free_requested", "free_completed", "segment_alloc",
    "segment_free", "segment_map",    "segment_unmap",  "oom"};

const char *const oos_block_state_names[3] = {"active_allocated", "active_pending_free", "inactive"};

void oos_counter_up(oos_counter *counter, uint64_t amount)
{
    counter->current += amount;
    counter->added += amount;
    if (counter->current > counter->peak) counter->peak = counter->current;
}

void oos_counter_down(oos_counter *counter, uint64_t amount)
{
    counter->current -= amount;
}

void oos_count_up(oos_sim *sim, oos_stat stat, bool small, uint64_t amount)
{
    oos_counter *c = sim->stats.counters[stat];
    oos_counter_up(&c[OOS_STAT_ALL], amount);
    oos_counter_up(&c[small ? OOS_STAT_SMALL : OOS_STAT_LARGE], amount);
}

void oos_count_down(oos_sim *sim, oos_stat stat, bool small, uint64_t amount)
{
    oos_counter *c = sim->stats.counters[stat];
    oos_counter_down(&c[OOS_STAT_ALL], amount);
    oos_counter_down(&c[small ? OOS_STAT_SMALL : OOS_STAT_LARGE], amount);
}

void oos_log_put(oos_sim *sim, oos_action action, uint64_t address, uint64_t bytes, uint64_t stream_handle)
{
    if (!sim->params.log || !GROW(sim, sim->log)) return;
    sim->log.list[sim->log.count++] = (oos_sim_event){action, address, bytes, stream_handle};
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
    uint64_t bytes = 0;
    for (uint32_t i = 2; i < sim->pools.count; i++)
        if (sim->owners.list[sim->pools.list[i].owner].known) bytes += sim->pools.list[i].free_bytes;
    return bytes;
}

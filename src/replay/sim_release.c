/* Giving segments back to the driver: under pressure, on request, by age, by sweep. */
#include "replay/sim_state.h"
#include "base/check.h"

void oos_release_block(oos_sim *sim, uint32_t index)
{
    block *b = block_at(sim, index);
    pool *p = pool_of(sim, b);
    owner *o = owner_of(sim, p);
    oos_assert(!is_split(b) && !b->range && !is_active(b)); /* cudaFree takes whole segments */
    sim->stats.device_frees++;
    oos_log_put(sim, OOS_ACTION_SEGMENT_FREE, b->address, b->bytes, sim->homes.list[b->home].stream);
    oos_device_give(&sim->device, b->address, b->bytes, o && o->backend == OOS_BACKEND_STICKY && o->broken);
    oos_assert(b->bytes <= sim->reserved_bytes);
    sim->reserved_bytes -= b->bytes;
    if (o) o->segments--;
    oos_count_down(sim, OOS_STAT_SEGMENT, p->small, 1);
    oos_count_down(sim, OOS_STAT_RESERVED_BYTES, p->small, b->bytes);
    if (b->bytes >= sim->settings.max_split_bytes) oos_counter_down(&sim->stats.oversize_segments, 1);
    oos_free_remove(sim, index);
    oos_block_drop(sim, index);
}

void oos_release_pool(oos_sim *sim, uint32_t pool_index)
{
    uint32_t const count = oos_pool_list(sim, &sim->pools.list[pool_index]);
    uint32_t *list = sim->scratch.list, expandable = 0;
    for (uint32_t i = 0; i < count; i++) {
        const block *b = block_at(sim, list[i]);
        if (b->range)
            list[expandable++] = list[i];
        else if (!is_split(b))
            oos_release_block(sim, list[i]);
    }
    for (uint32_t i = 0; i < expandable; i++) {
        oos_unmap(sim, list[i]);
        const block *b = block_at(sim, list[i]);
        if (b->mapped || is_split(b)) continue;
        oos_unmapped_remove(sim, list[i]); /* nothing of the range is mapped any more: it goes */
        oos_block_drop(sim, list[i]);
    }
}

/* Only blocks that may not be split are looked at, in the pool of the request. What is released is released even when
 * it does not suffice. A limit that was lowered at run time can meet blocks that were split before: torch then calls
 * cudaFree for a piece, which the driver refuses; here such pieces are passed over. */
bool oos_release_available(oos_sim *sim, const request *r)
{
    uint64_t const limit = sim->settings.max_split_bytes;
    if (limit == OOS_UNLIMITED) return false;
    const oos_set *set = sim->homes.list[r->home].free;
    uint64_t const wanted = oos_max(r->bytes, limit);
    uint32_t at = oos_set_from(set, wanted, 0);
    if (at && !block_at(sim, at)->range && !is_split(block_at(sim, at))) {
        oos_release_block(sim, at);
        return true;
    }
    uint64_t released = 0;
    at = oos_set_below(set, wanted, 0);
    while (at && released < wanted && block_at(sim, at)->bytes >= limit) {
        uint32_t const before = oos_free_before(sim, at);
        if (!block_at(sim, at)->range && !is_split(block_at(sim, at))) {
            released += block_at(sim, at)->bytes;
            oos_release_block(sim, at);
        }
        at = before;
    }
    return released >= wanted;
}

static bool same_id(oos_pool_id a, oos_pool_id b)
{
    return a.first == b.first && a.second == b.second;
}

void oos_release_cached(oos_sim *sim, oos_pool_id id)
{
    bool const everything = id.first == 0 && id.second == 0;
    if (everything && !oos_in_capture(sim)) {
        oos_events_synchronize(sim, NO_OWNER);
        oos_release_pool(sim, DEFAULT_LARGE);
        oos_release_pool(sim, DEFAULT_SMALL);
    }
    for (ptrdiff_t at = oos_id_table_next(&sim->freeable, 0); at >= 0;) {
        uint32_t const index = sim->freeable.entries[at].value;
        bool const named = !everything && same_id(sim->owners.list[index].id, id);
        if (named) oos_events_synchronize(sim, index);
        if (everything || named) {
            oos_release_pool(sim, 2 * index);
            oos_release_pool(sim, 2 * index + 1);
        }
        owner *o = &sim->owners.list[index];
        if ((everything || named) && o->segments == 0) {
            sim->private_free_bytes -=
                sim->pools.list[2 * index].free_bytes + sim->pools.list[2 * index + 1].free_bytes;
            o->known = false;
            oos_id_table_erase(&sim->freeable, at);
        } else {
            at++;
        }
        at = oos_id_table_next(&sim->freeable, at);
    }
}

void oos_sim_empty_cache(oos_sim *sim, oos_pool_id id)
{
    oos_release_cached(sim, sim->rules.pool_empty_cache ? id : (oos_pool_id){0, 0});
}

/* Age of a free block: calls of its pool since it became free. */
static uint64_t age_of(const pool *p, const block *b)
{
    return (uint32_t)p->calls - b->age_base;
}

void oos_collect_garbage(oos_sim *sim)
{
    uint64_t const mark = (uint64_t)(sim->settings.gc_threshold * (double)sim->allowed_bytes);
    if (sim->reserved_bytes <= mark) return;
    uint64_t const target = sim->reserved_bytes - mark;
    pool *p = &sim->pools.list[DEFAULT_LARGE];
    double total_age = 0;
    uint64_t whole = 0, reclaimed = 0;
    uint32_t count = oos_pool_list(sim, p);
    for (uint32_t i = 0; i < count; i++) {
        const block *b = block_at(sim, sim->scratch.list[i]);
        if (is_split(b)) continue;
        total_age += (double)age_of(p, b);
        whole++;
    }
    bool freed = true;
    while (reclaimed < target && freed && whole > 0) {
        double const least = total_age / (double)whole;
        freed = false;
        count = oos_pool_list(sim, p);
        for (uint32_t i = 0; i < count; i++) {
            const block *b = block_at(sim, sim->scratch.list[i]);
            double const age = (double)age_of(p, b);
            if (is_split(b) || b->range || age < least) continue;
            freed = true;
            reclaimed += b->bytes;
            total_age -= age;
            whole--;
            oos_release_block(sim, sim->scratch.list[i]);
        }
    }
}

void oos_sweep(oos_sim *sim, const request *r)
{
    double const mark = sim->params.sweep_ratio * (double)sim->device.total_bytes;
    double const after =
        (double)sim->device.base_bytes + (double)sim->reserved_bytes + (double)r->segment_bytes;
    if (after <= mark || sim->captures > 0) return;
    uint32_t const owner_index = sim->pools.list[sim->homes.list[r->home].pool].owner;
    oos_release_pool(sim, 2 * owner_index);
    oos_release_pool(sim, 2 * owner_index + 1);
}

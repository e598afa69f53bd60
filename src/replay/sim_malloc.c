/* malloc: rounding, best fit, a new segment, the ladder of retries, splitting. */
#include "base/check.h"
#include "replay/sim_state.h"

#define ONE_EXABYTE ((uint64_t)1 << 60)

static unsigned log2_floor(uint64_t number)
{
    return 63 - (unsigned)__builtin_clzll(number);
}

/* Up to the next of `divisions` steps between two powers of two. */
static uint64_t round_to_division(uint64_t bytes, uint32_t divisions)
{
    if (divisions <= 1 || (bytes & (bytes - 1)) == 0) return bytes;
    oos_assert((divisions & (divisions - 1)) == 0);
    uint64_t const floor_power = (uint64_t)1 << log2_floor(bytes);
    uint64_t const step = floor_power >> log2_floor(divisions);
    if (step == 0) return floor_power << 1;
    uint64_t const down = bytes & ~(step - 1);
    return down == bytes ? bytes : down + step;
}

static uint64_t round_size(const oos_sim *sim, uint64_t bytes)
{
    if (bytes < MIN_BLOCK) return MIN_BLOCK;
    unsigned const log = log2_floor(bytes);
    unsigned slot = log > 20 ? log - 20 : 0;
    if (slot >= OOS_DIVISION_SLOTS) slot = OOS_DIVISION_SLOTS - 1;
    uint32_t const divisions = sim->settings.divisions[slot];
    if (divisions > (sim->rules.one_division_rounds ? 1 : 0) && bytes > MIN_BLOCK * divisions)
        return round_to_division(bytes, divisions);
    return (bytes + MIN_BLOCK - 1) & ~(MIN_BLOCK - 1);
}

static uint64_t segment_size(const oos_sim *sim, uint64_t bytes)
{
    if (bytes <= SMALL_LIMIT) return SMALL_SEGMENT;
    if (bytes < OWN_SEGMENT) return sim->settings.large_segment_bytes;
    return oos_round_up(bytes, SEGMENT_ROUND);
}

/* What a free expandable block could become together with the unmapped space behind it. */
static uint64_t reach(oos_sim *sim, const block *b)
{
    if (!b->next || block_at(sim, b->next)->mapped) return b->bytes;
    return b->bytes + block_at(sim, b->next)->bytes;
}

/* Best fit landed on an expandable block: walk on to the one with the least reach, or past all of them. */
static uint32_t past_expandable(oos_sim *sim, uint32_t index, bool expandable)
{
    if (!expandable) {
        while (index && block_at(sim, index)->range) index = oos_free_after(sim, index);
        return index;
    }
    while (block_at(sim, index)->range) {
        uint32_t const next = oos_free_after(sim, index);
        if (!next || reach(sim, block_at(sim, next)) >= reach(sim, block_at(sim, index))) break;
        index = next;
    }
    return index;
}

static bool take_free(oos_sim *sim, request *r)
{
    const home *h = &sim->homes.list[r->home];
    if (sim->limited && sim->settings.gc_threshold > 0) sim->pools.list[h->pool].calls++;
    uint32_t index = oos_set_from(h->free, r->bytes, 0);
    if (index && block_at(sim, index)->range) index = past_expandable(sim, index, r->expandable);
    if (!index) return false;
    uint64_t const limit = sim->settings.max_split_bytes, bytes = block_at(sim, index)->bytes;
    if (r->bytes < limit && bytes >= limit) return false;
    if (r->bytes >= limit && bytes >= oos_add(r->bytes, sim->settings.non_split_rounding_bytes)) return false;
    oos_free_remove(sim, index);
    r->block = index;
    return true;
}

static bool backend_take(oos_sim *sim, owner *o, uint64_t bytes, uint64_t *ret_address)
{
    if (o && o->backend == OOS_BACKEND_STICKY && o->broken) return false;
    if (oos_device_take(&sim->device, bytes, ret_address)) return true;
    if (o) o->broken = true;
    return false;
}

static bool segment_create(oos_sim *sim, request *r)
{
    pool *p = &sim->pools.list[sim->homes.list[r->home].pool];
    owner *o = owner_of(sim, p);
    if (r->expandable && (!o || sim->rules.private_expandable)) {
        r->block = oos_expand(sim, r);
        if (r->block && o) o->segments++;
        return r->block != 0;
    }
    uint64_t address;
    if (!backend_take(sim, o, r->segment_bytes, &address)) return false;
    if (o) o->segments++;
    sim->reserved_bytes += r->segment_bytes;
    r->block = oos_block_create(sim, r->home, address, r->segment_bytes);
    oos_block_number(sim, r->block, 0);
    oos_count_up(sim, OOS_STAT_SEGMENT, p->small, 1);
    oos_count_up(sim, OOS_STAT_RESERVED_BYTES, p->small, r->segment_bytes);
    if (r->segment_bytes >= sim->settings.max_split_bytes) oos_counter_up(&sim->stats.oversize_segments, 1);
    sim->stats.device_allocs++;
    oos_log_put(sim, OOS_ACTION_SEGMENT_ALLOC, address, r->segment_bytes, r->stream);
    return r->block != 0;
}

static bool add_segment(oos_sim *sim, request *r)
{
    uint64_t const after = oos_add(sim->reserved_bytes, r->segment_bytes);
    if (sim->limited && after > sim->allowed_bytes) return false;
    if (sim->settings.throw_on_oom) { /* measured against the setting, not against the limit in force */
        double const limit = sim->settings.memory_fraction * (double)sim->device.total_bytes;
        r->rejected = after > (uint64_t)limit;
        if (r->rejected) return false;
    }
    return segment_create(sim, r);
}

/* A free block of a pool that lends under pressure; it keeps belonging to that pool. */
static bool take_lent(oos_sim *sim, request *r)
{
    if (sim->pools.list[sim->homes.list[r->home].pool].owner != NO_OWNER) return false;
    for (ptrdiff_t at = oos_id_table_next(&sim->lenders, 0); at >= 0;
         at = oos_id_table_next(&sim->lenders, at + 1)) {
        uint32_t const lender = 2 * sim->lenders.entries[at].value + (r->bytes <= SMALL_LIMIT ? 0 : 1);
        request other = *r;
        other.home = oos_home_of(sim, lender, r->stream);
        other.expandable = sim->rules.lends_expandable && r->expandable;
        if (other.home && take_free(sim, &other)) {
            *r = other;
            return true;
        }
    }
    return false;
}

/* No free block fits: the ladder of torch, up to the first success. */
static bool find_memory(oos_sim *sim, request *r)
{
    if (sim->limited && sim->settings.gc_threshold > 0) oos_collect_garbage(sim);
    if (sim->params.sweep_ratio > 0) oos_sweep(sim, r);
    if (add_segment(sim, r)) return true;
    if (r->rejected) return false;
    if (sim->rules.lender_turn == OOS_LENDER_FIRST && take_lent(sim, r)) return true;
    if (oos_release_available(sim, r) && add_segment(sim, r)) return true;
    if (r->rejected) return false;
    if (!oos_in_capture(sim)) {
        oos_release_cached(sim, (oos_pool_id){0, 0});
        sim->stats.retries++;
        if (add_segment(sim, r)) return true;
        if (r->rejected) return false;
    }
    return sim->rules.lender_turn == OOS_LENDER_LAST && take_lent(sim, r);
}

static bool should_split(oos_sim *sim, const request *r)
{
    const block *b = block_at(sim, r->block);
    const pool *p = pool_of(sim, b);
    if (p->owner != NO_OWNER && sim->owners.list[p->owner].no_split) return false;
    oos_assert(r->bytes <= b->bytes);
    uint64_t const remaining = b->bytes - r->bytes;
    if (p->small || r->expandable) return remaining >= MIN_BLOCK;
    return r->bytes < sim->settings.max_split_bytes && remaining > SMALL_LIMIT;
}

/* The front becomes a new block; the old one keeps its number and is the rest. */
static uint32_t split(oos_sim *sim, const request *r)
{
    uint32_t const rest = r->block;
    uint32_t const front =
        oos_block_create(sim, block_at(sim, rest)->home, block_at(sim, rest)->address, r->bytes);
    oos_block_number(sim, front, rest);
    block *f = block_at(sim, front), *b = block_at(sim, rest);
    f->range = b->range;
    f->prev = b->prev;
    f->next = rest;
    if (f->prev) block_at(sim, f->prev)->next = front;
    b->prev = front;
    b->address += r->bytes;
    b->bytes -= r->bytes;
    oos_free_insert(sim, rest);
    return front;
}

static uint32_t hand_out(oos_sim *sim, request *r)
{
    bool const small = pool_of(sim, block_at(sim, r->block))->small;
    bool const was_split = is_split(block_at(sim, r->block)), plain = !block_at(sim, r->block)->range;
    if (should_split(sim, r)) {
        uint64_t const rest_bytes = block_at(sim, r->block)->bytes - r->bytes;
        r->block = split(sim, r);
        if (plain && was_split) {
            oos_count_down(sim, OOS_STAT_INACTIVE_SPLIT_BYTES, small, r->bytes);
        } else if (plain) {
            oos_count_up(sim, OOS_STAT_INACTIVE_SPLIT_BYTES, small, rest_bytes);
            oos_count_up(sim, OOS_STAT_INACTIVE_SPLIT, small, 1);
        }
    } else if (plain && was_split) {
        oos_count_down(sim, OOS_STAT_INACTIVE_SPLIT_BYTES, small, block_at(sim, r->block)->bytes);
        oos_count_down(sim, OOS_STAT_INACTIVE_SPLIT, small, 1);
    }
    block *b = block_at(sim, r->block);
    b->allocated = true;
    b->requested_bytes = r->asked_bytes;
    oos_log_put(sim, OOS_ACTION_ALLOC, b->address, r->asked_bytes, r->stream);
    oos_count_up(sim, OOS_STAT_ALLOCATION, small, 1);
    oos_count_up(sim, OOS_STAT_ALLOCATED_BYTES, small, b->bytes);
    oos_count_up(sim, OOS_STAT_ACTIVE, small, 1);
    oos_count_up(sim, OOS_STAT_ACTIVE_BYTES, small, b->bytes);
    oos_count_up(sim, OOS_STAT_REQUESTED_BYTES, small, r->asked_bytes);
    if (b->bytes >= sim->settings.max_split_bytes) oos_counter_up(&sim->stats.oversize_allocations, 1);
    return r->block;
}

uint32_t oos_sim_malloc(oos_sim *sim, uint64_t bytes, uint64_t stream_handle)
{
    sim->current_stream = stream_handle;
    request r = {.asked_bytes = bytes, .stream = stream_handle, .bytes = bytes};
    if (bytes >= ONE_EXABYTE) { /* refused before the allocator proper sees it */
        sim->last = r;
        return 0;
    }
    if ((sim->deferred.count || sim->event_streams.count) && !oos_in_capture(sim)) oos_events_process(sim);
    r.bytes = round_size(sim, bytes);
    r.segment_bytes = segment_size(sim, r.bytes);
    oos_assert(bytes <= r.bytes && r.bytes <= r.segment_bytes);
    uint32_t const pool_index = oos_route(sim, r.bytes <= SMALL_LIMIT);
    const owner *o = owner_of(sim, &sim->pools.list[pool_index]);
    r.expandable = sim->settings.expandable && !(o && o->backend != OOS_BACKEND_DRIVER);
    r.home = oos_home_of(sim, pool_index, stream_handle);
    if (take_free(sim, &r) || find_memory(sim, &r)) {
        uint32_t const given = hand_out(sim, &r);
        /* a walk takes as long as there are blocks */
        oos_assert(sim->failed || sim->blocks.count > 256 || oos_sim_is_sound(sim));
        return given;
    }

    sim->last = r;
    if (r.rejected) {
        sim->stats.rejections++;
        return 0;
    }
    sim->stats.ooms++;
    oos_log_put(sim, OOS_ACTION_OOM, oos_device_free_bytes(&sim->device), r.bytes, stream_handle);
    return 0;
}

/* Expandable segments: address ranges larger than the device, into which pages are mapped as they are needed.
 *
 *   range     | mapped, allocated | mapped, free | unmapped ........ |
 *             one chain of blocks; free ones lie in home.free, unmapped ones in home.unmapped (by address) */
#include "replay/sim_state.h"
#include "base/check.h"

uint64_t oos_range_bytes(const oos_sim *sim)
{
    uint64_t const total = sim->device.total_bytes, full = total + total / 8;
    double const reserve = sim->settings.reserve;
    if (reserve <= 0) return full;
    double const bytes = sim->settings.reserve_is_bytes ? reserve : reserve * (double)total;
    return bytes < (double)full ? (uint64_t)bytes : full;
}

static uint64_t page_of(const oos_sim *sim, uint32_t home_index)
{
    return sim->pools.list[sim->homes.list[home_index].pool].small ? SMALL_SEGMENT
                                                                   : sim->settings.large_segment_bytes;
}

static uint32_t range_create(oos_sim *sim, request *r)
{
    uint64_t const page = page_of(sim, r->home), bytes = oos_round_up(oos_range_bytes(sim), page);
    if (sim->rules.reserve_key && bytes < r->bytes) {
        r->too_large_for_range = true;
        return 0;
    }
    if (!bytes || !GROW(sim, sim->ranges)) return 0; /* two ranges of no bytes would begin at one address */
    uint32_t const index = sim->ranges.count++;
    uint64_t const address = oos_device_reserve(&sim->device, bytes);
    sim->ranges.list[index] = (range){.address = address, .page_bytes = page};
    uint32_t const whole = oos_block_create(sim, r->home, address, bytes);
    oos_block_number(sim, whole, 0);
    block_at(sim, whole)->mapped = false;
    block_at(sim, whole)->range = index;
    oos_unmapped_insert(sim, whole);
    return whole;
}

/* The lowest run of free and unmapped blocks that is long enough; else a new range. */
static uint32_t find_run(oos_sim *sim, request *r)
{
    const oos_set *unmapped = sim->homes.list[r->home].unmapped;
    for (uint32_t at = unmapped ? oos_set_from(unmapped, 0, 0) : 0; at;) {
        uint32_t start = at;
        uint32_t const before = block_at(sim, at)->prev;
        if (before && !is_active(block_at(sim, before))) start = before;
        uint64_t bytes = 0;
        for (uint32_t i = start; i && bytes < r->bytes && !is_active(block_at(sim, i));) {
            bytes += block_at(sim, i)->bytes;
            i = block_at(sim, i)->next;
        }
        if (bytes >= r->bytes) return start;
        at = oos_set_from(unmapped, block_at(sim, at)->address + 1, 0);
    }
    return range_create(sim, r);
}

/* Map whole pages over the first `bytes` of an unmapped block. */
static bool map_front(oos_sim *sim, uint32_t index, uint64_t bytes)
{
    block *b = block_at(sim, index);
    range const g = sim->ranges.list[b->range];
    uint64_t const first = (b->address - g.address) / g.page_bytes;
    uint64_t const end = oos_cdiv(b->address + bytes - g.address, g.page_bytes);
    uint64_t const mapped = (end - first) * g.page_bytes, start = g.address + first * g.page_bytes;
    oos_assert(!b->mapped && start == b->address && mapped <= b->bytes); /* whole pages, from the first on */
    if (!oos_device_create(&sim->device, mapped)) return false;
    oos_unmapped_remove(sim, index);
    b->mapped = true;
    if (mapped < b->bytes) {
        uint32_t const rest = oos_block_create(sim, b->home, b->address + mapped, b->bytes - mapped);
        oos_block_number(sim, rest, index);
        b = block_at(sim, index);
        block *s = block_at(sim, rest);
        s->mapped = false;
        s->range = b->range;
        s->prev = index;
        s->next = b->next;
        if (s->next) block_at(sim, s->next)->prev = rest;
        b->next = rest;
        b->bytes = mapped;
        oos_unmapped_insert(sim, rest);
    }
    oos_block_merge(sim, index, b->prev);
    oos_block_merge(sim, index, b->next);
    oos_free_insert(sim, index);
    sim->reserved_bytes += mapped;
    oos_count_up(sim, OOS_STAT_RESERVED_BYTES, pool_of(sim, b)->small, mapped);
    sim->stats.device_allocs++;
    oos_log_put(sim, OOS_ACTION_SEGMENT_MAP, start, mapped, sim->homes.list[b->home].stream);
    return true;
}

/* What was mapped before a failure stays mapped, as free blocks. */
uint32_t oos_expand(oos_sim *sim, request *r)
{
    uint32_t at = find_run(sim, r);
    if (!at || sim->failed) return 0;
    if (!block_at(sim, at)->mapped && !map_front(sim, at, oos_min(block_at(sim, at)->bytes, r->bytes)))
        return 0;
    while (block_at(sim, at)->bytes < r->bytes) {
        uint32_t const next = block_at(sim, at)->next;
        if (!next) return 0;
        uint64_t const missing = r->bytes - block_at(sim, at)->bytes;
        if (!map_front(sim, next, oos_min(missing, block_at(sim, next)->bytes))) return 0;
        at = next; /* it has swallowed the one before */
    }
    oos_assert(block_at(sim, at)->mapped && !is_active(block_at(sim, at)));
    oos_free_remove(sim, at);
    return at;
}

static void cut_free(oos_sim *sim, uint32_t from, uint64_t address, uint64_t bytes, bool in_front)
{
    uint32_t const piece = oos_block_create(sim, block_at(sim, from)->home, address, bytes);
    oos_block_number(sim, piece, from);
    block *p = block_at(sim, piece), *b = block_at(sim, from);
    p->range = b->range;
    p->prev = in_front ? b->prev : from;
    p->next = in_front ? from : b->next;
    if (in_front) {
        if (p->prev) block_at(sim, p->prev)->next = piece;
        b->prev = piece;
    } else {
        if (p->next) block_at(sim, p->next)->prev = piece;
        b->next = piece;
    }
    oos_free_insert(sim, piece);
}

void oos_unmap(oos_sim *sim, uint32_t index)
{
    block *b = block_at(sim, index);
    oos_assert(b->range && b->mapped && !is_active(b));
    range const g = sim->ranges.list[b->range];
    uint64_t const first = oos_cdiv(b->address - g.address, g.page_bytes);
    uint64_t const end = (b->address + b->bytes - g.address) / g.page_bytes;
    if (first >= end) return;
    uint64_t const start = g.address + first * g.page_bytes, bytes = (end - first) * g.page_bytes;
    oos_device_destroy(&sim->device, bytes);
    oos_free_remove(sim, index);
    uint64_t const front = start - b->address, back = b->bytes - front - bytes;
    if (front) cut_free(sim, index, b->address, front, true);
    if (back) cut_free(sim, index, start + bytes, back, false);
    b = block_at(sim, index);
    b->address = start;
    b->bytes = bytes;
    b->mapped = false;
    oos_block_merge(sim, index, b->prev);
    oos_block_merge(sim, index, b->next);
    oos_unmapped_insert(sim, index);
    pool *p = pool_of(sim, b);
    owner *o = owner_of(sim, p);
    oos_assert(bytes <= sim->reserved_bytes);
    sim->reserved_bytes -= bytes;
    oos_count_down(sim, OOS_STAT_RESERVED_BYTES, p->small, bytes);
    if (o) o->segments--;
    sim->stats.device_frees++;
    oos_log_put(sim, OOS_ACTION_SEGMENT_UNMAP, start, bytes, sim->homes.list[b->home].stream);
    oos_sim_complete(sim,
                     sim->homes.list[b->home].stream); /* torch synchronises the stream before it unmaps */
}

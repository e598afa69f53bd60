/* Blocks, their neighbours, and the sets of free and unmapped ones. */
#include "replay/sim_state.h"
#include "base/check.h"

#include <stdlib.h>

bool oos_sim_grow(oos_sim *sim, void *array, size_t item_bytes)
{
    ARRAY(void) *a = array;
    if (a->count < a->capacity) return true;
    uint32_t const capacity = a->capacity ? a->capacity * 2 : 16;
    void *grown = capacity > a->capacity ? realloc(a->list, capacity * item_bytes) : NULL;
    if (!grown) {
        sim->failed = true;
        return false;
    }
    a->list = grown;
    a->capacity = capacity;
    return true;
}

/* As oos_sim_grow(), with every block in a cache line of its own. */
_Static_assert(sizeof(block) == 64, "a block fills a cache line");
bool oos_blocks_grow(oos_sim *sim)
{
    if (sim->blocks.count < sim->blocks.capacity) return true;
    uint32_t const capacity = sim->blocks.capacity ? sim->blocks.capacity * 2 : 16;
    void *grown = NULL;
    if (capacity <= sim->blocks.capacity || posix_memalign(&grown, 64, capacity * sizeof(block))) {
        sim->failed = true;
        return false;
    }
    if (sim->blocks.count) memcpy(grown, sim->blocks.list, sim->blocks.count * sizeof(block));
    free(sim->blocks.list);
    sim->blocks.list = grown;
    sim->blocks.capacity = capacity;
    return true;
}

uint32_t oos_block_create(oos_sim *sim, uint32_t home_index, uint64_t address, uint64_t bytes)
{
    uint32_t index = sim->spare_block;
    oos_assert(!index || !block_at(sim, index)->live);
    if (index)
        sim->spare_block = sim->blocks.list[index].range;
    else if (oos_blocks_grow(sim))
        index = sim->blocks.count++;
    *block_at(sim, index) =
        (block){.address = address, .bytes = bytes, .home = home_index, .live = true, .mapped = true};
    return index;
}

void oos_block_drop(oos_sim *sim, uint32_t index)
{
    if (!index) return;
    oos_assert(block_at(sim, index)->live && !block_at(sim, index)->allocated);
    oos_uses_release(sim, index);
    *block_at(sim, index) = (block){.range = sim->spare_block};
    sim->spare_block = index;
}

/* From 2.13 equal sizes are ordered by (segment, address). Both fit into one number: the segment's creation number
 * above, the distance from the segment's start in 512-byte units below (32 bits: 2 TiB). `order` keeps that number
 * less the address, so that all pieces of a segment share it. */
void oos_block_number(oos_sim *sim, uint32_t index, uint32_t parent)
{
    block *b = block_at(sim, index);
    switch (sim->rules.order) {
    case OOS_ORDER_ADDRESS: break;
    case OOS_ORDER_BLOCK: b->order = ++sim->creations; break;
    case OOS_ORDER_SEGMENT:
        b->order = parent ? block_at(sim, parent)->order : (++sim->creations << 32) - (b->address >> 9);
        break;
    }
}

static uint64_t order_of(const oos_sim *sim, const block *b)
{
    switch (sim->rules.order) {
    case OOS_ORDER_ADDRESS: return b->address;
    case OOS_ORDER_BLOCK: return b->order;
    case OOS_ORDER_SEGMENT: return b->order + (b->address >> 9);
    }
    return 0;
}

uint32_t oos_free_after(const oos_sim *sim, uint32_t index)
{
    const block *b = &sim->blocks.list[index];
    return oos_set_from(sim->homes.list[b->home].free, b->bytes, order_of(sim, b) + 1);
}

uint32_t oos_free_before(const oos_sim *sim, uint32_t index)
{
    const block *b = &sim->blocks.list[index];
    return oos_set_below(sim->homes.list[b->home].free, b->bytes, order_of(sim, b));
}

void oos_free_insert(oos_sim *sim, uint32_t index)
{
    block *b = block_at(sim, index);
    pool *p = pool_of(sim, b);
    oos_assert(b->mapped && !b->allocated && b->events == 0);
    b->age_base = (uint32_t)p->calls;
    p->free_bytes += b->bytes;
    if (is_private(sim, p)) sim->private_free_bytes += b->bytes;
    if (!oos_set_add(sim->homes.list[b->home].free, b->bytes, order_of(sim, b), index)) sim->failed = true;
}

void oos_free_remove(oos_sim *sim, uint32_t index)
{
    block *b = block_at(sim, index);
    pool *p = pool_of(sim, b);
    oos_assert(p->free_bytes >= b->bytes);
    oos_assert(!is_private(sim, p) || sim->private_free_bytes >= b->bytes);
    p->free_bytes -= b->bytes;
    if (is_private(sim, p)) sim->private_free_bytes -= b->bytes;
    oos_set_remove(sim->homes.list[b->home].free, b->bytes, order_of(sim, b));
}

void oos_unmapped_insert(oos_sim *sim, uint32_t index)
{
    block *b = block_at(sim, index);
    home *h = &sim->homes.list[b->home];
    oos_assert(!b->mapped && b->range);
    if (!h->unmapped) h->unmapped = oos_set_create();
    if (!h->unmapped || !oos_set_add(h->unmapped, b->address, 0, index)) sim->failed = true;
}

void oos_unmapped_remove(oos_sim *sim, uint32_t index)
{
    block *b = block_at(sim, index);
    home *h = &sim->homes.list[b->home];
    if (h->unmapped) oos_set_remove(h->unmapped, b->address, 0);
}

uint64_t oos_block_merge(oos_sim *sim, uint32_t into, uint32_t from)
{
    if (!from) return 0;
    block *d = block_at(sim, into), *s = block_at(sim, from);
    if (is_active(s) || d->mapped != s->mapped) return 0;
    oos_assert(d->prev == from ? s->address + s->bytes == d->address
                               : d->next == from && d->address + d->bytes == s->address);
    if (s->mapped)
        oos_free_remove(sim, from);
    else
        oos_unmapped_remove(sim, from);
    if (d->prev == from) {
        d->address = s->address;
        d->prev = s->prev;
        if (d->prev) block_at(sim, d->prev)->next = into;
    } else {
        d->next = s->next;
        if (d->next) block_at(sim, d->next)->prev = into;
    }
    uint64_t const bytes = s->bytes;
    d->bytes += bytes;
    oos_block_drop(sim, from);
    return bytes;
}

static uint32_t home_create(oos_sim *sim, uint32_t pool_index, uint64_t stream_handle, uint32_t at)
{
    pool *p = &sim->pools.list[pool_index];
    if (p->home_count == p->home_capacity) {
        uint32_t const capacity = p->home_capacity ? p->home_capacity * 2 : 4;
        uint32_t *grown = realloc(p->homes, capacity * sizeof *grown);
        if (!grown) return sim->failed = true, 0;
        p->homes = grown;
        p->home_capacity = capacity;
    }
    oos_set *set = oos_set_create();
    if (!set || !GROW(sim, sim->homes)) {
        oos_set_free(set);
        return sim->failed = true, 0;
    }
    uint32_t const index = sim->homes.count++;
    sim->homes.list[index] = (home){.free = set, .stream = stream_handle, .pool = pool_index};
    memmove(p->homes + at + 1, p->homes + at, (p->home_count - at) * sizeof *p->homes);
    p->homes[at] = index;
    oos_assert(at == 0 || sim->homes.list[p->homes[at - 1]].stream < stream_handle);
    p->home_count++;
    return index;
}

uint32_t oos_home_of(oos_sim *sim, uint32_t pool_index, uint64_t stream_handle)
{
    pool *p = &sim->pools.list[pool_index];
    if (p->last_home && sim->homes.list[p->last_home].stream == stream_handle) return p->last_home;
    uint32_t low = 0, high = p->home_count;
    while (low < high) {
        uint32_t const middle = low + (high - low) / 2;
        uint64_t const handle = sim->homes.list[p->homes[middle]].stream;
        if (handle == stream_handle) return p->last_home = p->homes[middle];
        if (handle < stream_handle)
            low = middle + 1;
        else
            high = middle;
    }
    return home_create(sim, pool_index, stream_handle, low);
}

uint32_t oos_pool_list(oos_sim *sim, const pool *p)
{
    size_t count = 0;
    for (uint32_t i = 0; i < p->home_count; i++) count += oos_set_count(sim->homes.list[p->homes[i]].free);
    while (sim->scratch.capacity < count) {
        sim->scratch.count = sim->scratch.capacity; /* full: grow */
        if (!GROW(sim, sim->scratch)) return 0;
    }
    sim->scratch.count = 0;
    if (count == 0) return 0;
    for (uint32_t i = 0; i < p->home_count; i++) {
        const oos_set *set = sim->homes.list[p->homes[i]].free;
        oos_set_list(set, sim->scratch.list + sim->scratch.count);
        sim->scratch.count += (uint32_t)oos_set_count(set);
    }
    oos_assert(sim->scratch.count == count);
    return sim->scratch.count;
}

/* Neighbours know each other and touch, and the free bytes of every pool are those of its blocks. Blocks of one expandable range
 * touch as well, mapped or not. */
bool oos_sim_is_sound(const oos_sim *sim)
{
    uint64_t free_bytes = 0, counted = 0;
    for (uint32_t i = 1; i < sim->blocks.count; i++) {
        const block *b = &sim->blocks.list[i];
        if (!b->live) continue;
        const block *next = b->next ? &sim->blocks.list[b->next] : NULL;
        if (next && (!next->live || next->prev != i || next->address != b->address + b->bytes)) return false;
        if (b->allocated && !b->mapped) return false;
        if (!b->allocated && b->mapped && b->events == 0) free_bytes += b->bytes;
    }
    for (uint32_t i = 0; i < sim->pools.count; i++) counted += sim->pools.list[i].free_bytes;
    return counted <= free_bytes && sim->device.used_bytes <= sim->device.total_bytes;
}

/* Private pools: CUDA-graph pools and MemPools, who is routed to them, who still refers to them. */
#include "replay/sim_state.h"
#include "base/check.h"

#include <stdlib.h>

enum { BUCKETS_FIRST = 64 };

static uint32_t bucket_of(const oos_sim *sim, oos_pool_id id)
{
    oos_assert((sim->owner_bucket_count & (sim->owner_bucket_count - 1)) == 0);
    uint64_t const mixed = (id.first * 0x9E3779B97F4A7C15u ^ id.second) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(mixed >> 32) & (sim->owner_bucket_count - 1);
}

/* An id that was given up and came again has several owners in its chain, of which one is known. */
uint32_t oos_owner_find(const oos_sim *sim, oos_pool_id id)
{
    if (!sim->owner_bucket_count) return NO_OWNER;
    for (uint32_t i = sim->owner_buckets[bucket_of(sim, id)]; i != NO_OWNER; i = sim->owners.list[i].next) {
        const owner *o = &sim->owners.list[i];
        if (o->known && o->id.first == id.first && o->id.second == id.second) return i;
    }
    return NO_OWNER;
}

static void owner_enter(oos_sim *sim, uint32_t index)
{
    owner *o = &sim->owners.list[index];
    uint32_t *head = &sim->owner_buckets[bucket_of(sim, o->id)];
    o->next = *head;
    *head = index;
}

/* Room for one more: twice the buckets when there are as many owners. */
static bool buckets_grow(oos_sim *sim)
{
    if (sim->owners.count < sim->owner_bucket_count) return true;
    uint32_t const count = sim->owner_bucket_count ? 2 * sim->owner_bucket_count : BUCKETS_FIRST;
    uint32_t *buckets = calloc(count, sizeof *buckets); /* NO_OWNER is 0 */
    if (!buckets) {
        sim->failed = true;
        return false;
    }
    free(sim->owner_buckets);
    sim->owner_buckets = buckets;
    sim->owner_bucket_count = count;
    for (uint32_t i = 1; i < sim->owners.count; i++) owner_enter(sim, i);
    return true;
}

uint32_t oos_route(const oos_sim *sim, bool small)
{
    uint32_t index = NO_OWNER;
    if (sim->routes.count) index = sim->routes.list[sim->rules.oldest_route_wins ? 0 : sim->routes.count - 1];
    oos_assert(index < sim->owners.count);
    return 2 * index + (small ? 0 : 1);
}

static uint32_t owner_create(oos_sim *sim, oos_pool_id id)
{
    if (!buckets_grow(sim) || !GROW(sim, sim->owners) || !GROW(sim, sim->pools)) return NO_OWNER;
    uint32_t const index = sim->owners.count++;
    sim->owners.list[index] = (owner){.id = id, .count = 1, .known = true};
    owner_enter(sim, index);
    sim->pools.list[sim->pools.count++] = (pool){.small = true, .owner = index};
    if (!GROW(sim, sim->pools)) return NO_OWNER;
    sim->pools.list[sim->pools.count++] = (pool){.small = false, .owner = index};
    oos_assert(sim->failed || sim->pools.count == 2 * sim->owners.count);
    return index;
}

static uint32_t owner_refer(oos_sim *sim, oos_pool_id id)
{
    uint32_t const index = oos_owner_find(sim, id);
    if (index == NO_OWNER) return owner_create(sim, id);
    sim->owners.list[index].count++;
    return index;
}

static bool is_default(oos_pool_id id)
{
    return id.first == 0 && id.second == 0;
}

void oos_sim_pool_create(oos_sim *sim, oos_pool_id id, oos_backend backend)
{
    if (is_default(id)) return;
    uint32_t const index = owner_refer(sim, id);
    if (index != NO_OWNER && backend != OOS_BACKEND_DRIVER) sim->owners.list[index].backend = backend;
}

void oos_sim_pool_begin(oos_sim *sim, oos_pool_id id, bool capture)
{
    if (is_default(id)) return;
    uint32_t const index = owner_refer(sim, id);
    if (index == NO_OWNER || !GROW(sim, sim->routes)) return;
    sim->routes.list[sim->routes.count++] = index;
    if (!capture) return;
    stream *s = oos_stream_at(sim, sim->current_stream);
    if (s) s->capturing = true;
    sim->captures++;
}

void oos_sim_pool_end(oos_sim *sim, oos_pool_id id, bool capture)
{
    if (capture && sim->captures) {
        stream *s = oos_stream_at(sim, sim->current_stream);
        if (s) s->capturing = false;
        sim->captures--;
    }
    uint32_t const index = oos_owner_find(sim, id);
    for (uint32_t i = 0; index != NO_OWNER && i < sim->routes.count; i++) {
        if (sim->routes.list[i] != index) continue;
        sim->routes.count--;
        memmove(sim->routes.list + i, sim->routes.list + i + 1,
                (sim->routes.count - i) * sizeof *sim->routes.list);
        return;
    }
}

static void table_add(oos_sim *sim, oos_id_table *table, uint32_t index)
{
    oos_pool_id const id = sim->owners.list[index].id;
    if (!oos_id_table_insert(table, id.first ? id.first : id.second, index)) sim->failed = true;
}

void oos_sim_pool_release(oos_sim *sim, oos_pool_id id)
{
    uint32_t const index = oos_owner_find(sim, id);
    if (index == NO_OWNER || sim->owners.list[index].count == 0) return;
    if (--sim->owners.list[index].count == 0) table_add(sim, &sim->freeable, index);
}

void oos_sim_pool_use_on_oom(oos_sim *sim, oos_pool_id id, bool on)
{
    uint32_t const index = oos_owner_find(sim, id);
    if (index == NO_OWNER) return;
    ptrdiff_t const at = oos_id_table_find(&sim->lenders, index);
    if (on)
        table_add(sim, &sim->lenders, index);
    else if (at >= 0)
        oos_id_table_erase(&sim->lenders, at);
}

void oos_sim_pool_no_split(oos_sim *sim, oos_pool_id id)
{
    uint32_t const index = oos_owner_find(sim, id);
    if (index != NO_OWNER && sim->rules.no_split_pools) sim->owners.list[index].no_split = true;
}

void oos_sim_route_push(oos_sim *sim, oos_pool_id id, oos_backend backend)
{
    uint32_t index = oos_owner_find(sim, id);
    if (index == NO_OWNER) {
        index = owner_create(sim, id);
        if (index != NO_OWNER) sim->owners.list[index].backend = backend;
    }
    if (GROW(sim, sim->routes)) sim->routes.list[sim->routes.count++] = index;
}

void oos_sim_route_pop(oos_sim *sim)
{
    if (sim->routes.count) sim->routes.count--;
}

bool oos_sim_routed(const oos_sim *sim)
{
    return sim->routes.count > 0;
}

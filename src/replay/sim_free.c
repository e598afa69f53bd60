/* free, other streams, and the events that hold a freed block back. */
#include "replay/sim_state.h"
#include "base/check.h"

#include <stdlib.h>

stream *oos_stream_at(oos_sim *sim, uint64_t handle)
{
    for (uint32_t i = 0; i < sim->streams.count; i++)
        if (sim->streams.list[i].handle == handle) return &sim->streams.list[i];
    if (!GROW(sim, sim->streams)) return NULL;
    stream *s = &sim->streams.list[sim->streams.count++];
    *s = (stream){.handle = handle};
    return s;
}

bool oos_in_capture(oos_sim *sim)
{
    if (sim->rules.routing_is_capture) return sim->routes.count > 0;
    if (sim->captures == 0) return false;
    const stream *s = oos_stream_at(sim, sim->current_stream);
    return s && s->capturing;
}

/* Net change of a counter, as one step up or down: only a step up can move the peak. */
static inline void count_change(oos_sim *sim, oos_stat stat, bool small, uint64_t more, uint64_t less)
{
    if (more > less) oos_count_up(sim, stat, small, more - less);
    if (less > more) oos_count_down(sim, stat, small, less - more);
}

static void finish_free(oos_sim *sim, uint32_t index)
{
    block *b = block_at(sim, index);
    bool const small = pool_of(sim, b)->small, plain = !b->range;
    uint64_t const bytes = b->bytes;
    oos_log_put(sim, OOS_ACTION_FREE_COMPLETED, b->address, b->requested_bytes,
                sim->homes.list[b->home].stream);
    uint64_t const left = oos_block_merge(sim, index, b->prev);
    uint64_t const right = oos_block_merge(sim, index, b->next);
    oos_free_insert(sim, index);
    if (plain) {
        bool const split = is_split(b);
        count_change(sim, OOS_STAT_INACTIVE_SPLIT, small, split, (uint64_t)(left > 0) + (right > 0));
        count_change(sim, OOS_STAT_INACTIVE_SPLIT_BYTES, small, split ? b->bytes : 0, left + right);
    }
    oos_count_down(sim, OOS_STAT_ACTIVE, small, 1);
    oos_count_down(sim, OOS_STAT_ACTIVE_BYTES, small, bytes);
    oos_count_down(sim, OOS_STAT_REQUESTED_BYTES, small, b->requested_bytes);
}

static void queue_event(oos_sim *sim, uint64_t handle, uint32_t index)
{
    stream *s = oos_stream_at(sim, handle);
    if (!s) return;
    oos_assert(s->first <= s->count && s->count <= s->capacity);
    if (s->first == s->count) {
        if (!GROW(sim, sim->event_streams)) return;
        s->first = s->count = 0;
        sim->event_streams.list[sim->event_streams.count++] = (uint32_t)(s - sim->streams.list);
    }
    if (s->count == s->capacity) {
        size_t const capacity = s->capacity ? s->capacity * 2 : 16;
        pending *grown = realloc(s->queue, capacity * sizeof *grown);
        if (!grown) {
            sim->failed = true;
            return;
        }
        s->queue = grown;
        s->capacity = capacity;
    }
    s->queue[s->count++] = (pending){++s->issued, index};
    oos_assert(block_at(sim, index)->events < UINT16_MAX);
    block_at(sim, index)->events++;
}

/* Streams in ascending order; a stream that is there already stays as it is. */
static void use_add(oos_sim *sim, uint32_t *head, uint64_t handle)
{
    uint32_t *link = head;
    while (*link && sim->uses.list[*link].stream < handle) link = &sim->uses.list[*link].next;
    if (*link && sim->uses.list[*link].stream == handle) return;
    oos_assert(sim->spare_use || sim->uses.count < sim->uses.capacity);
    uint32_t at = sim->spare_use;
    if (at)
        sim->spare_use = sim->uses.list[at].next;
    else
        at = sim->uses.count++; /* the caller has made room */
    sim->uses.list[at] = (use){handle, *link};
    *link = at;
}

static void use_drop(oos_sim *sim, uint32_t *head, uint64_t handle)
{
    uint32_t *link = head;
    while (*link && sim->uses.list[*link].stream != handle) link = &sim->uses.list[*link].next;
    uint32_t const at = *link;
    if (!at) return;
    *link = sim->uses.list[at].next;
    sim->uses.list[at] = (use){.next = sim->spare_use};
    sim->spare_use = at;
}

/* One event on each stream that used the block. */
static void record_events(oos_sim *sim, uint32_t index)
{
    while (block_at(sim, index)->uses) {
        uint64_t const handle = sim->uses.list[block_at(sim, index)->uses].stream;
        use_drop(sim, &block_at(sim, index)->uses, handle);
        queue_event(sim, handle, index);
    }
}

void oos_uses_release(oos_sim *sim, uint32_t index)
{
    block *b = block_at(sim, index);
    while (b->uses) use_drop(sim, &b->uses, sim->uses.list[b->uses].stream);
    while (b->capture_uses) use_drop(sim, &b->capture_uses, sim->uses.list[b->capture_uses].stream);
}

static void drop_capture_uses(oos_sim *sim, uint32_t index)
{
    block *b = block_at(sim, index);
    while (b->capture_uses) {
        uint64_t const handle = sim->uses.list[b->capture_uses].stream;
        use_drop(sim, &b->uses, handle);
        use_drop(sim, &b->capture_uses, handle);
    }
}

/* Blocks that were freed during a capture get their events now that there is none. */
static void finish_deferred(oos_sim *sim)
{
    for (uint32_t i = 0; i < sim->deferred.count; i++) {
        uint32_t const index = sim->deferred.list[i];
        drop_capture_uses(sim, index);
        record_events(sim, index);
        if (block_at(sim, index)->events == 0) finish_free(sim, index);
    }
    sim->deferred.count = 0;
}

static void event_done(oos_sim *sim, uint32_t index)
{
    oos_assert(block_at(sim, index)->events > 0);
    if (--block_at(sim, index)->events == 0) finish_free(sim, index);
}

/* Forget streams whose queue is empty. */
static void tidy_event_streams(oos_sim *sim)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sim->event_streams.count; i++) {
        const stream *s = &sim->streams.list[sim->event_streams.list[i]];
        if (s->first < s->count) sim->event_streams.list[kept++] = sim->event_streams.list[i];
    }
    sim->event_streams.count = kept;
}

void oos_events_process(oos_sim *sim)
{
    if (sim->deferred.count) finish_deferred(sim);
    if (sim->event_streams.count == 0) return;
    for (uint32_t i = 0; i < sim->event_streams.count; i++) {
        stream *s = &sim->streams.list[sim->event_streams.list[i]];
        while (s->first < s->count && s->done >= s->queue[s->first].event)
            event_done(sim, s->queue[s->first++].block);
    }
    tidy_event_streams(sim);
}

void oos_events_synchronize(oos_sim *sim, uint32_t only_owner)
{
    sim->stats.syncs++;
    finish_deferred(sim);
    for (uint32_t i = 0; i < sim->event_streams.count; i++) {
        stream *s = &sim->streams.list[sim->event_streams.list[i]];
        size_t kept = 0;
        for (size_t k = s->first; k < s->count; k++) {
            pending const p = s->queue[k];
            if (only_owner != NO_OWNER && pool_of(sim, block_at(sim, p.block))->owner != only_owner) {
                s->queue[kept++] = p;
                continue;
            }
            if (s->done < p.event) s->done = p.event;
            event_done(sim, p.block);
        }
        s->first = 0;
        s->count = kept;
    }
    tidy_event_streams(sim);
}

void oos_sim_free_block(oos_sim *sim, uint32_t index)
{
    block *b = block_at(sim, index);
    if (!index || !b->allocated) return;
    bool const small = pool_of(sim, b)->small;
    b->allocated = false;
    oos_count_down(sim, OOS_STAT_ALLOCATION, small, 1);
    oos_count_down(sim, OOS_STAT_ALLOCATED_BYTES, small, b->bytes);
    oos_log_put(sim, OOS_ACTION_FREE_REQUESTED, b->address, b->requested_bytes,
                sim->homes.list[b->home].stream);
    if (b->bytes >= sim->settings.max_split_bytes) oos_counter_down(&sim->stats.oversize_allocations, 1);
    if (!b->uses) {
        finish_free(sim, index);
    } else if (!oos_in_capture(sim)) {
        record_events(sim, index);
    } else if (GROW(sim, sim->deferred)) {
        sim->deferred.list[sim->deferred.count++] = index;
    }
}

void oos_sim_record_stream(oos_sim *sim, uint32_t index, uint64_t stream_handle)
{
    block *b = block_at(sim, index);
    if (!index || !b->allocated || sim->homes.list[b->home].stream == stream_handle) return;
    if (!GROW(sim, sim->uses)) return; /* room for one, before links into the array are taken */
    use_add(sim, &b->uses, stream_handle);
    if (!sim->rules.forgets_capture_uses || !oos_in_capture(sim) || !GROW(sim, sim->uses)) return;
    use_add(sim, &b->capture_uses, stream_handle);
}

void oos_sim_complete(oos_sim *sim, uint64_t stream_handle)
{
    stream *s = oos_stream_at(sim, stream_handle);
    if (s) s->done = s->issued;
}

/* Two moments of a run, looked at closely: the peak of allocated bytes (who held them), and the moment of strain (what
 * lay free, and what kept it from being given back). The run is repeated up to the moment. */
#include "replay/replay.h"
#include "base/check.h"

#include <stdlib.h>

enum { MOST_HOLDERS = 20, MOST_PINS = 10 };

/* The run up to and with an event; also who asked for each live block. */
typedef struct scene {
    oos_runner *runner;
    uint32_t *ids; /* block -> allocation + 1 */
    uint32_t block_limit;
} scene;

static oomsight_status scene_create(const oos_analysis *a, size_t event, scene *ret_scene,
                                    oomsight_error *reterr)
{
    const oos_trace *t = a->trace;
    scene s = {0};
    OOS_TRY(oos_runner_create(t, &a->scenario, &s.runner, reterr));
    oos_step step = {0};
    for (size_t i = 0; i <= event && i < t->event_count; i++) oos_runner_step(s.runner, &t->events[i], &step);
    for (uint32_t id = 0; id < t->id_count; id++) {
        uint32_t const block = oos_runner_block(s.runner, id);
        if (block >= s.block_limit) s.block_limit = block + 1;
    }
    s.ids = calloc((size_t)s.block_limit + 1, sizeof *s.ids);
    if (!s.ids || oos_sim_failed(oos_runner_sim(s.runner))) {
        oos_runner_free(s.runner);
        free(s.ids);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a snapshot of the run");
    }
    for (uint32_t id = 0; id < t->id_count; id++) {
        uint32_t const block = oos_runner_block(s.runner, id);
        if (block) s.ids[block] = id + 1;
    }
    *ret_scene = s;
    return OOMSIGHT_OK;
}

static void scene_release(scene *s)
{
    oos_runner_free(s->runner);
    free(s->ids);
}

/* allocation -> its malloc */
static size_t *mallocs_of(const oos_trace *trace)
{
    size_t *events = calloc((size_t)trace->id_count + 1, sizeof *events);
    for (size_t i = 0; events && i < trace->event_count; i++)
        if (trace->events[i].op == OOS_OP_MALLOC && trace->events[i].id < trace->id_count)
            events[trace->events[i].id] = i;
    return events;
}

static int by_bytes(const void *left, const void *right)
{
    const oos_block_holder *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

/* One holder per stack; then per innermost frame of the user, and per category. */
static oomsight_status sum_holders(oos_analysis *a, const scene *s, const size_t *mallocs,
                                   oomsight_error *reterr)
{
    const oos_trace *t = a->trace;
    oos_block_holder *sums = OOS_NEW_ARRAY(a->arena, oos_block_holder, (size_t)t->stack_count + 1);
    oos_block_holder *categories = OOS_NEW_ARRAY(a->arena, oos_block_holder, 16);
    if (!sums || !categories) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the holders");
    const oos_sim *sim = oos_runner_sim(s->runner);
    for (uint32_t block = 1; block < s->block_limit; block++) {
        if (!s->ids[block]) continue;
        const oos_event *e = &t->events[mallocs[s->ids[block] - 1]];
        uint64_t const bytes = oos_sim_block_bytes(sim, block);
        uint32_t const stack = e->stack < t->stack_count ? e->stack : 0;
        sums[stack].stack = stack;
        sums[stack].bytes += bytes;
        sums[stack].blocks++;
        const char *category = oos_category_of(t, stack, t->pools[e->pool]);
        size_t k = 0;
        while (k < 15 && categories[k].name && categories[k].name != category) k++;
        oos_assert(!categories[k].name || categories[k].name == category); /* more places than categories */
        categories[k].name = category;
        categories[k].bytes += bytes;
        categories[k].blocks++;
    }
    size_t count = 0;
    for (uint32_t i = 0; i < t->stack_count; i++)
        if (sums[i].blocks) sums[count++] = sums[i];
    qsort(sums, count, sizeof *sums, by_bytes);
    a->flame = sums;
    a->flame_count = count;
    while (a->category_count < 16 && categories[a->category_count].name) a->category_count++;
    qsort(categories, a->category_count, sizeof *categories, by_bytes);
    a->categories = categories;
    return OOMSIGHT_OK;
}

/* Stacks that end in the same frame of the user's are one line. */
static oomsight_status name_holders(oos_analysis *a, oomsight_error *reterr)
{
    a->holders = OOS_NEW_ARRAY(a->arena, oos_block_holder, MOST_HOLDERS + 1);
    if (!a->holders) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the holders");
    for (size_t i = 0; i < a->flame_count; i++) {
        const char *name = oos_stack_name(a->arena, a->trace, a->flame[i].stack);
        if (!name) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the holders");
        size_t k = 0;
        while (k < a->holder_count && strcmp(a->holders[k].name, name) != 0) k++;
        if (k == a->holder_count) {
            if (k == MOST_HOLDERS) continue; /* the rest is told by the sum */
            a->holders[a->holder_count++] = (oos_block_holder){.name = name, .stack = a->flame[i].stack};
        }
        a->holders[k].bytes += a->flame[i].bytes;
        a->holders[k].blocks += a->flame[i].blocks;
    }
    qsort(a->holders, a->holder_count, sizeof *a->holders, by_bytes);
    return OOMSIGHT_OK;
}

/* Places of a->stranded plus one, by pool; a power of two, more than there are segments. */
typedef struct pool_index {
    uint32_t *slots;
    size_t mask;
} pool_index;

static oos_stranded *stranded_of(oos_analysis *a, const pool_index *index, const oos_layout_segment *s)
{
    uint64_t const mixed = (s->pool.first * 0x9E3779B97F4A7C15u ^ s->pool.second) * 0xD6E8FEB86659FD93u;
    size_t at = (size_t)(mixed >> 32) + s->large;
    for (; index->slots[at & index->mask]; at++) {
        oos_stranded *x = &a->stranded[index->slots[at & index->mask] - 1];
        if (x->pool.first == s->pool.first && x->pool.second == s->pool.second && x->large == s->large)
            return x;
    }
    oos_assert(a->stranded_count < a->layout.segment_count && a->stranded_count < index->mask);
    oos_stranded *x = &a->stranded[a->stranded_count++];
    *x = (oos_stranded){.pool = s->pool, .large = s->large};
    index->slots[at & index->mask] = (uint32_t)a->stranded_count;
    return x;
}

static void add_pin(oos_analysis *a, oos_pin pin)
{
    size_t at = a->pin_count;
    if (at == MOST_PINS) {
        if (a->pins[at - 1].free_bytes >= pin.free_bytes) return;
        at--;
    } else {
        a->pin_count++;
    }
    for (; at > 0 && a->pins[at - 1].free_bytes < pin.free_bytes; at--) a->pins[at] = a->pins[at - 1];
    a->pins[at] = pin;
}

/* A segment's free bytes, and the newest allocation that keeps it: the one that made its fragmentation permanent. */
static void look_at_segment(oos_analysis *a, const scene *s, const size_t *mallocs, const pool_index *index,
                            const oos_layout_segment *g)
{
    uint64_t free_bytes = 0, live = 0;
    oos_pin pin = {.segment_address = g->address, .segment_bytes = g->bytes};
    for (size_t k = 0; k < g->block_count; k++) {
        const oos_layout_block *b = &a->layout.blocks[g->first_block + k];
        if (b->state == OOS_BLOCK_INACTIVE) {
            free_bytes += b->bytes;
            continue;
        }
        live++;
        uint32_t const id = b->block < s->block_limit ? s->ids[b->block] : 0;
        if (!id) continue;
        const oos_event *e = &a->trace->events[mallocs[id - 1]];
        a->layout_stacks[g->first_block + k] = e->stack;
        if (pin.bytes && mallocs[id - 1] < pin.event) continue;
        pin.event = mallocs[id - 1];
        pin.id = id - 1;
        pin.stack = e->stack;
        pin.bytes = b->bytes;
    }
    oos_stranded *x = stranded_of(a, index, g);
    x->segments++;
    x->free_bytes += free_bytes;
    if (live == 0) {
        x->whole_segments++;
        x->whole_bytes += free_bytes;
    }
    pin.free_bytes = free_bytes;
    pin.live_blocks = live;
    if (pin.bytes && free_bytes >= g->bytes / 2) add_pin(a, pin);
}

static oomsight_status look_at_strain(oos_analysis *a, const scene *s, const size_t *mallocs,
                                      oomsight_error *reterr)
{
    OOS_TRY(oos_sim_layout(oos_runner_sim(s->runner), a->arena, &a->layout, reterr));
    a->layout_stacks = OOS_NEW_ARRAY(a->arena, uint32_t, a->layout.block_count + 1);
    a->stranded = OOS_NEW_ARRAY(a->arena, oos_stranded, a->layout.segment_count + 1);
    a->pins = OOS_NEW_ARRAY(a->arena, oos_pin, MOST_PINS + 1);
    pool_index index = {.mask = 15};
    while (index.mask / 2 < a->layout.segment_count) index.mask = 2 * index.mask + 1;
    index.slots = OOS_NEW_ARRAY(a->arena, uint32_t, index.mask + 1);
    if (!a->layout_stacks || !a->stranded || !a->pins || !index.slots)
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a snapshot of the run");
    for (size_t i = 0; i < a->layout.segment_count; i++)
        look_at_segment(a, s, mallocs, &index, &a->layout.segments[i]);
    return OOMSIGHT_OK;
}

/* The strained device as a ledger: who the live blocks belong to by their stacks, what is free where, and the rest of the device. */
static oomsight_status hold_strain(oos_analysis *a, oomsight_error *reterr)
{
    uint64_t bytes[OOS_OWNER_COUNT] = {0};
    for (size_t i = 0; i < a->layout.segment_count; i++) {
        const oos_layout_segment *g = &a->layout.segments[i];
        bool const private = g->pool.first || g->pool.second;
        for (size_t k = g->first_block; k < g->first_block + g->block_count; k++) {
            const oos_layout_block *b = &a->layout.blocks[k];
            bool const free = b->state == OOS_BLOCK_INACTIVE;
            oos_owner const owner = !free     ? oos_owner_of(a->trace, a->layout_stacks[k])
                                    : private ? OOS_OWNER_POOLS
                                              : OOS_OWNER_CACHED;
            bytes[owner] = oos_add(bytes[owner], b->bytes);
        }
    }
    bytes[OOS_OWNER_OUTSIDE] = oos_u64_or(a->scenario.base_bytes, oos_u64_or(a->trace->base_bytes, 0));
    oos_moment_init(&a->strain, a->arena, OOS_PHASE_UNKNOWN);
    for (unsigned owner = 0; owner < OOS_OWNER_COUNT; owner++)
        oos_moment_hold(&a->strain, owner, oos_amount_exact(bytes[owner], OOS_SOURCE_DERIVED, NULL));
    a->strain.tried_bytes = a->outcome.oom ? a->outcome.first_oom_bytes : 0;
    oos_u64 const total = a->scenario.total_bytes.known ? a->scenario.total_bytes : a->trace->total_bytes;
    uint64_t const held = a->strain.ledger.held_bytes;
    OOS_TRY(oos_moment_close(&a->strain, oos_limit_exact(total.known ? total.value : held), reterr));
    a->strain.ok = !a->outcome.oom;
    return OOMSIGHT_OK;
}

oomsight_status oos_moments_fill(oos_analysis *a, oomsight_error *reterr)
{
    scene s = {0};
    size_t *mallocs = mallocs_of(a->trace);
    if (!mallocs) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the holders");
    oomsight_status status = scene_create(a, a->outcome.peak_event, &s, reterr);
    if (status == OOMSIGHT_OK) status = sum_holders(a, &s, mallocs, reterr);
    if (status == OOMSIGHT_OK) status = name_holders(a, reterr);
    a->strained_event = a->outcome.oom ? a->outcome.first_oom : a->outcome.reserved_peak_event;
    if (status == OOMSIGHT_OK) {
        scene_release(&s);
        s = (scene){0};
        status = scene_create(a, a->strained_event, &s, reterr);
    }
    if (status == OOMSIGHT_OK) status = look_at_strain(a, &s, mallocs, reterr);
    if (status == OOMSIGHT_OK) status = hold_strain(a, reterr);
    scene_release(&s);
    free(mallocs);
    return status;
}

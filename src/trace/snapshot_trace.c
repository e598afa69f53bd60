/* From the allocator's history to the calls that made it.
 *
 * A history tells events, not calls. One malloc is: frees of ripe blocks, segments given back, segments taken, `alloc`
 * (or `oom`). What is not told is worked out:
 *   empty_cache      segments given back although the next request would have fitted, or outside a malloc
 *   record_stream    a gap between free_requested and free_completed: a stream of its own waits for each such block
 *   capacity         as a dry run has written it; reserved bytes plus device_free at an `oom`; else the most ever reserved, if
 *                    there was pressure
 *   stacks           of a history without: those of the blocks that live at the end
 *   sticky back-end  an `oom` that reports less free memory than the same call had just given back
 *   what was before  a history that begins in mid-life frees blocks it never allocated: they are allocated first
 *   pool             entries of torch 2.11 and before do not tell it: the segment that holds the address at the end does */
#include "trace/trace.h"
#include "base/check.h"

#include <stdlib.h>

#define WAIT_STREAM ((uint64_t)1 << 60) /* handles no driver gives */
#define OOM_NAME ((uint64_t)1 << 62)

typedef struct first_alloc {
    uint64_t address;
    size_t at;
} first_alloc;

typedef struct waiting {
    uint64_t address, stream;
    bool used;
} waiting;

typedef struct span {
    uint64_t first, end;
    uint16_t stream, pool;
} span;

typedef struct converter {
    oos_snapshot *snapshot;
    oos_trace_builder *builder;
    const oos_snapshot_entry *entries;
    size_t count;
    uint8_t device;
    uint64_t capacity; /* 0: not known */
    uint64_t reserved;
    bool sticky, collects_garbage, failed;
    first_alloc *allocs;
    size_t alloc_count;
    waiting *waits;
    size_t wait_count, wait_capacity;
    span *ranges;
    size_t range_count, range_capacity;
    uint64_t ooms;
} converter;

static uint64_t name_of(const converter *c, uint64_t address)
{
    return address | (uint64_t)c->device << 56;
}

static bool grow(converter *c, void *list, size_t count, size_t *capacity, size_t item_bytes)
{
    void **at = list;
    if (count < *capacity) return true;
    size_t const wanted = *capacity ? *capacity * 2 : 64;
    void *grown = realloc(*at, wanted * item_bytes);
    if (!grown) return c->failed = true, false;
    *at = grown;
    *capacity = wanted;
    return true;
}

static void add(converter *c, const oos_snapshot_entry *e, oos_event event)
{
    event.device = c->device;
    oos_trace_add_timed(c->builder, event, e ? e->time_us : 0);
}

/* ---- what the device had --------------------------------------------------------------------------------------- */

static bool takes(const oos_snapshot_entry *e)
{
    return e->action == OOS_SNAPSHOT_SEGMENT_ALLOC || e->action == OOS_SNAPSHOT_SEGMENT_MAP;
}
static bool gives(const oos_snapshot_entry *e)
{
    return e->action == OOS_SNAPSHOT_SEGMENT_FREE || e->action == OOS_SNAPSHOT_SEGMENT_UNMAP;
}

static void find_capacity(converter *c)
{
    uint64_t reserved = 0, highest = 0, given_back = 0;
    bool pressure = false;
    for (size_t i = 0; i < c->count; i++) {
        const oos_snapshot_entry *e = &c->entries[i];
        if (e->action == OOS_SNAPSHOT_OOM && !c->capacity) {
            c->sticky = given_back > e->address;
            c->capacity = reserved + (c->sticky ? given_back : 0) + e->address;
        }
        if (takes(e)) {
            reserved += e->bytes;
            pressure |= given_back > 0;
        }
        given_back = gives(e) ? given_back + e->bytes : 0;
        if (gives(e)) reserved = oos_sub(reserved, e->bytes);
        highest = oos_max(highest, reserved);
    }
    oos_assert(!c->snapshot->total_bytes.known || c->snapshot->base_bytes <= c->snapshot->total_bytes.value);
    if (c->snapshot->total_bytes.known)
        c->capacity = c->snapshot->total_bytes.value - c->snapshot->base_bytes;
    if (!c->capacity && pressure) c->capacity = highest;
}

/* ---- what was there before ------------------------------------------------------------------------------------- */

static int by_address(const void *left, const void *right)
{
    const first_alloc *a = left, *b = right;
    if (a->address != b->address) return a->address < b->address ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static bool index_allocs(converter *c)
{
    c->allocs = malloc((c->count + 1) * sizeof *c->allocs);
    if (!c->allocs) return c->failed = true, false;
    for (size_t i = 0; i < c->count; i++)
        if (c->entries[i].action == OOS_SNAPSHOT_ALLOC)
            c->allocs[c->alloc_count++] = (first_alloc){c->entries[i].address, i};
    qsort(c->allocs, c->alloc_count, sizeof *c->allocs, by_address);
    return true;
}

/* Index of the first alloc at the address, SIZE_MAX when there is none. */
static size_t first_alloc_of(const converter *c, uint64_t address)
{
    size_t low = 0, high = c->alloc_count;
    while (low < high) {
        size_t const middle = low + (high - low) / 2;
        if (c->allocs[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->alloc_count && c->allocs[low].address == address ? c->allocs[low].at : SIZE_MAX;
}

/* Index of the last one. */
static size_t last_alloc_of(const converter *c, uint64_t address)
{
    size_t low = 0, high = c->alloc_count;
    while (low < high) {
        size_t const middle = low + (high - low) / 2;
        if (c->allocs[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && c->allocs[low - 1].address == address ? c->allocs[low - 1].at : SIZE_MAX;
}

/* A history without stacks: what lives at the end tells who asked for it. */
static void stacks_from_blocks(converter *c)
{
    const oos_snapshot *s = c->snapshot;
    oos_snapshot_entry *entries = s->entries ? s->entries + s->histories[c->device].first : NULL;
    for (size_t i = 0; i < s->segment_count; i++) {
        const oos_snapshot_segment *g = &s->segments[i];
        if (g->device != c->device) continue;
        for (size_t k = 0; k < g->block_count; k++) {
            const oos_snapshot_block *b = &s->blocks[g->first_block + k];
            size_t const last = b->stack && b->state == 0 ? last_alloc_of(c, b->address) : SIZE_MAX;
            if (last != SIZE_MAX && !entries[last].stack) entries[last].stack = b->stack;
        }
    }
}

static void add_before(converter *c, uint64_t address, uint64_t bytes, uint32_t stack, uint16_t stream,
                       uint16_t pool)
{
    if (oos_trace_find_id(c->builder, name_of(c, address)) != OOS_NO_ID) return;
    uint32_t const id = oos_trace_new_id(c->builder, name_of(c, address));
    add(c, NULL,
        (oos_event){.op = OOS_OP_MALLOC,
                    .id = id,
                    .bytes = bytes,
                    .stack = stack,
                    .stream = stream,
                    .pool = pool,
                    .routed = true});
}

/* Blocks that were live when the history began. True when there were any. */
static bool add_earlier_blocks(converter *c)
{
    const oos_snapshot *s = c->snapshot;
    size_t const before = oos_trace_builder_trace(c->builder)->event_count;
    for (size_t i = 0; i < s->segment_count; i++) {
        const oos_snapshot_segment *g = &s->segments[i];
        if (g->device != c->device) continue;
        for (size_t k = 0; k < g->block_count; k++) {
            const oos_snapshot_block *b = &s->blocks[g->first_block + k];
            if (b->state != 2 && first_alloc_of(c, b->address) == SIZE_MAX)
                add_before(c, b->address, b->requested_bytes, b->stack, g->stream, g->pool);
        }
    }
    for (size_t i = 0; i < c->count; i++) {
        const oos_snapshot_entry *e = &c->entries[i];
        if (e->action != OOS_SNAPSHOT_FREE_REQUESTED) continue;
        size_t const first = first_alloc_of(c, e->address);
        if (first == SIZE_MAX || first > i) add_before(c, e->address, e->bytes, e->stack, e->stream, e->pool);
    }
    return oos_trace_builder_trace(c->builder)->event_count > before;
}

/* ---- whose pool ------------------------------------------------------------------------------------------------ */

static int by_first(const void *left, const void *right)
{
    const span *a = left, *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Pools by the segments that are there at the end; one that was given back leaves its entries in the default pool. An
 * `oom` has no address and is in the pool of what came before it. */
static bool find_pools(oos_snapshot *s, uint8_t device)
{
    size_t count = 0, at = s->histories[device].first, end = at + s->histories[device].count;
    span *spans = malloc((s->segment_count + 1) * sizeof *spans);
    if (!spans) return false;
    for (size_t i = 0; i < s->segment_count; i++) {
        const oos_snapshot_segment *g = &s->segments[i];
        if (g->device == device)
            spans[count++] = (span){g->address, oos_add(g->address, g->bytes), g->stream, g->pool};
    }
    qsort(spans, count, sizeof *spans, by_first);
    for (uint16_t last = 0; at < end; at++) {
        oos_snapshot_entry *e = &s->entries[at];
        size_t low = 0, high = count;
        while (low < high) {
            size_t const middle = low + (high - low) / 2;
            if (spans[middle].first <= e->address)
                low = middle + 1;
            else
                high = middle;
        }
        bool const held = e->action != OOS_SNAPSHOT_OOM && low > 0 && e->address < spans[low - 1].end;
        if (held || e->action == OOS_SNAPSHOT_OOM) last = e->pool = held ? spans[low - 1].pool : last;
    }
    free(spans);
    return true;
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

static void add_malloc(converter *c, const oos_snapshot_entry *e, uint64_t name)
{
    add(c, e,
        (oos_event){.op = OOS_OP_MALLOC,
                    .id = oos_trace_new_id(c->builder, name),
                    .bytes = e->bytes,
                    .stack = e->stack,
                    .stream = e->stream,
                    .pool = e->pool,
                    .routed = true,
                    .value = c->sticky ? OOS_BACKEND_STICKY : OOS_BACKEND_DRIVER});
}

/* A stream of its own for a block whose free has to wait; streams are used again once their block is free. */
static uint64_t wait_for(converter *c, uint64_t address)
{
    for (size_t i = 0; i < c->wait_count; i++)
        if (!c->waits[i].used) {
            c->waits[i] = (waiting){address, c->waits[i].stream, true};
            return c->waits[i].stream;
        }
    if (!grow(c, &c->waits, c->wait_count, &c->wait_capacity, sizeof *c->waits)) return 0;
    uint64_t const stream = WAIT_STREAM + c->wait_count;
    c->waits[c->wait_count++] = (waiting){address, stream, true};
    return stream;
}

static void add_free(converter *c, size_t i)
{
    const oos_snapshot_entry *e = &c->entries[i];
    uint32_t const id = oos_trace_find_id(c->builder, name_of(c, e->address));
    if (id == OOS_NO_ID) return;
    bool const at_once = i + 1 < c->count && c->entries[i + 1].action == OOS_SNAPSHOT_FREE_COMPLETED &&
                         c->entries[i + 1].address == e->address;
    if (!at_once) {
        uint32_t const stream = oos_trace_stream(c->builder, wait_for(c, e->address));
        add(c, e, (oos_event){.op = OOS_OP_RECORD_STREAM, .id = id, .stream = (uint16_t)stream});
    }
    add(c, e, (oos_event){.op = OOS_OP_FREE, .id = id, .stack = e->stack});
    oos_trace_forget_id(c->builder, name_of(c, e->address));
}

static void add_complete(converter *c, const oos_snapshot_entry *e)
{
    for (size_t i = 0; i < c->wait_count; i++) {
        if (!c->waits[i].used || c->waits[i].address != e->address) continue;
        c->waits[i].used = false;
        uint32_t const stream = oos_trace_stream(c->builder, c->waits[i].stream);
        add(c, e, (oos_event){.op = OOS_OP_COMPLETE, .stream = (uint16_t)stream});
        return;
    }
}

/* Segments given back from i on: part of the malloc behind them, or an empty_cache. Gives the index behind them. */
static size_t pass_given_back(converter *c, size_t i)
{
    size_t end = i;
    uint64_t before = c->reserved;
    for (; end < c->count && gives(&c->entries[end]); end++)
        c->reserved = oos_sub(c->reserved, c->entries[end].bytes);
    bool const in_malloc =
        end < c->count &&
        (c->entries[end].action == OOS_SNAPSHOT_OOM || c->collects_garbage ||
         (takes(&c->entries[end]) && c->capacity && oos_add(before, c->entries[end].bytes) > c->capacity));
    if (!in_malloc) add(c, &c->entries[i], (oos_event){.op = OOS_OP_EMPTY_CACHE, .id = OOS_NO_ID});
    return end;
}

/* The address range an expandable mapping lies in, or the start of a new one. */
static void note_mapping(converter *c, const oos_snapshot_entry *e)
{
    for (size_t i = 0; i < c->range_count; i++) {
        span *r = &c->ranges[i];
        if (r->stream != e->stream || r->pool != e->pool || e->address < r->first || e->address > r->end)
            continue;
        r->end = oos_max(r->end, e->address + e->bytes);
        return;
    }
    if (!grow(c, &c->ranges, c->range_count, &c->range_capacity, sizeof *c->ranges)) return;
    c->ranges[c->range_count++] = (span){e->address, e->address + e->bytes, e->stream, e->pool};
    oos_trace_add_given(c->builder, (oos_given){e->address, 0, c->device}, true);
}

static void convert(converter *c)
{
    for (size_t i = 0; i < c->count && !c->failed;) {
        const oos_snapshot_entry *e = &c->entries[i];
        if (gives(e)) {
            i = pass_given_back(c, i);
            continue;
        }
        switch ((oos_snapshot_action)e->action) {
        case OOS_SNAPSHOT_ALLOC: add_malloc(c, e, name_of(c, e->address)); break;
        case OOS_SNAPSHOT_OOM: add_malloc(c, e, OOM_NAME + c->ooms++); break;
        case OOS_SNAPSHOT_FREE_REQUESTED: add_free(c, i); break;
        case OOS_SNAPSHOT_FREE_COMPLETED: add_complete(c, e); break;
        case OOS_SNAPSHOT_SEGMENT_ALLOC:
            c->reserved += e->bytes;
            oos_trace_add_given(c->builder, (oos_given){e->address, e->bytes, c->device}, false);
            break;
        case OOS_SNAPSHOT_SEGMENT_MAP:
            c->reserved += e->bytes;
            note_mapping(c, e);
            break;
        case OOS_SNAPSHOT_SEGMENT_FREE:
        case OOS_SNAPSHOT_SEGMENT_UNMAP:
        case OOS_SNAPSHOT_OTHER: break;
        }
        i++;
    }
}

static bool convert_device(oos_snapshot *s, uint8_t device, oos_trace *trace)
{
    converter c = {.snapshot = s,
                   .builder = s->builder,
                   .entries = s->entries ? s->entries + s->histories[device].first : NULL,
                   .count = s->histories[device].count,
                   .device = device,
                   .collects_garbage = strstr(s->settings, "garbage_collection_threshold") != NULL};
    find_capacity(&c);
    if (index_allocs(&c) && !add_earlier_blocks(&c) && device < 64) {
        trace->placement = OOS_PLACEMENT_GIVEN;
        trace->given_devices |= (uint64_t)1 << device;
    }
    if (!c.failed) stacks_from_blocks(&c);
    if (!c.failed) convert(&c);
    if (s->total_bytes.known && !trace->total_bytes.known) {
        trace->total_bytes = s->total_bytes;
        trace->base_bytes = oos_u64_of(s->base_bytes);
    } else if (c.capacity && !trace->total_bytes.known) {
        trace->total_bytes = oos_u64_of(c.capacity);
        trace->base_bytes = oos_u64_of(0);
    }
    free(c.allocs);
    free(c.waits);
    free(c.ranges);
    return !c.failed;
}

/* The release a snapshot's keys point to: user_metadata came with 2.10, pool_id after 2.11, host_segments with 2.15. */
static oos_version torch_of(const oos_snapshot *s)
{
    if (s->has_host) return OOS_VERSION(2, 15, 0);
    if (s->has_metadata) return s->has_pools ? OOS_VERSION(2, 13, 0) : OOS_VERSION(2, 11, 0);
    return s->has_pools ? OOS_VERSION(2, 9, 0) : OOS_VERSION(2, 5, 0);
}

oomsight_status oos_snapshot_to_trace(oos_snapshot *s, oos_trace **ret_trace, oomsight_error *reterr)
{
    oos_trace *trace = oos_trace_builder_trace(s->builder);
    trace->torch = torch_of(s);
    trace->settings = strdup(s->settings);
    bool done = trace->settings != NULL;
    for (size_t i = 0; done && !s->has_pools && i < s->history_count; i++) done = find_pools(s, (uint8_t)i);
    for (size_t i = 0; done && i < s->history_count; i++) done = convert_device(s, (uint8_t)i, trace);
    if (!done) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the trace");
    if (trace->event_count == 0)
        return oos_fail(
            reterr, OOMSIGHT_UNSUPPORTED,
            "the snapshot has no history; record one with torch.cuda.memory._record_memory_history()");
    trace->expected = s->segments;
    trace->expected_count = s->segment_count;
    trace->expected_blocks = s->blocks;
    s->segments = NULL;
    s->blocks = NULL;
    free(s->entries);
    s->entries = NULL;
    return oos_trace_builder_take(s->builder, ret_trace, reterr);
}

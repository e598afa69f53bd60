/* One more run, with the allocator's own events listened to. */
#include "replay/replay.h"
#include "base/check.h"

#include <stdlib.h>

#define UNIT 512.0

/* A segment that is there now; sorted by address. */
typedef struct open_segment {
    uint64_t address, bytes;
    size_t span;
} open_segment;

typedef struct listener {
    oos_spans *spans;
    open_segment *open;
    size_t open_count, open_capacity;
    bool failed;
} listener;

void oos_spans_free(oos_spans *s)
{
    if (!s) return;
    free(s->segment_start);
    free(s->segment_end);
    free(s->segment_address);
    free(s->segment_size);
    free(s->segment_kind);
    free(s->block_start);
    free(s->block_end);
    free(s->block_size);
    free(s->block_stack);
    free(s->block_address);
    free(s);
}

static bool grow_array(void *list, size_t count, size_t item_bytes)
{
    void **at = list;
    void *grown = realloc(*at, count * item_bytes);
    if (grown) *at = grown;
    return grown != NULL;
}

static bool grow_segments(oos_spans *s)
{
    if (s->segment_count < s->segment_capacity) return true;
    size_t const wanted = s->segment_capacity ? s->segment_capacity * 2 : 256;
    if (!grow_array(&s->segment_start, wanted, sizeof(uint32_t)) ||
        !grow_array(&s->segment_end, wanted, sizeof(uint32_t)) ||
        !grow_array(&s->segment_kind, wanted, sizeof(uint32_t)) ||
        !grow_array(&s->segment_address, wanted, sizeof(double)) ||
        !grow_array(&s->segment_size, wanted, sizeof(double)))
        return false;
    s->segment_capacity = wanted;
    return true;
}

static size_t place_of(const listener *l, uint64_t address)
{
    size_t low = 0, high = l->open_count;
    while (low < high) {
        size_t const middle = low + (high - low) / 2;
        if (l->open[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void segment_open(listener *l, uint32_t event, uint64_t address, uint64_t bytes, uint32_t kind)
{
    oos_spans *s = l->spans;
    if (l->open_count == l->open_capacity) {
        size_t const wanted = l->open_capacity ? l->open_capacity * 2 : 256;
        if (!grow_array(&l->open, wanted, sizeof *l->open)) {
            l->failed = true;
            return;
        }
        l->open_capacity = wanted;
    }
    if (!grow_segments(s)) {
        l->failed = true;
        return;
    }
    size_t const at = place_of(l, address);
    memmove(l->open + at + 1, l->open + at, (l->open_count - at) * sizeof *l->open);
    l->open[at] = (open_segment){address, bytes, s->segment_count};
    l->open_count++;
    s->segment_start[s->segment_count] = event;
    s->segment_end[s->segment_count] = UINT32_MAX;
    s->segment_address[s->segment_count] = (double)address / UNIT;
    s->segment_size[s->segment_count] = (double)bytes / UNIT;
    s->segment_kind[s->segment_count++] = kind;
}

static void segment_close(listener *l, size_t at, uint32_t event)
{
    oos_assert(at < l->open_count && l->spans->segment_start[l->open[at].span] <= event);
    l->spans->segment_end[l->open[at].span] = event;
    l->open_count--;
    memmove(l->open + at, l->open + at + 1, (l->open_count - at) * sizeof *l->open);
}

/* A mapping joins the mapped range it continues. */
static void range_map(listener *l, uint32_t event, uint64_t address, uint64_t bytes, uint32_t kind)
{
    size_t at = place_of(l, address);
    if (at < l->open_count && l->open[at].address == address + bytes) {
        bytes += l->open[at].bytes;
        segment_close(l, at, event);
    }
    if (at > 0 && l->open[at - 1].address + l->open[at - 1].bytes == address) {
        address = l->open[at - 1].address;
        bytes += l->open[at - 1].bytes;
        segment_close(l, at - 1, event);
    }
    segment_open(l, event, address, bytes, kind);
}

/* What is left of a mapped range on both sides stays. */
static void range_unmap(listener *l, uint32_t event, uint64_t address, uint64_t bytes)
{
    size_t at = place_of(l, address + 1);
    if (at == 0) return;
    open_segment const was = l->open[at - 1];
    uint32_t const kind = l->spans->segment_kind[was.span];
    uint64_t const end = was.address + was.bytes;
    segment_close(l, at - 1, event);
    if (was.address < address) segment_open(l, event, was.address, address - was.address, kind);
    if (address + bytes < end) segment_open(l, event, address + bytes, end - address - bytes, kind);
}

static void listen(listener *l, uint32_t event, const oos_sim_event *e, uint32_t kind)
{
    switch (e->action) {
    case OOS_ACTION_SEGMENT_ALLOC: segment_open(l, event, e->address, e->bytes, kind); break;
    case OOS_ACTION_SEGMENT_FREE: {
        size_t const at = place_of(l, e->address);
        if (at < l->open_count && l->open[at].address == e->address) segment_close(l, at, event);
        break;
    }
    case OOS_ACTION_SEGMENT_MAP: range_map(l, event, e->address, e->bytes, kind | OOS_SPAN_EXPANDABLE); break;
    case OOS_ACTION_SEGMENT_UNMAP: range_unmap(l, event, e->address, e->bytes); break;
    case OOS_ACTION_ALLOC:
    case OOS_ACTION_FREE_REQUESTED:
    case OOS_ACTION_FREE_COMPLETED:
    case OOS_ACTION_OOM:
    case OOS_ACTION_COUNT: break;
    }
}

static void note_block(oos_spans *s, const oos_trace *t, const oos_event *e, uint32_t event,
                       const oos_sim *sim, uint32_t block)
{
    if (e->id >= t->id_count) return;
    s->block_start[e->id] = event;
    s->block_end[e->id] = UINT32_MAX;
    s->block_address[e->id] = (double)oos_sim_address(sim, block) / UNIT;
    s->block_size[e->id] = (uint32_t)(oos_sim_block_bytes(sim, block) / 512);
    s->block_stack[e->id] = e->stack;
}

static void run(listener *l, const oos_analysis *a, oos_runner *runner)
{
    const oos_trace *t = a->trace;
    oos_sim *sim = oos_runner_sim(runner);
    oos_step step = {0};
    for (size_t i = 0; i < t->event_count && !l->failed; i++) {
        const oos_event *e = &t->events[i];
        oos_runner_step(runner, e, &step);
        if (step.block) note_block(l->spans, t, e, (uint32_t)i, sim, step.block);
        if (e->op == OOS_OP_FREE && !step.skipped) l->spans->block_end[e->id] = (uint32_t)i;
        const oos_sim_event *log;
        size_t const count = oos_sim_log(sim, &log);
        uint32_t const kind = (e->pool || oos_sim_routed(sim) ? OOS_SPAN_PRIVATE : 0) |
                              (e->bytes > OOS_MIB ? OOS_SPAN_LARGE : 0);
        for (size_t k = 0; k < count; k++) listen(l, (uint32_t)i, &log[k], kind);
        oos_sim_log_reset(sim);
    }
}

void oos_spans_thin(oos_spans *s, size_t most, uint32_t moment)
{
    size_t lives[33] = {0}; /* blocks by the logarithm of their life */
    for (size_t i = 0; i < s->block_count; i++)
        lives[32 - __builtin_clz((s->block_end[i] - s->block_start[i]) | 1)]++;
    size_t left = s->block_count;
    unsigned log = 1;
    for (; log < 32 && left > most; log++) left -= lives[log];
    s->shortest_life = log > 1 ? (uint32_t)1 << (log - 1) : 1;
    size_t kept = 0;
    for (size_t i = 0; i < s->block_count; i++) {
        uint32_t const start = s->block_start[i], end = s->block_end[i];
        if (end - start < s->shortest_life && (end <= start || moment < start || moment >= end)) continue;
        s->block_start[kept] = start;
        s->block_end[kept] = end;
        s->block_size[kept] = s->block_size[i];
        s->block_stack[kept] = s->block_stack[i];
        s->block_address[kept++] = s->block_address[i];
    }
    s->block_count = kept;
}

oomsight_status oos_spans_create(const oos_analysis *a, oos_spans **ret_spans, oomsight_error *reterr)
{
    size_t const blocks = (size_t)a->trace->id_count + 1;
    oos_spans *s = calloc(1, sizeof *s);
    listener l = {.spans = s, .failed = !s};
    if (s) {
        s->block_start = calloc(blocks, sizeof *s->block_start);
        s->block_end = calloc(blocks, sizeof *s->block_end);
        s->block_size = calloc(blocks, sizeof *s->block_size);
        s->block_stack = calloc(blocks, sizeof *s->block_stack);
        s->block_address = calloc(blocks, sizeof *s->block_address);
        s->block_count = a->trace->id_count;
        l.failed = !s->block_start || !s->block_end || !s->block_size || !s->block_stack || !s->block_address;
    }
    oos_scenario scenario = a->scenario;
    scenario.log = true;
    oos_runner *runner = NULL;
    oomsight_status status = OOMSIGHT_OK;
    if (!l.failed) status = oos_runner_create(a->trace, &scenario, &runner, reterr);
    if (status == OOMSIGHT_OK && !l.failed) run(&l, a, runner);
    oos_runner_free(runner);
    free(l.open);
    if (l.failed) status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the picture");
    if (status != OOMSIGHT_OK) {
        oos_spans_free(s);
        return status;
    }
    *ret_spans = s;
    return OOMSIGHT_OK;
}

/* Tables that grow, and a trace made of them. */
#include "trace/trace.h"
#include "base/check.h"
#include "base/hash.h"

#include <stdlib.h>

const char *const oos_op_names[OOS_OP_COUNT] = {
    "malloc",       "free",        "record_stream", "complete", "empty_cache",   "set_memory_fraction",
    "set_settings", "pool_create", "pool_begin",    "pool_end", "capture_begin", "capture_end",
    "pool_release", "use_on_oom",  "no_split",      "snapshot", "stats"};

bool oos_op_find(const char *name, oos_op *ret_op)
{
    for (unsigned i = 0; i < OOS_OP_COUNT; i++)
        if (strcmp(name, oos_op_names[i]) == 0) {
            *ret_op = (oos_op)i;
            return true;
        }
    return false;
}

void oos_trace_free(oos_trace *trace)
{
    if (!trace) return;
    for (uint32_t i = 0; i < trace->string_count; i++) free(trace->strings[i]);
    free(trace->settings);
    free(trace->name);
    free(trace->events);
    free(trace->times_us);
    free(trace->ids);
    free(trace->streams);
    free(trace->pools);
    free(trace->strings);
    free(trace->frames);
    free(trace->stacks);
    free(trace->given);
    free(trace->given_ranges);
    free(trace->expected);
    free(trace->expected_blocks);
    free(trace);
}

/* Numbers that were seen -> index. Slots hold index + 1; the keys are compared in the tables themselves. */
typedef struct index_table {
    uint32_t *slots;
    size_t capacity, count; /* capacity: power of two */
} index_table;

typedef struct name_slot {
    uint64_t name;
    uint32_t id; /* OOS_NO_ID: empty or forgotten */
    bool used;
} name_slot;

struct oos_trace_builder {
    oos_trace *trace;
    bool failed;
    const char *full; /* which table ran out of numbers */
    size_t event_capacity, time_capacity, id_capacity, stream_capacity, pool_capacity, string_capacity,
        frame_capacity, stack_capacity, given_capacity, range_capacity;
    index_table streams, pools, strings, frames, stacks;
    name_slot *names;
    size_t name_capacity, name_count;
};

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

static uint64_t hash_bytes(oos_view text)
{
    return mix(oos_hash_add(OOS_HASH_START, text.ptr, text.len));
}

/* Room for one more item of a table. */
static bool grow(oos_trace_builder *b, void *list, size_t count, size_t *capacity, size_t item_bytes)
{
    void **at = list;
    if (count < *capacity) return true;
    size_t const wanted = *capacity ? *capacity + *capacity / 2 : 64;
    void *grown = realloc(*at, wanted * item_bytes);
    if (!grown) {
        b->failed = true;
        return false;
    }
    *at = grown;
    *capacity = wanted;
    return true;
}

typedef uint64_t (*hash_of)(const oos_trace *trace, uint32_t index);

static bool index_grow(oos_trace_builder *b, index_table *table, hash_of hash)
{
    if (table->count * 2 < table->capacity) return true;
    size_t const capacity = table->capacity ? table->capacity * 2 : 64;
    uint32_t *slots = calloc(capacity, sizeof *slots);
    if (!slots) {
        b->failed = true;
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (!table->slots[i]) continue;
        size_t at = hash(b->trace, table->slots[i] - 1) & (capacity - 1);
        while (slots[at]) at = (at + 1) & (capacity - 1);
        slots[at] = table->slots[i];
    }
    free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    oos_assert(table->count < table->capacity); /* a search ends at a free slot */
    return true;
}

static uint64_t hash_stream(const oos_trace *t, uint32_t i)
{
    return mix(t->streams[i]);
}
static uint64_t hash_pool(const oos_trace *t, uint32_t i)
{
    return mix(t->pools[i].first * 31 + t->pools[i].second);
}
static uint64_t hash_string(const oos_trace *t, uint32_t i)
{
    return hash_bytes(oos_view_of(t->strings[i]));
}
static uint64_t hash_frame(const oos_trace *t, uint32_t i)
{
    const oos_frame *f = &t->frames[i];
    return mix((uint64_t)f->name << 32 ^ (uint64_t)f->file << 16 ^ f->line);
}
static uint64_t hash_stack(const oos_trace *t, uint32_t i)
{
    return mix((uint64_t)t->stacks[i].frame << 32 | t->stacks[i].caller);
}

/* Find the item that was just put behind the table's end, or keep it there. */
#define INTERN(builder, table, list, count_field, capacity_field, limit, hash, item, same)                   \
    do {                                                                                                     \
        oos_trace *const t_ = (builder)->trace;                                                              \
        if (!grow((builder), &t_->list, t_->count_field, &(builder)->capacity_field, sizeof *t_->list) ||    \
            !index_grow((builder), &(builder)->table, hash))                                                 \
            return UINT32_MAX;                                                                               \
        t_->list[t_->count_field] = (item);                                                                  \
        size_t at_ = hash(t_, t_->count_field) & ((builder)->table.capacity - 1);                            \
        for (; (builder)->table.slots[at_]; at_ = (at_ + 1) & ((builder)->table.capacity - 1)) {             \
            uint32_t const i_ = (builder)->table.slots[at_] - 1;                                             \
            if (same) return i_;                                                                             \
        }                                                                                                    \
        if (t_->count_field >= (limit)) {                                                                    \
            (builder)->full = #list;                                                                         \
            return UINT32_MAX;                                                                               \
        }                                                                                                    \
        (builder)->table.slots[at_] = t_->count_field + 1;                                                   \
        (builder)->table.count++;                                                                            \
        return t_->count_field++;                                                                            \
    } while (0)

uint32_t oos_trace_stream(oos_trace_builder *builder, uint64_t handle)
{
    INTERN(builder, streams, streams, stream_count, stream_capacity, UINT16_MAX, hash_stream, handle,
           t_->streams[i_] == handle);
}

uint32_t oos_trace_pool(oos_trace_builder *builder, oos_pool_id id)
{
    INTERN(builder, pools, pools, pool_count, pool_capacity, UINT16_MAX, hash_pool, id,
           t_->pools[i_].first == id.first && t_->pools[i_].second == id.second);
}

uint32_t oos_trace_frame(oos_trace_builder *builder, oos_frame frame)
{
    INTERN(builder, frames, frames, frame_count, frame_capacity, UINT32_MAX - 1, hash_frame, frame,
           t_->frames[i_].name == frame.name && t_->frames[i_].file == frame.file &&
               t_->frames[i_].line == frame.line);
}

uint32_t oos_trace_stack(oos_trace_builder *builder, oos_stack stack)
{
    /* callers come first: a stack has an end */
    oos_assert(!stack.caller || stack.caller < builder->trace->stack_count || builder->full ||
               builder->failed);
    INTERN(builder, stacks, stacks, stack_count, stack_capacity, UINT32_MAX - 1, hash_stack, stack,
           t_->stacks[i_].frame == stack.frame && t_->stacks[i_].caller == stack.caller);
}

uint32_t oos_trace_string(oos_trace_builder *builder, oos_view text)
{
    oos_trace *t = builder->trace;
    if (!grow(builder, &t->strings, t->string_count, &builder->string_capacity, sizeof *t->strings) ||
        !index_grow(builder, &builder->strings, hash_string))
        return UINT32_MAX;
    const char *zero = text.len ? memchr(text.ptr, 0, text.len) : NULL;
    if (zero) text.len = (size_t)(zero - text.ptr);
    size_t const mask = builder->strings.capacity - 1;
    size_t at = hash_bytes(text) & mask;
    for (; builder->strings.slots[at]; at = (at + 1) & mask) {
        uint32_t const i = builder->strings.slots[at] - 1;
        if (oos_view_is(text, t->strings[i])) return i;
    }
    char *copy = text.len ? strndup(text.ptr, text.len) : calloc(1, 1);
    if (!copy) return builder->failed = true, UINT32_MAX;
    t->strings[t->string_count] = copy;
    builder->strings.slots[at] = t->string_count + 1;
    builder->strings.count++;
    return t->string_count++;
}

oos_trace_builder *oos_trace_builder_create(void)
{
    oos_trace_builder *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->trace = calloc(1, sizeof *b->trace);
    if (b->trace) {
        b->trace->device_count = 1;
        oos_trace_stream(b, 0);
        oos_trace_pool(b, (oos_pool_id){0, 0});
        oos_trace_string(b, oos_view_of(""));
        oos_trace_frame(b, (oos_frame){0});
        oos_trace_stack(b, (oos_stack){0});
    }
    if (b->trace && !b->failed) return b;
    oos_trace_builder_free(b);
    return NULL;
}

void oos_trace_builder_free(oos_trace_builder *builder)
{
    if (!builder) return;
    oos_trace_free(builder->trace);
    free(builder->streams.slots);
    free(builder->pools.slots);
    free(builder->strings.slots);
    free(builder->frames.slots);
    free(builder->stacks.slots);
    free(builder->names);
    free(builder);
}

oos_trace *oos_trace_builder_trace(oos_trace_builder *builder)
{
    return builder->trace;
}

static size_t name_slot_of(const oos_trace_builder *b, uint64_t name)
{
    size_t at = mix(name) & (b->name_capacity - 1);
    while (b->names[at].used && b->names[at].name != name) at = (at + 1) & (b->name_capacity - 1);
    return at;
}

/* Forgotten names leave their slot behind; it goes when the table is rebuilt. */
static bool names_grow(oos_trace_builder *b)
{
    if (b->name_count * 2 < b->name_capacity) return true;
    size_t live = 0;
    for (size_t i = 0; i < b->name_capacity; i++) live += b->names[i].used && b->names[i].id != OOS_NO_ID;
    size_t capacity = 64;
    while (capacity < live * 4) capacity *= 2;
    name_slot *old = b->names;
    size_t const old_capacity = b->name_capacity;
    b->names = calloc(capacity, sizeof *b->names);
    if (!b->names) {
        b->names = old;
        b->failed = true;
        return false;
    }
    b->name_capacity = capacity;
    b->name_count = live;
    oos_assert(b->name_count * 2 < b->name_capacity);
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].used && old[i].id != OOS_NO_ID) b->names[name_slot_of(b, old[i].name)] = old[i];
    free(old);
    return true;
}

uint32_t oos_trace_new_id(oos_trace_builder *builder, uint64_t name)
{
    oos_trace *t = builder->trace;
    if (t->id_count >= OOS_NO_ID - 1) return builder->full = "allocations", OOS_NO_ID;
    if (!names_grow(builder) || !grow(builder, &t->ids, t->id_count, &builder->id_capacity, sizeof *t->ids))
        return OOS_NO_ID;
    size_t const at = name_slot_of(builder, name);
    if (!builder->names[at].used) builder->name_count++;
    builder->names[at] = (name_slot){name, t->id_count, true};
    t->ids[t->id_count] = name;
    return t->id_count++;
}

uint32_t oos_trace_find_id(const oos_trace_builder *builder, uint64_t name)
{
    if (!builder->name_capacity) return OOS_NO_ID;
    const name_slot *slot = &builder->names[name_slot_of(builder, name)];
    return slot->used ? slot->id : OOS_NO_ID;
}

void oos_trace_forget_id(oos_trace_builder *builder, uint64_t name)
{
    if (!builder->name_capacity) return;
    name_slot *slot = &builder->names[name_slot_of(builder, name)];
    if (slot->used) slot->id = OOS_NO_ID;
}

void oos_trace_add(oos_trace_builder *builder, oos_event event)
{
    oos_trace *t = builder->trace;
    if (!grow(builder, &t->events, t->event_count, &builder->event_capacity, sizeof *t->events)) return;
    oos_assert(event.op < OOS_OP_COUNT);
    oos_assert((event.stream < t->stream_count && event.pool < t->pool_count) || builder->full ||
               builder->failed);
    if (event.device >= t->device_count) t->device_count = event.device + 1u;
    t->events[t->event_count++] = event;
}

void oos_trace_add_timed(oos_trace_builder *builder, oos_event event, uint64_t time_us)
{
    oos_trace *t = builder->trace;
    size_t const at = t->event_count;
    if (!grow(builder, &t->times_us, at, &builder->time_capacity, sizeof *t->times_us)) return;
    oos_trace_add(builder, event);
    if (t->event_count > at) t->times_us[at] = time_us;
}

void oos_trace_add_given(oos_trace_builder *builder, oos_given given, bool range)
{
    oos_trace *t = builder->trace;
    oos_assert(!t->given_count || range || t->given[t->given_count - 1].device <= given.device);
    oos_assert(!t->given_range_count || !range ||
               t->given_ranges[t->given_range_count - 1].device <= given.device);
    if (range) {
        if (grow(builder, &t->given_ranges, t->given_range_count, &builder->range_capacity, sizeof given))
            t->given_ranges[t->given_range_count++] = given;
    } else if (grow(builder, &t->given, t->given_count, &builder->given_capacity, sizeof given)) {
        t->given[t->given_count++] = given;
    }
}

oomsight_status oos_trace_builder_take(oos_trace_builder *builder, oos_trace **ret_trace,
                                       oomsight_error *reterr)
{
    if (builder->failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the trace");
    if (builder->full) return oos_fail(reterr, OOMSIGHT_OVERFLOW, "too many %s in the trace", builder->full);
    oos_assert(builder->trace->streams[0] == 0 && builder->trace->strings[0][0] == '\0');
    *ret_trace = builder->trace;
    builder->trace = NULL;
    return OOMSIGHT_OK;
}

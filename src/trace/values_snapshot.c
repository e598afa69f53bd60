/* From values to a snapshot: entries, blocks and frames as soon as their dictionary is filled, the rest at the end. */
#include "trace/trace.h"
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

static const char *string_of(const oos_values *v, oos_snapshot_value value)
{
    oos_assert(value.kind != OOS_KIND_STRING ||
               value.bits < oos_trace_builder_trace(v->snapshot->builder)->string_count);
    return value.kind == OOS_KIND_STRING ? oos_trace_builder_trace(v->snapshot->builder)->strings[value.bits]
                                         : "";
}

static uint64_t number_of(oos_snapshot_value value)
{
    return value.kind == OOS_KIND_INT ? value.bits : 0;
}

/* A list of frames, innermost first, as a stack. Shared lists are walked once. */
static uint32_t stack_of(oos_values *v, oos_snapshot_value value)
{
    enum { DEEPEST = 512 };
    uint32_t frames[DEEPEST], depth = 0;
    if (value.kind != OOS_KIND_LIST) return 0;
    value_list *list = &v->lists.list[value.bits];
    if (list->stack || list->count == 0) return list->stack;
    for (uint32_t c = list->first, left = list->count; left && depth < DEEPEST; c = v->chunks.list[c].next) {
        value_chunk const chunk = v->chunks.list[c];
        for (uint32_t i = 0; i < chunk.count && depth < DEEPEST; i++) {
            oos_snapshot_value const item = oos_values_load(v, v->items.list[chunk.start + i]);
            if (item.kind != OOS_KIND_DICT) continue;
            value_dict const dict = v->dicts.list[item.bits];
            if (dict.type == DICT_FRAME)
                frames[depth++] = oos_trace_frame(v->snapshot->builder, v->frames.list[dict.index]);
        }
        left = left > chunk.count ? left - chunk.count : 0;
    }
    uint32_t stack = 0;
    while (depth) stack = oos_trace_stack(v->snapshot->builder, (oos_stack){frames[--depth], stack});
    list->stack = stack;
    return stack;
}

static uint8_t action_of(const char *name)
{
    static const char *const names[] = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                        "segment_free", "segment_map",    "segment_unmap",  "oom"};
    _Static_assert(sizeof names / sizeof *names == OOS_SNAPSHOT_OTHER, "a name for each action");
    for (unsigned i = 0; i < OOS_SNAPSHOT_OTHER; i++)
        if (strcmp(name, names[i]) == 0) return (uint8_t)i;
    return OOS_SNAPSHOT_OTHER;
}

static void fill_entry(oos_values *v, oos_snapshot_entry *e, const char *key, oos_snapshot_value value)
{
    if (strcmp(key, "action") == 0)
        e->action = (unsigned)action_of(string_of(v, value)) & 0x7fu;
    else if (strcmp(key, "addr") == 0 || strcmp(key, "device_free") == 0)
        e->address = number_of(value);
    else if (strcmp(key, "size") == 0)
        e->bytes = number_of(value);
    else if (strcmp(key, "stream") == 0)
        e->stream = (uint16_t)oos_trace_stream(v->snapshot->builder, number_of(value));
    else if (strcmp(key, "time_us") == 0)
        e->time_us = number_of(value) & (((uint64_t)1 << 56) - 1);
    else if (strcmp(key, "frames") == 0)
        e->stack = stack_of(v, value);
    else if (strcmp(key, "pool_id") == 0 && value.kind == OOS_KIND_POOL) {
        e->pool = (uint16_t)value.bits;
        e->has_pool = true;
    } else if (strcmp(key, "user_metadata") == 0)
        v->snapshot->has_metadata = true;
}

static void fill_block(oos_values *v, oos_snapshot_block *b, const char *key, oos_snapshot_value value)
{
    if (strcmp(key, "address") == 0)
        b->address = number_of(value);
    else if (strcmp(key, "size") == 0)
        b->bytes = number_of(value);
    else if (strcmp(key, "requested_size") == 0)
        b->requested_bytes = number_of(value);
    else if (strcmp(key, "frames") == 0)
        b->stack = stack_of(v, value);
    else if (strcmp(key, "state") == 0) {
        const char *state = string_of(v, value);
        b->state = strcmp(state, "active_allocated") == 0 ? 0 : strcmp(state, "inactive") == 0 ? 2 : 1;
    }
}

static void fill_frame(oos_frame *f, const char *key, oos_snapshot_value value)
{
    if (strcmp(key, "name") == 0 && value.kind == OOS_KIND_STRING)
        f->name = (uint32_t)value.bits;
    else if (strcmp(key, "filename") == 0 && value.kind == OOS_KIND_STRING)
        f->file = (uint32_t)value.bits;
    else if (strcmp(key, "line") == 0)
        f->line = (uint32_t)number_of(value);
}

/* What the pairs from `first` on describe, by the key that only it has. */
static dict_type type_of(const oos_values *v, size_t first)
{
    for (size_t i = first; i + 1 < v->stack.count; i += 2) {
        const char *key = string_of(v, v->stack.list[i]);
        if (strcmp(key, "action") == 0) return DICT_ENTRY;
        if (strcmp(key, "state") == 0) return DICT_BLOCK;
        if (strcmp(key, "filename") == 0) return DICT_FRAME;
    }
    return DICT_PAIRS;
}

static void become(oos_values *v, value_dict *dict, dict_type type)
{
    size_t index = 0;
    switch (type) {
    case DICT_ENTRY:
        if (!GROW_VALUES(v, v->entries)) return;
        index = v->entries.count++;
        v->entries.list[index] = (oos_snapshot_entry){.action = OOS_SNAPSHOT_OTHER};
        break;
    case DICT_BLOCK:
        if (!GROW_VALUES(v, v->blocks)) return;
        index = v->blocks.count++;
        v->blocks.list[index] = (oos_snapshot_block){.state = 2};
        break;
    case DICT_FRAME:
        if (!GROW_VALUES(v, v->frames)) return;
        index = v->frames.count++;
        v->frames.list[index] = (oos_frame){0};
        break;
    case DICT_PAIRS:
        if (!GROW_VALUES(v, v->lists)) return;
        index = v->lists.count++;
        v->lists.list[index] = (value_list){0};
        break;
    case DICT_EMPTY: break;
    }
    *dict = (value_dict){type & 15u, index & MAX_INDEX};
}

void oos_values_dict_add(oos_values *v, uint32_t index, size_t first)
{
    oos_assert(index < v->dicts.count && first <= v->stack.count);
    value_dict *dict = &v->dicts.list[index];
    if (dict->type == DICT_EMPTY) become(v, dict, type_of(v, first));
    if (v->failed) return;
    if (dict->type == DICT_PAIRS) {
        oos_values_list_add(v, dict->index, first);
        return;
    }
    for (size_t i = first; i + 1 < v->stack.count; i += 2) {
        const char *key = string_of(v, v->stack.list[i]);
        oos_snapshot_value const value = v->stack.list[i + 1];
        if (dict->type == DICT_ENTRY)
            fill_entry(v, &v->entries.list[dict->index], key, value);
        else if (dict->type == DICT_BLOCK)
            fill_block(v, &v->blocks.list[dict->index], key, value);
        else if (dict->type == DICT_FRAME)
            fill_frame(&v->frames.list[dict->index], key, value);
    }
}

/* ---- walking stored lists and dictionaries --------------------------------------------------------------------- */

typedef struct walk {
    const oos_values *v;
    uint32_t chunk, at, left;
} walk;

static walk walk_list(const oos_values *v, oos_snapshot_value value)
{
    if (value.kind != OOS_KIND_LIST) return (walk){.v = v};
    const value_list *list = &v->lists.list[value.bits];
    return (walk){v, list->first, 0, list->count};
}

static walk walk_pairs(const oos_values *v, oos_snapshot_value value)
{
    if (value.kind != OOS_KIND_DICT || v->dicts.list[value.bits].type != DICT_PAIRS) return (walk){.v = v};
    return walk_list(v, (oos_snapshot_value){OOS_KIND_LIST, v->dicts.list[value.bits].index});
}

static bool walk_next(walk *w, oos_snapshot_value *ret_value)
{
    if (w->left == 0) return false;
    const value_chunk *chunk = &w->v->chunks.list[w->chunk];
    if (w->at == chunk->count) {
        w->chunk = chunk->next;
        w->at = 0;
        chunk = &w->v->chunks.list[w->chunk];
    }
    oos_assert(w->at < chunk->count && chunk->start + w->at < w->v->items.count);
    *ret_value = oos_values_load(w->v, w->v->items.list[chunk->start + w->at++]);
    w->left--;
    return true;
}

/* ---- the snapshot ---------------------------------------------------------------------------------------------- */

static void take_blocks(oos_values *v, oos_snapshot_value list, oos_snapshot_segment *segment)
{
    oos_snapshot *s = v->snapshot;
    oos_snapshot_value item;
    segment->first_block = s->block_count;
    for (walk w = walk_list(v, list); walk_next(&w, &item);) {
        if (item.kind != OOS_KIND_DICT || v->dicts.list[item.bits].type != DICT_BLOCK) continue;
        oos_snapshot_block *grown = s->blocks;
        if ((s->block_count & (s->block_count + 1)) == 0 || s->block_count == 0)
            grown = realloc(s->blocks, (s->block_count * 2 + 2) * sizeof *grown);
        if (!grown) {
            v->failed = true;
            return;
        }
        s->blocks = grown;
        s->blocks[s->block_count++] = v->blocks.list[v->dicts.list[item.bits].index];
    }
    segment->block_count = s->block_count - segment->first_block;
}

static void take_segment(oos_values *v, oos_snapshot_value dict, oos_snapshot_segment *segment)
{
    oos_snapshot_value key, value;
    for (walk w = walk_pairs(v, dict); walk_next(&w, &key) && walk_next(&w, &value);) {
        const char *name = string_of(v, key);
        if (strcmp(name, "address") == 0)
            segment->address = number_of(value);
        else if (strcmp(name, "total_size") == 0)
            segment->bytes = number_of(value);
        else if (strcmp(name, "device") == 0)
            segment->device = (uint32_t)number_of(value);
        else if (strcmp(name, "stream") == 0)
            segment->stream = (uint16_t)oos_trace_stream(v->snapshot->builder, number_of(value));
        else if (strcmp(name, "segment_type") == 0)
            segment->large = strcmp(string_of(v, value), "large") == 0;
        else if (strcmp(name, "is_expandable") == 0)
            segment->expandable = value.kind == OOS_KIND_BOOL && value.bits;
        else if (strcmp(name, "segment_pool_id") == 0 && value.kind == OOS_KIND_POOL)
            segment->pool = (uint16_t)value.bits;
        else if (strcmp(name, "blocks") == 0)
            take_blocks(v, value, segment);
    }
}

static void take_segments(oos_values *v, oos_snapshot_value list)
{
    oos_snapshot *s = v->snapshot;
    oos_snapshot_value item;
    size_t const count = list.kind == OOS_KIND_LIST ? v->lists.list[list.bits].count : 0;
    if (s->segments || !count) return;
    s->segments = calloc(count, sizeof *s->segments);
    if (!s->segments) {
        v->failed = true;
        return;
    }
    for (walk w = walk_list(v, list); walk_next(&w, &item) && !v->failed;)
        take_segment(v, item, &s->segments[s->segment_count++]);
}

/* The entries of one device become a contiguous run. They nearly always are one already. */
static void take_history(oos_values *v, oos_snapshot_value list, oos_snapshot_history *history)
{
    oos_snapshot *s = v->snapshot;
    oos_snapshot_value item;
    history->first = s->entry_count;
    for (walk w = walk_list(v, list); walk_next(&w, &item);) {
        if (item.kind != OOS_KIND_DICT || v->dicts.list[item.bits].type != DICT_ENTRY) continue;
        uint32_t const index = v->dicts.list[item.bits].index;
        oos_assert(index < v->entries.count);
        if (s->entry_count >= v->entries.count) break; /* a list that names entries twice */
        oos_snapshot_entry const swap = v->entries.list[s->entry_count];
        v->entries.list[s->entry_count] = v->entries.list[index];
        if (index != s->entry_count) v->entries.list[index] = swap;
        s->has_pools |= v->entries.list[s->entry_count].has_pool;
        s->entry_count++;
    }
    history->count = s->entry_count - history->first;
}

static void take_histories(oos_values *v, oos_snapshot_value list)
{
    oos_snapshot *s = v->snapshot;
    oos_snapshot_value item;
    size_t const count = list.kind == OOS_KIND_LIST ? v->lists.list[list.bits].count : 0;
    if (s->histories || !count || count > 64) return;
    s->histories = calloc(count, sizeof *s->histories);
    if (!s->histories) {
        v->failed = true;
        return;
    }
    for (walk w = walk_list(v, list); walk_next(&w, &item);)
        take_history(v, item, &s->histories[s->history_count++]);
}

/* PyTorch writes every setting that was ever set, this one as the largest number there is. */
#define NO_SPLIT_LIMIT "max_split_size_mb:17592186044415"

/* One word of a list with commas, with a comma beside it. */
static void drop_word(char *list, const char *word)
{
    char *at = strstr(list, word);
    size_t len = strlen(word);
    if (!at || (at > list && at[-1] != ',') || (at[len] && at[len] != ',')) return;
    if (at[len])
        len++;
    else if (at > list)
        at--, len++;
    memmove(at, at + len, strlen(at + len) + 1);
}

static void take_settings(oos_values *v, oos_snapshot_value dict)
{
    oos_snapshot_value key, value;
    for (walk w = walk_pairs(v, dict); walk_next(&w, &key) && walk_next(&w, &value);)
        if (strcmp(string_of(v, key), "PYTORCH_CUDA_ALLOC_CONF") == 0) {
            oos_view const text =
                oos_view_slice(oos_view_of(string_of(v, value)), 0, sizeof v->snapshot->settings - 1);
            memcpy(v->snapshot->settings, text.ptr, text.len);
            drop_word(v->snapshot->settings, NO_SPLIT_LIMIT);
        }
}

/* "TOTAL BASE" in bytes: what a dry run knows of its device. */
static void take_device(oos_values *v, oos_snapshot_value value)
{
    unsigned long long total, base;
    if (value.kind != OOS_KIND_STRING || sscanf(string_of(v, value), "%llu %llu", &total, &base) != 2 ||
        base > total)
        return;
    v->snapshot->total_bytes = oos_u64_of(total);
    v->snapshot->base_bytes = base;
}

oomsight_status oos_values_to_snapshot(oos_values *v, oos_snapshot **ret_snapshot, oomsight_error *reterr)
{
    if (v->failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the snapshot");
    if (v->stack.count != 1 || v->stack.list[0].kind != OOS_KIND_DICT)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "a snapshot is one dictionary; this is something else");
    oos_snapshot_value key, value;
    bool has_segments = false;
    for (walk w = walk_pairs(v, v->stack.list[0]); walk_next(&w, &key) && walk_next(&w, &value);) {
        const char *name = string_of(v, key);
        if (strcmp(name, "segments") == 0) {
            has_segments = true;
            take_segments(v, value);
        } else if (strcmp(name, "device_traces") == 0)
            take_histories(v, value);
        else if (strcmp(name, "allocator_settings") == 0)
            take_settings(v, value);
        else if (strcmp(name, "oomsight_device") == 0)
            take_device(v, value);
        else if (strcmp(name, "host_segments") == 0)
            v->snapshot->has_host = true;
    }
    if (v->failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the snapshot");
    if (!has_segments)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "the dictionary has no 'segments': not a snapshot");
    v->snapshot->entries = v->entries.list; /* histories are runs of this table */
    v->entries.list = NULL;
    *ret_snapshot = v->snapshot;
    v->snapshot = NULL;
    return OOMSIGHT_OK;
}

void oos_snapshot_free(oos_snapshot *snapshot)
{
    if (!snapshot) return;
    oos_trace_builder_free(snapshot->builder);
    free(snapshot->entries);
    free(snapshot->histories);
    free(snapshot->segments);
    free(snapshot->blocks);
    free(snapshot);
}

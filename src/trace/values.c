/* Values by index, a stack, a memo; and the moment a dictionary turns out to be an entry, a block or a frame. */
#include "trace/trace.h"
#include "base/check.h"

#include <stdlib.h>

bool oos_values_grow(oos_values *v, void *array, size_t item_bytes)
{
    OOS_VALUES_ARRAY(void) *a = array;
    if (a->count < a->capacity) return true;
    size_t const capacity = a->capacity ? a->capacity + a->capacity / 2 : 64;
    void *grown = a->count < MAX_INDEX ? realloc(a->list, capacity * item_bytes) : NULL;
    if (!grown) {
        v->failed = true;
        return false;
    }
    a->list = grown;
    a->capacity = capacity;
    return true;
}

oos_values *oos_values_create(void)
{
    oos_values *v = calloc(1, sizeof *v);
    if (!v) return NULL;
    v->snapshot = calloc(1, sizeof *v->snapshot);
    if (v->snapshot) v->snapshot->builder = oos_trace_builder_create();
    if (v->snapshot && v->snapshot->builder) return v;
    oos_values_free(v);
    return NULL;
}

void oos_values_free(oos_values *v)
{
    if (!v) return;
    oos_snapshot_free(v->snapshot);
    free(v->stack.list);
    free(v->marks.list);
    free(v->memo.list);
    free(v->numbers.list);
    free(v->lists.list);
    free(v->chunks.list);
    free(v->items.list);
    free(v->dicts.list);
    free(v->frames.list);
    free(v->entries.list);
    free(v->blocks.list);
    free(v);
}

bool oos_values_failed(const oos_values *v)
{
    return v->failed;
}

void oos_values_push(oos_values *v, oos_snapshot_value value)
{
    if (GROW_VALUES(v, v->stack)) v->stack.list[v->stack.count++] = value;
}

void oos_values_push_string(oos_values *v, oos_view text)
{
    uint32_t const index = oos_trace_string(v->snapshot->builder, text);
    if (index > MAX_INDEX) v->failed = true;
    oos_values_push(v, (oos_snapshot_value){OOS_KIND_STRING, index});
}

bool oos_values_mark(oos_values *v)
{
    if (!GROW_VALUES(v, v->marks)) return false;
    v->marks.list[v->marks.count++] = v->stack.count;
    return true;
}

/* Numbers are kept beside; everything else is its own index. */
uint32_t oos_values_store(oos_values *v, oos_snapshot_value value)
{
    _Static_assert(OOS_KIND_POOL < 16 && MAX_INDEX == UINT32_MAX >> 4, "four bits of kind above the index");
    uint64_t index = value.bits;
    if (value.kind == OOS_KIND_INT || value.kind == OOS_KIND_REAL) {
        if (!GROW_VALUES(v, v->numbers)) return 0;
        index = v->numbers.count;
        v->numbers.list[v->numbers.count++] = value.bits;
    }
    if (index > MAX_INDEX) {
        v->failed = true;
        return 0;
    }
    return (uint32_t)value.kind << 28 | (uint32_t)index;
}

oos_snapshot_value oos_values_load(const oos_values *v, uint32_t ref)
{
    oos_snapshot_value value = {(oos_kind)(ref >> 28), ref & MAX_INDEX};
    oos_assert(value.kind <= OOS_KIND_POOL);
    if (value.kind == OOS_KIND_INT || value.kind == OOS_KIND_REAL) value.bits = v->numbers.list[value.bits];
    return value;
}

/* How many values lie behind the newest mark; the mark is taken away. */
static bool take_mark(oos_values *v, size_t *ret_first)
{
    if (v->marks.count == 0) return false;
    *ret_first = v->marks.list[--v->marks.count];
    return *ret_first <= v->stack.count;
}

/* A new list of the values from `first` on, which leave the stack. */
static void list_of(oos_values *v, size_t first)
{
    if (!GROW_VALUES(v, v->lists)) return;
    uint32_t const index = (uint32_t)v->lists.count++;
    v->lists.list[index] = (value_list){0};
    oos_values_list_add(v, index, first);
    v->stack.count = first;
    oos_values_push(v, (oos_snapshot_value){OOS_KIND_LIST, index});
}

void oos_values_list_add(oos_values *v, uint32_t index, size_t first)
{
    oos_assert(first <= v->stack.count && index < v->lists.count);
    size_t const count = v->stack.count - first;
    if (count == 0 || !GROW_VALUES(v, v->chunks)) return;
    uint32_t const chunk = (uint32_t)v->chunks.count++;
    v->chunks.list[chunk] = (value_chunk){(uint32_t)v->items.count, (uint32_t)count, 0};
    for (size_t i = 0; i < count; i++) {
        uint32_t const ref = oos_values_store(v, v->stack.list[first + i]);
        if (!GROW_VALUES(v, v->items)) return;
        v->items.list[v->items.count++] = ref;
    }
    value_list *list = &v->lists.list[index];
    if (list->count)
        v->chunks.list[list->last].next = chunk;
    else
        list->first = chunk;
    list->last = chunk;
    list->count += (uint32_t)count;
}

/* A pair of small whole numbers is how pools are named; thousands of entries share a few of them. */
static bool pair_to_pool(oos_values *v, size_t first)
{
    enum { MANY = 60000 };
    if (v->stack.count - first != 2) return false;
    oos_snapshot_value const a = v->stack.list[first], b = v->stack.list[first + 1];
    if (a.kind != OOS_KIND_INT || b.kind != OOS_KIND_INT) return false;
    if (oos_trace_builder_trace(v->snapshot->builder)->pool_count >= MANY) return false;
    uint32_t const index = oos_trace_pool(v->snapshot->builder, (oos_pool_id){a.bits, b.bits});
    if (index > MANY) return false;
    v->stack.count = first;
    oos_values_push(v, (oos_snapshot_value){OOS_KIND_POOL, index});
    return true;
}

bool oos_values_push_tuple(oos_values *v, size_t count)
{
    size_t const base = v->marks.count ? v->marks.list[v->marks.count - 1] : 0;
    if (v->stack.count < count || v->stack.count - count < base) return false;
    if (!pair_to_pool(v, v->stack.count - count)) list_of(v, v->stack.count - count);
    return true;
}

bool oos_values_push_list(oos_values *v, bool of_mark)
{
    size_t first = v->stack.count;
    if (of_mark && !take_mark(v, &first)) return false;
    if (!of_mark || !pair_to_pool(v, first)) list_of(v, first);
    return true;
}

void oos_values_push_dict(oos_values *v)
{
    if (!GROW_VALUES(v, v->dicts)) return;
    v->dicts.list[v->dicts.count] = (value_dict){DICT_EMPTY, 0};
    oos_values_push(v, (oos_snapshot_value){OOS_KIND_DICT, v->dicts.count++});
}

bool oos_values_append(oos_values *v, bool of_mark)
{
    size_t first = v->stack.count - 1;
    if (of_mark ? !take_mark(v, &first) : v->stack.count == 0) return false;
    if (first == 0 || v->stack.list[first - 1].kind != OOS_KIND_LIST) return false;
    oos_values_list_add(v, (uint32_t)v->stack.list[first - 1].bits, first);
    v->stack.count = first;
    return true;
}

bool oos_values_set_items(oos_values *v, bool of_mark)
{
    size_t first = v->stack.count - 2;
    if (of_mark ? !take_mark(v, &first) : v->stack.count < 2) return false;
    if (first == 0 || (v->stack.count - first) % 2 || v->stack.list[first - 1].kind != OOS_KIND_DICT)
        return false;
    oos_values_dict_add(v, (uint32_t)v->stack.list[first - 1].bits, first);
    v->stack.count = first;
    return true;
}

bool oos_values_memo_put(oos_values *v, uint32_t at)
{
    if (v->stack.count == 0) return false;
    if (at == UINT32_MAX) at = (uint32_t)v->memo.count;
    if (at > v->memo.count) return false;
    if (at == v->memo.count) {
        if (!GROW_VALUES(v, v->memo)) return false;
        v->memo.count++;
    }
    v->memo.list[at] = oos_values_store(v, v->stack.list[v->stack.count - 1]);
    return true;
}

bool oos_values_memo_get(oos_values *v, uint32_t at)
{
    if (at >= v->memo.count) return false;
    oos_values_push(v, oos_values_load(v, v->memo.list[at]));
    return true;
}

/* The inside of trace/values.h, shared by values.c and values_snapshot.c. A stored value is 32 bits: kind above, index
 * below. */
#ifndef OOS_INPUT_VALUES_STATE_H
#define OOS_INPUT_VALUES_STATE_H

#include "trace/values.h"

#define MAX_INDEX ((uint32_t)0x0fffffff)

/* What a dictionary turned out to be. */
typedef enum dict_type { DICT_EMPTY, DICT_PAIRS, DICT_ENTRY, DICT_BLOCK, DICT_FRAME } dict_type;

typedef struct value_dict {
    uint32_t type : 4,
        index : 28; /* PAIRS: a list of keys and values; else an index in the table of its type */
} value_dict;

/* A list is a chain of chunks: one per APPENDS. */
typedef struct value_chunk {
    uint32_t start, count, next; /* next: 0 is the end (a list's first chunk is never a next) */
} value_chunk;
typedef struct value_list {
    uint32_t first, last, count;
    uint32_t stack; /* as a list of frames, once asked; 0: not yet */
} value_list;

#define OOS_VALUES_ARRAY(type)                                                                               \
    struct {                                                                                                 \
        type *list;                                                                                          \
        size_t count, capacity;                                                                              \
    }

struct oos_values {
    bool failed;
    OOS_VALUES_ARRAY(oos_value) stack;
    OOS_VALUES_ARRAY(size_t) marks;
    OOS_VALUES_ARRAY(uint32_t) memo;
    OOS_VALUES_ARRAY(uint64_t) numbers;
    OOS_VALUES_ARRAY(value_list) lists;
    OOS_VALUES_ARRAY(value_chunk) chunks;
    OOS_VALUES_ARRAY(uint32_t) items;
    OOS_VALUES_ARRAY(value_dict) dicts;
    OOS_VALUES_ARRAY(oos_frame) frames;
    OOS_VALUES_ARRAY(oos_snapshot_entry) entries;
    OOS_VALUES_ARRAY(oos_snapshot_block) blocks;
    oos_snapshot *snapshot;
};

bool oos_values_grow(oos_values *v, void *array, size_t item_bytes);
#define GROW(v, array) oos_values_grow((v), &(array), sizeof *(array).list)

uint32_t oos_values_store(oos_values *v, oos_value value);
oos_value oos_values_load(const oos_values *v, uint32_t ref);
void oos_values_list_add(oos_values *v, uint32_t index, size_t first);

/* values_snapshot.c: key, value, ... from `first` to the stack's end, into a dict. */
void oos_values_dict_add(oos_values *v, uint32_t index, size_t first);

#endif

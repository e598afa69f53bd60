/* Plain values as pickles and JSON have them (numbers, strings, lists, dictionaries), stored compactly by index. Shared by
 * the two snapshot readers; everything else sees trace/snapshot.h. */
#ifndef OOS_INPUT_VALUES_H
#define OOS_INPUT_VALUES_H

#include "trace/snapshot.h"

typedef enum oos_kind {
    OOS_KIND_NONE, /* also: a number that does not fit */
    OOS_KIND_BOOL,
    OOS_KIND_INT,  /* bits of an int64_t */
    OOS_KIND_REAL, /* bits of a double */
    OOS_KIND_STRING,
    OOS_KIND_LIST, /* tuples too */
    OOS_KIND_DICT,
    OOS_KIND_POOL /* a pair of whole numbers */
} oos_kind;

typedef struct oos_value {
    oos_kind kind;
    uint64_t bits; /* or an index */
} oos_value;

typedef struct oos_values oos_values;

oos_values *oos_values_create(void); /* NULL when out of memory */
void oos_values_free(oos_values *values);

/* Out of memory, or past 2^28 values of a kind: remembered, told by the next two. */
bool oos_values_failed(const oos_values *values);

/* ---- the stack of a reader ------------------------------------------------------------------------------------- */

void oos_values_push(oos_values *values, oos_value value);
void oos_values_push_string(oos_values *values, oos_view text);
bool oos_values_mark(oos_values *values);

/* Each of these is false when the stack does not hold what it needs. Items are those behind the newest mark. */
bool oos_values_push_list(oos_values *values, bool of_mark); /* of_mark: made of the items */
bool oos_values_push_tuple(oos_values *values, size_t count);
void oos_values_push_dict(oos_values *values);
bool oos_values_append(oos_values *values, bool of_mark); /* to the list below the items, or below the top */
bool oos_values_set_items(oos_values *values, bool of_mark); /* key, value, ... to the dict below */

/* Memo of a pickle: UINT32_MAX puts behind the newest. */
bool oos_values_memo_put(oos_values *values, uint32_t at);
bool oos_values_memo_get(oos_values *values, uint32_t at);

/* The one value left becomes the snapshot; the values are given up. */
oomsight_status oos_values_to_snapshot(oos_values *values, oos_snapshot **ret_snapshot,
                                       oomsight_error *reterr);

#endif

/* The whole run as intervals: when each segment and each block was there, and where. What the picture is drawn from. */
#ifndef OOS_REPLAY_SPANS_H
#define OOS_REPLAY_SPANS_H

#include "replay/analysis.h"

enum { OOS_SPAN_LARGE = 1, OOS_SPAN_PRIVATE = 2, OOS_SPAN_EXPANDABLE = 4 };

typedef struct oos_spans {
    /* by segment; a mapped range that grows or shrinks is a new segment each time */
    uint32_t *segment_start, *segment_end;  /* events; the end is not included */
    double *segment_address, *segment_size; /* in units of 512 bytes */
    uint32_t *segment_kind;
    size_t segment_count, segment_capacity;
    /* by block */
    uint32_t *block_start, *block_end, *block_size, *block_stack;
    double *block_address;
    size_t block_count;
    uint32_t shortest_life; /* in events; blocks with a shorter one are left out, see oos_spans_thin() */
} oos_spans;

oomsight_status oos_spans_create(const oos_analysis *analysis, oos_spans **ret_spans, oomsight_error *reterr);
/* Leaves out the blocks that lived shortest until at most `most` are left, more or less: those that were there at `moment`
 * and those that are there at the end always stay. */
void oos_spans_thin(oos_spans *spans, size_t most, uint32_t moment);
void oos_spans_free(oos_spans *spans); /* NULL is fine */

#endif

/* A memory snapshot of torch.cuda.memory._dump_snapshot: segments, the allocator's own history per device, settings.
 * Read from a pickle by a reader that can execute nothing, or from the same object as JSON.
 *
 * The reader keeps no tree: dictionaries that are history entries, blocks or frames become fixed records as soon as
 * they are complete, strings and stacks are kept once. Memory is a small multiple of the number of entries. */
#ifndef OOS_INPUT_SNAPSHOT_H
#define OOS_INPUT_SNAPSHOT_H

#include "trace/trace.h"

typedef enum oos_snapshot_action {
    OOS_SNAPSHOT_ALLOC,
    OOS_SNAPSHOT_FREE_REQUESTED,
    OOS_SNAPSHOT_FREE_COMPLETED,
    OOS_SNAPSHOT_SEGMENT_ALLOC,
    OOS_SNAPSHOT_SEGMENT_FREE,
    OOS_SNAPSHOT_SEGMENT_MAP,
    OOS_SNAPSHOT_SEGMENT_UNMAP,
    OOS_SNAPSHOT_OOM, /* address: free bytes of the device */
    OOS_SNAPSHOT_OTHER
} oos_snapshot_action;

typedef struct oos_snapshot_entry {
    uint64_t address, bytes;
    uint64_t time_us : 56, action : 7, has_pool : 1; /* 32 bytes an entry: there are millions of them */
    uint32_t stack;
    uint16_t stream, pool; /* indices in the trace's tables */
} oos_snapshot_entry;
_Static_assert(sizeof(oos_snapshot_entry) == 32, "an entry has no holes");

typedef struct oos_snapshot_block {
    uint64_t address, bytes, requested_bytes;
    uint32_t stack;
    uint8_t state; /* 0 allocated, 1 pending free, 2 inactive */
} oos_snapshot_block;

typedef struct oos_snapshot_segment {
    uint64_t address, bytes;
    uint32_t device;
    uint16_t stream, pool;
    bool large, expandable;
    size_t first_block, block_count;
} oos_snapshot_segment;

/* What one device's history is: entries[first .. first + count). */
typedef struct oos_snapshot_history {
    size_t first, count;
} oos_snapshot_history;

typedef struct oos_snapshot {
    oos_snapshot_entry *entries;
    size_t entry_count;
    oos_snapshot_history *histories; /* by device */
    size_t history_count;
    oos_snapshot_segment *segments;
    size_t segment_count;
    oos_snapshot_block *blocks;
    size_t block_count;
    bool has_pools;              /* entries tell their pool: torch after 2.11 */
    bool has_metadata, has_host; /* keys that came with 2.10 and 2.15 */
    char settings[1024];         /* PYTORCH_CUDA_ALLOC_CONF of the last call */
    oos_u64 total_bytes;         /* of the device, where a dry run has written it down */
    uint64_t base_bytes;         /* of it, held outside PyTorch */
    oos_trace_builder *builder;  /* strings, frames, stacks, streams, pools */
} oos_snapshot;

oomsight_status oos_snapshot_read_pickle(oos_stream *stream, oos_snapshot **ret_snapshot,
                                         oomsight_error *reterr);
oomsight_status oos_snapshot_read_json(oos_stream *stream, oos_snapshot **ret_snapshot,
                                       oomsight_error *reterr);
void oos_snapshot_free(oos_snapshot *snapshot); /* NULL is fine */

/* The history as calls of the allocator (trace/snapshot_trace.c says how calls are told from events). The snapshot's
 * entries are given up on the way. */
oomsight_status oos_snapshot_to_trace(oos_snapshot *snapshot, oos_trace **ret_trace, oomsight_error *reterr);

#endif

/* The caching allocator of PyTorch, simulated for one device, exact to the byte: the same addresses inside the same
 * segments, the same statistics, the same out-of-memory text as the release whose rules it is given.
 *
 *   segment   what the driver gave (cudaMalloc), or the mapped part of an expandable address range
 *   block     a piece of a segment, allocated or free; neighbours are linked
 *   pool      the free blocks of one size class (small, large); two by default, two more per private pool
 *   owner     a private pool as the user knows it (CUDA graph pool, MemPool): a small and a large pool
 *   home      the free blocks of one pool on one stream: blocks never change their stream
 *
 * Host memory that runs out is remembered (oos_sim_failed) and makes every later answer worthless; nothing else fails. */
#ifndef OOS_REPLAY_SIM_H
#define OOS_REPLAY_SIM_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "trace/trace.h"
#include "replay/device.h"
#include "replay/settings.h"

typedef struct oos_sim oos_sim;

typedef struct oos_sim_params {
    oos_version torch;
    const char *settings; /* in force from the start; NULL: defaults */
    uint64_t total_bytes, base_bytes;
    oos_placement placement;
    uint32_t device_index;
    bool nvml;                             /* the text tells what this process holds */
    bool log;                              /* keep the allocator's own trace events of the last call */
    double sweep_ratio;                    /* not in torch: see oos_sim_create */
    const oos_given *given, *given_ranges; /* OOS_PLACEMENT_GIVEN: of this device; not copied */
    size_t given_count, given_range_count;
} oos_sim_params;

/* With sweep_ratio > 0 the allocator has one more rule than any release: before a segment is added that would lift the
 * reserved bytes above sweep_ratio * total, every wholly free segment of the pool asked is given back. */
oomsight_status oos_sim_create(const oos_sim_params *params, oos_sim **ret_sim, oomsight_error *reterr);
void oos_sim_free(oos_sim *sim); /* NULL is fine */
bool oos_sim_failed(const oos_sim *sim);

/* ---- calls ----------------------------------------------------------------------------------------------------- */

/* A block, or 0: out of memory, and the next oos_sim_oom_text() says how torch puts it. */
uint32_t oos_sim_malloc(oos_sim *sim, uint64_t bytes, uint64_t stream);
void oos_sim_free_block(oos_sim *sim, uint32_t block);
void oos_sim_record_stream(oos_sim *sim, uint32_t block, uint64_t stream);
void oos_sim_complete(oos_sim *sim, uint64_t stream); /* every event recorded on the stream so far is done */
void oos_sim_empty_cache(oos_sim *sim, oos_pool_id pool);
void oos_sim_set_fraction(oos_sim *sim, double fraction);
oomsight_status oos_sim_set_settings(oos_sim *sim, oos_view text, oomsight_error *reterr);

void oos_sim_pool_create(oos_sim *sim, oos_pool_id pool, oos_backend backend);
void oos_sim_pool_begin(oos_sim *sim, oos_pool_id pool, bool capture);
void oos_sim_pool_end(oos_sim *sim, oos_pool_id pool, bool capture);
void oos_sim_pool_release(oos_sim *sim, oos_pool_id pool);
void oos_sim_pool_use_on_oom(oos_sim *sim, oos_pool_id pool, bool on);
void oos_sim_pool_no_split(oos_sim *sim, oos_pool_id pool);

/* Send the next malloc to a pool that a snapshot names, without a reference: snapshots do not tell begin and end. */
void oos_sim_route_push(oos_sim *sim, oos_pool_id pool, oos_backend backend);
void oos_sim_route_pop(oos_sim *sim);
bool oos_sim_routed(const oos_sim *sim); /* a malloc now would go to a private pool */

/* ---- questions ------------------------------------------------------------------------------------------------- */

uint64_t oos_sim_address(const oos_sim *sim, uint32_t block);
uint64_t oos_sim_block_bytes(const oos_sim *sim, uint32_t block);

/* The cudaMalloc segment a block lies in; false for expandable ones. */
bool oos_sim_segment(const oos_sim *sim, uint32_t block, uint64_t *ret_address, uint64_t *ret_bytes);

/* Why the last oos_sim_malloc() gave nothing, in torch's words. */
void oos_sim_oom_text(const oos_sim *sim, oos_text *text);

const oos_device *oos_sim_device(const oos_sim *sim);
const oos_torch_rules *oos_sim_rules(const oos_sim *sim);

/* ---- statistics ------------------------------------------------------------------------------------------------ */

typedef enum oos_stat {
    OOS_STAT_ALLOCATION,
    OOS_STAT_SEGMENT,
    OOS_STAT_ACTIVE,
    OOS_STAT_INACTIVE_SPLIT,
    OOS_STAT_ALLOCATED_BYTES,
    OOS_STAT_RESERVED_BYTES,
    OOS_STAT_ACTIVE_BYTES,
    OOS_STAT_INACTIVE_SPLIT_BYTES,
    OOS_STAT_REQUESTED_BYTES,
    OOS_STAT_COUNT
} oos_stat;
typedef enum oos_stat_pool { OOS_STAT_ALL, OOS_STAT_SMALL, OOS_STAT_LARGE, OOS_STAT_POOLS } oos_stat_pool;

typedef struct oos_counter {
    uint64_t current, peak, added; /* what was taken away is added - current */
} oos_counter;

typedef struct oos_stats {
    oos_counter counters[OOS_STAT_COUNT][OOS_STAT_POOLS];
    oos_counter oversize_allocations, oversize_segments;
    uint64_t retries, ooms, rejections, syncs, device_allocs, device_frees;
} oos_stats;

extern const char *const oos_stat_names[OOS_STAT_COUNT];
const oos_stats *oos_sim_stats(const oos_sim *sim);

/* Bytes of free blocks: in all pools, in private ones, and in segments without a live block (what a sweep returns). */
uint64_t oos_sim_free_private_bytes(const oos_sim *sim);

/* ---- the allocator's own trace of the last call (with params.log) ------------------------------------------------ */

typedef enum oos_action {
    OOS_ACTION_ALLOC,
    OOS_ACTION_FREE_REQUESTED,
    OOS_ACTION_FREE_COMPLETED,
    OOS_ACTION_SEGMENT_ALLOC,
    OOS_ACTION_SEGMENT_FREE,
    OOS_ACTION_SEGMENT_MAP,
    OOS_ACTION_SEGMENT_UNMAP,
    OOS_ACTION_OOM, /* address: free bytes of the device */
    OOS_ACTION_COUNT
} oos_action;
extern const char *const oos_action_names[OOS_ACTION_COUNT];

typedef struct oos_sim_event {
    oos_action action;
    uint64_t address, bytes, stream;
} oos_sim_event;
size_t oos_sim_log(const oos_sim *sim, const oos_sim_event **ret_events);
void oos_sim_log_reset(oos_sim *sim);

/* ---- layout ---------------------------------------------------------------------------------------------------- */

typedef enum oos_block_state {
    OOS_BLOCK_ALLOCATED,
    OOS_BLOCK_PENDING_FREE, /* freed, waiting for other streams */
    OOS_BLOCK_INACTIVE
} oos_block_state;
extern const char *const oos_block_state_names[3];

typedef struct oos_layout_block {
    uint64_t bytes, requested_bytes; /* requested: 0 when inactive */
    oos_block_state state;
    uint32_t block; /* the simulator's number, to find who holds it */
} oos_layout_block;

/* One cudaMalloc segment, or one contiguous mapped range of an expandable one. */
typedef struct oos_layout_segment {
    uint64_t address, bytes, stream;
    oos_pool_id pool;
    bool large, expandable;
    size_t first_block, block_count; /* in oos_layout.blocks */
} oos_layout_segment;

typedef struct oos_layout {
    oos_layout_segment *segments; /* by address */
    oos_layout_block *blocks;
    size_t segment_count, block_count;
} oos_layout;

/* Both arrays live in the arena. */
oomsight_status oos_sim_layout(const oos_sim *sim, oos_arena *arena, oos_layout *ret_layout,
                               oomsight_error *reterr);

#endif

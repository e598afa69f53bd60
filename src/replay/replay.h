#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/size.h"
#include "base/text.h"
#include "base/view.h"
#include "facts/facts.h"
#include "ledger/ledger.h"
#include "trace/trace.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The device below the allocator: how many bytes it has, who else holds some, and where it puts what it gives.
 * cudaMalloc gives whole 2 MiB pages; cuMemCreate gives what is asked. */

typedef struct oos_span {
    uint64_t address, bytes;
} oos_span;

typedef struct oos_device {
    uint64_t total_bytes, base_bytes, used_bytes;
    oos_placement placement;
    uint64_t next_address, next_range;
    const oos_given *given, *given_ranges; /* segments and expandable ranges, in order; not owned */
    size_t given_count, given_at, given_range_count, given_range_at;
    oos_span *spans; /* first fit only: what is taken, by address */
    size_t span_count, span_capacity;
} oos_device;

void oos_device_init(oos_device *device, uint64_t total_bytes, uint64_t base_bytes, oos_placement placement);
void oos_device_release(oos_device *device);

uint64_t oos_device_free_bytes(const oos_device *device);

/* cudaMalloc, cudaFree. A free with `lost` unmaps the address and never gives the bytes back. */
bool oos_device_take(oos_device *device, uint64_t bytes, uint64_t *ret_address);
void oos_device_give(oos_device *device, uint64_t address, uint64_t bytes, bool lost);

/* cuMemAddressReserve, cuMemCreate, cuMemRelease. */
uint64_t oos_device_reserve(oos_device *device, uint64_t bytes);
bool oos_device_create(oos_device *device, uint64_t bytes);
void oos_device_destroy(oos_device *device, uint64_t bytes);

/* How the caching allocator's rules changed between torch releases. Everything version-dependent is decided here, once;
 * the simulator asks for a rule and never for a version. */

/* What breaks the tie between free blocks of one size. */
typedef enum oos_order {
    OOS_ORDER_ADDRESS, /* up to 2.11 */
    OOS_ORDER_BLOCK,   /* 2.12: creation number of the block */
    OOS_ORDER_SEGMENT  /* from 2.13: creation number of the segment, then the address */
} oos_order;

/* When pools marked use_on_oom are asked. */
typedef enum oos_lender_turn { OOS_LENDER_NEVER, OOS_LENDER_LAST, OOS_LENDER_FIRST } oos_lender_turn;

/* The sentence that ends the out-of-memory text. */
typedef enum oos_hint {
    OOS_HINT_MAX_SPLIT,    /* 2.1 */
    OOS_HINT_CUDA_CONF,    /* 2.2 to 2.9 */
    OOS_HINT_ALLOC_CONF,   /* 2.10 */
    OOS_HINT_DOCS,         /* 2.11 to 2.13 */
    OOS_HINT_DOCS_OR_NONE, /* 2.14: nothing when the request was expandable */
    OOS_HINT_BY_CAUSE      /* 2.15: expandable, reserve too small, or custom allocator have their own */
} oos_hint;

typedef struct oos_torch_rules {
    oos_version torch;
    oos_order order;
    oos_lender_turn lender_turn;
    oos_hint hint;
    bool routing_is_capture;    /* up to 2.12: any active pool routing counts as a graph capture */
    bool oldest_route_wins;     /* up to 2.9: of nested pools the outer one is used */
    bool lends_expandable;      /* up to 2.9: a lender's expandable blocks serve when the setting is on */
    bool one_division_rounds;   /* from 2.4: divisions of 1 round to 512 like no divisions */
    bool rest_starts_next_slot; /* from 2.10: `>` fills the slots behind the last key, not the last one too */
    bool full_fraction_unsets;  /* from 2.10: a memory fraction of 1 is no limit */
    bool segment_size_key;      /* from 2.11: large_segment_size_mb exists and is the floor of other keys */
    bool new_parser;  /* from 2.10: per_process_memory_fraction exists, closed bounds, other sentences */
    bool throw_key;   /* from 2.12 */
    bool reserve_key; /* from 2.15 */
    bool private_expandable;   /* from 2.5: new segments of private pools are expandable too */
    bool forgets_capture_uses; /* from 2.4: streams recorded during a capture hold nothing back after it */
    bool pool_empty_cache;     /* from 2.8: empty_cache can name a pool */
    bool no_split_pools;       /* from 2.10 */
    bool text_misspells;       /* 2.1: "capacty" */
    bool text_ends_at_index;   /* 2.3: the device index is a raw byte, on device 0 the end of the text */
    bool text_private_pools;   /* from 2.4 */
    bool text_allowed;         /* from 2.5 */
    bool traces_driver_calls;  /* from 2.5: num_device_alloc and its like exist */
} oos_torch_rules;

/* Rules of a release. Versions past the newest known one get the newest known rules. */
oos_torch_rules oos_torch_rules_of(oos_version torch);

/* vLLM 0.32.0 runs on torch 2.13.0. */
#define OOS_TORCH_DEFAULT OOS_VERSION(2, 13, 0)

/* Allocator settings: the string of PYTORCH_CUDA_ALLOC_CONF as the allocator of a given release reads it. */

#define OOS_UNLIMITED UINT64_MAX
enum { OOS_DIVISION_SLOTS = 16 };

typedef struct oos_settings {
    uint64_t max_split_bytes;          /* OOS_UNLIMITED: no limit */
    uint64_t non_split_rounding_bytes; /* an oversize block may be this much larger than the request */
    uint64_t large_segment_bytes;
    double gc_threshold;    /* 0: off */
    double memory_fraction; /* 1: no limit */
    double reserve; /* address space of an expandable segment: fraction of the device, or bytes; 0: default */
    bool reserve_is_bytes;
    bool expandable;
    bool throw_on_oom;
    uint32_t divisions[OOS_DIVISION_SLOTS]; /* by floor(log2(size)) - 20 */
} oos_settings;

void oos_settings_init(oos_settings *settings);

/* Apply a settings string as a call at run time does: what such a call resets is reset even when the string is refused.
 * On failure *reterr carries the allocator's own sentence. */
oomsight_status oos_settings_apply(oos_settings *settings, const oos_torch_rules *rules, oos_view text,
                                   oomsight_error *reterr);

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

/* Driving a simulator with a trace: one device, one setting, one pass. */

/* What to change against the trace. Zero means: as the trace has it. */
typedef struct oos_scenario {
    const char *settings; /* not NULL: in force from the start, and settings calls in the trace are ignored */
    oos_version torch;    /* 0: the trace's, or the default */
    oos_u64 total_bytes, base_bytes;
    double sweep_ratio; /* see oos_sim_create */
    bool set_backend;   /* give every private pool `backend` */
    oos_backend backend;
    bool log;
    bool stop_at_oom;
    bool modelled_addresses; /* place segments anew even where the trace tells their addresses */
    unsigned device;
} oos_scenario;

/* A device nobody named: large enough that nothing runs out. */
#define OOS_UNKNOWN_DEVICE_BYTES ((uint64_t)1 << 40)

typedef struct oos_runner oos_runner;

/* Whether the addresses of a device's segments are known from the beginning: then a run can end in the recorded state. */
bool oos_run_has_addresses(const oos_trace *trace, unsigned device);

oomsight_status oos_runner_create(const oos_trace *trace, const oos_scenario *scenario,
                                  oos_runner **ret_runner, oomsight_error *reterr);
void oos_runner_free(oos_runner *runner); /* NULL is fine */
oos_sim *oos_runner_sim(oos_runner *runner);

/* What became of one event. */
typedef struct oos_step {
    uint32_t block;        /* malloc: the block; 0 with `oom` */
    bool oom, skipped;     /* skipped: not this device's, or about an allocation that is not live */
    bool refused;          /* settings were not accepted: see `error` */
    oomsight_error *error; /* may be NULL; filled when refused */
} oos_step;
void oos_runner_step(oos_runner *runner, const oos_event *event, oos_step *step);

/* The block of a live allocation, 0 when it is not live. */
uint32_t oos_runner_block(const oos_runner *runner, uint32_t id);

/* ---- a whole pass ---------------------------------------------------------------------------------------------- */

typedef struct oos_outcome {
    bool oom;         /* at least one malloc failed */
    size_t first_oom; /* event */
    uint64_t ooms;
    uint64_t first_oom_bytes; /* asked */
    char *oom_text;           /* of the first one; owned: oos_outcome_release() */
    uint64_t peak_allocated_bytes, peak_reserved_bytes;
    size_t peak_event; /* when allocated bytes were highest */
    size_t reserved_peak_event;
    uint64_t end_allocated_bytes, end_reserved_bytes;
    uint64_t
        stranded_bytes; /* free bytes inside reserved memory when it mattered: at the first OOM, or at the peak
                                     of reserved bytes */
    uint64_t stranded_private_bytes; /* ... in private pools */
    uint64_t segments, device_allocs, device_frees, retries;
} oos_outcome;

/* Run every event of the scenario's device. A failed malloc is counted and the trace goes on without it, as a program
 * that catches the exception would. */
oomsight_status oos_run(const oos_trace *trace, const oos_scenario *scenario, oos_outcome *ret_outcome,
                        oomsight_error *reterr);
void oos_outcome_release(oos_outcome *outcome);

/* The same with a runner of one's own, and a look at every event of its device (`look` may be NULL). */
typedef void oos_look(void *context, size_t event, oos_runner *runner);
oomsight_status oos_runner_run(oos_runner *runner, oos_look *look, void *context, oos_outcome *ret_outcome,
                               oomsight_error *reterr);

/* What a trace says: the run itself, what other settings would have done, who held the memory at the peak, what was
 * stranded where, and which allocations keep segments from being given back. */

/* One line of the what-if table. */
typedef struct oos_what_if {
    const char *label; /* what was changed, for people */
    oos_scenario scenario;
    const char *settings; /* never NULL: what was in force at the start */
    bool refused;         /* this release does not take the settings: see `why` */
    char *why;
    oos_outcome outcome;
    oos_u64 smallest_bytes; /* the smallest device on which every request is served */
} oos_what_if;

/* Bytes held by one owner. */
typedef struct oos_block_holder {
    const char *name;
    uint32_t stack; /* 0: a category, or not known */
    uint64_t bytes, blocks;
} oos_block_holder;

/* Free bytes of one pool. */
typedef struct oos_stranded {
    oos_pool_id pool;
    bool large;
    uint64_t free_bytes;  /* in all */
    uint64_t whole_bytes; /* in segments without a live block: could be given back */
    uint64_t segments, whole_segments;
} oos_stranded;

/* An allocation that keeps a mostly free segment. */
typedef struct oos_pin {
    uint32_t id, stack;
    size_t event; /* its malloc */
    uint64_t bytes, segment_address, segment_bytes, free_bytes;
    uint64_t live_blocks; /* in that segment */
} oos_pin;

typedef struct oos_usage_point {
    size_t event;
    uint64_t allocated_bytes, reserved_bytes;
} oos_usage_point;

typedef struct oos_analysis {
    oos_arena *arena; /* owns everything but the trace */
    const oos_trace *trace;
    oos_scenario scenario;
    const char *settings; /* in force at the start */
    oos_outcome outcome;
    oos_flag reproduced; /* the run ended as the snapshot says it did */

    oos_what_if *what_ifs;
    size_t what_if_count;
    oos_u64 smallest_bytes;

    oos_block_holder *holders, *categories; /* at the peak of allocated bytes, largest first */
    size_t holder_count, category_count;

    size_t strained_event; /* the moment of what follows: the first OOM, or the peak of reserved bytes */
    oos_moment strain;
    oos_layout layout;
    uint32_t *layout_stacks; /* by block of the layout */
    oos_stranded *stranded;
    size_t stranded_count;
    oos_pin *pins;
    size_t pin_count;

    oos_usage_point *points; /* the run, thinned out; highest reserved of each stretch */
    size_t point_count;
    oos_block_holder *flame; /* stacks at the peak, every one */
    size_t flame_count;
} oos_analysis;

typedef struct oos_analysis_params {
    oos_scenario scenario;
    bool what_if, find_smallest;
    const char *const *try_settings;
    size_t try_count;
} oos_analysis_params;

oomsight_status oos_analyse(const oos_trace *trace, const oos_analysis_params *params,
                            oos_analysis **ret_analysis, oomsight_error *reterr);
void oos_analysis_free(oos_analysis *analysis); /* NULL is fine */

/* ---- its parts ------------------------------------------------------------------------------------------------- */

oomsight_status oos_what_ifs_run(oos_analysis *analysis, const oos_analysis_params *params,
                                 oomsight_error *reterr);
oomsight_status oos_moments_fill(oos_analysis *analysis, oomsight_error *reterr);
oomsight_status oos_smallest_device(const oos_trace *trace, const oos_scenario *scenario,
                                    const oos_outcome *outcome, oos_u64 *ret_bytes, oomsight_error *reterr);

/* "weights", "KV cache", ...: what the frames of a stack point to. Never NULL. */
const char *oos_category_of(const oos_trace *trace, uint32_t stack, oos_pool_id pool);

/* The same as an owner of the ledger; OOS_OWNER_LIVE where the ledger has no such owner. */
oos_owner oos_owner_of(const oos_trace *trace, uint32_t stack);

/* "name (file:line)" of the innermost frame that is not torch's own. */
const char *oos_stack_name(oos_arena *arena, const oos_trace *trace, uint32_t stack);

/* Pools by id, walked in the order torch walks them. torch keeps the pools it may give up, and those that lend, in open
 * hash tables, and the order of a walk decides which memory goes first; so the order is part of what is simulated. */

typedef struct oos_id_entry {
    uint64_t hash;
    uint32_t value;
    int8_t distance; /* slots behind the one the hash asks for; below 0: empty */
} oos_id_entry;

/* All zero: empty. */
typedef struct oos_id_table {
    oos_id_entry *entries; /* slots + probes - 1 of them */
    size_t slots, count;
    int8_t probes;
} oos_id_table;

enum { OOS_ID_TABLE_END = -1 };

/* Values are unique: a value that is there already stays. False when out of memory; the table is then only good for release(). */
bool oos_id_table_insert(oos_id_table *table, uint64_t hash, uint32_t value);
/* Positions are walked with next(): the first at or behind `at`, or OOS_ID_TABLE_END. */
ptrdiff_t oos_id_table_next(const oos_id_table *table, ptrdiff_t at);
ptrdiff_t oos_id_table_find(const oos_id_table *table, uint32_t value);
/* What follows may move up into `at`, which is where a walk goes on. */
void oos_id_table_erase(oos_id_table *table, ptrdiff_t at);
void oos_id_table_release(oos_id_table *table);

/* An ordered set of blocks by a pair of numbers. Best fit is its question: the first block not below a key.
 *
 * Keys are spread over bins by the logarithm of `major` (64 to an octave of 512-byte units). Typical bins hold a few keys,
 * so a question costs one bin number and four comparisons; a bin with a million equal sizes still costs only a search of
 * its directory. */

typedef struct oos_set oos_set;

oos_set *oos_set_create(void);   /* NULL when out of memory */
void oos_set_free(oos_set *set); /* NULL is fine */
size_t oos_set_count(const oos_set *set);

/* The pair must not be in the set yet. False when out of memory: then nothing has changed. */
bool oos_set_add(oos_set *set, uint64_t major, uint64_t minor, uint32_t block);

/* The pair must be in the set. */
void oos_set_remove(oos_set *set, uint64_t major, uint64_t minor);

/* The first block not below the pair, the last block below the pair; 0 when there is none. */
uint32_t oos_set_from(const oos_set *set, uint64_t major, uint64_t minor);
uint32_t oos_set_below(const oos_set *set, uint64_t major, uint64_t minor);

/* All blocks in order; `ret_blocks` has room for oos_set_count() of them. */
void oos_set_list(const oos_set *set, uint32_t *ret_blocks);

bool oos_set_is_sound(const oos_set *set); /* a walk over all of it, for oos_assert */

/* The whole run as intervals: when each segment and each block was there, and where. What the picture is drawn from. */

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

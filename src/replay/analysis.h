/* What a trace says: the run itself, what other settings would have done, who held the memory at the peak, what was
 * stranded where, and which allocations keep segments from being given back. */
#ifndef OOS_REPLAY_ANALYSIS_H
#define OOS_REPLAY_ANALYSIS_H

#include "ledger/moment.h"
#include "replay/replay.h"

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

#endif

/* How the caching allocator's rules changed between torch releases. Everything version-dependent is decided here, once;
 * the simulator asks for a rule and never for a version. */
#ifndef OOS_REPLAY_TORCH_RULES_H
#define OOS_REPLAY_TORCH_RULES_H

#include "facts/version.h"

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

#endif

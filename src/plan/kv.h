/* The KV cache of a plan: its layout, and what fits into the memory that is left. */
#ifndef OOS_PLAN_KV_H
#define OOS_PLAN_KV_H

#include "base/size.h"

/* Layers that share tensors. */
typedef struct oos_kv_set {
    const char *kind; /* "full_attention", "sliding_window", "mamba", ... */
    uint64_t layers, block_tokens, page_bytes;
    uint64_t request_blocks; /* that one request of the longest length claims */
} oos_kv_set;

typedef struct oos_kv_layout {
    double bytes_per_token; /* of full attention on one GPU: for people */
    uint64_t block_tokens, page_bytes, block_bytes, tensor_count;
    uint64_t padding_layers;
    bool estimated;    /* an architecture we do not know: from the common fields */
    bool blocks_given; /* the command says how many, whatever memory there is */
    const oos_kv_set *groups;
    size_t group_count;
} oos_kv_layout;

/* The cache filled into an amount of memory. Blocks and tokens are set even when the engine refuses. */
typedef struct oos_kv_fill {
    uint64_t available_bytes;
    uint64_t blocks, tokens; /* as the engine prints them */
    double max_concurrency;
    uint64_t needed_bytes; /* for one request of max_model_len */
    uint64_t
        insisted_bytes; /* ... and what else the engine insists on: the null block, a state for each request */
    bool refused;       /* the engine says no */
    const char *refusal;       /* its sentence, with the same figures */
    oos_u64 estimated_max_len; /* the length the refusal names, or what auto-fit chose */
    oos_u64 capture_cap;       /* graphs are captured for so many requests at most, by the blocks of states */
} oos_kv_fill;

#endif

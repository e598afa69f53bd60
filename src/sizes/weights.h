/* Weights of one rank: exact arithmetic on the model's matrices, the parallel sizes and the quantisation. */
#ifndef OOS_SIZES_WEIGHTS_H
#define OOS_SIZES_WEIGHTS_H

#include "ledger/ledger.h"
#include "sizes/shard.h"

typedef struct oos_weight_part {
    const char *module; /* "experts", "attn", ... */
    uint64_t bytes;
} oos_weight_part;

enum { OOS_WEIGHT_PARTS_MAX = 16 };

typedef struct oos_weights {
    uint64_t param_bytes; /* parameters as the engine creates them, before process_weights_after_loading */
    uint64_t draft_param_bytes; /* MTP, EAGLE or draft model, without what is shared with the target */
    uint64_t buffer_bytes;      /* rotary tables, scales, expert maps */
    uint64_t lora_bytes;
    uint64_t
        offloaded_bytes; /* parameters that stay in host memory (--cpu-offload-gb): not in loaded_bytes */
    int64_t
        after_load_bytes; /* what repacking adds (MLA copies, padding) or takes away (online quantisation) */
    uint64_t load_transient_bytes;   /* largest second copy alive during copy-in (online quantisation) */
    uint64_t repack_transient_bytes; /* largest temporary of process_weights_after_loading */
    uint64_t loaded_bytes;           /* what "Model loading took" prints: the sum of the above that stays */
    oos_source source;               /* derived, read (headers), or estimated (unknown architecture) */
    uint64_t loaded_low, loaded_high;
    const char *note; /* what had to be decided, NULL */
    oos_weight_part parts[OOS_WEIGHT_PARTS_MAX];
    size_t part_count;
} oos_weights;

/* Rank 0 of pipeline stage `stage`. */
oomsight_status oos_weights_of_stage(oos_arena *arena, const oos_shard *shard, uint64_t stage,
                                     oos_weights *ret_weights, oomsight_error *reterr);

/* Workspace that layers take when they are built counts as loaded. */
static inline void oos_weights_add_built(oos_weights *weights, uint64_t bytes)
{
    weights->buffer_bytes = oos_add(weights->buffer_bytes, bytes);
    weights->loaded_bytes = oos_add(weights->loaded_bytes, bytes);
    weights->loaded_low = oos_add(weights->loaded_low, bytes);
    weights->loaded_high = oos_add(weights->loaded_high, bytes);
}

/* What stays after loading, as a row. */
oos_amount oos_weights_amount(const oos_weights *weights);

#endif

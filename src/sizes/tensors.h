/* The tensors of one matrix on one rank: its cut over ranks, what its quantisation stores, and what becomes of it once
 * it is loaded. Used by weights*.c. */
#ifndef OOS_SIZES_TENSORS_H
#define OOS_SIZES_TENSORS_H

#include "sizes/shard.h"

/* What decides about a cut. Filled once per plan. */
typedef struct oos_cut {
    uint64_t tp, expert_tp, ep;
    uint64_t dtype_bytes;
    unsigned capability;
    bool online_fp8;       /* weights that are not quantised become FP8 while loading */
    bool online_bnb;       /* ... or bitsandbytes' 4 bits */
    bool unquantised;      /* the checkpoint's scheme is not applied: nothing the engine knows asks for it */
    bool triton_mxfp4;     /* experts in MXFP4 are padded for Triton's kernel on Hopper, or anywhere */
    bool wide_mxfp4_bias;  /* and have biases in fp32 after loading */
    bool swizzled_mxfp4;   /* experts in MXFP4 go through Triton's Hopper layout */
    bool keeps_scales;     /* ... and the scales they came with stay */
    bool nested_constants; /* bitsandbytes: constants that are quantised again stay so */
    uint64_t split_limit;  /* the allocator does not split blocks of this size on; 0: no limit */
    bool exact_blocks;     /* expandable segments: no rounding beyond 512 */
} oos_cut;

oos_cut oos_cut_of(const oos_shard *shard);

/* The part of a matrix that one rank holds. */
typedef struct oos_piece {
    uint64_t rows, columns, count; /* count: experts */
} oos_piece;

oos_piece oos_piece_of(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant);

enum { OOS_TENSORS_MAX = 8 };

/* As created: parameters before process_weights_after_loading. As loaded: what stays after it. Returns their number. */
size_t oos_tensors_created(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant,
                           uint64_t ret_bytes[OOS_TENSORS_MAX]);
size_t oos_tensors_loaded(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant,
                          uint64_t ret_bytes[OOS_TENSORS_MAX]);
/* Whether the two lists can differ. */
bool oos_tensors_change(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant);

/* Repacked for its kernel: a second copy is alive meanwhile. */
bool oos_is_repacked(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant);

/* What the caching allocator counts for a tensor beyond its bytes. */
uint64_t oos_block_waste(const oos_cut *cut, uint64_t bytes);

#endif

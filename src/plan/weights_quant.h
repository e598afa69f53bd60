/* Bytes of one matrix on one rank: its cut over ranks, and what its quantisation stores. Used by weights*.c. */
#ifndef OOS_PLAN_WEIGHTS_QUANT_H
#define OOS_PLAN_WEIGHTS_QUANT_H

#include "plan/setup.h"

/* The part of a matrix that one rank holds. */
typedef struct oos_piece {
    uint64_t rows, columns, count; /* count: experts */
    uint64_t bias_rows;            /* 0: no bias */
} oos_piece;

/* What decides about the cut. Filled once per plan. */
typedef struct oos_cut {
    uint64_t tp, expert_tp, ep;
    uint64_t dtype_bytes;
    unsigned capability;
} oos_cut;

oos_cut oos_cut_of(const oos_setup *setup);
oos_piece oos_piece_of(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant);

/* Parameters as the engine creates them, before process_weights_after_loading. */
uint64_t oos_piece_bytes(const oos_cut *cut, const oos_matrix *matrix, const oos_quant *quant);

#endif

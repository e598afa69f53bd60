/* What it takes when flags cannot do it: a smaller checkpoint, or other GPUs. Used by solve.c. */
#ifndef OOS_PLAN_SOLVE_NEEDS_H
#define OOS_PLAN_SOLVE_NEEDS_H

#include "plan/solve/solve_trial.h"

/* NULL in *ret_needs: nothing was found. False when memory runs out. */
bool oos_needs_find(oos_search *s, const oos_needs **ret_needs);

/* One device of `count` that is asked for: with which flags does the command start there? */
bool oos_needs_try(oos_search *s, const oos_gpu *gpu, uint64_t count, oos_need_gpu *ret_need);

/* Names of the devices that are commonly rented or bought, by memory; NULL past the last. */
const char *oos_needs_gpu_name(size_t index);

#endif

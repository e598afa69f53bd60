/* What it takes when flags cannot do it: a smaller checkpoint, or other GPUs. Used by solve.c. */
#ifndef OOS_PLAN_SOLVE_NEEDS_H
#define OOS_PLAN_SOLVE_NEEDS_H

#include "plan/solve/solve_trial.h"

/* NULL in *ret_needs: nothing was found. False when memory runs out. */
bool oos_needs_find(oos_search *s, const oos_needs **ret_needs);

/* Every known device on which the command likely starts, each with the fewest cards that are enough, the least memory first. */
bool oos_choices_find(oos_search *s, const oos_need_gpu **ret_list, size_t *ret_count);

#endif

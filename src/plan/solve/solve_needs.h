/* What it takes when flags cannot do it: a smaller checkpoint, or other GPUs. Used by solve.c. */
#ifndef OOS_PLAN_SOLVE_NEEDS_H
#define OOS_PLAN_SOLVE_NEEDS_H

#include "plan/solve/solve_trial.h"

/* NULL in *ret_needs: nothing was found. False when memory runs out. */
bool oos_needs_find(oos_search *s, const oos_needs **ret_needs);

#endif

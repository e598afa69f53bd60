/* A command that asks for what cannot be: its refusals are mended one after the other, its own limits taken away. Used by solve.c. */
#ifndef OOS_PLAN_SOLVE_MENDS_H
#define OOS_PLAN_SOLVE_MENDS_H

#include "plan/solve/solve_trial.h"

/* The engine refuses it, whatever the memory. */
bool oos_mends_needed(const oos_plan *plan);

/* Fills fixes, answers and needs of such a plan, or of one that nothing else helps. False when memory runs out. */
bool oos_mends_find(oos_search *s, oos_plan *plan);

#endif

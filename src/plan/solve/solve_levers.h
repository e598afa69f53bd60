/* Every change of the command that is worth trying against a failure. Used by solve.c. */
#ifndef OOS_PLAN_SOLVE_LEVERS_H
#define OOS_PLAN_SOLVE_LEVERS_H

#include "plan/solve/solve_trial.h"

/* One round: what helps is added to the search's fixes. False when memory runs out. */
bool oos_levers_try(oos_search *s);

#endif

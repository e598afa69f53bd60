/* The answers that are worth pasting: least change, longest context, most requests. Used by solve.c. */
#ifndef OOS_PLAN_SOLVE_ANSWERS_H
#define OOS_PLAN_SOLVE_ANSWERS_H

#include "plan/solve/solve_trial.h"

/* At most three, put first among the search's fixes, what to paste first of them. *ret_offloads: they keep weights in
 * host memory, which is hardly an answer. False when memory runs out. */
bool oos_answers_find(oos_search *s, size_t *ret_count, bool *ret_offloads);

#endif

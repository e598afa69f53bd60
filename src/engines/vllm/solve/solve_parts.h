/* The parts of the search for fixes, a file each. Used by solve.c. */
#ifndef OOS_PLAN_SOLVE_PARTS_H
#define OOS_PLAN_SOLVE_PARTS_H

#include "engines/vllm/solve/solve_trial.h"

/* solve_levers.c: one round of every change of the command that is worth trying against a failure. What helps is added to the
 * search's fixes. False when memory runs out. */
bool oos_levers_try(oos_search *s);

/* solve_answers.c: what is worth pasting (least change, longest context, most requests). At most three, put first among the
 * search's fixes, what to paste first of them. *ret_last: they run without graphs or keep weights in host memory, which comes behind
 * what the plan needs. False when memory runs out. */
bool oos_answers_find(oos_search *s, size_t *ret_count, bool *ret_last);

/* solve_release.c: a release with which the same command starts, put first among the fixes. False when memory runs out. */
bool oos_release_find(oos_search *s);

/* solve_mends.c: a command that asks for what cannot be. Its refusals are mended one after the other, its own limits taken away. */
bool oos_mends_needed(const oos_plan *plan); /* the engine refuses it, whatever the memory */
bool oos_mends_limits(const oos_plan *plan); /* it sizes its own cache, and that is where it fails */

/* Offers the command without these limits where that is enough. False when memory runs out. */
bool oos_mends_start(oos_search *s, oos_plan *plan);

/* In place of the answers from `from` on those without these limits, where they are of a higher rung. False when memory runs out. */
bool oos_mends_cheaper(oos_search *s, size_t from, bool *ret_last);

/* Fills fixes, answers and needs of such a plan, or of one that nothing else helps. False when memory runs out. */
bool oos_mends_find(oos_search *s, oos_plan *plan);

/* solve_needs.c: what it takes when flags cannot do it, a smaller checkpoint or other GPUs. NULL in *ret_needs: nothing was
 * found. False when memory runs out. */
bool oos_needs_find(oos_search *s, const oos_needs **ret_needs);

/* Every known device on which the command likely starts, each with the fewest cards that are enough, the least memory first. */
bool oos_choices_find(oos_search *s, const oos_need_gpu **ret_list, size_t *ret_count);

#endif

/* The moments of a plan: what each opens with, and the device. */
#ifndef OOS_PLAN_MOMENT_H
#define OOS_PLAN_MOMENT_H

#include "plan/plan.h"

/* Open the next phase of the plan with what every phase holds: other processes, the context, communicators. */
oos_amount oos_moment_others(const oos_plan *plan); /* held by others on the device */
oos_moment *oos_moment_open(oos_arena *arena, oos_plan *plan, oos_phase phase);

/* ... with the rows of another phase. */
oos_moment *oos_moment_open_as(oos_arena *arena, oos_plan *plan, oos_phase phase, const oos_ledger *rows);

/* The device. `share` is how much of a byte more on it this phase has to itself: all of it while loading, what the budget
 * leaves once the cache grows with the device. */
oos_limit oos_limit_device(const oos_plan *plan, double share);

#endif

/* The moment of a phase: rows go in, and whether they fit comes out. */
#ifndef OOS_PLAN_MOMENT_H
#define OOS_PLAN_MOMENT_H

#include "plan/plan.h"

/* Open the next phase of the plan with what every phase holds: other processes, the context, communicators. */
oos_amount oos_moment_others(const oos_plan *plan); /* held by others on the device */
oos_plan_phase *oos_moment_open(oos_arena *arena, oos_plan *plan, oos_phase phase);

/* Add a row; failures are remembered until the close. */
void oos_moment_hold(oos_plan_phase *moment, const char *owner, oos_amount amount);

/* Compare with `limit_bytes`. */
oomsight_status oos_moment_close(oos_plan_phase *moment, uint64_t limit_bytes, oomsight_error *reterr);

#endif

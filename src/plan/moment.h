/* The moment of a phase: rows go in, and whether they fit comes out. */
#ifndef OOS_PLAN_MOMENT_H
#define OOS_PLAN_MOMENT_H

#include "plan/plan.h"

/* Open the next phase of the plan with what every phase holds: other processes, the context, communicators. */
oos_amount oos_moment_others(const oos_plan *plan); /* held by others on the device */
oos_plan_phase *oos_moment_open(oos_arena *arena, oos_plan *plan, oos_phase phase);

/* Add a row; failures are remembered until the close. */
void oos_moment_hold(oos_plan_phase *moment, const char *owner, oos_amount amount);

/* What a phase is compared with. */
typedef struct oos_limit {
    uint64_t bytes, low, high;
} oos_limit;
oos_limit oos_limit_exact(uint64_t bytes);

/* The device. `share` is how much of a byte more on it this phase has to itself: all of it while loading, what the budget
 * leaves once the cache grows with the device. */
oos_limit oos_limit_device(const oos_plan *plan, double share);

/* Chance that a need stays within its limit, by the room at the best guess and how much less or more it may be: the ends of a
 * range are taken for the middle nine tenths of a normal distribution. */
double oos_moment_chance(double room, double less, double more);

oomsight_status oos_moment_close(oos_plan_phase *moment, oos_limit limit, oomsight_error *reterr);

#endif

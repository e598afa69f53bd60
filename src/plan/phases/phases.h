/* The phases of a start in three stretches: until the cache is sized, its sizing, and after it. */
#ifndef OOS_PLAN_PHASES_H
#define OOS_PLAN_PHASES_H

#include "plan/plan.h"

oomsight_status oos_phases_before_kv(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);
oomsight_status oos_phases_kv(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);
oomsight_status oos_phases_after_kv(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);

/* Cause and mechanism of the phase that decided, in words. */
oomsight_status oos_phases_explain(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);

#endif

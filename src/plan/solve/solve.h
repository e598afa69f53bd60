/* What would help: a search over the real levers, each answer verified by planning again; and the flags people would try
 * that change nothing here. */
#ifndef OOS_PLAN_SOLVE_H
#define OOS_PLAN_SOLVE_H

#include "plan/plan.h"

/* Fills fixes and inert of a plan that does not fit. `scratch` is reset between candidates; results go to `arena`. */
oomsight_status oos_plan_solve(oos_arena *arena, oos_arena *scratch, oos_plan *plan,
                               const char *kv_layers_json, oomsight_error *reterr);

#endif

/* What the engine refuses before it looks at a device's memory: the checks of its own configuration, in the order in which it
 * makes them, with its own sentences. Bounds, methods and architectures come from facts/arguments.h; what is code in the
 * engine is code here. */
#ifndef OOS_PLAN_ARGUMENTS_H
#define OOS_PLAN_ARGUMENTS_H

#include "engines/vllm/setup/setup.h"
#include "plan/plan.h"

/* The first refusal of the command, if there is one. */
oomsight_status oos_arguments_check(oos_arena *arena, const oos_setup *setup, oos_refusal *ret_refusal,
                                    oomsight_error *reterr);

#endif

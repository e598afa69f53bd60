/* What no flag tells and a start depends on (a package that may be installed, a cache that may be warm), planned both ways. */
#ifndef OOS_PLAN_FORKS_H
#define OOS_PLAN_FORKS_H

#include "engines/vllm/plan.h"

/* Fills plan->forks. A plan that fits only one of the ways no longer says that it fits. */
oomsight_status oos_forks_plan(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);

#endif

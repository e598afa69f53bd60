/* The phases of one start. */
#include "plan/plan.h"

oomsight_status oos_plan_make(oos_arena *arena, const oos_setup *setup, const char *kv_layers_json,
                              oos_plan *ret_plan, oomsight_error *reterr)
{
    (void)arena, (void)kv_layers_json, (void)reterr;
    *ret_plan = (oos_plan){.setup = setup, .verdict = OOMSIGHT_VERDICT_UNKNOWN, .phase = OOS_PHASE_COUNT};
    return OOMSIGHT_OK;
}

/* Weights of one rank. */
#include "plan/weights.h"

oomsight_status oos_weights_of_stage(oos_arena *arena, const oos_setup *setup, uint64_t stage,
                                     oos_weights *ret_weights, oomsight_error *reterr)
{
    (void)arena, (void)setup, (void)stage, (void)reterr;
    *ret_weights = (oos_weights){0};
    return OOMSIGHT_OK;
}

/* The phases of a start in four stretches: until the weights are loaded, the profile run, the size of the cache, and after it. */
#pragma once
#include "engines/vllm/vllm.h"

oomsight_status oos_phases_load(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);
oomsight_status oos_phases_profile(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);
oomsight_status oos_phases_kv(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);
oomsight_status oos_phases_after_kv(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);

const oos_moment *oos_phases_deciding(const oos_plan *plan); /* NULL: none does */

/* Cause and mechanism of the phase that decided, in words. */
oomsight_status oos_phases_explain(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);

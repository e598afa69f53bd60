#pragma once
#include "engines/vllm/setup/setup.h"
#include "plan/plan.h"
#include <string.h>

/* What the engine refuses before it looks at a device's memory, in its own order and with its own sentences:
 * data/engines/vllm/refusals.json has the order, the sentences that are rows, and the names of the checks that are code here. */

/* The first refusal of the command, if there is one. */
oomsight_status oos_arguments_check(oos_arena *arena, const oos_setup *setup, oos_refusal *ret_refusal,
                                    oomsight_error *reterr);

extern const oos_refusal_names oos_vllm_refusal_names;

static inline const oos_setup *setup_of(const oos_check *c)
{
    return c->of;
}

#define FIELD(name, value)
#define WORD(name, value)
#define CHECK(name) bool oos_check_##name(oos_check *c);
#include "engines/vllm/arguments/terms.def"
#undef FIELD
#undef WORD
#undef CHECK

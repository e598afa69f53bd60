/* Memory outside PyTorch's allocator. */
#include "plan/outside.h"

oomsight_status oos_outside_of(oos_arena *arena, const oos_setup *setup, const oos_backend_choice *backend,
                               uint64_t kv_tokens, oos_outside *ret_outside, oomsight_error *reterr)
{
    (void)arena, (void)setup, (void)backend, (void)kv_tokens, (void)reterr;
    *ret_outside = (oos_outside){0};
    return OOMSIGHT_OK;
}

/* Memory outside PyTorch's allocator and outside the budget: context, NCCL, lazily loaded kernels, CUDA graphs. Fitted on
 * measured starts; each constant names its data and its error. */
#ifndef OOS_PLAN_OUTSIDE_H
#define OOS_PLAN_OUTSIDE_H

#include "ledger/ledger.h"
#include "engines/vllm/backend/backend.h"
#include "engines/vllm/setup/setup.h"

typedef struct oos_outside {
    oos_amount context; /* CUDA context of this process */
    oos_amount nccl;    /* communicators at init, custom all-reduce */
    oos_amount
        profile_growth; /* "non-torch forward increase": kernels and workspaces loaded by the profile run */
    oos_amount
        runtime_growth; /* serving: what the engine does not budget (attention masks, workspaces, fragmentation) */
    const char *runtime_cause; /* one sentence when runtime_growth is more than the usual, NULL otherwise */
} oos_outside;

oomsight_status oos_outside_of(oos_arena *arena, const oos_setup *setup, const oos_backend_choice *backend,
                               uint64_t kv_tokens, oos_outside *ret_outside, oomsight_error *reterr);

/* What serving adds, once the size of the cache is known: runtime_growth and its cause. */
void oos_outside_serving(const oos_setup *setup, const oos_backend_choice *backend, uint64_t kv_tokens,
                         oos_outside *outside);

#endif

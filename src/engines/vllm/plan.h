/* One start of vLLM: what a plan holds of this engine beside what every plan holds. */
#ifndef OOS_VLLM_PLAN_H
#define OOS_VLLM_PLAN_H

#include "engines/vllm/forward.h"
#include "engines/vllm/arguments/arguments.h"
#include "engines/vllm/graphs.h"
#include "engines/vllm/kv/kv.h"
#include "plan/plan.h"

typedef struct vllm_detail {
    const oos_setup *setup;
    oos_kv_shape kv_shape;
    oos_backend_choice backend;
    oos_activation activation;
    oos_outside outside;
    oos_graphs graphs;
    uint64_t strand_bytes; /* free segments stranded in the sleep-mode pool at the end of loading */
    uint64_t trial_blocks; /* blocks of the cache that graph profiling allocates, 0: it does not run */
} vllm_detail;

static inline vllm_detail *vllm_of(const oos_plan *plan)
{
    return plan->detail;
}

static inline const oos_setup *vllm_setup(const oos_plan *plan)
{
    return vllm_of(plan)->setup;
}

/* One start. Settings, parts and notes are told by oos_plan_tell(); fixes and inert flags are left empty: see engines/vllm/solve/solve.h. */
oomsight_status oos_plan_make(oos_arena *arena, const oos_setup *setup, const char *kv_layers_json,
                              oos_plan *ret_plan, oomsight_error *reterr);

/* The same start with the compile cache or the sampler of `setup`, in which nothing else may differ: what comes before the profile
 * run is taken over from `plan`. */
oomsight_status oos_plan_other_way(oos_arena *arena, const oos_plan *plan, const oos_setup *setup,
                                   oos_plan *ret_other, oomsight_error *reterr);

/* What reports show of it: settings, parts, layout of the cache, notes. */
oomsight_status oos_plan_tell(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);
#endif

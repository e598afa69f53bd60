#pragma once
#include "engines/engines.h"
#include "engines/vllm/arguments/arguments.h"
#include "engines/vllm/backend/backend.h"
#include "engines/vllm/kv/kv.h"
#include "engines/vllm/setup/setup.h"
#include "facts/facts.h"
#include "plan/plan.h"
#include "sizes/sizes.h"

/* Fitted constants of this engine, data/engines/vllm/constants.json. */

typedef enum vllm_constant {
#define CONSTANT(name) VLLM_##name,
#include "engines/vllm/constants.def"
#undef CONSTANT
    VLLM_CONSTANT_COUNT
} vllm_constant;
extern const oos_constants oos_vllm_constants;

/* Of this start. */
static inline oos_constant vllm_constant_of(const oos_setup *setup, vllm_constant id)
{
    oos_constant_where const where = {.capability = setup->device.capability,
                                      .torch_minor = setup->rules->torch_minor,
                                      .ranks = setup->tp,
                                      .version = setup->rules->version,
                                      .unified = setup->device.unified};
    return oos_constant_at(&oos_vllm_constants, id, &where);
}

static inline uint64_t vllm_end(const oos_setup *setup, vllm_constant id, oos_constant_end end)
{
    return oos_constant_end_of(vllm_constant_of(setup, id), end);
}

static inline uint64_t vllm_value(const oos_setup *setup, vllm_constant id)
{
    return vllm_constant_of(setup, id).value;
}

/* What a start of vLLM makes of a forward step: the profiling run of max_num_batched_tokens, and what is taken outside PyTorch's allocator. */

/* Whether the engine before V1 runs this start. */
bool oos_activation_first_engine(const oos_setup *setup);

/* Whether a compile cache decides the peak that may be warm or cold. */
bool oos_activation_compile_open(const oos_setup *setup);

/* Whether a package that may or may not be installed decides how the sampler works. */
bool oos_activation_sampler_open(const oos_setup *setup);

void oos_activation_of(const oos_setup *setup, const oos_backend_choice *backend, uint64_t stage,
                       oos_activation *ret_activation);

/* Of a start that differs from that of `before` in the compile cache or the sampler alone: the layers are the same. */
void oos_activation_other_way(const oos_activation *before, const oos_setup *setup,
                              const oos_backend_choice *backend, uint64_t stage,
                              oos_activation *ret_activation);

void oos_outside_of(const oos_setup *setup, const oos_backend_choice *backend, uint64_t kv_tokens,
                    oos_outside *ret_outside);

/* What serving adds where the size of the cache decides it: runtime_growth and its cause. */
void oos_outside_serving(const oos_setup *setup, const oos_backend_choice *backend, uint64_t kv_tokens,
                         oos_outside *outside);

/* The engine's one workspace for kernels that run one after another (v1/worker/workspace.py, from 0.13): as large as the
 * largest that asked, and kept. */
oos_workspace oos_workspace_of(const oos_setup *setup, const oos_backend_choice *backend);

/* What capturing CUDA graphs takes, what the engine estimates of it, and what it prints: taken less `not_printed`. */

/* `builders`: metadata builders of attention, one for each KV cache group; `forward_bytes`: the forward's own peak. */
void oos_graphs_of(const oos_setup *setup, const oos_backend_choice *backend, uint64_t builders,
                   uint64_t forward_bytes, oos_graphs *ret_graphs);

/* One start of vLLM: what a plan holds of this engine beside what every plan holds. */

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

/* What its doubts are found by: part of oos_plan_make(). */
void oos_vllm_doubtful_tell(oos_plan *plan);

/* What reports show of it: settings, parts, layout of the cache, notes. */
oomsight_status oos_plan_tell(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);

/* What no flag tells and a start depends on (a package that may be installed, a cache that may be warm), planned both ways. */

/* Fills plan->forks. A plan that fits only one of the ways no longer says that it fits. */
oomsight_status oos_forks_plan(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);

/* The sleep-mode pool while weights are loaded: memory that is free but can never be used again. */

/* Bytes stranded in the pool when the last layer of `stage` has been repacked; 0 when the pool, the split limit or the
 * repack that causes it is not there. */
uint64_t oos_pool_strand(const oos_setup *setup, uint64_t stage);

/* What the files of this engine share. */

extern const oos_dialect oos_vllm_dialect;
bool oos_vllm_entry_at(const char *const *words, size_t count, size_t i, oos_serve_entry *entry);
bool oos_vllm_variable_set(oos_arena *arena, oos_engine_env *env, oos_view name, const char *value);

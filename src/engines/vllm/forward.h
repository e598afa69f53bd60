/* What a start of vLLM makes of a forward step: the profiling run of max_num_batched_tokens, and what is taken outside PyTorch's allocator. */
#ifndef OOS_VLLM_FORWARD_H
#define OOS_VLLM_FORWARD_H

#include "engines/vllm/backend/backend.h"
#include "engines/vllm/setup/setup.h"
#include "sizes/forward.h"

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

/* What serving adds, once the size of the cache is known: runtime_growth and its cause. */
void oos_outside_serving(const oos_setup *setup, const oos_backend_choice *backend, uint64_t kv_tokens,
                         oos_outside *outside);

/* The engine's one workspace for kernels that run one after another (v1/worker/workspace.py, from 0.13): as large as the
 * largest that asked, and kept. */
oos_workspace oos_workspace_of(const oos_setup *setup, const oos_backend_choice *backend);

#endif

/* What capturing CUDA graphs takes, what the engine estimates of it, and what it prints: taken less `not_printed`. */
#ifndef OOS_PLAN_GRAPHS_H
#define OOS_PLAN_GRAPHS_H

#include "sizes/forward.h"
#include "engines/vllm/backend/backend.h"
#include "engines/vllm/setup/setup.h"

/* `builders`: metadata builders of attention, one for each KV cache group; `forward_bytes`: the forward's own peak. */
void oos_graphs_of(const oos_setup *setup, const oos_backend_choice *backend, uint64_t builders,
                   uint64_t forward_bytes, oos_graphs *ret_graphs);

#endif

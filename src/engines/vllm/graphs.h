/* What capturing CUDA graphs takes, what the engine estimates of it, and what it prints: taken less `not_printed`. */
#ifndef OOS_PLAN_GRAPHS_H
#define OOS_PLAN_GRAPHS_H

#include "ledger/ledger.h"
#include "engines/vllm/backend/backend.h"
#include "engines/vllm/setup/setup.h"

typedef struct oos_graphs {
    oos_amount taken;    /* pool and driver objects */
    oos_amount estimate; /* what graph profiling would measure; 0 bytes when it does not run */
    oos_amount
        not_printed; /* cached segments that go back inside the measured stretch; no help against OOM */
} oos_graphs;

/* `builders`: metadata builders of attention, one for each KV cache group; `forward_bytes`: the forward's own peak. */
void oos_graphs_of(const oos_setup *setup, const oos_backend_choice *backend, uint64_t builders,
                   uint64_t forward_bytes, oos_graphs *ret_graphs);

#endif

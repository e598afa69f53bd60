/* The peak of the profiling forward: what torch holds beyond the weights while a batch of max_num_batched_tokens goes
 * through the model, the sampler's logits, and the multimodal encoder. Mechanisms, with an error bar each. */
#ifndef OOS_PLAN_ACTIVATION_H
#define OOS_PLAN_ACTIVATION_H

#include "ledger/ledger.h"
#include "engines/vllm/backend/backend.h"
#include "engines/vllm/setup/setup.h"

/* Bytes above the weights in the layers of a stage. */
typedef struct oos_layer_peak {
    uint64_t moment; /* busiest instant of any layer, without what stays */
    uint64_t peak; /* the same in the order of the layers, with the expert workspace from when it is there */
    uint64_t workspace; /* the expert kernels' buffers, when they are kept from call to call */
    bool cublas; /* some product in the layers is not quantised, so that cuBLAS has its workspace by then */
} oos_layer_peak;

/* `forward`, `sampler` and `encoder` are moments on top of `retained`; `peak` has everything in it. */
typedef struct oos_activation {
    oos_amount forward;       /* largest moment inside a layer, with the residual stream */
    oos_amount sampler;       /* largest moment of the dummy sampler run, hidden states included */
    oos_amount warmup;        /* sampler of the warm-up after the cache is there (newer runner) */
    oos_amount encoder;       /* encoder's own peak while it runs */
    oos_amount encoder_cache; /* its outputs, alive during forward and sampler */
    oos_amount peak;          /* "torch peak memory increase": the largest of the moments */
    oos_amount
        retained; /* torch memory that stays after the run: MoE and attention workspaces, cuBLAS workspace */
    oos_amount persistent;  /* the runner's batch buffers, made before the weights are loaded */
    uint64_t compile_bytes; /* what a cold compile cache makes of the peak; 0: it is not larger */
    oos_layer_peak layers;  /* what the figures are made of */
} oos_activation;

/* Whether the engine before V1 runs this start. */
bool oos_activation_first_engine(const oos_setup *setup);

/* Whether a compile cache decides the peak that may be warm or cold. */
bool oos_activation_compile_open(const oos_setup *setup);

/* Whether a package that may or may not be installed decides how the sampler works. */
bool oos_activation_sampler_open(const oos_setup *setup);

/* Of a start that differs from that of `before` in the compile cache or the sampler alone: the layers are the same. */
void oos_activation_other_way(const oos_activation *before, const oos_setup *setup,
                              const oos_backend_choice *backend, uint64_t stage,
                              oos_activation *ret_activation);

oomsight_status oos_activation_of(oos_arena *arena, const oos_setup *setup, const oos_backend_choice *backend,
                                  uint64_t stage, oos_activation *ret_activation, oomsight_error *reterr);

#endif

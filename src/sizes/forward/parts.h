/* The moments of a step, a file each. A column is one value for every token of the step. */
#pragma once
#include "sizes/sizes.h"

#include <string.h>

/* How a model's code treats the residual stream between its matrix products when nothing is compiled. */
typedef struct oos_residual {
    uint64_t
        outer; /* hidden-wide tensors alive during every layer: residual, what the layer was given, ... */
    uint64_t copies;    /* what norms leave beside them when they do not work in place */
    bool drops_gate_up; /* the MLP forgets gate_up before its second product */
    bool head_norms;    /* queries and keys are normed into new tensors */
    bool gated;         /* attention's output is multiplied with a gate out of the query projection */
} oos_residual;

static inline uint64_t oos_forward_item(const oos_forward *step)
{
    return oos_max(1, oos_dtype_bytes(step->dtype));
}
static inline uint64_t oos_forward_column(const oos_forward *step)
{
    return oos_mul(step->tokens, oos_forward_item(step));
}
static inline uint64_t oos_per_rank(uint64_t columns, uint64_t ranks)
{
    return oos_cdiv(columns, oos_max(1, ranks));
}

uint64_t oos_forward_mixer(const oos_forward *step, const oos_attention *attention,
                           const oos_residual *stream);
void oos_forward_layers(const oos_forward *step, oos_layer_peak *ret_peak);
uint64_t oos_forward_experts(const oos_forward *step, bool *ret_kept);
uint64_t oos_forward_sampling(const oos_forward *step, uint64_t *ret_low);
uint64_t oos_forward_sampler_warmup(const oos_forward *step);
void oos_forward_encoder(const oos_forward *step, uint64_t *ret_run_bytes, uint64_t *ret_output_bytes,
                         uint64_t *ret_input_bytes);

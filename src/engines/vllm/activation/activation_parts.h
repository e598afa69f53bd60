/* What the files of the activation peak share: the batch as one rank sees it, and the moments they compute. */
#ifndef OOS_PLAN_ACTIVATION_PARTS_H
#define OOS_PLAN_ACTIVATION_PARTS_H

#include "engines/vllm/activation/activation.h"
#include "engines/vllm/workspace.h"

/* The profiling batch on one rank. A column is one value for every token of the batch. */
typedef struct oos_batch {
    const oos_setup *setup;
    uint64_t tokens;       /* max_num_batched_tokens */
    uint64_t requests;     /* min(max_num_seqs, tokens): rows of the dummy sampler */
    uint64_t item;         /* bytes of one activation */
    uint64_t column;       /* tokens * item */
    bool first_engine;     /* the engine before V1 */
    bool compiled;         /* by torch.compile: the code between attentions drops what it no longer needs */
    bool first, last;      /* pipeline stage with the embedding, with the logits */
    uint64_t layer, count; /* its decoder layers: [layer, layer + count) */
    oos_workspace shared;  /* what sparse attention asks of the shared workspace */
} oos_batch;

/* How a model's code treats the residual stream between its matrix products when nothing is compiled. */
typedef struct oos_residual {
    uint64_t
        outer; /* hidden-wide tensors alive during every layer: residual, what the layer was given, ... */
    uint64_t
        copies; /* what norms leave beside them when they do not work in place: new residual, normed input */
    bool drops_gate_up; /* the MLP forgets gate_up before its second product (`x, _ = gate_up_proj(x)`) */
    bool head_norms;    /* queries and keys are normed into new tensors */
    bool gated; /* attention's output is multiplied with a gate that comes out of the query projection */
} oos_residual;

uint64_t oos_activation_mixer(const oos_batch *batch, const oos_attention *attention,
                              const oos_residual *stream);
void oos_activation_layers(const oos_batch *batch, oos_layer_peak *ret_peak);

/* Expert layers: what the kernels allocate for one call, and whether the engine keeps it for the next. */
uint64_t oos_activation_experts(const oos_batch *batch, bool *ret_kept);

/* The dummy sampler run, without the hidden states, and how little it may be where the way of sampling is not known. */
uint64_t oos_activation_sampler(const oos_batch *batch, uint64_t *ret_low);

/* The sampler of the newer runner's warm-up, after the cache is there; 0: there is none. */
uint64_t oos_activation_sampler_warmup(const oos_batch *batch);

/* The buffer of Triton's top-k and top-p masking, kept for the next call. */
uint64_t oos_activation_topk_buffer(const oos_batch *batch);

/* What the runner allocates for good: input rows, penalties, bitmasks. */
uint64_t oos_activation_buffers(const oos_batch *batch);

/* PyTorch hands cuBLAS one workspace per handle and stream and keeps it. */
uint64_t oos_activation_cublas(const oos_setup *setup);

/* The encoder's dummy run; both are 0 without one. */
void oos_activation_encoder(const oos_batch *batch, uint64_t *ret_run_bytes, uint64_t *ret_output_bytes,
                            uint64_t *ret_input_bytes);

static inline uint64_t oos_per_rank(uint64_t columns, uint64_t ranks)
{
    return oos_cdiv(columns, oos_max(1, ranks));
}

#endif

/* What the files of the activation peak share: the batch as one rank sees it, and the moments they compute. */
#ifndef OOS_PLAN_ACTIVATION_PARTS_H
#define OOS_PLAN_ACTIVATION_PARTS_H

#include "plan/activation.h"

/* The profiling batch on one rank. */
typedef struct oos_batch {
    const oos_setup *setup;
    uint64_t tokens;       /* max_num_batched_tokens */
    uint64_t requests;     /* min(max_num_seqs, tokens): rows of the dummy sampler */
    uint64_t item;         /* bytes of one activation */
    uint64_t row_bytes;    /* tokens * item: bytes of one column */
    bool first, last;      /* pipeline stage with the embedding, with the logits */
    uint64_t layer, count; /* its decoder layers: [layer, layer + count) */
} oos_batch;

/* Bytes above the weights in the layers of a stage. */
typedef struct oos_layer_peak {
    uint64_t moment;    /* busiest instant, without what stays */
    uint64_t workspace; /* the expert kernels' buffers, when they are kept from call to call */
    bool cublas;        /* a plain matrix product has run by then */
} oos_layer_peak;

/* Column counts of the busiest instant, times row_bytes, over all kinds of layers in the stage. */
void oos_activation_layers(const oos_batch *batch, oos_layer_peak *ret_peak);

/* The dummy sampler run, without the hidden states. */
uint64_t oos_activation_sampler(const oos_batch *batch);

/* What the runner allocates for good: input rows, penalties, bitmasks. */
uint64_t oos_activation_buffers(const oos_batch *batch);

/* PyTorch hands cuBLAS one workspace per handle and stream and keeps it. */
uint64_t oos_activation_cublas(const oos_setup *setup);

/* The encoder's dummy run; both are 0 without one. */
void oos_activation_encoder(const oos_batch *batch, uint64_t *ret_run_bytes, uint64_t *ret_output_bytes);

#endif

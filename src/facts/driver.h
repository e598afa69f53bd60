/* What lies outside PyTorch's allocator and no allocation call shows: contexts, modules, communicators, CUDA graphs outside the pool. One
 * model, for plan and for the stand-in devices; what was measured on a device (data/gpus) goes before what was fitted. */
#ifndef OOS_FACTS_DRIVER_H
#define OOS_FACTS_DRIVER_H

#include "facts/constants.h"
#include "facts/gpu.h"

typedef struct oos_driver {
    bool nvlink; /* between all cards of a machine */
    uint64_t context_bytes, context_low, context_high;
    uint64_t kernel_bytes;                /* a kernel at its first launch */
    uint64_t kernels_bytes, kernels_high; /* all that a profile run loads */
    uint64_t collective_bytes; /* a process that joins others, with all that its first collectives take */
    uint64_t communicator_bytes, communicator_high; /* one of NCCL's, once it has reduced something */
    uint64_t communicators_high;    /* the most that was seen when ranks had found one another */
    oos_constant graph, graph_node; /* an instantiated CUDA graph, and a kernel in it */
} oos_driver;

/* `seen` is what is known of the device; `torch_minor` 0: the newest. */
oos_driver oos_driver_of(unsigned capability, const oos_driver_costs *seen, uint64_t torch_minor);

#endif

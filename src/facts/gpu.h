/* GPU models: what CUDA says of them. Read from data/gpus. */
#ifndef OOS_FACTS_GPU_H
#define OOS_FACTS_GPU_H

#include "base/arena.h"
#include "base/error.h"
#include "base/size.h"

typedef enum oos_memory_kind { OOS_MEMORY_GDDR, OOS_MEMORY_HBM, OOS_MEMORY_UNIFIED } oos_memory_kind;

/* What the driver takes for things that no allocation call shows, where `oomsight doctor --measure` has seen it on such a device. */
typedef struct oos_driver_costs {
    oos_flag nvlink;                       /* between all cards of a machine */
    oos_u64 context_bytes;                 /* typical size of one process's CUDA context */
    oos_u64 graph_bytes, graph_node_bytes; /* an instantiated graph, and each kernel in it */
    oos_u64 kernel_bytes;                  /* first launch of a kernel */
    oos_u64 collective_bytes;              /* a communicator of two ranks */
} oos_driver_costs;

typedef enum oos_gpu_class {
    OOS_GPU_DATACENTRE,
    OOS_GPU_CONSUMER,
    OOS_GPU_WORKSTATION,
    OOS_GPU_LAPTOP,
    OOS_GPU_EMBEDDED
} oos_gpu_class;

typedef struct oos_gpu {
    const char *name; /* as CUDA prints it */
    const char *const *aliases;
    size_t alias_count;
    uint64_t total_bytes, total_low, total_high; /* as cudaMemGetInfo reports it, over drivers */
    bool total_measured;                         /* a device of this model printed it */
    uint64_t nvml_total_bytes;                   /* as NVML reports it: the whole card, also for a slice */
    unsigned capability;                         /* compute capability as 10 * major + minor: 90, 120 */
    unsigned sms;
    oos_memory_kind memory;
    oos_gpu_class kind;
    oos_driver_costs costs;
    const char *slice; /* MIG profile name, NULL for the whole device */
} oos_gpu;

/* A spelling without spaces and dashes, in lower case, and whose it is. */
typedef struct oos_gpu_name {
    const char *plain;
    const oos_gpu *gpu;
} oos_gpu_name;

typedef struct oos_gpus {
    const oos_gpu *list;
    size_t count;
    const oos_gpu_name *names; /* sorted */
    size_t name_count;
} oos_gpus;

oomsight_status oos_gpus_load(oos_arena *arena, const char *data_dir, oos_gpus *ret_gpus,
                              oomsight_error *reterr);

/* By name or alias, case, spaces and dashes do not matter; or by the size on the box, "24GB": the card of that size that shows the least.
 * `word` may carry a count: "A30x4", "4xA30". */
const oos_gpu *oos_gpus_find(const oos_gpus *gpus, oos_view word, uint64_t *ret_count);

/* Is it a size and no name? */
bool oos_gpus_is_size(oos_view word);

/* "9.0", or "90": 90. */
bool oos_capability_parse(const char *text, unsigned *ret_capability);

/* Up to `most` names that resemble a word we do not know. */
size_t oos_gpus_suggest(const oos_gpus *gpus, oos_view word, const char **ret_names, size_t most);

#endif

/* The device every rank sees, as its table or the caller describes it. */
#ifndef OOS_SIZES_DEVICE_H
#define OOS_SIZES_DEVICE_H

#include "facts/driver.h"
#include "facts/gpu.h"

typedef struct oos_device_facts {
    const char *name;
    unsigned capability;                         /* 90 */
    unsigned sms;                                /* 0: unknown */
    uint64_t total_bytes, total_low, total_high; /* what cudaMemGetInfo shows */
    uint64_t nvml_total_bytes;                   /* what NVML shows: the whole card under a slice */
    uint64_t used_bytes;                         /* held by others */
    bool used_known;                             /* it was said, if only as 0 */
    oos_driver_costs costs;
    uint64_t count;
    uint64_t host_bytes; /* RAM of the machine, 0: not told */
    bool count_given;    /* "h100x1": these and no more; a name alone is as many as the command needs */
    bool unified;
} oos_device_facts;

/* `count` devices of a model that is known, empty. `gpu` NULL: nothing is known but what the caller fills in. */
oos_device_facts oos_device_of_gpu(const oos_gpu *gpu, uint64_t count, uint64_t host_bytes);

/* What lies outside PyTorch on it. */
oos_driver oos_device_driver(const oos_device_facts *device, uint64_t torch_minor);

#endif

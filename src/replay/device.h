/* The device below the allocator: how many bytes it has, who else holds some, and where it puts what it gives.
 * cudaMalloc gives whole 2 MiB pages; cuMemCreate gives what is asked. */
#ifndef OOS_REPLAY_DEVICE_H
#define OOS_REPLAY_DEVICE_H

#include "trace/trace.h"

typedef struct oos_span {
    uint64_t address, bytes;
} oos_span;

typedef struct oos_device {
    uint64_t total_bytes, base_bytes, used_bytes;
    oos_placement placement;
    uint64_t next_address, next_range;
    const oos_given *given, *given_ranges; /* segments and expandable ranges, in order; not owned */
    size_t given_count, given_at, given_range_count, given_range_at;
    oos_span *spans; /* first fit only: what is taken, by address */
    size_t span_count, span_capacity;
} oos_device;

void oos_device_init(oos_device *device, uint64_t total_bytes, uint64_t base_bytes, oos_placement placement);
void oos_device_release(oos_device *device);

uint64_t oos_device_free_bytes(const oos_device *device);

/* cudaMalloc, cudaFree. A free with `lost` unmaps the address and never gives the bytes back. */
bool oos_device_take(oos_device *device, uint64_t bytes, uint64_t *ret_address);
void oos_device_give(oos_device *device, uint64_t address, uint64_t bytes, bool lost);

/* cuMemAddressReserve, cuMemCreate, cuMemRelease. */
uint64_t oos_device_reserve(oos_device *device, uint64_t bytes);
bool oos_device_create(oos_device *device, uint64_t bytes);
void oos_device_destroy(oos_device *device, uint64_t bytes);

#endif

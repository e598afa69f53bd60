/* A device as its table describes it. */
#include "plan/setup/setup.h"

enum { CAPABILITY_ASSUMED = 80 };

/* A context costs what its GPU's table says; without one, what cards of today show. */
static void context_of(const oos_gpu *gpu, oos_device_facts *device)
{
    uint64_t const typical = gpu && gpu->context_bytes.known ? gpu->context_bytes.value : 450 * OOS_MIB;
    device->context_bytes = typical;
    device->context_low = typical - typical / 4;
    device->context_high = typical + typical / 3;
}

oos_device_facts oos_device_of_gpu(const oos_gpu *gpu, uint64_t count, uint64_t host_bytes)
{
    oos_device_facts device = {.count = count, .host_bytes = host_bytes, .capability = CAPABILITY_ASSUMED};
    context_of(gpu, &device);
    if (!gpu) return device;
    device.name = gpu->name;
    device.capability = gpu->capability;
    device.sms = gpu->sms;
    device.unified = gpu->memory == OOS_MEMORY_UNIFIED;
    device.total_bytes = gpu->total_bytes;
    device.total_low = gpu->total_low;
    device.total_high = gpu->total_high;
    device.nvml_total_bytes = gpu->nvml_total_bytes;
    device.costs = gpu->costs;
    return device;
}

/* A device as its table describes it. */
#include "sizes/sizes.h"

enum { CAPABILITY_ASSUMED = 80 };

oos_device_facts oos_device_of_gpu(const oos_gpu *gpu, uint64_t count, uint64_t host_bytes)
{
    oos_device_facts device = {.count = count, .host_bytes = host_bytes, .capability = CAPABILITY_ASSUMED};
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

oos_drift oos_device_drift(const oos_device_facts *device, unsigned beyond)
{
    uint64_t const more = oos_mul(device->total_bytes / 64, oos_min(beyond, 8));
    return (oos_drift){more, more / 2};
}

oos_driver oos_device_driver(const oos_device_facts *device, uint64_t torch_minor)
{
    return oos_driver_of(device->capability, &device->costs, torch_minor);
}

/* NVML shows the whole card. Engines compare it with what CUDA says, so it has to agree with the budget. */
#include "base/nvml.h"
#include "guard/guard.h"

#include <string.h>

static int device_of(void *handle)
{
    oos_nvml_pci_info info;
    int (*pci)(void *, oos_nvml_pci_info *);
    void *at = oos_guard_find(OOS_GUARD_NVML, "nvmlDeviceGetPciInfo_v3");
    memset(&info, 0, sizeof info);
    memcpy(&pci, &at, sizeof pci);
    if (!pci || pci(handle, &info) != 0) return -1;
    info.bus_id[sizeof info.bus_id - 1] = '\0';
    return oos_guard_device_at(info.bus_id);
}

static void within(void *handle, unsigned long long *total, unsigned long long *free_bytes,
                   unsigned long long *used)
{
    int const device = device_of(handle);
    uint64_t shown_total = *total, shown_free = *free_bytes;
    if (device < 0) return;
    oos_guard_view_nvml(device, &shown_free, &shown_total);
    if (shown_total == *total) return;
    *total = shown_total;
    *free_bytes = shown_free;
    *used = shown_total - shown_free;
}

OOS_GUARD_CALL int nvmlDeviceGetMemoryInfo(void *handle, oos_nvml_memory *ret_memory);
OOS_GUARD_CALL int nvmlDeviceGetMemoryInfo(void *handle, oos_nvml_memory *ret_memory)
{
    bool const first = oos_guard_enter();
    int const code = NEXT(nvmlDeviceGetMemoryInfo)(handle, ret_memory);
    if (first && code == 0) within(handle, &ret_memory->total, &ret_memory->free, &ret_memory->used);
    if (first) oos_guard_leave();
    return code;
}

OOS_GUARD_CALL int nvmlDeviceGetMemoryInfo_v2(void *handle, oos_nvml_memory_v2 *ret_memory);
OOS_GUARD_CALL int nvmlDeviceGetMemoryInfo_v2(void *handle, oos_nvml_memory_v2 *ret_memory)
{
    bool const first = oos_guard_enter();
    int const code = NEXT(nvmlDeviceGetMemoryInfo_v2)(handle, ret_memory);
    if (first && code == 0) within(handle, &ret_memory->total, &ret_memory->free, &ret_memory->used);
    if (first) oos_guard_leave();
    return code;
}

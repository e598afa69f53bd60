/* NVML as pynvml, torch and vLLM use it: all devices of the run, whatever CUDA_VISIBLE_DEVICES says. */
#include "base/nvml.h"
#include "phantom/phantom.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    NVML_OK = 0,
    NVML_BAD_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_TOO_SMALL = 7,
    NVML_NO_DRIVER = 9
};

static char handles[OOS_SEGMENT_DEVICES];

static unsigned index_of(const void *handle)
{
    uintptr_t const offset = (uintptr_t)handle - (uintptr_t)handles;
    return offset < OOS_SEGMENT_DEVICES ? (unsigned)offset : 0;
}

static const oos_device_spec *spec_of(const void *handle)
{
    static const oos_device_spec nothing;
    return oos_run() ? &oos_run()->devices[index_of(handle)].spec : &nothing;
}

TAKE(int, nvmlInit, void)
{
    return oos_run() ? NVML_OK : NVML_NO_DRIVER;
}

TAKE(int, nvmlInit_v2, void)
{
    return oos_run() ? NVML_OK : NVML_NO_DRIVER;
}

TAKE(int, nvmlInitWithFlags, unsigned flags)
{
    return oos_run() ? NVML_OK : NVML_NO_DRIVER;
}

TAKE(int, nvmlShutdown, void)
{
    return NVML_OK;
}

TAKE(const char *, nvmlErrorString, int code)
{
    switch (code) {
    case NVML_OK: return "Success";
    case NVML_BAD_ARGUMENT: return "Invalid Argument";
    case NVML_NOT_SUPPORTED: return "Not Supported";
    case NVML_NOT_FOUND: return "Not Found";
    case NVML_TOO_SMALL: return "Insufficient Size";
    case NVML_NO_DRIVER: return "Driver Not Loaded";
    default: return "Unknown Error";
    }
}

TAKE(int, nvmlSystemGetDriverVersion, char *ret_text, unsigned capacity)
{
    snprintf(ret_text, capacity, OOS_CUDA_MAJOR == 12 ? "570.133.20" : "580.65.06");
    return NVML_OK;
}

TAKE(int, nvmlSystemGetNVMLVersion, char *ret_text, unsigned capacity)
{
    snprintf(ret_text, capacity, OOS_CUDA_MAJOR == 12 ? "12.570.133.20" : "13.580.65.06");
    return NVML_OK;
}

TAKE(int, nvmlSystemGetCudaDriverVersion, int *ret_version)
{
    *ret_version = OOS_CUDA_VERSION;
    return NVML_OK;
}

TAKE(int, nvmlSystemGetCudaDriverVersion_v2, int *ret_version)
{
    *ret_version = OOS_CUDA_VERSION;
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetCount, unsigned *ret_count)
{
    *ret_count = oos_run() ? oos_run()->device_count : 0;
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetCount_v2, unsigned *ret_count)
{
    return take_nvmlDeviceGetCount(ret_count);
}

TAKE(int, nvmlDeviceGetHandleByIndex, unsigned index, void **ret_handle)
{
    if (!oos_run() || index >= oos_run()->device_count) return NVML_BAD_ARGUMENT;
    *ret_handle = &handles[index];
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetHandleByIndex_v2, unsigned index, void **ret_handle)
{
    return take_nvmlDeviceGetHandleByIndex(index, ret_handle);
}

TAKE(int, nvmlDeviceGetHandleByPciBusId_v2, const char *text, void **ret_handle)
{
    const char *bus = strchr(text, ':');
    return take_nvmlDeviceGetHandleByIndex(bus ? (unsigned)strtoul(bus + 1, NULL, 16) - 1 : 0, ret_handle);
}

/* The UUIDs we print end in the index. */
TAKE(int, nvmlDeviceGetHandleByUUID, const char *text, void **ret_handle)
{
    size_t const len = strlen(text);
    if (len < 2) return NVML_BAD_ARGUMENT;
    return take_nvmlDeviceGetHandleByIndex((unsigned)strtoul(text + len - 2, NULL, 16), ret_handle);
}

TAKE(int, nvmlDeviceGetUUID, void *handle, char *ret_text, unsigned capacity)
{
    snprintf(ret_text, capacity, "GPU-50505050-5050-5050-5050-5050505050%02x", index_of(handle));
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetName, void *handle, char *ret_text, unsigned capacity)
{
    snprintf(ret_text, capacity, "%s", spec_of(handle)->name);
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetIndex, void *handle, unsigned *ret_index)
{
    *ret_index = index_of(handle);
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetMinorNumber, void *handle, unsigned *ret_index)
{
    *ret_index = index_of(handle);
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetCudaComputeCapability, void *handle, int *ret_major, int *ret_minor)
{
    *ret_major = (int)spec_of(handle)->capability / 10;
    *ret_minor = (int)spec_of(handle)->capability % 10;
    return NVML_OK;
}

/* NVML counts what the driver keeps for itself as used. */
static void memory_of(void *handle, unsigned long long *ret_total, unsigned long long *ret_free)
{
    uint64_t free_bytes, total_bytes;
    oos_device_free_bytes(index_of(handle), &free_bytes, &total_bytes);
    *ret_free = free_bytes;
    *ret_total = spec_of(handle)->nvml_bytes > total_bytes ? spec_of(handle)->nvml_bytes : total_bytes;
}

TAKE(int, nvmlDeviceGetMemoryInfo, void *handle, oos_nvml_memory *ret_memory)
{
    memory_of(handle, &ret_memory->total, &ret_memory->free);
    ret_memory->used = ret_memory->total - ret_memory->free;
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetMemoryInfo_v2, void *handle, oos_nvml_memory_v2 *ret_memory)
{
    uint64_t const visible = spec_of(handle)->total_bytes;
    memory_of(handle, &ret_memory->total, &ret_memory->free);
    ret_memory->reserved = ret_memory->total > visible ? ret_memory->total - visible : 0;
    ret_memory->used = ret_memory->total - ret_memory->free - ret_memory->reserved;
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetPciInfo_v3, void *handle, oos_nvml_pci_info *ret_info)
{
    unsigned const bus = 1 + index_of(handle);
    *ret_info = (oos_nvml_pci_info){.bus = bus, .device_id = 0x223610de};
    snprintf(ret_info->short_bus_id, sizeof ret_info->short_bus_id, "0000:%02X:00.0", bus);
    snprintf(ret_info->bus_id, sizeof ret_info->bus_id, "00000000:%02X:00.0", bus);
    return NVML_OK;
}

/* index 2 asks for NVLink: vLLM's custom all-reduce wants it for more than two ranks. */
TAKE(int, nvmlDeviceGetP2PStatus, void *a, void *b, int capability, int *ret_status)
{
    *ret_status = capability == 2 && !spec_of(a)->nvlink ? 5 : 0; /* 5: not supported */
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetTopologyCommonAncestor, void *a, void *b, int *ret_level)
{
    *ret_level = 20; /* one PCIe host bridge */
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetComputeMode, void *handle, int *ret_mode)
{
    *ret_mode = 0;
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetMemoryAffinity, void *handle, unsigned count, unsigned long *ret_nodes, int scope)
{
    memset(ret_nodes, 0, count * sizeof *ret_nodes);
    if (count) ret_nodes[0] = 1;
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetCpuAffinity, void *handle, unsigned count, unsigned long *ret_cpus)
{
    memset(ret_cpus, 0, count * sizeof *ret_cpus);
    if (count) ret_cpus[0] = ~0ul;
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetUtilizationRates, void *handle, unsigned *ret_rates)
{
    ret_rates[0] = ret_rates[1] = 0;
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetArchitecture, void *handle, unsigned *ret_architecture)
{
    unsigned const c = spec_of(handle)->capability;
    *ret_architecture = c >= 100 ? 10 : c >= 90 ? 9 : c == 89 ? 8 : c >= 80 ? 7 : c >= 75 ? 6 : 5;
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetNumGpuCores, void *handle, unsigned *ret_cores)
{
    *ret_cores = spec_of(handle)->sms * 128;
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetMultiGpuBoard, void *handle, unsigned *ret_board)
{
    *ret_board = 0;
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetPersistenceMode, void *handle, int *ret_mode)
{
    *ret_mode = 1;
    return NVML_OK;
}

/* Success with state 0, "not supported": torch's expandable segments raise when the call itself fails. */
TAKE(int, nvmlDeviceGetGpuFabricInfoV, void *handle, char *info)
{
    memset(info + 4, 0, 28);
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetGpuFabricInfo, void *handle, char *ret_info)
{
    memset(ret_info, 0, 28);
    return NVML_OK;
}

/* Without the own pid in this list torch leaves "this process has ..." out of its out-of-memory text. */
static int processes(void *handle, unsigned *count, char *ret_list, size_t entry_bytes)
{
    uint32_t pids[OOS_SEGMENT_PROCESSES];
    uint64_t bytes[OOS_SEGMENT_PROCESSES];
    unsigned const found = oos_device_processes(index_of(handle), pids, bytes, OOS_SEGMENT_PROCESSES);
    unsigned const room = *count;
    *count = found;
    if (found > room) return NVML_TOO_SMALL;
    for (unsigned i = 0; i < found && ret_list; i++) {
        char *entry = ret_list + i * entry_bytes;
        memset(entry, 0xff, entry_bytes); /* instance ids: not available */
        memcpy(entry, &pids[i], sizeof pids[i]);
        memcpy(entry + 8, &bytes[i], sizeof bytes[i]);
    }
    return NVML_OK;
}

TAKE(int, nvmlDeviceGetComputeRunningProcesses, void *handle, unsigned *count, char *ret_list)
{
    return processes(handle, count, ret_list, 16);
}

TAKE(int, nvmlDeviceGetComputeRunningProcesses_v2, void *handle, unsigned *count, char *ret_list)
{
    return processes(handle, count, ret_list, 24);
}

TAKE(int, nvmlDeviceGetComputeRunningProcesses_v3, void *handle, unsigned *count, char *ret_list)
{
    return processes(handle, count, ret_list, 24);
}

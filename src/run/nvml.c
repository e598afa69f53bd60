/* NVML by dlopen: it comes with the driver and is nowhere else. */
#include "run/run.h"

#include <dlfcn.h>
#include <string.h>

typedef struct memory {
    unsigned long long total, free, used;
} memory;
typedef struct pci_info {
    char short_bus_id[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci_info;
typedef struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *);
    int (*handle)(unsigned, void **);
    int (*memory)(void *, memory *);
    int (*pci)(void *, pci_info *);
} nvml;

static bool load(void *library, nvml *ret_nvml)
{
    static const char *const names[] = {"nvmlInit_v2",
                                        "nvmlShutdown",
                                        "nvmlDeviceGetCount_v2",
                                        "nvmlDeviceGetHandleByIndex_v2",
                                        "nvmlDeviceGetMemoryInfo",
                                        "nvmlDeviceGetPciInfo_v3"};
    void *found[sizeof names / sizeof *names];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(found[i] = dlsym(library, names[i]))) return false;
    _Static_assert(sizeof found == sizeof *ret_nvml, "a pointer for each name");
    memcpy(ret_nvml, found, sizeof found);
    return true;
}

unsigned oos_run_devices_before(oos_device_spec *ret_specs, unsigned most)
{
    nvml n;
    unsigned count = 0, filled = 0;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    if (!load(library, &n) || n.init() != 0) {
        dlclose(library);
        return 0;
    }
    if (n.count(&count) != 0) count = 0;
    for (unsigned i = 0; i < count && filled < most; i++) {
        void *handle;
        memory m;
        pci_info pci = {.bus_id = ""};
        if (n.handle(i, &handle) != 0 || n.memory(handle, &m) != 0 || n.pci(handle, &pci) != 0) continue;
        pci.bus_id[sizeof pci.bus_id - 1] = '\0';
        ret_specs[filled] = (oos_device_spec){
            .total_bytes = 1, .nvml_bytes = m.total, .before_bytes = m.used, .before_known = 1};
        memcpy(ret_specs[filled++].name, pci.bus_id, sizeof pci.bus_id);
    }
    n.shutdown();
    dlclose(library);
    return filled;
}

/* NVML by dlopen: it comes with the driver and is nowhere else. */
#include "machine/machine.h"
#include "base/ascii.h"
#include "base/check.h"
#include "base/nvml.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEMORY_V2 = sizeof(oos_nvml_memory_v2) | 2 << 24 };
typedef struct process_info {
    unsigned pid;
    unsigned long long bytes; /* all ones: not available */
    unsigned gpu_instance, compute_instance;
} process_info;

/* The calls that every driver of the last ten years has, then those that may be missing. */
typedef struct calls {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *);
    int (*handle)(unsigned, void **);
    int (*memory)(void *, oos_nvml_memory *);
    int (*pci)(void *, oos_nvml_pci_info *);
    int (*name)(void *, char *, unsigned);
    int (*uuid)(void *, char *, unsigned);
    const char *(*error)(int);
    int (*driver)(char *, unsigned);
    int (*cuda)(int *);
    int (*memory_v2)(void *, oos_nvml_memory_v2 *);
    int (*capability)(void *, int *, int *);
    int (*computing)(void *, unsigned *, process_info *);
    int (*drawing)(void *, unsigned *, process_info *);
    int (*mig_mode)(void *, unsigned *, unsigned *);
    int (*mig_count)(void *, unsigned *);
    int (*mig_handle)(void *, unsigned, void **);
} calls;

static bool load(void *library, calls *ret_calls)
{
    static const char *const names[] = {"nvmlInit_v2",
                                        "nvmlShutdown",
                                        "nvmlDeviceGetCount_v2",
                                        "nvmlDeviceGetHandleByIndex_v2",
                                        "nvmlDeviceGetMemoryInfo",
                                        "nvmlDeviceGetPciInfo_v3",
                                        "nvmlDeviceGetName",
                                        "nvmlDeviceGetUUID",
                                        "nvmlErrorString",
                                        "nvmlSystemGetDriverVersion",
                                        "nvmlSystemGetCudaDriverVersion_v2",
                                        "nvmlDeviceGetMemoryInfo_v2",
                                        "nvmlDeviceGetCudaComputeCapability",
                                        "nvmlDeviceGetComputeRunningProcesses_v3",
                                        "nvmlDeviceGetGraphicsRunningProcesses_v3",
                                        "nvmlDeviceGetMigMode",
                                        "nvmlDeviceGetMaxMigDeviceCount",
                                        "nvmlDeviceGetMigDeviceHandleByIndex"};
    enum { NEEDED = 9 };
    void *found[sizeof names / sizeof *names];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(found[i] = dlsym(library, names[i])) && i < NEEDED) return false;
    _Static_assert(sizeof found == sizeof *ret_calls, "a pointer for each name");
    memcpy(ret_calls, found, sizeof found);
    return true;
}

/* A program's name as the kernel keeps it. */
static void program_of(uint32_t pid, char *ret_name, size_t capacity)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t const len = fd < 0 ? -1 : read(fd, ret_name, capacity - 1);
    if (fd >= 0) close(fd);
    ret_name[len > 0 ? len : 0] = '\0';
    ret_name[strcspn(ret_name, "\n")] = '\0';
}

static void holders_read(int (*ask)(void *, unsigned *, process_info *), void *handle, oos_machine_device *d)
{
    process_info list[64];
    unsigned count = sizeof list / sizeof *list;
    if (!ask || ask(handle, &count, list) != 0) return;
    for (unsigned i = 0; i < count && i < sizeof list / sizeof *list; i++) {
        bool seen = list[i].pid == 0;
        for (unsigned k = 0; k < d->holder_count; k++) seen |= d->holders[k].pid == list[i].pid;
        if (seen) continue;
        if (d->holder_count == OOS_MACHINE_HOLDERS) {
            d->holders_more++;
            continue;
        }
        oos_holder *holder = &d->holders[d->holder_count++];
        *holder = (oos_holder){.pid = list[i].pid, .bytes = {list[i].bytes != ~0ull, list[i].bytes}};
        program_of(holder->pid, holder->name, sizeof holder->name);
    }
}

static void device_read(const calls *n, void *handle, oos_machine_device *d)
{
    oos_nvml_memory m;
    oos_nvml_memory_v2 split = {.version = MEMORY_V2};
    oos_nvml_pci_info pci = {.bus_id = ""};
    int major = 0, minor = 0;
    if (n->name(handle, d->name, sizeof d->name - 1) != 0) d->name[0] = '\0';
    if (n->uuid(handle, d->uuid, sizeof d->uuid - 1) != 0) d->uuid[0] = '\0';
    if (n->memory(handle, &m) == 0) d->memory_known = true, d->total_bytes = m.total, d->used_bytes = m.used;
    if (d->memory_known && n->memory_v2 && n->memory_v2(handle, &split) == 0)
        d->reserved_known = true, d->reserved_bytes = split.reserved;
    if (n->pci(handle, &pci) == 0) memcpy(d->bus_id, pci.bus_id, sizeof d->bus_id - 1);
    if (n->capability && n->capability(handle, &major, &minor) == 0 && major > 0 && major < 100 && minor < 10)
        d->capability = (unsigned)(major * 10 + minor);
    holders_read(n->computing, handle, d);
    holders_read(n->drawing, handle, d);
}

/* The slices of a device that is split by MIG. */
static void slices_read(const calls *n, void *whole, oos_nvml *nvml)
{
    oos_machine_device *parent = &nvml->devices[nvml->device_count - 1];
    oos_assert(nvml->device_count > 0);
    unsigned mode = 0, pending = 0, most = 0;
    if (!n->mig_mode || !n->mig_count || !n->mig_handle || n->mig_mode(whole, &mode, &pending) != 0 ||
        !mode || n->mig_count(whole, &most) != 0)
        return;
    parent->is_split = true;
    for (unsigned i = 0; i < most && nvml->device_count < OOS_MACHINE_DEVICES; i++) {
        void *handle;
        if (n->mig_handle(whole, i, &handle) != 0) continue;
        oos_machine_device *d = &nvml->devices[nvml->device_count++];
        *d = (oos_machine_device){.is_slice = true, .index = parent->index};
        device_read(n, handle, d);
        if (!d->capability) d->capability = parent->capability;
        memcpy(d->bus_id, parent->bus_id, sizeof d->bus_id);
    }
}

/* One word of CUDA_VISIBLE_DEVICES: a number, or the beginning of a UUID. */
static bool names_device(const char *word, size_t len, const oos_machine_device *d)
{
    bool digits = len > 0;
    for (size_t i = 0; i < len; i++) digits &= oos_is_digit(word[i]) != 0;
    if (digits) return !d->is_slice && strtoul(word, NULL, 10) == d->index;
    return len > 4 && strncmp(d->uuid, word, len) == 0;
}

/* What a program sees, and in which order; CUDA stops at the first word that is no device. */
static void visible_mark(oos_nvml *nvml, const char *words)
{
    unsigned place = 0;
    for (unsigned i = 0; !words && i < nvml->device_count; i++)
        if (!nvml->devices[i].is_split) nvml->devices[i].visible = ++place;
    for (bool found = true; words && *words && found;) {
        size_t const len = strcspn(words, ",");
        found = false;
        for (unsigned i = 0; i < nvml->device_count && !found; i++) {
            oos_machine_device *d = &nvml->devices[i];
            if (!names_device(words, len, d)) continue;
            found = true;
            if (d->is_split && i + 1 < nvml->device_count) d++; /* CUDA takes its first slice */
            if (!d->visible) d->visible = ++place;
        }
        words += len + (words[len] == ',');
    }
}

static void ask(const calls *n, oos_nvml *nvml)
{
    unsigned count = 0;
    int cuda = 0;
    if (n->driver && n->driver(nvml->driver, sizeof nvml->driver - 1) != 0) nvml->driver[0] = '\0';
    if (n->cuda && n->cuda(&cuda) == 0 && cuda > 0) nvml->cuda = (unsigned)cuda;
    if (n->count(&count) != 0) count = 0;
    for (unsigned i = 0; i < count && nvml->device_count < OOS_MACHINE_DEVICES; i++) {
        void *handle;
        if (n->handle(i, &handle) != 0) continue;
        oos_machine_device *d = &nvml->devices[nvml->device_count++];
        *d = (oos_machine_device){.index = i};
        device_read(n, handle, d);
        slices_read(n, handle, nvml);
    }
    visible_mark(nvml, getenv("CUDA_VISIBLE_DEVICES"));
}

void oos_nvml_ask(oos_nvml *ret_nvml)
{
    calls n;
    *ret_nvml = (oos_nvml){.state = OOS_DRIVER_NONE};
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    ret_nvml->state = OOS_DRIVER_SILENT; /* unless it comes back */
    if (!load(library, &n)) {
        ret_nvml->state = OOS_DRIVER_FAILED;
        snprintf(ret_nvml->error, sizeof ret_nvml->error, "an NVML without the calls that are needed");
        dlclose(library);
        return;
    }
    int const code = n.init();
    if (code == 0) {
        ask(&n, ret_nvml);
        ret_nvml->state = OOS_DRIVER_OK;
        n.shutdown();
    } else {
        snprintf(ret_nvml->error, sizeof ret_nvml->error, "%s", n.error(code));
        ret_nvml->state = OOS_DRIVER_FAILED;
    }
    dlclose(library);
}

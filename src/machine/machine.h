/* The machine we run on: its driver and devices, its memory, the engine that is installed here. Files and NVML are read; no code of
 * others runs but NVML's own. Everything is plain bytes, so that a process of its own can fill it and be given up when it hangs. */
#ifndef OOS_MACHINE_MACHINE_H
#define OOS_MACHINE_MACHINE_H

#include "base/size.h"

enum {
    OOS_MACHINE_DEVICES = 64,
    OOS_MACHINE_HOLDERS = 8,
    OOS_MACHINE_PACKAGES = 16,
    OOS_MACHINE_CACHES = 8,
    OOS_MACHINE_PATH = 512
};

/* Who holds memory of a device. */
typedef struct oos_holder {
    uint32_t pid;
    oos_u64 bytes;
    char name[32]; /* of its program; empty: it is in another container, or gone */
} oos_holder;

typedef struct oos_machine_device {
    char name[96], bus_id[32], uuid[96];
    bool memory_known; /* false: NVML does not say, as where memory is unified */
    uint64_t total_bytes, used_bytes, reserved_bytes; /* used: reserved is part of it */
    bool reserved_known;
    unsigned capability; /* 89; 0: not told */
    bool is_split;       /* the slices behind it are what programs see */
    bool is_slice;       /* of the whole device before it */
    unsigned visible;    /* place in CUDA_VISIBLE_DEVICES from 1; 0: hidden by it */
    unsigned index;      /* as nvidia-smi counts, of the whole device */
    oos_holder holders[OOS_MACHINE_HOLDERS];
    unsigned holder_count, holders_more; /* more: not listed */
} oos_machine_device;

typedef enum oos_driver_state {
    OOS_DRIVER_NONE,   /* no NVML here */
    OOS_DRIVER_SILENT, /* asked, did not answer in time */
    OOS_DRIVER_FAILED, /* NVML is here and says no */
    OOS_DRIVER_OK
} oos_driver_state;

/* What NVML says. */
typedef struct oos_nvml {
    oos_driver_state state;
    char error[96], driver[80];
    unsigned cuda; /* 13000: the newest CUDA that the driver knows; 0: not told */
    oos_machine_device devices[OOS_MACHINE_DEVICES];
    unsigned device_count;
} oos_nvml;

/* In this process; nothing of NVML stays loaded. CUDA_VISIBLE_DEVICES is looked at. */
void oos_nvml_ask(oos_nvml *ret_nvml);

typedef struct oos_host {
    oos_u64 total_bytes, available_bytes;    /* RAM */
    oos_u64 limit_bytes, limited_used_bytes; /* of the control group, the tightest of its parents */
    oos_u64 shm_total_bytes, shm_free_bytes; /* /dev/shm */
} oos_host;

/* `root` stands before /proc and /sys; "" for this machine. /dev/shm is asked only then. */
void oos_host_read(const char *root, oos_host *ret_host);

typedef struct oos_package {
    char name[32], version[48];
} oos_package;

/* Python packages, known by the folders that pip leaves beside them. */
typedef struct oos_installed {
    char folder[OOS_MACHINE_PATH]; /* site-packages; empty: none was found */
    oos_package packages[OOS_MACHINE_PACKAGES];
    unsigned package_count;
} oos_installed;

/* Where `program` (may be NULL) and then `vllm`, `python3` and `python` of `path` (as in PATH) would find their packages, then beside
 * `beside` (may be NULL). The first folder that has vLLM; else the first that has anything we list. */
void oos_installed_find(const char *program, const char *path, const char *beside,
                        oos_installed *ret_installed);

/* NULL: not installed. */
const char *oos_installed_version(const oos_installed *installed, const char *package);

typedef struct oos_cache_folder {
    char name[48];
    char path[OOS_MACHINE_PATH];
    bool exists;
    unsigned entries;
} oos_cache_folder;

typedef struct oos_machine {
    oos_nvml nvml;
    oos_host host;
    oos_installed installed;
    oos_cache_folder caches[OOS_MACHINE_CACHES];
    unsigned cache_count;
    char system[160]; /* "Linux 6.1.0 x86_64" */
    bool whole;       /* false: it took too long, what is missing was not reached */
} oos_machine;

/* Everything above, read by a child process that is given up after `timeout_ms`. `program`: what would be started, may be NULL. False:
 * no memory or no process. */
bool oos_machine_read(const char *program, bool with_devices, unsigned timeout_ms, oos_machine *ret_machine);

/* The devices that an engine would take, in its order: all that are like the first. NULL past the last one. */
const oos_machine_device *oos_machine_taken(const oos_machine *machine, unsigned number);

/* RAM that a process here may use: the machine's, or what its control group leaves. 0: not known. */
uint64_t oos_machine_ram(const oos_machine *machine);

/* What others hold of it, without what the driver keeps: `shown_bytes` is what CUDA shows of the device. */
uint64_t oos_machine_held(const oos_machine_device *device, uint64_t shown_bytes);

#endif

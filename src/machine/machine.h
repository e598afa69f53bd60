#pragma once
#include "base/size.h"
#include <stddef.h>

/* The calls of libcuda that a measurement needs, by dlopen. Handles are pointers, results 0 or CUDA's error numbers. */

typedef struct oos_cuda_place {
    int type, handle_types, location_type,
        location_id; /* CUmemAllocationProp: pinned, none, device, number */
    void *rest[2];
} oos_cuda_place;

/* name, arguments. The first nine are needed for anything, the others for a part. */
#define OOS_LIBCUDA_MAP(X)                                                                                   \
    X(cuInit, (unsigned))                                                                                    \
    X(cuDriverGetVersion, (int *))                                                                           \
    X(cuDeviceGetCount, (int *))                                                                             \
    X(cuDeviceGet, (int *, int))                                                                             \
    X(cuDeviceGetName, (char *, int, int))                                                                   \
    X(cuDeviceGetAttribute, (int *, int, int))                                                               \
    X(cuDevicePrimaryCtxRetain, (void **, int))                                                              \
    X(cuCtxSetCurrent, (void *))                                                                             \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                                                                 \
    X(cuDeviceTotalMem_v2, (size_t *, int))                                                                  \
    X(cuDeviceGetPCIBusId, (char *, int, int))                                                               \
    X(cuMemGetAllocationGranularity, (size_t *, const oos_cuda_place *, int))                                \
    X(cuMemAlloc_v2, (unsigned long long *, size_t))                                                         \
    X(cuMemFree_v2, (unsigned long long))                                                                    \
    X(cuModuleLoadData, (void **, const void *))                                                             \
    X(cuModuleGetFunction, (void **, void *, const char *))                                                  \
    X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, \
                       void **, void **))                                                                    \
    X(cuStreamCreate, (void **, unsigned))                                                                   \
    X(cuStreamSynchronize, (void *))                                                                         \
    X(cuStreamBeginCapture_v2, (void *, int))                                                                \
    X(cuStreamEndCapture, (void *, void **))                                                                 \
    X(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                                    \
    X(cuGraphLaunch, (void *, void *))
enum { OOS_LIBCUDA_NEEDED = 9 };

typedef struct oos_libcuda {
#define OOS_LIBCUDA_POINTER(name, arguments) int(*name) arguments;
    OOS_LIBCUDA_MAP(OOS_LIBCUDA_POINTER)
#undef OOS_LIBCUDA_POINTER
} oos_libcuda;

extern const char *const oos_libcuda_names[]; /* NULL at the end */

/* False: there is no libcuda. A call that it lacks is NULL. It stays loaded: its threads cannot be ended. */
int oos_libcuda_open(oos_libcuda *ret_cuda);

/* The machine we run on: its driver and devices, its memory, the engine that is installed here. Files and NVML are read; no code of
 * others runs but NVML's own. Everything is plain bytes, so that a process of its own can fill it and be given up when it hangs. */

enum {
    OOS_MACHINE_DEVICES = 64,
    OOS_MACHINE_HOLDERS = 32,
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
/* The same in a process of its own, for whoever asks again and again. False: no memory or no process. */
bool oos_nvml_ask_within(unsigned timeout_ms, oos_nvml *ret_nvml);

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

bool oos_ends_within(int fd, unsigned timeout_ms); /* whether the other ends of the pipe are closed by then */
/* Everything above, read by a child process that is given up after `timeout_ms`. `program`: what would be started, may be NULL. False:
 * no memory or no process. */
bool oos_machine_read(const char *program, bool with_devices, unsigned timeout_ms, oos_machine *ret_machine);

/* The devices that an engine would take, in its order: all that are like the first. NULL past the last one. */
const oos_machine_device *oos_machine_taken(const oos_machine *machine, unsigned number);

/* RAM that a process here may use: the machine's, or what its control group leaves. 0: not known. */
uint64_t oos_machine_ram(const oos_machine *machine);

/* What others hold of it, without what the driver keeps: `shown_bytes` is what CUDA shows of the device. */
uint64_t oos_machine_held(const oos_machine_device *device, uint64_t shown_bytes);

/* What a device costs before anybody allocates: totals by every API, the context, the granule, CUDA graphs, communicators. Asked of
 * libcuda and NVML by dlopen, in processes of their own: the caller never holds a context, and a driver that hangs is given up. */

enum { OOS_MEASURE_MISSING = 16 };

/* What was being done; the last one stands when it did not come back. */
#define OOS_MEASURE_STAGE_MAP(X)                                                                             \
    X(BEGIN, "begin")                                                                                        \
    X(LOAD, "loading libcuda.so.1")                                                                          \
    X(INIT, "cuInit")                                                                                        \
    X(NVML, "NVML")                                                                                          \
    X(CONTEXT, "making a context")                                                                           \
    X(ALLOCATE, "allocations")                                                                               \
    X(KERNEL, "the first kernel")                                                                            \
    X(GRAPHS, "CUDA graphs")                                                                                 \
    X(RANKS, "communicators")                                                                                \
    X(DONE, "done")
typedef enum oos_measure_stage {
#define OOS_MEASURE_ENUM(name, word) OOS_MEASURE_##name,
    OOS_MEASURE_STAGE_MAP(OOS_MEASURE_ENUM)
#undef OOS_MEASURE_ENUM
} oos_measure_stage;

const char *oos_measure_stage_word(oos_measure_stage stage);

/* Plain bytes: filled by other processes. What was not measured is not known, and `error` or `missing` says why. */
typedef struct oos_measure {
    oos_measure_stage stage;
    bool timed_out;
    bool stand_in; /* under `oomsight dryrun`: the figures are of a model, no record for anybody */
    char error[160], graph_error[96], rank_error[160];
    char missing[OOS_MEASURE_MISSING][40]; /* calls that this libcuda does not have */
    unsigned missing_count;

    unsigned device_index, device_count;
    char name[96], driver[80], bus_id[32];
    unsigned cuda, capability, sms;
    oos_flag unified;

    oos_u64 total_info, total_device, total_nvml; /* cuMemGetInfo, cuDeviceTotalMem, NVML */
    oos_u64 nvml_reserved;
    oos_u64 absent_bytes;  /* total less free with a context and nothing else; others' are in it */
    oos_u64 context_bytes; /* what NVML's used grew by */
    bool others_seen;      /* somebody held memory before the context was made */
    oos_u64 granule_bytes, small_bytes; /* as told for cuMemCreate; what one byte of cuMemAlloc takes */
    oos_u64 kernel_bytes;               /* first launch of a kernel */
    oos_u64 graph_bytes, node_bytes, graph_launch_bytes;
    oos_u64 control_seen,
        control_expected;      /* a third set of graphs that the two figures were not made from */
    uint64_t resolution_bytes; /* of a node: granule over nodes */
    oos_u64 collective_bytes;
    unsigned nccl_version;
} oos_measure;

/* Device `index` as CUDA counts. `packages`: a site-packages folder in which NCCL may lie, may be NULL. False: no memory or no process. */
bool oos_measure_device(unsigned index, const char *packages, unsigned timeout_ms, oos_measure *ret_measure);

/* The parts that run in those processes. */
void oos_measure_driver(oos_measure *m);
typedef struct oos_measure_ranks {
    char id[128];
    uint32_t id_ready, failed;
    uint64_t before_bytes, after_bytes; /* free on the first device */
    unsigned version;
    char error[160];
    bool done;
} oos_measure_ranks;
void oos_measure_rank(oos_measure_ranks *ranks, int rank, const char *packages);

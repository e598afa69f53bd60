/* The shared segment of one run: the devices, who holds what on them, and how often each call was made.
 * The launcher creates the file, the stand-ins (shim/device) or the guard (shim/guard) map it into every process of the run,
 * the report reads it.
 * Uses libc alone, because it is loaded into other people's processes.
 *
 *   header | devices[16] | processes[128] | libraries[24] | calls[] (names) | events[] | page | counters[] (own pages)
 *
 * A process writes only its own slot and, under the lock, the sums of the devices. The sums can always be rebuilt from
 * the slots, so a process that dies at any moment costs nothing but its own bytes, which go back to the device. */
#pragma once
#include <oomsight/trace.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OOS_SEGMENT_ENV "OOMSIGHT_SEGMENT" /* path of the file; without it the stand-ins have no device */
#define OOS_GUARD_ENV                                                                                        \
    "OOMSIGHT_GUARD" /* the same for the guard; apart, because the one may stand over the other */

enum {
    OOS_SEGMENT_VERSION = 8,
    OOS_SEGMENT_DEVICES = 16,
    OOS_SEGMENT_PROCESSES = 128,
    OOS_SEGMENT_LIBRARIES = 24,
    OOS_SEGMENT_CALLS = 8192,
    OOS_SEGMENT_PHASES = 21, /* as many as the ledger has, and owners: src/dryrun asserts it */
    OOS_SEGMENT_OWNERS = 32,
    OOS_SEGMENT_FAILURES = 32,
    OOS_SEGMENT_PEERS = 8,
    OOS_SEGMENT_UNSEEN = 16,
    OOS_SEGMENT_EVENTS = 16384, /* allocations and frees that a guarded run remembers */
    OOS_SEGMENT_PAGE = 65536    /* counters are mapped over the libraries' own: largest page size we meet */
};

/* What a piece of device memory is for. */
#define OOS_USE_MAP(X)                                                                                       \
    X(CONTEXT, "CUDA context")                                                                               \
    X(MALLOC, "cudaMalloc")                                                                                  \
    X(POOL, "cudaMallocAsync pool")                                                                          \
    X(VMM, "cuMemCreate")                                                                                    \
    X(MANAGED, "managed memory")                                                                             \
    X(PINNED, "pinned host memory on a unified device")                                                      \
    X(MODULE, "kernel code and module data")                                                                 \
    X(LIBRARY, "library workspaces")                                                                         \
    X(COLLECTIVE, "NCCL buffers")                                                                            \
    X(GRAPH, "CUDA graph objects")

typedef enum oos_use {
#define OOS_USE_ENUM(name, word) OOS_USE_##name,
    OOS_USE_MAP(OOS_USE_ENUM)
#undef OOS_USE_ENUM
        OOS_USE_COUNT
} oos_use;

const char *oos_use_word(oos_use use);

/* Bytes by whose they are (the ledger's owners), and by the call that took them. */
typedef uint64_t oos_held[OOS_SEGMENT_OWNERS][OOS_USE_COUNT];

/* What the device is, set by the launcher before anything runs. Costs that no allocation call shows (context, NCCL,
 * graphs) are a model; `context_bytes` and the others are charged when the call is made that takes them. */
typedef struct oos_device_spec {
    char name[96];
    uint64_t total_bytes;        /* cudaMemGetInfo and cuDeviceTotalMem; allocations stop here */
    uint64_t property_bytes;     /* cudaDeviceProp.totalGlobalMem: the whole card under a slicing layer */
    uint64_t nvml_bytes;         /* nvmlDeviceGetMemoryInfo */
    uint64_t others_bytes;       /* held by processes that are not part of the run */
    uint64_t before_bytes;       /* under the guard: used on the device before the run, as NVML says */
    uint64_t context_bytes;      /* per process, at the first context */
    uint64_t collective_bytes;   /* once per process, with its first communicator of more than one rank */
    uint64_t first_kernel_bytes; /* the first of a process */
    uint64_t kernel_bytes, kernels_bytes;   /* per kernel at its first launch, and at most in all */
    uint64_t graph_bytes, graph_node_bytes; /* per instantiated graph, per node */
    uint32_t capability;                    /* 10 * major + minor */
    uint32_t sms;
    uint32_t unified; /* host and device share one memory */
    uint32_t nvlink;  /* peers see one another over NVLink */
    uint32_t before_known;
    char card
        [96]; /* under the guard, where `name` is the address on the bus: the card's name by NVML; "": not told */
} oos_device_spec;

typedef struct oos_segment_device {
    oos_device_spec spec;
    oos_held held;
    uint64_t held_bytes, peak_bytes;
    uint64_t
        outside_bytes; /* under the guard: used on the real device and by no call; contexts, kernels, graphs */
    uint64_t refused_count;
    uint64_t phase_peak_bytes[OOS_SEGMENT_PHASES];
    oos_held at_phase_peak[OOS_SEGMENT_PHASES]; /* who held the bytes at that moment */
    oos_held at_refusal;                        /* under the guard: and when a call was first refused */
    uint64_t refusal_outside_bytes;
} oos_segment_device;

typedef struct oos_segment_process {
    uint32_t pid;          /* 0: free */
    uint32_t told;         /* 1: the process itself says where it is, 0: the launcher does, from the log */
    uint32_t phase, owner; /* then: its phase, and whose what it takes is */
    uint64_t start_ticks;  /* pids are reused, start times are not */
    oos_held held[OOS_SEGMENT_DEVICES];
    uint64_t held_bytes[OOS_SEGMENT_DEVICES], peak_bytes[OOS_SEGMENT_DEVICES];
    uint64_t pinned_bytes, pinned_peak_bytes;
    uint64_t contexts; /* a bit per device */
} oos_segment_process;

/* An allocation that did not fit. */
typedef struct oos_segment_failure {
    uint32_t pid, device, phase, use;
    uint64_t bytes, free_bytes;
    uint32_t host; /* 1: it was the host's address space that ran out, not the device */
    uint32_t unused;
} oos_segment_failure;

/* Why a process of a guarded run is not counted, or no longer. The guard says the first four of itself, the launcher the others. */
#define OOS_UNSEEN_MAP(X)                                                                                    \
    X(LOCK, "another process of the run has held the memory limiter's lock for two seconds or more")         \
    X(PLACE, "the memory limiter has no place for more processes")                                           \
    X(TABLE, "there was no memory to keep what it holds")                                                    \
    X(DEVICE, "its device has no address on the bus, or there are more than 16")                             \
    X(NO_GUARD,                                                                                              \
      "the memory limiter is not loaded in it: something before it drops LD_PRELOAD, such as env -i")        \
    X(OTHER_USER,                                                                                            \
      "it runs as another user, and the memory limiter's file belongs to the user who started it")           \
    X(NO_FILE, "OOMSIGHT_GUARD does not reach it: something before it drops it")                             \
    X(HIDDEN, "it runs as another user, and whether it uses a device cannot be seen")

typedef enum oos_unseen {
#define OOS_UNSEEN_ENUM(name, word) OOS_UNSEEN_##name,
    OOS_UNSEEN_MAP(OOS_UNSEEN_ENUM)
#undef OOS_UNSEEN_ENUM
        OOS_UNSEEN_COUNT
} oos_unseen;

const char *oos_unseen_word(oos_unseen why);

typedef struct oos_segment_unseen {
    uint32_t pid; /* 0: not written yet */
    uint32_t why;
    char name[16]; /* as /proc/PID/comm has it */
} oos_segment_unseen;

typedef struct oos_segment_library {
    char soname[40];
    uint32_t first_call, call_count;
    uint64_t counters_offset; /* in the file, a multiple of OOS_SEGMENT_PAGE */
} oos_segment_library;

typedef enum oos_call_kind { OOS_CALL_TAKE, OOS_CALL_NOOP, OOS_CALL_REFUSE } oos_call_kind;

typedef struct oos_segment_call {
    char name[60];
    uint32_t kind;
} oos_segment_call;

/* Another guarded run on the same devices, under the same name. */
typedef struct oos_segment_peer {
    char path[128]; /* of its segment; "": none */
    uint64_t base_bytes
        [OOS_SEGMENT_DEVICES]; /* by our devices: what it held when ours was made, which is in before_bytes */
} oos_segment_peer;

typedef struct oos_segment {
    char magic[8];
    uint32_t version, device_count;
    uint64_t size_bytes; /* of the whole file */
    uint64_t lock;       /* 0 or pid << 32 | low half of the owner's start time */
    uint32_t phase,
        owner; /* set by the launcher as it reads the engine's log; for processes that do not say it themselves */
    uint32_t cuda_major;  /* 12 or 13: which set of stand-ins */
    uint64_t arena_bytes; /* address space that a process sets aside for device memory */
    uint64_t budget_bytes,
        budget_millionths;  /* under the guard, for each device: bytes, or a share of it; both 0: none */
    uint64_t reserve_bytes; /* under the guard, on unified memory: left to the host; 0: not unified */
    uint32_t library_count, call_count;
    uint64_t failure_count; /* ever; the last OOS_SEGMENT_FAILURES are kept */
    uint64_t reaped_count;  /* processes that died holding memory */
    uint64_t launch_count, graph_count, graph_node_count;
    uint64_t trace_records, trace_lost;
    char trace_path[256];  /* "": no trace */
    uint32_t launcher_pid; /* under the guard: who writes bundles when it gets SIGUSR2 */
    uint32_t bundle_count; /* written so far */
    uint32_t phase_told;   /* under the guard: the log has told a phase */
    uint32_t unused;
    uint64_t launcher_start_ticks;
    char bundle_path[256]; /* of the last one */
    uint64_t
        machine_bytes; /* of a stand-in machine whose host and devices share one memory; 0: it has no end */
    uint64_t wedged;   /* 1: they needed more than that */
    uint64_t fail_after,
        asked_count;            /* the allocation of this number is denied (0: none); how many there were */
    oos_segment_failure denied; /* that one; pid 0: it has not come yet */
    uint64_t denied_count;      /* with those that asked for the same again at once */
    char share[40];             /* under the guard: the name of those that divide the devices; "": none */
    oos_segment_peer peers[OOS_SEGMENT_PEERS];
    oos_segment_failure failures[OOS_SEGMENT_FAILURES];
    oos_segment_failure first_failure; /* under the guard */
    uint64_t claimed_count;            /* processes that ever had a place */
    uint64_t unseen_count; /* under the guard: processes that are not counted; at most as many are kept */
    oos_segment_unseen unseen[OOS_SEGMENT_UNSEEN];
    uint64_t event_count; /* ever; the last OOS_SEGMENT_EVENTS are kept, without a lock */
    oos_segment_device devices[OOS_SEGMENT_DEVICES];
    oos_segment_process processes[OOS_SEGMENT_PROCESSES];
    oos_segment_library libraries[OOS_SEGMENT_LIBRARIES];
    oos_segment_call calls[OOS_SEGMENT_CALLS];
    oomsight_trace_record events[OOS_SEGMENT_EVENTS];
} oos_segment;

typedef enum oos_segment_status {
    OOS_SEGMENT_OK,
    OOS_SEGMENT_ABSENT,  /* the file cannot be opened */
    OOS_SEGMENT_FOREIGN, /* it is not a plain file of ours alone */
    OOS_SEGMENT_CORRUPT, /* it is not a segment of this version, or its figures make no sense */
    OOS_SEGMENT_NO_ROOM
} oos_segment_status;

uint64_t oos_segment_file_bytes(void);

/* Make the file, with all of its pages, and map it. One spec per device. */
oos_segment_status oos_segment_create(const char *path, const oos_device_spec *specs, uint32_t device_count,
                                      oos_segment **ret_segment);

/* Map an existing one: a plain file, no link, of this user and for nobody else to read or write, because whoever can cut it short ends
 * every process that has it mapped. Everything read from it later is checked again where it is used as an index. */
oos_segment_status oos_segment_open(const char *path, oos_segment **ret_segment);
void oos_segment_close(oos_segment *segment); /* unmaps; the file stays */

/* Does who made it live? */
bool oos_segment_launched(const oos_segment *segment);

/* When a process began, in clock ticks since boot; 0 when it is gone or a zombie. */
uint64_t oos_process_start_ticks(uint32_t pid);
/* The same where /proc is below `root`; "" for this machine's. */
uint64_t oos_process_start_ticks_in(const char *root, uint32_t pid);

/* The lock between processes. A dead owner loses it; then the sums are rebuilt before this returns. One thread per
 * process at a time. */
void oos_segment_lock(oos_segment *segment, uint32_t own_pid, uint64_t own_start_ticks);
/* False: somebody who lives has held it for some seconds. */
bool oos_segment_lock_soon(oos_segment *segment, uint32_t own_pid, uint64_t own_start_ticks);
void oos_segment_unlock(oos_segment *segment);

/* A process that is not counted, told once for each reason. No lock is needed. */
void oos_segment_unseen_put(oos_segment *segment, uint32_t pid, oos_unseen why);

/* Under the lock: give back what dead processes held. Returns how many there were. */
unsigned oos_segment_reap(oos_segment *segment);

/* Under the lock: a place for this process; NULL when all are taken. One of the same pid is from before an exec: the kernel has
 * dropped that memory. */
oos_segment_process *oos_segment_claim(oos_segment *segment, uint32_t own_pid, uint64_t own_start_ticks);

/* What /proc/meminfo says on a machine with so much left, always of one length; as snprintf(). */
int oos_meminfo_text(char *ret_text, size_t capacity, uint64_t total_bytes, uint64_t left_bytes);

/* The counters of a library, mapped from the file; NULL on failure. */
uint64_t *oos_segment_counters(const char *path, const oos_segment_library *library);

static inline uint64_t oos_segment_counters_bytes(uint32_t call_count)
{
    return ((uint64_t)call_count * 8 + OOS_SEGMENT_PAGE - 1) / OOS_SEGMENT_PAGE * OOS_SEGMENT_PAGE;
}

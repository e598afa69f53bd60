/* Two ranks in two processes make a communicator, as the workers of an engine do; the first tells what its device lost. */
#include "machine/machine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 2, SENT_FLOATS = 1 << 18, FLOAT32 = 7, SUM = 0 };

typedef struct unique_id {
    char bytes[128];
} unique_id;

typedef struct nccl_calls {
    int (*version)(int *);
    int (*id)(unique_id *);
    int (*make)(void **, int, unique_id, int);
    int (*reduce)(const void *, void *, size_t, int, int, void *, void *);
} nccl_calls;

static bool nccl_open(const char *packages, nccl_calls *ret_calls)
{
    static const char *const names[] = {"ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank",
                                        "ncclAllReduce"};
    void *found[sizeof names / sizeof *names];
    char path[OOS_MACHINE_PATH + 64];
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library && packages && *packages) { /* where the wheels of PyTorch have it */
        snprintf(path, sizeof path, "%s/nvidia/nccl/lib/libnccl.so.2", packages);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) return false;
    _Static_assert(sizeof found == sizeof *ret_calls, "a pointer for each name");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(found[i] = dlsym(library, names[i]))) return false;
    memcpy(ret_calls, found, sizeof found);
    return true;
}

static bool failed(oos_measure_ranks *r, const char *call, int code)
{
    if (code == 0) return false;
    if (!__atomic_exchange_n(&r->failed, 1, __ATOMIC_ACQ_REL))
        snprintf(r->error, sizeof r->error, "%s: error %d", call, code);
    return true;
}

static bool device_take(oos_measure_ranks *r, const oos_libcuda *cuda, int rank, unsigned long long *ret_at)
{
    int device;
    void *context;
    return cuda->cuMemAlloc_v2 && cuda->cuStreamSynchronize && !failed(r, "cuInit", cuda->cuInit(0)) &&
           !failed(r, "cuDeviceGet", cuda->cuDeviceGet(&device, rank)) &&
           !failed(r, "cuDevicePrimaryCtxRetain", cuda->cuDevicePrimaryCtxRetain(&context, device)) &&
           !failed(r, "cuCtxSetCurrent", cuda->cuCtxSetCurrent(context)) &&
           !failed(r, "cuMemAlloc", cuda->cuMemAlloc_v2(ret_at, SENT_FLOATS * sizeof(float)));
}

static bool id_share(oos_measure_ranks *r, const nccl_calls *nccl, int rank, unique_id *ret_id)
{
    if (rank == 0) {
        if (failed(r, "ncclGetUniqueId", nccl->id(ret_id))) return false;
        memcpy(r->id, ret_id->bytes, sizeof r->id);
        __atomic_store_n(&r->id_ready, 1, __ATOMIC_RELEASE);
        return true;
    }
    while (!__atomic_load_n(&r->id_ready, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&r->failed, __ATOMIC_ACQUIRE)) return false;
        usleep(1000);
    }
    memcpy(ret_id->bytes, r->id, sizeof r->id);
    return true;
}

static bool free_read(oos_measure_ranks *r, const oos_libcuda *cuda, uint64_t *ret_free)
{
    size_t free_bytes, total_bytes;
    if (failed(r, "cuMemGetInfo", cuda->cuMemGetInfo_v2(&free_bytes, &total_bytes))) return false;
    *ret_free = free_bytes;
    return true;
}

/* Buffers are connected by the first collective, so one is run. */
void oos_measure_rank(oos_measure_ranks *r, int rank, const char *packages)
{
    oos_libcuda cuda;
    nccl_calls nccl;
    unique_id id;
    void *comm;
    unsigned long long at = 0;
    uint64_t before, after;
    int version = 0;
    if (!nccl_open(packages, &nccl)) {
        if (rank == 0) snprintf(r->error, sizeof r->error, "libnccl.so.2 is not found");
        __atomic_store_n(&r->failed, 1, __ATOMIC_RELEASE);
        return;
    }
    if (!oos_libcuda_open(&cuda) || !device_take(r, &cuda, rank, &at) || !free_read(r, &cuda, &before) ||
        !id_share(r, &nccl, rank, &id) || failed(r, "ncclCommInitRank", nccl.make(&comm, RANKS, id, rank)))
        return;
    void *data;
    memcpy(&data, &at, sizeof data);
    if (failed(r, "ncclAllReduce", nccl.reduce(data, data, SENT_FLOATS, FLOAT32, SUM, comm, NULL)) ||
        failed(r, "cuStreamSynchronize", cuda.cuStreamSynchronize(NULL)) || !free_read(r, &cuda, &after))
        return;
    if (rank != 0) return;
    if (nccl.version(&version) == 0) r->version = (unsigned)version;
    r->before_bytes = before, r->after_bytes = after;
    r->done = true;
}

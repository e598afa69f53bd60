/* NCCL: communicators that know their size and rank, collectives that are launches. The buffers that NCCL takes outside
 * PyTorch's allocator are charged when a communicator of more than one rank is made. */
#include "phantom/phantom.h"

#include <stdlib.h>

enum { NCCL_OK = 0, NCCL_CUDA_ERROR = 1, NCCL_SYSTEM_ERROR = 2, NCCL_INVALID_ARGUMENT = 4 };

typedef struct communicator {
    int ranks, rank;
    unsigned device;
} communicator;

typedef struct unique_id {
    char bytes[128];
} unique_id;

TAKE(int, ncclGetVersion, int *ret_version)
{
    *ret_version = OOS_CUDA_MAJOR == 12 ? 22703 : 22907;
    return NCCL_OK;
}

TAKE(int, ncclGetUniqueId, unique_id *ret_id)
{
    memset(ret_id, 7, sizeof *ret_id);
    return NCCL_OK;
}

TAKE(const char *, ncclGetErrorString, int status)
{
    return status == NCCL_OK           ? "no error"
           : status == NCCL_CUDA_ERROR ? "unhandled cuda error (run with NCCL_DEBUG=INFO for details)"
                                       : "unhandled system error (run with NCCL_DEBUG=INFO for details)";
}

TAKE(const char *, ncclGetLastError, void *comm)
{
    return "";
}

/* Communicators of a process share channels and buffers; the first one pays for all. */
static int make(communicator **ret_comm, int ranks, int rank, unsigned device)
{
    static uint32_t paid; /* a bit per device */
    if (!ret_comm || ranks < 1 || rank < 0 || rank >= ranks) return NCCL_INVALID_ARGUMENT;
    communicator *comm = calloc(1, sizeof *comm);
    if (!comm) return NCCL_SYSTEM_ERROR;
    *comm = (communicator){.ranks = ranks, .rank = rank, .device = device};
    uint64_t const bytes = ranks > 1 ? oos_device_spec_of(device)->collective_bytes : 0;
    uint32_t const bit = 1u << (device % 32);
    oos_charge charge; /* stays until the process ends */
    if (bytes && !(__atomic_fetch_or(&paid, bit, __ATOMIC_RELAXED) & bit) &&
        oos_charge_take(device, OOS_USE_COLLECTIVE, bytes, &charge)) {
        free(comm);
        return NCCL_CUDA_ERROR;
    }
    *ret_comm = comm;
    return NCCL_OK;
}

TAKE(int, ncclCommInitRank, communicator **ret_comm, int ranks, unique_id id, int rank)
{
    return make(ret_comm, ranks, rank, oos_device_current());
}

TAKE(int, ncclCommInitRankConfig, communicator **ret_comm, int ranks, unique_id id, int rank, void *config)
{
    return make(ret_comm, ranks, rank, oos_device_current());
}

TAKE(int, ncclCommInitRankScalable, communicator **ret_comm, int ranks, int rank, int id_count,
     unique_id *ids, void *config)
{
    return make(ret_comm, ranks, rank, oos_device_current());
}

TAKE(int, ncclCommInitAll, communicator **ret_comms, int count, const int *devices)
{
    for (int i = 0; i < count; i++) {
        int const status = make(&ret_comms[i], count, i, devices ? (unsigned)devices[i] : (unsigned)i);
        if (status) return status;
    }
    return NCCL_OK;
}

TAKE(int, ncclCommSplit, const communicator *comm, int color, int key, communicator **ret_comm, void *config)
{
    return make(ret_comm, comm->ranks, comm->rank, comm->device);
}

TAKE(int, ncclCommDestroy, communicator *comm)
{
    free(comm);
    return NCCL_OK;
}

TAKE(int, ncclCommAbort, communicator *comm)
{
    return take_ncclCommDestroy(comm);
}

TAKE(int, ncclCommCount, const communicator *comm, int *ret_ranks)
{
    *ret_ranks = comm->ranks;
    return NCCL_OK;
}

TAKE(int, ncclCommUserRank, const communicator *comm, int *ret_rank)
{
    *ret_rank = comm->rank;
    return NCCL_OK;
}

TAKE(int, ncclCommCuDevice, const communicator *comm, int *ret_device)
{
    *ret_device = (int)comm->device;
    return NCCL_OK;
}

TAKE(int, ncclCommGetAsyncError, const communicator *comm, int *ret_status)
{
    *ret_status = NCCL_OK;
    return NCCL_OK;
}

TAKE(int, ncclMemAlloc, void **ret_at, size_t bytes)
{
    return oos_memory_take(oos_device_current(), OOS_USE_MALLOC, bytes, ret_at) ? NCCL_CUDA_ERROR : NCCL_OK;
}

TAKE(int, ncclMemFree, void *at)
{
    return oos_memory_give(at) ? NCCL_CUDA_ERROR : NCCL_OK;
}

TAKE(int, ncclCommRegister, void *comm, void *at, size_t bytes, void **ret_handle)
{
    return oos_handle_new(ret_handle) ? NCCL_SYSTEM_ERROR : NCCL_OK;
}

TAKE(int, ncclCommWindowRegister, void *comm, void *at, size_t bytes, void **ret_window, int flags)
{
    return oos_handle_new(ret_window) ? NCCL_SYSTEM_ERROR : NCCL_OK;
}

TAKE(int, ncclAllReduce, const void *from, void *to, size_t count, int type, int op, void *comm, void *stream)
{
    oos_stream_launch(stream);
    return NCCL_OK;
}

TAKE(int, ncclReduceScatter, const void *from, void *to, size_t count, int type, int op, void *comm,
     void *stream)
{
    oos_stream_launch(stream);
    return NCCL_OK;
}

TAKE(int, ncclAllGather, const void *from, void *to, size_t count, int type, void *comm, void *stream)
{
    oos_stream_launch(stream);
    return NCCL_OK;
}

TAKE(int, ncclBroadcast, const void *from, void *to, size_t count, int type, int root, void *comm,
     void *stream)
{
    oos_stream_launch(stream);
    return NCCL_OK;
}

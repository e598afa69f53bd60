/* NCCL: communicators that know their size and rank, and the entries of its collectives (collective.c). The buffers that NCCL takes
 * outside PyTorch's allocator are charged when a communicator of more than one rank is made. */
#include "phantom/nccl/nccl.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

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
    static uint64_t last;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t const words[] = {(uint64_t)getpid(), __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED),
                              (uint64_t)now.tv_sec, (uint64_t)now.tv_nsec};
    memset(ret_id, 7, sizeof *ret_id);
    memcpy(ret_id->bytes, words, sizeof words);
    return NCCL_OK;
}

TAKE(const char *, ncclGetErrorString, int status)
{
    return status == NCCL_OK             ? "no error"
           : status == NCCL_CUDA_ERROR   ? "unhandled cuda error (run with NCCL_DEBUG=INFO for details)"
           : status == NCCL_REMOTE_ERROR ? "remote process exited or there was a network error"
                                         : "unhandled system error (run with NCCL_DEBUG=INFO for details)";
}

TAKE(const char *, ncclGetLastError, void *comm)
{
    return nccl_last_error();
}

/* FNV-1a, twice: the name of the room where the ranks meet. */
static void name_add(uint64_t name[2], const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        name[0] = (name[0] ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
        name[1] = (name[1] ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3 + name[0];
    }
}

/* Communicators of a process share channels and buffers; the first one pays for all. */
static int make(communicator **ret_comm, int ranks, int rank, unsigned device, const uint64_t name[2])
{
    static uint32_t paid; /* a bit per device */
    if (!ret_comm || ranks < 1 || rank < 0 || rank >= ranks) return NCCL_INVALID_ARGUMENT;
    communicator *comm = calloc(1, sizeof *comm);
    if (!comm) return NCCL_SYSTEM_ERROR;
    *comm = (communicator){
        .ranks = ranks, .rank = rank, .device = device, .references = 1, .name = {name[0], name[1]}};
    uint64_t const bytes = ranks > 1 ? oos_device_spec_of(device)->collective_bytes : 0;
    uint32_t const bit = 1u << (device % 32);
    oos_charge charge; /* stays until the process ends */
    if (bytes && !(__atomic_fetch_or(&paid, bit, __ATOMIC_RELAXED) & bit) &&
        oos_charge_take(device, OOS_USE_COLLECTIVE, bytes, &charge)) {
        free(comm);
        return NCCL_CUDA_ERROR;
    }
    comm->room = oos_room_enter(name, (unsigned)ranks, (unsigned)rank);
    *ret_comm = comm;
    return NCCL_OK;
}

static int make_by_id(communicator **ret_comm, int ranks, int rank, const unique_id *id)
{
    uint64_t name[2] = {0xcbf29ce484222325, 0x84222325cbf29ce4};
    name_add(name, id, sizeof *id);
    return make(ret_comm, ranks, rank, oos_device_current(), name);
}

TAKE(int, ncclCommInitRank, communicator **ret_comm, int ranks, unique_id id, int rank)
{
    return make_by_id(ret_comm, ranks, rank, &id);
}

TAKE(int, ncclCommInitRankConfig, communicator **ret_comm, int ranks, unique_id id, int rank, void *config)
{
    return make_by_id(ret_comm, ranks, rank, &id);
}

TAKE(int, ncclCommInitRankScalable, communicator **ret_comm, int ranks, int rank, int id_count,
     unique_id *ids, void *config)
{
    return make_by_id(ret_comm, ranks, rank, ids);
}

TAKE(int, ncclCommInitAll, communicator **ret_comms, int count, const int *devices)
{
    unique_id id;
    uint64_t name[2] = {0x84222325, 0xcbf29ce4};
    take_ncclGetUniqueId(&id);
    name_add(name, &id, sizeof id);
    for (int i = 0; i < count; i++) {
        int const status = make(&ret_comms[i], count, i, devices ? (unsigned)devices[i] : (unsigned)i, name);
        if (status) return status;
    }
    return NCCL_OK;
}

/* The name of a part of a communicator, the same in every rank of that part. */
static void child_name(communicator *comm, const void *bytes, size_t count, uint64_t ret_name[2])
{
    uint64_t const child = __atomic_add_fetch(&comm->children, 1, __ATOMIC_RELAXED);
    memcpy(ret_name, comm->name, sizeof comm->name);
    name_add(ret_name, &child, sizeof child);
    name_add(ret_name, bytes, count);
}

/* Ranks of one colour, in the order of their keys. Where they cannot meet, all are of one. */
TAKE(int, ncclCommSplit, communicator *comm, int color, int key, communicator **ret_comm, void *config)
{
    int const own[2] = {color, key};
    int all[OOS_ROOM_RANKS][2], ranks = 0, rank = 0;
    uint64_t name[2];
    child_name(comm, &color, sizeof color, name);
    if (!ret_comm) return NCCL_INVALID_ARGUMENT;
    bool const met = nccl_exchange(comm, own, sizeof own, all);
    *ret_comm = NULL;
    if (color < 0) return NCCL_OK; /* NCCL_SPLIT_NOCOLOR: in no part */
    if (!met) return make(ret_comm, comm->ranks, comm->rank, comm->device, name);
    for (int i = 0; i < comm->ranks; i++) {
        if (all[i][0] != color) continue;
        ranks++;
        rank += all[i][1] < key || (all[i][1] == key && i < comm->rank);
    }
    return make(ret_comm, ranks, rank, comm->device, name);
}

TAKE(int, ncclCommShrink, communicator *comm, int *excluded, int count, communicator **ret_comm, void *config,
     int flags)
{
    int rank = comm->rank;
    uint64_t name[2];
    if (!ret_comm || count < 0 || count >= comm->ranks || (count && !excluded)) return NCCL_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) rank -= excluded[i] < comm->rank;
    child_name(comm, excluded, (size_t)count * sizeof *excluded, name);
    return make(ret_comm, comm->ranks - count, rank, comm->device, name);
}

TAKE(int, ncclCommDestroy, communicator *comm)
{
    if (!comm) return NCCL_OK;
    __atomic_store_n(&comm->ended, 1, __ATOMIC_RELEASE);
    nccl_drop(comm);
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

TAKE(int, ncclGroupStart, void)
{
    nccl_group_begin();
    return NCCL_OK;
}

TAKE(int, ncclGroupEnd, void)
{
    return nccl_group_end();
}

TAKE(int, ncclRedOpCreatePreMulSum, int *ret_op, void *scalar, int type, int residence, void *comm)
{
    if (!ret_op || !scalar || !nccl_reduces(type, 0)) return NCCL_INVALID_ARGUMENT;
    oos_range range;
    if (residence == 0 && !oos_range_find(scalar, &range)) return NCCL_INVALID_ARGUMENT; /* on the device */
    int const op = nccl_op_create(scalar, type);
    if (op < 0) return NCCL_SYSTEM_ERROR;
    *ret_op = op;
    return NCCL_OK;
}

TAKE(int, ncclRedOpDestroy, int op, void *comm)
{
    nccl_op_destroy(op);
    return NCCL_OK;
}

TAKE(int, ncclAllReduce, const void *from, void *to, size_t count, int type, int op, void *comm, void *stream)
{
    return nccl_move(
        (nccl_transfer){
            .comm = comm, .kind = ALL_REDUCE, .from = from, .to = to, .count = count, .type = type, .op = op},
        stream);
}

TAKE(int, ncclReduce, const void *from, void *to, size_t count, int type, int op, int root, void *comm,
     void *stream)
{
    return nccl_move((nccl_transfer){.comm = comm,
                                     .kind = REDUCE,
                                     .from = from,
                                     .to = to,
                                     .count = count,
                                     .type = type,
                                     .op = op,
                                     .peer = root},
                     stream);
}

TAKE(int, ncclReduceScatter, const void *from, void *to, size_t count, int type, int op, void *comm,
     void *stream)
{
    return nccl_move((nccl_transfer){.comm = comm,
                                     .kind = REDUCE_SCATTER,
                                     .from = from,
                                     .to = to,
                                     .count = count,
                                     .type = type,
                                     .op = op},
                     stream);
}

TAKE(int, ncclAllGather, const void *from, void *to, size_t count, int type, void *comm, void *stream)
{
    return nccl_move(
        (nccl_transfer){
            .comm = comm, .kind = ALL_GATHER, .from = from, .to = to, .count = count, .type = type},
        stream);
}

TAKE(int, ncclBroadcast, const void *from, void *to, size_t count, int type, int root, void *comm,
     void *stream)
{
    return nccl_move((nccl_transfer){.comm = comm,
                                     .kind = BROADCAST,
                                     .from = from,
                                     .to = to,
                                     .count = count,
                                     .type = type,
                                     .peer = root},
                     stream);
}

TAKE(int, ncclBcast, void *at, size_t count, int type, int root, void *comm, void *stream)
{
    return take_ncclBroadcast(at, at, count, type, root, comm, stream);
}

TAKE(int, ncclSend, const void *from, size_t count, int type, int peer, void *comm, void *stream)
{
    return nccl_move(
        (nccl_transfer){.comm = comm, .kind = SEND, .from = from, .count = count, .type = type, .peer = peer},
        stream);
}

TAKE(int, ncclRecv, void *to, size_t count, int type, int peer, void *comm, void *stream)
{
    return nccl_move(
        (nccl_transfer){.comm = comm, .kind = RECEIVE, .to = to, .count = count, .type = type, .peer = peer},
        stream);
}

#if OOS_CUDA_MAJOR >= 13
/* From NCCL 2.28 on; what one rank has for another is `count` elements. */
static const void *part(const void *at, int rank, size_t count, int type)
{
    return (const char *)at + (size_t)rank * count * nccl_type_bytes(type);
}

TAKE(int, ncclAlltoAll, const void *from, void *to, size_t count, int type, communicator *comm, void *stream)
{
    nccl_group_begin();
    for (int rank = 0; rank < comm->ranks; rank++) {
        take_ncclSend(part(from, rank, count, type), count, type, rank, comm, stream);
        take_ncclRecv((void *)(uintptr_t)part(to, rank, count, type), count, type, rank, comm, stream);
    }
    return nccl_group_end();
}

TAKE(int, ncclGather, const void *from, void *to, size_t count, int type, int root, communicator *comm,
     void *stream)
{
    nccl_group_begin();
    take_ncclSend(from, count, type, root, comm, stream);
    for (int rank = 0; rank < comm->ranks && comm->rank == root; rank++)
        take_ncclRecv((void *)(uintptr_t)part(to, rank, count, type), count, type, rank, comm, stream);
    return nccl_group_end();
}

TAKE(int, ncclScatter, const void *from, void *to, size_t count, int type, int root, communicator *comm,
     void *stream)
{
    nccl_group_begin();
    for (int rank = 0; rank < comm->ranks && comm->rank == root; rank++)
        take_ncclSend(part(from, rank, count, type), count, type, rank, comm, stream);
    take_ncclRecv(to, count, type, root, comm, stream);
    return nccl_group_end();
}
#endif

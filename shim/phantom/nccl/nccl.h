/* What the files of the NCCL stand-in share. */
#pragma once
#include "phantom/phantom.h"

enum {
    NCCL_OK = 0,
    NCCL_CUDA_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_REMOTE_ERROR = 6
};

typedef struct communicator {
    int ranks, rank;
    unsigned device;
    uint32_t references, ended; /* it may be aborted by one thread while another one waits in it */
    uint32_t told;
    uint64_t name[2], children;
    oos_room *room; /* NULL: alone, or no place to meet; then no data is moved */
    uint64_t next, sent[OOS_ROOM_RANKS], received[OOS_ROOM_RANKS]; /* numbers of parcels */
} communicator;

typedef enum nccl_transfer_kind {
    ALL_REDUCE = 1,
    REDUCE,
    REDUCE_SCATTER,
    ALL_GATHER,
    BROADCAST,
    SEND,
    RECEIVE
} nccl_transfer_kind;

typedef struct nccl_transfer {
    communicator *comm;
    nccl_transfer_kind kind;
    const void *from;
    void *to;
    uint64_t count; /* elements that one rank sends; of REDUCE_SCATTER, that one rank gets */
    int type, op;
    int peer; /* or the root */
    uint64_t number;
    bool put, done;
} nccl_transfer;

/* ---- collective.c */
/* Now, or at the end of the group that this thread has begun. `stream` NULL is a stream, too. */
int nccl_move(nccl_transfer given, const void *stream);
/* The same for host memory and in no group: what each rank gives, from all ranks. False: they did not meet. */
bool nccl_exchange(communicator *comm, const void *own, uint64_t bytes, void *ret_all);
void nccl_group_begin(void);
int nccl_group_end(void);
const char *nccl_last_error(void);
void nccl_drop(communicator *comm);

/* ---- reduce.c */
uint64_t nccl_type_bytes(int type);               /* 0: no such type */
int nccl_op_create(const void *scalar, int type); /* sum of all, each times that scalar; -1: too many */
void nccl_op_destroy(int op);
/* Can it be computed here? */
bool nccl_reduces(int type, int op);
/* `sums` has a place of 8 bytes for each element; `first`: it holds nothing yet. */
void nccl_reduce_add(uint64_t *sums, const void *values, uint64_t count, int type, int op, bool first);
void nccl_reduce_end(const uint64_t *sums, void *ret_values, uint64_t count, int type, int op, int ranks);

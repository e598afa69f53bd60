/* Where the ranks of a communicator meet: a file beside the segment, one for each communicator, made by whoever comes first.
 *
 *   head | seats[ranks] | lanes[ranks][ranks + 1] | ... | from 1 MiB on: the bytes, a place of 1 MiB for each parcel
 *
 * A lane leads from a rank to another one, the last of a rank to all. The head is mapped and has its pages from the start; bytes are
 * written and read by calls, so that a full file system is an answer and not a signal. Zeros are a room that nobody has entered, so two
 * that make it at once make the same. What is read here was written by another process: it is a number until it was compared. */
#include "device/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    DEPTH = 4,              /* parcels of a lane that nobody has taken yet */
    BYTES_OFFSET = 1 << 20, /* the head of the largest room is smaller */
    KEPT_BYTES = 64 << 10   /* pages of a larger parcel are given back when it was taken */
};

typedef struct seat {
    uint32_t pid, left;
    uint64_t start_ticks;
    uint64_t done; /* parcels for all that this rank has finished with */
} seat;

typedef struct lane {
    uint64_t put, taken; /* how many there were; taken: of a lane to one */
    oos_parcel parcels[DEPTH];
} lane;

typedef struct head {
    uint32_t ranks;
    uint32_t tick; /* changes with every step of anybody; they sleep on it */
    uint32_t broken;
    uint32_t unused;
    seat seats[];
} head;

struct oos_room {
    head *head;
    size_t head_bytes;
    int file;
    unsigned ranks, rank;
};

_Static_assert(sizeof(head) + OOS_ROOM_RANKS * sizeof(seat) +
                       (size_t)OOS_ROOM_RANKS * (OOS_ROOM_RANKS + 1) * sizeof(lane) <=
                   BYTES_OFFSET,
               "bytes begin behind the head");

static size_t lane_index(const oos_room *room, unsigned from, int to)
{
    return (size_t)from * (room->ranks + 1) + (to == OOS_ROOM_ALL ? room->ranks : (unsigned)to);
}

static lane *lane_of(const oos_room *room, unsigned from, int to)
{
    lane *lanes = (lane *)(void *)&room->head->seats[room->ranks];
    return &lanes[lane_index(room, from, to)];
}

static off_t bytes_at(const oos_room *room, unsigned from, int to, uint64_t number)
{
    return (off_t)(BYTES_OFFSET + (lane_index(room, from, to) * DEPTH + number % DEPTH) * OOS_PARCEL_BYTES);
}

static void step(oos_room *room)
{
    __atomic_fetch_add(&room->head->tick, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &room->head->tick, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* A plain file of ours alone, as the segment is. */
static int file_open(const char *path, size_t head_bytes)
{
    struct stat info;
    int const file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (file < 0) return -1;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        !(info.st_mode & 077) && info.st_nlink <= 1 && posix_fallocate(file, 0, (off_t)head_bytes) == 0)
        return file;
    close(file);
    return -1;
}

static bool sit(oos_room *room)
{
    uint32_t nobody = 0, unset = 0;
    seat *own = &room->head->seats[room->rank];
    if (!__atomic_compare_exchange_n(&room->head->ranks, &unset, room->ranks, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST) &&
        unset != room->ranks)
        return false;
    uint32_t const pid = (uint32_t)getpid();
    if (!__atomic_compare_exchange_n(&own->pid, &nobody, pid, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return false; /* somebody is this rank already */
    __atomic_store_n(&own->start_ticks, oos_process_start_ticks(pid), __ATOMIC_SEQ_CST);
    step(room);
    return true;
}

oos_room *oos_room_enter(const uint64_t name[2], unsigned ranks, unsigned rank)
{
    char path[600];
    if (ranks < 2 || ranks > OOS_ROOM_RANKS || rank >= ranks || !oos_run()) return NULL;
    int const len = snprintf(path, sizeof path, "%s.nccl.%016llx%016llx", oos_run_path(),
                             (unsigned long long)name[0], (unsigned long long)name[1]);
    if (len < 0 || (size_t)len >= sizeof path) return NULL;
    oos_room *room = calloc(1, sizeof *room);
    if (!room) return NULL;
    room->ranks = ranks;
    room->rank = rank;
    room->head_bytes = sizeof(head) + ranks * sizeof(seat) + (size_t)ranks * (ranks + 1) * sizeof(lane);
    room->file = file_open(path, room->head_bytes);
    void *at = room->file < 0
                   ? MAP_FAILED
                   : mmap(NULL, room->head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, room->file, 0);
    if (at != MAP_FAILED) {
        room->head = at;
        if (sit(room)) return room;
        munmap(at, room->head_bytes);
    }
    if (room->file >= 0) close(room->file);
    free(room);
    return NULL;
}

/* The file stays until the run ends: one who comes late reads what was left for him. */
void oos_room_leave(oos_room *room)
{
    if (!room) return;
    __atomic_store_n(&room->head->seats[room->rank].left, 1, __ATOMIC_SEQ_CST);
    step(room);
    munmap(room->head, room->head_bytes);
    close(room->file);
    free(room);
}

int oos_room_full(const oos_room *room, int to, uint64_t number)
{
    if (to != OOS_ROOM_ALL)
        return __atomic_load_n(&lane_of(room, room->rank, to)->taken, __ATOMIC_ACQUIRE) + DEPTH > number ? -1
                                                                                                         : to;
    for (unsigned i = 0; i < room->ranks; i++)
        if (i != room->rank &&
            __atomic_load_n(&room->head->seats[i].done, __ATOMIC_ACQUIRE) + DEPTH <= number &&
            oos_room_peer(room, i) != OOS_PEER_GONE)
            return (int)i;
    return -1;
}

void oos_room_put(oos_room *room, int to, uint64_t number, const oos_parcel *parcel, const void *bytes)
{
    lane *out = lane_of(room, room->rank, to);
    oos_parcel put = *parcel;
    put.present = bytes && parcel->bytes <= OOS_PARCEL_BYTES &&
                  pwrite(room->file, bytes, parcel->bytes, bytes_at(room, room->rank, to, number)) ==
                      (ssize_t)parcel->bytes;
    out->parcels[number % DEPTH] = put;
    __atomic_store_n(&out->put, number + 1, __ATOMIC_RELEASE);
    step(room);
}

bool oos_room_look(const oos_room *room, unsigned from, int to, uint64_t number, oos_parcel *ret_parcel)
{
    const lane *in = lane_of(room, from, to);
    if (__atomic_load_n(&in->put, __ATOMIC_ACQUIRE) <= number) return false;
    *ret_parcel = in->parcels[number % DEPTH];
    return true;
}

bool oos_room_read(const oos_room *room, unsigned from, int to, uint64_t number, uint64_t offset,
                   uint64_t bytes, void *ret_bytes)
{
    if (offset > OOS_PARCEL_BYTES || bytes > OOS_PARCEL_BYTES - offset) return false;
    return pread(room->file, ret_bytes, bytes, bytes_at(room, from, to, number) + (off_t)offset) ==
           (ssize_t)bytes;
}

static void pages_give(const oos_room *room, unsigned from, int to, uint64_t number)
{
    if (lane_of(room, from, to)->parcels[number % DEPTH].bytes <= KEPT_BYTES) return;
    fallocate(room->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, bytes_at(room, from, to, number),
              OOS_PARCEL_BYTES);
}

void oos_room_finish(oos_room *room, uint64_t number, bool all_came)
{
    /* all are at this one, so nobody reads the one before any more */
    if (all_came && number) pages_give(room, room->rank, OOS_ROOM_ALL, number - 1);
    __atomic_store_n(&room->head->seats[room->rank].done, number + 1, __ATOMIC_RELEASE);
    step(room);
}

void oos_room_take(oos_room *room, unsigned from, uint64_t number)
{
    pages_give(room, from, (int)room->rank, number);
    __atomic_store_n(&lane_of(room, from, (int)room->rank)->taken, number + 1, __ATOMIC_RELEASE);
    step(room);
}

oos_peer oos_room_peer(const oos_room *room, unsigned rank)
{
    const seat *s = &room->head->seats[rank];
    uint32_t const pid = __atomic_load_n(&s->pid, __ATOMIC_ACQUIRE);
    if (!pid) return OOS_PEER_ABSENT;
    if (__atomic_load_n(&s->left, __ATOMIC_ACQUIRE)) return OOS_PEER_GONE;
    uint64_t const start = __atomic_load_n(&s->start_ticks, __ATOMIC_ACQUIRE),
                   now = oos_process_start_ticks(pid);
    return now && (!start || now == start) ? OOS_PEER_HERE : OOS_PEER_GONE;
}

uint32_t oos_room_tick(const oos_room *room)
{
    return __atomic_load_n(&room->head->tick, __ATOMIC_SEQ_CST);
}

void oos_room_wait(const oos_room *room, uint32_t tick, unsigned ms)
{
    struct timespec const most = {ms / 1000, (long)(ms % 1000) * 1000000};
    if (syscall(SYS_futex, &room->head->tick, FUTEX_WAIT, tick, &most, NULL, 0) < 0 && errno != EAGAIN &&
        errno != ETIMEDOUT && errno != EINTR) {
        struct timespec const pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
}

void oos_room_break(oos_room *room, uint32_t why)
{
    uint32_t whole = 0;
    __atomic_compare_exchange_n(&room->head->broken, &whole, why, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    step(room);
}

uint32_t oos_room_broken(const oos_room *room)
{
    return __atomic_load_n(&room->head->broken, __ATOMIC_SEQ_CST);
}

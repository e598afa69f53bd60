/* Small collectives move their data: every rank leaves its part in the room of the communicator and takes what it needs from there. Large
 * ones, and those that a graph captures, are launches and nothing else, as kernels are.
 *
 * A rank that is late is waited for, as its peers' streams would; one that is dead is an error at once; and one that does not come for
 * long ends the exchange: from then on the communicator moves nothing. */
#include "phantom/nccl/nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    ABSENT_SECONDS = 120, /* for a rank that never came; NCCL waits for it where communicators are made */
    LATE_SECONDS = 600,   /* PyTorch's own patience with NCCL */
    LOOK_MS = 100
};
enum { BROKEN_DEAD = 1, BROKEN_LATE, BROKEN_OTHER };

static __thread unsigned group_depth;
static __thread struct {
    nccl_transfer *list;
    size_t count, capacity;
} group;
static __thread char last_error[160];

const char *nccl_last_error(void)
{
    return last_error;
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static double patience(bool absent)
{
    const char *word = getenv("OOMSIGHT_NCCL_SECONDS");
    char *end = NULL;
    unsigned long const seconds = word ? strtoul(word, &end, 10) : 0;
    if (word && end != word && seconds <= 86400) return (double)seconds;
    return absent ? ABSENT_SECONDS : LATE_SECONDS;
}

/* Once for each communicator, where the words of a dry run go. */
static void tell(communicator *comm, const char *text)
{
    if (__atomic_exchange_n(&comm->told, 1, __ATOMIC_RELAXED)) return;
    char line[320];
    int const len =
        snprintf(line, sizeof line,
                 "oomsight dryrun: NCCL: %s; this communicator of %d ranks moves no data any more\n", text,
                 comm->ranks);
    if (len > 0 && write(STDERR_FILENO, line, (size_t)len < sizeof line ? (size_t)len : sizeof line - 1) < 0)
        (void)0;
}

static bool for_all(const nccl_transfer *w)
{
    return w->kind != SEND && w->kind != RECEIVE;
}

static uint64_t given_bytes(const nccl_transfer *w)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(w->count, nccl_type_bytes(w->type), &bytes)) return UINT64_MAX;
    if (w->kind == REDUCE_SCATTER && __builtin_mul_overflow(bytes, (uint64_t)w->comm->ranks, &bytes))
        return UINT64_MAX;
    return bytes;
}

static bool is_reduction(const nccl_transfer *w)
{
    return w->kind == ALL_REDUCE || w->kind == REDUCE || w->kind == REDUCE_SCATTER;
}

/* Both ends in device memory or pinned memory of ours, where every byte between can be read and written. */
static bool is_ours(const void *at, uint64_t bytes)
{
    oos_range range;
    return oos_range_find(at, &range) && (!bytes || oos_range_find((const char *)at + bytes - 1, &range));
}

static bool moves(const nccl_transfer *w, const void *stream)
{
    const communicator *comm = w->comm;
    uint64_t capture;
    oos_graph *graph;
    if (!comm->room || given_bytes(w) > OOS_PARCEL_BYTES || !nccl_type_bytes(w->type)) return false;
    if (is_reduction(w) && !nccl_reduces(w->type, w->op)) return false;
    if (w->peer < 0 || w->peer >= comm->ranks) return false;
    return !oos_capture_status(stream, &capture, &graph);
}

static oos_parcel parcel_of(const nccl_transfer *w)
{
    /* a scaled sum has another number in every process */
    return (oos_parcel){.kind = w->kind == RECEIVE ? SEND : w->kind,
                        .type = for_all(w) ? (uint32_t)w->type : 0,
                        .op = is_reduction(w) ? (uint32_t)(w->op > 5 ? 5 : w->op) : 0,
                        .root = for_all(w) ? (uint32_t)w->peer : 0,
                        .bytes = given_bytes(w)};
}

static bool is_same(const oos_parcel *a, const oos_parcel *b)
{
    return a->kind == b->kind && a->type == b->type && a->op == b->op && a->root == b->root &&
           a->bytes == b->bytes;
}

static bool takes_from(const nccl_transfer *w, int rank)
{
    if (w->kind == BROADCAST) return rank == w->peer;
    if (w->kind == REDUCE) return w->comm->rank == w->peer;
    return true;
}

static int lane_to(const nccl_transfer *w)
{
    return for_all(w) ? OOS_ROOM_ALL : w->comm->rank;
}

/* Of the parcels that it needs, the first that is not there yet: its rank, or -1. Sets ret_present when all have their bytes. */
static int missing(nccl_transfer *w, bool *ret_present)
{
    oos_parcel const own = parcel_of(w);
    *ret_present = true;
    for (int rank = 0; rank < w->comm->ranks; rank++) {
        oos_parcel there;
        if (for_all(w) ? !takes_from(w, rank) : rank != w->peer) continue;
        if (!oos_room_look(w->comm->room, (unsigned)rank, lane_to(w), w->number, &there)) return rank;
        if (!is_same(&own, &there)) {
            oos_room_break(w->comm->room, BROKEN_OTHER);
            return rank;
        }
        *ret_present = *ret_present && there.present;
    }
    return -1;
}

static void reduce(const nccl_transfer *w, uint64_t *sums, char *values, char *to)
{
    const communicator *comm = w->comm;
    uint64_t const bytes = w->count * nccl_type_bytes(w->type);
    uint64_t const offset = w->kind == REDUCE_SCATTER ? bytes * (uint64_t)comm->rank : 0;
    for (int rank = 0; rank < comm->ranks; rank++) {
        if (!oos_room_read(comm->room, (unsigned)rank, OOS_ROOM_ALL, w->number, offset, bytes, values))
            return;
        nccl_reduce_add(sums, values, w->count, w->type, w->op, rank == 0);
    }
    nccl_reduce_end(sums, to, w->count, w->type, w->op, comm->ranks);
}

static void collect(const nccl_transfer *w)
{
    const communicator *comm = w->comm;
    uint64_t const bytes = w->count * nccl_type_bytes(w->type);
    uint64_t const all = w->kind == ALL_GATHER ? bytes * (uint64_t)comm->ranks : bytes;
    if (!bytes || (w->kind == REDUCE && comm->rank != w->peer) || !is_ours(w->to, all)) return;
    oos_range_touch(w->to);
    if (w->kind == ALL_GATHER) {
        for (int rank = 0; rank < comm->ranks; rank++)
            if (!oos_room_read(comm->room, (unsigned)rank, OOS_ROOM_ALL, w->number, 0, bytes,
                               (char *)w->to + (uint64_t)rank * bytes))
                return;
    } else if (is_reduction(w)) {
        uint64_t *sums = malloc(w->count * sizeof *sums);
        char *values = malloc(bytes);
        if (sums && values) reduce(w, sums, values, w->to);
        free(sums);
        free(values);
    } else
        oos_room_read(comm->room, (unsigned)w->peer, lane_to(w), w->number, 0, bytes, w->to);
}

/* As far as it goes without waiting. Returns the rank that it waits for, -1 when it is done. */
static int advance(nccl_transfer *w)
{
    communicator *comm = w->comm;
    int const to = for_all(w) ? OOS_ROOM_ALL : w->peer;
    bool present;
    if (!w->put && w->kind != RECEIVE) {
        int const slow = oos_room_full(comm->room, to, w->number);
        if (slow >= 0) return slow;
        oos_parcel const parcel = parcel_of(w);
        bool const gives = w->kind != BROADCAST || comm->rank == w->peer;
        oos_room_put(comm->room, to, w->number, &parcel,
                     gives && is_ours(w->from, parcel.bytes) ? w->from : NULL);
        w->put = true;
    }
    if (w->kind == SEND) return -1;
    int const waits_for = missing(w, &present);
    if (waits_for >= 0) return waits_for;
    if (present) collect(w);
    if (w->kind == RECEIVE)
        oos_room_take(comm->room, (unsigned)w->peer, w->number);
    else
        oos_room_finish(comm->room, w->number, w->kind != BROADCAST && w->kind != REDUCE);
    return -1;
}

void nccl_drop(communicator *comm)
{
    if (__atomic_sub_fetch(&comm->references, 1, __ATOMIC_ACQ_REL)) return;
    oos_room_leave(comm->room);
    free(comm);
}

/* The exchange is over for this communicator, whoever said so. */
static int broken(communicator *comm)
{
    uint32_t const why = oos_room_broken(comm->room);
    if (!why) return NCCL_OK; /* aborted by its own process */
    if (why == BROKEN_DEAD) {
        snprintf(last_error, sizeof last_error, "oomsight dryrun: one of %d ranks has ended", comm->ranks);
        return NCCL_REMOTE_ERROR;
    }
    tell(comm, why == BROKEN_LATE ? "a rank has not come in time" : "ranks call different collectives");
    return NCCL_OK;
}

/* What came over the rank that one waits for; breaks the room when it is not to come. */
static void look_after(communicator *comm, int rank, double waited)
{
    oos_peer const peer = oos_room_peer(comm->room, (unsigned)rank);
    if (peer == OOS_PEER_GONE)
        oos_room_break(comm->room, BROKEN_DEAD);
    else if (waited > patience(peer == OOS_PEER_ABSENT))
        oos_room_break(comm->room, BROKEN_LATE);
}

/* All of them, in the order in which they can. */
static int finish(nccl_transfer *list, size_t count)
{
    int status = NCCL_OK;
    double since = now(), looked = since;
    for (size_t left = count; left;) {
        communicator *waits = NULL;
        uint32_t tick = 0;
        int rank = -1;
        bool moved = false;
        for (size_t i = 0; i < count; i++) {
            nccl_transfer *w = &list[i];
            if (w->done) continue;
            bool const put = w->put;
            uint32_t const seen = oos_room_tick(w->comm->room);
            int const waits_for = advance(w);
            bool const over = waits_for >= 0 && (oos_room_broken(w->comm->room) ||
                                                 __atomic_load_n(&w->comm->ended, __ATOMIC_ACQUIRE));
            moved = moved || put != w->put || waits_for < 0 || over;
            if (waits_for < 0 || over) {
                int const code = over ? broken(w->comm) : NCCL_OK;
                status = status ? status : code;
                w->done = true;
                left--;
            } else if (!waits) {
                waits = w->comm;
                rank = waits_for;
                tick = seen;
            }
        }
        if (moved) {
            since = looked = now();
            continue;
        }
        oos_room_wait(waits->room, tick, LOOK_MS);
        if (now() - looked < LOOK_MS / 1e3) continue;
        looked = now();
        look_after(waits, rank, looked - since);
    }
    for (size_t i = 0; i < count; i++) nccl_drop(list[i].comm);
    return status;
}

static void number(nccl_transfer *w)
{
    communicator *comm = w->comm;
    uint64_t *next = w->kind == SEND      ? &comm->sent[w->peer]
                     : w->kind == RECEIVE ? &comm->received[w->peer]
                                          : &comm->next;
    w->number = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&comm->references, 1, __ATOMIC_RELAXED);
}

static bool group_add(const nccl_transfer *w)
{
    if (group.count == group.capacity) {
        size_t const capacity = group.capacity ? 2 * group.capacity : 64;
        nccl_transfer *list = realloc(group.list, capacity * sizeof *list);
        if (!list) return false;
        group.list = list;
        group.capacity = capacity;
    }
    group.list[group.count++] = *w;
    return true;
}

int nccl_move(nccl_transfer given, const void *stream)
{
    oos_stream_launch(stream);
    if (!given.comm) return NCCL_INVALID_ARGUMENT;
    if (given.comm->ranks == 1 && for_all(&given)) {
        uint64_t const bytes = given_bytes(&given);
        if (given.to != given.from && bytes <= OOS_PARCEL_BYTES && is_ours(given.from, bytes) &&
            is_ours(given.to, bytes))
            oos_copy(given.to, given.from, bytes);
        return NCCL_OK;
    }
    if (!moves(&given, stream)) return NCCL_OK;
    if (oos_room_broken(given.comm->room)) return broken(given.comm);
    number(&given);
    if (group_depth && group_add(&given)) return NCCL_OK;
    return finish(&given, 1);
}

void nccl_group_begin(void)
{
    group_depth++;
}

int nccl_group_end(void)
{
    if (!group_depth || --group_depth) return NCCL_OK;
    nccl_transfer *list = group.list;
    int const status = finish(list, group.count);
    memset(&group, 0, sizeof group);
    free(list);
    return status;
}

/* Leaves its own when there is a place; true when that of `rank` is there. */
static bool exchange_step(communicator *comm, uint64_t at, const oos_parcel *parcel, const void *own,
                          bool *put, int rank)
{
    oos_parcel there;
    if (!*put && oos_room_full(comm->room, OOS_ROOM_ALL, at) < 0) {
        oos_room_put(comm->room, OOS_ROOM_ALL, at, parcel, own);
        *put = true;
    }
    if (!*put || !oos_room_look(comm->room, (unsigned)rank, OOS_ROOM_ALL, at, &there)) return false;
    if (!is_same(parcel, &there) || !there.present) oos_room_break(comm->room, BROKEN_OTHER);
    return true;
}

bool nccl_exchange(communicator *comm, const void *own, uint64_t bytes, void *ret_all)
{
    if (!comm->room || bytes > OOS_PARCEL_BYTES) return false;
    uint64_t const at = __atomic_fetch_add(&comm->next, 1, __ATOMIC_RELAXED);
    oos_parcel const parcel = {.kind = UINT32_MAX, .bytes = bytes};
    double const since = now();
    double looked = since;
    bool put = false;
    for (int rank = 0; rank < comm->ranks && !oos_room_broken(comm->room);) {
        uint32_t const tick = oos_room_tick(comm->room);
        if (exchange_step(comm, at, &parcel, own, &put, rank)) {
            if (!oos_room_read(comm->room, (unsigned)rank, OOS_ROOM_ALL, at, 0, bytes,
                               (char *)ret_all + (uint64_t)rank * bytes))
                oos_room_break(comm->room, BROKEN_OTHER);
            rank++;
            continue;
        }
        oos_room_wait(comm->room, tick, LOOK_MS);
        if (now() - looked < LOOK_MS / 1e3) continue;
        looked = now();
        look_after(comm, rank, looked - since);
    }
    if (oos_room_broken(comm->room)) return false;
    oos_room_finish(comm->room, at, true);
    return true;
}

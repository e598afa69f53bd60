/* Small collectives move their data between the processes of a run, and no peer, dead, late or wrong, holds anybody up for ever. */
#include "cuda.h"
#include "program.h"

#include <glob.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

enum { RANKS = 3, INT8 = 0, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16 };
enum { SUM = 0, PROD, MAX, MIN, AVG };
enum { REMOTE_ERROR = 6 };

static nccl_id id;

/* Every rank in a process of its own; the sum of what went wrong. */
static int with_ranks(const char *path, int ranks, int (*body)(void *))
{
    pid_t children[8];
    int wrong = 0;
    ncclGetUniqueId(&id);
    for (int rank = 0; rank < ranks; rank++) children[rank] = child_start(path, body, (void *)(intptr_t)rank);
    for (int rank = 0; rank < ranks; rank++) wrong += child_end(children[rank]);
    return wrong;
}

static int enter(int rank, int ranks, void **comm)
{
    EXPECT(cudaSetDevice(0) == 0);
    EXPECT(ncclCommInitRank(comm, ranks, id, rank) == 0);
    return 0;
}

static double seconds(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void *device(uint64_t bytes, const void *content, uint64_t content_bytes)
{
    void *at = NULL;
    if (cudaMalloc(&at, bytes) != 0) return NULL;
    if (content) cudaMemcpy(at, content, content_bytes, 1);
    return at;
}

static uint64_t bytes_of(int type)
{
    static const uint8_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return bytes[type];
}

/* Small whole numbers, which every type holds exactly. */
static void put(void *at, int type, int value)
{
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};
    static const uint16_t brains[] = {0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0};
    if (type == FLOAT16 || type == BFLOAT16)
        memcpy(at, type == FLOAT16 ? &halves[value] : &brains[value], 2);
    else if (type == FLOAT32)
        memcpy(at, &(float){(float)value}, 4);
    else if (type == FLOAT64)
        memcpy(at, &(double){value}, 8);
    else
        memcpy(at, &(int64_t){value}, bytes_of(type)); /* little-endian */
}

static int reductions(void *argument)
{
    int const rank = (int)(intptr_t)argument;
    static const int wanted[] = {[SUM] = 6, [PROD] = 6, [MAX] = 3, [MIN] = 1, [AVG] = 2};
    void *comm;
    if (enter(rank, RANKS, &comm)) return 1;
    for (int type = INT8; type <= BFLOAT16; type++)
        for (int op = SUM; op <= AVG; op++) {
            char own[16] = {0}, got[16] = {0}, want[16] = {0};
            uint64_t const bytes = bytes_of(type);
            put(own, type, rank + 1);
            put(own + bytes, type, 3 - rank);
            put(want, type, wanted[op]);
            put(want + bytes, type, wanted[op]);
            void *at = device(16, own, 16);
            EXPECT(ncclAllReduce(at, at, 2, type, op, comm, NULL) == 0);
            cudaMemcpy(got, at, 16, 2);
            if (memcmp(got, want, 2 * bytes) != 0) fprintf(stderr, "type %d, operation %d\n", type, op);
            EXPECT(memcmp(got, want, 2 * bytes) == 0);
            cudaFree(at);
        }
    int8_t const below[2] = {(int8_t)(-5 - rank), (int8_t)(rank - 1)};
    int8_t most[2];
    void *at = device(2, below, 2);
    EXPECT(ncclAllReduce(at, at, 2, INT8, MAX, comm, NULL) == 0);
    cudaMemcpy(most, at, 2, 2);
    EXPECT(most[0] == -5 && most[1] == 1);

    int scaled;
    float half = 0.5F, own = (float)rank + 1, sum;
    void *number = device(4, &own, 4);
    EXPECT(ncclRedOpCreatePreMulSum(&scaled, &half, FLOAT32, 1, comm) == 0);
    EXPECT(ncclAllReduce(number, number, 1, FLOAT32, scaled, comm, NULL) == 0);
    cudaMemcpy(&sum, number, 4, 2);
    EXPECT(sum > 2.99F && sum < 3.01F);
    return ncclCommDestroy(comm);
}

static void every_reduction_of_every_type_is_computed(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(with_ranks(path, RANKS, reductions), 0);
    run_remove(segment, path);
}

/* 1.5 + 1.25 + ... in half precision is rounded once, to the nearest: what the CPU of a test knows without a type for it. */
static int halves(void *argument)
{
    int const rank = (int)(intptr_t)argument;
    static const uint16_t given[4][3] = {{0x6800, 0x3c00, 0},       /* 2048 + 1: a tie, to even */
                                         {0x6800, 0x4200, 0},       /* 2048 + 3: a tie, upwards */
                                         {0x7bff, 0x7bff, 0},       /* too large */
                                         {0x0001, 0x0001, 0x8001}}; /* the smallest ones */
    static const uint16_t want[4] = {0x6800, 0x6802, 0x7c00, 0x0001};
    uint16_t own[4], got[4];
    void *comm;
    if (enter(rank, RANKS, &comm)) return 1;
    for (int i = 0; i < 4; i++) own[i] = given[i][rank];
    void *at = device(8, own, 8);
    EXPECT(ncclAllReduce(at, at, 4, FLOAT16, SUM, comm, NULL) == 0);
    cudaMemcpy(got, at, 8, 2);
    EXPECT(memcmp(got, want, 8) == 0);
    return 0;
}

static void half_precision_is_rounded_to_the_nearest(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(with_ranks(path, RANKS, halves), 0);
    run_remove(segment, path);
}

static int movements(void *argument)
{
    int const rank = (int)(intptr_t)argument;
    int32_t own[RANKS], got[RANKS] = {0};
    void *comm;
    if (enter(rank, RANKS, &comm)) return 1;
    for (int i = 0; i < RANKS; i++) own[i] = 10 * rank + i;
    void *from = device(sizeof own, own, sizeof own), *to = device(sizeof got, got, sizeof got);

    EXPECT(ncclAllGather(from, to, 1, INT32, comm, NULL) == 0);
    cudaMemcpy(got, to, sizeof got, 2);
    EXPECT(got[0] == 0 && got[1] == 10 && got[2] == 20);

    EXPECT(ncclReduceScatter(from, to, 1, INT32, SUM, comm, NULL) == 0);
    cudaMemcpy(got, to, sizeof got, 2);
    EXPECT(got[0] == 30 + 3 * rank && got[1] == 10);

    for (int again = 0; again < 20; again++) { /* the root is ahead of the others, and waits for a place */
        if (rank == 1) cudaMemcpy(from, &again, sizeof again, 1);
        EXPECT(ncclBroadcast(from, to, 2, INT32, 1, comm, NULL) == 0);
        cudaMemcpy(got, to, sizeof got, 2);
        EXPECT(got[0] == again && got[1] == 11);
    }
    cudaMemcpy(from, own, sizeof own, 1);
    EXPECT(ncclReduce(from, to, 3, INT32, MAX, 2, comm, NULL) == 0);
    cudaMemcpy(got, to, sizeof got, 2);
    EXPECT(rank != 2 || (got[0] == 20 && got[2] == 22));
    EXPECT(rank == 2 || got[1] == 11); /* only the root gets it */

    EXPECT(ncclGroupStart() == 0); /* everybody has something for everybody, itself included */
    for (int peer = 0; peer < RANKS; peer++) {
        EXPECT(ncclSend((char *)from + 4 * peer, 1, INT32, peer, comm, NULL) == 0);
        EXPECT(ncclRecv((char *)to + 4 * peer, 1, INT32, peer, comm, NULL) == 0);
    }
    EXPECT(ncclGroupEnd() == 0);
    cudaMemcpy(got, to, sizeof got, 2);
    for (int peer = 0; peer < RANKS; peer++) EXPECT(got[peer] == 10 * peer + rank);

    EXPECT(ncclGroupStart() == 0); /* more than a lane has places for, in both directions */
    for (int i = 0; i < 50; i++) {
        EXPECT(ncclSend(from, 3, INT32, (rank + 1) % RANKS, comm, NULL) == 0);
        EXPECT(ncclRecv(to, 3, INT32, (rank + RANKS - 1) % RANKS, comm, NULL) == 0);
    }
    EXPECT(ncclGroupEnd() == 0);
    cudaMemcpy(got, to, sizeof got, 2);
    EXPECT(got[2] == 10 * ((rank + RANKS - 1) % RANKS) + 2);
    return ncclCommDestroy(comm);
}

static void data_is_gathered_scattered_broadcast_and_sent(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(with_ranks(path, RANKS, movements), 0);
    run_remove(segment, path);
}

static int parts(void *argument)
{
    int const rank = (int)(intptr_t)argument;
    void *comm, *part, *none;
    int ranks, own;
    if (enter(rank, 4, &comm)) return 1;
    EXPECT(ncclCommSplit(comm, rank % 2, -rank, &part, NULL) == 0);
    EXPECT(ncclCommCount(part, &ranks) == 0 && ranks == 2);
    EXPECT(ncclCommUserRank(part, &own) == 0 && own == (rank < 2)); /* by their keys */
    int32_t const value = rank;
    int32_t sum;
    void *at = device(4, &value, 4);
    EXPECT(ncclAllReduce(at, at, 1, INT32, SUM, part, NULL) == 0);
    cudaMemcpy(&sum, at, 4, 2);
    EXPECT(sum == (rank % 2 ? 4 : 2));
    EXPECT(ncclCommSplit(comm, rank ? 0 : -1, 0, &none, NULL) == 0 && !none == !rank);
    return 0;
}

static void a_part_of_a_communicator_has_its_own_ranks(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(with_ranks(path, 4, parts), 0);
    run_remove(segment, path);
}

static int one_process(void *unused)
{
    (void)unused;
    void *comms[2], *at[2];
    int32_t value, sum[2];
    EXPECT(cudaSetDevice(0) == 0 && ncclCommInitAll(comms, 2, NULL) == 0);
    EXPECT(ncclGroupStart() == 0);
    for (int i = 0; i < 2; i++) {
        value = 5 + i;
        at[i] = device(4, &value, 4);
        EXPECT(ncclAllReduce(at[i], at[i], 1, INT32, SUM, comms[i], NULL) == 0);
    }
    EXPECT(ncclGroupEnd() == 0);
    for (int i = 0; i < 2; i++) cudaMemcpy(&sum[i], at[i], 4, 2);
    EXPECT(sum[0] == 11 && sum[1] == 11);
    return 0;
}

static void a_process_with_all_ranks_meets_itself(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 2);
    assert_int_equal(in_child(path, one_process, NULL), 0);
    run_remove(segment, path);
}

static int peer_dies(void *argument)
{
    int const rank = (int)(intptr_t)argument;
    void *comm;
    if (enter(rank, 2, &comm)) return 1;
    int32_t const value = 7;
    void *at = device(4, &value, 4);
    EXPECT(ncclAllReduce(at, at, 1, INT32, SUM, comm, NULL) == 0);
    if (rank == 1) {
        usleep(300000);
        _exit(0);
    }
    double const begin = seconds();
    EXPECT(ncclAllReduce(at, at, 1, INT32, SUM, comm, NULL) == REMOTE_ERROR);
    EXPECT(ncclAllReduce(at, at, 1, INT32, SUM, comm, NULL) == REMOTE_ERROR);
    EXPECT(seconds() - begin < 20);
    return ncclCommDestroy(comm);
}

static void a_dead_peer_is_an_error_and_nobody_hangs(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(with_ranks(path, 2, peer_dies), 0);
    run_remove(segment, path);
}

static int peer_stays_away(void *argument)
{
    (void)argument;
    int32_t const value = 7;
    int32_t got;
    void *comm;
    setenv("OOMSIGHT_NCCL_SECONDS", "1", 1);
    if (enter(0, 2, &comm)) return 1;
    void *at = device(4, &value, 4), *large = device(64 * MIB, NULL, 0);
    double begin = seconds();
    EXPECT(ncclAllReduce(large, large, 16 * MIB, INT32, SUM, comm, NULL) == 0 && seconds() - begin < 0.9);
    EXPECT(ncclAllReduce(at, at, 1, INT32, SUM, comm, NULL) == 0);
    EXPECT(seconds() - begin >= 1 && seconds() - begin < 20);
    cudaMemcpy(&got, at, 4, 2);
    EXPECT(got == 7);
    begin = seconds();
    for (int i = 0; i < 100; i++) EXPECT(ncclAllReduce(at, at, 1, INT32, SUM, comm, NULL) == 0);
    EXPECT(seconds() - begin < 0.9); /* once is enough */
    return 0;
}

static void a_peer_that_never_comes_ends_the_exchange(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(with_ranks(path, 1, peer_stays_away), 0);
    run_remove(segment, path);
}

static int ranks_differ(void *argument)
{
    int const rank = (int)(intptr_t)argument;
    int32_t const value[2] = {7, 8};
    int32_t got[2];
    void *comm;
    if (enter(rank, 2, &comm)) return 1;
    void *at = device(8, value, 8);
    EXPECT(ncclAllReduce(at, at, rank ? 2 : 1, INT32, SUM, comm, NULL) == 0);
    EXPECT(ncclAllReduce((void *)8, (void *)16, 1, INT32, SUM, comm, NULL) == 0); /* addresses of nobody */
    cudaMemcpy(got, at, 8, 2);
    EXPECT(got[0] == 7 && got[1] == 8);
    return 0;
}

static int strange_addresses(void *argument)
{
    int const rank = (int)(intptr_t)argument;
    int32_t const value = 3;
    int32_t sum;
    void *comm;
    if (enter(rank, 2, &comm)) return 1;
    void *at = device(4, &value, 4);
    EXPECT(ncclAllReduce((void *)8, (void *)16, 1, INT32, SUM, comm, NULL) == 0);
    EXPECT(ncclAllReduce(NULL, NULL, 0, INT32, SUM, comm, NULL) == 0);
    EXPECT(ncclBroadcast(at, at, 1, 77, 0, comm, NULL) == 0 &&
           ncclBroadcast(at, at, 1, INT32, 9, comm, NULL) == 0);
    EXPECT(ncclAllReduce(at, at, SIZE_MAX / 2, INT32, SUM, comm, NULL) == 0);
    EXPECT(ncclAllReduce(at, at, 1, INT32, SUM, comm, NULL) == 0);
    cudaMemcpy(&sum, at, 4, 2);
    EXPECT(sum == 6); /* the next one is in order */
    return 0;
}

static void wrong_calls_move_nothing_and_crash_nobody(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(with_ranks(path, 2, ranks_differ), 0);
    assert_int_equal(with_ranks(path, 2, strange_addresses), 0);
    run_remove(segment, path);
}

static int captured(void *unused)
{
    (void)unused;
    void *comm, *stream, *graph, *at = NULL;
    if (enter(0, 2, &comm)) return 1;
    EXPECT(cudaMalloc(&at, 4) == 0);
    EXPECT(cudaStreamCreateWithFlags(&stream, 0) == 0 && cudaStreamBeginCapture(stream, 0) == 0);
    double const begin = seconds();
    EXPECT(ncclAllReduce(at, at, 1, INT32, SUM, comm, stream) == 0 && seconds() - begin < 1);
    EXPECT(cudaStreamEndCapture(stream, &graph) == 0);
    return 0;
}

static void what_a_graph_captures_waits_for_nobody(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(with_ranks(path, 1, captured), 0);
    run_remove(segment, path);
}

static int open_to_others(void *argument)
{
    (void)argument;
    glob_t found;
    char pattern[128];
    void *comm, *again, *at = NULL;
    if (enter(0, 2, &comm)) return 1;
    snprintf(pattern, sizeof pattern, "%s.nccl.*", getenv(OOS_SEGMENT_ENV));
    EXPECT(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1);
    struct stat info;
    EXPECT(stat(found.gl_pathv[0], &info) == 0 && (info.st_mode & 0777) == 0600 && info.st_size < 1 << 20);
    EXPECT(chmod(found.gl_pathv[0], 0666) == 0);
    EXPECT(ncclCommInitRank(&again, 2, id, 1) == 0); /* a communicator, but not one that trusts that file */
    EXPECT(cudaMalloc(&at, 4) == 0);
    double const begin = seconds();
    EXPECT(ncclAllReduce(at, at, 1, INT32, SUM, again, NULL) == 0 && seconds() - begin < 1);
    globfree(&found);
    return 0;
}

static void a_file_that_others_can_write_is_not_used(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(with_ranks(path, 1, open_to_others), 0);
    run_remove(segment, path);
}

static int fast(void *argument)
{
    int const rank = (int)(intptr_t)argument;
    void *comm, *at = NULL;
    if (enter(rank, 2, &comm)) return 1;
    EXPECT(cudaMalloc(&at, MIB) == 0 && cudaMemset(at, 0, MIB) == 0);
    for (int i = 0; i < 200; i++) EXPECT(ncclAllReduce(at, at, MIB / 4, FLOAT32, SUM, comm, NULL) == 0);
    glob_t found;
    char pattern[128];
    struct stat info;
    snprintf(pattern, sizeof pattern, "%s.nccl.*", getenv(OOS_SEGMENT_ENV));
    EXPECT(glob(pattern, 0, NULL, &found) == 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        EXPECT(stat(found.gl_pathv[i], &info) == 0 && (uint64_t)info.st_blocks * 512 <= 6 * MIB);
    globfree(&found);
    return 0;
}

static void what_was_taken_gives_its_room_back(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(with_ranks(path, 2, fast), 0);
    run_remove(segment, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reduction_of_every_type_is_computed),
        cmocka_unit_test(half_precision_is_rounded_to_the_nearest),
        cmocka_unit_test(data_is_gathered_scattered_broadcast_and_sent),
        cmocka_unit_test(a_part_of_a_communicator_has_its_own_ranks),
        cmocka_unit_test(a_process_with_all_ranks_meets_itself),
        cmocka_unit_test(a_dead_peer_is_an_error_and_nobody_hangs),
        cmocka_unit_test(a_peer_that_never_comes_ends_the_exchange),
        cmocka_unit_test(wrong_calls_move_nothing_and_crash_nobody),
        cmocka_unit_test(what_a_graph_captures_waits_for_nobody),
        cmocka_unit_test(a_file_that_others_can_write_is_not_used),
        cmocka_unit_test(what_was_taken_gives_its_room_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

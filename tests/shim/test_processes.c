/* Several processes share the devices of one run, and nothing that happens to one of them is lost or kept. */
#include "cuda.h"
#include "program.h"

#include <fcntl.h>
#include <signal.h>

static int hold_and_wait(void *ready)
{
    void *at;
    EXPECT(cudaMalloc(&at, 600 * MIB) == 0);
    char const byte = 'x';
    EXPECT(write(*(int *)ready, &byte, 1) == 1);
    for (;;) pause();
}

static int take_600(void *expected)
{
    void *at;
    EXPECT(cudaMalloc(&at, 600 * MIB) == *(int *)expected);
    return 0;
}

static void a_killed_process_gives_its_memory_back(void **state)
{
    (void)state;
    char path[64], byte;
    int ready[2], out_of_memory = 2, fine = 0;
    oos_segment *segment = run_create(path, GIB, 10 * MIB, 1);
    assert_int_equal(pipe(ready), 0);
    pid_t const holder = child_start(path, hold_and_wait, &ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(in_child(path, take_600, &out_of_memory), 0);
    kill(holder, SIGKILL);
    siginfo_t ended;
    assert_int_equal(waitid(P_PID, (id_t)holder, &ended, WEXITED | WNOWAIT),
                     0); /* a zombie now, which must not count */
    assert_int_equal(in_child(path, take_600, &fine), 0);
    assert_true(segment->reaped_count >= 1);
    child_end(holder);
    run_remove(segment, path);
}

static void two_runs_do_not_see_each_other(void **state)
{
    (void)state;
    char one[64], other[64], byte;
    int ready[2], fine = 0;
    oos_segment *first = run_create(one, GIB, 0, 1), *second = run_create(other, GIB, 0, 1);
    assert_int_equal(pipe(ready), 0);
    pid_t const holder = child_start(one, hold_and_wait, &ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(in_child(other, take_600, &fine), 0);
    assert_true(first->devices[0].held_bytes == 600 * MIB && second->devices[0].peak_bytes == 600 * MIB);
    kill(holder, SIGKILL);
    child_end(holder);
    run_remove(first, one);
    run_remove(second, other);
}

static int grandchild(void *unused)
{
    (void)unused;
    void *at;
    EXPECT(cudaMalloc(&at, MIB) == 3); /* as after a fork on a real GPU: not initialised */
    EXPECT(nvmlInit_v2() == 0);        /* looking is allowed */
    return 0;
}

static int fork_with_context(void *path)
{
    void *at;
    EXPECT(cudaMalloc(&at, 100 * MIB) == 0);
    EXPECT(in_child(path, grandchild, NULL) == 0);
    size_t free_bytes, total_bytes;
    EXPECT(cudaMemGetInfo(&free_bytes, &total_bytes) == 0 && total_bytes - free_bytes == 100 * MIB);
    return 0;
}

static void a_fork_neither_doubles_nor_frees_memory(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(in_child(path, fork_with_context, path), 0);
    run_remove(segment, path);
}

static int second_device(void *unused)
{
    (void)unused;
    setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
    int count = 0;
    void *at;
    EXPECT(cudaGetDeviceCount(&count) == 0 && count == 2);
    EXPECT(cudaSetDevice(0) == 0 && cudaMalloc(&at, 10 * MIB) == 0);
    EXPECT(cudaSetDevice(2) == 101);
    return 0;
}

static void visible_devices_choose_among_those_of_the_run(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 3);
    assert_int_equal(in_child(path, second_device, NULL), 0);
    assert_true(segment->devices[2].peak_bytes == 10 * MIB);
    assert_true(segment->devices[0].peak_bytes == 0);
    run_remove(segment, path);
}

static int no_device(void *unused)
{
    (void)unused;
    int count = 7;
    void *at;
    EXPECT(cudaGetDeviceCount(&count) == 100 && count == 0);
    EXPECT(cudaMalloc(&at, 1) == 100 && cuInit(0) == 100 && nvmlInit_v2() == 9);
    return 0;
}

static void a_corrupt_segment_is_no_device_and_no_crash(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    segment->version = 77;
    assert_int_equal(in_child(path, no_device, NULL), 0);
    segment->version = OOS_SEGMENT_VERSION;
    segment->devices[0].spec.total_bytes = UINT64_MAX;
    assert_int_equal(in_child(path, no_device, NULL), 0);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(in_child(path, no_device, NULL), 0);
    assert_int_equal(in_child("/nowhere/at/all", no_device, NULL), 0);
    unlink(path);
}

static void a_lock_left_by_a_dead_process_is_taken_over(void **state)
{
    (void)state;
    char path[64];
    int fine = 0;
    oos_segment *segment = run_create(path, GIB, 0, 1);
    segment->lock = (uint64_t)4194303 << 32 | 12345; /* nobody */
    segment->devices[0].held_bytes = 900 * MIB;      /* a sum left half done */
    assert_int_equal(in_child(path, take_600, &fine), 0);
    run_remove(segment, path);
}

static int who_is_there(void *unused)
{
    (void)unused;
    struct {
        uint32_t pid, pad;
        uint64_t bytes, rest;
    } list[4];
    void *at, *handle;
    unsigned count = 4;
    EXPECT(cudaMalloc(&at, 100 * MIB) == 0 && nvmlInit_v2() == 0 &&
           nvmlDeviceGetHandleByIndex_v2(0, &handle) == 0);
    EXPECT(nvmlDeviceGetComputeRunningProcesses_v3(handle, &count, list) == 0);
    EXPECT(count == 1 && list[0].pid == (uint32_t)getpid() && list[0].bytes == 100 * MIB);
    return 0;
}

static void nvml_names_the_processes_and_their_bytes(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(in_child(path, who_is_there, NULL), 0);
    run_remove(segment, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_process_gives_its_memory_back),
        cmocka_unit_test(two_runs_do_not_see_each_other),
        cmocka_unit_test(a_fork_neither_doubles_nor_frees_memory),
        cmocka_unit_test(visible_devices_choose_among_those_of_the_run),
        cmocka_unit_test(a_corrupt_segment_is_no_device_and_no_crash),
        cmocka_unit_test(a_lock_left_by_a_dead_process_is_taken_over),
        cmocka_unit_test(nvml_names_the_processes_and_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

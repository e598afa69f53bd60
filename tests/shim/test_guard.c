/* The guard over the stand-ins: their own counters are the truth. Started with the guard preloaded. */
#include "cuda.h"
#include "program.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuMemRetainAllocationHandle(uint64_t *handle, void *at);
int cudaGetDeviceProperties_v2(char *properties, int device);
int cudaGetDriverEntryPointByVersion(const char *name, void **at, unsigned version, unsigned long long flags,
                                     int *status);
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *memory);
int cudaFreeAsync(void *at, void *stream);
int cudaMallocPitch(void **at, size_t *pitch, size_t width, size_t height);
int cudaMallocArray(void **at, const int *format, size_t width, size_t height, unsigned flags);
int cudaFreeArray(void *at);
int cudaDeviceReset(void);

enum { CONTEXT_MIB = 256, TOTAL_GIB = 8 };

typedef struct pair {
    oos_segment *device, *guard; /* the stand-in's, the guard's */
    char device_path[64], guard_path[80];
} pair;

static pair runs;

static void begin(uint64_t budget_bytes, uint64_t millionths)
{
    oos_device_spec const spec = {
        .name = "00000000:01:00.0", .total_bytes = 1, .before_bytes = 0, .before_known = 1};
    runs.device = run_create(runs.device_path, TOTAL_GIB * GIB, CONTEXT_MIB * MIB, 1);
    snprintf(runs.guard_path, sizeof runs.guard_path, "%s-guard", runs.device_path);
    unlink(runs.guard_path);
    assert_int_equal(oos_segment_create(runs.guard_path, &spec, 1, &runs.guard), OOS_SEGMENT_OK);
    runs.guard->budget_bytes = budget_bytes;
    runs.guard->budget_millionths = millionths;
    setenv(OOS_GUARD_ENV, runs.guard_path, 1);
}

static void end(void)
{
    run_remove(runs.device, runs.device_path);
    run_remove(runs.guard, runs.guard_path);
    unsetenv(OOS_GUARD_ENV);
}

static uint64_t guard_all(void)
{
    return runs.guard->devices[0].held_bytes + runs.guard->devices[0].outside_bytes;
}

static int fill(void *argument)
{
    (void)argument;
    void *at[64];
    unsigned count = 0;
    while (count < 64 && cudaMalloc(&at[count], 128 * MIB) == 0) count++;
    /* 2 GiB less the context are 14 of them */
    EXPECT(count == 14);
    EXPECT(cudaMalloc(&at[count], 2 * MIB) == 2);
    EXPECT(runs.device->devices[0].held_bytes == guard_all());
    EXPECT(cudaFree(at[3]) == 0);
    EXPECT(runs.device->devices[0].held_bytes == guard_all());
    EXPECT(cudaMalloc(&at[3], 128 * MIB) == 0);
    for (unsigned i = 0; i < count; i++) EXPECT(cudaFree(at[i]) == 0);
    EXPECT(runs.guard->devices[0].held_bytes == 0);
    return 0;
}

static void a_call_past_the_budget_is_refused_and_none_before(void **state)
{
    (void)state;
    begin(2 * GIB, 0);
    assert_int_equal(in_child(runs.device_path, fill, NULL), 0);
    assert_int_equal(runs.guard->failure_count, 2);
    assert_int_equal(runs.guard->devices[0].refused_count, 2);
    assert_int_equal(runs.guard->devices[0].peak_bytes, 2 * GIB);
    assert_int_equal(runs.device->failure_count, 0); /* the driver was not asked */
    end();
}

static int ask_everyone(void *argument)
{
    size_t free_bytes, total_bytes, by_driver, by_property;
    char properties[2048];
    unsigned long long memory[3];
    void *handle, *at;
    uint64_t const budget = *(uint64_t *)argument;
    EXPECT(cudaMemGetInfo(&free_bytes, &total_bytes) == 0);
    EXPECT(total_bytes == budget && free_bytes == budget - CONTEXT_MIB * MIB);
    EXPECT(cuDeviceTotalMem_v2(&by_driver, 0) == 0 && by_driver == budget);
    EXPECT(cudaGetDeviceProperties_v2(properties, 0) == 0);
    memcpy(&by_property, properties + 288, sizeof by_property);
    EXPECT(by_property == budget);
    EXPECT(nvmlInit_v2() == 0 && nvmlDeviceGetHandleByIndex_v2(0, &handle) == 0);
    EXPECT(nvmlDeviceGetMemoryInfo(handle, memory) == 0 && memory[0] == budget);
    EXPECT(cudaMalloc(&at, GIB) == 0);
    EXPECT(cudaMemGetInfo(&free_bytes, &total_bytes) == 0);
    EXPECT(free_bytes == budget - CONTEXT_MIB * MIB - GIB);
    EXPECT(nvmlDeviceGetMemoryInfo(handle, memory) == 0 && memory[2] == CONTEXT_MIB * MIB + GIB);
    return 0;
}

static void every_question_for_memory_shows_the_budget(void **state)
{
    (void)state;
    uint64_t budget = 3 * GIB;
    begin(budget, 0);
    assert_int_equal(in_child(runs.device_path, ask_everyone, &budget), 0);
    end();
    begin(0, 500000);
    budget = TOTAL_GIB * GIB / 1000000 * 500000;
    assert_int_equal(in_child(runs.device_path, ask_everyone, &budget), 0);
    end();
}

typedef struct allocation_prop {
    int type, handle_types, location_type, location_id;
    void *rest[2];
} allocation_prop;

static int virtual_memory(void *argument)
{
    (void)argument;
    allocation_prop const prop = {.type = 1, .location_type = 1};
    uint64_t handle, again, at;
    EXPECT(cudaSetDevice(0) == 0);
    EXPECT(cuMemCreate(&handle, 512 * MIB, &prop, 0) == 0);
    EXPECT(runs.guard->devices[0].held_bytes == 512 * MIB);
    EXPECT(cuMemAddressReserve(&at, GIB, 0, 0, 0) == 0);
    EXPECT(cuMemMap(at, 512 * MIB, 0, handle, 0) == 0);
    EXPECT(cuMemRelease(handle) == 0);
    EXPECT(runs.guard->devices[0].held_bytes == 512 * MIB); /* the mapping keeps it */
    EXPECT(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at) == 0);
    EXPECT(cuMemUnmap(at, 512 * MIB) == 0);
    EXPECT(runs.guard->devices[0].held_bytes == 512 * MIB); /* and so does the reference */
    EXPECT(cuMemRelease(again) == 0);
    EXPECT(runs.guard->devices[0].held_bytes == 0);
    EXPECT(cuMemCreate(&handle, 4 * GIB, &prop, 0) == 2);
    return 0;
}

static void memory_without_an_address_counts_until_nobody_holds_it(void **state)
{
    (void)state;
    begin(2 * GIB, 0);
    assert_int_equal(in_child(runs.device_path, virtual_memory, NULL), 0);
    assert_int_equal(runs.device->failure_count, 0);
    end();
}

static int by_name(void *argument)
{
    (void)argument;
    int (*take)(void **, size_t);
    void *at, *address = NULL;
    EXPECT(cudaSetDevice(0) == 0);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    EXPECT(library);
    address = dlsym(library, "cuMemAlloc_v2");
    memcpy(&take, &address, sizeof take);
    EXPECT(take(&at, 64 * MIB) == 0 && runs.guard->devices[0].held_bytes == 64 * MIB);
    EXPECT(cuGetProcAddress_v2("cuMemAlloc", &address, 12080, 0, NULL) == 0);
    memcpy(&take, &address, sizeof take);
    EXPECT(take(&at, 64 * MIB) == 0 && runs.guard->devices[0].held_bytes == 128 * MIB);
    EXPECT(cudaGetDriverEntryPointByVersion("cuMemAlloc", &address, 12080, 0, NULL) == 0);
    memcpy(&take, &address, sizeof take);
    EXPECT(take(&at, 64 * MIB) == 0 && runs.guard->devices[0].held_bytes == 192 * MIB);
    EXPECT(take(&at, 4 * GIB) == 2);
    EXPECT(dlsym(library, "cuNoSuchCall") == NULL && dlsym(library, "cuInit") != NULL);
    EXPECT(dlsym(RTLD_DEFAULT, "strlen") != NULL);
    return 0;
}

static void who_asks_for_a_function_by_name_is_counted_too(void **state)
{
    (void)state;
    begin(2 * GIB, 0);
    assert_int_equal(in_child(runs.device_path, by_name, NULL), 0);
    end();
}

/* In a fresh process: nobody has called cudaFree() before. */
static int by_a_second_runtime(void *argument)
{
    (void)argument;
    int (*give)(void *);
    void *at;
    EXPECT(cudaSetDevice(0) == 0 && cudaMalloc(&at, 64 * MIB) == 0);
    void *second = dlopen(getenv("SECOND_RUNTIME"), RTLD_NOW | RTLD_LOCAL);
    EXPECT(second);
    void *address = dlsym(second, "cudaFree");
    EXPECT(address);
    memcpy(&give, &address, sizeof give);
    EXPECT(give(NULL) == 801);
    EXPECT(cudaFree(at) == 0 && runs.guard->devices[0].held_bytes == 0);
    return 0;
}

static void a_second_runtime_answers_for_itself_alone(void **state)
{
    (void)state;
    begin(2 * GIB, 0);
    assert_int_equal(in_child(runs.device_path, by_a_second_runtime, NULL), 0);
    end();
}

static int take_and_wait(void *argument)
{
    void *at;
    EXPECT(cudaMalloc(&at, GIB) == 0);
    EXPECT(write(*(int *)argument, "x", 1) == 1);
    pause();
    return 0;
}

static int take_a_gib(void *argument)
{
    (void)argument;
    void *at;
    EXPECT(cudaMalloc(&at, GIB) == 0);
    return 0;
}

static void what_a_killed_process_held_is_free_again(void **state)
{
    (void)state;
    int ends[2];
    char byte;
    begin(1800 * MIB, 0);
    assert_int_equal(pipe(ends), 0);
    pid_t const pid = child_start(runs.device_path, take_and_wait, &ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    kill(pid, SIGKILL);
    child_end(pid);
    assert_int_equal(runs.guard->devices[0].held_bytes, GIB); /* nobody has looked yet */
    assert_int_equal(in_child(runs.device_path, take_a_gib, NULL), 0);
    close(ends[0]);
    close(ends[1]);
    end();
}

static int beyond_any_budget(void *argument)
{
    (void)argument;
    void *at;
    size_t free_bytes, total_bytes;
    EXPECT(cudaMalloc(&at, 6 * GIB) == 0);
    EXPECT(cudaMemGetInfo(&free_bytes, &total_bytes) == 0 && total_bytes == TOTAL_GIB * GIB);
    EXPECT(cudaFree(at) == 0);
    return 0;
}

static void without_its_segment_the_guard_is_not_there(void **state)
{
    (void)state;
    begin(GIB, 0);
    unsetenv(OOS_GUARD_ENV);
    assert_int_equal(in_child(runs.device_path, beyond_any_budget, NULL), 0);
    setenv(OOS_GUARD_ENV, "/no/such/file", 1);
    assert_int_equal(in_child(runs.device_path, beyond_any_budget, NULL), 0);
    setenv(OOS_GUARD_ENV, runs.guard_path, 1);
    runs.guard->version = 77;
    assert_int_equal(in_child(runs.device_path, beyond_any_budget, NULL), 0);
    end();
}

static int pin_and_reserve(void *argument)
{
    (void)argument;
    void *at;
    EXPECT(cudaHostAlloc(&at, 64 * MIB, 0) == 0);
    EXPECT(runs.guard->processes[0].pinned_bytes == 64 * MIB);
    EXPECT(cudaFreeHost(at) == 0 && runs.guard->processes[0].pinned_bytes == 0);
    runs.guard->reserve_bytes = (uint64_t)1 << 49; /* more than any host has: nothing is left */
    EXPECT(cudaMalloc(&at, 2 * MIB) == 2);
    EXPECT(cudaHostAlloc(&at, 2 * MIB, 0) == 2);
    return 0;
}

static void pinned_memory_is_counted_and_the_host_keeps_its_reserve(void **state)
{
    (void)state;
    begin(0, 0);
    assert_int_equal(in_child(runs.device_path, pin_and_reserve, NULL), 0);
    assert_int_equal(runs.guard->failure_count, 2);
    assert_int_equal(runs.guard->failures[0].host, 1);
    end();
}

static void *churn(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < 400; i++) {
        void *at;
        if (cudaMalloc(&at, (2 + i % 7 * 2) * MIB) == 0) cudaFree(at);
    }
    return NULL;
}

static int many_threads(void *argument)
{
    (void)argument;
    pthread_t threads[8];
    for (unsigned i = 0; i < 8; i++) EXPECT(pthread_create(&threads[i], NULL, churn, NULL) == 0);
    for (unsigned i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    EXPECT(runs.guard->devices[0].held_bytes == 0);
    return 0;
}

static void threads_leave_nothing_behind(void **state)
{
    (void)state;
    begin(GIB, 0);
    assert_int_equal(in_child(runs.device_path, many_threads, NULL), 0);
    assert_true(runs.guard->devices[0].peak_bytes <= GIB);
    end();
}

static int ask_without_a_place(void *argument)
{
    (void)argument;
    size_t free_bytes, total_bytes;
    void *at;
    alarm(200); /* a lock that is kept ends the test */
    for (int again = 0; again < 2; again++) {
        EXPECT(cuDeviceTotalMem_v2(&total_bytes, 0) == 0);
        EXPECT(cudaMemGetInfo(&free_bytes, &total_bytes) == 0);
        EXPECT(cudaMalloc(&at, MIB) == 0);
        EXPECT(cudaFree(at) == 0);
    }
    return 0;
}

static void a_process_without_a_place_goes_on_uncounted(void **state)
{
    (void)state;
    begin(GIB, 0);
    for (unsigned i = 0; i < OOS_SEGMENT_PROCESSES; i++) {
        runs.guard->processes[i].start_ticks = oos_process_start_ticks((uint32_t)getpid());
        runs.guard->processes[i].pid = (uint32_t)getpid();
    }
    assert_int_equal(in_child(runs.device_path, ask_without_a_place, NULL), 0);
    assert_int_equal(runs.guard->devices[0].held_bytes, 0);
    assert_int_equal(runs.guard->unseen_count, 1); /* told once */
    assert_int_equal(runs.guard->unseen[0].why, OOS_UNSEEN_PLACE);
    end();
}

enum { MANY = 9000 }; /* more than twice as many as the table has places for at first */

static int hold_many(void *argument)
{
    (void)argument;
    static void *at[MANY];
    alarm(200); /* a table that is full ends the test */
    for (unsigned i = 0; i < MANY; i++) EXPECT(cudaMalloc(&at[i], 4096) == 0);
    EXPECT(runs.guard->devices[0].held_bytes == MANY * 4096);
    for (unsigned i = 0; i < MANY; i += 2) EXPECT(cudaFree(at[i]) == 0);
    for (unsigned i = 1; i < MANY; i += 2) EXPECT(cudaFree(at[i]) == 0);
    EXPECT(runs.guard->devices[0].held_bytes == 0);
    return 0;
}

static void thousands_of_blocks_are_found_again(void **state)
{
    (void)state;
    begin(2 * GIB, 0);
    assert_int_equal(in_child(runs.device_path, hold_many, NULL), 0);
    end();
}

static int take_sizes(void *argument)
{
    (void)argument;
    static const struct {
        uint64_t asked, charged;
    } sizes[] = {{1000, 1024},           {512, 512},        {MIB - 1, MIB}, {MIB, 2 * MIB},
                 {2 * MIB + 1, 4 * MIB}, {3 * MIB, 4 * MIB}};
    void *at;
    size_t pitch;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        EXPECT(cudaMalloc(&at, sizes[i].asked) == 0);
        EXPECT(runs.guard->devices[0].held_bytes == sizes[i].charged);
        EXPECT(cudaFree(at) == 0 && runs.guard->devices[0].held_bytes == 0);
    }
    EXPECT(cudaMallocPitch(&at, &pitch, 1000, 100) == 0 && runs.guard->devices[0].held_bytes == 102400);
    EXPECT(cudaFree(at) == 0);
    EXPECT(cudaMallocPitch(&at, &pitch, 1024, 100) == 0 && runs.guard->devices[0].held_bytes == 102400);
    EXPECT(cudaFree(at) == 0);
    return 0;
}

static void bytes_are_counted_in_the_units_of_the_driver(void **state)
{
    (void)state;
    begin(2 * GIB, 0);
    assert_int_equal(in_child(runs.device_path, take_sizes, NULL), 0);
    end();
}

static int take_and_reset(void *argument)
{
    (void)argument;
    void *at;
    for (unsigned i = 0; i < 3; i++) EXPECT(cudaMalloc(&at, 256 * MIB) == 0);
    EXPECT(runs.guard->devices[0].held_bytes == 768 * MIB);
    EXPECT(cudaDeviceReset() == 0);
    EXPECT(runs.guard->devices[0].held_bytes == 0);
    return 0;
}

static void a_reset_gives_everything_back(void **state)
{
    (void)state;
    begin(2 * GIB, 0);
    assert_int_equal(in_child(runs.device_path, take_and_reset, NULL), 0);
    end();
}

/* The stand-in has no arrays: it answers 0 and leaves the handle as it is. */
static int take_arrays(void *argument)
{
    (void)argument;
    enum { SPARSE = 0x40 };
    static const int rgba[5] = {8, 8, 8, 8, 1};
    void *at = (void *)0x1000, *other = (void *)0x2000;
    EXPECT(cudaMallocArray(&at, rgba, 1024, 1024, 0) == 0 && runs.guard->devices[0].held_bytes == 4 * MIB);
    EXPECT(cudaMallocArray(&other, rgba, 1024, 1024, SPARSE) == 0 &&
           runs.guard->devices[0].held_bytes == 4 * MIB);
    EXPECT(cudaFreeArray(at) == 0 && runs.guard->devices[0].held_bytes == 0);
    EXPECT(cudaMallocArray(&at, rgba, 1 << 20, 1024, 0) == 2);
    return 0;
}

static void arrays_count_by_their_elements(void **state)
{
    (void)state;
    begin(2 * GIB, 0);
    assert_int_equal(in_child(runs.device_path, take_arrays, NULL), 0);
    end();
}

static int see_no_host_memory(void *argument)
{
    (void)argument;
    size_t free_bytes, total_bytes;
    void *at;
    EXPECT(cudaMemGetInfo(&free_bytes, &total_bytes) == 0);
    EXPECT(free_bytes == (TOTAL_GIB * 1024 - CONTEXT_MIB) * MIB);
    runs.guard->reserve_bytes = (uint64_t)1 << 49; /* more than any host has: nothing is left */
    EXPECT(cudaMemGetInfo(&free_bytes, &total_bytes) == 0 && free_bytes == 0 &&
           total_bytes == TOTAL_GIB * GIB);
    EXPECT(cudaMalloc(&at, 2 * MIB) == 2);
    return 0;
}

static void on_unified_memory_the_host_is_shown_as_it_is(void **state)
{
    (void)state;
    begin(0, 0);
    assert_int_equal(in_child(runs.device_path, see_no_host_memory, NULL), 0);
    end();
}

static int ask_once(void *argument)
{
    (void)argument;
    size_t free_bytes, total_bytes;
    EXPECT(cudaMemGetInfo(&free_bytes, &total_bytes) == 0);
    return 0;
}

/* A run of the same share that holds a GiB; what it holds is not ours, unless nobody of it lives. */
static uint64_t outside_beside(uint64_t launcher_ticks)
{
    oos_device_spec const spec = {.name = "00000000:01:00.0", .total_bytes = 1};
    oos_segment *peer;
    char path[96];
    begin(2 * GIB, 0);
    snprintf(path, sizeof path, "%s-peer", runs.device_path);
    unlink(path);
    assert_int_equal(oos_segment_create(path, &spec, 1, &peer), OOS_SEGMENT_OK);
    peer->devices[0].held_bytes = GIB;
    peer->launcher_pid = (uint32_t)getpid();
    peer->launcher_start_ticks = launcher_ticks;
    strcpy(runs.guard->share, "both");
    strcpy(runs.guard->peers[0].path, path);
    assert_int_equal(in_child(runs.device_path, ask_once, NULL), 0);
    uint64_t const outside = runs.guard->devices[0].outside_bytes;
    run_remove(peer, path);
    end();
    return outside;
}

static void a_peer_counts_while_its_launcher_lives(void **state)
{
    (void)state;
    uint64_t const ticks = oos_process_start_ticks((uint32_t)getpid());
    assert_int_equal(outside_beside(ticks), 0); /* all that is used is the peer's */
    assert_int_equal(outside_beside(ticks + 1), CONTEXT_MIB * MIB);
}

static int map_two_and_unmap_once(void *argument)
{
    (void)argument;
    allocation_prop const prop = {.type = 1, .location_type = 1};
    uint64_t handle[2], at;
    EXPECT(cudaSetDevice(0) == 0);
    EXPECT(cuMemAddressReserve(&at, 64 * MIB, 0, 0, 0) == 0);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT(cuMemCreate(&handle[i], 32 * MIB, &prop, 0) == 0);
        EXPECT(cuMemMap(at + i * 32 * MIB, 32 * MIB, 0, handle[i], 0) == 0);
        EXPECT(cuMemRelease(handle[i]) == 0);
    }
    EXPECT(runs.guard->devices[0].held_bytes == 64 * MIB);
    EXPECT(cuMemUnmap(at, 64 * MIB) == 0);
    EXPECT(runs.guard->devices[0].held_bytes == 0);
    return 0;
}

static void one_unmap_of_several_mappings_gives_all_back(void **state)
{
    (void)state;
    begin(2 * GIB, 0);
    assert_int_equal(in_child(runs.device_path, map_two_and_unmap_once, NULL), 0);
    end();
}

/* CUDA itself does not survive a fork; a parent that asked NVML alone has a place, too. */
static int fork_and_take(void *argument)
{
    (void)argument;
    unsigned long long memory[3];
    void *at, *handle;
    EXPECT(nvmlInit_v2() == 0 && nvmlDeviceGetHandleByIndex_v2(0, &handle) == 0);
    EXPECT(nvmlDeviceGetMemoryInfo(handle, memory) == 0);
    EXPECT(runs.guard->processes[0].pid == (uint32_t)getpid());
    pid_t const pid = fork();
    if (pid == 0) _exit(cudaMalloc(&at, 128 * MIB) != 0);
    EXPECT(child_end(pid) == 0);
    EXPECT(runs.guard->processes[0].held_bytes[0] == 0);
    EXPECT(runs.guard->processes[1].held_bytes[0] == 128 * MIB);
    EXPECT(runs.guard->processes[1].pid == (uint32_t)pid);
    return 0;
}

static void a_forked_process_has_a_place_of_its_own(void **state)
{
    (void)state;
    begin(2 * GIB, 0);
    assert_int_equal(in_child(runs.device_path, fork_and_take, NULL), 0);
    assert_int_equal(runs.guard->claimed_count, 2);
    end();
}

static void *until_cancelled(void *argument)
{
    for (;;) {
        void *at;
        if (cudaMalloc(&at, 2 * MIB) == 0) cudaFree(at);
        pthread_testcancel();
    }
    return argument;
}

/* With a reserve every call reads /proc/meminfo under the lock, where a thread can be cancelled. */
static int cancel_threads(void *argument)
{
    (void)argument;
    void *at;
    alarm(200);
    runs.guard->reserve_bytes = MIB;
    for (unsigned i = 0; i < 100; i++) {
        pthread_t thread;
        EXPECT(pthread_create(&thread, NULL, until_cancelled, NULL) == 0);
        usleep(500 + i * 7);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        EXPECT(cudaMalloc(&at, 2 * MIB) == 0 && cudaFree(at) == 0);
    }
    return 0;
}

static void a_cancelled_thread_leaves_no_lock(void **state)
{
    (void)state;
    begin(0, 0);
    assert_int_equal(in_child(runs.device_path, cancel_threads, NULL), 0);
    end();
}

int main(void)
{
    struct CMUnitTest const tests[] = {
        cmocka_unit_test(a_call_past_the_budget_is_refused_and_none_before),
        cmocka_unit_test(every_question_for_memory_shows_the_budget),
        cmocka_unit_test(memory_without_an_address_counts_until_nobody_holds_it),
        cmocka_unit_test(who_asks_for_a_function_by_name_is_counted_too),
        cmocka_unit_test(a_second_runtime_answers_for_itself_alone),
        cmocka_unit_test(what_a_killed_process_held_is_free_again),
        cmocka_unit_test(without_its_segment_the_guard_is_not_there),
        cmocka_unit_test(pinned_memory_is_counted_and_the_host_keeps_its_reserve),
        cmocka_unit_test(threads_leave_nothing_behind),
        cmocka_unit_test(a_process_without_a_place_goes_on_uncounted),
        cmocka_unit_test(thousands_of_blocks_are_found_again),
        cmocka_unit_test(bytes_are_counted_in_the_units_of_the_driver),
        cmocka_unit_test(a_reset_gives_everything_back),
        cmocka_unit_test(arrays_count_by_their_elements),
        cmocka_unit_test(on_unified_memory_the_host_is_shown_as_it_is),
        cmocka_unit_test(a_peer_counts_while_its_launcher_lives),
        cmocka_unit_test(one_unmap_of_several_mappings_gives_all_back),
        cmocka_unit_test(a_forked_process_has_a_place_of_its_own),
        cmocka_unit_test(a_cancelled_thread_leaves_no_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A program that uses the stand-ins sees the device it was promised, to the byte. */
#include "cuda.h"
#include "program.h"

#include <signal.h>
#include <sys/resource.h>

static size_t free_now(void)
{
    size_t free_bytes = 0, total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    return free_bytes;
}

static int fill_up(void *unused)
{
    (void)unused;
    void *all, *more;
    EXPECT(free_now() == GIB - 300 * MIB);
    EXPECT(cudaMalloc(&all, GIB - 300 * MIB + 1) == 2);
    EXPECT(cudaGetLastError() == 2 && cudaGetLastError() == 0);
    EXPECT(strcmp(cudaGetErrorString(2), "out of memory") == 0);
    EXPECT(cudaMalloc(&all, GIB - 300 * MIB) == 0);
    EXPECT(free_now() == 0);
    EXPECT(cudaMalloc(&more, 1) == 2);
    EXPECT(cudaFree(all) == 0 && cudaFree(all) == 1);
    EXPECT(free_now() == GIB - 300 * MIB);
    return 0;
}

static void the_last_granule_can_be_taken_and_not_a_byte_more(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 300 * MIB, 1);
    assert_int_equal(in_child(path, fill_up, NULL), 0);
    assert_true(segment->devices[0].peak_bytes == GIB);
    assert_true(segment->failure_count == 2);
    run_remove(segment, path);
}

static int small_ones(void *unused)
{
    (void)unused;
    void *at[4096];
    size_t const before = free_now();
    for (int i = 0; i < 4096; i++) EXPECT(cudaMalloc(&at[i], 512) == 0);
    EXPECT(before - free_now() == 2 * MIB);
    EXPECT((char *)at[1] - (char *)at[0] == 512);
    for (int i = 0; i < 4096; i += 2) EXPECT(cudaFree(at[i]) == 0);
    EXPECT(before - free_now() == 2 * MIB);
    for (int i = 1; i < 4096; i += 2) EXPECT(cudaFree(at[i]) == 0);
    EXPECT(before == free_now());
    EXPECT(cudaMalloc(&at[0], MIB + 1) == 0); /* from 1 MiB on: whole granules */
    EXPECT(before - free_now() == 2 * MIB);
    return 0;
}

static void small_allocations_share_a_granule(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(in_child(path, small_ones, NULL), 0);
    run_remove(segment, path);
}

static int every_allocator(void *unused)
{
    (void)unused;
    void *a, *b, *c;
    size_t const before = free_now();
    EXPECT(cudaMallocAsync(&a, 4 * MIB, NULL) == 0 && cudaMallocManaged(&b, 6 * MIB, 1) == 0);
    EXPECT(cudaHostAlloc(&c, 100 * MIB, 0) == 0);
    EXPECT(before - free_now() == 10 * MIB); /* pinned host memory is not the device's */
    memset(b, 1, 6 * MIB);
    memset(c, 1, MIB);
    EXPECT(cudaFree(a) == 0 && cudaFree(b) == 0 && cudaFreeHost(c) == 0);
    EXPECT(before == free_now());
    return 0;
}

static void every_allocator_is_counted_and_given_back(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(in_child(path, every_allocator, NULL), 0);
    run_remove(segment, path);
}

static int virtual_memory(void *unused)
{
    (void)unused;
    struct {
        int type, handles, location, id;
        void *rest[2];
    } const prop = {1, 0, 1, 0, {NULL, NULL}};
    uint64_t at, handle, second;
    EXPECT(cudaSetDevice(0) == 0);
    size_t const before = free_now();
    EXPECT(cuMemAddressReserve(&at, 64 * MIB, 0, 0, 0) == 0);
    EXPECT(before == free_now()); /* addresses cost nothing */
    EXPECT(cuMemCreate(&handle, 20 * MIB, &prop, 0) == 0 &&
           cuMemCreate(&second, 20 * MIB + 1, &prop, 0) == 1);
    EXPECT(cuMemMap(at, 20 * MIB, 0, handle, 0) == 0 && cuMemMap(at, 20 * MIB, 0, handle, 0) == 1);
    EXPECT(cuMemRelease(handle) == 0);
    EXPECT(before - free_now() == 20 * MIB); /* the map keeps it */
    EXPECT(cuMemUnmap(at, 20 * MIB) == 0);
    EXPECT(before == free_now());
    EXPECT(cuMemAddressFree(at, 64 * MIB) == 0 && cuMemAddressFree(at, 64 * MIB) == 1);
    return 0;
}

static void a_map_keeps_a_released_handle_alive(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(in_child(path, virtual_memory, NULL), 0);
    run_remove(segment, path);
}

static int small_bytes(void *unused)
{
    (void)unused;
    uint32_t up[256], down[256];
    void *at;
    for (uint32_t i = 0; i < 256; i++) up[i] = i * i;
    EXPECT(cudaMalloc(&at, 8 * GIB) == 0);
    EXPECT(cudaMemcpy((char *)at + GIB, up, sizeof up, 1) == 0 &&
           cudaMemcpy(down, (char *)at + GIB, sizeof down, 2) == 0);
    EXPECT(memcmp(up, down, sizeof up) == 0);
    EXPECT(cudaMemset(at, 0, 8 * GIB) == 0 && cudaMemcpy(down, (char *)at + GIB, sizeof down, 2) == 0);
    EXPECT(down[255] == 0);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    EXPECT(usage.ru_maxrss < 400 << 10); /* 8 GiB cost next to nothing */
    return 0;
}

static void small_copies_are_real_and_large_memory_costs_no_ram(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, 16 * GIB, 0, 1);
    assert_int_equal(in_child(path, small_bytes, NULL), 0);
    run_remove(segment, path);
}

static int little_address_space(void *unused)
{
    (void)unused;
    struct rlimit const limit = {3 * GIB, 3 * GIB};
    void *at;
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 0;
    EXPECT(cudaSetDevice(0) == 0);
    EXPECT(cudaMalloc(&at, 8 * GIB) == 2); /* the host's fault, and remembered as such */
    return 0;
}

static void exhausted_address_space_is_told_apart_from_a_full_device(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    skip();
#endif
#endif
    char path[64];
    oos_segment *segment = run_create(path, 16 * GIB, 0, 1);
    assert_int_equal(in_child(path, little_address_space, NULL), 0);
    assert_true(segment->failure_count == 1 && segment->failures[0].host == 1);
    run_remove(segment, path);
}

static int all_costs(void *unused)
{
    (void)unused;
    void *stream, *graph, *exec, *comm;
    nccl_id const id = {{0}};
    EXPECT(cudaSetDevice(0) == 0);
    size_t const before = free_now();
    EXPECT(ncclCommInitRank(&comm, 4, id, 2) == 0);
    EXPECT(before - free_now() == 10 * MIB);
    EXPECT(ncclCommInitRank(&comm, 4, id, 2) == 0); /* the second one shares them */
    EXPECT(cudaStreamCreateWithFlags(&stream, 0) == 0 && cudaStreamBeginCapture(stream, 0) == 0);
    for (int i = 0; i < 5; i++) cudaMemsetAsync(NULL, 0, 0, stream);
    EXPECT(cudaStreamEndCapture(stream, &graph) == 0 && cudaGraphInstantiate(&exec, graph, 0) == 0);
    EXPECT(before - free_now() == 10 * MIB + 64 + 5 * 1000);
    EXPECT(cudaGraphExecDestroy(exec) == 0 && ncclCommDestroy(comm) == 0);
    EXPECT(before - free_now() == 10 * MIB);
    return 0;
}

static void costs_outside_the_allocator_are_charged_by_the_model(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    segment->devices[0].spec.collective_bytes = 10 * MIB;
    segment->devices[0].spec.graph_bytes = 64;
    segment->devices[0].spec.graph_node_bytes = 1000;
    assert_int_equal(in_child(path, all_costs, NULL), 0);
    run_remove(segment, path);
}

static int slice(void *unused)
{
    (void)unused;
    EXPECT(free_now() == 700 * MIB);
    return 0;
}

static void what_others_hold_is_not_free(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    segment->devices[0].spec.others_bytes = 324 * MIB;
    assert_int_equal(in_child(path, slice, NULL), 0);
    run_remove(segment, path);
}

static int pinned_on_unified(void *unused)
{
    (void)unused;
    void *at;
    EXPECT(cudaSetDevice(0) == 0);
    EXPECT(cudaHostAlloc(&at, 100 * MIB, 0) == 0);
    EXPECT(free_now() == GIB - 100 * MIB);
    EXPECT(cudaHostAlloc(&at, GIB, 0) == 2);
    return 0;
}

static void on_a_unified_device_pinned_memory_is_device_memory(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    segment->devices[0].spec.unified = 1;
    assert_int_equal(in_child(path, pinned_on_unified, NULL), 0);
    run_remove(segment, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_granule_can_be_taken_and_not_a_byte_more),
        cmocka_unit_test(small_allocations_share_a_granule),
        cmocka_unit_test(every_allocator_is_counted_and_given_back),
        cmocka_unit_test(a_map_keeps_a_released_handle_alive),
        cmocka_unit_test(small_copies_are_real_and_large_memory_costs_no_ram),
        cmocka_unit_test(exhausted_address_space_is_told_apart_from_a_full_device),
        cmocka_unit_test(costs_outside_the_allocator_are_charged_by_the_model),
        cmocka_unit_test(what_others_hold_is_not_free),
        cmocka_unit_test(on_a_unified_device_pinned_memory_is_device_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Calls: capture is real, names resolve by version, every call is counted by name. */
#include "cuda.h"
#include "program.h"

static int capture(void *unused)
{
    (void)unused;
    void *first, *second, *third, *event, *graph;
    int status;
    size_t nodes = 0;
    EXPECT(cudaSetDevice(0) == 0);
    EXPECT(cudaStreamCreateWithFlags(&first, 1) == 0 && cudaStreamCreateWithFlags(&second, 1) == 0);
    EXPECT(cudaStreamCreateWithFlags(&third, 1) == 0 && cudaEventCreate(&event) == 0);
    EXPECT(cudaStreamBeginCapture(NULL, 0) == 900);
    EXPECT(cudaStreamBeginCapture(first, 0) == 0 && cudaStreamBeginCapture(first, 0) == 900);
    EXPECT(cudaEventRecord(event, first) == 0 && cudaStreamWaitEvent(second, event, 0) == 0);
    EXPECT(cudaStreamIsCapturing(second, &status) == 0 && status == 1);
    EXPECT(cudaStreamIsCapturing(third, &status) == 0 && status == 0);
    EXPECT(cudaMemsetAsync(NULL, 0, 0, first) == 0 && cudaMemsetAsync(NULL, 0, 0, second) == 0);
    EXPECT(cudaMemsetAsync(NULL, 0, 0, third) == 0);
    EXPECT(cudaStreamEndCapture(second, &graph) == 901); /* it ends where it began */
    EXPECT(cudaStreamEndCapture(first, &graph) == 0);
    EXPECT(cudaStreamIsCapturing(second, &status) == 0 && status == 0);
    EXPECT(cudaGraphGetNodes(graph, NULL, &nodes) == 0 && nodes == 2);
    return 0;
}

static void capture_spreads_over_events_and_ends_where_it_began(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(in_child(path, capture, NULL), 0);
    run_remove(segment, path);
}

static int by_name(void *unused)
{
    (void)unused;
    void *at;
    int result;
    EXPECT(cuGetProcAddress_v2("cuMemAlloc", &at, 12000, 0, &result) == 0 && at == (void *)cuMemAlloc_v2);
    EXPECT(cuGetProcAddress_v2("cuStreamGetCaptureInfo", &at, 12000, 0, &result) == 0);
    EXPECT(at == (void *)cuStreamGetCaptureInfo_v2); /* _v3 came with 12.3 */
    EXPECT(cuGetProcAddress_v2("cuNeverHeardOf", &at, 13000, 0, &result) == 500 && at == NULL && result == 1);
    return 0;
}

static void a_name_means_what_it_meant_in_the_callers_cuda(void **state)
{
    (void)state;
    char path[64];
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(in_child(path, by_name, NULL), 0);
    run_remove(segment, path);
}

static int some_calls(void *unused)
{
    (void)unused;
    void *at;
    EXPECT(cudaProfilerStart() == 0); /* before anything is attached */
    for (int i = 0; i < 3; i++) EXPECT(cudaMalloc(&at, MIB) == 0);
    EXPECT(cudaProfilerStart() == 0);
    EXPECT(cuTexRefCreate(&at) == 801);
    return 0;
}

static uint64_t count_of(const oos_segment *segment, const char *path, const char *name, uint32_t *ret_kind)
{
    for (uint32_t l = 0; l < segment->library_count; l++) {
        const oos_segment_library *library = &segment->libraries[l];
        const uint64_t *counters = oos_segment_counters(path, library);
        assert_non_null(counters);
        for (uint32_t i = 0; i < library->call_count; i++)
            if (strcmp(segment->calls[library->first_call + i].name, name) == 0) {
                *ret_kind = segment->calls[library->first_call + i].kind;
                return counters[i];
            }
    }
    return UINT64_MAX;
}

static void calls_are_counted_by_name_and_survive_the_process(void **state)
{
    (void)state;
    char path[64];
    uint32_t kind = 9;
    oos_segment *segment = run_create(path, GIB, 0, 1);
    assert_int_equal(in_child(path, some_calls, NULL), 0);
    assert_int_equal(in_child(path, some_calls, NULL), 0);
    assert_int_equal(count_of(segment, path, "cudaMalloc", &kind), 6);
    assert_int_equal(kind, OOS_CALL_TAKE);
    assert_int_equal(count_of(segment, path, "cudaProfilerStart", &kind), 4);
    assert_int_equal(kind, OOS_CALL_NOOP);
    assert_int_equal(count_of(segment, path, "cuTexRefCreate", &kind), 2);
    assert_int_equal(kind, OOS_CALL_REFUSE);
    run_remove(segment, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capture_spreads_over_events_and_ends_where_it_began),
        cmocka_unit_test(a_name_means_what_it_meant_in_the_callers_cuda),
        cmocka_unit_test(calls_are_counted_by_name_and_survive_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

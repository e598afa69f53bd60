/* Snapshots: what the pickle reader takes, what it refuses, and that a history runs to its own end. */
#include "unit.h"

#include "trace/trace.h"
#include "replay/replay.h"

#include <string.h>

static oomsight_status read_bytes(const void *bytes, size_t len, oos_trace **ret_trace,
                                  oomsight_error *reterr)
{
    oos_stream *stream = NULL;
    assert_int_equal(oos_stream_open_bytes((oos_view){bytes, len}, &stream, reterr), OOMSIGHT_OK);
    oomsight_status const status = oos_trace_read(stream, ret_trace, reterr);
    oos_stream_close(stream);
    return status;
}

static void refused(const char *bytes, size_t len, const char *words)
{
    oos_trace *trace = NULL;
    oomsight_error error = {0};
    assert_int_equal(read_bytes(bytes, len, &trace, &error), OOMSIGHT_MALFORMED);
    assert_null(trace);
    assert_non_null(strstr(error.text, words));
}
#define REFUSED(bytes, words) refused(bytes, sizeof bytes - 1, words)

static void a_pickle_that_imports_is_refused_with_its_offset(void **state)
{
    (void)state;
    REFUSED("\x80\x04}(\x8c\x08segmentscos\nsystem\n", "GLOBAL at offset 14");
    REFUSED("\x80\x04\x8c\x02os\x8c\x06system\x93.", "STACK_GLOBAL at offset 14");
}

static void a_pickle_that_calls_or_builds_is_refused(void **state)
{
    (void)state;
    REFUSED("\x80\x04})R.", "REDUCE at offset 4");
    REFUSED("\x80\x04}}b.", "BUILD at offset 4");
    REFUSED("\x80\x04\x81.", "NEWOBJ at offset 2");
    REFUSED("\x80\x02P1\n.", "PERSID at offset 2");
}

static void a_pickle_that_is_cut_or_wrong_is_refused(void **state)
{
    (void)state;
    REFUSED("\x80\x04}", "without STOP");
    REFUSED("\x80\x04\x8c\xffshort", "inside a string");
    REFUSED("\x80\x04u.", "without the values it needs");
    REFUSED("\x80\x04h\x07.", "memo number");
    REFUSED("\x80\x04K\x01.", "something else");
    REFUSED("\x80\x04}.", "no 'segments'");
}

/* 20 MiB taken, 5 MiB allocated, freed, and a request that failed with 1 MiB free. */
static const char history[] =
    "{\"segments\": [{\"device\": 0, \"address\": 1048576, \"total_size\": 20971520, \"stream\": 0,"
    " \"segment_type\": \"large\", \"segment_pool_id\": [0, 0], \"is_expandable\": false,"
    " \"blocks\": [{\"address\": 1048576, \"size\": 5242880, \"requested_size\": 5242880,"
    " \"state\": \"active_allocated\"}, {\"address\": 6291456, \"size\": 15728640, \"state\": "
    "\"inactive\"}]}],"
    "\"device_traces\": [["
    "{\"action\": \"segment_alloc\", \"addr\": 1048576, \"size\": 20971520, \"stream\": 0},"
    "{\"action\": \"alloc\", \"addr\": 1048576, \"size\": 5242880, \"stream\": 0, \"frames\":"
    " [{\"name\": \"load_weights\", \"filename\": \"m.py\", \"line\": 3}]},"
    "{\"action\": \"alloc\", \"addr\": 6291456, \"size\": 5242880, \"stream\": 0},"
    "{\"action\": \"free_requested\", \"addr\": 6291456, \"size\": 5242880, \"stream\": 0},"
    "{\"action\": \"free_completed\", \"addr\": 6291456, \"size\": 5242880, \"stream\": 0},"
    "{\"action\": \"oom\", \"device_free\": 1048576, \"size\": 33554432, \"stream\": 0}]]}";

static void a_history_runs_to_its_own_end(void **state)
{
    (void)state;
    oos_trace *trace = NULL;
    oos_analysis *a = NULL;
    oomsight_error error = {0};
    assert_int_equal(read_bytes(history, sizeof history - 1, &trace, &error), OOMSIGHT_OK);
    assert_true(trace->total_bytes.known && trace->total_bytes.value == 21 * OOS_MIB);
    oos_analysis_params const params = {.what_if = true, .find_smallest = true};
    assert_int_equal(oos_analyse(trace, &params, &a, &error), OOMSIGHT_OK);
    assert_true(a->reproduced.known && a->reproduced.value);
    assert_true(a->outcome.oom && a->outcome.ooms == 1);
    assert_true(a->outcome.stranded_bytes == 15 * OOS_MIB);
    assert_string_equal(a->categories[0].name, "weights");
    assert_true(a->smallest_bytes.known && a->smallest_bytes.value == 52 * OOS_MIB);
    assert_int_equal(a->pin_count, 1);
    oos_analysis_free(a);
    oos_trace_free(trace);
}

/* What `dryrun --snapshot` writes: blocks have stacks and events none, the device is told, and a segment was given back and one taken. */
static const char dry[] =
    "{\"segments\": [{\"device\": 0, \"address\": 1048576, \"total_size\": 20971520, \"stream\": 0,"
    " \"segment_type\": \"large\", \"segment_pool_id\": [0, 0], \"is_expandable\": false,"
    " \"blocks\": [{\"address\": 1048576, \"size\": 20971520, \"requested_size\": 20971520,"
    " \"state\": \"active_allocated\", \"frames\": [{\"name\": \"load_weights\", \"filename\": \"m.py\","
    " \"line\": 3}]}]}],"
    "\"device_traces\": [["
    "{\"action\": \"segment_alloc\", \"addr\": 1048576, \"size\": 12582912, \"stream\": 0},"
    "{\"action\": \"alloc\", \"addr\": 1048576, \"size\": 12582912, \"stream\": 0},"
    "{\"action\": \"free_requested\", \"addr\": 1048576, \"size\": 12582912, \"stream\": 0},"
    "{\"action\": \"free_completed\", \"addr\": 1048576, \"size\": 12582912, \"stream\": 0},"
    "{\"action\": \"segment_free\", \"addr\": 1048576, \"size\": 12582912, \"stream\": 0},"
    "{\"action\": \"segment_alloc\", \"addr\": 1048576, \"size\": 20971520, \"stream\": 0},"
    "{\"action\": \"alloc\", \"addr\": 1048576, \"size\": 20971520, \"stream\": 0}]],"
    "\"allocator_settings\": {\"PYTORCH_CUDA_ALLOC_CONF\":"
    " \"expandable_segments:False,max_split_size_mb:17592186044415\"},"
    "\"oomsight_device\": \"1073741824 104857600\"}";

static void a_snapshot_of_a_dry_run_tells_its_device_and_its_stacks(void **state)
{
    (void)state;
    oos_trace *trace = NULL;
    oos_analysis *a = NULL;
    oomsight_error error = {0};
    assert_int_equal(read_bytes(dry, sizeof dry - 1, &trace, &error), OOMSIGHT_OK);
    assert_true(trace->total_bytes.known && trace->total_bytes.value == 1024 * OOS_MIB);
    assert_true(trace->base_bytes.known && trace->base_bytes.value == 100 * OOS_MIB);
    assert_string_equal(trace->settings, "expandable_segments:False");
    oos_analysis_params const params = {.what_if = true};
    assert_int_equal(oos_analyse(trace, &params, &a, &error), OOMSIGHT_OK);
    assert_string_equal(a->categories[0].name, "weights");
    assert_false(a->outcome.oom);
    for (size_t i = 0; i < a->what_if_count; i++) assert_false(a->what_ifs[i].outcome.oom);
    oos_analysis_free(a);
    oos_trace_free(trace);
}

static void a_pool_that_entries_do_not_tell_is_that_of_the_segment(void **state)
{
    (void)state;
    oos_trace *trace = NULL;
    oos_analysis *a = NULL;
    oomsight_error error = {0};
    char pooled[sizeof history];
    memcpy(pooled, history, sizeof history);
    strstr(pooled, "[0, 0]")[4] = '1';
    assert_int_equal(read_bytes(pooled, sizeof pooled - 1, &trace, &error), OOMSIGHT_OK);
    oos_analysis_params const params = {.what_if = false};
    assert_int_equal(oos_analyse(trace, &params, &a, &error), OOMSIGHT_OK);
    assert_true(a->reproduced.known && a->reproduced.value);
    assert_true(a->outcome.oom && a->outcome.stranded_private_bytes == 15 * OOS_MIB);
    oos_analysis_free(a);
    oos_trace_free(trace);
}

static void a_trace_by_hand_reads_as_it_is_written(void **state)
{
    (void)state;
    static const char text[] =
        "device_total 80GiB # a GPU\nmalloc a 1.5GiB 4096 loader\nfree a\nfree nothing\n";
    oos_trace *trace = NULL;
    oomsight_error error = {0};
    assert_int_equal(read_bytes(text, sizeof text - 1, &trace, &error), OOMSIGHT_OK);
    assert_int_equal(trace->event_count, 3);
    assert_true(trace->events[0].bytes == 3 * OOS_GIB / 2);
    assert_true(trace->streams[trace->events[0].stream] == 4096);
    assert_true(trace->events[2].id == OOS_NO_ID);
    oos_trace_free(trace);
}

static void a_wrong_line_is_named(void **state)
{
    (void)state;
    static const char text[] = "malloc a 1MiB\nmaloc b 2MiB\n";
    oos_trace *trace = NULL;
    oomsight_error error = {0};
    assert_int_equal(read_bytes(text, sizeof text - 1, &trace, &error), OOMSIGHT_MALFORMED);
    assert_int_equal(error.line, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pickle_that_imports_is_refused_with_its_offset),
        cmocka_unit_test(a_pickle_that_calls_or_builds_is_refused),
        cmocka_unit_test(a_pickle_that_is_cut_or_wrong_is_refused),
        cmocka_unit_test(a_history_runs_to_its_own_end),
        cmocka_unit_test(a_snapshot_of_a_dry_run_tells_its_device_and_its_stacks),
        cmocka_unit_test(a_pool_that_entries_do_not_tell_is_that_of_the_segment),
        cmocka_unit_test(a_trace_by_hand_reads_as_it_is_written),
        cmocka_unit_test(a_wrong_line_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Small traces whose end can be worked out on paper, by the rules of PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp). The
 * byte-exact proof over recorded runs is tools/score_replay.py. */
#include "unit.h"

#include "trace/trace.h"
#include "replay/replay.h"
#include "replay/sim_state.h"

/* One pass over a trace in text. */
static oos_outcome run(const char *text, const oos_scenario *scenario)
{
    oos_stream *input = NULL;
    oos_trace *trace = NULL;
    oos_outcome outcome;
    oomsight_error error = {0};
    assert_int_equal(oos_stream_open_bytes(oos_view_of(text), &input, NULL), OOMSIGHT_OK);
    if (oos_trace_read(input, &trace, &error) != OOMSIGHT_OK ||
        oos_run(trace, scenario, &outcome, &error) != OOMSIGHT_OK)
        fail_msg("%s", error.text);
    oos_trace_free(trace);
    oos_stream_close(input);
    oos_outcome_release(&outcome);
    return outcome;
}

static oos_outcome ends(const char *text)
{
    return run(text, &(oos_scenario){0});
}

static oos_sim *sim_of(const char *settings, oos_version torch)
{
    oos_sim_params const params = {.torch = torch, .settings = settings, .total_bytes = 800 * OOS_MIB};
    oos_sim *sim = NULL;
    assert_int_equal(oos_sim_create(&params, &sim, NULL), OOMSIGHT_OK);
    return sim;
}

static bool takes_settings(const char *settings, oos_version torch)
{
    oos_sim_params const params = {.torch = torch, .settings = settings, .total_bytes = 800 * OOS_MIB};
    oos_sim *sim = NULL;
    bool const taken = oos_sim_create(&params, &sim, NULL) == OOMSIGHT_OK;
    if (taken) oos_sim_free(sim);
    return taken;
}

/* should_split(): in the large pool more than 1 MiB must remain, in the small one 512 bytes. */
static void a_rest_of_one_mib_stays_with_a_large_block(void **state)
{
    (void)state;
    assert_int_equal(ends("malloc a 9MiB\nmalloc b 10MiB\n").peak_allocated_bytes, 20 * OOS_MIB);
    assert_int_equal(ends("malloc a 9MiB\nmalloc b 10485248\n").peak_allocated_bytes, 19 * OOS_MIB - 512);
    assert_int_equal(ends("malloc a 1MiB\nmalloc b 1048064\n").peak_allocated_bytes, 2 * OOS_MIB - 512);
}

/* get_free_block(): what may not be split is kept for requests of its size. */
static void a_split_limit_keeps_large_blocks_for_large_requests(void **state)
{
    (void)state;
    oos_outcome const kept = ends("settings max_split_size_mb:32\nmalloc a 40MiB\nfree a\nmalloc b 12MiB\n");
    oos_outcome const cut = ends("malloc a 40MiB\nfree a\nmalloc b 12MiB\n");
    assert_int_equal(kept.peak_reserved_bytes, 52 * OOS_MIB);
    assert_int_equal(cut.peak_reserved_bytes, 40 * OOS_MIB);
}

/* The ladder of retries: what is cached goes back to the driver before a request fails, but not while a graph is captured. */
static void what_is_cached_is_given_back_before_a_request_fails(void **state)
{
    (void)state;
    oos_outcome const outcome = ends("device_total 100MiB\nmalloc a 60MiB\nfree a\nmalloc b 70MiB\n");
    assert_false(outcome.oom);
    assert_int_equal(outcome.end_reserved_bytes, 70 * OOS_MIB);
    oos_outcome const captured =
        ends("device_total 100MiB\nmalloc a 60MiB\nfree a\ncapture_begin 0.1\nmalloc b 70MiB\n");
    assert_true(captured.oom);
    assert_int_equal(captured.retries, 0);
}

static void a_fraction_limits_what_a_process_reserves(void **state)
{
    (void)state;
    assert_true(ends("device_total 100MiB\nset_memory_fraction 0.5\nmalloc a 60MiB\n").oom);
    assert_false(ends("device_total 100MiB\nset_memory_fraction 0.5\nmalloc a 50MiB\n").oom);
    /* what was given back no longer counts */
    assert_false(ends("device_total 100MiB\nset_memory_fraction 0.7\nmalloc a 60MiB\nfree "
                      "a\nempty_cache\nmalloc b 64MiB\n")
                     .oom);
}

/* Two free blocks of 9 MiB in one segment: the second is the rest that every split left over, so it is the oldest. Up to 2.11 the
 * lower address is taken, in 2.12 the block made first, from 2.13 the lower address of the older segment. */
static void equal_blocks_are_taken_in_the_order_of_the_release(void **state)
{
    (void)state;
    static const struct {
        oos_version torch;
        bool second;
    } cases[] = {
        {OOS_VERSION(2, 11, 0), false}, {OOS_VERSION(2, 12, 0), true}, {OOS_VERSION(2, 13, 0), false}};
    for (size_t i = 0; i < 3; i++) {
        oos_sim *sim = sim_of(NULL, cases[i].torch);
        uint32_t const a = oos_sim_malloc(sim, 9 * OOS_MIB, 0);
        assert_true(oos_sim_malloc(sim, 2 * OOS_MIB, 0));
        uint32_t const c = oos_sim_malloc(sim, 9 * OOS_MIB, 0);
        uint64_t const first = oos_sim_address(sim, a), second = oos_sim_address(sim, c);
        assert_int_equal(second - first, 11 * OOS_MIB);
        oos_sim_free_block(sim, a);
        oos_sim_free_block(sim, c);
        uint32_t const d = oos_sim_malloc(sim, 9 * OOS_MIB, 0);
        assert_int_equal(oos_sim_address(sim, d), cases[i].second ? second : first);
        oos_sim_free(sim);
    }
}

/* garbage_collect_cached_blocks(): 76 MiB are reserved, the mark is 45: 31 must go. The older block alone is 20, so the younger goes
 * too. */
static void garbage_is_collected_until_the_mark_is_reached(void **state)
{
    (void)state;
    oos_outcome const outcome =
        ends("torch 2.9.1\nsettings garbage_collection_threshold:0.5\ndevice_total 100MiB\n"
             "set_memory_fraction 0.9\nmalloc x 20MiB\nmalloc y 20MiB\nfree x\nmalloc z 36MiB\nfree y\n"
             "malloc w 24MiB\n");
    assert_false(outcome.oom);
    assert_int_equal(outcome.end_reserved_bytes, 60 * OOS_MIB);
}

/* release_available_cached_blocks(): as many blocks above the limit as the request needs, and nothing else. */
static void exactly_enough_large_blocks_are_enough(void **state)
{
    (void)state;
    oos_outcome const outcome = ends(
        "settings max_split_size_mb:32\ndevice_total 110MiB\nmalloc a 40MiB\nmalloc b 40MiB\nmalloc c 12MiB\n"
        "free a\nfree b\nfree c\nmalloc d 80MiB\n");
    assert_false(outcome.oom);
    assert_int_equal(outcome.end_reserved_bytes, 92 * OOS_MIB);
    assert_int_equal(outcome.retries, 0);
}

/* Expandable segments map whole pages of 20 MiB into ranges an eighth larger than the device. */
static void expandable_segments_grow_by_pages(void **state)
{
    (void)state;
    const char *settings = "expandable_segments:True";
    assert_int_equal(run("malloc a 5MiB\n", &(oos_scenario){.settings = settings}).peak_reserved_bytes,
                     20 * OOS_MIB);
    assert_int_equal(
        run("malloc a 5MiB\nmalloc b 21MiB\n", &(oos_scenario){.settings = settings}).peak_reserved_bytes,
        40 * OOS_MIB);
    oos_sim *sim = sim_of(settings, OOS_TORCH_DEFAULT);
    assert_int_equal(oos_range_bytes(sim), 900 * OOS_MIB);
    oos_sim_free(sim);
}

static void a_split_limit_of_20_is_taken_since_2_10(void **state)
{
    (void)state;
    assert_false(takes_settings("max_split_size_mb:20", OOS_VERSION(2, 9, 0)));
    assert_true(takes_settings("max_split_size_mb:21", OOS_VERSION(2, 9, 0)));
    assert_true(takes_settings("max_split_size_mb:20", OOS_VERSION(2, 10, 0)));
    assert_false(takes_settings("max_split_size_mb:19", OOS_VERSION(2, 10, 0)));
}

/* Two divisions between 64 and 128 MiB: 100 becomes 128. The first key of a list holds for everything below it. */
static void the_first_division_holds_for_all_smaller_sizes(void **state)
{
    (void)state;
    oos_scenario const scenario = {.settings = "roundup_power2_divisions:[256:2,512:4,>:1]"};
    assert_int_equal(run("malloc a 100MiB\n", &scenario).peak_allocated_bytes, 128 * OOS_MIB);
    assert_int_equal(run("malloc a 90MiB\n", &scenario).peak_allocated_bytes, 96 * OOS_MIB);
    assert_int_equal(ends("malloc a 100MiB\n").peak_allocated_bytes, 100 * OOS_MIB);
}

/* A pool that lends is asked before the cache is emptied from 2.11 on, after it before. */
static void a_pool_that_lends_is_asked_in_the_turn_of_the_release(void **state)
{
    (void)state;
    const char *trace =
        "device_total 100MiB\nmalloc a 20MiB\nmalloc b 20MiB\nmalloc c 20MiB\npool_create 0.7\npool_begin "
        "0.7\n"
        "malloc p 30MiB\npool_end 0.7\nfree p\nfree a\nfree b\nfree c\nuse_on_oom 0.7\nmalloc d 26MiB\n";
    oos_outcome const after = run(trace, &(oos_scenario){.torch = OOS_VERSION(2, 10, 0)});
    oos_outcome const before = run(trace, &(oos_scenario){.torch = OOS_VERSION(2, 11, 0)});
    assert_false(after.oom || before.oom);
    assert_int_equal(after.end_reserved_bytes, 56 * OOS_MIB);
    assert_int_equal(before.end_reserved_bytes, 90 * OOS_MIB);
}

static uint64_t smallest_of(const char *text)
{
    oos_stream *input = NULL;
    oos_trace *trace = NULL;
    oos_analysis *analysis = NULL;
    oos_analysis_params const params = {.find_smallest = true, .what_if = true};
    assert_int_equal(oos_stream_open_bytes(oos_view_of(text), &input, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_trace_read(input, &trace, NULL), OOMSIGHT_OK);
    assert_int_equal(oos_analyse(trace, &params, &analysis, NULL), OOMSIGHT_OK);
    assert_true(analysis->smallest_bytes.known);
    uint64_t const smallest = analysis->smallest_bytes.value;
    oos_analysis_free(analysis);
    oos_trace_free(trace);
    oos_stream_close(input);
    return smallest;
}

/* The smallest device holds what others hold, too, and whole segments (20 MiB for a request of two); a page less and the run fails. */
static void the_smallest_device_is_the_smallest(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t mib;
    } cases[] = {
        {"device_total 400MiB\ndevice_used 10MiB\nmalloc a 60MiB\nmalloc b 30MiB\nfree a\nmalloc c 50MiB\n",
         100},
        {"device_total 400MiB\ndevice_used 10MiB\nmalloc a 2MiB\n", 30},
        {"device_total 400MiB\nmalloc a 2MiB\n", 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t const smallest = smallest_of(cases[i].text);
        assert_int_equal(smallest, cases[i].mib * OOS_MIB);
        oos_u64 const base = oos_u64_of(i < 2 ? 10 * OOS_MIB : 0);
        assert_false(
            run(cases[i].text, &(oos_scenario){.total_bytes = oos_u64_of(smallest), .base_bytes = base}).oom);
        assert_true(run(cases[i].text, &(oos_scenario){.total_bytes = oos_u64_of(smallest - 2 * OOS_MIB),
                                                       .base_bytes = base})
                        .oom);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rest_of_one_mib_stays_with_a_large_block),
        cmocka_unit_test(a_split_limit_keeps_large_blocks_for_large_requests),
        cmocka_unit_test(what_is_cached_is_given_back_before_a_request_fails),
        cmocka_unit_test(a_fraction_limits_what_a_process_reserves),
        cmocka_unit_test(equal_blocks_are_taken_in_the_order_of_the_release),
        cmocka_unit_test(garbage_is_collected_until_the_mark_is_reached),
        cmocka_unit_test(exactly_enough_large_blocks_are_enough),
        cmocka_unit_test(expandable_segments_grow_by_pages),
        cmocka_unit_test(a_split_limit_of_20_is_taken_since_2_10),
        cmocka_unit_test(the_first_division_holds_for_all_smaller_sizes),
        cmocka_unit_test(a_pool_that_lends_is_asked_in_the_turn_of_the_release),
        cmocka_unit_test(the_smallest_device_is_the_smallest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

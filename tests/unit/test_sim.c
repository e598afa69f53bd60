/* The allocator simulator: rules that can be told in a sentence. The byte-exact proof is tools/score_replay.py. */
#include "unit.h"

#include "replay/replay.h"

#include <string.h>
#include <time.h>

static oos_sim *sim_on(uint64_t total_bytes, const char *settings, oos_version torch)
{
    oos_sim_params const params = {.torch = torch, .settings = settings, .total_bytes = total_bytes};
    oos_sim *sim = NULL;
    oomsight_error error;
    assert_int_equal(oos_sim_create(&params, &sim, &error), OOMSIGHT_OK);
    return sim;
}

static uint64_t reserved(const oos_sim *sim)
{
    return oos_sim_stats(sim)->counters[OOS_STAT_RESERVED_BYTES][OOS_STAT_ALL].current;
}

static void a_request_of_two_mib_takes_a_segment_of_twenty(void **state)
{
    (void)state;
    oos_sim *sim = sim_on(8 * OOS_GIB, NULL, OOS_TORCH_DEFAULT);
    assert_true(oos_sim_malloc(sim, 2 * OOS_MIB, 0));
    assert_true(reserved(sim) == 20 * OOS_MIB);
    assert_true(oos_sim_malloc(sim, 1, 0));
    assert_true(reserved(sim) == 22 * OOS_MIB);
    oos_sim_free(sim);
}

static void neighbours_that_are_free_become_one_block(void **state)
{
    (void)state;
    oos_sim *sim = sim_on(8 * OOS_GIB, NULL, OOS_TORCH_DEFAULT);
    uint32_t const a = oos_sim_malloc(sim, 5 * OOS_MIB, 0), b = oos_sim_malloc(sim, 5 * OOS_MIB, 0);
    uint64_t const first = oos_sim_address(sim, a);
    oos_sim_free_block(sim, a);
    oos_sim_free_block(sim, b);
    assert_true(oos_sim_address(sim, oos_sim_malloc(sim, 20 * OOS_MIB, 0)) == first);
    assert_true(reserved(sim) == 20 * OOS_MIB);
    oos_sim_free(sim);
}

static void free_segments_of_a_live_mempool_stay_under_pressure(void **state)
{
    (void)state;
    oos_sim *sim = sim_on(80 * OOS_GIB, NULL, OOS_TORCH_DEFAULT);
    oos_pool_id const pool = {0, 1};
    oos_sim_pool_create(sim, pool, OOS_BACKEND_DRIVER);
    oos_sim_pool_begin(sim, pool, false);
    oos_sim_free_block(sim, oos_sim_malloc(sim, 60 * OOS_GIB, 0));
    assert_int_equal(oos_sim_malloc(sim, 70 * OOS_GIB, 0), 0);
    assert_true(oos_sim_free_private_bytes(sim) == 60 * OOS_GIB);
    oos_sim_free(sim);
}

static void a_sweep_gives_them_back_before_the_device_is_full(void **state)
{
    (void)state;
    oos_sim_params const params = {
        .torch = OOS_TORCH_DEFAULT, .total_bytes = 80 * OOS_GIB, .sweep_ratio = 0.9};
    oos_sim *sim = NULL;
    assert_int_equal(oos_sim_create(&params, &sim, NULL), OOMSIGHT_OK);
    oos_pool_id const pool = {0, 1};
    oos_sim_pool_create(sim, pool, OOS_BACKEND_STICKY);
    oos_sim_pool_begin(sim, pool, false);
    oos_sim_free_block(sim, oos_sim_malloc(sim, 60 * OOS_GIB, 0));
    assert_int_not_equal(oos_sim_malloc(sim, 70 * OOS_GIB, 0), 0);
    oos_sim_free(sim);
}

static void a_sticky_back_end_never_gives_again_after_one_failure(void **state)
{
    (void)state;
    oos_sim *sim = sim_on(2 * OOS_GIB, "max_split_size_mb:20", OOS_TORCH_DEFAULT);
    oos_pool_id const pool = {0, 1};
    oos_sim_pool_create(sim, pool, OOS_BACKEND_STICKY);
    oos_sim_pool_begin(sim, pool, false);
    oos_sim_free_block(sim, oos_sim_malloc(sim, OOS_GIB, 0));
    assert_int_equal(oos_sim_malloc(sim, OOS_GIB + 30 * OOS_MIB, 0),
                     0); /* the free one was released, and lost */
    assert_int_equal(oos_sim_malloc(sim, 1, 0), 0);
    oos_sim_free(sim);
}

static void a_block_used_by_another_stream_waits_for_its_event(void **state)
{
    (void)state;
    oos_sim *sim = sim_on(8 * OOS_GIB, NULL, OOS_TORCH_DEFAULT);
    uint32_t const a = oos_sim_malloc(sim, 20 * OOS_MIB, 0);
    uint64_t const address = oos_sim_address(sim, a);
    oos_sim_record_stream(sim, a, 7);
    oos_sim_free_block(sim, a);
    assert_true(oos_sim_address(sim, oos_sim_malloc(sim, 20 * OOS_MIB, 0)) != address);
    oos_sim_complete(sim, 7);
    assert_true(oos_sim_address(sim, oos_sim_malloc(sim, 20 * OOS_MIB, 0)) == address);
    oos_sim_free(sim);
}

static void settings_that_a_release_refuses_are_refused_in_its_words(void **state)
{
    (void)state;
    oos_sim *sim = sim_on(8 * OOS_GIB, NULL, OOS_VERSION(2, 9, 0));
    oomsight_error error;
    assert_int_equal(oos_sim_set_settings(sim, oos_view_of("max_split_size_mb:20"), &error),
                     OOMSIGHT_MALFORMED);
    assert_string_equal(error.text, "CachingAllocator option max_split_size_mb too small, must be > 20");
    oos_sim_free(sim);
}

static void bytes_are_never_lost(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    const char *const settings[] = {NULL, "expandable_segments:True", "max_split_size_mb:64",
                                    "roundup_power2_divisions:4"};
    for (unsigned s = 0; s < 4; s++) {
        oos_sim *sim = sim_on(2 * OOS_GIB, settings[s], OOS_TORCH_DEFAULT);
        uint32_t live[64] = {0};
        for (unsigned i = 0; i < 20000; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            unsigned const slot = (unsigned)(seed >> 58);
            if (live[slot]) oos_sim_free_block(sim, live[slot]);
            live[slot] =
                oos_sim_malloc(sim, (seed >> 20 & 0xffff) << (seed >> 40) % 12, (seed >> 50 & 1) * 4096);
        }
        oos_arena *arena = oos_arena_create(4096);
        oos_layout layout;
        assert_int_equal(oos_sim_layout(sim, arena, &layout, NULL), OOMSIGHT_OK);
        uint64_t in_segments = 0, allocated = 0;
        for (size_t i = 0; i < layout.segment_count; i++) in_segments += layout.segments[i].bytes;
        for (size_t i = 0; i < layout.block_count; i++)
            if (layout.blocks[i].state == OOS_BLOCK_ALLOCATED) allocated += layout.blocks[i].bytes;
        assert_true(in_segments == reserved(sim));
        assert_true(in_segments == oos_sim_device(sim)->used_bytes);
        assert_true(allocated ==
                    oos_sim_stats(sim)->counters[OOS_STAT_ALLOCATED_BYTES][OOS_STAT_ALL].current);
        for (unsigned i = 0; i < 64; i++) oos_sim_free_block(sim, live[i]);
        oos_sim_empty_cache(sim, (oos_pool_id){0, 0});
        assert_true(reserved(sim) == 0 && oos_sim_device(sim)->used_bytes == 0);
        oos_arena_free(arena);
        oos_sim_free(sim);
    }
}

static void many_pools_cost_no_more_each_than_a_few(void **state)
{
    (void)state;
    enum { POOLS = 40000 };
    oos_sim *sim = sim_on(1000 * OOS_GIB, NULL, OOS_TORCH_DEFAULT);
    clock_t const start = clock();
    for (uint64_t i = 1; i <= POOLS; i++) oos_sim_pool_create(sim, (oos_pool_id){0, i}, OOS_BACKEND_DRIVER);
    for (uint64_t i = 1; i <= POOLS; i++) {
        oos_pool_id const id = {0, i};
        oos_sim_pool_begin(sim, id, false);
        oos_sim_free_block(sim, oos_sim_malloc(sim, 3 * OOS_MIB, 0));
        oos_sim_pool_end(sim, id, false);
        oos_sim_pool_release(sim, id);
        oos_sim_pool_release(sim, id);
    }
    oos_sim_empty_cache(sim, (oos_pool_id){0, 0});
    assert_true(reserved(sim) == 0);
    /* an id that comes again is a pool of its own */
    oos_sim_pool_create(sim, (oos_pool_id){0, 7}, OOS_BACKEND_DRIVER);
    assert_true(oos_sim_free_private_bytes(sim) == 0);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC <
                10); /* a walk over all of them at each took minutes */
    oos_sim_free(sim);
}

static void a_device_that_cannot_be_is_refused_with_a_sentence(void **state)
{
    (void)state;
    oos_sim_params params = {.torch = OOS_TORCH_DEFAULT, .total_bytes = 4000ull * 1000 * 1000 * 1000};
    oos_sim *sim = NULL;
    oomsight_error error = {0};
    assert_int_equal(oos_sim_create(&params, &sim, &error), OOMSIGHT_MALFORMED);
    assert_non_null(strstr(error.text, "4000000000000 bytes is more than replay can lay out"));
    params = (oos_sim_params){.torch = OOS_TORCH_DEFAULT, .total_bytes = OOS_GIB, .base_bytes = 2 * OOS_GIB};
    assert_int_equal(oos_sim_create(&params, &sim, &error), OOMSIGHT_MALFORMED);
    assert_non_null(strstr(error.text, "other processes use 2147483648 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_of_two_mib_takes_a_segment_of_twenty),
        cmocka_unit_test(neighbours_that_are_free_become_one_block),
        cmocka_unit_test(free_segments_of_a_live_mempool_stay_under_pressure),
        cmocka_unit_test(a_sweep_gives_them_back_before_the_device_is_full),
        cmocka_unit_test(a_sticky_back_end_never_gives_again_after_one_failure),
        cmocka_unit_test(a_block_used_by_another_stream_waits_for_its_event),
        cmocka_unit_test(settings_that_a_release_refuses_are_refused_in_its_words),
        cmocka_unit_test(bytes_are_never_lost),
        cmocka_unit_test(many_pools_cost_no_more_each_than_a_few),
        cmocka_unit_test(a_device_that_cannot_be_is_refused_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

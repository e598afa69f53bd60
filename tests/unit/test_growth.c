/* Slopes of memory over hours, in compressed time: what surely grows is named, and nothing else. */
#include "run/run.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

enum { MIB = 1 << 20 };

typedef struct engine {
    oos_run_state state;
    oos_history *history;
    uint32_t random;
} engine;

static engine *engine_new(void)
{
    engine *e = calloc(1, sizeof *e);
    e->state.device_count = 1;
    e->state.process_count = 1;
    e->state.devices[0] =
        (oos_run_device){.bus_id = "0000:01:00.0", .budget_bytes = (uint64_t)20 << 30, .outside_known = true};
    e->history = oos_history_create();
    e->random = 7;
    return e;
}

static void engine_free(engine *e)
{
    oos_history_free(e->history);
    free(e);
}

static uint64_t noise(engine *e, uint64_t most)
{
    e->random = e->random * 1664525u + 1013904223u;
    return most ? (e->random >> 8) % most : 0;
}

enum { WEIGHTS = 3, LEAKS = 7 }; /* two owners, whichever */

/* A second of a run: 10 GiB held after a minute of start-up, and whatever `more` says, by an owner of its own. */
typedef uint64_t (*more_function)(engine *, double minutes);

static size_t serve(engine *e, double minutes, more_function calls, more_function host, oos_growth *ret_list)
{
    for (double second = 0; second <= minutes * 60; second++) {
        double const minute = second / 60;
        uint64_t const start = minute < 1 ? (uint64_t)(minute * 10 * 1024) * MIB : (uint64_t)10 << 30;
        e->state.devices[0].owners_now[WEIGHTS] = start;
        e->state.devices[0].owners_now[LEAKS] = calls ? calls(e, minute) : 0;
        e->state.devices[0].held_bytes = start + e->state.devices[0].owners_now[LEAKS];
        e->state.devices[0].outside_bytes = 600 * (uint64_t)MIB;
        oos_history_add(e->history, second / 3600, &e->state,
                        ((uint64_t)4 << 30) + (host ? host(e, minute) : 0));
    }
    return oos_history_growth(e->history, &e->state, ret_list, OOS_GROWTH_COUNT);
}

static uint64_t leak(engine *e, double minutes)
{
    (void)e;
    return (uint64_t)(minutes / 2) * 2 * MIB; /* a MiB a minute, in the allocator's units of two */
}

static uint64_t wander(engine *e, double minutes)
{
    (void)minutes;
    return noise(e, 400 * (uint64_t)MIB);
}

static uint64_t one_jump(engine *e, double minutes)
{
    (void)e;
    return minutes > 14 ? 900 * (uint64_t)MIB : 0;
}

static uint64_t saw(engine *e, double minutes)
{
    (void)e;
    return (uint64_t)(fmod(minutes, 3) * 100) * MIB;
}

static uint64_t slow_leak_in_noise(engine *e, double minutes)
{
    return (uint64_t)(minutes * MIB) + noise(e, 30 * (uint64_t)MIB);
}

static void a_leak_of_a_mebibyte_a_minute_is_found_within_twenty_minutes(void **state)
{
    (void)state;
    engine *e = engine_new();
    oos_growth list[OOS_GROWTH_COUNT];
    assert_int_equal(serve(e, 20, leak, NULL, list), 1);
    assert_int_equal(list[0].what, OOS_GROWTH_CALLS);
    assert_int_equal(list[0].owner, LEAKS);
    assert_string_equal(list[0].bus_id, "0000:01:00.0");
    assert_true(fabs(list[0].slope.per / MIB - 60) < 6);
    assert_true(list[0].slope.low <= list[0].slope.per && list[0].slope.per <= list[0].slope.high);
    assert_true(fabs(list[0].hours_to_limit - 9600 / 60.0) < 25); /* 20 GiB less 10, the rest and the leak */
    engine_free(e);
}

static void a_leak_of_the_host_is_told_apart_from_the_devices(void **state)
{
    (void)state;
    engine *e = engine_new();
    oos_growth list[OOS_GROWTH_COUNT];
    assert_int_equal(serve(e, 40, wander, slow_leak_in_noise, list), 1);
    assert_int_equal(list[0].what, OOS_GROWTH_HOST);
    assert_null(list[0].bus_id);
    assert_int_equal(list[0].owner, OOS_SEGMENT_OWNERS);
    assert_true(fabs(list[0].slope.per / MIB - 60) < 12);
    engine_free(e);
}

static void healthy_runs_raise_no_alarm(void **state)
{
    (void)state;
    static more_function const healthy[] = {NULL, wander, one_jump, saw, wander};
    static double const minutes[] = {20, 90, 30, 240, 1500};
    for (size_t i = 0; i < sizeof healthy / sizeof *healthy; i++) {
        engine *e = engine_new();
        oos_growth list[OOS_GROWTH_COUNT];
        assert_int_equal(serve(e, minutes[i], healthy[i], healthy[i], list), 0);
        engine_free(e);
    }
}

/* Caches fill for nine minutes of twenty, and then nothing comes any more. */
static uint64_t getting_warm(engine *e, double minutes)
{
    (void)e;
    return (uint64_t)(minutes < 9 ? minutes * 50 : 450) * MIB;
}

static void getting_warm_is_no_growth(void **state)
{
    (void)state;
    engine *e = engine_new();
    oos_growth list[OOS_GROWTH_COUNT];
    assert_int_equal(serve(e, 20, getting_warm, getting_warm, list), 0);
    engine_free(e);
}

static void days_fit_into_the_same_memory(void **state)
{
    (void)state;
    engine *e = engine_new();
    oos_growth list[OOS_GROWTH_COUNT];
    assert_int_equal(serve(e, 60.0 * 24 * 3, leak, NULL, list), 1);
    assert_true(list[0].slope.span > 24 && list[0].slope.span <= 72);
    assert_int_equal(list[0].owner, LEAKS);
    engine_free(e);
}

static void a_few_samples_tell_nothing(void **state)
{
    (void)state;
    engine *e = engine_new();
    oos_growth list[OOS_GROWTH_COUNT];
    assert_int_equal(serve(e, 3, leak, leak, list), 0);
    double const same[30] = {0};
    oos_slope slope;
    assert_false(oos_slope_of(same, same, 5, &slope));
    assert_false(oos_slope_of(same, same, 30, &slope)); /* no time went by */
    engine_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leak_of_a_mebibyte_a_minute_is_found_within_twenty_minutes),
        cmocka_unit_test(a_leak_of_the_host_is_told_apart_from_the_devices),
        cmocka_unit_test(healthy_runs_raise_no_alarm),
        cmocka_unit_test(getting_warm_is_no_growth),
        cmocka_unit_test(days_fit_into_the_same_memory),
        cmocka_unit_test(a_few_samples_tell_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

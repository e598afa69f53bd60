#include "unit.h"

#include "base/arena.h"

static void memory_is_zeroed_and_survives_growth(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(256);
    char *first = oos_arena_take(arena, 100);
    memset(first, 'x', 100);
    for (int i = 0; i < 1000; i++) {
        char *more = oos_arena_take(arena, 1000);
        assert_int_equal(more[0], 0);
        assert_int_equal(more[999], 0);
        memset(more, 'y', 1000);
    }
    assert_int_equal(first[99], 'x');
    oos_arena_free(arena);
}

static void an_array_whose_size_overflows_is_refused(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(256);
    assert_null(oos_arena_take_array(arena, SIZE_MAX / 2, 4));
    assert_null(oos_arena_take(arena, SIZE_MAX));
    oos_arena_free(arena);
}

static void count_release(void *thing)
{
    ++*(int *)thing;
}

static void adopted_things_are_released_once(void **state)
{
    (void)state;
    int released = 0;
    oos_arena *arena = oos_arena_create(256);
    assert_true(oos_arena_adopt(arena, count_release, &released));
    oos_arena_reset(arena);
    assert_int_equal(released, 1);
    assert_true(oos_arena_adopt(arena, count_release, &released));
    oos_arena_free(arena);
    assert_int_equal(released, 2);
}

static void a_format_of_any_length_fits(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(256);
    char *text = oos_arena_format(arena, "%05000d|%s", 7, "end");
    assert_int_equal(strlen(text), 5004);
    assert_string_equal(text + 5000, "|end");
    oos_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_survives_growth),
        cmocka_unit_test(an_array_whose_size_overflows_is_refused),
        cmocka_unit_test(adopted_things_are_released_once),
        cmocka_unit_test(a_format_of_any_length_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

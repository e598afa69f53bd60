/* The ordered set against the plainest thing that can be right: a sorted array. */
#include "unit.h"

#include "base/size.h"
#include "replay/replay.h"

#include <stdlib.h>

typedef struct pair {
    uint64_t major, minor;
    uint32_t block;
} pair;

static int by_key(const void *left, const void *right)
{
    const pair *a = left, *b = right;
    if (a->major != b->major) return a->major < b->major ? -1 : 1;
    return a->minor < b->minor ? -1 : a->minor > b->minor;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint32_t plain_from(const pair *list, size_t count, uint64_t major, uint64_t minor)
{
    pair const key = {major, minor, 0};
    for (size_t i = 0; i < count; i++)
        if (by_key(&list[i], &key) >= 0) return list[i].block;
    return 0;
}

static uint32_t plain_below(const pair *list, size_t count, uint64_t major, uint64_t minor)
{
    pair const key = {major, minor, 0};
    uint32_t found = 0;
    for (size_t i = 0; i < count && by_key(&list[i], &key) < 0; i++) found = list[i].block;
    return found;
}

static void check_against_array(uint64_t seed, uint64_t majors, uint64_t shift)
{
    enum { MOST = 600 };
    static pair list[MOST];
    uint32_t blocks[MOST];
    size_t count = 0;
    oos_set *set = oos_set_create();
    for (uint32_t round = 0; round < 6000; round++) {
        uint64_t const major = next_random(&seed) % majors << shift, minor = next_random(&seed) % 1000;
        if (count < MOST && next_random(&seed) % 100 < 55) {
            pair const item = {major, minor, round + 1};
            if (count && bsearch(&item, list, count, sizeof *list, by_key)) continue;
            assert_true(oos_set_add(set, major, minor, item.block));
            list[count++] = item;
            qsort(list, count, sizeof *list, by_key);
        } else if (count) {
            size_t const at = next_random(&seed) % count;
            oos_set_remove(set, list[at].major, list[at].minor);
            for (size_t i = at + 1; i < count; i++) list[i - 1] = list[i];
            count--;
        }
        assert_int_equal(oos_set_count(set), count);
        assert_int_equal(oos_set_from(set, major, minor), plain_from(list, count, major, minor));
        assert_int_equal(oos_set_below(set, major, minor), plain_below(list, count, major, minor));
    }
    oos_set_list(set, blocks);
    for (size_t i = 0; i < count; i++) assert_int_equal(blocks[i], list[i].block);
    oos_set_free(set);
}

static void few_sizes_with_many_ties_stay_in_order(void **state)
{
    (void)state;
    check_against_array(1, 3, 20);
}

static void many_sizes_stay_in_order(void **state)
{
    (void)state;
    check_against_array(2, 100000, 9);
}

static void numbers_as_large_as_addresses_stay_in_order(void **state)
{
    (void)state;
    check_against_array(3, (uint64_t)1 << 60, 3);
}

static void a_bin_that_was_crowded_is_right_again_when_few_are_left(void **state)
{
    (void)state;
    enum { MANY = 200 };
    oos_set *set = oos_set_create();
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 1; i <= MANY; i++) assert_true(oos_set_add(set, OOS_MIB, i, i));
        for (uint32_t i = MANY; i > 1; i -= 2) oos_set_remove(set, OOS_MIB, i); /* every other one */
        for (uint32_t i = 1; i < MANY; i += 2) {
            assert_int_equal(oos_set_from(set, OOS_MIB, 0), i);
            assert_int_equal(oos_set_below(set, OOS_MIB + 1, 0), MANY - 1);
            oos_set_remove(set, OOS_MIB, i);
        }
        assert_int_equal(oos_set_from(set, 0, 0), 0);
        assert_int_equal(oos_set_count(set), 0);
    }
    oos_set_free(set);
}

static void an_empty_set_has_nothing_on_either_side(void **state)
{
    (void)state;
    oos_set *set = oos_set_create();
    assert_int_equal(oos_set_from(set, 0, 0), 0);
    assert_int_equal(oos_set_below(set, UINT64_MAX, UINT64_MAX), 0);
    oos_set_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_sizes_with_many_ties_stay_in_order),
        cmocka_unit_test(many_sizes_stay_in_order),
        cmocka_unit_test(numbers_as_large_as_addresses_stay_in_order),
        cmocka_unit_test(a_bin_that_was_crowded_is_right_again_when_few_are_left),
        cmocka_unit_test(an_empty_set_has_nothing_on_either_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

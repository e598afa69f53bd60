/* The order in which torch walks its pools; the orders here are those of its own flat hash map. */
#include "unit.h"

#include "replay/replay.h"

#include <string.h>

/* The values in the order of a walk, as digits. */
static const char *walk(const oos_id_table *table)
{
    static char text[64];
    size_t len = 0;
    for (ptrdiff_t at = oos_id_table_next(table, 0); at >= 0; at = oos_id_table_next(table, at + 1))
        text[len++] = (char)('0' + table->entries[at].value);
    text[len] = '\0';
    return text;
}

static void fill(oos_id_table *table, const char *digits)
{
    for (; *digits; digits++)
        assert_true(oos_id_table_insert(table, (uint64_t)(*digits - '0'), (uint32_t)(*digits - '0')));
}

static void ids_are_walked_in_the_order_of_their_slots(void **state)
{
    (void)state;
    oos_id_table table = {0};
    assert_string_equal(walk(&table), "");
    fill(&table, "1234");
    assert_string_equal(walk(&table), "2413");
    oos_id_table_release(&table);
}

static void ids_that_want_the_same_slot_stay_in_the_order_they_came(void **state)
{
    (void)state;
    oos_id_table table = {0};
    fill(&table, "61");
    assert_string_equal(walk(&table), "61");
    fill(&table, "4"); /* twice the slots: 1 and 6 no longer meet */
    assert_string_equal(walk(&table), "416");
    oos_id_table_release(&table);
}

static void a_walk_goes_on_where_an_item_was_erased(void **state)
{
    (void)state;
    oos_id_table table = {0};
    fill(&table, "61");
    ptrdiff_t const at = oos_id_table_next(&table, 0);
    oos_id_table_erase(&table, at);
    assert_int_equal(table.entries[oos_id_table_next(&table, at)].value, 1);
    assert_int_equal(oos_id_table_find(&table, 6), OOS_ID_TABLE_END);
    assert_int_equal(table.count, 1);
    oos_id_table_release(&table);
}

static void ids_that_all_want_one_slot_are_refused_before_memory_ends(void **state)
{
    (void)state;
    oos_id_table table = {0};
    uint32_t value = 1;
    while (value < 1000 && oos_id_table_insert(&table, 1, value)) {
        assert_true(oos_id_table_insert(&table, 1, value)); /* a second time: it is there */
        assert_int_equal(table.count, value);
        value++;
    }
    assert_in_range(value, 8, 64);
    assert_true(table.slots <= 1 << 20);
    oos_id_table_release(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_walked_in_the_order_of_their_slots),
        cmocka_unit_test(ids_that_want_the_same_slot_stay_in_the_order_they_came),
        cmocka_unit_test(a_walk_goes_on_where_an_item_was_erased),
        cmocka_unit_test(ids_that_all_want_one_slot_are_refused_before_memory_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

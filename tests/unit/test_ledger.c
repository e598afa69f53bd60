#include "unit.h"

#include "ledger/ledger.h"

static void a_sum_past_64_bits_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(256);
    oos_ledger ledger;
    oos_ledger_init(&ledger, arena);
    assert_int_equal(oos_ledger_hold(&ledger, "weights", oos_amount_exact(UINT64_MAX, OOS_SOURCE_READ, NULL)),
                     OOMSIGHT_OK);
    assert_int_equal(oos_ledger_hold(&ledger, "one more byte", oos_amount_exact(1, OOS_SOURCE_READ, NULL)),
                     OOMSIGHT_OVERFLOW);
    assert_true(ledger.held_bytes == UINT64_MAX);
    oos_arena_free(arena);
}

static void rows_add_up_to_the_device_with_an_unaccounted_row(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(256);
    oos_ledger ledger;
    oos_ledger_init(&ledger, arena);
    assert_int_equal(oos_ledger_hold(&ledger, "weights", oos_amount_exact(70, OOS_SOURCE_READ, NULL)),
                     OOMSIGHT_OK);
    assert_int_equal(oos_ledger_hold(&ledger, "graphs", oos_amount_guess(10, 5, 20, NULL)), OOMSIGHT_OK);
    assert_int_equal(oos_ledger_close(&ledger, 100), OOMSIGHT_OK);
    uint64_t sum = 0;
    const char *last = "";
    for (const oos_hold *row = ledger.first; row; row = row->next) {
        sum += row->amount.bytes;
        last = row->owner;
    }
    assert_true(sum == 100);
    assert_string_equal(last, "unaccounted");
    oos_arena_free(arena);
}

static void a_sum_of_amounts_is_as_weak_as_its_weakest_part(void **state)
{
    (void)state;
    oos_amount const sum =
        oos_amount_sum(oos_amount_exact(10, OOS_SOURCE_DERIVED, NULL), oos_amount_guess(5, 4, 8, NULL));
    assert_int_equal(sum.source, OOS_SOURCE_ESTIMATED);
    assert_true(sum.bytes == 15 && sum.low == 14 && sum.high == 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_past_64_bits_is_refused_and_changes_nothing),
        cmocka_unit_test(rows_add_up_to_the_device_with_an_unaccounted_row),
        cmocka_unit_test(a_sum_of_amounts_is_as_weak_as_its_weakest_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "unit.h"

#include "ledger/ledger.h"

static void a_sum_past_64_bits_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(256);
    oos_ledger ledger;
    oos_ledger_init(&ledger, arena);
    assert_int_equal(
        oos_ledger_hold(&ledger, OOS_OWNER_WEIGHTS, oos_amount_exact(UINT64_MAX, OOS_SOURCE_READ, NULL)),
        OOMSIGHT_OK);
    assert_int_equal(oos_ledger_hold(&ledger, OOS_OWNER_KV_CACHE, oos_amount_exact(1, OOS_SOURCE_READ, NULL)),
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
    assert_int_equal(oos_ledger_hold(&ledger, OOS_OWNER_WEIGHTS, oos_amount_exact(70, OOS_SOURCE_READ, NULL)),
                     OOMSIGHT_OK);
    assert_int_equal(oos_ledger_hold(&ledger, OOS_OWNER_CUDA_GRAPHS, oos_amount_guess(10, 5, 20, NULL)),
                     OOMSIGHT_OK);
    assert_int_equal(oos_ledger_close(&ledger, 100), OOMSIGHT_OK);
    uint64_t sum = 0;
    oos_owner last = OOS_OWNER_COUNT;
    for (const oos_hold *row = ledger.first; row; row = row->next) {
        sum += row->amount.bytes;
        last = row->owner;
    }
    assert_true(sum == 100);
    assert_int_equal(last, OOS_OWNER_UNACCOUNTED);
    oos_arena_free(arena);
}

static void every_word_is_found_again_and_none_stands_twice(void **state)
{
    (void)state;
    for (unsigned i = 0; i < OOS_PHASE_COUNT; i++) assert_int_equal(oos_phase_find(oos_phase_word(i)), i);
    for (unsigned i = 1; i < OOS_CAUSE_COUNT; i++)
        for (unsigned k = 1; k < i; k++) assert_string_not_equal(oos_cause_word(i), oos_cause_word(k));
    for (unsigned i = 0; i < OOS_OWNER_COUNT; i++)
        for (unsigned k = 0; k < i; k++) assert_string_not_equal(oos_owner_word(i), oos_owner_word(k));
    assert_int_equal(oos_phase_find("no_phase"), OOS_PHASE_COUNT);
    assert_int_equal(oos_phase_find(NULL), OOS_PHASE_COUNT);
    assert_null(oos_cause_word(OOS_CAUSE_NONE));
}

static void a_moment_within_its_error_of_the_limit_is_tight(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(256);
    oos_moment moment;
    oos_moment_init(&moment, arena, OOS_PHASE_KV_ALLOC);
    oos_moment_hold(&moment, OOS_OWNER_WEIGHTS, oos_amount_exact(70, OOS_SOURCE_READ, NULL));
    oos_moment_hold(&moment, OOS_OWNER_KERNELS, oos_amount_guess(20, 10, 40, NULL));
    assert_int_equal(oos_moment_close(&moment, oos_limit_exact(100), NULL), OOMSIGHT_OK);
    assert_true(moment.ok && moment.tight && moment.peak_bytes == 90);
    assert_true(moment.peak_low == 80 && moment.peak_high == 110);
    assert_true(moment.chance > 0.5 && moment.chance < 1);
    oos_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_past_64_bits_is_refused_and_changes_nothing),
        cmocka_unit_test(rows_add_up_to_the_device_with_an_unaccounted_row),
        cmocka_unit_test(every_word_is_found_again_and_none_stands_twice),
        cmocka_unit_test(a_moment_within_its_error_of_the_limit_is_tight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "unit.h"

#include "base/size.h"

static uint64_t parsed(const char *word)
{
    uint64_t bytes = 0;
    assert_true(oos_size_parse(oos_view_of(word), &bytes));
    return bytes;
}

static void sizes_are_read_as_people_write_them(void **state)
{
    (void)state;
    assert_true(parsed("23.5GiB") == 25232932864u);
    assert_true(parsed("24GB") == 24000000000u);
    assert_true(parsed("24564MiB") == 24564u * OOS_MIB);
    assert_true(parsed("24564 mib") == 24564u * OOS_MIB);
    assert_true(parsed("80g") == 80 * OOS_GIB);
    assert_true(parsed("1024") == 1024);
}

static void what_is_not_a_size_is_refused(void **state)
{
    (void)state;
    static const char *const words[] = {"",     "GiB",     "-1GiB",      "nan",    "inf",
                                        "0x10", "1e30GiB", "12 parsecs", "1GiBGiB"};
    uint64_t bytes;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_false(oos_size_parse(oos_view_of(words[i]), &bytes));
}

/* 24 may be GiB, MiB or a joke; 25757220864 is bytes. */
static void a_size_that_is_given_has_a_unit(void **state)
{
    (void)state;
    uint64_t bytes = 7;
    static const char *const bare[] = {"24", "24564", "1.5", "1048575", "3 "};
    for (size_t i = 0; i < sizeof bare / sizeof *bare; i++)
        assert_false(oos_size_given(oos_view_of(bare[i]), &bytes));
    assert_int_equal(bytes, 7);
    assert_true(oos_size_given(oos_view_of("0"), &bytes) && bytes == 0);
    assert_true(oos_size_given(oos_view_of("512b"), &bytes) && bytes == 512);
    assert_true(oos_size_given(oos_view_of("25757220864"), &bytes) && bytes == 25757220864u);
}

static void arithmetic_stops_at_the_end_instead_of_wrapping(void **state)
{
    (void)state;
    assert_true(oos_mul(UINT64_MAX / 2, 3) == UINT64_MAX);
    assert_true(oos_add(UINT64_MAX, 1) == UINT64_MAX);
    assert_true(oos_sub(1, 2) == 0);
    assert_true(oos_cdiv(UINT64_MAX, 2) == (uint64_t)1 << 63);
    assert_true(oos_round_up(50272, 64) == 50304);
}

static void sizes_are_printed_as_pytorch_prints_them(void **state)
{
    (void)state;
    char text[32];
    oos_size_print(512, text, sizeof text);
    assert_string_equal(text, "512 bytes");
    oos_size_print(20 * OOS_MIB, text, sizeof text);
    assert_string_equal(text, "20.00 MiB");
    oos_size_print(1677721600, text, sizeof text);
    assert_string_equal(text, "1.56 GiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_as_people_write_them),
        cmocka_unit_test(what_is_not_a_size_is_refused),
        cmocka_unit_test(a_size_that_is_given_has_a_unit),
        cmocka_unit_test(arithmetic_stops_at_the_end_instead_of_wrapping),
        cmocka_unit_test(sizes_are_printed_as_pytorch_prints_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

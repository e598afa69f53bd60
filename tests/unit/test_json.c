#include "unit.h"

#include "base/json.h"

static json_t *load(oos_arena *arena, const char *text)
{
    json_t *root = NULL;
    assert_int_equal(oos_json_load(arena, oos_view_of(text), &root, NULL), OOMSIGHT_OK);
    return root;
}

static void a_size_is_whole_not_negative_and_below_the_limit(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(1024);
    json_t *root =
        load(arena, "{\"a\":4096,\"b\":-1,\"c\":1e30,\"d\":4096.0,\"e\":0.5,\"f\":\"7\",\"g\":null}");
    uint64_t value = 0;
    assert_true(oos_json_u64(root, "a", &value) && value == 4096);
    assert_true(oos_json_u64(root, "d", &value) && value == 4096);
    assert_false(oos_json_u64(root, "b", &value));
    assert_false(oos_json_u64(root, "c", &value));
    assert_false(oos_json_u64(root, "e", &value));
    assert_false(oos_json_u64(root, "f", &value));
    assert_false(oos_json_u64(root, "g", &value));
    assert_false(oos_json_u64(root, "absent", &value));
    assert_false(oos_json_u64(NULL, "a", &value));
    oos_arena_free(arena);
}

static void ten_thousand_levels_are_refused_with_a_reason(void **state)
{
    (void)state;
    enum { DEEP = 10000 };
    char *text = malloc(2 * DEEP);
    memset(text, '[', DEEP);
    memset(text + DEEP, ']', DEEP);
    oos_arena *arena = oos_arena_create(1024);
    json_t *root = NULL;
    oomsight_error error;
    assert_int_equal(oos_json_load(arena, (oos_view){text, 2 * DEEP}, &root, &error), OOMSIGHT_MALFORMED);
    assert_null(root);
    assert_non_null(strstr(error.text, "JSON"));
    oos_arena_free(arena);
    free(text);
}

static void nan_is_not_json_and_the_last_of_two_keys_wins(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(1024);
    json_t *root = NULL;
    assert_int_equal(oos_json_load(arena, oos_view_of("{\"a\":NaN}"), &root, NULL), OOMSIGHT_MALFORMED);
    root = load(arena, "{\"a\":1,\"a\":2}");
    uint64_t value = 0;
    assert_true(oos_json_u64(root, "a", &value) && value == 2);
    oos_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_is_whole_not_negative_and_below_the_limit),
        cmocka_unit_test(ten_thousand_levels_are_refused_with_a_reason),
        cmocka_unit_test(nan_is_not_json_and_the_last_of_two_keys_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

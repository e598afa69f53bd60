#include "unit.h"

#include "base/json.h"
#include "base/json_write.h"
#include "facts/facts.h"

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

static void what_is_written_reads_back_equal(void **state)
{
    (void)state;
    oos_text text = {0};
    oos_json_writer writer = {.text = &text, .pretty_depth = 1};
    oos_json_begin_object(&writer);
    oos_json_field_u64(&writer, "bytes", 33672921088u);
    oos_json_field_f64(&writer, "ratio", 0.1);
    oos_json_field_str(&writer, "odd", "a\"b\\c\n\x01\xff\xe2\x82\xac");
    oos_json_field_known(&writer, "unknown", (oos_u64){0});
    oos_json_key(&writer, "list");
    oos_json_begin_array(&writer);
    oos_json_put_bool(&writer, true);
    oos_json_begin_object(&writer);
    oos_json_end_object(&writer);
    oos_json_end_array(&writer);
    oos_json_end_object(&writer);

    oos_arena *arena = oos_arena_create(1024);
    json_t *root = load(arena, text.ptr);
    double ratio = 0;
    uint64_t bytes = 0;
    const char *odd = NULL;
    assert_true(oos_json_u64(root, "bytes", &bytes) && bytes == 33672921088u);
    assert_true(oos_json_f64(root, "ratio", &ratio) && ratio == 0.1);
    assert_true(oos_json_str(root, "odd", &odd));
    assert_string_equal(odd, "a\"b\\c\n\x01\xef\xbf\xbd\xe2\x82\xac");
    assert_true(json_is_null(json_object_get(root, "unknown")));
    assert_int_equal(json_array_size(json_object_get(root, "list")), 2);
    oos_arena_free(arena);
    oos_text_free(&text);
}

/* What the quick reader takes, Jansson takes, and both make the same of it. */
static bool both_read(const char *text, size_t len)
{
    json_t *quick = oos_json_parse_plain((oos_view){text, len});
    if (!quick) return false;
    json_t *whole = oos_json_parse((oos_view){text, len}, JSON_DECODE_ANY);
    assert_non_null(whole);
    char *first = oos_json_text(quick, JSON_ENCODE_ANY), *second = oos_json_text(whole, JSON_ENCODE_ANY);
    assert_string_equal(first, second);
    free(first);
    free(second);
    json_decref(quick);
    json_decref(whole);
    return true;
}

static void pairs_of_surrogates_are_one_character(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool quick;
    } pairs[] = {{"\"x\\ud83d\\uDE00 y\"", true},
                 {"\"\\udbff\\udfff\"", true},
                 {"\"\\ud83d\"", false},
                 {"\"\\ude00\\ud83d\"", false},
                 {"\"\\ud83d\\u0041\"", false},
                 {"\"\\ud83dx\"", false},
                 {"\"\\ud83d\\ud83d\"", false},
                 {"\"0123456789abcdef\x7f\"", true},
                 {"\"0123456789abcde\x1f\"", false}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_int_equal(both_read(pairs[i].text, strlen(pairs[i].text)), pairs[i].quick);
}

static void the_quick_reader_and_jansson_read_the_same(void **state)
{
    (void)state;
    static const char bytes[] = "\\\"{}[],:0-.eEtfn u\x80\xe2\n";
    uint64_t random = 2315;
    size_t quick = 0;
    for (size_t i = 0; i < oos_data_embedded_count; i++) {
        const oos_data_file *file = &oos_data_embedded[i];
        if (file->len > 1 << 15) continue;
        quick += both_read(file->bytes, file->len);
        char *copy = malloc(file->len);
        for (int round = 0; round < 40; round++) {
            memcpy(copy, file->bytes, file->len);
            random = random * 6364136223846793005u + 1442695040888963407u;
            copy[(random >> 33) % file->len] = bytes[(random >> 20) % (sizeof bytes - 1)];
            both_read(copy, round % 4 ? file->len : (random >> 33) % file->len);
        }
        free(copy);
    }
    assert_true(quick > 100); /* else it reads nothing */
    static const char *const alone[] = {"{\"a\":-0}",
                                        "[01]",
                                        "[1.]",
                                        "[1e5,1E-3,2.50]",
                                        "[true1]",
                                        "[-]",
                                        "\"a\\u0041\"",
                                        "[\"a\\/\\n\\\\\"]",
                                        "{\"a\":1,\"a\":[]}",
                                        "[1,]",
                                        "[9223372036854775807]",
                                        "[1] 2",
                                        "\"\x1f\"",
                                        "[\"\xff\"]",
                                        "nullx",
                                        "[0.1, 1e400]"};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) both_read(alone[i], strlen(alone[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_of_surrogates_are_one_character),
        cmocka_unit_test(the_quick_reader_and_jansson_read_the_same),
        cmocka_unit_test(a_size_is_whole_not_negative_and_below_the_limit),
        cmocka_unit_test(ten_thousand_levels_are_refused_with_a_reason),
        cmocka_unit_test(nan_is_not_json_and_the_last_of_two_keys_wins),
        cmocka_unit_test(what_is_written_reads_back_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

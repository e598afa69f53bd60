#include "unit.h"

#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static oos_arena *arena;
static oomsight_error error;
static char dir[] = "/tmp/oos_tensors_XXXXXX";

static int begin(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/oos_tensors_XXXXXX");
    arena = oos_arena_create(4096);
    return arena && mkdtemp(dir) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    char command[64];
    oos_arena_free(arena);
    snprintf(command, sizeof command, "rm -r %s", dir);
    return system(command);
}

static oos_view file_of(const char *header)
{
    static char bytes[4096];
    size_t const len = strlen(header);
    assert_true(len + 8 < sizeof bytes);
    for (int i = 0; i < 8; i++) bytes[i] = (char)(len >> (8 * i));
    memcpy(bytes + 8, header, len);
    return (oos_view){bytes, len + 8};
}

static oomsight_status read_header(const char *header, oos_tensor_table *ret_table)
{
    return oos_safetensors_read(arena, file_of(header), ret_table, &error);
}

static void put(const char *name, oos_view bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes.ptr, 1, bytes.len, out), bytes.len);
    fclose(out);
}

static void names_types_and_shapes_are_read(void **state)
{
    (void)state;
    oos_tensor_table table;
    assert_int_equal(
        read_header("{\"__metadata__\":{\"format\":\"pt\"},"
                    "\"a.weight\":{\"dtype\":\"BF16\",\"shape\":[4,8],\"data_offsets\":[0,64]},"
                    "\"b\":{\"data_offsets\":[64,68],\"shape\":[],\"dtype\":\"F32\"},"
                    "\"empty\":{\"dtype\":\"I8\",\"shape\":[0,5],\"data_offsets\":[68,68]},"
                    "\"odd\":{\"dtype\":\"F9_NEW\",\"shape\":[3],\"data_offsets\":[68,71],\"more\":[{}]},"
                    "\"half\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[71,74]}}   ",
                    &table),
        OOMSIGHT_OK);
    assert_int_equal(table.count, 5);
    assert_true(table.total_bytes == 74);
    assert_string_equal(table.list[0].name, "a.weight");
    assert_int_equal(table.list[0].dtype, OOS_DTYPE_BF16);
    assert_int_equal(table.list[0].rank, 2);
    assert_true(table.list[0].shape[0] == 4 && table.list[0].shape[1] == 8 && table.list[0].bytes == 64);
    assert_int_equal(table.list[1].rank, 0);
    assert_true(table.list[1].bytes == 4);
    assert_int_equal(table.list[3].dtype, OOS_DTYPE_UNKNOWN); /* its size is what the offsets say */
    assert_true(table.list[3].bytes == 3);
}

static void the_data_behind_a_header_may_be_missing(void **state)
{
    (void)state;
    oos_tensor_table table;
    assert_int_equal(
        read_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[1000000000],\"data_offsets\":[0,4000000000]}}",
                    &table),
        OOMSIGHT_OK);
    assert_true(table.total_bytes == 4000000000);
}

static void a_header_that_lies_is_refused(void **state)
{
    (void)state;
    static const char *const headers[][2] = {
        {"[]", "object"},
        {"{ ", "JSON"},
        {"{\"a\":1}", "not an object"},
        {"{\"a\":{}}", "needs dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", "JSON"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}} x", "JSON"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,4]}}", "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", "data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[18446744073709551614,18446744073709551615]"
         "}}",
         "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}",
         "12 bytes by its shape, 8 by its data_offsets"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", "by its shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,0]}}", "64 bits"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "dimension"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1e30],\"data_offsets\":[0,4]}}", "dimension"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[NaN],\"data_offsets\":[0,4]}}", "dimension"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", "8 dimensions"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
         "over each other"},
        {"{\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
         "over each other"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
         "over each other"},
        {"{\"\x01\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "text"},
        {"{\"\xff\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "text"},
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        oos_tensor_table table = {.count = 77};
        assert_int_equal(read_header(headers[i][0], &table), OOMSIGHT_MALFORMED);
        if (!strstr(error.text, headers[i][1])) fail_msg("%s: %s", headers[i][0], error.text);
        assert_int_equal(table.count, 77);
    }
}

static void a_length_that_cannot_be_is_refused_before_anything_is_read(void **state)
{
    (void)state;
    static const struct {
        unsigned char bytes[10];
        size_t len;
    } files[] = {
        {{0}, 0},
        {{1, 2, 3}, 3},
        {{0, 0, 0, 0, 0, 0, 0, 0x80, '{', '}'}, 10},                      /* 2^63 */
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'}, 10}, /* 2^64 - 1 */
        {{0x01, 0xe1, 0xf5, 0x05, 0, 0, 0, 0, '{', '}'}, 10},             /* one more than the largest */
        {{3, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10},                         /* one more than there is */
        {{0, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, 10},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        oos_tensor_table table;
        char const *bytes = (const char *)files[i].bytes;
        assert_int_equal(oos_safetensors_read(arena, (oos_view){bytes, files[i].len}, &table, &error),
                         OOMSIGHT_MALFORMED);
        put("model.safetensors", (oos_view){bytes, files[i].len});
        assert_int_equal(oos_safetensors_open_dir(arena, dir, &table, &error), OOMSIGHT_MALFORMED);
        assert_non_null(strstr(error.path, "model.safetensors"));
    }
}

#define ONE(name, bytes_)                                                                                    \
    "{\"" name "\":{\"dtype\":\"U8\",\"shape\":[" bytes_ "],\"data_offsets\":[0," bytes_ "]}}"

static void a_directory_without_an_index_is_read_by_name(void **state)
{
    (void)state;
    oos_tensor_table table;
    assert_int_equal(oos_safetensors_open_dir(arena, dir, &table, &error), OOMSIGHT_OK);
    assert_int_equal(table.count, 0);
    put("model-00002-of-00002.safetensors", file_of(ONE("b", "20")));
    put("model-00001-of-00002.safetensors", file_of(ONE("a", "10")));
    put("consolidated.safetensors", file_of(ONE("same.again", "30")));
    put(".hidden.safetensors", file_of(ONE("c", "5")));
    put("notes.txt", oos_view_of("x"));
    assert_int_equal(oos_safetensors_open_dir(arena, dir, &table, &error), OOMSIGHT_OK);
    assert_int_equal(table.count, 2);
    assert_string_equal(table.list[0].name, "a");
    assert_true(table.total_bytes == 30);
    assert_true(table.largest_file_bytes == file_of(ONE("b", "20")).len);
}

static void consolidated_weights_are_read_when_there_are_no_others(void **state)
{
    (void)state;
    oos_tensor_table table;
    put("consolidated.safetensors", file_of(ONE("a", "30")));
    assert_int_equal(oos_safetensors_open_dir(arena, dir, &table, &error), OOMSIGHT_OK);
    assert_int_equal(table.count, 1);
}

static void an_index_says_which_files_belong(void **state)
{
    (void)state;
    oos_tensor_table table;
    put("x.safetensors", file_of(ONE("a", "10")));
    put("y.safetensors", file_of(ONE("b", "20")));
    put("stale.safetensors", file_of(ONE("a", "10")));
    put("model.safetensors.index.json", oos_view_of("{\"metadata\":{\"total_size\":30},\"weight_map\":{\"a\":"
                                                    "\"x.safetensors\",\"b\":\"y.safetensors\","
                                                    "\"c\":\"x.safetensors\"}}"));
    assert_int_equal(oos_safetensors_open_dir(arena, dir, &table, &error), OOMSIGHT_OK);
    assert_int_equal(table.count, 2);
    assert_null(table.note);
}

static void half_a_model_is_no_model_and_the_note_says_so(void **state)
{
    (void)state;
    oos_tensor_table table;
    put("x.safetensors", file_of(ONE("a", "10")));
    put("model.safetensors.index.json",
        oos_view_of(
            "{\"weight_map\":{\"a\":\"x.safetensors\",\"b\":\"y.safetensors\",\"c\":\"z.safetensors\"}}"));
    assert_int_equal(oos_safetensors_open_dir(arena, dir, &table, &error), OOMSIGHT_OK);
    assert_int_equal(table.count, 0);
    assert_non_null(strstr(table.note, "2 of the 3"));
    oos_model model = {0};
    assert_int_equal(oos_tensors_attach(arena, &table, &model, NULL), OOMSIGHT_OK);
    assert_null(model.tensors);
    assert_int_equal(model.note_count, 1);
}

static void an_index_that_is_none_or_leaves_the_directory_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"weight_map\":[]}",
        "{\"weight_map\":{\"a\":1}}",
        "{\"weight_map\":{\"a\":\"x\"}",
        "{\"weight_map\":{\"a\":\"/etc/passwd\"}}",
        "{\"weight_map\":{\"a\":\"../x\"}}",
        "{\"weight_map\":{\"a\":\"\"}}",
        "{\"weight_map\":{\"a\":\"x/../../y\"}}",
        "{\"weight_map\":{\"a\":\"x/..\"}}",
        "{\"weight_map\":{\"a\":\"\\u002e\\u002e/x\"}}",
        "{\"weight_map\":{\"a\":\"..\\/x\"}}",
        "{\"weight_map\":{\"a\":\"\\/etc/passwd\"}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        oos_tensor_table table;
        put("model.safetensors.index.json", oos_view_of(texts[i]));
        assert_int_equal(oos_safetensors_open_dir(arena, dir, &table, &error), OOMSIGHT_MALFORMED);
        assert_non_null(strstr(error.path, "index.json"));
    }
}

/* 36,945 tensors in 30 files, with the names and the order of a model with many experts. */
static void the_headers_of_a_large_model_are_read_in_sixty_milliseconds(void **state)
{
    (void)state;
    enum { TENSORS = 36945, FILES = 30, PER_FILE = (TENSORS + FILES - 1) / FILES };
    char path[128], *index = malloc(8 << 20), *header = malloc(1 << 20);
    assert_non_null(index);
    assert_non_null(header);
    size_t index_len = (size_t)sprintf(index, "{\"metadata\":{\"total_size\":1},\"weight_map\":{");
    for (int f = 0, t = 0; f < FILES; f++) {
        size_t len = (size_t)sprintf(header + 8, "{\"__metadata__\":{\"format\":\"pt\"}");
        uint64_t offset = 0;
        for (int i = 0; i < PER_FILE && t < TENSORS; i++, t++) {
            char name[128];
            snprintf(name, sizeof name, "model.layers.%d.mlp.experts.%d.%s_proj.weight_scale_inv", t / 393,
                     t % 393 / 3,
                     t % 3 == 0   ? "gate"
                     : t % 3 == 1 ? "up"
                                  : "down");
            len += (size_t)sprintf(
                header + 8 + len,
                ",\"%s\":{\"dtype\":\"BF16\",\"shape\":[1536,4096],\"data_offsets\":[%llu,%llu]}", name,
                (unsigned long long)offset, (unsigned long long)offset + 12582912);
            offset += 12582912;
            index_len += (size_t)sprintf(index + index_len, "%s\"%s\":\"model-%05d-of-%05d.safetensors\"",
                                         t ? "," : "", name, f + 1, FILES);
        }
        header[8 + len++] = '}';
        for (int i = 0; i < 8; i++) header[i] = (char)(len >> (8 * i));
        snprintf(path, sizeof path, "model-%05d-of-%05d.safetensors", f + 1, FILES);
        put(path, (oos_view){header, len + 8});
    }
    index_len += (size_t)sprintf(index + index_len, "}}");
    put("model.safetensors.index.json", (oos_view){index, index_len});
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        struct timespec before, after;
        oos_tensor_table table;
        oos_arena *own = oos_arena_create(4096);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        assert_int_equal(oos_safetensors_open_dir(own, dir, &table, &error), OOMSIGHT_OK);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        assert_int_equal(table.count, TENSORS);
        assert_true(table.total_bytes == (uint64_t)TENSORS * 12582912);
        double const ms =
            (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6;
        if (ms < best) best = ms;
        oos_arena_free(own);
    }
    print_message("%d tensors: %.1f ms\n", TENSORS, best);
    assert_true(!clocks_decide() || best < 60);
    free(index);
    free(header);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(names_types_and_shapes_are_read),
        CASE(the_data_behind_a_header_may_be_missing),
        CASE(a_header_that_lies_is_refused),
        CASE(a_length_that_cannot_be_is_refused_before_anything_is_read),
        CASE(a_directory_without_an_index_is_read_by_name),
        CASE(consolidated_weights_are_read_when_there_are_no_others),
        CASE(an_index_says_which_files_belong),
        CASE(half_a_model_is_no_model_and_the_note_says_so),
        CASE(an_index_that_is_none_or_leaves_the_directory_is_refused),
        CASE(the_headers_of_a_large_model_are_read_in_sixty_milliseconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

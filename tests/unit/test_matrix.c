#include "unit.h"

#include "base/file.h"
#include "base/sha256.h"
#include "matrix/matrix.h"
#include "oomsight_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static oos_arena *arena;

static int begin(void **state)
{
    (void)state;
    arena = oos_arena_create(4096);
    return arena ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    oos_arena_free(arena);
    return 0;
}

static oos_matrix_file read_as(const char *text)
{
    oos_matrix_file matrix = {0};
    oomsight_error error = {0};
    oomsight_status const status =
        oos_matrix_read(arena, oos_view_of(text), "0.32.0", NULL, 0, &matrix, &error);
    if (status != OOMSIGHT_OK) print_message("line %u: %s\n", (unsigned)error.line, error.text);
    assert_int_equal(status, OOMSIGHT_OK);
    return matrix;
}

static void refused_at(const char *text, uint32_t line, const char *words)
{
    oos_matrix_file matrix;
    oomsight_error error = {0};
    assert_int_equal(oos_matrix_read(arena, oos_view_of(text), "0.32.0", NULL, 0, &matrix, &error),
                     OOMSIGHT_MALFORMED);
    assert_int_equal(error.line, line);
    if (!strstr(error.text, words)) print_message("%s\n", error.text);
    assert_non_null(strstr(error.text, words));
}

static const char *words_of(const oos_matrix_place *place)
{
    static char text[1000];
    const char *words[OOS_MATRIX_WORDS];
    size_t const count = oos_matrix_flag_words(place, words);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (i) strcat(text, "|");
        strcat(text, words[i]);
    }
    return text;
}

static void the_hash_is_sha_256(void **state)
{
    (void)state;
    char hex[65];
    oos_sha256 hash;
    oos_sha256_init(&hash);
    oos_sha256_add(&hash, "abc", 3);
    oos_sha256_hex(&hash, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    oos_sha256_init(&hash);
    for (int i = 0; i < 1000000; i++) oos_sha256_add(&hash, "a", 1);
    oos_sha256_hex(&hash, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void a_point_is_made_from_its_number_version_fastest(void **state)
{
    (void)state;
    oos_matrix_file const m =
        read_as("models: [a, b]\ngpus: [4090, L4]\nversions: [0.19.1, 0.32.0]\n"
                "flags: {max-num-seqs: [16, 64], --enforce-eager: [true, false]}\nalways: --seed 1\n");
    assert_true(m.points == 2 * 2 * 4 * 2);
    oos_matrix_place p;
    assert_true(oos_matrix_place_of(&m, 0, &p));
    assert_string_equal(words_of(&p), "--seed|1|--max-num-seqs|16|--enforce-eager");
    assert_true(oos_matrix_place_of(&m, 3, &p));
    assert_int_equal(p.version, 1);
    assert_string_equal(words_of(&p), "--seed|1|--max-num-seqs|16");
    assert_true(oos_matrix_place_of(&m, m.points - 1, &p));
    assert_string_equal(p.block->models[p.model].label, "b");
    assert_string_equal(p.block->gpus[p.gpu].label, "L4");
    char label[100];
    oos_matrix_flag_label(&p, label, sizeof label);
    assert_string_equal(label, "--max-num-seqs 64");
}

static void versions_keep_their_digits_and_words_their_quotes(void **state)
{
    (void)state;
    oos_matrix_file const m =
        read_as("models: org/name\ngpus: {total: 24GB, cc: 9.0}\nversions: [0.10, 0.1]\n"
                "flags: [\"--x '{\\\"a\\\": 1}' y\\\\ z\", {name: n, flags: [a b, c]}]\n");
    assert_string_equal(m.version_labels[0], "0.10");
    assert_string_equal(m.version_labels[1], "0.1");
    assert_string_equal(m.gpu_labels[0], "24GB");
    assert_string_equal(m.blocks[0].gpus[0].capability, "9.0");
    oos_matrix_place p;
    oos_matrix_place_of(&m, 0, &p);
    assert_string_equal(words_of(&p), "--x|{\"a\": 1}|y z");
    oos_matrix_place_of(&m, 2, &p);
    assert_string_equal(words_of(&p), "a b|c");
}

static void folders_of_one_name_are_told_apart(void **state)
{
    (void)state;
    oos_matrix_file const m = read_as("models: [/a/llama, /b/llama, /a/llama, org/x]\ngpus: [4090]\n");
    assert_int_equal(m.model_count, 3);
    assert_string_equal(m.model_labels[0], "llama");
    assert_string_equal(m.model_labels[1], "/b/llama");
    assert_string_equal(m.model_labels[2], "org/x");
}

static void a_block_takes_from_the_top_what_it_does_not_say(void **state)
{
    (void)state;
    oos_matrix_file const m =
        read_as("gpus: [4090]\nversions: [0.19.1]\nblocks:\n"
                "  - {models: [a], flags: {x: [1, 2, 3]}}\n  - {models: [b], gpus: [L4, L40S]}\n");
    assert_int_equal(m.block_count, 2);
    assert_true(m.points == 3 + 2);
    oos_matrix_place p;
    oos_matrix_place_of(&m, 4, &p);
    assert_string_equal(p.block->gpus[p.gpu].label, "L40S");
    assert_string_equal(p.block->models[p.model].label, "b");
    assert_int_equal(m.gpu_count, 3);
}

static void what_is_excluded_by_pattern_is_no_point(void **state)
{
    (void)state;
    oos_matrix_file const m = read_as("models: [big-a, big-b, small]\ngpus: [4090, L4]\nflags: {tp: [1, 2]}\n"
                                      "exclude:\n  - {model: big-*, gpu: 4090}\n  - {tp: 2, model: small}\n");
    size_t left = 0;
    oos_matrix_place p;
    for (uint64_t i = 0; i < m.points; i++) left += oos_matrix_place_of(&m, i, &p);
    assert_true(m.points == 12);
    assert_int_equal(left, 12 - 4 - 2);
}

static void what_is_wrong_is_told_with_its_line(void **state)
{
    (void)state;
    refused_at("models: [a]\ngpu: 4090\n", 2, "'gpu' means nothing here");
    refused_at("models: [a]\n", 1, "'gpus' is missing");
    refused_at("models: [a]\ngpus:\n  - {total: huge}\n", 3, "is no size");
    refused_at("models: [a]\ngpus: [4090]\nmode: both\n", 3, "plan or dryrun");
    refused_at("models: [a]\ngpus: [4090]\nflags: [\"--x 'y\"]\n", 3, "a quote is not closed");
    refused_at("models: [a]\ngpus: [4090]\nexclude: [{flag: x}]\n", 3, "'flag' is no axis");
    refused_at("models: []\ngpus: [4090]\n", 1, "an axis is empty");
    refused_at("- a\n", 1, "is a mapping");
}

static void aliases_do_not_unfold_without_end(void **state)
{
    (void)state;
    char text[200000];
    size_t len = (size_t)sprintf(text, "x: &x [a");
    while (len < 60000) len += (size_t)sprintf(text + len, ",a");
    len += (size_t)sprintf(text + len, "]\n");
    sprintf(text + len, "models: [a]\n");
    refused_at(text, 1, "'x' means nothing here");
    len = (size_t)sprintf(text, "models: &x [a");
    while (len < 60000) len += (size_t)sprintf(text + len, ",a");
    len += (size_t)sprintf(text + len, "]\ngpus: [4090]\nblocks:\n");
    while (len < 62000) len += (size_t)sprintf(text + len, "  - {models: *x}\n");
    refused_at(text, 1, "entries in all lists");
    refused_at(
        "models: [a]\ngpus: [b]\nflags: {a: &l [1,2,3,4,5,6,7,8,9,10], b: *l, c: *l, d: *l, e: *l, f: *l, g: "
        "*l, h: *l, i: *l, j: *l}\n",
        3, "too large");
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static char folder[200], file_path[300];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static oomsight_matrix *open_matrix(const oomsight_data *data, unsigned threads, const char *cache)
{
    static char models[400];
    oomsight_error error = {0};
    oomsight_matrix *matrix = NULL;
    oomsight_matrix_params params = OOMSIGHT_MATRIX_PARAMS_INIT;
    snprintf(models, sizeof models, "%s/models", getenv("OOMSIGHT_FIXTURES"));
    params.data = data;
    params.path = file_path;
    params.models_dir = models;
    params.threads = threads;
    params.cache_dir = cache;
    params.lines = 1;
    oomsight_status const status = oomsight_matrix_open(&params, &matrix, &error);
    if (status != OOMSIGHT_OK) print_message("%s\n", error.text);
    assert_int_equal(status, OOMSIGHT_OK);
    return matrix;
}

/* All lines, and how many came from the cache. */
static char *lines_of(oomsight_matrix *matrix, size_t *ret_cached)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    uint64_t last = 0;
    *ret_cached = 0;
    for (const oomsight_matrix_point *point = NULL;;) {
        oomsight_error error;
        assert_int_equal(oomsight_matrix_next(matrix, &point, &error), OOMSIGHT_OK);
        if (!point) break;
        assert_true(point->number == 0 || point->number > last);
        last = point->number;
        fwrite(point->line, 1, point->line_bytes, out);
        fputc('\n', out);
        *ret_cached += (size_t)point->cached;
    }
    fclose(out);
    oomsight_matrix_close(matrix);
    return text;
}

static const oomsight_data *data_open(void)
{
    static oomsight_data *data;
    oomsight_error error;
    if (!data) assert_int_equal(oomsight_data_open(NULL, &data, &error), OOMSIGHT_OK);
    snprintf(folder, sizeof folder, "/tmp/oomsight-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(file_path, sizeof file_path, "%s/m.yaml", folder);
    write_file(file_path,
               "models: [small-llama, no-such-model]\ngpus: [4090, L4]\nversions: [0.19.1, 0.32.0]\n"
               "flags: {max-num-seqs: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512], max-model-len: [1024, 2048, "
               "4096, 8192], enforce-eager: [true, false]}\nexclude: [{max-num-seqs: 2}]\n");
    return data;
}

static void folder_remove(void)
{
    char path[400];
    snprintf(path, sizeof path, "%s/cache/matrix.ndjson", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/cache", folder);
    rmdir(path);
    unlink(file_path);
    rmdir(folder);
}

static void points_come_in_order_and_equal_on_any_number_of_threads(void **state)
{
    (void)state;
    const oomsight_data *data = data_open();
    size_t cached;
    char *one = lines_of(open_matrix(data, 1, NULL), &cached);
    char *many = lines_of(open_matrix(data, 7, NULL), &cached);
    assert_string_equal(one, many);
    assert_non_null(strstr(one, "\"problem\": \"")); /* the model that is not there */
    assert_non_null(strstr(one, "\"verdict\": \"fits\""));
    free(one);
    free(many);
    folder_remove();
}

static void a_matrix_may_be_closed_before_its_end(void **state)
{
    (void)state;
    oomsight_matrix *matrix = open_matrix(data_open(), 3, NULL);
    const oomsight_matrix_point *point;
    assert_int_equal(oomsight_matrix_next(matrix, &point, NULL), OOMSIGHT_OK);
    oomsight_matrix_close(matrix);
    folder_remove();
}

static void a_torn_line_is_not_read_and_spoils_nothing(void **state)
{
    (void)state;
    const oomsight_data *data = data_open();
    char cache[300], path[400];
    struct stat info;
    size_t cached;
    snprintf(cache, sizeof cache, "%s/cache", folder);
    snprintf(path, sizeof path, "%s/matrix.ndjson", cache);
    char *fresh = lines_of(open_matrix(data, 2, cache), &cached);
    assert_int_equal(cached, 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(truncate(path, info.st_size - 20), 0); /* killed while it wrote the last one */
    char *again = lines_of(open_matrix(data, 2, cache), &cached);
    assert_string_equal(fresh, again);
    assert_int_equal(cached, 2 * 2 * 9 * 4 * 2 - 1);
    free(again);
    again = lines_of(open_matrix(data, 2, cache), &cached);
    assert_string_equal(fresh, again);
    assert_int_equal(cached, 2 * 2 * 9 * 4 * 2);
    free(again);
    free(fresh);
    folder_remove();
}

static void a_dry_start_is_a_command_and_its_report_an_answer(void **state)
{
    (void)state;
    const oomsight_data *data = data_open();
    write_file(file_path,
               "mode: dryrun\nmodels: [small-llama]\ngpus: [{gpu: L4, used: 1GiB}]\nversions: [0.32.0]\n"
               "flags: [--enforce-eager]\nengines: {0.32.0: /opt/e}\nenvironment: {A: b}\n");
    char cache[300];
    snprintf(cache, sizeof cache, "%s/cache", folder);
    static const char report[] =
        "{\"schema\": \"oomsight.dryrun/1\", \"engine\": {\"version\": \"0.32.0\"}, \"verdict\": \"fits\", "
        "\"phase\": null, \"weights_bytes\": 5, \"kv\": {\"tokens\": 77}, \"child\": {\"exit\": 0}}";
    for (int round = 0; round < 3; round++) {
        oomsight_matrix *matrix = open_matrix(data, 1, cache);
        oomsight_matrix_task task = OOMSIGHT_MATRIX_TASK_INIT;
        oomsight_matrix_need need;
        const oomsight_matrix_point *point = NULL;
        oomsight_error error;
        assert_int_equal(oomsight_matrix_task_of(matrix, 0, &need, &task, &point, &error), OOMSIGHT_OK);
        assert_int_equal(need, round < 2 ? OOMSIGHT_MATRIX_RUN : OOMSIGHT_MATRIX_KNOWN);
        if (round < 2) {
            assert_string_equal(task.words[0], "--gpu");
            assert_string_equal(task.words[task.word_count - 1], "--enforce-eager");
            assert_string_equal(task.engine, "/opt/e");
            assert_string_equal(task.environment[0], "A=b");
            assert_int_equal(oomsight_matrix_answer(matrix, 0, round ? report : NULL,
                                                    round ? NULL : "it was killed", 1.5, 1, &point, &error),
                             OOMSIGHT_OK);
        }
        assert_int_equal(point->readable, round > 0);
        if (round) assert_true(point->kv_tokens == 77 && point->weights_bytes == 5);
        oomsight_matrix_close(matrix);
    }
    oomsight_matrix *matrix = open_matrix(data, 1, NULL);
    const oomsight_matrix_point *point = NULL;
    oomsight_error error;
    static const char other[] = "{\"engine\": {\"version\": \"0.24.0\"}, \"verdict\": \"fits\"}";
    assert_int_equal(oomsight_matrix_answer(matrix, 0, other, NULL, 1, 1, &point, &error), OOMSIGHT_OK);
    assert_false(point->readable); /* another engine than the one asked for */
    assert_non_null(strstr(point->why, "0.24.0"));
    oomsight_matrix_close(matrix);
    assert_false(oomsight_matrix_report_settled("{\"verdict\": \"unknown\", \"child\": {\"exit\": 137}}"));
    assert_true(oomsight_matrix_report_settled("{\"verdict\": \"unknown\", \"child\": {\"exit\": 2}}"));
    folder_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hash_is_sha_256),
        cmocka_unit_test_setup_teardown(a_point_is_made_from_its_number_version_fastest, begin, end),
        cmocka_unit_test_setup_teardown(versions_keep_their_digits_and_words_their_quotes, begin, end),
        cmocka_unit_test_setup_teardown(folders_of_one_name_are_told_apart, begin, end),
        cmocka_unit_test_setup_teardown(a_block_takes_from_the_top_what_it_does_not_say, begin, end),
        cmocka_unit_test_setup_teardown(what_is_excluded_by_pattern_is_no_point, begin, end),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_told_with_its_line, begin, end),
        cmocka_unit_test_setup_teardown(aliases_do_not_unfold_without_end, begin, end),
        cmocka_unit_test(points_come_in_order_and_equal_on_any_number_of_threads),
        cmocka_unit_test(a_matrix_may_be_closed_before_its_end),
        cmocka_unit_test(a_torn_line_is_not_read_and_spoils_nothing),
        cmocka_unit_test(a_dry_start_is_a_command_and_its_report_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

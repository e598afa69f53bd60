#include "unit.h"

#include "facts/facts.h"
#include "base/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static oos_arena *arena;
static oos_flag_table table;
static const oos_version newest = OOS_VERSION(0, 32, 0), old = OOS_VERSION(0, 11, 0);

static int load(void **state)
{
    (void)state;
    arena = oos_arena_create(64 << 10);
    return oos_flags_load(arena, NULL, "vllm", &table, NULL) == OOMSIGHT_OK ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    oos_arena_free(arena);
    return 0;
}

static oos_flag_hit find(const char *spelling, oos_version version)
{
    return oos_flags_find(&table, oos_view_of(spelling), version);
}

static void a_flag_is_found_by_every_spelling(void **state)
{
    (void)state;
    static const char *const spellings[] = {"--tensor-parallel-size", "--tensor_parallel_size",
                                            "--tensor_parallel-size", "-tp"};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        oos_flag_hit const hit = find(spellings[i], newest);
        assert_non_null(hit.record);
        assert_string_equal(hit.record->name, "--tensor-parallel-size");
        assert_string_equal(hit.record->dest, "tensor_parallel_size");
        assert_true(hit.here);
        assert_true(hit.record->memory);
        assert_int_equal(hit.form->kind, OOS_FLAG_KIND_INT);
    }
    assert_null(find("--tensor-parallel-siz", newest).record);
    assert_null(find("", newest).record);
    assert_null(find("--", newest).record);
}

static void a_switch_has_every_negative_of_its_release(void **state)
{
    (void)state;
    static const char *const off[] = {"--disable-prefix-caching", "--no-enable-prefix-caching",
                                      "--no_enable_prefix_caching"};
    oos_version const later = OOS_VERSION(0, 33, 0);
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
        oos_flag_hit const hit = find(off[i], later);
        assert_non_null(hit.record);
        assert_string_equal(hit.record->dest, "enable_prefix_caching");
        assert_true(hit.here && hit.negated);
        assert_int_equal(find(off[i], newest).here, i > 0);
    }
    /* a name that was a flag of its own until 0.16 */
    assert_string_equal(find("--disable-log-requests", later).record->dest, "enable_log_requests");
    assert_true(find("--disable-log-requests", later).negated);
    assert_false(find("--disable-log-requests", newest).here);
}

static void every_spelling_of_the_table_finds_its_own_record(void **state)
{
    (void)state;
    assert_true(table.count > 300);
    for (size_t i = 0; i < table.count; i++) {
        const oos_flag_record *record = &table.list[i];
        oos_version const at = record->until == UINT64_MAX ? newest : record->until;
        assert_ptr_equal(find(record->name, at).record, record);
        for (size_t k = 0; k < record->alias_count; k++)
            assert_ptr_equal(find(record->aliases[k], at).record, record);
        const oos_flag_form *last = &record->forms[record->form_count - 1];
        for (size_t k = 0; k < last->negative_count; k++) {
            assert_ptr_equal(find(last->negatives[k], at).record, record);
            assert_true(find(last->negatives[k], at).negated);
        }
    }
}

static void the_no_form_is_the_same_flag_negated(void **state)
{
    (void)state;
    oos_flag_hit const hit = find("--no-enable-prefix-caching", newest);
    assert_non_null(hit.record);
    assert_string_equal(hit.record->name, "--enable-prefix-caching");
    assert_true(hit.negated);
    assert_int_equal(hit.form->most_values, 0);
}

static void a_flag_of_another_version_is_found_and_said_so(void **state)
{
    (void)state;
    oos_flag_hit hit = find("--swap-space", newest);
    assert_non_null(hit.record);
    assert_false(hit.here);
    assert_true(find("--swap-space", old).here);
    hit = find("--performance-mode", old);
    assert_non_null(hit.record);
    assert_false(hit.here);
    assert_true(hit.record->since > old);
}

static void a_flag_is_read_in_the_form_of_its_version(void **state)
{
    (void)state;
    assert_true(find("--block-size", old).form->choice_count > 0);
    assert_true(find("--block-size", newest).form->choice_count == 0);
    assert_false(find("--max-model-len", old).form->takes_auto);
    assert_true(find("--max-model-len", newest).form->takes_auto);
    assert_int_equal(find("--cuda-graph-sizes", old).form->most_values, OOS_FLAG_VALUES_MANY);
    /* -O belongs to --compilation-config first, and to nothing later */
    assert_string_equal(find("-O", old).record->name, "--compilation-config");
    assert_false(find("-O", newest).here);
    assert_true(find("-cc", newest).here);
}

static void a_version_between_two_dumps_has_what_either_has(void **state)
{
    (void)state;
    assert_true(find("--max-num-seqs", OOS_VERSION(0, 11, 1)).here);
    assert_true(find("--max-num-seqs", OOS_VERSION(0, 1, 0)).here);
    assert_true(find("--max-num-seqs", OOS_VERSION(9, 0, 0)).here);
}

static void a_beginning_is_enough_when_it_is_one_flags_only(void **state)
{
    (void)state;
    bool several;
    oos_flag_hit hit = oos_flags_find_start(&table, oos_view_of("--gpu-memory-util"), newest, &several);
    assert_non_null(hit.record);
    assert_string_equal(hit.record->name, "--gpu-memory-utilization");
    hit = oos_flags_find_start(&table, oos_view_of("--enable"), newest, &several);
    assert_null(hit.record);
    assert_true(several);
    hit = oos_flags_find_start(&table, oos_view_of("--model"), newest, &several);
    assert_string_equal(hit.record->name, "--model"); /* exact, although others begin so */
}

static void a_misspelt_flag_is_answered_with_the_nearest_one(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"--max-num-seq", "--max-num-seqs"},
        {"--max_model_lenght", "--max-model-len"},
        {"--gpu-mem-util", "--gpu-memory-utilization"},
        {"--gpu-memory-utilisation", "--gpu-memory-utilization"},
        {"--tensor-paralell-size", "--tensor-parallel-size"},
        {"--enforce-eagre", "--enforce-eager"},
        {"--kv-cache-dytpe", "--kv-cache-dtype"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const char *nearest = oos_flags_nearest(&table, oos_view_of(pairs[i][0]), newest);
        assert_non_null(nearest);
        assert_string_equal(nearest, pairs[i][1]);
    }
    assert_null(oos_flags_nearest(&table, oos_view_of("--utterly-unlike-anything-we-know"), newest));
    assert_null(oos_flags_nearest(&table, oos_view_of("-"), newest));
}

static void a_broken_table_is_refused_with_the_place(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"versions\":[],\"flags\":[]}",
        "{\"versions\":[\"0.1.0\"],\"flags\":[{}]}",
        "{\"versions\":[\"0.1.0\"],\"flags\":[{\"names\":[\"--a\"],\"dest\":\"a\",\"since\":\"x\"}]}",
        "{\"versions\":[\"0.1.0\"],\"flags\":[{\"names\":[\"--a\"],\"dest\":\"a\",\"since\":\"0.1.0\"}]",
        "{\"versions\":[\"0.1.0\"],\"flags\":[{\"names\":[\"--a\"],\"dest\":\"a\",\"since\":\"0.1.0\"},"
        "{\"names\":[\"--b\"],\"dest\":\"b\",\"since\":\"0.1.0\"}],\"flags\":["
        "{\"names\":[\"--c\"],\"dest\":\"c\",\"since\":\"0.1.0\"}]}",
    };
    char dir[] = "/tmp/oos_flags_XXXXXX", path[128];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/engines", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/engines/vllm", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/engines/vllm/flags.json", dir);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fputs(texts[i], out);
        fclose(out);
        oos_arena *own = oos_arena_create(256);
        oos_flag_table broken;
        oomsight_error error;
        assert_int_equal(oos_flags_load(own, dir, "vllm", &broken, &error), OOMSIGHT_MALFORMED);
        assert_non_null(strstr(error.path, "flags.json"));
        oos_arena_free(own);
    }
    char command[160];
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static void the_table_is_read_in_four_milliseconds(void **state)
{
    (void)state;
    double best = 1e9;
    for (int i = 0; i < 20; i++) {
        struct timespec before, after;
        oos_arena *own = oos_arena_create(64 << 10);
        oos_flag_table again;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        assert_int_equal(oos_flags_load(own, NULL, "vllm", &again, NULL), OOMSIGHT_OK);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        double const ms =
            (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6;
        if (ms < best) best = ms;
        oos_arena_free(own);
    }
    print_message("flags.json: %.3f ms\n", best);
    assert_true(!clocks_decide() || best < 4.0);
}

/* ---- base/scan, which reads it -------------------------------------------------------------------------------- */

static void a_scan_reads_what_it_is_asked_for_and_skips_the_rest(void **state)
{
    (void)state;
    oos_scan scan = oos_scan_begin(oos_view_of(" {\"a\": [1, {\"x\": [[]]}, \"]\\\"}\"], \"b\" : 12 } "));
    oos_view key, raw;
    uint64_t number = 0;
    assert_true(oos_scan_open(&scan, '{'));
    assert_true(oos_scan_key(&scan, &key));
    assert_true(oos_view_is(key, "a"));
    assert_true(oos_scan_skip(&scan, &raw));
    assert_true(oos_view_is(raw, "[1, {\"x\": [[]]}, \"]\\\"}\"]"));
    assert_true(oos_scan_key(&scan, &key));
    assert_true(oos_scan_u64(&scan, &number));
    assert_true(number == 12);
    assert_false(oos_scan_key(&scan, &key));
    assert_true(oos_scan_done(&scan));
}

static void a_malformed_text_fails_the_scan_once_and_for_all(void **state)
{
    (void)state;
    static const char *const texts[] = {"",         "{",      "[1,]",       "[1 2]", "{\"a\" 1}", "{\"a\":}",
                                        "\"open",   "[1,2]]", "{\"a\":1,}", "tru",   "[,1]",      "{,}",
                                        "[\"\\\"]", "{1:2}",  "[[[[[[",     "]",     "\xff"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        oos_scan scan = oos_scan_begin(oos_view_of(texts[i]));
        oos_scan_skip(&scan, NULL);
        assert_false(oos_scan_done(&scan));
    }
    char deep[3000];
    memset(deep, '[', sizeof deep);
    oos_scan scan = oos_scan_begin((oos_view){deep, sizeof deep});
    assert_false(oos_scan_skip(&scan, NULL));
}

static void escapes_become_characters_and_never_a_zero(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"plain", "plain"},
        {"a\\\"b\\\\c\\/", "a\"b\\c/"},
        {"\\n\\t\\b\\f\\r", "\n\t\b\f\r"},
        {"\\u0041\\u00e9", "A\xc3\xa9"},
        {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
        {"\\ud83d", "\xef\xbf\xbd"},
        {"\\u0000", "\xef\xbf\xbd"},
        {"\\u12", "\xef\xbf\xbd"
                  "12"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_string_equal(oos_scan_text(arena, oos_view_of(pairs[i][0])), pairs[i][1]);
}

static void numbers_that_are_not_sizes_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"-1",  "1.5", "1e3",   "18446744073709551616",
                                        "007", "NaN", "\"1\"", ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint64_t number;
        oos_scan scan = oos_scan_begin(oos_view_of(texts[i]));
        assert_false(oos_scan_u64(&scan, &number));
    }
    uint64_t number = 0;
    oos_scan scan = oos_scan_begin(oos_view_of("18446744073709551615"));
    assert_true(oos_scan_u64(&scan, &number) && number == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flag_is_found_by_every_spelling),
        cmocka_unit_test(every_spelling_of_the_table_finds_its_own_record),
        cmocka_unit_test(a_switch_has_every_negative_of_its_release),
        cmocka_unit_test(the_no_form_is_the_same_flag_negated),
        cmocka_unit_test(a_flag_of_another_version_is_found_and_said_so),
        cmocka_unit_test(a_flag_is_read_in_the_form_of_its_version),
        cmocka_unit_test(a_version_between_two_dumps_has_what_either_has),
        cmocka_unit_test(a_beginning_is_enough_when_it_is_one_flags_only),
        cmocka_unit_test(a_misspelt_flag_is_answered_with_the_nearest_one),
        cmocka_unit_test(a_broken_table_is_refused_with_the_place),
        cmocka_unit_test(the_table_is_read_in_four_milliseconds),
        cmocka_unit_test(a_scan_reads_what_it_is_asked_for_and_skips_the_rest),
        cmocka_unit_test(a_malformed_text_fails_the_scan_once_and_for_all),
        cmocka_unit_test(escapes_become_characters_and_never_a_zero),
        cmocka_unit_test(numbers_that_are_not_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, load, unload);
}

/* The promises of the public header: sizes are honoured, handles do not change, what is asked for is what is done. */
#include "oomsight_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static oomsight_data *data;
static char model[512];

static int set_up(void **state)
{
    (void)state;
    snprintf(model, sizeof model, "%s/models/small-llama", getenv("OOMSIGHT_FIXTURES"));
    return oomsight_data_open(NULL, &data, NULL) != OOMSIGHT_OK;
}

static int tear_down(void **state)
{
    (void)state;
    oomsight_data_close(data);
    return 0;
}

/* A struct as a caller with another header has it: `bytes` of it end where the process may not read on. */
static void *at_the_edge(const void *whole, size_t bytes, void **ret_pages)
{
    size_t const page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    char *at = pages + page - bytes;
    memcpy(at, whole, bytes);
    memcpy(at, &bytes, bytes < sizeof bytes ? bytes : sizeof bytes);
    *ret_pages = pages;
    return at;
}

static void let_go(void *pages)
{
    munmap(pages, 2 * (size_t)sysconf(_SC_PAGESIZE));
}

enum { STEP = sizeof(void *) }; /* a struct with pointers in it is never of another size */

/* Every entry with parameters, with a handle to render. What it answers does not matter here: it must not read behind `size`. */
typedef oomsight_status (*entry)(const void *params);

static oomsight_status plan_entry(const void *params)
{
    oomsight_plan *plan = NULL;
    oomsight_status const status = oomsight_plan_create(params, &plan, NULL);
    if (status == OOMSIGHT_OK) oomsight_plan_free(plan);
    return status;
}

static oomsight_status explain_entry(const void *params)
{
    oomsight_explanation *explanation = NULL;
    oomsight_status const status = oomsight_explain_create(params, &explanation, NULL);
    if (status == OOMSIGHT_OK) oomsight_explain_free(explanation);
    return status;
}

static oomsight_status replay_entry(const void *params)
{
    oomsight_replay *replay = NULL;
    oomsight_status const status = oomsight_replay_create(params, &replay, NULL);
    if (status == OOMSIGHT_OK) oomsight_replay_free(replay);
    return status;
}

static oomsight_status check_entry(const void *params)
{
    oomsight_check *check = NULL;
    oomsight_status const status = oomsight_check_create(params, &check, NULL);
    if (status == OOMSIGHT_OK) oomsight_check_free(check);
    return status;
}

static oomsight_status agent_entry(const void *params)
{
    oomsight_agent *agent = NULL;
    oomsight_status const status = oomsight_agent_open(params, &agent, NULL);
    if (status == OOMSIGHT_OK) oomsight_agent_close(agent);
    return status;
}

static oomsight_status matrix_entry(const void *params)
{
    oomsight_matrix *matrix = NULL;
    oomsight_status const status = oomsight_matrix_open(params, &matrix, NULL);
    if (status == OOMSIGHT_OK) oomsight_matrix_close(matrix);
    return status;
}

static oomsight_status dryrun_entry(const void *params)
{
    oomsight_dryrun *dryrun = NULL;
    oomsight_status const status = oomsight_dryrun_create(params, &dryrun, NULL);
    if (status == OOMSIGHT_OK) oomsight_dryrun_free(dryrun);
    return status;
}

static oomsight_status run_entry(const void *params)
{
    oomsight_run *run = NULL;
    unlink("/tmp/oomsight-test-api-run"); /* the file must not be there */
    oomsight_status const status = oomsight_run_create(params, &run, NULL);
    if (status == OOMSIGHT_OK) oomsight_run_free(run);
    unlink("/tmp/oomsight-test-api-run");
    return status;
}

static oomsight_status gpus_entry(const void *params)
{
    char *text = NULL;
    oomsight_status const status = oomsight_data_render(data, "gpus", params, &text, NULL);
    if (status == OOMSIGHT_OK) oomsight_text_free(text);
    return status;
}

static oomsight_plan *small_plan(const char *length, int skip_fixes)
{
    const char *command[] = {"vllm", "serve", model, "--max-model-len", length, "--no-such-flag"};
    oomsight_plan_params params = {
        .size = sizeof params, .data = data, .command = command, .command_count = 6};
    params.gpu_total_bytes = (uint64_t)6 << 30;
    params.compute_capability = "8.9";
    params.skip_fixes = skip_fixes;
    oomsight_plan *plan = NULL;
    assert_int_equal(oomsight_plan_create(&params, &plan, NULL), OOMSIGHT_OK);
    return plan;
}

static oomsight_status plan_render_entry(const void *params)
{
    oomsight_plan *plan = small_plan("2048", 1);
    char *text = NULL;
    oomsight_status const status = oomsight_plan_render(plan, params, &text, NULL);
    if (status == OOMSIGHT_OK) oomsight_text_free(text);
    oomsight_plan_free(plan);
    return status;
}

static void walk_sizes(const char *name, entry call, const void *whole, size_t whole_bytes)
{
    for (size_t bytes = 0; bytes <= whole_bytes; bytes += STEP) {
        void *pages = NULL;
        void *at = at_the_edge(whole, bytes < sizeof bytes ? sizeof bytes : bytes, &pages);
        memcpy(at, &bytes, sizeof bytes);
        oomsight_status const status = call(at);
        if (bytes < sizeof bytes) assert_int_equal(status, OOMSIGHT_USAGE);
        if (bytes == whole_bytes && status != OOMSIGHT_OK)
            fail_msg("%s: status %d with the whole struct", name, status);
        let_go(pages);
    }
}

static void no_entry_reads_behind_the_size_of_its_parameters(void **state)
{
    (void)state;
    const char *command[] = {"vllm", "serve", model};
    oomsight_plan_params const plan = {
        .size = sizeof plan, .data = data, .command = command, .command_count = 3, .gpu = "4090"};
    walk_sizes("plan", plan_entry, &plan, sizeof plan);

    oomsight_explain_params const explain = {
        .size = sizeof explain, .data = data, .text = "nothing\n", .text_bytes = 8};
    walk_sizes("explain", explain_entry, &explain, sizeof explain);

    char trace[] = "/tmp/oomsight-test-XXXXXX";
    int const fd = mkstemp(trace);
    assert_true(fd >= 0);
    char const line[] = "{\"meta\": {\"torch\": \"2.13.0\"}}\n";
    assert_int_equal(write(fd, line, sizeof line - 1), (ssize_t)sizeof line - 1);
    oomsight_replay_params const replay = {.size = sizeof replay, .path = "/nonexistent"};
    for (size_t bytes = 0; bytes <= sizeof replay; bytes += STEP) {
        void *pages = NULL;
        void *at = at_the_edge(&replay, bytes < sizeof bytes ? sizeof bytes : bytes, &pages);
        memcpy(at, &bytes, sizeof bytes);
        assert_int_not_equal(replay_entry(at), OOMSIGHT_OK);
        let_go(pages);
    }

    const char *paths[] = {trace};
    oomsight_check_params const check = {.size = sizeof check, .data = data, .paths = paths, .path_count = 1};
    walk_sizes("check", check_entry, &check, sizeof check);

    oomsight_agent_params const agent = {.size = sizeof agent, .data = data, .paths = paths, .path_count = 1};
    walk_sizes("agent", agent_entry, &agent, sizeof agent);

    oomsight_matrix_params const matrix = {.size = sizeof matrix, .data = data, .path = "/nonexistent"};
    for (size_t bytes = sizeof bytes; bytes <= sizeof matrix; bytes += STEP) {
        void *pages = NULL;
        void *at = at_the_edge(&matrix, bytes, &pages);
        assert_int_not_equal(matrix_entry(at), OOMSIGHT_OK);
        let_go(pages);
    }

    oomsight_dryrun_params const dryrun = {
        .size = sizeof dryrun, .data = data, .segment_path = trace, .gpu = "no such GPU"};
    for (size_t bytes = sizeof bytes; bytes <= sizeof dryrun; bytes += STEP) {
        void *pages = NULL;
        void *at = at_the_edge(&dryrun, bytes, &pages);
        assert_int_not_equal(dryrun_entry(at), OOMSIGHT_OK);
        let_go(pages);
    }

    oomsight_run_params const run = {.size = sizeof run, .segment_path = "/tmp/oomsight-test-api-run"};
    walk_sizes("run", run_entry, &run, sizeof run);
    oomsight_render_params const render = {.size = sizeof render};
    walk_sizes("gpus", gpus_entry, &render, sizeof render);
    walk_sizes("render", plan_render_entry, &render, sizeof render);
    close(fd);
    unlink(trace);
}

static void a_field_of_a_newer_header_is_refused_unless_it_is_zero(void **state)
{
    (void)state;
    const char *command[] = {"vllm", "serve", model};
    struct {
        oomsight_plan_params known;
        uint64_t newer;
    } later = {{.size = sizeof later, .data = data, .command = command, .command_count = 3, .gpu = "4090"},
               0};
    assert_int_equal(plan_entry(&later), OOMSIGHT_OK);
    later.newer = 1;
    assert_int_equal(plan_entry(&later), OOMSIGHT_UNSUPPORTED);
}

static void nothing_is_written_behind_a_struct_of_an_older_header(void **state)
{
    (void)state;
    oomsight_plan *plan = small_plan("2048", 1);
    oomsight_moment moment;
    for (size_t bytes = sizeof bytes; bytes <= sizeof moment; bytes += STEP) {
        memset(&moment, 0xaa, sizeof moment);
        void *pages = NULL;
        void *at = at_the_edge(&moment, bytes, &pages);
        assert_int_equal(oomsight_plan_moment(plan, 0, at), 1);
        assert_memory_equal(at, &bytes, sizeof bytes);
        let_go(pages);
    }
    oomsight_plan_free(plan);
}

static void the_init_macros_are_the_size_and_nothing_else(void **state)
{
    (void)state;
    oomsight_plan_params plan = OOMSIGHT_PLAN_PARAMS_INIT;
    oomsight_replay_params replay = OOMSIGHT_REPLAY_PARAMS_INIT;
    oomsight_matrix_params matrix = OOMSIGHT_MATRIX_PARAMS_INIT;
    oomsight_plan_params const plan_zero = {.size = sizeof plan};
    oomsight_replay_params const replay_zero = {.size = sizeof replay};
    oomsight_matrix_params const matrix_zero = {.size = sizeof matrix};
    assert_memory_equal(&plan, &plan_zero, sizeof plan);
    assert_memory_equal(&replay, &replay_zero, sizeof replay);
    assert_memory_equal(&matrix, &matrix_zero, sizeof matrix);
}

static void a_plan_without_fixes_still_says_what_was_mistyped(void **state)
{
    (void)state;
    for (int skip = 0; skip < 2; skip++) {
        oomsight_plan *plan = small_plan("2048", skip);
        bool told = false;
        for (size_t i = 0; oomsight_plan_note(plan, i); i++)
            told |= strstr(oomsight_plan_note(plan, i), "--no-such-flag") != NULL;
        if (oomsight_plan_phase(plan) && strcmp(oomsight_plan_phase(plan), "arguments") == 0) told = true;
        assert_true(told);
        oomsight_plan_free(plan);
    }
}

/* No GPU is the one that was asked for: the answer is the list, whether fixes are looked for or not. */
static void every_gpu_is_a_list_of_choices_and_a_plan_is_for_one_release(void **state)
{
    (void)state;
    const char *command[] = {"vllm", "serve", model};
    for (int skip = 0; skip < 2; skip++) {
        oomsight_plan_params params = {
            .size = sizeof params, .data = data, .command = command, .command_count = 3};
        params.gpu = "all";
        params.skip_fixes = skip;
        oomsight_plan *plan = NULL;
        assert_int_equal(oomsight_plan_create(&params, &plan, NULL), OOMSIGHT_OK);
        oomsight_render_params render = {.size = sizeof render, .format = OOMSIGHT_FORMAT_JSON};
        char *text = NULL;
        assert_int_equal(oomsight_plan_render(plan, &render, &text, NULL), OOMSIGHT_OK);
        assert_non_null(strstr(text, "\"choices\": ["));

        oomsight_text_free(text);
        oomsight_plan_free(plan);
        params.gpu = "4090";
        params.engine_version = "0.19.1,0.32.0";
        assert_int_equal(oomsight_plan_create(&params, &plan, NULL), OOMSIGHT_USAGE);
    }
}

static void the_rows_of_a_moment_add_up_to_its_peak(void **state)
{
    (void)state;
    oomsight_plan *plan = small_plan("2048", 1);
    size_t const count = oomsight_plan_moment_count(plan);
    for (size_t i = 0; i < count; i++) {
        oomsight_moment moment = {.size = sizeof moment};
        assert_int_equal(oomsight_plan_moment(plan, i, &moment), 1);
        uint64_t sum = 0;
        for (size_t k = 0; k < moment.hold_count; k++) {
            oomsight_hold hold = {.size = sizeof hold};
            assert_int_equal(oomsight_plan_hold(plan, i, k, &hold), 1);
            assert_non_null(hold.owner);
            assert_true(hold.low <= hold.bytes && hold.bytes <= hold.high);
            sum += hold.bytes;
        }
        assert_true(sum == moment.peak_bytes);
        oomsight_hold none = {.size = sizeof none};
        assert_int_equal(oomsight_plan_hold(plan, i, moment.hold_count, &none), 0);
    }
    oomsight_moment none = {.size = sizeof none};
    assert_int_equal(oomsight_plan_moment(plan, count, &none), 0);
    oomsight_plan_free(plan);
}

enum { ASKED = 2000 };

static void *ask(void *plan)
{
    const char *first = oomsight_plan_best_flags(plan);
    for (int i = 0; i < ASKED; i++) {
        oomsight_fix fix = {.size = sizeof fix};
        oomsight_moment moment = {.size = sizeof moment};
        if (oomsight_plan_best_flags(plan) != first) return plan;
        if (oomsight_plan_fix_count(plan) &&
            (!oomsight_plan_fix(plan, 0, &fix) || fix.command != oomsight_plan_best_command(plan)))
            return plan;
        if (oomsight_plan_moment_count(plan) && !oomsight_plan_moment(plan, 0, &moment)) return plan;
    }
    return NULL;
}

static void accessors_change_nothing_and_may_be_called_by_several_threads(void **state)
{
    (void)state;
    oomsight_plan *plan = small_plan("131072", 0);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, ask, plan), 0);
    for (size_t i = 0; i < 4; i++) {
        void *torn = NULL;
        pthread_join(threads[i], &torn);
        assert_null(torn);
    }
    oomsight_plan_free(plan);
}

static void the_header_names_the_release_of_the_library(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", OOMSIGHT_VERSION_MAJOR, OOMSIGHT_VERSION_MINOR,
             OOMSIGHT_VERSION_PATCH);
    assert_string_equal(text, oomsight_version());
}

int main(void)
{
    struct CMUnitTest const tests[] = {
        cmocka_unit_test(no_entry_reads_behind_the_size_of_its_parameters),
        cmocka_unit_test(a_field_of_a_newer_header_is_refused_unless_it_is_zero),
        cmocka_unit_test(nothing_is_written_behind_a_struct_of_an_older_header),
        cmocka_unit_test(the_init_macros_are_the_size_and_nothing_else),
        cmocka_unit_test(a_plan_without_fixes_still_says_what_was_mistyped),
        cmocka_unit_test(every_gpu_is_a_list_of_choices_and_a_plan_is_for_one_release),
        cmocka_unit_test(the_rows_of_a_moment_add_up_to_its_peak),
        cmocka_unit_test(accessors_change_nothing_and_may_be_called_by_several_threads),
        cmocka_unit_test(the_header_names_the_release_of_the_library),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* Memory runs out at every allocation in turn: each public entry says so, crashes never and leaks nothing.
 * The allocator of this program is glibc's with a counter in front. What our own code asks for is denied; what the libraries below it
 * ask for is only counted, since some of them do not survive a denial (Jansson 2.14 crashes in its parser). */
#include "oomsight_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default"))) /* the libraries below us come here, too */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *at);

static atomic_bool watching;
static atomic_uint_fast64_t asked;
static uint64_t fail_at; /* the allocation with this number is denied; 0: none */
static atomic_int_fast64_t live;
static uint64_t
    written; /* a sum over what was rendered: an answer made with too little memory is no other answer */

extern char __executable_start, etext; /* of this program, where our library is linked in */

static bool denied(const void *caller)
{
    if (!watching || (const char *)caller < &__executable_start || (const char *)caller >= &etext)
        return false;
    if (atomic_fetch_add(&asked, 1) + 1 != fail_at) return false;
    errno = ENOMEM;
    return true;
}

static void *kept(void *at)
{
    if (watching && at) live++;
    return at;
}

SHOWN void *malloc(size_t bytes)
{
    return denied(__builtin_return_address(0)) ? NULL : kept(__libc_malloc(bytes));
}

SHOWN void *calloc(size_t count, size_t bytes)
{
    return denied(__builtin_return_address(0)) ? NULL : kept(__libc_calloc(count, bytes));
}

SHOWN void *realloc(void *old, size_t bytes)
{
    if (denied(__builtin_return_address(0))) return NULL;
    void *at = __libc_realloc(old, bytes);
    if (watching && at && !old) live++;
    return at;
}

void *memalign(size_t alignment, size_t bytes);
SHOWN void *memalign(size_t alignment, size_t bytes)
{
    return denied(__builtin_return_address(0)) ? NULL : kept(__libc_memalign(alignment, bytes));
}

SHOWN void *aligned_alloc(size_t alignment, size_t bytes)
{
    return denied(__builtin_return_address(0)) ? NULL : kept(__libc_memalign(alignment, bytes));
}

SHOWN int posix_memalign(void **ret_at, size_t alignment, size_t bytes)
{
    void *at = denied(__builtin_return_address(0)) ? NULL : kept(__libc_memalign(alignment, bytes));
    if (!at) return ENOMEM;
    *ret_at = at;
    return 0;
}

SHOWN void free(void *at)
{
    if (watching && at) live--;
    __libc_free(at);
}

static oomsight_data *data;
static char model[512], deployment[512], matrix_file[512], trace[512];

static void name(char *into, const char *rest)
{
    snprintf(into, 512, "%s/%s", getenv("OOMSIGHT_FIXTURES"), rest);
}

static int set_up(void **state)
{
    (void)state;
    name(model, "models/small-llama");
    name(deployment, "deploy/compose.yaml");
    name(matrix_file, "matrix/fleet.yaml");
    name(trace, "traces/stranded.trace");
    return oomsight_data_open(NULL, &data, NULL) != OOMSIGHT_OK;
}

static int tear_down(void **state)
{
    (void)state;
    oomsight_data_close(data);
    return 0;
}

static void text_done(char *text)
{
    for (const char *c = text; *c; c++) written = written * 31 + (unsigned char)*c;
    oomsight_text_free(text);
}

static oomsight_status data_open(void)
{
    oomsight_data *own = NULL;
    oomsight_error error;
    oomsight_status const status = oomsight_data_open(NULL, &own, &error);
    if (status == OOMSIGHT_OK) oomsight_data_close(own);
    return status;
}

static oomsight_status model_open(void)
{
    oomsight_model *own = NULL;
    oomsight_error error;
    oomsight_status const status = oomsight_model_open(model, 0, &own, &error);
    if (status == OOMSIGHT_OK) oomsight_model_close(own);
    return status;
}

static const oomsight_format plan_formats[] = {OOMSIGHT_FORMAT_TEXT, OOMSIGHT_FORMAT_JSON,
                                               OOMSIGHT_FORMAT_MARKDOWN, OOMSIGHT_FORMAT_HTML};

static oomsight_status plan(void)
{
    const char *command[] = {"vllm", "serve", model, "--max-model-len", "131072", "--kv-cache-dtype", "fp8"};
    oomsight_plan_params params = {
        .size = sizeof params, .data = data, .command = command, .command_count = 7};
    params.gpu_total_bytes = (uint64_t)1 << 30;
    params.compute_capability = "8.9";
    oomsight_plan *own = NULL;
    oomsight_error error;
    oomsight_status status = oomsight_plan_create(&params, &own, &error);
    for (size_t i = 0; status == OOMSIGHT_OK && i < sizeof plan_formats / sizeof *plan_formats; i++) {
        oomsight_render_params render = {
            .size = sizeof render, .format = plan_formats[i], .language = i & 1 ? "zh" : "en"};
        char *text = NULL;
        status = oomsight_plan_render(own, &render, &text, &error);
        if (status == OOMSIGHT_OK) text_done(text);
    }
    oomsight_plan_free(own);
    return status;
}

static const oomsight_format explain_formats[] = {OOMSIGHT_FORMAT_TEXT,     OOMSIGHT_FORMAT_JSON,
                                                  OOMSIGHT_FORMAT_MARKDOWN, OOMSIGHT_FORMAT_GITHUB,
                                                  OOMSIGHT_FORMAT_SARIF,    OOMSIGHT_FORMAT_HTML};

static oomsight_status explain(void)
{
    static const char log[] =
        "INFO 11-15 10:00:00 [gpu_model_runner.py:3338] Model loading took 15.27 GiB and 4.1 seconds\n"
        "ERROR [core.py:708] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 594.00 MiB. GPU 0 "
        "has a total capacity of "
        "23.52 GiB of which 120.00 MiB is free. Including non-PyTorch memory, this process has 23.39 GiB "
        "memory in use. Of the "
        "allocated memory 22.70 GiB is allocated by PyTorch, and 190.11 MiB is reserved by PyTorch but "
        "unallocated.\n";
    oomsight_explain_params params = {
        .size = sizeof params, .data = data, .text = log, .text_bytes = sizeof log - 1};
    oomsight_explanation *own = NULL;
    oomsight_error error;
    oomsight_status status = oomsight_explain_create(&params, &own, &error);
    if (status != OOMSIGHT_OK) return status;
    for (size_t i = 0; status == OOMSIGHT_OK && i < sizeof explain_formats / sizeof *explain_formats; i++) {
        oomsight_render_params render = {
            .size = sizeof render, .format = explain_formats[i], .language = i & 1 ? "zh" : "en"};
        char *text = NULL;
        status = oomsight_explain_render(own, &render, &text, &error);
        if (status == OOMSIGHT_OK) text_done(text);
    }
    oomsight_explain_free(own);
    return status;
}

static oomsight_status replay(void)
{
    oomsight_replay_params params = {.size = sizeof params, .path = trace, .find_smallest = 1};
    oomsight_replay *own = NULL;
    oomsight_error error;
    oomsight_status status = oomsight_replay_create(&params, &own, &error);
    if (status != OOMSIGHT_OK) return status;
    for (size_t i = 0; status == OOMSIGHT_OK && i < sizeof plan_formats / sizeof *plan_formats; i++) {
        oomsight_render_params render = {.size = sizeof render, .format = plan_formats[i]};
        char *text = NULL;
        status = oomsight_replay_render(own, &render, &text, &error);
        if (status == OOMSIGHT_OK) text_done(text);
    }
    oomsight_replay_free(own);
    return status;
}

static oomsight_status check(void)
{
    const char *paths[] = {deployment};
    oomsight_check_params params = {
        .size = sizeof params, .data = data, .paths = paths, .path_count = 1, .gpu = "4090"};
    oomsight_check *own = NULL;
    oomsight_error error;
    oomsight_status status = oomsight_check_create(&params, &own, &error);
    if (status != OOMSIGHT_OK) return status;
    static const oomsight_format formats[] = {OOMSIGHT_FORMAT_TEXT, OOMSIGHT_FORMAT_JSON,
                                              OOMSIGHT_FORMAT_GITHUB, OOMSIGHT_FORMAT_SARIF};
    for (size_t i = 0; status == OOMSIGHT_OK && i < sizeof formats / sizeof *formats; i++) {
        oomsight_render_params render = {.size = sizeof render, .format = formats[i]};
        char *text = NULL;
        status = oomsight_check_render(own, &render, &text, &error);
        if (status == OOMSIGHT_OK) text_done(text);
    }
    oomsight_check_free(own);
    return status;
}

static oomsight_status matrix(void)
{
    oomsight_matrix_params params = {
        .size = sizeof params, .data = data, .path = matrix_file, .threads = 1, .lines = 1};
    oomsight_matrix *own = NULL;
    oomsight_error error;
    oomsight_status status = oomsight_matrix_open(&params, &own, &error);
    if (status != OOMSIGHT_OK) return status;
    const oomsight_matrix_point *point = NULL;
    do status = oomsight_matrix_next(own, &point, &error);
    while (status == OOMSIGHT_OK && point);
    oomsight_render_params render = {.size = sizeof render, .format = OOMSIGHT_FORMAT_HTML};
    char *text = NULL;
    if (status == OOMSIGHT_OK) status = oomsight_matrix_render(own, &render, &text, &error);
    if (status == OOMSIGHT_OK) text_done(text);
    oomsight_matrix_close(own);
    return status;
}

static oomsight_status knowledge(void)
{
    oomsight_render_params render = {.size = sizeof render};
    char *text = NULL;
    oomsight_error error;
    oomsight_status const status = oomsight_kb_render(data, NULL, &render, &text, &error);
    if (status == OOMSIGHT_OK) text_done(text);
    return status;
}

static oomsight_status tables(void)
{
    oomsight_render_params render = {.size = sizeof render, .format = OOMSIGHT_FORMAT_JSON};
    char *text = NULL;
    oomsight_error error;
    oomsight_status const status = oomsight_data_render(data, "gpus", &render, &text, &error);
    if (status == OOMSIGHT_OK) text_done(text);
    return status;
}

/* Every allocation where there are few; spread over all of them where there are many. */
enum { EACH_UP_TO = 200, SPREAD_OVER = 200 };

static oomsight_status run(oomsight_status (*entry)(void), uint64_t n)
{
    atomic_store(&asked, 0);
    atomic_store(&live, 0);
    written = 0;
    fail_at = n;
    watching = true;
    oomsight_status const status = entry();
    watching = false;
    return status;
}

static void walk(const char *what, oomsight_status (*entry)(void))
{
    assert_int_equal(entry(), OOMSIGHT_OK); /* what is kept for the life of the process is there now */
    assert_int_equal(run(entry, 0), OOMSIGHT_OK);
    uint64_t const all = asked, whole = written;
    if (live) fail_msg("%s: %lld allocations are left after a success", what, (long long)live);

    uint64_t tried = 0, told = 0;
    uint64_t const stride = all > EACH_UP_TO + SPREAD_OVER ? (all - EACH_UP_TO) / SPREAD_OVER : 1;
    for (uint64_t n = 1; n <= all; n += n < EACH_UP_TO ? 1 : stride) {
        oomsight_status const status = run(entry, n);
        tried++;
        told += status == OOMSIGHT_NOMEM;
        if (live)
            fail_msg("%s: allocation %llu denied, status %d, %lld left", what, (unsigned long long)n, status,
                     (long long)live);
        if (status == OOMSIGHT_OK && written != whole && entry != matrix) /* a matrix says it at the point */
            fail_msg("%s: allocation %llu denied, and another answer is given", what, (unsigned long long)n);
    }
    print_message("%s: %llu allocations, %llu denied one by one, %llu told as out of memory\n", what,
                  (unsigned long long)all, (unsigned long long)tried, (unsigned long long)told);
}

#define WALK(entry)                                                                                          \
    static void memory_may_run_out_in_##entry(void **state)                                                  \
    {                                                                                                        \
        (void)state;                                                                                         \
        walk(#entry, entry);                                                                                 \
    }
WALK(data_open)
WALK(model_open)
WALK(plan)
WALK(explain)
WALK(replay)
WALK(check)
WALK(matrix)
WALK(knowledge)
WALK(tables)

int main(void)
{
    struct CMUnitTest const tests[] = {
        cmocka_unit_test(memory_may_run_out_in_data_open), cmocka_unit_test(memory_may_run_out_in_model_open),
        cmocka_unit_test(memory_may_run_out_in_plan),      cmocka_unit_test(memory_may_run_out_in_explain),
        cmocka_unit_test(memory_may_run_out_in_replay),    cmocka_unit_test(memory_may_run_out_in_check),
        cmocka_unit_test(memory_may_run_out_in_matrix),    cmocka_unit_test(memory_may_run_out_in_knowledge),
        cmocka_unit_test(memory_may_run_out_in_tables),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

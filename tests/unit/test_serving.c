/* What an engine says of itself is read with care: it may be anything. */
#include "run/run.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static oos_serving read_text(const char *text, bool *ret_some)
{
    oos_serving serving;
    *ret_some = oos_serving_read(oos_view_of(text), &serving);
    return serving;
}

static void figures_of_vllm_and_sglang(void **state)
{
    (void)state;
    bool some;
    oos_serving s = read_text("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
                              "# HELP vllm:num_requests_running Number of requests\n"
                              "vllm:num_requests_running{engine=\"0\",model_name=\"a}b 7\"} 3.0\n"
                              "vllm:num_requests_running{engine=\"1\",model_name=\"a\"} 4.0\n"
                              "vllm:num_requests_waiting{engine=\"0\"} 12.0\n"
                              "vllm:num_requests_waiting_by_reason{engine=\"0\"} 99.0\n"
                              "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n"
                              "vllm:kv_cache_usage_perc{engine=\"1\"} 5e-1\n",
                              &some);
    assert_true(some && s.requests_known && s.kv_known);
    assert_int_equal(s.running, 7);
    assert_int_equal(s.waiting, 12);
    assert_true(s.kv_used == 0.5);
    s = read_text("sglang:num_running_reqs 2\nsglang:num_queue_reqs 1\nsglang:token_usage 0.125", &some);
    assert_true(some && s.running == 2 && s.waiting == 1 && s.kv_used == 0.125);
}

static void what_is_no_figure_is_left_out(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "\n\n\n",
        "vllm:num_requests_running",
        "vllm:num_requests_running ",
        "vllm:num_requests_running{",
        "vllm:num_requests_running{}",
        "vllm:num_requests_running{} NaN\nvllm:num_requests_waiting inf",
        "vllm:num_requests_running -1\nvllm:num_requests_running 1e300",
        "vllm:kv_cache_usage_perc 1.5\nvllm:kv_cache_usage_perc -0.1",
        " vllm:num_requests_running 3",
        "xvllm:num_requests_running 3",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        bool some;
        read_text(texts[i], &some);
        assert_false(some);
    }
}

/* A hostile server adds up many lines, each of which could be meant. */
static void a_sum_that_no_engine_has_is_not_believed(void **state)
{
    (void)state;
    static const char line[] = "vllm:num_requests_running{engine=\"0\"} 900000000\n";
    char *text = calloc(1, 3 * sizeof line);
    bool some;
    strcat(text, line);
    oos_serving s = read_text(text, &some);
    assert_true(some && s.running == 900000000);
    strcat(text, line);
    s = read_text(text, &some);
    assert_false(some || s.requests_known || s.running);
    free(text);
    s = read_text("vllm:num_requests_waiting 1e12\nvllm:kv_cache_usage_perc 0.5", &some);
    assert_true(some && s.kv_known && !s.requests_known);
}

/* Cut anywhere, with nothing behind it that could be read. */
static void any_cut_is_fine(void **state)
{
    (void)state;
    static const char text[] =
        "vllm:num_requests_running{a=\"}\"} 3.0\nvllm:kv_cache_usage_perc 0.5 1700000000\n";
    for (size_t len = 0; len < sizeof text; len++) {
        char *cut = malloc(len ? len : 1);
        oos_serving serving;
        memcpy(cut, text, len);
        oos_serving_read((oos_view){cut, len}, &serving);
        assert_true(serving.running <= 3 && serving.kv_used <= 0.5);
        free(cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_of_vllm_and_sglang),
        cmocka_unit_test(what_is_no_figure_is_left_out),
        cmocka_unit_test(a_sum_that_no_engine_has_is_not_believed),
        cmocka_unit_test(any_cut_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

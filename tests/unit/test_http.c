#include "unit.h"

#include "follow/follow.h"

#include <stdio.h>
#include <string.h>

static oos_http_request read_all(const char *text)
{
    return oos_http_request_read(text, strlen(text));
}

static void a_request_is_known_when_its_head_has_ended(void **state)
{
    (void)state;
    static const char text[] = "GET /metrics HTTP/1.1\r\nHost: node\r\nAccept: */*\r\n\r\n";
    for (size_t len = 0; len < sizeof text - 1; len++)
        assert_int_equal(oos_http_request_read(text, len).wish, OOS_HTTP_PARTIAL);
    assert_int_equal(oos_http_request_read(text, sizeof text - 1).wish, OOS_HTTP_METRICS);
    assert_int_equal(read_all("GET /healthz HTTP/1.0\n\n").wish, OOS_HTTP_HEALTH);
    assert_int_equal(read_all("GET /healthz?verbose HTTP/1.1\r\n\r\nrest").wish, OOS_HTTP_HEALTH);
    assert_true(read_all("HEAD /metrics HTTP/1.1\r\n\r\n").head_only);
    assert_false(read_all("GET /metrics HTTP/1.1\r\n\r\n").head_only);
}

static void other_paths_and_methods_are_told_apart(void **state)
{
    (void)state;
    static const char *const elsewhere[] = {"/",         "/metricsx", "/metric",   "/Metrics",
                                            "/metrics/", "//metrics", "/%6detrics"};
    char text[128];
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n\r\n", elsewhere[i]);
        assert_int_equal(read_all(text).wish, OOS_HTTP_ELSEWHERE);
    }
    assert_int_equal(read_all("POST /metrics HTTP/1.1\r\n\r\n").wish, OOS_HTTP_METHOD);
    assert_int_equal(read_all("GETS /metrics HTTP/1.1\r\n\r\n").wish, OOS_HTTP_METHOD);
}

static void what_is_no_request_is_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {"GET",
                                        "GET ",
                                        "GET /metrics",
                                        "GET  /metrics HTTP/1.1",
                                        "GET /metrics HTTP/1.2",
                                        "GET /metrics HTTP/1.1 x",
                                        "GET /a\tb HTTP/1.1",
                                        "GET metrics HTTP/1.1",
                                        "GET /metrics http/1.1",
                                        "AVERYLONGMETHODINDEED /metrics HTTP/1.1"};
    char text[128];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        snprintf(text, sizeof text, "%s\r\n\r\n", lines[i]);
        assert_int_equal(read_all(text).wish, OOS_HTTP_GARBAGE);
    }
    assert_int_equal(read_all("\x16\x03").wish, OOS_HTTP_GARBAGE); /* at its first byte */
    assert_int_equal(read_all("\r\n").wish, OOS_HTTP_GARBAGE);
}

static void a_head_without_end_is_too_long(void **state)
{
    (void)state;
    static char text[OOS_HTTP_HEAD_MAX + 8];
    memset(text, 'A', sizeof text);
    assert_int_equal(oos_http_request_read(text, OOS_HTTP_HEAD_MAX - 1).wish, OOS_HTTP_PARTIAL);
    assert_int_equal(oos_http_request_read(text, OOS_HTTP_HEAD_MAX).wish, OOS_HTTP_TOO_LONG);
    memcpy(text + OOS_HTTP_HEAD_MAX, "\r\n\r\n", 4); /* an end that comes too late */
    assert_int_equal(oos_http_request_read(text, sizeof text).wish, OOS_HTTP_TOO_LONG);
}

static void a_listener_opens_where_it_is_told_and_closes(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",    "x",        "70000",  "-1", "+5", " 80", "localhost:80",
                                        ":80", "1.2.3:80", "[::1:80"};
    oomsight_error error = {0};
    oos_http *http = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(oos_http_open(wrong[i], &http, &error), OOMSIGHT_USAGE);
    assert_int_equal(oos_http_open("127.0.0.1:0", &http, &error), OOMSIGHT_OK);
    char address[32];
    oos_http *second = NULL;
    snprintf(address, sizeof address, "127.0.0.1:%u", oos_http_port(http));
    assert_int_equal(oos_http_open(address, &second, &error), OOMSIGHT_IO);
    assert_non_null(strstr(error.text, "cannot listen on"));
    oos_http_close(http);
    assert_int_equal(oos_http_open(address, &http, &error), OOMSIGHT_OK);
    oos_http_close(http);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_known_when_its_head_has_ended),
        cmocka_unit_test(other_paths_and_methods_are_told_apart),
        cmocka_unit_test(what_is_no_request_is_refused),
        cmocka_unit_test(a_head_without_end_is_too_long),
        cmocka_unit_test(a_listener_opens_where_it_is_told_and_closes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

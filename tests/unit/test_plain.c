#include "unit.h"

#include "base/stream.h"
#include "log/log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char packed[] = "\x1f\x8b\x08\x00 not opened by this build";

static void a_packed_log_is_said_not_to_have_been_opened(void **state)
{
    (void)state;
    oos_logstream *stream;
    const char *name;
    assert_int_equal(oos_logstream_open_bytes((oos_view){packed, sizeof packed}, 0, &stream, NULL),
                     OOMSIGHT_OK);
    assert_true(oos_logstream_next(stream, &name));
    assert_int_equal(oos_logstream_cut_reason(stream), OOS_LOGSTREAM_NOT_OPENED);
    assert_false(oos_logstream_next(stream, &name));
    oos_logstream_close(stream);
}

static void a_packed_snapshot_is_refused_and_a_plain_one_read(void **state)
{
    (void)state;
    char path[] = "/tmp/oomsight-plain-XXXXXX";
    int const fd = mkstemp(path);
    oos_stream *stream;
    oomsight_error error = {0};
    assert_true(fd >= 0);
    assert_int_equal(write(fd, packed, sizeof packed), sizeof packed);
    assert_int_equal(oos_stream_open(path, &stream, &error), OOMSIGHT_UNSUPPORTED);
    assert_non_null(strstr(error.text, "unpack it first"));
    assert_int_equal(pwrite(fd, "{}", 2, 0), 2);
    assert_int_equal(oos_stream_open(path, &stream, &error), OOMSIGHT_OK);
    oos_view first, again, end;
    assert_int_equal(oos_stream_peek(stream, &first, &error), OOMSIGHT_OK);
    assert_int_equal(oos_stream_next(stream, &again, &error), OOMSIGHT_OK);
    assert_true(first.len == sizeof packed && again.ptr == first.ptr && first.ptr[0] == '{');
    assert_int_equal(oos_stream_next(stream, &end, &error), OOMSIGHT_OK);
    assert_int_equal(end.len, 0);
    oos_stream_close(stream);
    close(fd);
    unlink(path);
    assert_int_equal(oos_stream_open(path, &stream, &error), OOMSIGHT_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packed_log_is_said_not_to_have_been_opened),
        cmocka_unit_test(a_packed_snapshot_is_refused_and_a_plain_one_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

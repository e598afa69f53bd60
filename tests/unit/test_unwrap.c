#include "unit.h"

#include "log/log.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>

static void assert_view(oos_view view, const char *text)
{
    assert_int_equal(view.len, strlen(text));
    assert_memory_equal(view.ptr, text, view.len);
}

static size_t pack(char *to, size_t capacity, const char *name, oos_view content, int level)
{
    size_t used = 0;
    struct archive *a = archive_write_new();
    if (level == 0) archive_write_set_format_pax_restricted(a);
    if (level == 1) archive_write_set_format_raw(a), archive_write_add_filter_gzip(a);
    assert_int_equal(archive_write_open_memory(a, to, capacity, &used), ARCHIVE_OK);
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_size(entry, (la_int64_t)content.len);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, content.ptr, content.len), (la_ssize_t)content.len);
    archive_entry_free(entry);
    archive_write_close(a);
    archive_write_free(a);
    return used;
}

static void a_log_in_a_gz_in_a_tar_in_a_gz_is_found(void **state)
{
    (void)state;
    char inner[4096], middle[16384], outer[16384], out[64];
    size_t const a = pack(inner, sizeof inner, "data", oos_view_of("hello log\n"), 1);
    size_t const b = pack(middle, sizeof middle, "pod/a.log.gz", (oos_view){inner, a}, 0);
    size_t const c = pack(outer, sizeof outer, "data", (oos_view){middle, b}, 1);
    oos_logstream *stream;
    const char *name;
    size_t count;
    assert_int_equal(oos_logstream_open_bytes((oos_view){outer, c}, 0, &stream, NULL), OOMSIGHT_OK);
    assert_true(oos_logstream_next(stream, &name));
    assert_int_equal(oos_logstream_read(stream, out, sizeof out, &count, NULL), OOMSIGHT_OK);
    assert_view((oos_view){out, count}, "hello log\n");
    assert_false(oos_logstream_next(stream, &name));
    assert_int_equal(oos_logstream_cut_reason(stream), OOS_LOGSTREAM_WHOLE);
    oos_logstream_close(stream);
}

static void what_a_wrapper_may_expand_to_is_bounded(void **state)
{
    (void)state;
    static char same[1 << 20];
    memset(same, 'x', sizeof same);
    char packed[16384], out[4096];
    size_t const len = pack(packed, sizeof packed, "data", (oos_view){same, sizeof same}, 1), limit = 100000;
    oos_logstream *stream;
    const char *name;
    size_t count = 1, total = 0;
    assert_int_equal(oos_logstream_open_bytes((oos_view){packed, len}, limit, &stream, NULL), OOMSIGHT_OK);
    assert_true(oos_logstream_next(stream, &name));
    while (count) {
        assert_int_equal(oos_logstream_read(stream, out, sizeof out, &count, NULL), OOMSIGHT_OK);
        total += count;
    }
    assert_true(total <= limit);
    assert_int_equal(oos_logstream_cut_reason(stream), OOS_LOGSTREAM_TOO_LARGE);
    oos_logstream_close(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_in_a_gz_in_a_tar_in_a_gz_is_found),
        cmocka_unit_test(what_a_wrapper_may_expand_to_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

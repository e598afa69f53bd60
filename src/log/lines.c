/* Lines of logs by their shape. */
#include "log/log.h"
#include "base/ascii.h"

enum { LINE_BYTES = 512 }; /* prefixes stand before that */

/* `torch.OutOfMemoryError: ...`, `ValueError: ...` */
static bool is_error(oos_view line)
{
    static const char *const ends[] = {"Error", "Exception", "Killed"};
    size_t len = 0;
    while (len < line.len && (oos_is_alnum(line.ptr[len]) || line.ptr[len] == '.' || line.ptr[len] == '_'))
        len++;
    if (len + 1 >= line.len || line.ptr[len] != ':' || line.ptr[len + 1] != ' ') return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t const tail = strlen(ends[i]);
        if (len >= tail && memcmp(line.ptr + len - tail, ends[i], tail) == 0) return true;
    }
    return false;
}

/* A line of a traceback: `  File "x.py", line 7, in f`. */
static bool is_frame(oos_view line)
{
    while (line.len && line.ptr[0] == ' ') line = oos_view_slice(line, 1, line.len);
    return oos_view_starts(line, "Traceback (most recent call last)") ||
           (oos_view_starts(line, "File \"") && memmem(line.ptr, line.len, "\", line ", 8));
}

static bool is_of_log(oos_view line)
{
    char plain[LINE_BYTES];
    line = oos_view_slice(line, 0, sizeof plain);
    oos_view const text = {plain, oos_logline_uncolour(line, plain)};
    oos_logline const read = oos_logline_read(text);
    bool const told = read.level || read.process.len ||
                      (read.labelled && oos_logtime_read(text, oos_logtime_now()) != OOS_TIME_NONE);
    return told || is_frame(read.message) || is_error(read.message);
}

bool oos_lines_of_log(oos_view text)
{
    if (oos_clean_sniff(text) & (OOS_CLEAN_JSON | OOS_CLEAN_CRI | OOS_CLEAN_JOURNAL)) return true;
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        size_t const len = end ? (size_t)(end - text.ptr) - at : text.len - at;
        if (is_of_log(oos_view_slice(text, at, len))) return true;
        at += len + 1;
    }
    return false;
}

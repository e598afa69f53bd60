/* Deciding whether the next line is the rest of this one. Forum posts and terminals break the allocator's sentence
 * anywhere, also inside a word; what begins like a record, a frame or a heading ends it. */
#include "log/log.h"
#include "base/check.h"
#include "base/size.h"

enum { NEXT_BYTES = 2048 };

static bool has(oos_view text, const char *word)
{
    return text.len && memmem(text.ptr, text.len, word, strlen(word));
}

/* Nothing of interest follows these. */
static bool is_complete(oos_view text)
{
    return has(text, "reserved by PyTorch but unallocated") || has(text, "reserved in total by PyTorch") ||
           has(text, "when initializing the engine.") || has(text, "used by other processes.");
}

static bool starts_anew(oos_view message, bool labelled, bool same_process)
{
    static const char *const openings[] = {"Traceback",
                                           "File ",
                                           "During handling",
                                           "The above exception",
                                           "Exception",
                                           "Process ",
                                           "RuntimeError",
                                           "ValueError",
                                           "torch.",
                                           "[",
                                           "{",
                                           "```",
                                           "INFO",
                                           "ERROR",
                                           "WARNING"};
    size_t blank = 0;
    while (blank < message.len && (message.ptr[blank] == ' ' || message.ptr[blank] == '\t')) blank++;
    message = oos_view_slice(message, blank, SIZE_MAX);
    if (message.len == 0 || (labelled && !same_process)) return true;
    if (oos_view_starts(message, "Process ") && has(message, "memory in use")) return false;
    if (oos_view_starts(message, "Process ...")) return false;
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++)
        if (oos_view_starts(message, openings[i])) return true;
    return false;
}

/* A following line in the dress of the first; a very long one as it is. */
static oos_view normal(oos_view next, char bytes[NEXT_BYTES])
{
    if (next.len > NEXT_BYTES / 2) return next;
    return (oos_view){bytes, oos_normal_line(next, (oos_view){0}, bytes, NEXT_BYTES)};
}

size_t oos_window_join(oos_view line, oos_view after, char *to, size_t capacity)
{
    oos_logline const head = oos_logline_read(line);
    size_t len = oos_min(line.len, capacity);
    memcpy(to, line.ptr, len);
    for (int lines = 0; lines < OOS_JOINED_MAX_LINES && !is_complete((oos_view){to, len}); lines++) {
        size_t start = 0;
        if (start < after.len && after.ptr[start] == '\r') start++;
        if (start < after.len && (after.ptr[start] == '\n' || after.ptr[start] == '\v')) start++;
        while (start && start + 1 < after.len && after.ptr[start] == '\v' && after.ptr[start + 1] == '\n')
            start += 2;
        if (start == 0 || start >= after.len) break;
        size_t end = start;
        while (end < after.len && !memchr("\n\r\v", after.ptr[end], 3)) end++;
        char bytes[NEXT_BYTES];
        oos_logline const next = oos_logline_read(normal(oos_view_slice(after, start, end - start), bytes));
        bool const same = next.process.len == 0 ? !next.labelled : oos_view_equal(next.process, head.process);
        if (starts_anew(next.message, next.labelled, same) || next.level != head.level) {
            if (starts_anew(next.message, next.labelled, same) || next.level) break;
        }
        size_t const count = oos_min(next.message.len, capacity - len);
        memcpy(to + len, next.message.ptr, count);
        len += count;
        after = oos_view_slice(after, end, SIZE_MAX);
    }
    oos_assert(len <= capacity);
    return len;
}

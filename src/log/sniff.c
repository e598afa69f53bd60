/* Control characters tell bytes from text, a title tells a document from a log. */
#include "log/log.h"
#include "base/ascii.h"

enum {
    CONTROLS_LEAST = 8,
    TEXT_PER_CONTROL = 30, /* random bytes have a control character in ten */
    TITLE_MAX_BYTES = 160
};

/* Not of terminals: colours, bells, backspaces, pages. */
static bool is_control(unsigned char c)
{
    return c && (c < 7 || (c > 13 && c < 32 && c != 27) || c == 127);
}

bool oos_sniff_binary(oos_view head, bool whole)
{
    size_t controls = 0, zeros = 0;
    for (size_t i = 0; i < head.len; i++) {
        controls += is_control((unsigned char)head.ptr[i]);
        zeros += head.ptr[i] == '\0';
    }
    if (whole && zeros && zeros == head.len) return true;
    return controls > CONTROLS_LEAST && controls > (head.len - zeros) / TEXT_PER_CONTROL;
}

static oos_view next_line(oos_view *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    size_t const len = end ? (size_t)(end - rest->ptr) : rest->len;
    oos_view line = oos_view_slice(*rest, 0, len);
    *rest = oos_view_slice(*rest, len + (end != NULL), SIZE_MAX);
    while (line.len && oos_is_space(line.ptr[line.len - 1])) line.len--;
    return line;
}

static oos_view first_line(oos_view *rest)
{
    oos_view line = next_line(rest);
    while (!line.len && rest->len) line = next_line(rest);
    return line;
}

static bool holds(oos_view line, const char *word)
{
    return line.len && memmem(line.ptr, line.len, word, strlen(word));
}

/* Settings and comments that may stand before a title. */
static oos_view skip_matter(oos_view line, oos_view *rest)
{
    if (oos_view_is(line, "---")) {
        do line = next_line(rest);
        while (rest->len && !oos_view_is(line, "---"));
        line = first_line(rest);
    }
    while (oos_view_starts(line, "<!--") && rest->len) {
        while (rest->len && !holds(line, "-->")) line = next_line(rest);
        line = first_line(rest);
    }
    return line;
}

static bool is_underline(oos_view line, size_t title)
{
    size_t len = 0;
    while (len < line.len && line.ptr[len] == '=') len++;
    return len > 2 && len == line.len && len + 1 >= title && len <= title + 1;
}

bool oos_sniff_document(oos_view head)
{
    static const char *const openings[] = {".TH ",     ".\\\" ",     ".Dd ", "<h1",
                                           "<p align", "<div align", "<img "};
    if (oos_view_starts(head, "\xef\xbb\xbf")) head = oos_view_slice(head, 3, SIZE_MAX);
    oos_view rest = head, line = first_line(&rest);
    line = skip_matter(line, &rest);
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++)
        if (oos_view_starts(line, openings[i])) return true;
    if (!line.len || line.len > TITLE_MAX_BYTES) return false;
    bool const last = !rest.len;
    oos_view const next = next_line(&rest);
    if (is_underline(next, line.len)) return true;
    /* A shell's prompt, or a comment of a script, has something right below it. */
    return oos_view_starts(line, "# ") && line.len > 2 && line.ptr[2] > ' ' && !next.len && !last;
}

/* Files with the suggested flags in their commands, as a patch for `patch -p0`. What stays out: a file name that such a patch cannot have,
 * a line with a secret or with bytes that a terminal would obey. */
#include "report/report.h"
#include "base/check.h"
#include "base/secret.h"
#include "base/shown.h"

#include <string.h>

enum { CONTEXT = 3 };

/* The line is shown as it is; the carriage return of its end stays. */
static bool is_open(oos_view line)
{
    while (line.len && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r')) line.len--;
    return oos_shown_is_plain(line, false) && !oos_secret_inside(line);
}

/* Which lines of the file as it was may stand there, by the file as a whole: a key may be on several. */
static bool *open_lines(const oos_patch *patch)
{
    bool *open = OOS_NEW_ARRAY(patch->arena, bool, patch->count + 1);
    oos_text whole = {0}, hidden = {0};
    for (size_t i = 0; i < patch->count; i++)
        if (patch->lines[i].number) oos_text_add(&whole, patch->lines[i].was);
    oos_secret_hide(&hidden, (oos_view){whole.ptr ? whole.ptr : "", whole.len});
    bool failed = whole.failed || hidden.failed;
    const char *at = hidden.ptr ? hidden.ptr : "", *end = at + hidden.len;
    for (size_t i = 0; open && i < patch->count; i++) {
        const oos_patch_line *line = &patch->lines[i];
        if (!line->number) {
            open[i] = is_open(line->now);
            continue;
        }
        const char *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        size_t const len = stop ? (size_t)(stop - at) + 1 : (size_t)(end - at);
        open[i] = len == line->was.len && memcmp(at, line->was.ptr, len) == 0 && is_open(line->was) &&
                  is_open(line->now);
        at += len;
    }
    oos_text_free(&whole);
    oos_text_free(&hidden);
    return failed ? NULL : open;
}

static bool is_changed(const oos_patch_line *line)
{
    return !line->number || line->removed || line->was.ptr != line->now.ptr;
}

/* A name that `patch` takes from a patch and finds again. */
static bool is_plain_name(const char *path)
{
    bool up = path[0] == '/';
    for (const char *at = path; *at; at++) {
        if ((unsigned char)*at < ' ' || strchr("\"\\\x7f", *at)) return false;
        if (strncmp(at, "..", 2) == 0 && (at == path || at[-1] == '/') && (!at[2] || at[2] == '/')) up = true;
    }
    return !up && path[0] && path[0] != '-' && strcmp(path, "/dev/null") != 0 &&
           !oos_secret_inside(oos_view_of(path)) && oos_shown_is_plain(oos_view_of(path), false);
}

static void put_line(oos_text *text, char mark, oos_view line)
{
    oos_text_add(text, (oos_view){&mark, 1});
    oos_text_add(text, line);
    if (!line.len || line.ptr[line.len - 1] != '\n') oos_text_put(text, "\n\\ No newline at end of file\n");
}

/* Lines that stay, as far as they are open: of as many on both sides, except at an end of the file, or `patch` looks only there. */
static size_t context_before(const oos_patch *patch, const bool *open, size_t from, bool *ret_edge)
{
    size_t count = 0;
    while (count < CONTEXT && from > count && open[from - count - 1] &&
           !is_changed(&patch->lines[from - count - 1]))
        count++;
    *ret_edge = from == count;
    return count;
}

static size_t context_after(const oos_patch *patch, const bool *open, size_t to, bool *ret_edge)
{
    size_t count = 0;
    while (count < CONTEXT && to + count < patch->count && open[to + count] &&
           !is_changed(&patch->lines[to + count]))
        count++;
    *ret_edge = to + count == patch->count;
    return count;
}

/* Where a hunk that begins to change at `from` ends: at lines that stay, more than two hunks have around them. */
static size_t hunk_end(const oos_patch *patch, const bool *open, size_t from)
{
    size_t end = from, same = 0;
    for (size_t i = from; i < patch->count && same <= 2 * CONTEXT; i++) {
        if (is_changed(&patch->lines[i]))
            end = i + 1, same = 0;
        else if (!open[i])
            break;
        else
            same++;
    }
    return end;
}

static void put_hunk(oos_text *text, const oos_patch *patch, const bool *open, size_t from, size_t to,
                     long *shift)
{
    bool first, last;
    size_t before = context_before(patch, open, from, &first), after = context_after(patch, open, to, &last);
    if (before < after && !first) after = before;
    if (after < before && !last) before = after;
    size_t old = 0, new = 0, start = 0;
    oos_assert(before <= from && to + after <= patch->count);
    for (size_t i = 0; i < from - before; i++) start += patch->lines[i].number != 0;
    for (size_t i = from - before; i < to + after; i++) {
        const oos_patch_line *line = &patch->lines[i];
        old += line->number != 0;
        new += !line->removed;
    }
    /* An empty side is named by the line before it. */
    oos_text_printf(text, "@@ -%zu,%zu +%zu,%zu @@\n", start + (old != 0), old,
                    (size_t)((long)start + *shift) + (new != 0), new);
    for (size_t i = from - before; i < to + after;) {
        size_t end = i; /* lines that change stand together: what was, then what is */
        while (end < to + after && is_changed(&patch->lines[end])) end++;
        for (size_t k = i; k < end; k++)
            if (patch->lines[k].number) put_line(text, '-', patch->lines[k].was);
        for (size_t k = i; k < end; k++)
            if (!patch->lines[k].removed) put_line(text, '+', patch->lines[k].now);
        if (end == i) put_line(text, ' ', patch->lines[end++].was);
        i = end;
    }
    *shift += (long)new - (long)old;
}

static void put_hunks(oos_text *text, const oos_patch *patch, const bool *open)
{
    long shift = 0;
    for (size_t i = 0; i < patch->count; i++) {
        if (!is_changed(&patch->lines[i])) continue;
        size_t const end = hunk_end(patch, open, i);
        put_hunk(text, patch, open, i, end, &shift);
        i = end - 1;
    }
}

/* A line of a patch that is none: nothing in it begins a header or a hunk, and a shell passes over it. */
static void put_said(oos_text *text, const char *words)
{
    oos_text_put(text, "# ");
    oos_shown_put(text, oos_view_of(words), false);
    oos_text_put(text, "\n");
}

static void put_notes(oos_text *text, const oos_checked *checked, const char *why)
{
    const oos_checked_plan *plan = oos_checked_mend(checked);
    oos_text line = {0};
    oos_text_put(&line, checked->path);
    if (checked->found->line) oos_text_printf(&line, ":%u", (unsigned)checked->found->line);
    oos_text_put(&line, ": ");
    if (plan && plan->best_command && why)
        oos_text_printf(&line, "not changed: %s. The command:", why);
    else if (plan && plan->best_command)
        oos_text_put(&line, plan->best_flags && *plan->best_flags ? plan->best_flags : plan->best_command);
    else
        oos_check_sentence(&line, checked);
    put_said(text, line.ptr ? line.ptr : "");
    text->failed |= line.failed;
    oos_text_free(&line);
    if (!plan || !plan->best_command || !why) return;
    oos_text_put(text, "#   ");
    oos_shown_put(text, oos_view_of(plan->best_command), false);
    oos_text_put(text, "\n");
}

void oos_report_check_patch(oos_text *text, const oos_patch *patch, const oos_checked *list,
                            const char *const *why, size_t count)
{
    const char *path = list[0].path, *closed = NULL;
    const bool *open = patch->changed ? open_lines(patch) : NULL;
    if (patch->changed && !open) text->failed = true;
    for (size_t i = 0; open && i < patch->count; i++)
        if (is_changed(&patch->lines[i]) && !open[i])
            closed = "a line that changes holds a secret or control characters";
    if (patch->changed && !is_plain_name(path))
        closed = "patch takes no such file name: give one below this folder";
    for (size_t i = 0; i < count; i++) put_notes(text, &list[i], why[i] ? why[i] : closed);
    if (!open || closed) return;
    const char *tab = strchr(path, ' ') ? "\t" : "";
    oos_text_printf(text, "--- %s%s\n+++ %s%s\n", path, tab, path, tab);
    put_hunks(text, patch, open);
}

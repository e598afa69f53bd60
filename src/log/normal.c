/* One line in one dress. People, terminals and printers of tracebacks write the same frame and the same figure in many ways; what reads
 * them knows one. Nothing here knows a sentence. */
#include "base/ascii.h"
#include "base/check.h"
#include "log/log.h"

#define BAR "\xe2\x94\x82"

enum { BLANKS_MAX = 2 }; /* a table has more, a sentence has not */

typedef struct output {
    char *to;
    size_t len, capacity;
} output;

static void put(output *out, oos_view text)
{
    size_t const count = text.len < out->capacity - out->len ? text.len : out->capacity - out->len;
    memcpy(out->to + out->len, text.ptr, count);
    out->len += count;
}

static oos_view rest(oos_view text, size_t from)
{
    return oos_view_slice(text, from, SIZE_MAX);
}

static size_t find(oos_view text, size_t from, const char *word)
{
    const char *at = from < text.len ? memmem(text.ptr + from, text.len - from, word, strlen(word)) : NULL;
    return at ? (size_t)(at - text.ptr) : SIZE_MAX;
}

static bool has(oos_view text, const char *word)
{
    return find(text, 0, word) != SIZE_MAX;
}

static size_t digits_at(oos_view text, size_t at)
{
    size_t count = 0;
    while (at + count < text.len && oos_is_digit(text.ptr[at + count])) count++;
    return count;
}

/* ---- figures ---- */

/* `20.00 MiB`, `-1,024 bytes` or, behind the word code, a number: its length. */
static size_t figure_at(oos_view text, bool coded)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "TB", "bytes", "B"};
    size_t len = text.len && text.ptr[0] == '-';
    size_t const from = len;
    while (len < text.len && (oos_is_digit(text.ptr[len]) || (len > from && strchr(".,", text.ptr[len]))))
        len++;
    if (len == from) return 0;
    if (coded) return len;
    len += len < text.len && text.ptr[len] == ' ';
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (oos_view_starts(rest(text, len), units[i])) return len + strlen(units[i]);
    return 0;
}

/* `(20.00 MiB)`, `exit code (137)`: the length of what stands between the brackets at `at`; 0: no figure alone. */
static size_t bracketed_at(oos_view line, size_t at)
{
    if (line.ptr[at] != '(' || at < 2 || line.ptr[at - 1] != ' ') return 0;
    size_t word = at - 1;
    if (line.ptr[word - 1] == ':') word--;
    bool const coded = word >= 4 && memcmp(line.ptr + word - 4, "code", 4) == 0;
    size_t const len = figure_at(rest(line, at + 1), coded);
    return len && at + 1 + len < line.len && line.ptr[at + 1 + len] == ')' ? len : 0;
}

/* Blanks that set a figure into a column, `Exit Code:    137`: how many; 0: what follows is none. Others may be indentation. */
static size_t column_at(oos_view line, size_t at)
{
    size_t count = 0;
    while (at + count < line.len && line.ptr[at + count] == ' ') count++;
    return count > BLANKS_MAX && digits_at(line, at + count) ? count : 0;
}

/* ---- frames ---- */

typedef struct frame {
    size_t start, end; /* of all that stands for it */
    oos_view path, number, function;
} frame;

static bool is_path(oos_view line, size_t at)
{
    char const c = line.ptr[at];
    if (c == ':')
        return at && at + 1 < line.len && oos_is_alpha(line.ptr[at - 1]) && strchr("\\/", line.ptr[at + 1]);
    return oos_is_alnum(c) || (c && strchr("._/\\~-+@<>$", c));
}

static bool is_name(char c)
{
    return oos_is_alnum(c) || (c && strchr("_.<>", c));
}

static size_t name_at(oos_view line, size_t at)
{
    size_t len = 0;
    while (at + len < line.len && is_name(line.ptr[at + len])) len++;
    return len && !oos_is_digit(line.ptr[at]) && line.ptr[at] != '.' ? len : 0;
}

/* What quotes a path: ", ' and those of a word processor. */
static size_t quote_at(oos_view line, size_t at)
{
    static const char *const quotes[] = {"\"", "'", "“", "”"};
    for (size_t i = 0; at < line.len && i < sizeof quotes / sizeof *quotes; i++)
        if (oos_view_starts(rest(line, at), quotes[i])) return strlen(quotes[i]);
    return 0;
}

static size_t quote_before(oos_view line, size_t at)
{
    for (size_t len = 1; len <= 3 && len <= at; len += 2)
        if (quote_at(line, at - len) == len) return len;
    return 0;
}

/* The name behind a number: ` in name`, `, in name`, `: in name`. */
static void function_take(oos_view line, frame *f)
{
    static const char *const before[] = {" in ", ", in ", ": in "};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        size_t const at = f->end + strlen(before[i]);
        if (!oos_view_starts(rest(line, f->end), before[i])) continue;
        size_t const len = name_at(line, at);
        if (!len) return;
        f->function = oos_view_slice(line, at, len);
        f->end = at + len;
        return;
    }
}

/* `name (path:12)` at the end of a line, as py-spy and faulthandlers of other tools print it. */
static bool called(oos_view line, frame *f)
{
    if (f->start < 3 || line.ptr[f->start - 1] != '(' || line.ptr[f->start - 2] != ' ') return false;
    if (f->end + 1 != line.len || line.ptr[f->end] != ')') return false;
    size_t name = f->start - 2;
    while (name && is_name(line.ptr[name - 1])) name--;
    size_t const len = name_at(line, name);
    if (name + len != f->start - 2 || (name && line.ptr[name - 1] != ' ')) return false;
    f->function = oos_view_slice(line, name, len);
    f->start = name;
    f->end++;
    return true;
}

/* The frame whose path ends in the `.py` at `source`:
 *     File "path", line N, in name      (any quotes; a Windows path)
 *     path, line N, in name             path:N in name             path:N: in name             name (path:N)
 *     File path:N, in name(self)        File [path:N](link), in name
 *     | path:N in name |                (a bar of a box; the name may be missing) */
static bool frame_at(oos_view line, size_t source, frame *ret_frame)
{
    static const char lines[] = ", line ";
    frame f = {.start = source, .end = source + 3};
    while (f.start && is_path(line, f.start - 1)) f.start--;
    f.path = oos_view_slice(line, f.start, f.end - f.start);
    if (f.path.len == 3) return false;
    size_t const opening = quote_before(line, f.start);
    f.start -= opening;
    bool const linked = !opening && f.start && line.ptr[f.start - 1] == '[';
    size_t const before = f.start - linked;
    bool const file = before >= 5 && memcmp(line.ptr + before - 5, "File ", 5) == 0;
    bool const boxed =
        before >= sizeof BAR && memcmp(line.ptr + before - sizeof BAR, BAR " ", sizeof BAR) == 0;
    size_t const closing = quote_at(line, f.end);
    bool const half =
        closing && !opening; /* of one that was broken or cut in its path; a path may hold blanks */
    if (half && has(oos_view_slice(line, 0, f.start), "File \"")) return false;
    f.end += closing;
    if (oos_view_starts(rest(line, f.end), lines))
        f.end += sizeof lines - 1;
    else if (f.end < line.len && line.ptr[f.end] == ':')
        f.end++;
    else
        return false;
    size_t const number = digits_at(line, f.end);
    f.number = oos_view_slice(line, f.end, number);
    f.end += number;
    if (!number) return false;
    if (file && linked && oos_view_starts(rest(line, f.end), "](")) {
        size_t const close = find(line, f.end, ")");
        if (close == SIZE_MAX) return false;
        f.end = close + 1;
    }
    if (file) f.start = before - 5;
    if (!file && called(line, &f)) {
        *ret_frame = f;
        return true;
    }
    function_take(line, &f);
    oos_assert(f.start < source && f.end <= line.len);
    *ret_frame = f;
    return file || boxed || f.function.len;
}

static void frame_put(const frame *f, output *out)
{
    put(out, oos_view_of("File \""));
    for (size_t i = 0; i < f->path.len; i++)
        put(out, f->path.ptr[i] == '\\' ? oos_view_of("/") : oos_view_slice(f->path, i, 1));
    put(out, oos_view_of("\", line "));
    put(out, f->number);
    if (!f->function.len) return;
    put(out, oos_view_of(", in "));
    put(out, f->function);
}

/* ---- lines ---- */

oos_view oos_normal_trim(oos_view line)
{
    while (line.len && strchr(" \t\r\n", line.ptr[line.len - 1])) line.len--;
    return line;
}

static oos_view first_line(oos_view after)
{
    size_t start = 0, end;
    while (start < after.len && start < 2 && strchr("\r\n\v", after.ptr[start])) start++;
    while (start + 1 < after.len && after.ptr[start] == '\v' && after.ptr[start + 1] == '\n') start += 2;
    end = after.len;
    for (const char *ends = "\n\r\v"; *ends && start < end; ends++) {
        const char *found = memchr(after.ptr + start, *ends, end - start);
        if (found) end = (size_t)(found - after.ptr);
    }
    oos_view line = oos_normal_trim(oos_view_slice(after, start, end - start));
    while (line.len && line.ptr[0] == ' ') line = rest(line, 1);
    return line;
}

/* `File "...` that was broken behind its path or in it: the rest of it, from the next line. */
static oos_view frame_rest(oos_view line, oos_view after)
{
    size_t const at = find(line, 0, "File \"");
    if (at == SIZE_MAX || has(rest(line, at), ", line ")) return (oos_view){0};
    oos_view const next = first_line(after);
    size_t const number = find(next, 0, "line ");
    bool const goes_on = number != SIZE_MAX && digits_at(next, number + 5) && !oos_view_starts(next, "File ");
    return goes_on ? next : (oos_view){0};
}

/* In a box that is too narrow `:N in name` stands on the line below, behind the bar: the path without its bar, and that. */
static bool boxed_rest(oos_view line, oos_view after, oos_view *ret_path, oos_view *ret_rest)
{
    static const char bar[] = BAR, ending[] = ".py";
    if (!has(line, bar)) return false;
    oos_view next = first_line(after);
    if (!oos_view_starts(next, bar)) return false;
    next = rest(next, sizeof bar - 1);
    while (next.len && next.ptr[0] == ' ') next = rest(next, 1);
    if (next.len < 2 || next.ptr[0] != ':' || !digits_at(next, 1)) return false;
    if (line.len >= sizeof bar && memcmp(line.ptr + line.len - (sizeof bar - 1), bar, sizeof bar - 1) == 0)
        line = oos_normal_trim(oos_view_slice(line, 0, line.len - (sizeof bar - 1)));
    *ret_path = line;
    *ret_rest = next;
    return line.len >= sizeof ending &&
           memcmp(line.ptr + line.len - (sizeof ending - 1), ending, sizeof ending - 1) == 0;
}

/* ... or the name alone. */
static oos_view boxed_name(oos_view line, oos_view after)
{
    oos_view const next = first_line(after);
    size_t const bar = find(next, 0, BAR " "), in = find(next, 0, " in ");
    bool const in_seen = has(line, " in");
    if (!has(line, BAR " ") || bar == SIZE_MAX || (in == SIZE_MAX && !in_seen)) return (oos_view){0};
    size_t at = in != SIZE_MAX ? in + 4 : bar + sizeof BAR;
    while (at < next.len && next.ptr[at] == ' ') at++;
    return oos_view_slice(next, at, name_at(next, at));
}

/* Three blanks in a row: a place of every three is among them. */
static bool has_gap(oos_view line)
{
    for (size_t at = 2; at < line.len; at += 3) {
        size_t from = at, end = at;
        while (from && line.ptr[from - 1] == ' ') from--;
        while (end < line.len && line.ptr[end] == ' ') end++;
        if (end > at && end - from > 2) return true;
    }
    return false;
}

/* Most lines hold nothing that could be written otherwise. */
static bool is_plain(oos_view line)
{
    if (has_gap(line)) return false;
    for (size_t at = 0; (at = find(line, at, "(")) != SIZE_MAX; at++)
        if (bracketed_at(line, at)) return false;
    return !has(line, ".py") && !has(line, "File \"");
}

size_t oos_normal_line(oos_view line, oos_view after, char *to, size_t capacity)
{
    output out = {.to = to, .capacity = capacity};
    line = oos_normal_trim(line);
    if (is_plain(line)) {
        put(&out, line);
        return out.len;
    }
    char whole[1024];
    oos_view path, more;
    if (boxed_rest(line, after, &path, &more) && path.len + more.len <= sizeof whole) {
        memcpy(whole, path.ptr, path.len);
        memcpy(whole + path.len, more.ptr, more.len);
        line = (oos_view){whole, path.len + more.len};
    } else if ((more = frame_rest(line, after)).len && line.len + 1 + more.len <= sizeof whole) {
        /* Behind a comma the blank went with the line's end. */
        bool const blank = line.ptr[line.len - 1] == ',';
        memcpy(whole, line.ptr, line.len);
        whole[line.len] = ' ';
        memcpy(whole + line.len + blank, more.ptr, more.len);
        line = (oos_view){whole, line.len + blank + more.len};
    }
    size_t done = 0, indent = 0;
    while (indent < line.len && line.ptr[indent] == ' ') indent++;
    for (size_t at = indent; at < line.len; at++) {
        char const c = line.ptr[at];
        size_t skip = 0;
        frame f;
        if (c != '.' && c != '(' && c != ' ') continue;
        if (c == '.' && at >= done && oos_view_starts(rest(line, at), ".py") && frame_at(line, at, &f) &&
            f.start >= done) {
            if (!f.function.len) f.function = boxed_name(line, after);
            put(&out, oos_view_slice(line, done, f.start - done));
            frame_put(&f, &out);
            done = f.end;
        } else if (c == '(' && (skip = bracketed_at(line, at))) {
            put(&out, oos_view_slice(line, done, at - done));
            put(&out, oos_view_slice(line, at + 1, skip));
            done = at + skip + 2;
        } else if (c == ' ' && at >= done && (skip = column_at(line, at))) {
            put(&out, oos_view_slice(line, done, at + 1 - done));
            done = at + skip;
        }
        if (done > at + 1) at = done - 1;
    }
    put(&out, rest(line, done));
    return out.len;
}

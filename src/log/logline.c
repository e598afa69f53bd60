/* Peeling prefixes, from the outside in, until none is left. */
#include "log/log.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Length of `[0;36m` at `at`, 0 when there is none. A lone `[` starts many honest things: digits and `m` must follow. */
static size_t colour_code(oos_view line, size_t at)
{
    size_t i = at;
    if (i < line.len && line.ptr[i] == '\x1b') i++;
    bool const escaped = i > at;
    if (i >= line.len || line.ptr[i] != '[') return 0;
    size_t const digits = ++i;
    while (i < line.len && (is_digit(line.ptr[i]) || line.ptr[i] == ';' || (escaped && line.ptr[i] == '?')))
        i++;
    if (i >= line.len || (!escaped && (i == digits || line.ptr[i] != 'm'))) return 0;
    return i + 1 - at;
}

size_t oos_logline_uncolour(oos_view line, char *to)
{
    size_t out = 0, done = 0;
    bool const escapes = line.len && memchr(line.ptr, '\x1b', line.len);
    for (size_t i = 0; i < line.len;) {
        const char *next = escapes ? line.ptr + i : memchr(line.ptr + i, '[', line.len - i);
        if (!next) break;
        i = (size_t)(next - line.ptr);
        size_t const code = *next == '\x1b' || *next == '[' ? colour_code(line, i) : 0;
        i += code ? code : 1;
        if (!code) continue;
        memcpy(to + out, line.ptr + done, i - code - done);
        out += i - code - done;
        done = i;
    }
    if (done < line.len) memcpy(to + out, line.ptr + done, line.len - done);
    return out + line.len - done;
}

static oos_view rest(oos_view line, size_t from)
{
    return oos_view_slice(line, from, SIZE_MAX);
}

static oos_view skip_spaces(oos_view line)
{
    size_t i = 0;
    while (i < line.len && (line.ptr[i] == ' ' || line.ptr[i] == '\t')) i++;
    return rest(line, i);
}

static bool all_of(oos_view text, const char *extra)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_digit(text.ptr[i]) && !strchr(extra, text.ptr[i])) return false;
    return text.len > 0;
}

static oos_view first_word(oos_view line)
{
    size_t i = 0;
    while (i < line.len && line.ptr[i] != ' ') i++;
    return oos_view_slice(line, 0, i);
}

/* `2025-11-19T20:16:36.09Z`, `[2025-03-10T15:07:20Z]`, `2025-04-23 11:34:24,537`, `11-19 20:16:36`: digits and
 * punctuation with at least one colon or dash. */
static size_t timestamp(oos_view line)
{
    oos_view word = first_word(line);
    size_t const len = word.len;
    if (word.len > 2 && word.ptr[0] == '[') word = oos_view_slice(word, 1, word.len - 1);
    while (word.len && strchr("],", word.ptr[word.len - 1])) word.len--;
    if (word.len < 5 || !is_digit(word.ptr[0]) || !all_of(word, "-:.,TZ+/")) return 0;
    return memchr(word.ptr, ':', word.len) || (word.len >= 5 && memchr(word.ptr, '-', word.len)) ? len : 0;
}

static char level_of(oos_view word)
{
    static const char *const levels[] = {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "RROR"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (oos_view_is(word, levels[i])) return levels[i][0] == 'R' ? 'E' : levels[i][0];
    return 0;
}

/* `(Name pid=12)`, `[Name pid=12]`, `(VllmWorker rank=1 pid=12)`, `(Name pid=12, ip=10.0.0.1)`: *ret_len is its length. */
static oos_view process_of(oos_view line, size_t *ret_len)
{
    *ret_len = 0;
    if (line.len < 6 || (line.ptr[0] != '(' && line.ptr[0] != '[')) return (oos_view){0};
    const char *close = memchr(line.ptr, line.ptr[0] == '(' ? ')' : ']', line.len < 100 ? line.len : 100);
    if (!close) return (oos_view){0};
    oos_view const inside = {line.ptr + 1, (size_t)(close - line.ptr) - 1};
    if (inside.len > 4 && oos_view_starts(inside, "rank") && all_of(rest(inside, 4), "")) {
        *ret_len = inside.len + 2;
        if (*ret_len < line.len && line.ptr[*ret_len] == ':') ++*ret_len;
        return inside;
    }
    const char *pid = memmem(inside.ptr, inside.len, " pid=", 5);
    if (!pid || !is_word(inside.ptr[0])) return (oos_view){0};
    *ret_len = inside.len + 2;
    return (oos_view){inside.ptr, (size_t)(pid - inside.ptr)};
}

/* `[gpu_worker.py:298] ` or, without the opening bracket, `worker.py:267] `: its length. */
static size_t source_of(oos_view line, bool *ret_old, oos_view *ret_source)
{
    bool const bracket = line.len && line.ptr[0] == '[';
    const char *close = memchr(line.ptr, ']', line.len < 160 ? line.len : 160);
    if (!close) return 0;
    oos_view const inside = {line.ptr + bracket, (size_t)(close - line.ptr) - bracket};
    const char *py = memmem(inside.ptr, inside.len, ".py:", 4);
    if (!py || memchr(inside.ptr, ' ', inside.len)) return 0;
    *ret_old = !bracket;
    *ret_source = inside;
    return (size_t)(close - line.ptr) + 1;
}

size_t oos_logline_compose(oos_view line)
{
    size_t i = 0;
    while (i < line.len && (is_word(line.ptr[i]) || line.ptr[i] == '-' || line.ptr[i] == '.')) i++;
    size_t const name = i;
    while (i < line.len && line.ptr[i] == ' ') i++;
    if (i >= line.len || line.ptr[i] != '|' || (name && i == name)) return 0;
    if (name == 0 && i == 0) return 0;
    return i + 1 < line.len && line.ptr[i + 1] == ' ' ? i + 2 : 0;
}

oos_logline oos_logline_read(oos_view line)
{
    oos_logline out = {.message = line};
    for (int rounds = 0; rounds < 12; rounds++) {
        oos_view const at = skip_spaces(out.message);
        size_t used;
        oos_view const process = process_of(at, &used);
        if (used) {
            out.process = process;
            out.labelled = true;
        } else if ((used = oos_logline_compose(out.message))) {
            out.message = rest(out.message, used);
            continue;
        } else if ((used = timestamp(at))) {
            out.labelled = true;
        } else {
            oos_view const word = first_word(at);
            char const level = level_of(word);
            bool old = false;
            if (level) {
                out.level = level;
                out.labelled = true;
                used = word.len;
            } else if (oos_view_starts(at, "[resource.labels")) {
                const char *close = memchr(at.ptr, ']', at.len);
                used = close ? (size_t)(close - at.ptr) + 1 : 0;
            } else if ((used = source_of(at, &old, &out.source))) {
                out.old_shape = out.old_shape || (old && out.level);
            }
            if (!used) break;
        }
        out.message = rest(at, used);
    }
    if (out.labelled && out.message.len && out.message.ptr[0] == ' ') out.message = rest(out.message, 1);
    return out;
}

oos_view oos_logline_rank(oos_view process)
{
    if (oos_view_starts(process, "Worker_")) return rest(process, 7);
    if (oos_view_starts(process, "rank")) return rest(process, 4);
    const char *rank = process.len ? memmem(process.ptr, process.len, "rank=", 5) : NULL;
    if (rank) return rest(process, (size_t)(rank - process.ptr) + 5);
    return (oos_view){0};
}

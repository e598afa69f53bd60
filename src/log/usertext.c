/* A request is told by its words, a user's text by the key before it, and its end by the quote that nobody escaped. */
#include "log/log.h"
#include "base/ascii.h"

static bool holds(oos_view text, const char *word)
{
    return text.len && memmem(text.ptr, text.len, word, strlen(word));
}

/* A member of a body that was printed over lines. */
static bool is_member(oos_view line)
{
    while (line.len && (line.ptr[0] == ' ' || line.ptr[0] == '\t')) line = oos_view_slice(line, 1, SIZE_MAX);
    return oos_view_starts(line, "\"content\":") || oos_view_starts(line, "\"prompt\":");
}

static bool logs_request(oos_view line)
{
    static const char *const words[] = {"eceived request",  "rompt",          "ReqInput(", "SamplingParams",
                                        "sampling_params",  "\"role\"",       "'role'",    "\\\"role\\\"",
                                        "max_tokens",       "max_new_tokens", "messages",  "enerated text",
                                        "enerated response"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (holds(line, words[i])) return true;
    return is_member(line);
}

static bool is_key(oos_view word)
{
#define KEY(text)                                                                                            \
    {                                                                                                        \
        text, sizeof text - 1                                                                                \
    }
    static const oos_view keys[] = {
        KEY("prompt"), KEY("prompts"), KEY("content"),           KEY("text"),        KEY("input"),
        KEY("inputs"), KEY("query"),   KEY("question"),          KEY("messages"),    KEY("instruction"),
        KEY("output"), KEY("outputs"), KEY("reasoning_content"), KEY("instructions")};
#undef KEY
    if (!strchr("cimopqrt", oos_lower(*word.ptr))) return false; /* most words */
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].len == word.len && oos_same_start(word.ptr, keys[i].ptr, word.len)) return true;
    return false;
}

static bool is_word(char c)
{
    return oos_is_alnum(c) || c == '_';
}

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

static char at(oos_view text, size_t index)
{
    return index < text.len ? text.ptr[index] : '\0';
}

static size_t skip(oos_view text, size_t index, const char *set)
{
    while (index < text.len && is_one_of(text.ptr[index], set)) index++;
    return index;
}

/* A quote, with the backslashes before it where it stands in a string itself. */
typedef struct quote {
    char mark;
    size_t slashes;
} quote;

/* Behind the quote that opens the value of the key that ends at `index`; 0: there is none. */
static size_t value_of(oos_view line, size_t index, quote *ret_quote)
{
    index = skip(line, index, "\\\"'");
    index = skip(line, index, " ");
    if (!is_one_of(at(line, index), ":=")) return 0;
    index = skip(line, index + 1, " [(");
    if (is_one_of(at(line, index), "bBrRuUfF")) index++;
    size_t const quotes = skip(line, index, "\\");
    if (!is_one_of(at(line, quotes), "'\"")) return 0;
    *ret_quote = (quote){at(line, quotes), quotes - index};
    return quotes + 1;
}

static bool is_close(oos_view text, size_t index, quote open)
{
    size_t slashes = 0;
    if (text.ptr[index] != open.mark) return false;
    while (slashes < index && text.ptr[index - slashes - 1] == '\\') slashes++;
    return open.slashes ? slashes == open.slashes : slashes % 2 == 0;
}

/* Index of the quote that closes; the length of the line: it does not. A quote inside a word is an apostrophe. */
static size_t find_close(oos_view line, size_t from, quote open)
{
    size_t loose = line.len;
    for (size_t i = from; i < line.len; i++) {
        const char *mark = memchr(line.ptr + i, open.mark, line.len - i);
        i = mark ? (size_t)(mark - line.ptr) : line.len;
        if (!mark || !is_close(line, i, open)) continue;
        size_t const next = skip(line, i + 1, "\\\"");
        if (i + 1 == line.len || is_one_of(at(line, next), ",)}];\r\n")) return i;
        if (loose == line.len && !is_word(at(line, i + 1))) loose = i;
    }
    return loose;
}

/* ", params: " goes on with the record after its text. */
static bool goes_on(oos_view text, size_t index)
{
    size_t const word = skip(text, index + 1, ", ");
    size_t end = word;
    while (end < text.len && is_word(text.ptr[end])) end++;
    return word > index + 2 && end > word && is_one_of(at(text, end), ":=(");
}

/* Lines of `after` up to the last close before the next line of the log. */
static size_t lines_of_text(oos_view after, quote open)
{
    size_t lines = 0, found = 0;
    for (size_t start = skip(after, 0, "\r"); start < after.len && after.ptr[start] == '\n';) {
        start++;
        const char *end = memchr(after.ptr + start, '\n', after.len - start);
        oos_view const line =
            oos_view_slice(after, start, end ? (size_t)(end - after.ptr) - start : SIZE_MAX);
        if (oos_logline_read(line).labelled) break;
        lines++;
        for (size_t i = 0; i < line.len; i++)
            if (is_close(line, i, open) && goes_on(line, i)) found = lines;
        start += line.len;
    }
    return found;
}

size_t oos_usertext_mask(char *line, size_t len, oos_view after, size_t *ret_lines)
{
    oos_view const text = {line, len};
    size_t out = 0, copied = 0;
    *ret_lines = 0;
    if (!logs_request(text)) return len;
    for (size_t i = 0; i < len;) {
        size_t end = i;
        while (end < len && is_word(line[end])) end++;
        quote open;
        size_t start = end > i && is_key((oos_view){line + i, end - i}) ? value_of(text, end, &open) : 0;
        i = end > i ? end : i + 1;
        while (start) {
            size_t const close = find_close(text, start, open);
            memmove(line + out, line + copied, start - copied);
            out += start - copied;
            size_t const end_of_text = close < len ? close - open.slashes : len;
            size_t const dots = end_of_text - start < 3 ? end_of_text - start : 3;
            memset(line + out, '.', dots);
            out += dots;
            copied = end_of_text;
            i = close;
            if (close == len) *ret_lines = lines_of_text(after, open);
            /* A list of texts. */
            size_t const next = skip(text, close + 1, ", ");
            bool const more = close < len && next > close + 1 && at(text, next) == open.mark && !open.slashes;
            start = more ? next + 1 : 0;
        }
    }
    memmove(line + out, line + copied, len - copied);
    return out + len - copied;
}

/* Showing what others wrote. */
#include "base/shown.h"
#include "base/check.h"
#include "base/secret.h"

size_t oos_utf8_len(oos_view view)
{
    const unsigned char *at = (const unsigned char *)view.ptr;
    size_t len;
    if (view.len == 0) return 0;
    if (at[0] < 0x80) return 1;
    if (at[0] >= 0xc2 && at[0] <= 0xdf)
        len = 2;
    else if (at[0] >= 0xe0 && at[0] <= 0xef)
        len = 3;
    else if (at[0] >= 0xf0 && at[0] <= 0xf4)
        len = 4;
    else
        return 0;
    if (len > view.len) return 0;
    for (size_t i = 1; i < len; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    if (at[0] == 0xe0 && at[1] < 0xa0) return 0;
    if (at[0] == 0xed && at[1] > 0x9f) return 0;
    if (at[0] == 0xf0 && at[1] < 0x90) return 0;
    if (at[0] == 0xf4 && at[1] > 0x8f) return 0;
    return len;
}

/* U+2028, U+2029; U+202A to U+202E, U+2066 to U+2069, U+200E, U+200F, U+061C: lines and their direction. */
bool oos_utf8_is_control(const char *at, size_t len)
{
    const unsigned char *u = (const unsigned char *)at;
    if (len == 1) return u[0] < 0x20 || u[0] == 0x7f;
    if (len == 2) return (u[0] == 0xc2 && u[1] < 0xa0) || (u[0] == 0xd8 && u[1] == 0x9c);
    if (len != 3 || u[0] != 0xe2) return false;
    return (u[1] == 0x80 && ((u[2] >= 0xa8 && u[2] <= 0xae) || u[2] == 0x8e || u[2] == 0x8f)) ||
           (u[1] == 0x81 && u[2] >= 0xa6 && u[2] <= 0xa9);
}

unsigned oos_utf8_code(const char *at, size_t len)
{
    const unsigned char *u = (const unsigned char *)at;
    oos_assert(len == 2 || len == 3);
    return len == 2 ? (u[0] & 0x1fU) << 6 | (u[1] & 0x3fU)
                    : (u[0] & 0x0fU) << 12 | (u[1] & 0x3fU) << 6 | (u[2] & 0x3fU);
}

/* How many bytes from `at` may be shown as they are. */
static size_t plain_run(oos_view words, size_t at, bool lines)
{
    size_t i = at;
    while (i < words.len) {
        unsigned char const c = (unsigned char)words.ptr[i];
        if ((c >= 0x20 && c < 0x7f) || c == '\t' || (lines && c == '\n')) {
            i++;
            continue;
        }
        if (c < 0x80) break;
        size_t const len = oos_utf8_len(oos_view_slice(words, i, 4));
        if (len == 0 || oos_utf8_is_control(words.ptr + i, len)) break;
        i += len;
    }
    return i - at;
}

void oos_shown_escape(oos_text *text, oos_view words, bool lines)
{
    for (size_t at = 0; at < words.len;) {
        size_t const plain = plain_run(words, at, lines);
        oos_text_add(text, oos_view_slice(words, at, plain));
        at += plain;
        if (at == words.len) break;
        unsigned char const c = (unsigned char)words.ptr[at];
        size_t const len = oos_utf8_len(oos_view_slice(words, at, 4));
        if (c == '\n' || c == '\r')
            oos_text_put(text, c == '\n' ? "\\n" : "\\r");
        else if (len <= 1)
            oos_text_printf(text, "\\x%02x", c);
        else
            oos_text_printf(text, "\\u%04x", oos_utf8_code(words.ptr + at, len));
        at += len ? len : 1;
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

oos_view oos_shown_beginning(oos_view words, size_t most)
{
    if (words.len <= most) return words;
    size_t len = most;
    if (!is_space(words.ptr[len]))
        while (len > most / 2 && !is_space(words.ptr[len - 1])) len--;
    if (len <= most / 2) {
        len = most;
        while (len && ((unsigned char)words.ptr[len] & 0xc0) == 0x80) len--;
    }
    while (len && is_space(words.ptr[len - 1])) len--;
    oos_assert(len <= most);
    return oos_view_slice(words, 0, len);
}

bool oos_shown_is_plain(oos_view words, bool lines)
{
    return plain_run(words, 0, lines) == words.len && !oos_secret_inside(words);
}

void oos_shown_put(oos_text *text, oos_view words, bool lines)
{
    if (!oos_secret_inside(words)) {
        oos_shown_escape(text, words, lines);
        return;
    }
    oos_text hidden = {0};
    oos_secret_hide(&hidden, words);
    oos_shown_escape(text, (oos_view){hidden.ptr, hidden.len}, lines);
    text->failed |= hidden.failed;
    oos_text_free(&hidden);
}

/* Our own line breaks stand at the ends of a format, or in its middle when it is a table. */
oos_view oos_shown_sentence(const char *format, const char *words, oos_text *spare)
{
    size_t const lead = strspn(format, "\n");
    oos_view const whole = oos_view_of(words);
    size_t tail = 0, format_len = strlen(format);
    while (tail < format_len - lead && format[format_len - tail - 1] == '\n') tail++;
    bool const lines = memchr(format + lead, '\n', format_len - lead - tail) != NULL;
    size_t const head = lead < whole.len ? lead : whole.len;
    while (tail && (tail > whole.len - head || whole.ptr[whole.len - tail] != '\n')) tail--; /* it was cut */
    oos_assert(head + tail <= whole.len);
    oos_view const middle = oos_view_slice(whole, head, whole.len - head - tail);
    if (oos_shown_is_plain(middle, lines)) return whole;
    oos_text_add(spare, oos_view_slice(whole, 0, head));
    oos_shown_put(spare, middle, lines);
    oos_text_add(spare, oos_view_slice(whole, whole.len - tail, tail));
    return (oos_view){spare->ptr ? spare->ptr : "", spare->len};
}

const char *oos_shown(oos_arena *arena, const char *words)
{
    if (!words || oos_shown_is_plain(oos_view_of(words), false)) return words;
    oos_text text = {0};
    oos_shown_put(&text, oos_view_of(words), false);
    const char *copy = text.failed ? NULL : oos_arena_copy(arena, (oos_view){text.ptr, text.len});
    oos_text_free(&text);
    return copy;
}

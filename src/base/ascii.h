/* Letters and digits of ASCII. The functions of <ctype.h> and strcasecmp() listen to the locale: a Turkish one does
 * not take `I` for `i`, a Latin-1 one takes bytes of UTF-8 for letters. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

static inline bool oos_is_digit(int c)
{
    return c >= '0' && c <= '9';
}
static inline bool oos_is_alpha(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool oos_is_alnum(int c)
{
    return oos_is_alpha(c) || oos_is_digit(c);
}
static inline bool oos_is_space(int c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}
static inline char oos_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Equal but for the case of letters; the second looks at the first `len` bytes at most. */
static inline bool oos_same_start(const char *a, const char *b, size_t len)
{
    for (; len; len--, a++, b++) {
        if (oos_lower(*a) != oos_lower(*b)) return false;
        if (!*a) return true;
    }
    return true;
}
static inline bool oos_same(const char *a, const char *b)
{
    return oos_same_start(a, b, (size_t)-1);
}

/* Does `text` hold `part`, whatever the case of its letters? NULL holds nothing. */
static inline bool oos_holds(const char *text, const char *part)
{
    size_t len = 0;
    while (part[len]) len++;
    for (; text && *text; text++)
        if (oos_same_start(text, part, len)) return true;
    return false;
}

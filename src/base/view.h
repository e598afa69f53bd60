/* Views: a pointer and a length into bytes that somebody else owns. Not zero-terminated. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct oos_view {
    const char *ptr;
    size_t len;
} oos_view;

static inline oos_view oos_view_of(const char *text)
{
    return (oos_view){text, text ? strlen(text) : 0};
}

/* The part from `start`, at most `len` bytes: never outside the view. */
static inline oos_view oos_view_slice(oos_view view, size_t start, size_t len)
{
    if (start > view.len) start = view.len;
    if (len > view.len - start) len = view.len - start;
    return (oos_view){start ? view.ptr + start : view.ptr, len};
}

static inline bool oos_view_equal(oos_view a, oos_view b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool oos_view_is(oos_view view, const char *text)
{
    return oos_view_equal(view, oos_view_of(text));
}

static inline bool oos_view_starts(oos_view view, const char *prefix)
{
    size_t const len = strlen(prefix);
    return view.len >= len && memcmp(view.ptr, prefix, len) == 0;
}

/* `word` begins with a byte that is rare: then this is several times faster than memmem(). */
static inline bool oos_view_holds(oos_view view, const char *word)
{
    size_t const len = strlen(word);
    const char *at = view.ptr, *end = at + view.len;
    while (at < end && (at = memchr(at, *word, (size_t)(end - at)))) {
        if ((size_t)(end - at) >= len && memcmp(at, word, len) == 0) return true;
        at++;
    }
    return false;
}

static inline uint64_t oos_load_le64(const char *at)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | (unsigned char)at[i];
    return value;
}

/* A growing text on the heap. */
#include "base/text.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/error.h"
#include "base/locale.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool reserve(oos_text *text, size_t more)
{
    if (text->failed) return false;
    size_t need;
    if (__builtin_add_overflow(text->len, more, &need) || __builtin_add_overflow(need, (size_t)1, &need)) {
        text->failed = true;
        return false;
    }
    if (need <= text->capacity) return true;
    size_t capacity = text->capacity ? text->capacity : 1024;
    while (capacity < need) capacity = capacity > SIZE_MAX / 2 ? need : capacity * 2;
    char *grown = realloc(text->ptr, capacity);
    if (!grown) {
        text->failed = true;
        oos_memory_deny();
        return false;
    }
    text->ptr = grown;
    text->capacity = capacity;
    return true;
}

void oos_text_add(oos_text *text, oos_view piece)
{
    if (!reserve(text, piece.len)) return;
    if (piece.len) memcpy(text->ptr + text->len, piece.ptr, piece.len);
    text->len += piece.len;
    oos_assert(text->len < text->capacity); /* the zero fits too */
    text->ptr[text->len] = '\0';
}

void oos_text_put(oos_text *text, const char *piece)
{
    oos_text_add(text, oos_view_of(piece));
}

void oos_text_repeat(oos_text *text, const char *piece, size_t count)
{
    while (count--) oos_text_put(text, piece);
}

void oos_text_printf(oos_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int const len = oos_vformat(NULL, 0, format, args);
    if (len >= 0 && reserve(text, (size_t)len)) {
        oos_vformat(text->ptr + text->len, (size_t)len + 1, format, again);
        text->len += (size_t)len;
        oos_assert(text->len < text->capacity && text->ptr[text->len] == '\0');
    }
    va_end(again);
    va_end(args);
}

int oos_text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void oos_text_free(oos_text *text)
{
    free(text->ptr);
    *text = (oos_text){0};
}

oomsight_status oos_text_take(oos_text *text, char **ret_bytes, oomsight_error *reterr)
{
    oos_text_put(text, "");
    if (text->failed) {
        oos_text_free(text);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the report");
    }
    *ret_bytes = text->ptr;
    *text = (oos_text){0};
    return OOMSIGHT_OK;
}

/* A growing text. Out of memory is remembered and told once, at the end, so that callers can print without checking
 * each piece. */
#pragma once
#include "base/view.h"

#include <oomsight/oomsight.h>

typedef struct oos_text {
    char *ptr;
    size_t len, capacity;
    bool failed;
} oos_text;

void oos_text_add(oos_text *text, oos_view piece);
void oos_text_put(oos_text *text, const char *piece);
void oos_text_repeat(oos_text *text, const char *piece, size_t count);
void oos_text_printf(oos_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void oos_text_free(oos_text *text);

/* Of two `char *` of a list, for qsort(). */
int oos_text_order(const void *a, const void *b);

/* Hand the zero-terminated bytes over to the caller (free with free()). The text is empty afterwards. */
oomsight_status oos_text_take(oos_text *text, char **ret_bytes, oomsight_error *reterr);

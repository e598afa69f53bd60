/* Colour, bars and wrapped paragraphs for a terminal; plain text when it is none. Words are given in English and printed
 * in the reader's language (words.h). */
#ifndef OOS_REPORT_STYLE_H
#define OOS_REPORT_STYLE_H

#include "base/text.h"

typedef enum oos_ink {
    OOS_INK_PLAIN,
    OOS_INK_GOOD,
    OOS_INK_BAD,
    OOS_INK_WARN,
    OOS_INK_DIM,
    OOS_INK_BOLD
} oos_ink;

typedef struct oos_style {
    oos_text *text;
    unsigned width; /* columns */
    bool color, ascii, chinese;
} oos_style;

static inline double oos_gib(uint64_t bytes)
{
    return (double)bytes / 0x1p30;
}

oos_style oos_style_of(oos_text *text, const oomsight_render_params *params);

void oos_style_ink(const oos_style *style, oos_ink ink, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same without colour. */
void oos_style_put(const oos_style *style, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What somebody else called it: word for word, fit to be shown (base/shown.h). */
void oos_style_word(const oos_style *style, const char *word);

/* Words in a column of a table: `columns` wide at least, to the right of it when negative. */
void oos_style_cell(const oos_style *style, int columns, const char *words);

/* Words filled into lines of the style's width, each behind `indent` spaces. */
void oos_style_paragraph(const oos_style *style, unsigned indent, const char *words);

/* The same for what somebody else said: word for word. */
void oos_style_quote(const oos_style *style, unsigned indent, const char *words);

/* `used` of `total` as a bar of `cells` cells; what goes beyond is marked. */
void oos_style_bar(const oos_style *style, uint64_t used, uint64_t total, unsigned cells, oos_ink ink);

/* "12,345" */
void oos_style_count(char *ret_text, size_t capacity, uint64_t number);

#endif

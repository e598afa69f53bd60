/* Printing for people. */
#include "report/style.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

oos_style oos_style_of(oos_text *text, const oomsight_render_params *params)
{
    return (oos_style){.text = text,
                       .width = params->width ? params->width : 80,
                       .color = params->color != 0,
                       .ascii = params->ascii != 0};
}

static const char *ink_code(oos_ink ink)
{
    switch (ink) {
    case OOS_INK_PLAIN: return "";
    case OOS_INK_GOOD: return "\033[32m";
    case OOS_INK_BAD: return "\033[31;1m";
    case OOS_INK_WARN: return "\033[33m";
    case OOS_INK_DIM: return "\033[2m";
    case OOS_INK_BOLD: return "\033[1m";
    }
    return "";
}

void oos_style_ink(const oos_style *style, oos_ink ink, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    bool const inked = style->color && ink != OOS_INK_PLAIN;
    if (inked) oos_text_put(style->text, ink_code(ink));
    oos_text_put(style->text, line);
    if (inked) oos_text_put(style->text, "\033[0m");
}

void oos_style_paragraph(const oos_style *style, unsigned indent, const char *words)
{
    unsigned column = 0;
    while (*words) {
        while (*words == ' ') words++;
        size_t len = 0, shown = 0;
        while (words[len] && words[len] != ' ') {
            shown += ((unsigned char)words[len] & 0xc0) != 0x80; /* columns, not bytes */
            len++;
        }
        if (len == 0) break;
        if (column && column + 1 + shown > style->width) {
            oos_text_put(style->text, "\n");
            column = 0;
        }
        if (column == 0) {
            oos_text_repeat(style->text, " ", indent);
            column = indent;
        } else {
            oos_text_put(style->text, " ");
            column++;
        }
        oos_text_add(style->text, (oos_view){words, len});
        column += (unsigned)shown;
        words += len;
    }
    if (column) oos_text_put(style->text, "\n");
}

void oos_style_bar(const oos_style *style, uint64_t used, uint64_t total, unsigned cells, oos_ink ink)
{
    bool const beyond = used > total;
    double const share = total ? (double)(beyond ? total : used) / (double)total : 0;
    unsigned full = (unsigned)(share * cells + 0.5);
    if (used && full == 0) full = 1;
    if (style->color && ink != OOS_INK_PLAIN) oos_text_put(style->text, ink_code(ink));
    oos_text_repeat(style->text, style->ascii ? "#" : "\xe2\x96\x88", full);
    if (style->color) oos_text_put(style->text, "\033[0m\033[2m");
    oos_text_repeat(style->text, style->ascii ? "." : "\xe2\x96\x91", cells - full);
    if (style->color) oos_text_put(style->text, "\033[0m");
    oos_text_put(style->text,
                 beyond ? (style->ascii ? ">" : "\xe2\x96\xb6") : (style->ascii ? "|" : "\xe2\x96\x8f"));
}

void oos_style_count(char *ret_text, size_t capacity, uint64_t number)
{
    char digits[32];
    int const len = snprintf(digits, sizeof digits, "%" PRIu64, number);
    size_t at = 0;
    for (int i = 0; i < len && at + 2 < capacity; i++) {
        if (i && (len - i) % 3 == 0) ret_text[at++] = ',';
        ret_text[at++] = digits[i];
    }
    ret_text[at] = '\0';
}

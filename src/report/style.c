/* Printing for people. */
#include "report/report.h"
#include "base/check.h"
#include "base/locale.h"
#include "base/shown.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

oos_style oos_style_of(oos_text *text, const oomsight_render_params *params)
{
    return (oos_style){.text = text,
                       .width = params->width ? params->width : 100,
                       .color = params->color != 0,
                       .ascii = params->ascii != 0,
                       .chinese = oos_words_chinese(params)};
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

void oos_ink_begin(const oos_style *style, oos_ink ink)
{
    if (style->color && ink != OOS_INK_PLAIN) oos_text_put(style->text, ink_code(ink));
}

void oos_ink_end(const oos_style *style, oos_ink ink)
{
    if (style->color && ink != OOS_INK_PLAIN) oos_text_put(style->text, "\033[0m");
}

/* Words that were put together with `format`, fit to be shown, in the reader's language. */
static void put_words(const oos_style *style, const char *format, const char *words)
{
    oos_text spare = {0};
    oos_view const shown = oos_shown_sentence(format, words, &spare);
    if (style->chinese)
        oos_words_put(style->text, shown);
    else
        oos_text_add(style->text, shown);
    style->text->failed |= spare.failed;
    oos_text_free(&spare);
}

void oos_style_word(const oos_style *style, const char *word)
{
    oos_shown_put(style->text, oos_view_of(word), false);
}

void oos_style_ink(const oos_style *style, oos_ink ink, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    oos_vformat(line, sizeof line, format, args);
    va_end(args);
    oos_ink_begin(style, ink);
    put_words(style, format, line);
    oos_ink_end(style, ink);
}

void oos_style_put(const oos_style *style, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    oos_vformat(line, sizeof line, format, args);
    va_end(args);
    put_words(style, format, line);
}

void oos_style_cell(const oos_style *style, int columns, const char *words)
{
    oos_text cell = {0};
    oos_style const inside = {.text = &cell, .chinese = style->chinese};
    put_words(&inside, "", words);
    oos_view const shown = {cell.ptr ? cell.ptr : "", cell.len};
    unsigned const wanted = columns < 0 ? 0U - (unsigned)columns : (unsigned)columns;
    unsigned const taken = oos_words_columns(shown), missing = wanted > taken ? wanted - taken : 0;
    if (columns < 0) oos_text_repeat(style->text, " ", missing);
    oos_text_add(style->text, shown);
    if (columns >= 0) oos_text_repeat(style->text, " ", missing);
    oos_text_free(&cell);
}

static bool begins_with_any(oos_view words, const char *const *marks)
{
    for (; *marks; marks++)
        if (oos_view_starts(words, *marks)) return true;
    return false;
}

/* What may not be parted: a word, or one wide character; with the marks that close it, and behind those that open it. */
static oos_view unit_at(oos_view words, unsigned *ret_columns)
{
    static const char *const closing[] = {"，", "。", "、", "；", "：", "？", "）", "”", "》", NULL};
    static const char *const opening[] = {"（", "“", "《", NULL};
    unsigned columns, sum = 0;
    size_t at = 0;
    bool more = true, wide = false;
    while (at < words.len && words.ptr[at] != ' ') {
        oos_view const rest = oos_view_slice(words, at, words.len);
        size_t const len = oos_words_char(rest, &columns);
        bool const closes = begins_with_any(rest, closing);
        if (!more && !closes) break;                       /* behind a wide one only what closes it */
        if (columns == 2 && at && !closes && !wide) break; /* a word ends before a wide one */
        at += len;
        sum += columns;
        wide = begins_with_any(rest, opening);
        more = columns == 1 || wide;
    }
    *ret_columns = sum;
    return oos_view_slice(words, 0, at);
}

static void put_paragraph(const oos_style *style, unsigned indent, unsigned hang, oos_view words)
{
    bool first = true;
    unsigned column = 0, shown;
    for (bool blank = false; words.len; blank = false) {
        for (; words.len && words.ptr[0] == ' '; blank = true) words = oos_view_slice(words, 1, words.len);
        oos_view const unit = unit_at(words, &shown);
        if (unit.len == 0) break;
        if (column && column + blank + shown > style->width) {
            oos_text_put(style->text, "\n");
            column = 0;
        }
        if (column == 0) {
            column = first ? indent : indent + hang;
            oos_text_repeat(style->text, " ", column);
            first = false;
        } else if (blank) {
            oos_text_put(style->text, " ");
            column++;
        }
        oos_text_add(style->text, unit);
        column += shown;
        words = oos_view_slice(words, unit.len, words.len);
    }
    if (column) oos_text_put(style->text, "\n");
}

static void put_translated(const oos_style *style, unsigned indent, unsigned hang, const char *words)
{
    oos_text text = {0};
    oos_style const inside = {.text = &text, .chinese = style->chinese};
    put_words(&inside, "", words);
    put_paragraph(style, indent, hang, (oos_view){text.ptr, text.len});
    style->text->failed |= text.failed;
    oos_text_free(&text);
}

void oos_style_paragraph(const oos_style *style, unsigned indent, const char *words)
{
    put_translated(style, indent, 0, words);
}

void oos_style_hanging(const oos_style *style, unsigned indent, const char *words)
{
    put_translated(style, indent, 4, words);
}

void oos_style_quote(const oos_style *style, unsigned indent, const char *words)
{
    oos_style const word_for_word = {.text = style->text, .width = style->width};
    oos_style_paragraph(&word_for_word, indent, words);
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
    oos_assert(at < capacity);
    ret_text[at] = '\0';
}

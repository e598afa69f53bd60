/* Tables on paper: every column as wide as its widest cell, two blanks between two of them, and an empty cell is a dash. Where the screen is
 * narrower, the first columns are cut; then the others follow in a block of their own, behind the first ones again. */
#include "report/report.h"

#include <stdlib.h>

enum { GAP = 2, NARROWEST = 12 };

void oos_table_put(oos_table *table, const oos_style *style, oos_ink ink, const char *words)
{
    oos_text text = {0};
    oos_style const plain = {.text = &text, .chinese = style->chinese};
    oos_style_put(&plain, "%s", words && *words ? words : "-");
    if (table->count == table->capacity) {
        size_t const capacity = table->capacity ? 2 * table->capacity : 64;
        oos_cell *grown = realloc(table->cells, capacity * sizeof *grown);
        table->failed |= !grown;
        if (grown) {
            table->cells = grown;
            table->capacity = capacity;
        }
    }
    table->failed |= text.failed;
    if (table->failed) {
        oos_text_free(&text);
        return;
    }
    table->cells[table->count++] = (oos_cell){text, oos_words_columns((oos_view){text.ptr, text.len}), ink};
}

static unsigned widest(const oos_table *table, size_t column)
{
    unsigned most = 0;
    for (size_t i = column; i < table->count; i += table->columns)
        if (table->cells[i].columns > most) most = table->cells[i].columns;
    return most;
}

/* The widths of the first columns, so that they and the widest other one fit. */
static unsigned fit_kept(const oos_table *table, unsigned width, unsigned *widths)
{
    unsigned sum = 0, other = 0;
    for (size_t c = 0; c < table->columns; c++) {
        if (c < table->kept)
            sum += widths[c] + GAP;
        else if (widths[c] > other)
            other = widths[c];
    }
    while (sum + other > width) {
        size_t at = 0;
        for (size_t c = 1; c < table->kept; c++)
            if (widths[c] > widths[at]) at = c;
        if (!table->kept || widths[at] <= NARROWEST) break;
        widths[at]--;
        sum--;
    }
    return sum;
}

static void put_cell(const oos_style *style, const oos_cell *cell, unsigned width, bool right, bool last)
{
    oos_view words = {cell->text.ptr, cell->text.len};
    unsigned shown = cell->columns;
    if (shown > width) {
        size_t cut = 0;
        shown = 0;
        for (unsigned columns; cut < words.len;) {
            size_t const bytes = oos_words_char(oos_view_slice(words, cut, words.len), &columns);
            if (shown + columns + 2 > width) break;
            cut += bytes;
            shown += columns;
        }
        words = oos_view_slice(words, 0, cut);
    }
    bool const whole = words.len == cell->text.len;
    unsigned const blanks = width - shown - (whole ? 0 : 2);
    if (right) oos_text_repeat(style->text, " ", blanks);
    oos_ink_begin(style, cell->ink);
    oos_text_add(style->text, words);
    if (!whole) oos_text_put(style->text, "..");
    oos_ink_end(style, cell->ink);
    if (!right && !last) oos_text_repeat(style->text, " ", blanks);
}

static void put_block(const oos_table *table, const oos_style *style, const unsigned *widths, size_t from,
                      size_t to)
{
    for (size_t row = 0; row < table->count / table->columns; row++) {
        oos_text_repeat(style->text, " ", table->indent);
        for (size_t c = 0; c < to; c = c + 1 == table->kept && from > c ? from : c + 1) {
            const oos_cell *cell = &table->cells[row * table->columns + c];
            put_cell(style, cell, widths[c], table->right >> (c < 31 ? c : 31) & 1, c + 1 == to);
            if (c + 1 < to) oos_text_repeat(style->text, " ", GAP);
        }
        while (style->text->len && style->text->ptr[style->text->len - 1] == ' ') style->text->len--;
        oos_text_put(style->text, "\n");
    }
}

void oos_table_end(oos_table *table, const oos_style *style)
{
    unsigned *widths = table->columns ? calloc(table->columns, sizeof *widths) : NULL;
    style->text->failed |= table->failed || !widths;
    unsigned const width = style->width > table->indent ? style->width - table->indent : 1;
    for (size_t c = 0; widths && c < table->columns; c++) widths[c] = widest(table, c);
    if (widths && !table->failed && table->count) {
        unsigned const kept = fit_kept(table, width, widths);
        for (size_t from = table->kept, to; from < table->columns; from = to) {
            unsigned sum = kept;
            for (to = from; to < table->columns && (to == from || sum + widths[to] <= width); to++)
                sum += widths[to] + GAP;
            if (from > table->kept) oos_text_put(style->text, "\n");
            put_block(table, style, widths, from, to);
        }
    }
    for (size_t i = 0; i < table->count; i++) oos_text_free(&table->cells[i].text);
    free(table->cells);
    free(widths);
    *table = (oos_table){0};
}

/* The words of a report in the reader's language. Reports are written in English; a sentence that was put together is
 * found in the catalogue (data/lang/zh.json) by its pattern, where {} stands for whatever was put in, and so are the
 * pieces that were put in. What the catalogue does not have stays English. */
#ifndef OOS_REPORT_WORDS_H
#define OOS_REPORT_WORDS_H

#include "base/text.h"

/* One sentence of the catalogue; the longest patterns stand first. */
typedef struct oos_phrase {
    const char *en, *zh;
} oos_phrase;
extern const oos_phrase oos_phrases_zh[]; /* made by tools/embed_words.py, ends with NULL */

/* As asked for, else as LC_ALL, LC_MESSAGES or LANG say. */
bool oos_words_chinese(const oomsight_render_params *params);

/* `english` in Chinese. Blanks and line breaks around it stay. */
void oos_words_put(oos_text *text, oos_view english);

/* How many columns a terminal gives it: East Asian characters take two. */
unsigned oos_words_columns(oos_view words);

/* The character that begins at `words.ptr`: its bytes, and how many columns it takes. */
size_t oos_words_char(oos_view words, unsigned *ret_columns);

#endif

/* Somebody else's words, made fit to be shown: no secrets (secret.h), and no bytes that a terminal, a job log or a page
 * would obey instead of showing. Control characters of ASCII and C1, marks that turn the direction of a line, and bytes
 * that are not UTF-8 become `\n`, `\x1b`, `\u202e`, `\xff`; a tab stays. */
#pragma once
#include "base/arena.h"
#include "base/text.h"

/* Length of the UTF-8 sequence that begins at `at`, 0 when it is not one. */
size_t oos_utf8_len(oos_view at);

/* Must the sequence of `len` bytes at `at` not be shown as it is? */
bool oos_utf8_is_control(const char *at, size_t len);

/* Its number; of two or three bytes. */
unsigned oos_utf8_code(const char *at, size_t len);

/* Append `words`. `lines`: line breaks are our own and stay. */
void oos_shown_put(oos_text *text, oos_view words, bool lines);

/* The same for words that hold no secrets, or no more. */
void oos_shown_escape(oos_text *text, oos_view words, bool lines);

/* Nothing would change. */
bool oos_shown_is_plain(oos_view words, bool lines);

/* What stands where words were left out. */
#define OOS_SHOWN_MORE "..."

/* The beginning of `words`, at most `most` bytes, that ends at a word's end. Inside a word, at a character's end, only
 * where one word alone is longer than half of that. */
oos_view oos_shown_beginning(oos_view words, size_t most);

/* A sentence that was put together with `format`: a line break that is not in the format came with what was put in. The
 * words themselves when nothing changes, else what is in `spare`, which the caller frees. */
oos_view oos_shown_sentence(const char *format, const char *words, oos_text *spare);

/* `words` itself when nothing changes, else a copy; one line. */
const char *oos_shown(oos_arena *arena, const char *words);

/* The matcher against PCRE2, which looks for one word after the other in the whole text. */
#pragma once
#include "match/match.h"

typedef struct comparison comparison;

/* NULL: one of the two refuses these words. Released with the arena. */
comparison *comparison_create(oos_arena *arena, const char *const *words, size_t count);

/* Scan `text` in blocks whose lengths come from `seed` (0: in one); false, with a line on stderr, when the hits differ.
 * *ret_hits may be NULL. */
bool comparison_run(comparison *both, oos_view text, uint32_t seed, size_t *ret_hits);

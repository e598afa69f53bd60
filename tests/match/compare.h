/* Matchers over the same bytes: the library's (Vectorscan, where it was built with it), our own, and looking at every place for
 * every word. Vectorscan is held to the words of explain only: in sets of a few words, or of long ones that repeat a byte, 5.4.9
 * misses about one hit in ten thousand and makes others up, which the slow way shows. */
#ifndef OOS_TESTS_COMPARE_H
#define OOS_TESTS_COMPARE_H

#include "match/literals.h"

typedef struct comparison comparison;

/* NULL: one of the two refuses these words. Released with the arena. */
comparison *comparison_create(oos_arena *arena, const char *const *words, size_t count);

/* Scan `text` in blocks whose lengths come from `seed` (0: in one); false, with a line on stderr, when the hits differ.
 * *ret_hits may be NULL. */
bool comparison_run(comparison *both, oos_view text, uint32_t seed, size_t *ret_hits);

/* The same for our own matcher and the slow way. */
bool comparison_own(oos_arena *arena, const char *const *words, size_t count, oos_view text, uint32_t seed,
                    size_t *ret_hits);

#endif

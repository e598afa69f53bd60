/* An ordered set of blocks by a pair of numbers. Best fit is its question: the first block not below a key.
 *
 * Keys are spread over bins by the logarithm of `major` (64 to an octave of 512-byte units). Typical bins hold a few keys,
 * so a question costs one bin number and four comparisons; a bin with a million equal sizes still costs only a search of
 * its directory. */
#ifndef OOS_REPLAY_SET_H
#define OOS_REPLAY_SET_H

#include "base/view.h"

typedef struct oos_set oos_set;

oos_set *oos_set_create(void);   /* NULL when out of memory */
void oos_set_free(oos_set *set); /* NULL is fine */
size_t oos_set_count(const oos_set *set);

/* The pair must not be in the set yet. False when out of memory: then nothing has changed. */
bool oos_set_add(oos_set *set, uint64_t major, uint64_t minor, uint32_t block);

/* The pair must be in the set. */
void oos_set_remove(oos_set *set, uint64_t major, uint64_t minor);

/* The first block not below the pair, the last block below the pair; 0 when there is none. */
uint32_t oos_set_from(const oos_set *set, uint64_t major, uint64_t minor);
uint32_t oos_set_below(const oos_set *set, uint64_t major, uint64_t minor);

/* All blocks in order; `ret_blocks` has room for oos_set_count() of them. */
void oos_set_list(const oos_set *set, uint32_t *ret_blocks);

bool oos_set_is_sound(const oos_set *set); /* a walk over all of it, for oos_assert */

#endif

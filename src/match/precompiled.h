/* The set of literals that is built in, compiled when the library is built: compiling it takes as long as everything
 * else that explain does with a small log. */
#ifndef OOS_MATCH_PRECOMPILED_H
#define OOS_MATCH_PRECOMPILED_H

#include "base/hash.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern const unsigned char oos_precompiled_bytes[]; /* as hs_serialize_database() gives it */
extern const size_t oos_precompiled_len;            /* 0: there is none */
extern const uint64_t oos_precompiled_hash;         /* of the words it was made of */

/* Equal for equal words in equal order (FNV-1a). */
static inline uint64_t oos_precompiled_hash_of(const char *const *words, size_t count)
{
    uint64_t hash = OOS_HASH_START;
    for (size_t i = 0; i < count; i++) hash = oos_hash_add(hash, words[i], strlen(words[i]) + 1);
    return hash;
}

#endif

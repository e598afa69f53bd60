/* The set of literals that is built in, compiled when the library is built: compiling it takes as long as everything
 * else that explain does with a small log. */
#ifndef OOS_MATCH_PRECOMPILED_H
#define OOS_MATCH_PRECOMPILED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern const unsigned char oos_precompiled_bytes[]; /* as hs_serialize_database() gives it */
extern const size_t oos_precompiled_len;            /* 0: there is none */
extern const uint64_t oos_precompiled_hash;         /* of the words it was made of */

/* Equal for equal words in equal order (FNV-1a). */
static inline uint64_t oos_precompiled_hash_of(const char *const *words, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k <= strlen(words[i]); k++)
            hash = (hash ^ (unsigned char)words[i][k]) * 0x100000001b3u;
    return hash;
}

#endif

/* FNV-1a over bytes: short names of contents that nobody attacks. sha256.h where a collision would matter. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define OOS_HASH_START 0xcbf29ce484222325u

static inline uint64_t oos_hash_add(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++) hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

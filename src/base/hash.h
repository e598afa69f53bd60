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

/* 0 stays free for what is not known. */
static inline uint64_t oos_hash_known(const void *bytes, size_t len)
{
    uint64_t const hash = oos_hash_add(OOS_HASH_START, bytes, len);
    return hash ? hash : 1;
}

/* SHA-256, plainly. */
#include "base/sha256.h"
#include "base/check.h"

#include <stdio.h>

static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static void block_add(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64], s[8];
    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (unsigned i = 16; i < 64; i++) {
        uint32_t const a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t const b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(s, state, sizeof s);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t const e = turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25);
        uint32_t const t1 = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i];
        uint32_t const a = turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22);
        uint32_t const t2 = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++) state[i] += s[i];
}

void oos_sha256_init(oos_sha256 *hash)
{
    *hash = (oos_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                                   0x1f83d9ab, 0x5be0cd19}};
}

void oos_sha256_add(oos_sha256 *hash, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    size_t used = (size_t)(hash->bytes % 64);
    hash->bytes += len;
    while (len) {
        if (used == 0 && len >= 64) {
            block_add(hash->state, at);
            at += 64;
            len -= 64;
            continue;
        }
        size_t const some = len < 64 - used ? len : 64 - used;
        memcpy(hash->rest + used, at, some);
        used += some;
        at += some;
        len -= some;
        if (used < 64) break;
        block_add(hash->state, hash->rest);
        used = 0;
    }
}

void oos_sha256_add_u64(oos_sha256 *hash, uint64_t number)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++) bytes[i] = (unsigned char)(number >> (56 - 8 * i));
    oos_sha256_add(hash, bytes, sizeof bytes);
}

void oos_sha256_add_text(oos_sha256 *hash, const char *text)
{
    oos_sha256_add_u64(hash, text ? strlen(text) + 1 : 0);
    if (text) oos_sha256_add(hash, text, strlen(text));
}

void oos_sha256_hex(oos_sha256 *hash, char ret_hex[65])
{
    uint64_t const bits = hash->bytes * 8;
    oos_sha256_add(hash, "\x80", 1);
    while (hash->bytes % 64 != 56) oos_sha256_add(hash, "", 1);
    oos_sha256_add_u64(hash, bits);
    oos_assert(hash->bytes % 64 == 0);
    for (unsigned i = 0; i < 8; i++) snprintf(ret_hex + 8 * i, 9, "%08x", hash->state[i]);
}

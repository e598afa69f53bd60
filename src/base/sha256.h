/* SHA-256 (FIPS 180-4), for names of contents. Not for secrets. */
#pragma once
#include "base/view.h"

typedef struct oos_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char rest[64];
} oos_sha256;

void oos_sha256_init(oos_sha256 *hash);
void oos_sha256_add(oos_sha256 *hash, const void *bytes, size_t len);
/* A text and its end: "ab", "c" and "a", "bc" differ. NULL is told apart from "". */
void oos_sha256_add_text(oos_sha256 *hash, const char *text);
void oos_sha256_add_u64(oos_sha256 *hash, uint64_t number);
void oos_sha256_hex(oos_sha256 *hash, char ret_hex[65]); /* ends the hash */

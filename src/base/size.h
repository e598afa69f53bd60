/* Sizes: checked arithmetic, SIZE words (`23.5GiB`, `24GB`, plain bytes), and how the engine prints bytes. */
#pragma once
#include "base/view.h"

#define OOS_KIB ((uint64_t)1 << 10)
#define OOS_MIB ((uint64_t)1 << 20)
#define OOS_GIB ((uint64_t)1 << 30)

/* Numbers that may be absent. Unknown is not zero. */
typedef struct oos_u64 {
    bool known;
    uint64_t value;
} oos_u64;
typedef struct oos_f64 {
    bool known;
    double value;
} oos_f64;
typedef struct oos_flag {
    bool known, value;
} oos_flag;

/* A product of fractions as a whole number: what no 64 bits hold is the largest, what is none is 0. */
static inline uint64_t oos_u64_from(double value)
{
    return !(value > 0) ? 0 : value >= 0x1p64 ? UINT64_MAX : (uint64_t)value;
}

static inline oos_u64 oos_u64_of(uint64_t value)
{
    return (oos_u64){true, value};
}
static inline uint64_t oos_u64_or(oos_u64 number, uint64_t fallback)
{
    return number.known ? number.value : fallback;
}
static inline double oos_f64_or(oos_f64 number, double fallback)
{
    return number.known ? number.value : fallback;
}
static inline bool oos_flag_or(oos_flag flag, bool fallback)
{
    return flag.known ? flag.value : fallback;
}

/* Products and sums that stop at UINT64_MAX instead of wrapping: a size that large fits nowhere, which is the truth. */
static inline uint64_t oos_mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
static inline uint64_t oos_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}
static inline uint64_t oos_sub(uint64_t a, uint64_t b) /* stops at 0 */
{
    return a > b ? a - b : 0;
}
static inline uint64_t oos_cdiv(uint64_t a, uint64_t b) /* b != 0 */
{
    return a / b + (a % b != 0);
}
static inline uint64_t oos_round_up(uint64_t a, uint64_t unit)
{
    return oos_mul(oos_cdiv(a, unit), unit);
}
/* How far apart. */
static inline uint64_t oos_far(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static inline uint64_t oos_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t oos_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* `24564MiB`, `23.5GiB`, `24GB`, `1024`; case and a space before the unit do not matter. */
bool oos_size_parse(oos_view word, uint64_t *ret_bytes);

/* ... as people give it: a number without a unit is 0, or so many bytes that nobody can mean GiB or MiB: 1 MiB and more. */
bool oos_size_given(oos_view word, uint64_t *ret_bytes);

/* As PyTorch prints sizes: `512 bytes`, `20.00 MiB`, `1.56 GiB`. */
void oos_size_print(uint64_t bytes, char *ret_text, size_t capacity);

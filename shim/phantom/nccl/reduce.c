/* The arithmetic of NCCL's reductions, element by element: floats in double precision, integers modulo 2^64. */
#include "phantom/nccl/nccl.h"

#include <math.h>

/* Numbers of ncclDataType_t and ncclRedOp_t. */
enum {
    INT8,
    UINT8,
    INT32,
    UINT32,
    INT64,
    UINT64,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    BFLOAT16,
    FLOAT8_E4M3,
    FLOAT8_E5M2,
    TYPES
};
enum { SUM, PROD, MAX, MIN, AVG, SCALED, SCALED_MOST = 256 };

static double scalars[SCALED_MOST];
static uint8_t scalar_used[SCALED_MOST];

uint64_t nccl_type_bytes(int type)
{
    static const uint8_t bytes[TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return type >= 0 && type < TYPES ? bytes[type] : 0;
}

static bool is_float(int type)
{
    return type >= FLOAT16;
}

bool nccl_reduces(int type, int op)
{
    return type >= 0 && type <= BFLOAT16 && op >= SUM &&
           (op <= AVG || (op < SCALED + SCALED_MOST && scalar_used[op - SCALED]));
}

static double power_of_two(int exponent)
{
    uint64_t const bits = (uint64_t)(1023 + exponent) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double half_load(uint16_t bits)
{
    int const exponent = bits >> 10 & 31, fraction = bits & 1023;
    double const size = exponent == 31 ? (double)(fraction ? NAN : INFINITY)
                        : exponent     ? (1024 + fraction) * power_of_two(exponent - 25)
                                       : fraction * power_of_two(-24);
    return bits & 0x8000 ? -size : size;
}

/* To the nearest, ties to even. What is rounded up to the next power of two carries into the exponent, where it belongs. */
static uint16_t half_store(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    unsigned const sign = (unsigned)(bits >> 48) & 0x8000;
    int const exponent = (int)(bits >> 52 & 2047) - 1023;
    uint64_t const fraction = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    if (isnan(value)) return (uint16_t)(sign | 0x7e00);
    if (exponent > 15) return (uint16_t)(sign | 0x7c00);
    if (exponent < -25) return (uint16_t)sign;
    int const shift = exponent >= -14 ? 42 : 28 - exponent;
    uint64_t const rest = fraction & (((uint64_t)1 << shift) - 1), half = (uint64_t)1 << (shift - 1);
    unsigned kept = (unsigned)(fraction >> shift);
    kept += rest > half || (rest == half && (kept & 1));
    return (uint16_t)(sign | (exponent >= -14 ? (unsigned)((exponent + 15) << 10) + kept - 1024 : kept));
}

static double brain_load(uint16_t bits)
{
    uint32_t const whole = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &whole, sizeof value);
    return (double)value;
}

static uint16_t brain_store(double value)
{
    float const rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    if (isnan(rounded)) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define LOAD(kind)                                                                                           \
    kind value;                                                                                              \
    memcpy(&value, (const char *)values + i * sizeof value, sizeof value)
#define STORE(kind, number)                                                                                  \
    kind const value = (kind)(number);                                                                       \
    memcpy((char *)values + i * sizeof value, &value, sizeof value)

static double float_load(const void *values, uint64_t i, int type)
{
    if (type == FLOAT32) {
        LOAD(float);
        return (double)value;
    }
    if (type == FLOAT64) {
        LOAD(double);
        return value;
    }
    LOAD(uint16_t);
    return type == FLOAT16 ? half_load(value) : brain_load(value);
}

static void float_store(void *values, uint64_t i, int type, double number)
{
    if (type == FLOAT32) {
        STORE(float, number);
    } else if (type == FLOAT64) {
        STORE(double, number);
    } else {
        STORE(uint16_t, type == FLOAT16 ? half_store(number) : brain_store(number));
    }
}

/* Signed ones with their sign, so that they can be compared as such. */
static uint64_t integer_load(const void *values, uint64_t i, int type)
{
    if (type == INT8) {
        LOAD(int8_t);
        return (uint64_t)(int64_t)value;
    }
    if (type == UINT8) {
        LOAD(uint8_t);
        return value;
    }
    if (type == INT32) {
        LOAD(int32_t);
        return (uint64_t)(int64_t)value;
    }
    if (type == UINT32) {
        LOAD(uint32_t);
        return value;
    }
    LOAD(uint64_t);
    return value;
}

static void integer_store(void *values, uint64_t i, int type, uint64_t number)
{
    if (type <= UINT8) {
        STORE(uint8_t, number);
    } else if (type <= UINT32) {
        STORE(uint32_t, number);
    } else {
        STORE(uint64_t, number);
    }
}

static bool is_signed(int type)
{
    return type == INT8 || type == INT32 || type == INT64;
}

static bool is_less(uint64_t a, uint64_t b, int type)
{
    return is_signed(type) ? (int64_t)a < (int64_t)b : a < b;
}

static double float_combine(double sum, double value, int op)
{
    return op == PROD  ? sum * value
           : op == MAX ? (value > sum || isnan(value) ? value : sum)
           : op == MIN ? (value < sum || isnan(value) ? value : sum)
                       : sum + value;
}

static uint64_t integer_combine(uint64_t sum, uint64_t value, int type, int op)
{
    return op == PROD  ? sum * value
           : op == MAX ? (is_less(sum, value, type) ? value : sum)
           : op == MIN ? (is_less(value, sum, type) ? value : sum)
                       : sum + value;
}

void nccl_reduce_add(uint64_t *sums, const void *values, uint64_t count, int type, int op, bool first)
{
    double const scale = op >= SCALED ? scalars[op - SCALED] : 1;
    for (uint64_t i = 0; i < count; i++)
        if (is_float(type)) {
            double sum, value = float_load(values, i, type) * scale;
            memcpy(&sum, &sums[i], sizeof sum);
            if (!first) value = float_combine(sum, value, op);
            memcpy(&sums[i], &value, sizeof value);
        } else {
            uint64_t const value =
                integer_load(values, i, type) * (op >= SCALED ? (uint64_t)(int64_t)scale : 1);
            sums[i] = first ? value : integer_combine(sums[i], value, type, op);
        }
}

void nccl_reduce_end(const uint64_t *sums, void *ret_values, uint64_t count, int type, int op, int ranks)
{
    for (uint64_t i = 0; i < count; i++)
        if (is_float(type)) {
            double sum;
            memcpy(&sum, &sums[i], sizeof sum);
            float_store(ret_values, i, type, op == AVG ? sum / ranks : sum);
        } else {
            uint64_t const sum = sums[i];
            integer_store(ret_values, i, type,
                          op != AVG         ? sum
                          : is_signed(type) ? (uint64_t)((int64_t)sum / ranks)
                                            : sum / (uint64_t)ranks);
        }
}

int nccl_op_create(const void *scalar, int type)
{
    for (int i = 0; i < SCALED_MOST; i++)
        if (!__atomic_exchange_n(&scalar_used[i], 1, __ATOMIC_SEQ_CST)) {
            scalars[i] =
                is_float(type) ? float_load(scalar, 0, type) : (double)(int64_t)integer_load(scalar, 0, type);
            return SCALED + i;
        }
    return -1;
}

void nccl_op_destroy(int op)
{
    if (op >= SCALED && op < SCALED + SCALED_MOST)
        __atomic_store_n(&scalar_used[op - SCALED], 0, __ATOMIC_SEQ_CST);
}

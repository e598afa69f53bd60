/* Element types, as configs, headers and flags spell them. */
#include "model/model.h"

uint64_t oos_dtype_bytes(oos_dtype dtype)
{
    switch (dtype) {
    case OOS_DTYPE_I64: return 8;
    case OOS_DTYPE_F32:
    case OOS_DTYPE_I32: return 4;
    case OOS_DTYPE_F16:
    case OOS_DTYPE_BF16: return 2;
    case OOS_DTYPE_F8:
    case OOS_DTYPE_I8:
    case OOS_DTYPE_U8: return 1;
    case OOS_DTYPE_UNKNOWN: return 0;
    }
    return 0;
}

static const struct {
    const char *word;
    oos_dtype dtype;
} words[] = {
    /* the first word of a type is the one we print */
    {"float32", OOS_DTYPE_F32}, {"float16", OOS_DTYPE_F16},      {"bfloat16", OOS_DTYPE_BF16},
    {"float8", OOS_DTYPE_F8},   {"int64", OOS_DTYPE_I64},        {"int32", OOS_DTYPE_I32},
    {"int8", OOS_DTYPE_I8},     {"uint8", OOS_DTYPE_U8},         {"float", OOS_DTYPE_F32},
    {"half", OOS_DTYPE_F16},    {"F32", OOS_DTYPE_F32},          {"F16", OOS_DTYPE_F16},
    {"BF16", OOS_DTYPE_BF16},   {"F8_E4M3", OOS_DTYPE_F8},       {"F8_E5M2", OOS_DTYPE_F8},
    {"F8_E8M0", OOS_DTYPE_F8},  {"float8_e4m3fn", OOS_DTYPE_F8}, {"float8_e5m2", OOS_DTYPE_F8},
    {"I64", OOS_DTYPE_I64},     {"I32", OOS_DTYPE_I32},          {"I8", OOS_DTYPE_I8},
    {"U8", OOS_DTYPE_U8},       {"BOOL", OOS_DTYPE_U8},
};

oos_dtype oos_dtype_find(const char *word)
{
    if (strncmp(word, "torch.", 6) == 0) word += 6;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i].word) == 0) return words[i].dtype;
    return OOS_DTYPE_UNKNOWN;
}

const char *oos_dtype_word(oos_dtype dtype)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].dtype == dtype) return words[i].word;
    return "unknown";
}

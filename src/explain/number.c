/* Units are binary throughout: vLLM prints GiB also where an old message says GB (lifecycle of 0.8.0 to 0.8.3), and
 * PyTorch never prints anything else. */
#include "explain/explain.h"
#include "base/ascii.h"
#include "base/locale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const keys[OOS_NUMBER_COUNT] = {
#define KEY(name, key, unit) [OOS_NUMBER_##name] = key,
    OOS_NUMBER_MAP(KEY)
#undef KEY
};
static const char *const names[OOS_NUMBER_COUNT] = {
#define NAME(name, key, unit) [OOS_NUMBER_##name] = #name,
    OOS_NUMBER_MAP(NAME)
#undef NAME
};
static const char units[OOS_NUMBER_COUNT + 1] =
#define UNIT(name, key, unit) #unit
    OOS_NUMBER_MAP(UNIT)
#undef UNIT
    ;

const char *oos_number_key(oos_number_id id)
{
    return keys[id];
}
char oos_number_unit(oos_number_id id)
{
    return units[id];
}

oos_number_id oos_number_find(const char *name, size_t len)
{
    oos_number_id id = 0;
    while (id < OOS_NUMBER_COUNT && (strlen(names[id]) != len || memcmp(names[id], name, len) != 0)) id++;
    return id;
}

/* Decimal text times `factor`, rounded. Commas between digits are skipped. */
static bool decimal(oos_view text, double factor, oos_number *ret_number)
{
    char plain[40];
    size_t len = 0;
    for (size_t i = 0; i < text.len && len + 1 < sizeof plain; i++)
        if (text.ptr[i] != ',') plain[len++] = text.ptr[i];
    plain[len] = '\0';
    char *end;
    double const value = oos_real_read(plain, &end);
    if (end == plain || !isfinite(value)) return false;
    double const scaled = fabs(value) * factor;
    bool const whole = factor == 1 && !strchr(plain, '.'); /* counts and bytes: a double may not hold them */
    if (scaled >= (whole ? 0x1p64 : 0x1p63)) return false; /* a slice layer prints -1 as 64 bits */
    if (whole)
        ret_number->value = strtoull(plain[0] == '-' ? plain + 1 : plain, NULL, 10);
    else
        ret_number->value = (uint64_t)(scaled + 0.5);
    ret_number->negative = value < 0;
    ret_number->known = true;
    return true;
}

bool oos_number_size(oos_view text, oos_number *ret_number)
{
    static const struct {
        char letter;
        double factor;
    } prefixes[] = {{'K', 0x1p10}, {'M', 0x1p20}, {'G', 0x1p30}, {'T', 0x1p40}};
    size_t digits = 0;
    while (digits < text.len &&
           (text.ptr[digits] == '.' || (text.ptr[digits] >= '0' && text.ptr[digits] <= '9')))
        digits++;
    size_t unit = digits;
    while (unit < text.len && (text.ptr[unit] == ' ' || text.ptr[unit] == '\t')) unit++;
    if (digits == 0 || unit >= text.len) return false;
    double factor = 1;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if ((text.ptr[unit] & ~0x20) == prefixes[i].letter) factor = prefixes[i].factor;
    return decimal(oos_view_slice(text, 0, digits), factor, ret_number);
}

/* "K size: 8.12 GB, V size: 8.12": every figure, added up, in GiB. */
static bool sum_of(oos_view text, oos_number *ret_number)
{
    oos_number sum = {.line = ret_number->line};
    for (size_t at = 0; at < text.len;) {
        size_t end = at;
        oos_number one = {0};
        while (end < text.len && (oos_is_digit(text.ptr[end]) || text.ptr[end] == '.')) end++;
        if (end > at && decimal(oos_view_slice(text, at, end - at), 0x1p30, &one)) {
            sum.known = true;
            sum.value = oos_add(sum.value, one.value);
        }
        at = end > at ? end : at + 1;
    }
    *ret_number = sum;
    return sum.known;
}

static bool value_of(oos_view text, const char *unit, oos_number *ret_number)
{
    if (strcmp(unit, "size") == 0) return oos_number_size(text, ret_number);
    if (strcmp(unit, "gib") == 0) return decimal(text, 0x1p30, ret_number);
    if (strcmp(unit, "gibs") == 0) return sum_of(text, ret_number);
    if (strcmp(unit, "mib") == 0) return decimal(text, 0x1p20, ret_number);
    if (strcmp(unit, "ratio") == 0) return decimal(text, 1e6, ret_number);
    if (strcmp(unit, "n") == 0 || strcmp(unit, "bytes") == 0) return decimal(text, 1, ret_number);
    return false;
}

bool oos_number_read(const oos_capture *capture, uint64_t line, oos_number_id *ret_id, oos_number *ret_number)
{
    const char *unit = strrchr(capture->name, '_');
    if (!unit) return false;
    size_t const len = (size_t)(unit - capture->name);
    oos_number_id const id = oos_number_find(capture->name, len);
    oos_number number = {.line = line};
    if (id == OOS_NUMBER_COUNT || !value_of(capture->text, unit + 1, &number)) return false;
    snprintf(number.text, sizeof number.text, "%.*s", (int)oos_min(capture->text.len, sizeof number.text - 1),
             capture->text.ptr);
    *ret_id = id;
    *ret_number = number;
    return true;
}

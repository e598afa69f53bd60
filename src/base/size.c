/* Reading and printing sizes. */
#include "base/size.h"
#include "base/ascii.h"
#include "base/locale.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool unit_factor(const char *unit, double *ret_factor)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {
        {"", 1},         {"b", 1},        {"kb", 1e3},     {"mb", 1e6},        {"gb", 1e9},
        {"tb", 1e12},    {"kib", 1024.0}, {"k", 1024.0},   {"mib", 1048576.0}, {"m", 1048576.0},
        {"gib", 0x1p30}, {"g", 0x1p30},   {"tib", 0x1p40}, {"t", 0x1p40},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].name) == 0) {
            *ret_factor = units[i].factor;
            return true;
        }
    return false;
}

bool oos_size_parse(oos_view word, uint64_t *ret_bytes)
{
    char text[64], unit[8];
    if (word.len == 0 || word.len >= sizeof text) return false;
    memcpy(text, word.ptr, word.len);
    text[word.len] = '\0';
    if (!oos_is_digit(text[0]) && text[0] != '.') return false;
    if (strpbrk(text, "xXpPnN")) return false; /* no hexadecimal, no NaN */

    char *end;
    double const number = oos_real_read(text, &end);
    while (*end == ' ') end++;
    size_t len = 0;
    for (; end[len] && len + 1 < sizeof unit; len++) unit[len] = oos_lower(end[len]);
    if (end[len]) return false;
    unit[len] = '\0';

    double factor;
    if (!unit_factor(unit, &factor)) return false;
    double const bytes = number * factor;
    if (!(bytes >= 0) || bytes >= 0x1p63) return false;
    *ret_bytes = (uint64_t)llround(bytes);
    return true;
}

bool oos_size_given(oos_view word, uint64_t *ret_bytes)
{
    uint64_t bytes;
    if (!oos_size_parse(word, &bytes)) return false;
    char const last = word.ptr[word.len - 1];
    bool const bare = oos_is_digit(last) || last == '.' || last == ' ';
    if (bare && bytes > 0 && bytes < OOS_MIB) return false;
    *ret_bytes = bytes;
    return true;
}

void oos_size_print(uint64_t bytes, char *ret_text, size_t capacity)
{
    if (bytes <= 1024)
        snprintf(ret_text, capacity, "%" PRIu64 " bytes", bytes);
    else if (bytes <= OOS_MIB)
        oos_format(ret_text, capacity, "%.2f KiB", (double)bytes / 0x1p10);
    else if (bytes <= OOS_GIB)
        oos_format(ret_text, capacity, "%.2f MiB", (double)bytes / 0x1p20);
    else
        oos_format(ret_text, capacity, "%.2f GiB", (double)bytes / 0x1p30);
}

/* One scan per text; the first value that is a number counts. */
#include "explain/explain.h"
#include "base/ascii.h"
#include "base/locale.h"

#include <math.h>
#include <string.h>

/* What stands behind the value is left in *ret_end. */
static bool read_after(const char *text, const char *key, double *ret_value, const char **ret_end)
{
    size_t const len = strlen(key);
    for (const char *at = text; at && *at; at++) {
        size_t i = 0;
        while (i < len && (at[i] == key[i] || (key[i] == '_' && at[i] == '-'))) i++;
        if (i < len) continue;
        at += len;
        while (*at && strchr("=:'\" ", *at)) at++;
        char *end;
        double const value = oos_real_read(at, &end);
        if (end == at || !isfinite(value)) return false;
        *ret_value = value;
        *ret_end = end;
        return true;
    }
    return false;
}

static bool read_first(const oos_setup_text *setup, const char *key, double *ret_value, const char **ret_end)
{
    return read_after(setup->command, key, ret_value, ret_end) ||
           read_after(setup->args, key, ret_value, ret_end) ||
           read_after(setup->config, key, ret_value, ret_end);
}

bool oos_setup_value(const oos_setup_text *setup, const char *key, double *ret_value)
{
    const char *end;
    return read_first(setup, key, ret_value, &end);
}

bool oos_setup_bytes(const oos_setup_text *setup, const char *key, double *ret_bytes)
{
    static const struct {
        char letter;
        double factor;
    } units[] = {{'K', 0x1p10}, {'M', 0x1p20}, {'G', 0x1p30}, {'T', 0x1p40},
                 {'k', 1e3},    {'m', 1e6},    {'g', 1e9},    {'t', 1e12}};
    const char *end;
    double value;
    if (!read_first(setup, key, &value, &end) || value <= 0) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (*end == units[i].letter) value *= units[i].factor;
    *ret_bytes = value;
    return true;
}

/* The same name, words joined by the one or the other. */
static bool names(const char *text, const char *name)
{
    size_t const len = strlen(name);
    for (const char *at = text; at && *at; at++) {
        size_t i = 0;
        while (i < len && (at[i] == name[i] || (name[i] == '-' && at[i] == '_'))) i++;
        if (i == len && !oos_is_alnum(at[len]) && at[len] != '-' && at[len] != '_') return true;
    }
    return false;
}

bool oos_setup_names(const oos_setup_text *setup, const char *flag)
{
    return names(setup->command, flag) || names(setup->args, flag + strspn(flag, "-"));
}

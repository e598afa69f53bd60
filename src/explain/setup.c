/* One scan per text; the first value that is a number counts. */
#include "explain/explain.h"
#include "base/ascii.h"
#include "base/locale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SEPARATORS "=:'\" " /* between a name and its value */

/* What stands behind the next place of the flag, without its dashes, words joined by the one or the other; NULL: there is none. */
static const char *behind(const char *text, const char *flag)
{
    const char *key = flag + strspn(flag, "-");
    size_t const len = strlen(key);
    for (const char *at = text; len && at && *at; at++) {
        size_t i = 0;
        while (i < len &&
               (at[i] == key[i] || (at[i] == '_' && key[i] == '-') || (at[i] == '-' && key[i] == '_')))
            i++;
        if (i == len) return at + len;
    }
    return NULL;
}

/* What stands behind the value is left in *ret_end. */
static bool read_after(const char *text, const char *flag, double *ret_value, const char **ret_end)
{
    const char *at = behind(text, flag);
    while (at && (*at == '-' || *at == '_')) at = behind(at, flag); /* a longer name */
    if (!at) return false;
    char *end;
    at += strspn(at, SEPARATORS);
    double const value = oos_real_read(at, &end);
    if (end == at || !isfinite(value)) return false;
    *ret_value = value;
    *ret_end = end;
    return true;
}

static bool read_first(const oos_setup_text *setup, const char *flag, double *ret_value, const char **ret_end)
{
    return read_after(setup->command, flag, ret_value, ret_end) ||
           read_after(setup->args, flag, ret_value, ret_end) ||
           read_after(setup->config, flag, ret_value, ret_end);
}

bool oos_setup_value(const oos_setup_text *setup, const char *flag, double *ret_value)
{
    const char *end;
    return read_first(setup, flag, ret_value, &end);
}

bool oos_setup_bytes(const oos_setup_text *setup, const char *flag, double *ret_bytes)
{
    static const struct {
        char letter;
        double factor;
    } units[] = {{'K', 0x1p10}, {'M', 0x1p20}, {'G', 0x1p30}, {'T', 0x1p40},
                 {'k', 1e3},    {'m', 1e6},    {'g', 1e9},    {'t', 1e12}};
    const char *end;
    double value;
    if (!read_first(setup, flag, &value, &end) || value <= 0) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (*end == units[i].letter) value *= units[i].factor;
    *ret_bytes = value;
    return true;
}

bool oos_setup_on(const oos_setup_text *setup, const char *flag)
{
    const char *texts[] = {setup->args, setup->config, setup->command};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i] && strstr(texts[i], flag)) return true;
        for (const char *at = behind(texts[i], flag); at; at = behind(at, flag))
            if (strncmp(at, "=True", 5) == 0 || strncmp(at, "': True", 7) == 0) return true;
    }
    return false;
}

bool oos_setup_begins(const oos_setup_text *setup, const char *flag, const char *value)
{
    const char *texts[] = {setup->args, setup->config, setup->command};
    size_t const len = strlen(value);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (const char *at = behind(texts[i], flag); at; at = behind(at, flag)) {
            const char *word = at + strspn(at, SEPARATORS);
            if (oos_same_start(word, value, len) &&
                !(oos_is_digit(word[len]) && oos_is_digit(value[len - 1])))
                return true;
        }
    return false;
}

bool oos_setup_has(const oos_setup_text *setup, const char *flag, const char *value)
{
    char key[64], word[64];
    int len = 0;
    if (value[0] != '{') return *value && oos_setup_begins(setup, flag, value);
    for (value++; sscanf(value, " \"%63[^\"]\": %63[^,}]%n", key, word, &len) == 2; value += len + 1) {
        char *bare = word + strspn(word, "\"");
        bare[strcspn(bare, "\"")] = '\0';
        if (!*bare || !oos_setup_begins(setup, key, bare)) return false;
        if (value[len] != ',') return true;
    }
    return false;
}

bool oos_setup_names(const oos_setup_text *setup, const char *flag)
{
    const char *texts[] = {setup->command, setup->args}; /* the latter without dashes */
    ptrdiff_t const len = (ptrdiff_t)strlen(flag);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (const char *at = behind(texts[i], flag); at; at = behind(at, flag))
            if (!oos_is_alnum(*at) && *at != '-' && *at != '_' &&
                (i || (at - texts[i] >= len && at[-len] == '-')))
                return true;
    return false;
}

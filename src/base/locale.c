/* Numbers and sentences that do not depend on the locale. */
#include "base/locale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* glibc and musl keep the C locale as a constant: asking for it costs nothing, cannot fail and needs no freeing. */
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t oos_locale_enter(void)
{
    return uselocale(c_locale());
}

void oos_locale_leave(locale_t before)
{
    uselocale(before);
}

int oos_vformat(char *ret_text, size_t capacity, const char *format, va_list args)
{
    locale_t const before = oos_locale_enter();
    int const len = vsnprintf(ret_text, capacity, format, args);
    oos_locale_leave(before);
    return len;
}

int oos_format(char *ret_text, size_t capacity, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int const len = oos_vformat(ret_text, capacity, format, args);
    va_end(args);
    return len;
}

double oos_real_read(const char *text, char **ret_end)
{
    locale_t const before = oos_locale_enter();
    double const value = strtod(text, ret_end);
    oos_locale_leave(before);
    return value;
}

const char *oos_errno_text(int number)
{
    return strerror_l(number, c_locale());
}

/* The same bytes whatever locale the process around us has set: reading and writing numbers, the sentences of errno,
 * and a bracket for libraries that listen to the locale themselves. The locale of a thread is changed for the length
 * of one call and put back; that of the process is never touched. tools/check_locale.py sees to it that nobody goes
 * around these. */
#pragma once
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

/* Between the two this thread is in the C locale: `locale_t const before = oos_locale_enter(); ...`. */
locale_t oos_locale_enter(void);
void oos_locale_leave(locale_t before);

/* As snprintf() and vsnprintf(). */
int oos_format(char *ret_text, size_t capacity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int oos_vformat(char *ret_text, size_t capacity, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* As strtod(); `ret_end` may be NULL. */
double oos_real_read(const char *text, char **ret_end);

/* As strerror(), never translated. */
const char *oos_errno_text(int number);

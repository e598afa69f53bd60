/* Sets the locale named by TEST_LOCALE before main() begins; one that is not there ends the program with 77. */
#include <locale.h>
#include <stdlib.h>

__attribute__((constructor)) static void set_locale(void)
{
    const char *name = getenv("TEST_LOCALE");
    if (name && !setlocale(LC_ALL, name)) _Exit(77);
}

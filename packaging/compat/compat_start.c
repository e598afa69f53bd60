/* The start of a program that is linked with the start files of glibc 2.34 or newer and runs on an older one. Those files
 * leave the constructors to the library; an older library runs only the function it is given. So it is given one. */
#include <stddef.h>

typedef int main_function(int, char **, char **);
typedef void init_function(int, char **, char **);

extern init_function *__init_array_start[], *__init_array_end[]; /* by the linker */
void _init(void);

int __real___libc_start_main(main_function *, int, char **, init_function *, void (*)(void), void (*)(void),
                             void *);
int __wrap___libc_start_main(main_function *, int, char **, init_function *, void (*)(void), void (*)(void),
                             void *);

static void run_constructors(int argc, char **argv, char **environment)
{
    _init();
    for (init_function **function = __init_array_start; function < __init_array_end; function++)
        (*function)(argc, argv, environment);
}

/* -Wl,--wrap=__libc_start_main brings the call of the start file here. */
int __wrap___libc_start_main(main_function *entry, int argc, char **argv, init_function *init,
                             void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
    return __real___libc_start_main(entry, argc, argv, init ? init : run_constructors, fini, loader_fini,
                                    stack_end);
}

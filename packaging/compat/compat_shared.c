/* The standard streams for archives that were not compiled to live in a shared library: those reach variables of other
 * libraries by an address that must be near, so the library carries pointers of its own. Portable builds only. */
#include <dlfcn.h>
#include <stdio.h>

#undef stdin
#undef stdout
#undef stderr
#define HERE __attribute__((visibility("hidden")))
HERE FILE *stdin, *stdout, *stderr;

__attribute__((constructor(101))) static void find_streams(void)
{
    FILE *const *in = dlsym(RTLD_NEXT, "stdin"), *const *out = dlsym(RTLD_NEXT, "stdout"),
                *const *err = dlsym(RTLD_NEXT, "stderr");
    stdin = in ? *in : NULL;
    stdout = out ? *out : NULL;
    stderr = err ? *err : NULL;
}

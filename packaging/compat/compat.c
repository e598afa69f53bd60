/* What an old glibc does not have and we or the static archives of a newer system ask for. Only in portable builds: see
 * tools/glibc_stub.py and docs/contributing/decisions/0006-one-wheel.md. */
#include <sys/syscall.h>
#include <unistd.h>

/* glibc 2.27; an older kernel than 3.17 answers "not implemented" */
int memfd_create(const char *name, unsigned flags);
int memfd_create(const char *name, unsigned flags)
{
    return (int)syscall(SYS_memfd_create, name, flags);
}

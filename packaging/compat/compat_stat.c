/* stat() and its family for an old glibc, in programs compiled on a newer one. Portable builds only; hidden, because the
 * stand-ins live in other people's processes. */
#undef _FILE_OFFSET_BITS /* else `stat` is only another name of `stat64` */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)
/* glibc 2.33 made functions of what were inline wrappers. Both names have the same layout on this machine. */
#define STAT_FUNCTIONS(bits)                                                                                 \
    int stat##bits(const char *path, struct stat##bits *ret_stat)                                            \
    {                                                                                                        \
        return (int)syscall(SYS_stat, path, ret_stat);                                                       \
    }                                                                                                        \
    int lstat##bits(const char *path, struct stat##bits *ret_stat)                                           \
    {                                                                                                        \
        return (int)syscall(SYS_lstat, path, ret_stat);                                                      \
    }                                                                                                        \
    int fstat##bits(int fd, struct stat##bits *ret_stat)                                                     \
    {                                                                                                        \
        return (int)syscall(SYS_fstat, fd, ret_stat);                                                        \
    }                                                                                                        \
    int fstatat##bits(int dir, const char *path, struct stat##bits *ret_stat, int flags)                     \
    {                                                                                                        \
        return (int)syscall(SYS_newfstatat, dir, path, ret_stat, flags);                                     \
    }
STAT_FUNCTIONS()
STAT_FUNCTIONS(64)
#pragma GCC visibility pop

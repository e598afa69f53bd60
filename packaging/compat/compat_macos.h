/* What Linux has and macOS lacks. The cross file includes this before everything else; src/ knows nothing of it. */
#ifndef OOS_COMPAT_MACOS_H
#define OOS_COMPAT_MACOS_H

#define _DARWIN_C_SOURCE
#include <stddef.h>
#include <string.h>

/* Not translated there. */
#define strerror_l(number, locale) strerror(number)
#define POSIX_FADV_SEQUENTIAL 2
#define posix_fadvise(fd, offset, len, advice) ((void)(fd))

static inline void *memrchr(const void *in, int byte, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)in;
    while (len--)
        if (bytes[len] == (unsigned char)byte) return (void *)(bytes + len);
    return NULL;
}

#endif

/* Reading whole files. */
#include "base/file.h"
#include "base/locale.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __wasi__ /* no users */
#define geteuid() ((uid_t)0)
#endif

oomsight_status oos_file_read(oos_arena *arena, const char *path, size_t limit_bytes, oos_view *ret_bytes,
                              oomsight_error *reterr)
{
    oomsight_status status = OOMSIGHT_OK;
    /* a pipe would be waited for, and some devices do something when they are opened */
    int const fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        status = errno == ENOENT ? OOMSIGHT_NOT_FOUND : OOMSIGHT_IO;
        oos_fail(reterr, status, "%s", oos_errno_text(errno));
        return oos_fail_in(reterr, status, path);
    }

    struct stat about;
    char *bytes = NULL;
    size_t len = 0;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        status = oos_fail(reterr, OOMSIGHT_IO, "not a regular file");
        goto out;
    }
    if ((uint64_t)about.st_size > limit_bytes) {
        status = oos_fail(reterr, OOMSIGHT_MALFORMED, "%lld bytes, more than the %zu we read",
                          (long long)about.st_size, limit_bytes);
        goto out;
    }
    bytes = oos_arena_take(arena, (size_t)about.st_size + 1);
    if (!bytes) {
        status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the file");
        goto out;
    }
    while (len < (size_t)about.st_size) {
        ssize_t const got = read(fd, bytes + len, (size_t)about.st_size - len);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = oos_fail(reterr, OOMSIGHT_IO, "%s", oos_errno_text(errno));
            goto out;
        }
        if (got == 0) break; /* it shrank while we read it */
        len += (size_t)got;
    }
    *ret_bytes = (oos_view){bytes, len};
out:
    close(fd);
    return status == OOMSIGHT_OK ? status : oos_fail_in(reterr, status, path);
}

bool oos_file_read_own(oos_arena *arena, const char *path, size_t limit_bytes, oos_view *ret_bytes)
{
    struct stat is;
    int const fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char *bytes = NULL;
    size_t len = 0;
    if (fd < 0) return false;
    if (fstat(fd, &is) == 0 && S_ISREG(is.st_mode) && (is.st_uid == geteuid() || is.st_uid == 0) &&
        !(is.st_mode & 022) && is.st_size > 0 && (uint64_t)is.st_size <= limit_bytes)
        bytes = OOS_NEW_ARRAY(arena, char, (size_t)is.st_size + 1);
    for (ssize_t got = 1; bytes && got > 0 && len<(size_t)is.st_size; len += got> 0 ? (size_t)got : 0)
        got = read(fd, bytes + len, (size_t)is.st_size - len);
    close(fd);
    *ret_bytes = (oos_view){bytes, len};
    return bytes != NULL;
}

bool oos_file_is_dir(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

bool oos_file_exists(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

bool oos_write_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t const some = write(fd, bytes, len);
        if (some < 0 && errno == EINTR) continue;
        if (some <= 0) return false;
        bytes += some;
        len -= (size_t)some;
    }
    return true;
}

int64_t oos_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Where a path leads, and writing there. What may be followed is said in place.h. */
#include "base/place.h"
#include "base/check.h"
#include "base/file.h"
#include "base/locale.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __wasi__ /* no users and no processes */
#define geteuid() ((uid_t)0)
#define getpid() 1
#endif

typedef struct place {
    char path[PATH_MAX]; /* behind all links but those of /proc */
    bool there, plain;   /* something is there; it is a regular file, or will be */
    bool open_elsewhere; /* a descriptor under /proc: others hold the very file */
    struct stat info;    /* when it is there */
} place;

enum { LINKS_MAX = 40, PATH_LEN_MAX = PATH_MAX - 3 }; /* behind its folder there is room for "." and a zero */

static oomsight_status wrong(oomsight_error *reterr, const char *path)
{
    oos_fail(reterr, OOMSIGHT_IO, "%s", oos_errno_text(errno));
    return oos_fail_in(reterr, OOMSIGHT_IO, path);
}

/* The folder's part of a path with its slash; 0 bytes: the current one. */
static size_t folder_len(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* path = what the link there says. */
static bool link_follow(char path[PATH_MAX])
{
    char target[PATH_MAX], whole[2 * PATH_MAX];
    ssize_t const len = readlink(path, target, sizeof target - 1);
    if (len <= 0) return false;
    target[len] = '\0';
    int const folder = target[0] == '/' ? 0 : (int)folder_len(path);
    int const more = snprintf(whole, sizeof whole, "%.*s%s", folder, path, target);
    if (more < 0 || more > PATH_LEN_MAX) return errno = ENAMETOOLONG, false;
    memcpy(path, whole, (size_t)more + 1);
    return true;
}

static bool everybody_writes(const char *path)
{
    char folder[PATH_MAX];
    struct stat info;
    size_t const len = folder_len(path);
    oos_assert(len + 2 <= sizeof folder);
    memcpy(folder, path, len);
    memcpy(folder + len, ".", 2);
    return stat(folder, &info) != 0 || info.st_mode & S_IWOTH;
}

/* /dev/fd is a link to /proc/self/fd, whose entries are links in name only. */
static bool is_descriptor(const char *path)
{
    char folder[PATH_MAX], real[PATH_MAX];
    size_t const len = folder_len(path);
    oos_assert(len + 2 <= sizeof folder);
    memcpy(folder, path, len);
    memcpy(folder + len, ".", 2);
    return realpath(folder, real) && strncmp(real, "/proc/", 6) == 0;
}

static oomsight_status place_find(const char *path, place *ret_place, oomsight_error *reterr)
{
    place *p = ret_place;
    *p = (place){.plain = true};
    if (strlen(path) > PATH_LEN_MAX) return errno = ENAMETOOLONG, wrong(reterr, path);
    memcpy(p->path, path, strlen(path) + 1);
    for (int links = 0; links < LINKS_MAX; links++) {
        p->open_elsewhere = is_descriptor(p->path);
        p->there = (p->open_elsewhere ? stat : lstat)(p->path, &p->info) == 0;
        if (!p->there) return errno == ENOENT ? OOMSIGHT_OK : wrong(reterr, path);
        if (!S_ISLNK(p->info.st_mode)) break;
        if (p->info.st_uid != geteuid() && p->info.st_uid != 0) {
            oos_fail(reterr, OOMSIGHT_IO, "a link that somebody else made; it is not followed");
            errno = EPERM;
            return oos_fail_in(reterr, OOMSIGHT_IO, path);
        }
        if (!link_follow(p->path)) return wrong(reterr, path);
    }
    if (S_ISLNK(p->info.st_mode)) return errno = ELOOP, wrong(reterr, path);
    p->plain = S_ISREG(p->info.st_mode);
    if (p->plain && !p->open_elsewhere && p->info.st_uid != geteuid() && everybody_writes(p->path)) {
        oos_fail(reterr, OOMSIGHT_IO, "a file of somebody else in a folder where everybody can write");
        errno = EPERM;
        return oos_fail_in(reterr, OOMSIGHT_IO, path);
    }
    return OOMSIGHT_OK;
}

static oomsight_status open_found(const place *p, const char *path, bool append, unsigned mode, int *ret_fd,
                                  oomsight_error *reterr)
{
    int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
    if (!p->open_elsewhere) flags |= O_NOFOLLOW;
    if (!p->there) flags |= O_CREAT | O_EXCL;
    if (append || p->open_elsewhere) flags |= O_APPEND; /* `>> log` with /dev/stdout keeps the log */
    if (p->there && p->plain && !append && !p->open_elsewhere) flags |= O_TRUNC;
    int const fd = open(p->path, flags, (mode_t)mode);
    if (fd < 0) return wrong(reterr, path);
    *ret_fd = fd;
    return OOMSIGHT_OK;
}

oomsight_status oos_place_open(const char *path, bool append, unsigned mode, int *ret_fd,
                               oomsight_error *reterr)
{
    place p;
    OOS_TRY(place_find(path, &p, reterr));
    return open_found(&p, path, append, mode, ret_fd, reterr);
}

/* A file of its own beside the place. -1: there can be none, or the name is too long for it. */
static int fresh_open(const place *p, char ret_path[PATH_MAX])
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME,
                  &now); /* a name that is taken is refused, so it need not be hard to guess */
    int const len = snprintf(ret_path, PATH_MAX, "%.*s.oomsight-%d-%lld%09ld", (int)folder_len(p->path),
                             p->path, (int)getpid(), (long long)now.tv_sec, now.tv_nsec);
    if (len < 0 || len >= PATH_MAX) return -1;
    int const fd = open(ret_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0 && p->there && fchmod(fd, p->info.st_mode & 0777) != 0) {
        close(fd);
        unlink(ret_path);
        return -1;
    }
    return fd;
}

/* False: nothing has changed, and *ret_full says that the disk is why. */
static bool replace(const place *p, const char *bytes, size_t len, bool *ret_full)
{
    char fresh[PATH_MAX];
    int const fd = fresh_open(p, fresh);
    if (fd < 0) return false;
    bool done = oos_write_all(fd, bytes, len);
    done = close(fd) == 0 && done;
    *ret_full = !done;
    if (done && rename(fresh, p->path) == 0) return true; /* fails where a single file is mounted */
    int const why = errno;
    unlink(fresh);
    errno = why;
    return false;
}

oomsight_status oos_place_write(const char *path, const char *bytes, size_t len, oomsight_error *reterr)
{
    place p;
    int fd = -1;
    bool full = false;
    OOS_TRY(place_find(path, &p, reterr));
    bool const alone = !p.there || (p.info.st_nlink == 1 && p.info.st_uid == geteuid());
    if (p.plain && alone && !p.open_elsewhere) {
        if (replace(&p, bytes, len, &full)) return OOMSIGHT_OK;
        if (full) return wrong(reterr, path);
    }
    OOS_TRY(open_found(&p, path, false, 0666, &fd, reterr));
    bool done = oos_write_all(fd, bytes, len);
    int const why = errno;
    done = close(fd) == 0 && done;
    if (done) return OOMSIGHT_OK;
    errno = why;
    return wrong(reterr, path);
}

oomsight_status oos_place_keep(const char *path, const char *bytes, size_t len, oomsight_error *reterr)
{
    char folder[PATH_MAX];
    if (strlen(path) > PATH_LEN_MAX) return errno = ENAMETOOLONG, wrong(reterr, path);
    memcpy(folder, path, strlen(path) + 1);
    for (char *slash = folder + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        bool const made = mkdir(folder, 0755) == 0 || errno == EEXIST;
        int const why = errno;
        struct stat info;
        if (!made && stat(folder, &info) != 0) return errno = why, wrong(reterr, folder);
        *slash = '/';
    }
    return oos_place_write(path, bytes, len, reterr);
}

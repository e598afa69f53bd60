/* openat2() with RESOLVE_BENEATH where the kernel has it (5.6); before that, one component after the other, without links. */
#include "follow/follow.h"
#include "base/size.h"
#include "base/view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As in linux/openat2.h, which is younger than some systems this is built for, and comes with the C library of others. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
struct how_to_open {
    uint64_t flags, mode, resolve;
};
enum { NO_MAGICLINKS = 0x02, BENEATH = 0x08 };

enum {
    FILE_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
    FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC
};

/* ---- opening what was given ---- */

static void open_folder(oos_root *root)
{
    if (root->fd >= 0) return;
    root->fd = open(root->path, FOLDER_FLAGS);
    if (root->fd >= 0 && !root->real) root->real = realpath(root->path, NULL);
}

static bool fill_root(const char *path, oos_root *root)
{
    struct stat is;
    *root = (oos_root){.fd = -1};
    if (strcmp(path, "-") == 0) {
        root->kind = OOS_ROOT_STREAM;
        return (root->path = strdup(path)) != NULL;
    }
    if (stat(path, &is) != 0 && strpbrk(path, "*?[")) {
        const char *wild = strpbrk(path, "*?["), *slash = memrchr(path, '/', (size_t)(wild - path));
        root->kind = OOS_ROOT_PATTERN;
        root->path = !slash          ? strdup(".")
                     : slash == path ? strdup("/")
                                     : strndup(path, (size_t)(slash - path));
        root->pattern = strdup(slash ? slash + 1 : path);
        if (root->path && root->pattern) open_folder(root);
        return root->path && root->pattern;
    }
    size_t len = strlen(path);
    bool const slashed = len && path[len - 1] == '/'; /* a folder, also one that comes later */
    bool const folder = slashed || (stat(path, &is) == 0 && S_ISDIR(is.st_mode));
    while (folder && len > 1 && path[len - 1] == '/') len--;
    root->kind = folder ? OOS_ROOT_FOLDER : OOS_ROOT_FILE;
    root->path = strndup(path, len);
    if (root->path && folder) open_folder(root);
    return root->path != NULL;
}

oomsight_status oos_roots_open(const char *const *paths, size_t count, oos_roots *ret_roots,
                               oomsight_error *reterr)
{
    if (count > OOS_ROOTS_MAX) return oos_fail(reterr, OOMSIGHT_USAGE, "more than %d paths", OOS_ROOTS_MAX);
    oos_roots roots = {.list = calloc(count ? count : 1, sizeof *roots.list)};
    if (!roots.list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to follow files");
    for (size_t i = 0; i < count; i++) {
        bool const filled = fill_root(paths[i], &roots.list[roots.count++]);
        if (filled) continue;
        oos_roots_close(&roots);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to follow files");
    }
    *ret_roots = roots;
    return OOMSIGHT_OK;
}

void oos_roots_close(oos_roots *roots)
{
    for (size_t i = 0; i < roots->count; i++) {
        if (roots->list[i].fd >= 0) close(roots->list[i].fd);
        free(roots->list[i].path);
        free(roots->list[i].real);
        free(roots->list[i].pattern);
    }
    free(roots->list);
    *roots = (oos_roots){0};
}

/* ---- staying inside ---- */

/* One name after the other; no link on the way. */
static int open_by_parts(int folder, const char *relative, int flags)
{
    char path[OOS_ROOT_PATH_BYTES];
    int at = folder;
    if (snprintf(path, sizeof path, "%s", relative) >= (int)sizeof path) return errno = ENAMETOOLONG, -1;
    for (char *part = path, *next; part; part = next) {
        next = strchr(part, '/');
        if (next) *next++ = '\0';
        int const fd = strcmp(part, "..") == 0
                           ? (errno = EXDEV, -1)
                           : openat(at, part, (next ? O_PATH | O_DIRECTORY | O_CLOEXEC : flags) | O_NOFOLLOW);
        if (at != folder) close(at);
        if (fd < 0) return -1;
        at = fd;
    }
    return at;
}

static int open_beneath(int folder, const char *relative, int flags)
{
    struct how_to_open const how = {.flags = (uint64_t)flags, .resolve = BENEATH | NO_MAGICLINKS};
    long const fd = syscall(SYS_openat2, folder, relative, &how, sizeof how);
    if (fd >= 0) return (int)fd;
    /* Sandboxes made before the call existed say EPERM. */
    return errno == ENOSYS || errno == EPERM ? open_by_parts(folder, relative, flags) : -1;
}

/* An absolute link that leads into one of the given folders. */
static int open_absolute(const oos_roots *roots, const char *target, int flags)
{
    for (size_t i = 0; i < roots->count; i++) {
        const oos_root *root = &roots->list[i];
        size_t const len = root->real ? strlen(root->real) : 0;
        if (root->fd < 0 || !len || strncmp(target, root->real, len) != 0) continue;
        if (target[len] != '/') continue;
        return open_beneath(root->fd, target + len + 1, flags);
    }
    return errno = EXDEV, -1;
}

static int open_inside(const oos_roots *roots, const oos_root *root, const char *relative, int flags)
{
    if (root->fd < 0) return errno = ENOENT, -1;
    if (!*relative) return open(root->path, flags);
    int const fd = open_beneath(root->fd, relative, flags);
    if (fd >= 0 || (errno != EXDEV && errno != ELOOP)) return fd;
    char target[OOS_ROOT_PATH_BYTES];
    ssize_t const len = readlinkat(root->fd, relative, target, sizeof target - 1);
    if (len <= 0 || target[0] != '/') return errno = EXDEV, -1;
    target[len] = '\0';
    return open_absolute(roots, target, flags);
}

int oos_roots_open_file(const oos_roots *roots, size_t at, const char *relative)
{
    const oos_root *root = &roots->list[at];
    bool const given = root->kind == OOS_ROOT_FILE;
    struct stat is;
    /* Pipes and devices are not even opened: that alone may have effects. */
    if (!oos_roots_stat(roots, at, relative, &is)) return -1;
    if (!S_ISREG(is.st_mode)) return errno = EINVAL, -1;
    int const fd = given ? open(root->path, FILE_FLAGS) : open_inside(roots, root, relative, FILE_FLAGS);
    if (fd < 0) return -1;
    if (fstat(fd, &is) == 0 && S_ISREG(is.st_mode)) return fd;
    close(fd);
    return errno = EINVAL, -1;
}

int oos_roots_open_folder(const oos_roots *roots, size_t at, const char *relative)
{
    const oos_root *root = &roots->list[at];
    char path[OOS_ROOT_PATH_BYTES];
    if (root->kind == OOS_ROOT_FILE) {
        /* Where a link leads is where its log is rotated. */
        char *real = realpath(root->path, NULL);
        snprintf(path, sizeof path, "%s", real ? real : root->path);
        free(real);
    } else {
        snprintf(path, sizeof path, "%s", relative);
    }
    char *slash = strrchr(path, '/');
    if (slash) *slash = '\0';
    if (root->kind == OOS_ROOT_FILE) return open(!slash ? "." : *path ? path : "/", FOLDER_FLAGS);
    return slash ? open_inside(roots, root, path, FOLDER_FLAGS) : open_inside(roots, root, ".", FOLDER_FLAGS);
}

bool oos_roots_stat(const oos_roots *roots, size_t at, const char *relative, struct stat *ret_stat)
{
    const oos_root *root = &roots->list[at];
    if (root->kind == OOS_ROOT_FILE) return stat(root->path, ret_stat) == 0;
    return root->fd >= 0 && fstatat(root->fd, relative, ret_stat, 0) == 0;
}

bool oos_roots_is_longer(const char *path, const char *of)
{
    size_t len = strlen(of);
    if (len > 4 && strcmp(of + len - 4, ".log") == 0) len -= 4;
    return strncmp(path, of, len) == 0 && strchr(".-_", path[len]) && path[len] && !strchr(path + len, '/') &&
           strcmp(path, of) != 0;
}

char *oos_roots_path(const oos_roots *roots, size_t at, const char *relative)
{
    const oos_root *root = &roots->list[at];
    char *path;
    if (root->kind == OOS_ROOT_FILE || !*relative) return strdup(root->path);
    const char *between = strcmp(root->path, "/") == 0 ? "" : "/";
    return asprintf(&path, "%s%s%s", root->path, between, relative) < 0 ? NULL : path;
}

/* ---- searching ---- */

typedef struct search {
    oos_roots *roots;
    size_t at;
    oos_root_finder *finder;
} search;

static bool is_wanted(const oos_root *root, const char *relative)
{
    size_t const len = strlen(relative);
    if (root->kind == OOS_ROOT_PATTERN)
        return fnmatch(root->pattern, relative, FNM_PATHNAME | FNM_PERIOD) == 0;
    return len > 4 && strcmp(relative + len - 4, ".log") == 0;
}

/* Of a link: does it lead to a plain file inside? */
static bool leads_inside(const search *s, const char *relative)
{
    struct stat is;
    int const fd = open_inside(s->roots, &s->roots->list[s->at], relative, O_PATH | O_CLOEXEC);
    if (fd < 0) return false;
    bool const plain = fstat(fd, &is) == 0 && S_ISREG(is.st_mode);
    close(fd);
    return plain;
}

static void search_folder(const search *s, int fd, const char *relative, int depth);

/* Of the folder `fd`. */
static void search_entry(const search *s, int fd, const char *relative, const char *name, unsigned char type,
                         int depth)
{
    const oos_root_finder *f = s->finder;
    char path[OOS_ROOT_PATH_BYTES];
    struct stat is;
    if (name[0] == '.') return;
    int const len = snprintf(path, sizeof path, "%s%s%s", relative, *relative ? "/" : "", name);
    if (len < 0 || (size_t)len >= sizeof path) return;
    bool const wanted = is_wanted(&s->roots->list[s->at], path);
    if (!wanted && type != DT_DIR && type != DT_UNKNOWN) return;
    if (fstatat(fd, name, &is, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (S_ISDIR(is.st_mode) && depth < OOS_ROOT_DEPTH_MAX) {
        int const below = openat(fd, name, FOLDER_FLAGS | O_NOFOLLOW);
        if (below >= 0) search_folder(s, below, path, depth + 1);
    } else if (wanted && (S_ISREG(is.st_mode) || (S_ISLNK(is.st_mode) && leads_inside(s, path)))) {
        if (f->on_file) f->on_file(f->context, s->at, path);
    }
}

static void search_folder(const search *s, int fd, const char *relative, int depth)
{
    oos_root_finder *f = s->finder;
    DIR *entries = fdopendir(fd);
    if (!entries) {
        close(fd);
        return;
    }
    if (f->on_folder) f->on_folder(f->context, s->at, relative, fd);
    for (struct dirent *e; f->entries_left && (e = readdir(entries)); f->entries_left--)
        search_entry(s, fd, relative, e->d_name, e->d_type, depth);
    closedir(entries);
}

void oos_roots_find(oos_roots *roots, size_t at, const char *relative, const char *name,
                    oos_root_finder *finder)
{
    oos_root *root = &roots->list[at];
    int depth = 0;
    if (root->kind == OOS_ROOT_FILE || root->kind == OOS_ROOT_STREAM) {
        if (finder->on_file) finder->on_file(finder->context, at, "");
        return;
    }
    open_folder(root);
    if (root->fd < 0) return;
    for (const char *slash = relative; *slash; slash++) depth += *slash == '/';
    int const fd =
        *relative ? open_by_parts(root->fd, relative, FOLDER_FLAGS) : openat(root->fd, ".", FOLDER_FLAGS);
    search const all = {roots, at, finder};
    depth += *relative != '\0';
    if (fd >= 0 && !name) search_folder(&all, fd, relative, depth);
    if (fd < 0 || !name) return;
    search_entry(&all, fd, relative, name, DT_UNKNOWN, depth);
    close(fd);
}

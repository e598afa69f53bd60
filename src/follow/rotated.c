/* Kubernetes: 0.log.20250101-120000, all but the newest packed; docker and logrotate: x.log.1, x.log.2.gz, or a date. */
#include "follow/follow.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/view.h"
#include "log/log.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PRINT_BYTES = 1024,
    ENTRIES_MAX = 1 << 20, /* bounds for hostile folders: names that are looked at, files of one log */
    LIST_MAX = 4096,
    TRIES_MAX = 8,
    AT_REST_NS = 20000000 /* longer than the grain of the times of files */
};

uint64_t oos_file_print(const char *bytes, size_t len)
{
    len = oos_min(len, PRINT_BYTES);
    const char *end = len ? memchr(bytes, '\n', len) : NULL;
    if (!end && len < PRINT_BYTES) return 0;
    if (end) len = (size_t)(end - bytes);
    return oos_hash_known(bytes, len);
}

bool oos_file_identify(int fd, oos_file_id *ret_id, uint64_t *ret_size)
{
    struct stat is;
    char head[PRINT_BYTES];
    if (fstat(fd, &is) != 0 || !S_ISREG(is.st_mode)) return false;
    ssize_t const count = pread(fd, head, sizeof head, 0);
    *ret_id = (oos_file_id){(uint64_t)is.st_dev, (uint64_t)is.st_ino,
                            count > 0 ? oos_file_print(head, (size_t)count) : 0};
    *ret_size = (uint64_t)is.st_size;
    return true;
}

uint64_t oos_file_ending(int fd, uint64_t read)
{
    char bytes[OOS_ENDING_BYTES];
    size_t const len = (size_t)oos_min(read, OOS_ENDING_BYTES);
    if (!len || pread(fd, bytes, len, (off_t)(read - len)) != (ssize_t)len) return 0;
    return oos_hash_known(bytes, len);
}

bool oos_file_same(const oos_file_id *a, const oos_file_id *b)
{
    return a->inode == b->inode && (a->print == b->print || !a->print || !b->print);
}

static bool ends(const char *name, const char *end)
{
    size_t const len = strlen(name), tail = strlen(end);
    return len > tail && strcmp(name + len - tail, end) == 0;
}

static bool is_packed(const char *name)
{
    return ends(name, ".gz") || ends(name, ".zst") || ends(name, ".xz") || ends(name, ".bz2");
}

static uint64_t print_inside(int fd)
{
    char head[PRINT_BYTES];
    size_t count = 0;
    const char *inner;
    oos_logstream *stream;
    if (oos_logstream_open_fd(fd, 0, &stream, NULL) != OOMSIGHT_OK) return 0;
    if (!oos_logstream_next(stream, &inner) ||
        oos_logstream_read(stream, head, sizeof head, &count, NULL) != OOMSIGHT_OK)
        count = 0;
    oos_logstream_close(stream);
    return oos_file_print(head, count);
}

uint64_t oos_rotated_print(int folder, oos_rotated *file)
{
    oos_file_id id = {0};
    uint64_t size;
    int const fd =
        file->id.print ? -1 : openat(folder, file->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return file->id.print;
    if (file->packed) return file->id.print = print_inside(fd);
    if (oos_file_identify(fd, &id, &size) && id.inode == file->id.inode) file->id.print = id.print;
    close(fd);
    return file->id.print;
}

/* Of the first `read` bytes of what is packed. */
static uint64_t ending_inside(int fd, uint64_t read)
{
    enum { SOME_BYTES = 4096 };
    char bytes[OOS_ENDING_BYTES + SOME_BYTES];
    size_t have = 0, count = 1;
    const char *inner;
    oos_logstream *stream;
    if (oos_logstream_open_fd(fd, 0, &stream, NULL) != OOMSIGHT_OK) return 0;
    bool going = oos_logstream_next(stream, &inner);
    while (read && going) {
        size_t const some = (size_t)oos_min(read, SOME_BYTES);
        going = oos_logstream_read(stream, bytes + have, some, &count, NULL) == OOMSIGHT_OK && count;
        if (!going) break;
        read -= count;
        have += count;
        if (have > OOS_ENDING_BYTES) memmove(bytes, bytes + have - OOS_ENDING_BYTES, OOS_ENDING_BYTES);
        have = oos_min(have, (size_t)OOS_ENDING_BYTES);
    }
    oos_logstream_close(stream);
    return read || !have ? 0 : oos_hash_known(bytes, have);
}

bool oos_rotated_ends(int folder, const oos_rotated *file, uint64_t read, uint64_t ending)
{
    if (!ending) return true;
    int const fd = openat(folder, file->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    if (file->packed) return ending_inside(fd, read) == ending;
    bool const same = oos_file_ending(fd, read) == ending;
    close(fd);
    return same;
}

/* The number at the end of a name: -1 when there is none, or when it is a date. */
static long rotation_number(const char *name)
{
    const char *dot = strrchr(name, '.');
    char *end;
    if (!dot) return -1;
    if (is_packed(name)) {
        while (dot > name && *--dot != '.') continue;
    }
    long const number = strtol(dot + 1, &end, 10);
    return end > dot + 1 && end - dot <= 5 && (*end == '\0' || *end == '.') ? number : -1;
}

static int by_age(const void *left, const void *right)
{
    const oos_rotated *a = left, *b = right;
    long const x = rotation_number(a->name), y = rotation_number(b->name);
    if (x >= 0 && y >= 0) return x < y ? 1 : x > y ? -1 : 0;
    if (x < 0 && y < 0 && strlen(a->name) >= 8 && strlen(b->name) >= 8) return strcmp(a->name, b->name);
    return a->written < b->written ? -1 : a->written > b->written ? 1 : strcmp(a->name, b->name);
}

/* logrotate calls the newest .1; others count on. The times tell which: they may lie alone, a copy has its own. */
static void turn_if_counted_on(oos_rotated *list, size_t count)
{
    size_t older = 0, newer = 0;
    for (size_t i = 1; i < count; i++) {
        if (rotation_number(list[i - 1].name) < 0 || rotation_number(list[i].name) < 0) return;
        older += list[i - 1].written < list[i].written;
        newer += list[i - 1].written > list[i].written;
    }
    if (newer <= older) return;
    for (size_t i = 0; i < count / 2; i++) {
        oos_rotated const one = list[i];
        list[i] = list[count - 1 - i];
        list[count - 1 - i] = one;
    }
}

/* `.1`, `.2.gz`, `.20250101-120000`, `-20250101.zst`: what tools append, and nothing that merely begins like the log. */
static bool is_rotation(const char *suffix)
{
    if ((*suffix != '.' && *suffix != '-') || suffix[1] < '0' || suffix[1] > '9') return false;
    size_t const len = strspn(suffix + 1, "0123456789-_:TZ.+") + 1;
    const char *rest = suffix + len;
    if (suffix[len - 1] == '.') rest--;
    return *rest == '\0' || strcmp(rest, ".gz") == 0 || strcmp(rest, ".zst") == 0 ||
           strcmp(rest, ".xz") == 0 || strcmp(rest, ".bz2") == 0;
}

/* While a file is being packed it is there twice. */
static size_t drop_doubles(oos_rotated *list, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool twice = false;
        for (size_t k = 0; k < count && list[i].packed && !twice; k++) {
            size_t const len = strlen(list[k].name);
            twice = !list[k].packed && strncmp(list[i].name, list[k].name, len) == 0 &&
                    strchr(list[i].name + len, '.') == list[i].name + len &&
                    strrchr(list[i].name, '.') == list[i].name + len;
        }
        if (!twice) list[kept++] = list[i];
    }
    return kept;
}

static bool take(int folder, const char *name, bool renamed, const oos_file_id *own, oos_rotated *ret_one)
{
    struct stat is;
    oos_rotated one = {.packed = is_packed(name)};
    if (strlen(name) >= sizeof one.name || fstatat(folder, name, &is, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(is.st_mode))
        return false;
    strcpy(one.name, name);
    one.id = (oos_file_id){(uint64_t)is.st_dev, (uint64_t)is.st_ino, 0};
    one.size = (uint64_t)is.st_size;
    one.written = (int64_t)is.st_mtim.tv_sec * 1000000000 + is.st_mtim.tv_nsec;
    if (renamed && oos_rotated_print(folder, &one) != own->print) return false;
    *ret_one = one;
    return true;
}

static size_t list_once(int folder, const char *name, const oos_file_id *own, oos_rotated **ret_list)
{
    size_t const len = strlen(name);
    size_t count = 0, room = 0, seen = 0;
    oos_rotated *list = NULL;
    int const fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (!entries && fd >= 0) close(fd);
    for (struct dirent *e; entries && seen < ENTRIES_MAX && (e = readdir(entries)); seen++) {
        bool const moved = strncmp(e->d_name, name, len) == 0 && is_rotation(e->d_name + len);
        bool const renamed =
            !moved && own && own->print && (uint64_t)e->d_ino == own->inode && strcmp(e->d_name, name) != 0;
        if ((!moved && !renamed) || count == LIST_MAX) continue;
        if (count == room) {
            room = room ? 2 * room : 16;
            oos_rotated *more = realloc(list, room * sizeof *list);
            if (!more) break;
            list = more;
        }
        count += take(folder, e->d_name, renamed, own, &list[count]);
    }
    if (entries) closedir(entries);
    if (count) qsort(list, count, sizeof *list, by_age);
    turn_if_counted_on(list, count);
    *ret_list = list;
    return drop_doubles(list, count);
}

static bool same_lists(const oos_rotated *a, const oos_rotated *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (a[i].id.inode != b[i].id.inode || strcmp(a[i].name, b[i].name) != 0) return false;
    return true;
}

/* A file that is given another name while a folder is read may be passed over. */
size_t oos_rotated_list(int folder, const char *name, const oos_file_id *own, oos_rotated **ret_list)
{
    oos_rotated *before = NULL;
    size_t had = SIZE_MAX, count = 0;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        struct stat is;
        int64_t const begin = oos_logtime_now();
        count = list_once(folder, name, own, ret_list);
        bool const at_rest =
            fstat(folder, &is) == 0 &&
            (int64_t)is.st_mtim.tv_sec * 1000000000 + is.st_mtim.tv_nsec < begin - AT_REST_NS;
        bool const done = at_rest || (had == count && same_lists(before, *ret_list, count));
        free(before);
        if (done) return count;
        before = tries + 1 < TRIES_MAX ? *ret_list : NULL;
        had = count;
    }
    return count;
}

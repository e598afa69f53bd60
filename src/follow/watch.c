/* Folders, and files that were quiet: of those one event, or we would be told of every write. */
#include "follow/follow.h"
#include "base/table.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { WATCHES_MAX = 65536, EVENTS_BYTES = 64 << 10, READS_MAX = 4 };

typedef struct folder {
    int id;
    size_t root;
    char *relative;
    UT_hash_handle hh;
} folder;

struct oos_watch {
    int fd;
    folder *folders; /* by id */
    bool missing;    /* a folder could not be watched */
};

oos_watch *oos_watch_open(void)
{
    oos_watch *watch = calloc(1, sizeof *watch);
    if (!watch) return NULL;
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->fd >= 0) return watch;
    free(watch);
    return NULL;
}

static void forget(oos_watch *watch, folder *f)
{
    HASH_DEL(watch->folders, f);
    free(f->relative);
    free(f);
}

void oos_watch_close(oos_watch *watch)
{
    if (!watch) return;
    folder *f, *next;
    HASH_ITER(hh, watch->folders, f, next) forget(watch, f);
    close(watch->fd);
    free(watch);
}

void oos_watch_add(oos_watch *watch, const char *path, size_t root, const char *relative)
{
    enum { EVENTS = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR };
    folder *f;
    int const id = HASH_COUNT(watch->folders) < WATCHES_MAX ? inotify_add_watch(watch->fd, path, EVENTS) : -1;
    if (id < 0) {
        watch->missing = true;
        return;
    }
    HASH_FIND_INT(watch->folders, &id, f);
    if (f && f->root == root && strcmp(f->relative, relative) == 0) return;
    if (f) forget(watch, f); /* the same folder by another way, or a number used again */
    f = calloc(1, sizeof *f);
    if (f) f->relative = strdup(relative);
    if (!f || !f->relative) {
        free(f);
        watch->missing = true;
        return;
    }
    f->id = id;
    f->root = root;
    HASH_ADD_INT(watch->folders, id, f);
    if (OOS_IN_TABLE(f)) return;
    free(f->relative);
    free(f);
    watch->missing = true;
}

/* Others have writers that this kernel does not know of: network file systems, FUSE. */
static bool is_local(int fd)
{
    static const uint64_t kinds[] = {0xef53,     0x58465342, 0x9123683e,
                                     0x01021994,                          /* ext4, XFS, Btrfs, tmpfs */
                                     0x794c7630, 0x2fc12fc1, 0xf2f52010}; /* overlayfs, ZFS, F2FS */
    struct statfs is;
    bool found = false;
    if (fd < 0 || fstatfs(fd, &is) != 0) return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        found |= ((uint64_t)is.f_type & UINT32_MAX) == kinds[i];
    return found;
}

int oos_watch_file(oos_watch *watch, int fd)
{
    enum { EVENTS = IN_MODIFY | IN_MOVE_SELF | IN_DELETE_SELF | IN_ATTRIB | IN_ONESHOT };
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return is_local(fd) ? inotify_add_watch(watch->fd, path, EVENTS) : -1;
}

void oos_watch_forget(oos_watch *watch, int id)
{
    inotify_rm_watch(watch->fd, id);
}

bool oos_watch_take(oos_watch *watch,
                    void (*on_change)(void *context, size_t root, const char *relative, const char *name),
                    void (*on_wake)(void *context, int id), void *context)
{
    alignas(struct inotify_event) char bytes[EVENTS_BYTES];
    ssize_t count;
    for (int i = 0; i < READS_MAX && (count = read(watch->fd, bytes, sizeof bytes)) > 0; i++)
        for (ssize_t at = 0; at < count;) {
            const struct inotify_event *event = (const void *)(bytes + at);
            folder *f;
            at += (ssize_t)(sizeof *event + event->len);
            HASH_FIND_INT(watch->folders, &event->wd, f);
            if (event->mask & IN_Q_OVERFLOW)
                on_wake(context, 0);
            else if (!f && !(event->mask & IN_IGNORED))
                on_wake(context, event->wd);
            else if (f && event->mask & IN_IGNORED)
                forget(watch, f), f = NULL;
            char *relative = f && event->len ? strdup(f->relative) : NULL; /* looking may forget it */
            if (relative) on_change(context, f->root, relative, event->name);
            free(relative);
        }
    return !watch->missing;
}

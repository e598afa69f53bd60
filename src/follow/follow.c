/* Rotation is seen at the end of the data only: a name that leads to another file (moved away and made anew), or a file
 * shorter than what was read of it (cut in place). What was written to the old file until then has been read. */
#include "follow/follow.h"
#include "base/locale.h"
#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct oos_follow {
    char *path;
    int fd; /* -1: not there yet */
    oos_follow_place place;
    oos_explainer *explainer;
};

oomsight_status oos_follow_open(const char *path, oos_explainer *explainer, oos_follow **ret_follow,
                                oomsight_error *reterr)
{
    oos_follow *follow = calloc(1, sizeof *follow);
    if (follow) follow->path = strdup(path);
    if (!follow || !follow->path) {
        free(follow);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory to follow a file");
    }
    follow->fd = -1;
    follow->explainer = explainer;
    *ret_follow = follow;
    return OOMSIGHT_OK;
}

void oos_follow_close(oos_follow *follow)
{
    if (!follow) return;
    if (follow->fd >= 0) close(follow->fd);
    free(follow->path);
    free(follow);
}

static oomsight_status open_file(oos_follow *follow, oomsight_error *reterr)
{
    struct stat now;
    int const fd = open(follow->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return OOMSIGHT_OK;
    if (fd < 0 || fstat(fd, &now) != 0 || !S_ISREG(now.st_mode)) {
        oos_fail(reterr, OOMSIGHT_IO, "%s", fd < 0 ? oos_errno_text(errno) : "only a file can be followed");
        if (fd >= 0) close(fd);
        return oos_fail_in(reterr, OOMSIGHT_IO, follow->path);
    }
    follow->fd = fd;
    follow->place = (oos_follow_place){now.st_dev, now.st_ino, 0};
    return OOMSIGHT_OK;
}

/* At the end of the data. True: there is another text under the name, or this one starts over. */
static bool is_rotated(const oos_follow *follow)
{
    struct stat own, named;
    if (fstat(follow->fd, &own) != 0) return false;
    if ((uint64_t)own.st_size < follow->place.offset) return true;
    return stat(follow->path, &named) == 0 &&
           (named.st_ino != follow->place.inode || named.st_dev != follow->place.device);
}

static oomsight_status start_over(oos_follow *follow, oomsight_error *reterr)
{
    close(follow->fd);
    follow->fd = -1;
    OOS_TRY(oos_explainer_finish(follow->explainer, reterr));
    return open_file(follow, reterr);
}

oomsight_status oos_follow_read(oos_follow *follow, uint64_t most_bytes, uint64_t *ret_bytes,
                                oomsight_error *reterr)
{
    uint64_t total = 0;
    if (follow->fd < 0) OOS_TRY(open_file(follow, reterr));
    while (follow->fd >= 0 && total < most_bytes) {
        size_t capacity;
        char *room = oos_explainer_room(follow->explainer, &capacity);
        ssize_t count;
        if (!room) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
        do count = read(follow->fd, room, (size_t)oos_min((uint64_t)capacity, most_bytes - total));
        while (count < 0 && errno == EINTR);
        if (count < 0) {
            oos_fail(reterr, OOMSIGHT_IO, "%s", oos_errno_text(errno));
            return oos_fail_in(reterr, OOMSIGHT_IO, follow->path);
        }
        if (count == 0) {
            if (!is_rotated(follow)) break;
            OOS_TRY(start_over(follow, reterr));
            continue;
        }
        OOS_TRY(oos_explainer_took(follow->explainer, (size_t)count, reterr));
        follow->place.offset += (uint64_t)count;
        total += (uint64_t)count;
    }
    *ret_bytes = total;
    return OOMSIGHT_OK;
}

/* `--share NAME`: engines that divide a card take turns while they start, because a start measures what is free. */
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NO_ENGINE_SECONDS = 60, RUNS_MOST = 64, PATH_BYTES = 800 };

static int lock_open(const char *name)
{
    char path[PATH_BYTES];
    struct stat info;
    snprintf(path, sizeof path, "%s/oomsight-share-%u-%s", segment_folder(), (unsigned)geteuid(), name);
    int const fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid()) return fd;
    complain("oomsight run: --share: %s: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return -1;
}

bool run_turn_take(run_turn *turn, const char *name)
{
    if (strchr(name, '/')) {
        complain("oomsight run: '%s' is no name for a share", name);
        return turn->lock = -1, false;
    }
    turn->lock = lock_open(name);
    if (turn->lock < 0) return false;
    if (flock(turn->lock, LOCK_EX | LOCK_NB) != 0) {
        complain("oomsight run: another engine of '%s' is starting; this one is next", name);
        while (flock(turn->lock, LOCK_EX) != 0 && errno == EINTR) continue;
    }
    turn->since = seconds_since_boot();
    return true;
}

void run_turn_look(run_turn *turn, unsigned said)
{
    bool const other =
        !(said & OOMSIGHT_RUN_ENGINE) && seconds_since_boot() - turn->since > NO_ENGINE_SECONDS;
    if (turn->lock >= 0 && (other || (said & OOMSIGHT_DRYRUN_READY))) run_turn_end(turn);
}

/* Unlocked by word: a process that we left behind may have the descriptor, too. */
void run_turn_end(run_turn *turn)
{
    if (turn->lock < 0) return;
    flock(turn->lock, LOCK_UN);
    close(turn->lock);
    turn->lock = -1;
}

int run_share_join(oomsight_run *run, const char *name)
{
    const char *paths[RUNS_MOST];
    size_t count = 0;
    oomsight_error error = {0};
    DIR *place = opendir(segment_folder());
    for (const struct dirent *entry; place && count < RUNS_MOST && (entry = readdir(place));) {
        char *path = NULL;
        if (strncmp(entry->d_name, RUN_SEGMENT_PREFIX, strlen(RUN_SEGMENT_PREFIX)) != 0) continue;
        if (asprintf(&path, "%s/%s", segment_folder(), entry->d_name) > 0) paths[count++] = path;
    }
    if (place) closedir(place);
    oomsight_status const status = oomsight_run_share(run, name, paths, count, &error);
    for (size_t i = 0; i < count; i++) free((void *)(uintptr_t)paths[i]);
    return status == OOMSIGHT_OK ? 0 : fail_with(&error);
}

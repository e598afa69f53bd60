/* `--share NAME`: engines that divide a card take turns while they start, because a start measures what is free. */
#include "cmd_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NO_ENGINE_SECONDS = 60, ENGINE_SECONDS = 3600, RUNS_MOST = 64, PATH_BYTES = 800, NAME_MOST = 100 };

/* Older first; of the same moment the one of the smaller name. */
static bool before(const struct stat *a, const char *a_name, const struct stat *b, const char *b_name)
{
    if (a->st_ctim.tv_sec != b->st_ctim.tv_sec) return a->st_ctim.tv_sec < b->st_ctim.tv_sec;
    if (a->st_ctim.tv_nsec != b->st_ctim.tv_nsec) return a->st_ctim.tv_nsec < b->st_ctim.tv_nsec;
    return strcmp(a_name, b_name) < 0;
}

/* The oldest file of ours whose name begins so; -1: there is none. */
static int oldest_open(const char *start)
{
    char best[256] = "";
    struct stat best_info = {0}, info;
    DIR *place = opendir(segment_folder());
    for (const struct dirent *entry; place && (entry = readdir(place));) {
        if (strncmp(entry->d_name, start, strlen(start)) != 0) continue;
        if (fstatat(dirfd(place), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || info.st_mode & 077) continue;
        if (best[0] && !before(&info, entry->d_name, &best_info, best)) continue;
        snprintf(best, sizeof best, "%s", entry->d_name);
        best_info = info;
    }
    int const fd = best[0] ? openat(dirfd(place), best, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    if (place) closedir(place);
    return fd;
}

/* Anybody can put a file of any name there, so its name is not enough: it is the oldest one of ours. Who makes one waits for a moment, in which
 * whoever makes another at the same time is seen. */
static int lock_open(const char *name)
{
    char path[PATH_BYTES];
    struct timespec const moment = {.tv_nsec = 50000000};
    int const head = snprintf(path, sizeof path, "%s/", segment_folder());
    snprintf(path + head, sizeof path - (size_t)head, "oomsight-share-%u-%s.", (unsigned)geteuid(), name);
    int fd = oldest_open(path + head);
    if (fd >= 0) return fd;
    strcat(path, "XXXXXX");
    int const made = mkostemp(path, O_CLOEXEC);
    if (made < 0) {
        complain("oomsight run: --share: %s: %s", path, strerror(errno));
        return -1;
    }
    close(made);
    nanosleep(&moment, NULL);
    path[strlen(path) - 6] = '\0';
    fd = oldest_open(path + head);
    if (fd < 0) complain("oomsight run: --share: %s: %s", path, strerror(errno));
    return fd;
}

bool run_turn_take(run_turn *turn, const char *name)
{
    if (strchr(name, '/') || strlen(name) > NAME_MOST) {
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

/* How long the others wait for one that does not say that it is ready; OOMSIGHT_SHARE_SECONDS is the longest. */
static double patience(unsigned said)
{
    const char *word = getenv("OOMSIGHT_SHARE_SECONDS");
    double const most = said & OOMSIGHT_RUN_ENGINE ? ENGINE_SECONDS : NO_ENGINE_SECONDS;
    double const given = word ? strtod(word, NULL) : 0;
    return given > 0 && given < most ? given : most;
}

void run_turn_look(run_turn *turn, unsigned said)
{
    double const waited = seconds_since_boot() - turn->since;
    if (turn->lock < 0) return;
    if (said & OOMSIGHT_DRYRUN_READY)
        run_turn_end(turn);
    else if (waited > patience(said)) {
        complain("oomsight run: --share: after %.0f seconds %s; the next may start", waited,
                 said & OOMSIGHT_RUN_ENGINE ? "the engine has not said that it is ready"
                                            : "nothing that the command prints is of an engine");
        run_turn_end(turn);
    }
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
    char *paths[RUNS_MOST];
    size_t const count = run_segments(paths, RUNS_MOST);
    oomsight_error error = {0};
    oomsight_status const status =
        oomsight_run_share(run, name, (const char *const *)(uintptr_t)paths, count, &error);
    for (size_t i = 0; i < count; i++) free(paths[i]);
    return status == OOMSIGHT_OK ? 0 : fail_with(&error);
}

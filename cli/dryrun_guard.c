/* Nothing of a dry run outlives it, whatever ends it.
 *
 *   oomsight dryrun        the guard: what the caller knows and signals; waits, and passes signals on
 *     oomsight dryrun      the worker, in a session of its own: scratch folder, log, report
 *       the command        and whatever it starts, in a session of its own
 *
 * Both are subreapers, so what the command leaves behind comes to the worker, and to the guard when there is no worker. A
 * worker without a guard ends the command as if it had been asked to. Should both be killed at once, the next dry run of
 * this user ends what is left and removes the folder: the worker holds a lock on a file in it as long as it lives. */
#include "cmd_dryrun.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    YOUNG_SECONDS = 10,  /* a folder this new may not have its lock yet */
    ORPHAN_SECONDS = 5,  /* for what a killed worker leaves, between asking and ending */
    WORKER_SECONDS = 60, /* for the worker to end when it was asked to; the command gets 15 of them */
    HARD_SECONDS = 10    /* killing goes on for so long */
};

static const int end_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM};
static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    interrupted = number;
}

int dryrun_interrupted(void)
{
    return interrupted;
}

double dryrun_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void pause_some(void)
{
    struct timespec const pause = {.tv_nsec = 10000000};
    nanosleep(&pause, NULL);
}

/* ---- processes -------------------------------------------------------------------------------------------------- */

/* `number` to every child of ours, 0 to none. True: there are some that run. */
static bool children_signal(int number)
{
    DIR *folder = opendir("/proc");
    bool any = false;
    if (!folder) return false;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        dryrun_process process;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
            !dryrun_process_read(entry->d_name, &process) || process.parent != getpid())
            continue;
        any = !process.ended || any;
        if (number) kill(process.pid, number);
    }
    closedir(folder);
    return any;
}

/* Those that are ended leave children of their own to us, so it takes rounds. */
void dryrun_children_end(unsigned grace_seconds)
{
    double const soft = dryrun_now() + grace_seconds, hard = soft + HARD_SECONDS;
    if (grace_seconds) children_signal(SIGTERM);
    for (;;) {
        double const now = dryrun_now();
        bool const more = children_signal(now < soft ? 0 : SIGKILL);
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        if (!more || now > hard) break;
        pause_some();
    }
}

/* Is `variable` (NAME=value) in the environment that this process of ours was started with? */
static bool was_started_with(const char *pid, const char *variable)
{
    char path[300];
    static char bytes[256 << 10];
    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    struct stat info;
    size_t len = 0;
    bool const ours = fstat(fd, &info) == 0 && info.st_uid == geteuid();
    for (ssize_t got; ours && len < sizeof bytes && (got = read(fd, bytes + len, sizeof bytes - len)) > 0;)
        len += (size_t)got;
    close(fd);
    size_t const wanted = strlen(variable) + 1;
    for (size_t at = 0; at + wanted <= len; at += strnlen(bytes + at, len - at) + 1)
        if (memcmp(bytes + at, variable, wanted) == 0) return true;
    return false;
}

/* Processes of a run whose guard and worker are both gone. */
static void strays_end(const char *segment_path)
{
    char variable[PATH_MAX + 32];
    bool more = true;
    snprintf(variable, sizeof variable, "OOMSIGHT_SEGMENT=%s", segment_path);
    for (int round = 0; round < 100 && more; round++) {
        DIR *folder = opendir("/proc");
        if (!folder) return;
        more = false;
        for (const struct dirent *entry; (entry = readdir(folder));) {
            if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || atoi(entry->d_name) == getpid()) continue;
            if (!was_started_with(entry->d_name, variable)) continue;
            more = kill((pid_t)atoi(entry->d_name), SIGKILL) == 0 || more;
        }
        closedir(folder);
        if (more) pause_some();
    }
}

/* ---- the scratch folder ----------------------------------------------------------------------------------------- */

/* The guard chooses it, so that whoever is left knows what to remove. */
static bool scratch_name(char *ret_path, size_t capacity)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int const len = snprintf(ret_path, capacity, "%s/oomsight-%d-%llx%08lx", segment_folder(), (int)getpid(),
                             (unsigned long long)now.tv_sec, (unsigned long)now.tv_nsec);
    return len > 0 && (size_t)len < capacity;
}

/* Only what we put there. Anything else stays, and the folder with it. */
static void content_remove(int folder)
{
    static const char *const files[] = {"tokenizer/tokenizer.json", "tokenizer/tokenizer_config.json",
                                        "tokenizer/config.json", "owner"};
    int const again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = again < 0 ? NULL : fdopendir(again);
    for (const struct dirent *entry; names && (entry = readdir(names));)
        if (strncmp(entry->d_name, "segment", 7) == 0)
            unlinkat(folder, entry->d_name, 0); /* and segment.steps.PID */
    if (names)
        closedir(names);
    else if (again >= 0)
        close(again);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlinkat(folder, files[i], 0);
    unlinkat(folder, "tokenizer", AT_REMOVEDIR);
}

static void scratch_remove(const char *scratch)
{
    int const folder = open(scratch, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return;
    content_remove(folder);
    close(folder);
    rmdir(scratch);
}

/* A descriptor whose lock says that we live; -1: told on stderr. */
static int scratch_make(const char *scratch)
{
    char path[600];
    int owner = -1;
    snprintf(path, sizeof path, "%s/owner", scratch);
    if (mkdir(scratch, 0700) == 0)
        owner = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (owner >= 0 && flock(owner, LOCK_EX) == 0) return owner;
    fprintf(stderr, "oomsight dryrun: no place for scratch files: %s: %s\n", scratch, strerror(errno));
    if (owner >= 0) close(owner);
    return -1;
}

static bool is_old(const struct stat *info)
{
    return time(NULL) - info->st_mtime > YOUNG_SECONDS;
}

/* One folder of the place: ours, for nobody else to enter, and nobody holds its lock. */
static void stale_remove(int place, const char *base, const char *name)
{
    struct stat info;
    int const folder = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return;
    bool const ours = fstat(folder, &info) == 0 && info.st_uid == geteuid() && !(info.st_mode & 077);
    int const owner = ours ? openat(folder, "owner", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    if (ours && owner < 0 && errno == ENOENT && is_old(&info))
        unlinkat(place, name, AT_REMOVEDIR); /* when it is empty: killed before there was anything in it */
    if (owner >= 0 && fstat(owner, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        is_old(&info) && flock(owner, LOCK_EX | LOCK_NB) == 0) {
        char segment[PATH_MAX];
        snprintf(segment, sizeof segment, "%s/%s/segment", base, name);
        strays_end(segment);
        content_remove(folder);
        unlinkat(place, name, AT_REMOVEDIR);
    }
    if (owner >= 0) close(owner);
    close(folder);
}

static void stale_sweep(void)
{
    const char *base = segment_folder();
    DIR *place = opendir(base);
    if (!place) return;
    for (const struct dirent *entry; (entry = readdir(place));)
        if (strncmp(entry->d_name, "oomsight-", 9) == 0) stale_remove(dirfd(place), base, entry->d_name);
    closedir(place);
}

/* ---- guard and worker ------------------------------------------------------------------------------------------- */

/* Those that the caller ignores (nohup) stay ignored. */
static void signals_of_interest(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    for (size_t i = 0; i < sizeof end_signals / sizeof *end_signals; i++) {
        struct sigaction old;
        if (sigaction(end_signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN) continue;
        sigaddset(ret_set, end_signals[i]);
    }
}

static int worker_run(const dryrun_options *options, const char *scratch, const sigset_t *ends,
                      const sigset_t *before, pid_t guard)
{
    struct sigaction const act = {.sa_handler = on_interrupt}; /* no restart: waiting ends */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setsid(); /* a kill of the caller's group does not take guard and worker at once */
    for (size_t i = 0; i < sizeof end_signals / sizeof *end_signals; i++)
        if (sigismember(ends, end_signals[i])) sigaction(end_signals[i], &act, NULL);
    if (!sigismember(ends, SIGTERM)) sigaction(SIGTERM, &act, NULL); /* the guard's death */
    sigprocmask(SIG_SETMASK, before, NULL);
    if (getppid() != guard) return 128 + SIGTERM;
    stale_sweep();
    int const owner = interrupted ? -1 : scratch_make(scratch);
    int const code = owner >= 0     ? dryrun_work(options, scratch)
                     : !interrupted ? EXIT_INPUT
                                    : 128 + interrupted;
    dryrun_children_end(0);
    scratch_remove(scratch);
    if (owner >= 0) close(owner);
    return code;
}

/* Waits for the worker and passes on what we are told. A worker that does not end in time is ended. */
static int worker_wait(pid_t worker, const sigset_t *waited)
{
    double until = 0;
    for (;;) {
        struct timespec const second = {.tv_sec = 1};
        int const number = sigtimedwait(waited, NULL, &second);
        int status;
        if (number > 0 && number != SIGCHLD) {
            kill(worker, number);
            if (until == 0) until = dryrun_now() + WORKER_SECONDS;
        }
        for (pid_t gone; (gone = waitpid(-1, &status, WNOHANG)) > 0;)
            if (gone == worker) return status;
        if (until > 0 && dryrun_now() > until) kill(worker, SIGKILL);
    }
}

int dryrun_guard(const dryrun_options *options)
{
    char scratch[512];
    sigset_t ends, waited, before;
    if (!scratch_name(scratch, sizeof scratch)) {
        fputs("oomsight dryrun: no place for scratch files (/dev/shm, TMPDIR)\n", stderr);
        return EXIT_INPUT;
    }
    signals_of_interest(&ends);
    waited = ends;
    sigaddset(&waited, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take the exit codes away */
    sigprocmask(SIG_BLOCK, &waited, &before);
    sigdelset(&before, SIGCHLD);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    fflush(NULL);
    pid_t const self = getpid(), worker = fork();
    if (worker == 0) exit(worker_run(options, scratch, &ends, &before, self));
    if (worker < 0) {
        fprintf(stderr, "oomsight dryrun: no process could be started: %s\n", strerror(errno));
        return EXIT_OUR_FAULT;
    }
    int const status = worker_wait(worker, &waited);
    dryrun_children_end(WIFEXITED(status) ? 0 : ORPHAN_SECONDS);
    scratch_remove(scratch);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    fprintf(stderr, "oomsight dryrun: killed by signal %d; its processes were ended\n", WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

/* The engine's processes: started with the stand-ins in front of them, their output read line by line, ended when they
 * are ready, out of memory or out of time. */
#include "dryrun.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_SECONDS = 15, AFTERMATH_SECONDS = 90, LINE_BYTES = 65536 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    interrupted = number;
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* NAME=value:old, where old is what the caller had. */
static void put_front(const char *name, const char *value)
{
    const char *old = getenv(name);
    char *joined = NULL;
    if (old && *old && asprintf(&joined, "%s:%s", value, old) < 0) return;
    setenv(name, joined ? joined : value, 1);
    free(joined);
}

/* Every stand-in by its full path: the wheels' own RPATH comes before LD_LIBRARY_PATH, a loaded SONAME before both. */
static bool preload_list(const char *folder, char *ret_list, size_t capacity)
{
    DIR *dir = opendir(folder);
    if (!dir) return false;
    size_t len = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *so = strstr(entry->d_name, ".so.");
        if (strncmp(entry->d_name, "lib", 3) != 0 || !so || strspn(so + 4, "0123456789") != strlen(so + 4))
            continue;
        int const more =
            snprintf(ret_list + len, capacity - len, "%s%s/%s", len ? ":" : "", folder, entry->d_name);
        if (more < 0 || (size_t)more >= capacity - len) break;
        len += (size_t)more;
    }
    closedir(dir);
    return len > 0;
}

static void environment_set(const dryrun_options *options, const dryrun_engine *engine,
                            const char *segment_path, const char *folder)
{
    char list[8192], python[1100];
    setenv("OOMSIGHT_SEGMENT", segment_path, 1);
    if (preload_list(folder, list, sizeof list)) put_front("LD_PRELOAD", list);
    put_front("LD_LIBRARY_PATH", folder);
    snprintf(python, sizeof python, "%s/../python", folder);
    if (engine->interpreter[0] && access(python, R_OK) == 0) put_front("PYTHONPATH", python);
    setenv("PYTHONUNBUFFERED", "1", 0);
    setenv("VLLM_NO_USAGE_STATS", "1", 0);
    /* the V2 runner has a kernel tell how many tokens were accepted; the older one counts them on the host */
    if (options->load_requests) setenv("VLLM_USE_V2_MODEL_RUNNER", "0", 0);
}

/* A group of its own, so that it can be ended whole, and we inherit what it leaves behind. */
static pid_t child_start(const dryrun_options *options, const dryrun_engine *engine, const char *segment_path,
                         const char *folder, int output)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t const pid = fork();
    if (pid != 0) return pid;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* should we be killed, it is not left alone */
    environment_set(options, engine, segment_path, folder);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execvp(engine->command[0], engine->command);
    complain("oomsight dryrun: '%s' cannot be started: %s", engine->command[0], strerror(errno));
    _exit(127);
}

typedef struct pump {
    oomsight_dryrun *dryrun;
    char line[LINE_BYTES];
    size_t len;
    unsigned state; /* OOMSIGHT_DRYRUN_... */
    bool quiet;
} pump;

static void line_done(pump *p, char end)
{
    p->state |= oomsight_dryrun_line(p->dryrun, p->line, p->len);
    if (!p->quiet) {
        fwrite(p->line, 1, p->len, stderr);
        fputc(end, stderr);
    }
    p->len = 0;
}

/* False at the end of the output. */
static bool pump_some(pump *p, int fd)
{
    char bytes[16384];
    ssize_t const got = read(fd, bytes, sizeof bytes);
    if (got <= 0) return got < 0 && errno == EINTR;
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r' || p->len == sizeof p->line)
            line_done(p, bytes[i] == '\r' ? '\r' : '\n');
        if (bytes[i] != '\n' && bytes[i] != '\r') p->line[p->len++] = bytes[i];
    }
    return true;
}

/* Ask first: vLLM removes its shared memory when asked. */
static void group_end(pid_t pid, int fd, pump *p)
{
    double const until = now_seconds() + GRACE_SECONDS;
    kill(pid, SIGTERM);
    while (now_seconds() < until && waitpid(pid, NULL, WNOHANG | WNOWAIT) == 0 && kill(pid, 0) == 0) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid) break;
        struct pollfd ready = {fd, POLLIN, 0};
        if (poll(&ready, 1, 200) > 0 && !pump_some(p, fd)) break;
    }
    kill(-pid, SIGKILL);
}

/* Compilers that the engine started run in groups of their own, and come to us when it is gone: they are ended too. */
static bool orphans_kill(void)
{
    DIR *folder = opendir("/proc");
    bool any = false;
    if (!folder) return false;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char path[300], line[512];
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file) continue;
        const char *after = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
        fclose(file);
        char state;
        int parent;
        if (!after || sscanf(after + 1, " %c %d", &state, &parent) != 2 || parent != getpid()) continue;
        any = state != 'Z' || any;
        kill((pid_t)atoi(entry->d_name), SIGKILL);
    }
    closedir(folder);
    return any;
}

static void orphans_end(void)
{
    struct timespec const pause = {.tv_nsec = 20000000};
    bool more = true;
    for (int round = 0; round < 100 && more; round++) {
        more = orphans_kill();
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
        if (more) nanosleep(&pause, NULL);
    }
}

typedef enum wish { GO_ON, STOP_READY, STOP_TIME, STOP_AFTERMATH } wish;

static wish decide(const dryrun_options *options, const dryrun_engine *engine, const pump *p, bool load_done,
                   double start, double *failed_at)
{
    double const now = now_seconds();
    if (interrupted || (options->timeout_seconds && now - start > options->timeout_seconds)) return STOP_TIME;
    if ((p->state & (OOMSIGHT_DRYRUN_OUT_OF_MEMORY | OOMSIGHT_DRYRUN_REFUSED)) && *failed_at == 0)
        *failed_at = now;
    if (*failed_at > 0 && now - *failed_at > AFTERMATH_SECONDS) return STOP_AFTERMATH;
    if ((p->state & OOMSIGHT_DRYRUN_REACHED) && *failed_at == 0) return STOP_READY;
    if (engine->serves && (p->state & OOMSIGHT_DRYRUN_READY) && !options->serve && load_done)
        return STOP_READY;
    return GO_ON;
}

static pid_t load_start(const dryrun_options *options, const dryrun_engine *engine)
{
    fflush(NULL);
    pid_t const pid = fork();
    if (pid == 0) _exit(dryrun_load(options, engine));
    return pid;
}

static void pump_all(const dryrun_options *options, const dryrun_engine *engine, pid_t pid, int fd, pump *p,
                     dryrun_result *result)
{
    double const start = now_seconds();
    double failed_at = 0;
    pid_t load = 0;
    bool load_done = options->load_requests == 0;
    for (;;) {
        struct pollfd ready = {fd, POLLIN, 0};
        int const some = poll(&ready, 1, 200);
        if (some > 0 && !pump_some(p, fd)) break;
        if (!load && !load_done && (p->state & OOMSIGHT_DRYRUN_READY)) load = load_start(options, engine);
        int status;
        if (load > 0 && waitpid(load, &status, WNOHANG) == load) {
            load_done = true;
            load = -1;
            result->served = WIFEXITED(status) ? (unsigned)WEXITSTATUS(status) : 0;
        }
        siginfo_t info = {0};
        bool const gone =
            waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
        if (gone && some == 0) break; /* orphans may hold the pipe open */
        wish const next = decide(options, engine, p, load_done, start, &failed_at);
        if (next == GO_ON) continue;
        result->stopped = next == STOP_READY || (next == STOP_TIME && options->serve && interrupted);
        result->timed_out = next == STOP_TIME && !result->stopped;
        result->interrupted = result->timed_out && interrupted;
        group_end(pid, fd, p);
        break;
    }
    if (load > 0) {
        kill(load, SIGKILL);
        waitpid(load, NULL, 0);
    }
}

int dryrun_child_run(const dryrun_options *options, const dryrun_engine *engine, const char *segment_path,
                     oomsight_dryrun *dryrun, dryrun_result *ret_result)
{
    char folder[1024];
    int ends[2];
    static pump p; /* too large for a stack */
    if (!dryrun_shim_dir(engine->cuda_major, folder, sizeof folder) || pipe(ends) != 0) return EXIT_OUR_FAULT;
    p = (pump){.dryrun = dryrun, .quiet = options->quiet};
    if (engine->added && !options->quiet) {
        fputs("oomsight dryrun: added:", stderr);
        for (int i = options->command_count; engine->command[i]; i++)
            fprintf(stderr, " %s", engine->command[i]);
        fputc('\n', stderr);
    }
    if (options->load_requests && !getenv("VLLM_USE_V2_MODEL_RUNNER"))
        fputs("oomsight dryrun: with VLLM_USE_V2_MODEL_RUNNER=0, for --load\n", stderr);
    pid_t const pid = child_start(options, engine, segment_path, folder, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return EXIT_OUR_FAULT;
    }
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
    *ret_result = (dryrun_result){0};
    pump_all(options, engine, pid, ends[0], &p, ret_result);
    if (p.len) line_done(&p, '\n');

    int status = 0;
    waitpid(pid, &status, 0);
    kill(-pid, SIGKILL); /* whatever it left in its group */
    ret_result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    orphans_end();
    close(ends[0]);
    return 0;
}

/* The engine's processes: started with the stand-ins in front of them, their output read line by line, ended when they
 * are ready, out of memory or out of time. What they leave behind is dryrun_guard.c's business. */
#include "cmd_dryrun.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_SAMPLE_SECONDS 0.1
#define HOST_LOOK_SECONDS 0.25 /* between two looks at the host's memory */

enum {
    GRACE_SECONDS = 15,     /* between asking it to end and ending it */
    AFTERMATH_SECONDS = 90, /* for an engine that failed to end by itself */
    TAIL_SECONDS = 5,       /* for what others still write when it is gone */
    DYING_SECONDS = 2,
    FIRST_PART = 1000, /* requests: growth is counted from there, or from a tenth of them */
    LINE_BYTES = 65536
};

/* libX.so.12, or libX.so where that is the library itself and no link to one. */
static bool is_library(DIR *dir, const char *name)
{
    struct stat found;
    const char *so = strstr(name, ".so");
    if (!so || fstatat(dirfd(dir), name, &found, AT_SYMLINK_NOFOLLOW) != 0) return false;
    if (so[3] == '\0') return S_ISREG(found.st_mode);
    return so[3] == '.' && so[4] && strspn(so + 4, "0123456789") == strlen(so + 4);
}

/* Every stand-in by its full path: the wheels' own RPATH comes before LD_LIBRARY_PATH, a loaded SONAME before both. */
static bool preload_list(const char *folder, char *ret_list, size_t capacity)
{
    DIR *dir = opendir(folder);
    if (!dir) return false;
    size_t len = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strncmp(entry->d_name, "lib", 3) != 0 || !is_library(dir, entry->d_name)) continue;
        int const more =
            snprintf(ret_list + len, capacity - len, "%s%s/%s", len ? ":" : "", folder, entry->d_name);
        if (more < 0 || (size_t)more >= capacity - len) break;
        len += (size_t)more;
    }
    closedir(dir);
    return len > 0;
}

static bool drafts(const oomsight_engine_words *spoken, const dryrun_engine *engine)
{
    for (char **word = engine->command; *word; word++)
        for (size_t i = 0; i < ARRAY_COUNT(spoken->draft_flags) && spoken->draft_flags[i]; i++)
            if (strncmp(*word, spoken->draft_flags[i], strlen(spoken->draft_flags[i])) == 0) return true;
    return false;
}

/* The next variable that an engine needs to answer requests with a draft model, and that the user has not set, from *at on; NULL: no more. */
static const char *draft_variable(const dryrun_engine *engine, size_t *at)
{
    if (!engine->answers) return NULL; /* it starts as it would */
    for (const oomsight_engine_words *spoken; (spoken = oomsight_engine_at(*at));) {
        char name[128];
        ++*at;
        if (!spoken->draft_variable || !drafts(spoken, engine)) continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(spoken->draft_variable, "="),
                 spoken->draft_variable);
        if (!getenv(name)) return spoken->draft_variable;
    }
    return NULL;
}

/* NAME=value */
static void variable_offer(const char *assignment)
{
    char name[128];
    size_t const len = strcspn(assignment, "=");
    snprintf(name, sizeof name, "%.*s", (int)len, assignment);
    setenv(name, assignment + len + 1, 0);
}

/* Of every engine: a script may start any. */
static void variables_offer(const dryrun_engine *engine)
{
    const oomsight_engine_words *spoken;
    const char *assignment;
    for (size_t i = 0; (spoken = oomsight_engine_at(i)); i++)
        if (spoken->dry_variable) variable_offer(spoken->dry_variable);
    for (size_t at = 0; (assignment = draft_variable(engine, &at));) variable_offer(assignment);
}

static void environment_set(const dryrun_engine *engine, const char *segment_path, const char *folder)
{
    char list[8192], python[1100], programs[1100];
    setenv("OOMSIGHT_SEGMENT", segment_path, 1);
    if (preload_list(folder, list, sizeof list)) environment_put_front("LD_PRELOAD", list);
    environment_put_front("LD_LIBRARY_PATH", folder);
    snprintf(programs, sizeof programs, "%s/..", folder);
    environment_put_front("PATH", programs); /* nvidia-smi */
    snprintf(python, sizeof python, "%s/../python", folder);
    /* also when the command is no Python: a script or `oomsight run` may start one */
    if (access(python, R_OK) == 0) environment_put_front("PYTHONPATH", python);
    setenv("PYTHONUNBUFFERED", "1", 0);
    variables_offer(engine);
    setenv("EP_SUPPRESS_NCCL_CHECK", "1",
           0); /* DeepEP compares the file of NCCL with the one it was built for */
}

static bool map_write(const char *path, const char *text)
{
    int const fd = open(path, O_WRONLY | O_CLOEXEC);
    bool const done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    return done;
}

/* In the child: a view of the file system of its own, in which /proc/meminfo is the stand-in machine's. */
static bool machine_enter(const char *segment_path)
{
    char meminfo[1100], map[64];
    uid_t const user = geteuid();
    gid_t const group = getegid();
    snprintf(meminfo, sizeof meminfo, "%s.meminfo", segment_path);
    if (access(meminfo, R_OK) != 0) return true; /* host and device are apart */
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
        map_write("/proc/self/setgroups", "deny");
        snprintf(map, sizeof map, "%u %u 1", (unsigned)user, (unsigned)user);
        if (!map_write("/proc/self/uid_map", map)) return false;
        snprintf(map, sizeof map, "%u %u 1", (unsigned)group, (unsigned)group);
        map_write("/proc/self/gid_map", map);
    }
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount(meminfo, "/proc/meminfo", NULL, MS_BIND, NULL) == 0;
}

/* A group of its own, so that it can be ended whole; what it leaves behind comes to us. */
static pid_t child_start(const dryrun_engine *engine, const char *segment_path, const char *folder,
                         bool asked, int output)
{
    pid_t const parent = getpid(), pid = fork();
    if (pid != 0) return pid;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* should we be killed, it is not left alone */
    if (getppid() != parent) _exit(1);
    environment_set(engine, segment_path, folder);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if (!machine_enter(segment_path)) {
        complain("oomsight dryrun: %s: this system allows no mount of our own: %s",
                 asked ? "--machine" : "/proc/meminfo is that of this machine", strerror(errno));
        if (asked) _exit(126);
    }
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
    cli_progress progress;
} pump;

static void line_done(pump *p, char end)
{
    p->state |= oomsight_dryrun_line(p->dryrun, p->line, p->len);
    if (!p->quiet) {
        progress_clear(&p->progress);
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

static bool is_gone(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Some of the output, or a moment without any. `*fd` is -1 once it has ended, which is not the end of the process. */
static int pump_wait(pump *p, int *fd)
{
    struct pollfd ready = {*fd, POLLIN, 0};
    int const some = poll(&ready, 1, 200);
    if (some > 0 && !pump_some(p, *fd)) *fd = -1;
    return some;
}

/* Ask first: an engine removes its shared memory when asked. */
static void group_end(pid_t pid, int *fd, pump *p)
{
    double const until = dryrun_now() + GRACE_SECONDS;
    kill(pid, SIGTERM);
    while (dryrun_now() < until && !is_gone(pid)) pump_wait(p, fd);
    kill(-pid, SIGKILL);
}

typedef enum wish { GO_ON, STOP_READY, STOP_TIME, STOP_INTERRUPTED, STOP_AFTERMATH } wish;

/* Its phase and the time: how long a start takes nobody knows. */
static void how_far(const dryrun_options *options, pump *p)
{
    oomsight_dryrun_look now = OOMSIGHT_DRYRUN_LOOK_INIT;
    double const spent = dryrun_now() - options->started, most = DRYRUN_SECONDS(options);
    if (!progress_due(&p->progress)) return;
    oomsight_dryrun_watch(p->dryrun, &now);
    if (most > 0)
        progress_show(&p->progress, "%s%s%.0f s of at most %.0f", now.phase, *now.phase ? ", " : "", spent,
                      most);
    else
        progress_show(&p->progress, "%s%s%.0f s passed", now.phase, *now.phase ? ", " : "", spent);
}

static wish decide(const dryrun_options *options, const dryrun_engine *engine, const pump *p, bool load_done,
                   double *failed_at)
{
    double const now = dryrun_now();
    if (dryrun_interrupted()) return STOP_INTERRUPTED;
    if (DRYRUN_SECONDS(options) > 0 && now - options->started > DRYRUN_SECONDS(options)) return STOP_TIME;
    if ((p->state & (OOMSIGHT_DRYRUN_OUT_OF_MEMORY | OOMSIGHT_DRYRUN_REFUSED)) && *failed_at == 0)
        *failed_at = now;
    if (engine->serves && *failed_at > 0 && now - *failed_at > AFTERMATH_SECONDS) return STOP_AFTERMATH;
    if ((p->state & OOMSIGHT_DRYRUN_REACHED) && *failed_at == 0) return STOP_READY;
    if (engine->serves && (p->state & OOMSIGHT_DRYRUN_READY) && !options->given->serve && load_done)
        return STOP_READY;
    return GO_ON;
}

/* The loads, one after the other, each sent by a process of its own. */
typedef struct loading {
    const dryrun_options *options;
    const dryrun_engine *engine;
    const oomsight_dryrun *dryrun;
    dryrun_load_result *results; /* shared with the senders */
    pid_t child;                 /* of which growth is counted */
    pid_t sender;                /* 0: none */
    unsigned at;                 /* the load that is on, or is next */
    double over_at;              /* when the last sender ended with answers missing; 0: not */
    double step_at, told_at;     /* when there last was progress; when it was last looked at */
    uint64_t steps;
    bool progress; /* shown on a terminal */
    dryrun_result *result;
    double sampled_at, sample_seconds;
} loading;

static void sender_start(loading *l)
{
    fflush(NULL);
    pid_t const parent = getpid(), pid = fork();
    l->sender = pid;
    l->step_at = l->told_at = dryrun_now();
    if (pid != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) dryrun_load(&l->options->loads[l->at], l->engine, &l->results[l->at]);
    _exit(0);
}

static unsigned done_of(const dryrun_load_result *result)
{
    return result->answered + result->aborted + result->refused + result->failed;
}

static void held_keep(const loading *l, uint64_t *ret_host, uint64_t *ret_device)
{
    oomsight_dryrun_look moment = OOMSIGHT_DRYRUN_LOOK_INIT;
    oomsight_dryrun_watch(l->dryrun, &moment);
    *ret_host = dryrun_resident_bytes(l->child);
    *ret_device = moment.device_bytes;
}

/* What is held now, for growth: some times a second, more seldom when there are many already. */
static void sample_take(loading *l)
{
    dryrun_result *all = l->result;
    double const now = dryrun_now();
    if (now - l->sampled_at < l->sample_seconds) return;
    l->sampled_at = now;
    if (all->sample_count == DRYRUN_SAMPLES) {
        for (size_t i = 0; 2 * i < all->sample_count; i++) all->samples[i] = all->samples[2 * i];
        all->sample_count /= 2;
        l->sample_seconds *= 2;
    }
    oomsight_dryrun_sample *sample = &all->samples[all->sample_count++];
    *sample = (oomsight_dryrun_sample){.load = l->at, .done = done_of(&l->results[l->at])};
    held_keep(l, &sample->host_bytes, &sample->device_bytes);
}

/* Once a second: what has come, whether anything moves, and what is held when the first part is through. */
static void sender_watch(loading *l)
{
    double const now = dryrun_now();
    const dryrun_mix *mix = &l->options->loads[l->at];
    dryrun_load_result *result = &l->results[l->at];
    sample_take(l);
    if (now - l->told_at < 1) return;
    l->told_at = now;
    oomsight_dryrun_look moment = OOMSIGHT_DRYRUN_LOOK_INIT;
    oomsight_dryrun_watch(l->dryrun, &moment);
    unsigned const done = done_of(result), tenth = mix->requests / 10 + 1;
    uint64_t const steps = moment.calls + done;
    if (steps != l->steps) l->step_at = now;
    l->steps = steps;
    if (!result->host_first_bytes && done >= (tenth < FIRST_PART ? tenth : FIRST_PART))
        held_keep(l, &result->host_first_bytes, &result->device_first_bytes);
    if (l->progress && result->started > 0)
        fprintf(stderr, "\r\033[K%u of %u requests, %.1f a second\r", done, mix->requests,
                done / (now - result->started));
    if (now - l->step_at < mix->hang_seconds) return;
    result->hung = true;
    kill(l->sender, SIGKILL);
}

static void sender_over(loading *l)
{
    const dryrun_mix *mix = &l->options->loads[l->at];
    dryrun_load_result *result = &l->results[l->at];
    if (result->host_first_bytes) held_keep(l, &result->host_last_bytes, &result->device_last_bytes);
    l->sender = 0;
    if (result->answered + result->aborted == mix->requests)
        l->at++;
    else
        l->over_at = dryrun_now();
}

/* True when nothing more is to be sent. Connections close before a process is gone: when answers are missing, a moment
 * shows whether it is dying. */
static bool loading_done(loading *l, bool ready)
{
    if (l->at >= l->options->load_count) return true;
    if (l->over_at > 0) return dryrun_now() - l->over_at > DYING_SECONDS;
    if (l->sender > 0 && waitpid(l->sender, NULL, WNOHANG) == l->sender)
        sender_over(l);
    else if (l->sender > 0)
        sender_watch(l);
    else if (l->sender == 0 && ready)
        sender_start(l);
    return l->at >= l->options->load_count;
}

static void stop(wish why, const dryrun_options *options, const pump *p, dryrun_result *result)
{
    bool const ready = p->state & OOMSIGHT_DRYRUN_READY;
    /* a server that was to be kept until it is interrupted */
    result->stopped = why == STOP_READY || (why == STOP_INTERRUPTED && options->given->serve && ready);
    result->timed_out = why == STOP_TIME;
    result->interrupted = why == STOP_INTERRUPTED && !result->stopped ? dryrun_interrupted() : 0;
}

static void pump_all(const dryrun_options *options, const dryrun_engine *engine, const char *segment_path,
                     pid_t pid, int fd, pump *p, dryrun_load_result *load_results, dryrun_result *result)
{
    double failed_at = 0, gone_at = 0, looked_at = 0;
    loading loads = {.options = options,
                     .engine = engine,
                     .dryrun = p->dryrun,
                     .results = load_results,
                     .child = pid,
                     .progress = isatty(STDERR_FILENO),
                     .result = result,
                     .sample_seconds = FIRST_SAMPLE_SECONDS};
    for (;;) {
        /* Asked before the pipe: what it wrote last is in there once it is gone. */
        if (gone_at == 0 && is_gone(pid)) gone_at = dryrun_now();
        int const some = pump_wait(p, &fd);
        if (dryrun_now() - looked_at >= HOST_LOOK_SECONDS) {
            looked_at = dryrun_now();
            dryrun_host_look(pid, p->dryrun);
        }
        if (!loads.sender) how_far(options, p);
        bool const load_done = loading_done(&loads, p->state & OOMSIGHT_DRYRUN_READY);
        wish const next = decide(options, engine, p, load_done, &failed_at);
        if (gone_at > 0) { /* orphans may hold the pipe open, and write to it */
            if (some == 0 || fd < 0 || next != GO_ON || dryrun_now() - gone_at > TAIL_SECONDS) break;
            continue;
        }
        if (next == GO_ON) continue;
        stop(next, options, p, result);
        if (options->given->snapshot) dryrun_snapshot_take(segment_path);
        group_end(pid, &fd, p);
        break;
    }
    if (loads.sender > 0) {
        kill(loads.sender, SIGKILL);
        waitpid(loads.sender, NULL, 0);
    }
}

int dryrun_child_run(const dryrun_options *options, const dryrun_engine *engine, const char *segment_path,
                     oomsight_dryrun *dryrun, dryrun_result *ret_result)
{
    char folder[1024];
    int ends[2];
    static pump p; /* too large for a stack */
    size_t const results_bytes = DRYRUN_LOADS * sizeof(dryrun_load_result);
    dryrun_load_result *loads =
        mmap(NULL, results_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (loads == MAP_FAILED || !dryrun_shim_dir(engine->cuda_major, folder, sizeof folder) ||
        pipe2(ends, O_CLOEXEC) != 0)
        return EXIT_OUR_FAULT;
    p = (pump){.dryrun = dryrun, .quiet = options->given->quiet, .progress = progress_begin(options->given)};
    if (engine->added && !options->given->quiet) {
        fputs("oomsight dryrun: added:", stderr);
        for (int i = options->given->word_count; engine->command[i]; i++)
            fprintf(stderr, " %s", engine->command[i]);
        fputc('\n', stderr);
    }
    const char *drafted;
    for (size_t at = 0; (drafted = draft_variable(engine, &at));) oomsight_dryrun_with(dryrun, drafted);
    pid_t const pid = child_start(engine, segment_path, folder, options->params.machine_bytes != 0, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return EXIT_OUR_FAULT;
    }
    *ret_result = (dryrun_result){0};
    pump_all(options, engine, segment_path, pid, ends[0], &p, loads, ret_result);
    if (p.len) line_done(&p, '\n');
    progress_clear(&p.progress);

    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    kill(-pid, SIGKILL); /* whatever it left in its group */
    ret_result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    ret_result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    memcpy(ret_result->loads, loads, results_bytes);
    munmap(loads, results_bytes);
    dryrun_children_end(0);
    close(ends[0]);
    return 0;
}

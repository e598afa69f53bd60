/* oomsight run: the real engine on real devices, counted and kept inside a budget. What happens inside the engine's processes is
 * shim/guard's business; here they are started with it in front of them, and told about in the end. */
#include "cmd_dryrun.h"
#include "cmd_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_NOT_LIMITED = 125 }; /* as env(1) and timeout(1): it is ours, not the command's */

static bool take_budget(const char *value, oomsight_run_params *params)
{
    char *end;
    double const share = strtod(value, &end);
    if (*end == '\0' && share > 0 && share <= 1 && strchr(value, '.'))
        return params->budget_millionths = (unsigned)(share * 1e6 + 0.5), true;
    if (oomsight_size_parse(value, &params->budget_bytes) && params->budget_bytes) return true;
    complain(
        "oomsight run: '%s' is not a limit: give a size with its unit, such as 20GiB, or a share such as 0.6",
        value);
    return false;
}

/* Beside the folders of the stand-ins. */
static bool guard_path(char *ret_path, size_t capacity)
{
    char folder[512];
    if (!dryrun_shim_dir(12, folder, sizeof folder)) return false;
    char *slash = strrchr(folder, '/');
    if (!slash) return false;
    *slash = '\0';
    int const len = snprintf(ret_path, capacity, "%s/liboomsight-guard.so", folder);
    return len > 0 && (size_t)len < capacity && access(ret_path, R_OK) == 0;
}

/* `oomsight top` finds it by this name; the pid is the launcher's. */
static void segment_name(char *ret_path, size_t capacity)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(ret_path, capacity, "%s/" RUN_SEGMENT_PREFIX "%d-%llx", segment_folder(), (int)getpid(),
             (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec);
}

/* What was left behind by launchers that were killed takes room that we, and NCCL, need. */
static void leftovers_remove(void)
{
    char *paths[256];
    size_t const count = run_segments(paths, sizeof paths / sizeof *paths);
    for (size_t i = 0; i < count; i++) free(paths[i]);
}

static void child_exec(const cli_options *given, const char *guard, const char *segment_path)
{
    environment_put_front("LD_PRELOAD", guard);
    setenv("OOMSIGHT_GUARD", segment_path, 1);
    execvp(given->words[0], given->words);
    complain("oomsight run: '%s' cannot be started: %s", given->words[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

static volatile sig_atomic_t child_pid, bundle_asked, resized;

/* Whoever manages services signals us; a terminal signals the command as well. */
static void pass_on(int number)
{
    if (child_pid > 0) kill(child_pid, number);
}

static void ask_bundle(int number)
{
    (void)number;
    bundle_asked = 1;
}

static void note_size(int number)
{
    (void)number;
    resized = 1;
}

static void wake_up(int number)
{
    (void)number; /* that waiting ends is all it is for */
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void report(const cli_options *given, const oomsight_run *run)
{
    cli_options to_file = *given;
    oomsight_render_params to_terminal = given->render;
    oomsight_error error = {0};
    char *text = NULL;
    if (given->trace && oomsight_run_trace(run, given->trace, &error) != OOMSIGHT_OK) fail_with(&error);
    if (given->report) {
        to_file.render.format = OOMSIGHT_FORMAT_JSON;
        to_file.output = given->report;
        oomsight_status const status = oomsight_run_render(run, &to_file.render, &text, &error);
        output_give(&to_file, status, text, &error);
        text = NULL;
    }
    if (given->quiet) return;
    to_terminal.format = OOMSIGHT_FORMAT_TEXT;
    if (oomsight_run_render(run, &to_terminal, &text, &error) != OOMSIGHT_OK) {
        fail_with(&error);
        return;
    }
    fprintf(stderr, "oomsight run:\n%s", text);
    oomsight_text_free(text);
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction const act = {.sa_handler = handler};
    sigaction(number, &act, NULL);
}

static void signals_taken(void)
{
    handle(SIGTERM, pass_on);
    handle(SIGHUP, pass_on);
    handle(SIGUSR1, pass_on);
    handle(SIGWINCH, note_size);
    handle(SIGINT, SIG_IGN); /* the terminal sends it to the command, too */
    handle(SIGQUIT, SIG_IGN);
    handle(SIGPIPE, SIG_IGN); /* the command gets one of its own */
}

/* A moment: what is printed meanwhile is passed on. Ends early when the command does. */
static void pass_some(run_output *output, const sigset_t *mask)
{
    struct pollfd ready[RUN_STREAMS];
    struct timespec const moment = {.tv_nsec = 200000000};
    for (unsigned i = 0; i < output->count; i++)
        ready[i] = (struct pollfd){output->streams[i].from, POLLIN, 0};
    if (ppoll(ready, output->count, &moment, mask) <= 0) return;
    for (unsigned i = 0; i < output->count; i++)
        if (ready[i].revents) run_output_pass(&output->streams[i], output);
}

/* Often at the start, when processes come, and seldom later. */
static void look_around(oomsight_run *run, pid_t pid, double now, double *next)
{
    oomsight_error error = {0};
    char *text = NULL;
    int again = 0;
    if (now < *next) return;
    oomsight_status const status = oomsight_run_look(run, (int)pid, &text, &again, &error);
    *next = now + (now < 10 || again ? 0.2 : now < 120 ? 1 : 5);
    if (status != OOMSIGHT_OK || !text) return;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) complain("oomsight run: %s", line);
    oomsight_text_free(text);
}

/* A limit that was asked for and is not in force is an error, whatever the command says; an error of its own is told as it is. */
static int limit_judge(const oomsight_run *run, int code)
{
    oomsight_run_limit const limit = oomsight_run_limited(run);
    if (limit == OOMSIGHT_RUN_NO_LIMIT || limit == OOMSIGHT_RUN_LIMIT_IN_FORCE) return code;
    complain("oomsight run: the limit was not in force: %s",
             limit == OOMSIGHT_RUN_LIMIT_FOR_NOBODY ? "no process of the command loaded the memory limiter"
                                                    : "a process used CUDA and was not counted");
    return code ? code : EXIT_NOT_LIMITED;
}

/* Until the command has ended: its exit code. */
static int attend(const cli_options *given, pid_t pid, run_output *output, oomsight_run *run,
                  run_bundle *bundle, run_turn *turn, const sigset_t *mask)
{
    double const start = seconds_since_boot();
    double watched = -1, look = 0;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        pass_some(output, mask);
        if (resized) resized = 0, run_output_resized(output);
        if (bundle_asked) bundle_asked = 0, bundle->asked = true;
        double const now = seconds_since_boot() - start;
        if (now - watched >= 1) oomsight_run_watch(run, watched = now);
        look_around(run, pid, now, &look);
        run_bundle_look(bundle, given, output, run, false);
        run_turn_look(turn, output->said);
    }
    run_turn_end(turn);
    child_pid = 0;
    run_output_end(output);
    look_around(run, 0, look, &look); /* what the guard itself has told */
    run_bundle_look(bundle, given, output, run, true);
    run_bundle_finish(bundle, run);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int guarded(const cli_options *given, const char *guard, const char *segment_path, oomsight_run *run,
                   run_turn *turn)
{
    static run_output output; /* too large for a stack */
    run_bundle bundle = {0};
    sigset_t child, before;
    output.run = run;
    if (given->no_log || !run_output_open(&output)) output.count = 0;
    handle(SIGCHLD, wake_up);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before); /* but while we wait */
    sigdelset(&before, SIGCHLD);
    fflush(NULL);
    pid_t const pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        handle(SIGUSR2, SIG_DFL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        run_output_give(&output);
        child_exec(given, guard, segment_path);
    }
    run_output_started(&output);
    if (pid < 0) {
        complain("oomsight run: no process could be started: %s", strerror(errno));
        return EXIT_OUR_FAULT;
    }
    child_pid = pid;
    signals_taken();
    int const code = attend(given, pid, &output, run, &bundle, turn, &before);
    report(given, run);
    return limit_judge(run, code);
}

/* A program of our own, without the guard and then as any other command. */
static int selftest(cli_options *given)
{
    static char program[] = "/proc/self/exe", run[] = "run", inside[] = "--inside", none[] = "0",
                usual[] = "1GiB";
    char *size = given->word_count ? given->words[0] : usual;
    char *alone[] = {program, run, inside, none, NULL}, *guarded_one[] = {program, run, inside, size, NULL};
    fflush(NULL);
    pid_t const pid = fork();
    if (pid == 0) {
        execv(alone[0], alone);
        _exit(127);
    }
    int const code = pid < 0 ? EXIT_OUR_FAULT : wait_for(pid);
    if (code) return code;
    given->selftest = false;
    given->budget = size;
    given->words = guarded_one;
    given->word_count = 4;
    return cmd_run(given);
}

/* False: told. */
static bool take_limits(const cli_options *given, oomsight_run_params *params)
{
    if (given->budget && !take_budget(given->budget, params)) return false;
    params->reserve_bytes = given->unified.bytes;
    if (!given->unified.text || params->reserve_bytes) return true;
    complain("oomsight run: --unified takes what the host keeps, and 0 is nothing");
    return false;
}

static void budget_compare(const oomsight_run_params *params, const oomsight_run *run)
{
    uint64_t const device = oomsight_run_device_bytes(run);
    if (device && params->budget_bytes > device)
        complain("oomsight run: --budget %.2f GiB is more than the %.2f GiB of the smallest device: there "
                 "the device itself is the limit",
                 (double)params->budget_bytes / 0x1p30, (double)device / 0x1p30);
}

/* The guard has no place for its figures. A limit that could not be in force is an error; without one the command is what matters. */
static int without_guard(const cli_options *given, const oomsight_error *error)
{
    bool const limited = given->budget || given->unified.text || given->share;
    if (limited) {
        fail_with(error);
        complain("oomsight run: the limit cannot be put in force, and the command was not started");
        return EXIT_NOT_LIMITED;
    }
    complain("oomsight run: %s", error->text);
    complain("oomsight run: the command runs WITHOUT the memory limiter: nothing is counted, and there is no "
             "report and no diagnostic bundle");
    execvp(given->words[0], given->words);
    complain("oomsight run: '%s' cannot be started: %s", given->words[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}

int cmd_run(cli_options *given)
{
    char guard[600], segment_path[600];
    oomsight_run_params params = OOMSIGHT_RUN_PARAMS_INIT;
    oomsight_error error = {0};
    oomsight_run *run = NULL;
    if (given->inside) return selftest_inside(given->inside);
    if (given->selftest) return selftest(given);
    if (given->word_count == 0) return command_missing(given), EXIT_USAGE;
    if (!take_limits(given, &params)) return EXIT_USAGE;
    if (!guard_path(guard, sizeof guard)) {
        fputs("oomsight run: liboomsight-guard.so is not found next to the stub CUDA libraries "
              "(OOMSIGHT_SHIM_DIR)\n",
              stderr);
        return EXIT_INPUT;
    }
    handle(SIGUSR2, ask_bundle); /* whoever finds the segment may ask */
    run_turn turn = {.lock = -1};
    if (given->share && !run_turn_take(&turn, given->share)) return EXIT_USAGE;
    leftovers_remove();
    segment_name(segment_path, sizeof segment_path);
    params.segment_path = segment_path;
    if (oomsight_run_create(&params, &run, &error) != OOMSIGHT_OK) return without_guard(given, &error);
    budget_compare(&params, run);
    int code = given->share ? run_share_join(run, given->share) : 0;
    if (code == 0) code = guarded(given, guard, segment_path, run, &turn);
    oomsight_run_free(run);
    unlink(segment_path);
    return code;
}

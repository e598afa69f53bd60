/* oomsight run: the real engine on real devices, counted and kept inside a budget. What happens inside the engine's processes is
 * shim/guard's business; here they are started with it in front of them, and told about in the end. */
#include "dryrun.h"
#include "run.h"

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

static const char help[] =
    "usage: oomsight run [options] -- vllm serve MODEL [vllm flags...]\n\n"
    "Starts the command as it is, with a guard in front of the CUDA libraries that counts what it allocates. "
    "Past\n"
    "the budget an allocation is answered with \"out of memory\" before the driver is asked, and every "
    "question for\n"
    "free or total memory (CUDA, NVML, device properties) shows the budget, so that the engine sizes itself "
    "inside it.\n"
    "Any program that allocates by CUDA will do. The report goes to stderr when the command has ended.\n"
    "At the first refusal or OutOfMemoryError, and on SIGUSR2, a bundle about it is written to "
    "OOMSIGHT_BUNDLE_DIR\n"
    "or the temporary directory.\n\n"
    "  --budget SIZE|SHARE   what the command may use of each device: 20GiB, or 0.6 of it (no limit)\n"
    "  --unified RESERVE     host and device share one memory: leave so much to the host, e.g. 8GiB\n"
    "  --report FILE         the report there, as JSON\n"
    "  --quiet               no report on stderr\n"
    "  --no-log              leave the command's output alone: no phases, no owners\n"
    "  --no-bundle           write nothing about failures\n"
    "  --selftest [SIZE]     instead of a command: try the guard on the first device, within 1GiB or SIZE\n"
    "  --color WHEN, --ascii, --lang en|zh\n\n"
    "Exit: the command's own code; 128 and the number of a signal that ended it.\n";

static bool take_budget(const char *value, oomsight_run_params *params)
{
    char *end;
    double const share = strtod(value, &end);
    if (*end == '\0' && share > 0 && share <= 1 && strchr(value, '.'))
        return params->budget_millionths = (unsigned)(share * 1e6 + 0.5), true;
    if (oomsight_size_parse(value, &params->budget_bytes) && params->budget_bytes) return true;
    complain("oomsight run: '%s' is no budget (20GiB, 24564MiB, or a share such as 0.6)", value);
    return false;
}

static int take_option(void *given, int argc, char **argv, int *at)
{
    run_options *options = given;
    bool wrong = false;
    const char *value;
    if (strcmp(argv[*at], "--quiet") == 0) return options->quiet = true, ++*at, 1;
    if (strcmp(argv[*at], "--no-log") == 0) return options->own_output = true, ++*at, 1;
    if (strcmp(argv[*at], "--no-bundle") == 0) return options->no_bundle = true, ++*at, 1;
    if ((value = option_value("--budget", argc, argv, at, &wrong)))
        return take_budget(value, &options->params) ? 1 : -1;
    if ((value = option_value("--report", argc, argv, at, &wrong))) return options->report_path = value, 1;
    if ((value = option_value("--unified", argc, argv, at, &wrong))) {
        int const taken = size_value("run", "--unified", value, &options->params.reserve_bytes);
        if (taken < 0 || options->params.reserve_bytes) return taken;
        complain("oomsight run: --unified takes what the host keeps, and 0 is nothing");
        return -1;
    }
    return wrong ? -1 : 0;
}

/* 0, -1 wrong usage, -2 help was asked for */
static int read_options(run_options *options, int argc, char **argv)
{
    command_line const line = {.name = "run",
                               .help = help,
                               .what = "the command goes",
                               .example = "oomsight run --budget 20GiB -- vllm serve MODEL",
                               .output = &options->output,
                               .take = take_option,
                               .options = options};
    int const at = command_line_read(&line, argc, argv);
    if (at < 0) return at;
    options->command = argv + at;
    return 0;
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

static void child_exec(const run_options *options, const char *guard, const char *segment_path)
{
    environment_put_front("LD_PRELOAD", guard);
    setenv("OOMSIGHT_GUARD", segment_path, 1);
    execvp(options->command[0], options->command);
    complain("oomsight run: '%s' cannot be started: %s", options->command[0], strerror(errno));
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

static void report(run_options *options, const oomsight_run *run)
{
    oomsight_error error = {0};
    char *text = NULL;
    if (options->report_path) {
        options->output.render.format = OOMSIGHT_FORMAT_JSON;
        options->output.output_path = options->report_path;
        if (oomsight_run_render(run, &options->output.render, &text, &error) != OOMSIGHT_OK)
            fail_with(&error);
        else
            output_write(&options->output, text);
        oomsight_text_free(text);
        text = NULL;
    }
    if (options->quiet) return;
    options->output.render.format = OOMSIGHT_FORMAT_TEXT;
    if (oomsight_run_render(run, &options->output.render, &text, &error) != OOMSIGHT_OK) {
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

/* Until the command has ended: its exit code. */
static int attend(const run_options *options, pid_t pid, run_output *output, oomsight_run *run,
                  run_bundle *bundle, const sigset_t *mask)
{
    double const start = seconds_since_boot();
    double watched = -1;
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        pass_some(output, mask);
        if (resized) resized = 0, run_output_resized(output);
        if (bundle_asked) bundle_asked = 0, bundle->asked = true;
        double const now = seconds_since_boot() - start;
        if (now - watched >= 1) oomsight_run_watch(run, watched = now);
        run_bundle_look(bundle, options, output, run, false);
    }
    child_pid = 0;
    run_output_end(output);
    run_bundle_look(bundle, options, output, run, true);
    run_bundle_finish(bundle, run);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int guarded(run_options *options, const char *guard, const char *segment_path, oomsight_run *run)
{
    static run_output output; /* too large for a stack */
    run_bundle bundle = {0};
    sigset_t child, before;
    output.run = run;
    if (options->own_output || !run_output_open(&output)) output.count = 0;
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
        child_exec(options, guard, segment_path);
    }
    run_output_started(&output);
    if (pid < 0) {
        complain("oomsight run: no process could be started: %s", strerror(errno));
        return EXIT_OUR_FAULT;
    }
    child_pid = pid;
    signals_taken();
    int const code = attend(options, pid, &output, run, &bundle, &before);
    report(options, run);
    return code;
}

/* A program of our own, without the guard and then as any other command. */
static int selftest(char *size)
{
    static char program[] = "/proc/self/exe", run[] = "run", inside[] = "--inside", none[] = "0",
                budget[] = "--budget", end[] = "--";
    char *alone[] = {program, run, inside, none, NULL},
         *guarded_one[] = {budget, size, end, program, run, inside, size, NULL};
    fflush(NULL);
    pid_t const pid = fork();
    if (pid == 0) {
        execv(alone[0], alone);
        _exit(127);
    }
    int const code = pid < 0 ? EXIT_OUR_FAULT : wait_for(pid);
    return code ? code : cmd_run(7, guarded_one);
}

int cmd_run(int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "--selftest") == 0) {
        static char usual[] = "1GiB";
        return selftest(argc > 1 ? argv[1] : usual);
    }
    if (argc == 2 && strcmp(argv[0], "--inside") == 0) return selftest_inside(argv[1]);
    run_options options = {.params = OOMSIGHT_RUN_PARAMS_INIT};
    char guard[600], segment_path[600];
    oomsight_error error = {0};
    oomsight_run *run = NULL;
    output_options_init(&options.output);
    int const read = read_options(&options, argc, argv);
    if (read == -2) return 0;
    if (read < 0) return EXIT_USAGE;
    output_options_settle(&options.output);
    if (!guard_path(guard, sizeof guard)) {
        fputs("oomsight run: liboomsight-guard.so is not found beside the stand-ins (OOMSIGHT_SHIM_DIR)\n",
              stderr);
        return EXIT_INPUT;
    }
    handle(SIGUSR2, ask_bundle); /* whoever finds the segment may ask */
    segment_name(segment_path, sizeof segment_path);
    options.params.segment_path = segment_path;
    if (oomsight_run_create(&options.params, &run, &error) != OOMSIGHT_OK) return fail_with(&error);
    int const code = guarded(&options, guard, segment_path, run);
    oomsight_run_free(run);
    unlink(segment_path);
    return code;
}

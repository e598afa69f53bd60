/* oomsight run: the real engine on real devices, counted and kept inside a budget. What happens inside the engine's processes is
 * shim/guard's business; here they are started with it in front of them, and told about in the end. */
#include "cli.h"
#include "dryrun.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
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
    "Any program that allocates by CUDA will do. The report goes to stderr when the command has ended.\n\n"
    "  --budget SIZE|SHARE   what the command may use of each device: 20GiB, or 0.6 of it (no limit)\n"
    "  --unified RESERVE     host and device share one memory: leave so much to the host, e.g. 8GiB\n"
    "  --report FILE         the report there, as JSON\n"
    "  --quiet               no report on stderr\n"
    "  --selftest [SIZE]     instead of a command: try the guard on the first device, within 1GiB or SIZE\n"
    "  --color WHEN, --ascii, --lang en|zh\n\n"
    "Exit: the command's own code; 128 and the number of a signal that ended it.\n";

typedef struct run_options {
    output_options output;
    oomsight_run_params params;
    const char *report_path;
    bool quiet;
    char **command;
} run_options;

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

static volatile sig_atomic_t child_pid;

/* Whoever manages services signals us; a terminal signals the command as well. */
static void pass_on(int number)
{
    if (child_pid > 0) kill(child_pid, number);
}

/* Takes down once a second what is held, until the command has ended. */
typedef struct watcher {
    oomsight_run *run;
    pthread_t thread;
    int stop[2]; /* closing its second end ends the thread */
    bool running;
} watcher;

static void *watch(void *given)
{
    watcher *w = given;
    double const start = seconds_since_boot();
    struct pollfd stop = {.fd = w->stop[0], .events = POLLIN};
    while (poll(&stop, 1, 1000) == 0) oomsight_run_watch(w->run, seconds_since_boot() - start);
    return NULL;
}

/* Signals are the main thread's. Without a thread nothing is watched, and the command runs all the same. */
static void watch_start(watcher *w)
{
    sigset_t all, before;
    if (pipe2(w->stop, O_CLOEXEC) != 0) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->running = pthread_create(&w->thread, NULL, watch, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void watch_end(watcher *w)
{
    if (!w->running) return;
    close(w->stop[1]);
    pthread_join(w->thread, NULL);
    close(w->stop[0]);
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

static int guarded(run_options *options, const char *guard, const char *segment_path, oomsight_run *run)
{
    struct sigaction const forward = {.sa_handler = pass_on}, keep = {.sa_handler = SIG_IGN};
    fflush(NULL);
    pid_t const pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        child_exec(options, guard, segment_path);
    }
    if (pid < 0) {
        complain("oomsight run: no process could be started: %s", strerror(errno));
        return EXIT_OUR_FAULT;
    }
    child_pid = pid;
    sigaction(SIGTERM, &forward, NULL);
    sigaction(SIGHUP, &forward, NULL);
    sigaction(SIGUSR1, &forward, NULL);
    sigaction(SIGINT, &keep, NULL); /* the terminal sends it to the command, too */
    sigaction(SIGQUIT, &keep, NULL);
    watcher w = {.run = run};
    watch_start(&w);
    int const code = wait_for(pid);
    child_pid = 0;
    watch_end(&w);
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
    segment_name(segment_path, sizeof segment_path);
    options.params.segment_path = segment_path;
    if (oomsight_run_create(&options.params, &run, &error) != OOMSIGHT_OK) return fail_with(&error);
    int const code = guarded(&options, guard, segment_path, run);
    oomsight_run_free(run);
    unlink(segment_path);
    return code;
}

/* oomsight top: what runs under `oomsight run` on this machine, and what it holds. */
#include "cli.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KEPT_MAX = 64, PATH_BYTES = 800, DUMP_SECONDS = 70 };

static const char help[] =
    "usage: oomsight top [--once] [--json] [--every SECONDS] [--dump [PID]]\n\n"
    "Every command that runs under 'oomsight run' on this machine, with what it holds "
    "on each device against its\n"
    "budget. Drawn again every two seconds on a terminal; once when piped.\n\n"
    "  --once              print once and end\n"
    "  --every SECONDS     between two drawings (2)\n"
    "  --json              an array of objects, one for each command; once\n"
    "  --dump [PID]        have each of them, or the one of that process, write a bundle\n"
    "  --color WHEN, --ascii, --lang en|zh\n";

typedef struct top_options {
    output_options output;
    bool once, dump;
    int dumped; /* of --dump: the launcher; 0: all */
    unsigned every;
} top_options;

/* The words that it was started with, for people: one line, cut. */
static void command_of(int pid, char *ret_line, size_t capacity)
{
    char path[64];
    ret_line[0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t const len = read(fd, ret_line, capacity - 1);
    close(fd);
    for (ssize_t i = 0; i < len; i++)
        if (!ret_line[i]) ret_line[i] = ' ';
    ret_line[len > 0 ? len : 0] = '\0';
}

/* A file of ours whose launcher lives; one whose launcher is gone is removed. */
static bool is_live(const char *path, const char *name, int *ret_pid)
{
    struct stat info;
    *ret_pid = atoi(name + strlen(RUN_SEGMENT_PREFIX));
    if (*ret_pid <= 0 || lstat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid())
        return false;
    if (kill(*ret_pid, 0) == 0) return true;
    unlink(path);
    return false;
}

/* Runs stay open between two drawings, so that growth can be told. */
typedef struct kept_run {
    char path[PATH_BYTES];
    oomsight_run *run; /* NULL: a free place */
    double since;
    bool drawn;
} kept_run;

static kept_run kept[KEPT_MAX];

static oomsight_run *open_kept(const char *path)
{
    oomsight_error error = {0};
    kept_run *place = NULL;
    for (size_t i = 0; i < KEPT_MAX; i++) {
        if (kept[i].run && strcmp(kept[i].path, path) == 0) place = &kept[i];
        if (place && place->run) break;
        if (!kept[i].run && !place) place = &kept[i];
    }
    if (!place) return NULL;
    if (!place->run) {
        if (oomsight_run_open(path, &place->run, &error) != OOMSIGHT_OK) return NULL;
        snprintf(place->path, sizeof place->path, "%s", path);
        place->since = seconds_since_boot();
    }
    place->drawn = true;
    oomsight_run_watch(place->run, seconds_since_boot() - place->since);
    return place->run;
}

static void close_gone(void)
{
    for (size_t i = 0; i < KEPT_MAX; i++) {
        if (kept[i].run && !kept[i].drawn) {
            oomsight_run_free(kept[i].run);
            kept[i].run = NULL;
        }
        kept[i].drawn = false;
    }
}

/* Ask whoever started it, and wait until it is written. */
static bool dump(const top_options *options, const char *path, int pid)
{
    oomsight_run *run = open_kept(path);
    const char *place = "";
    if (!run || (options->dumped && options->dumped != pid)) return false;
    unsigned const before = oomsight_run_bundles(run, &place);
    int const launcher = oomsight_run_launcher(run);
    if (!launcher || kill(launcher, SIGUSR2) != 0) return false;
    for (unsigned tenths = 0; tenths < 10 * DUMP_SECONDS; tenths++) {
        struct timespec const pause = {.tv_nsec = 100000000};
        if (oomsight_run_bundles(run, &place) != before) {
            printf("%d  %s\n", pid, place);
            return true;
        }
        nanosleep(&pause, NULL);
    }
    complain("oomsight top: %d has written no bundle in %d seconds", pid, DUMP_SECONDS);
    return false;
}

static bool show(const top_options *options, const char *path, int pid, bool first)
{
    oomsight_error error = {0};
    oomsight_run *run = open_kept(path);
    char *text = NULL, line[4096];
    if (!run) return false;
    bool const shown = oomsight_run_render(run, &options->output.render, &text, &error) == OOMSIGHT_OK;
    command_of(pid, line, sizeof line);
    if (shown && options->output.render.format == OOMSIGHT_FORMAT_JSON)
        printf("%s{\"pid\": %d, \"run\": %s}", first ? "" : ",\n", pid, text);
    else if (shown) {
        char *clean = NULL;
        if (oomsight_text_redact(line, &clean, &error) == OOMSIGHT_OK) printf("%d  %.*s\n", pid, 200, clean);
        oomsight_text_free(clean);
        printf("%s\n", text);
    }
    oomsight_text_free(text);
    return shown;
}

static unsigned draw(const top_options *options)
{
    const char *folder = segment_folder();
    unsigned count = 0;
    DIR *place = opendir(folder);
    if (!place) return 0;
    for (const struct dirent *entry; (entry = readdir(place));) {
        char path[PATH_BYTES];
        int pid;
        if (strncmp(entry->d_name, RUN_SEGMENT_PREFIX, strlen(RUN_SEGMENT_PREFIX)) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (!is_live(path, entry->d_name, &pid)) continue;
        if (options->dump ? dump(options, path, pid) : show(options, path, pid, count == 0)) count++;
    }
    closedir(place);
    close_gone();
    return count;
}

static int take_option(top_options *options, int argc, char **argv, int *at)
{
    bool wrong = false;
    const char *value;
    if (strcmp(argv[*at], "--once") == 0) return options->once = true, ++*at, 1;
    if (strcmp(argv[*at], "--dump") == 0) {
        options->dump = true;
        if (++*at < argc && argv[*at][0] >= '1' && argv[*at][0] <= '9') options->dumped = atoi(argv[(*at)++]);
        return 1;
    }
    if ((value = option_value("--every", argc, argv, at, &wrong))) {
        options->every = (unsigned)strtoul(value, NULL, 10);
        if (options->every) return 1;
        complain("oomsight top: '%s' is no number of seconds", value);
        return -1;
    }
    return wrong ? -1 : 0;
}

int cmd_top(int argc, char **argv)
{
    top_options options = {.every = 2};
    output_options_init(&options.output);
    for (int at = 0; at < argc;) {
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) return fputs(help, stdout), 0;
        int taken = output_options_take(&options.output, argc, argv, &at);
        if (taken == 0) taken = take_option(&options, argc, argv, &at);
        if (taken > 0) continue;
        if (taken == 0) complain("oomsight top: no option '%s'", argv[at]);
        return EXIT_USAGE;
    }
    output_options_settle(&options.output);
    if (options.dump) {
        if (draw(&options)) return 0;
        complain("oomsight top: nothing runs under 'oomsight run' here that could write a bundle");
        return EXIT_INPUT;
    }
    bool const json = options.output.render.format == OOMSIGHT_FORMAT_JSON;
    if (json) {
        puts("[");
        draw(&options);
        puts("]");
        return 0;
    }
    for (;;) {
        bool const again = !options.once && isatty(STDOUT_FILENO);
        if (again) fputs("\033[H\033[J", stdout); /* from the top, over what was there */
        if (!draw(&options)) puts("nothing runs under 'oomsight run' here");
        fflush(stdout);
        if (!again) return 0;
        sleep(options.every);
    }
}

/* oomsight top: what runs under `oomsight run` on this machine, and what it holds. */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { KEPT_MAX = 64, PATH_BYTES = 800, DUMP_SECONDS = 70 };

size_t top_words(int pid, char *ret_words, size_t capacity)
{
    char path[64];
    size_t len = 0;
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t some; fd >= 0 && (some = read(fd, ret_words + len, capacity - 1 - len)) > 0;)
        len += (size_t)some;
    if (fd >= 0) close(fd);
    ret_words[len] = '\0';
    return len;
}

/* The words that it was started with, for people: one line, cut. */
static void command_of(int pid, char *ret_line, size_t capacity)
{
    size_t const len = top_words(pid, ret_line, capacity);
    for (size_t i = 0; i < len; i++)
        if (!ret_line[i]) ret_line[i] = ' ';
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
    int pid;
} kept_run;

static kept_run kept[KEPT_MAX];

static oomsight_run *open_kept(const char *path, int pid)
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
    place->pid = pid;
    oomsight_run_watch(place->run, seconds_since_boot() - place->since);
    return place->run;
}

/* Beside the file and over it: whoever reads it never sees half of it. */
static bool metrics_write(const char *path)
{
    oomsight_run *runs[KEPT_MAX];
    oomsight_error error = {0};
    int pids[KEPT_MAX];
    size_t count = 0;
    char *text = NULL, fresh[PATH_BYTES];
    for (size_t i = 0; i < KEPT_MAX; i++) {
        if (!kept[i].run) continue;
        pids[count] = kept[i].pid;
        runs[count++] = kept[i].run;
    }
    bool good = oomsight_run_metrics(runs, pids, count, &text, &error) == OOMSIGHT_OK;
    if (!good) fail_with(&error);
    snprintf(fresh, sizeof fresh, "%s.%d.tmp", path, (int)getpid());
    FILE *file = good ? fopen(fresh, "we") : NULL;
    if (file) {
        good = fputs(text, file) >= 0;
        good = fclose(file) == 0 && good && rename(fresh, path) == 0;
    } else
        good = false;
    if (!good && text) {
        complain("oomsight top: %s: %s", path, strerror(errno));
        unlink(fresh);
    }
    oomsight_text_free(text);
    return good;
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
static bool dump(const cli_options *given, const char *path, int pid)
{
    oomsight_run *run = open_kept(path, pid);
    const char *place = "";
    if (!run || (given->word_count && atoi(given->words[0]) != pid)) return false;
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

static bool show(const cli_options *given, const char *path, int pid, bool first)
{
    oomsight_error error = {0};
    oomsight_run *run = open_kept(path, pid);
    char *text = NULL, line[4096];
    if (!run) return false;
    top_serving(run, pid);
    bool const shown = oomsight_run_render(run, &given->render, &text, &error) == OOMSIGHT_OK;
    command_of(pid, line, sizeof line);
    if (shown && given->render.format == OOMSIGHT_FORMAT_JSON)
        printf("%s{\"pid\": %d, \"run\": %s}", first ? "" : ",\n", pid, text);
    else if (shown) {
        char *clean = NULL;
        const char *behind =
            strstr(line, " -- "); /* the words of `oomsight run` itself are told in figures */
        unsigned const columns = given->render.width;
        if (oomsight_text_redact(behind ? behind + 4 : line, &clean, &error) == OOMSIGHT_OK)
            printf("%-8d%.*s\n", pid, columns > 20 ? (int)columns - 9 : 200, clean);
        oomsight_text_free(clean);
        printf("%s\n", text);
    }
    oomsight_text_free(text);
    return shown;
}

static unsigned draw(const cli_options *given, bool shown)
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
        if (given->dump ? dump(given, path, pid)
            : shown     ? show(given, path, pid, count == 0)
                        : open_kept(path, pid) != NULL)
            count++;
    }
    closedir(place);
    close_gone();
    return count;
}

int cmd_top(cli_options *given)
{
    if (given->word_count && (!given->dump || atoi(given->words[0]) <= 0)) {
        complain("oomsight top: no option '%s'", given->words[0]);
        return EXIT_USAGE;
    }
    if (given->dump) {
        if (draw(given, false)) return 0;
        complain("oomsight top: nothing runs under 'oomsight run' here that could write a bundle");
        return EXIT_INPUT;
    }
    bool const json = given->render.format == OOMSIGHT_FORMAT_JSON;
    if (json) {
        puts("[");
        draw(given, true);
        puts("]");
        return !given->metrics_file || metrics_write(given->metrics_file) ? 0 : EXIT_INPUT;
    }
    for (;;) {
        bool const terminal = isatty(STDOUT_FILENO),
                   again = !given->once && (terminal || given->metrics_file);
        bool const shown = terminal || !again;                /* else it only keeps the file */
        if (again && terminal) fputs("\033[H\033[J", stdout); /* from the top, over what was there */
        if (!draw(given, shown) && shown) puts("nothing runs under 'oomsight run' here");
        fflush(stdout);
        if (given->metrics_file && !metrics_write(given->metrics_file)) return EXIT_INPUT;
        if (!again) return 0;
        sleep((unsigned)number_or(given->every, 2));
    }
}

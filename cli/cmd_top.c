/* oomsight top: what runs under `oomsight run` on this machine, and what it holds. */
#include "top.h"

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

/* Runs stay open between two drawings, so that growth can be told. */
typedef struct kept_run {
    char path[PATH_BYTES];
    oomsight_run *run; /* NULL: a free place */
    double since;
    bool drawn;
    int pid;
} kept_run;

static kept_run kept[KEPT_MAX];

/* NULL: no segment of ours, or its launcher is gone. */
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
    place->pid = oomsight_run_launcher(place->run);
    if (!place->pid) return NULL; /* not drawn: it is closed with the next */
    place->drawn = true;
    oomsight_run_watch(place->run, seconds_since_boot() - place->since);
    return place->run;
}

/* A new file beside it that nobody can have put there, moved over it: whoever reads it never sees half of it, and a link in its place
 * goes. Its readers are other users. */
static bool text_write(const char *path, const char *text)
{
    char fresh[PATH_BYTES];
    int const name = snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    int const fd = name > 0 && (size_t)name < sizeof fresh ? mkostemp(fresh, O_CLOEXEC) : -1;
    if (fd < 0) return false;
    FILE *file = fchmod(fd, 0644) == 0 ? fdopen(fd, "w") : NULL;
    if (!file) close(fd);
    bool good = file && fputs(text, file) >= 0;
    good = file && fclose(file) == 0 && good && rename(fresh, path) == 0;
    if (!good) unlink(fresh);
    return good;
}

/* Those that are open. */
static size_t kept_runs(oomsight_run *ret_runs[KEPT_MAX], int ret_pids[KEPT_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < KEPT_MAX; i++) {
        if (!kept[i].run) continue;
        ret_pids[count] = kept[i].pid;
        ret_runs[count++] = kept[i].run;
    }
    return count;
}

static bool metrics_write(const char *path)
{
    oomsight_run *runs[KEPT_MAX];
    oomsight_error error = {0};
    static char names[KEPT_MAX][TOP_NAME_BYTES];
    const char *called[KEPT_MAX];
    int pids[KEPT_MAX];
    size_t const count = kept_runs(runs, pids);
    char *text = NULL;
    for (size_t i = 0; i < count; i++) {
        top_name("/proc", pids[i], names[i], sizeof names[i]);
        called[i] = names[i];
    }
    if (oomsight_run_metrics(runs, pids, called, count, &text, &error) != OOMSIGHT_OK)
        return fail_with(&error), false;
    bool const good = text_write(path, text);
    if (!good) complain("oomsight top: %s: %s", path, strerror(errno));
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
static bool dump(const cli_options *given, oomsight_run *run, int pid)
{
    const char *place = "";
    if (given->word_count && atoi(given->words[0]) != pid) return false;
    unsigned const before = oomsight_run_bundles(run, &place);
    if (kill(pid, SIGUSR2) != 0) return false;
    for (unsigned tenths = 0; tenths < 10 * DUMP_SECONDS; tenths++) {
        struct timespec const pause = {.tv_nsec = 100000000};
        if (oomsight_run_bundles(run, &place) != before) {
            printf("%d  %s\n", pid, place);
            return true;
        }
        nanosleep(&pause, NULL);
    }
    complain("oomsight top: %d has written no diagnostic bundle in %d seconds", pid, DUMP_SECONDS);
    return false;
}

static bool show(const cli_options *given, oomsight_run *run, int pid, bool first, FILE *out)
{
    oomsight_error error = {0};
    char *text = NULL, line[4096];
    top_serving(run, pid);
    bool const shown = oomsight_run_render(run, &given->render, &text, &error) == OOMSIGHT_OK;
    command_of(pid, line, sizeof line);
    if (shown && given->render.format == OOMSIGHT_FORMAT_JSON)
        fprintf(out, "%s{\"pid\": %d, \"run\": %s}", first ? "" : ",\n", pid, text);
    else if (shown) {
        char *clean = NULL;
        const char *behind =
            strstr(line, " -- "); /* the words of `oomsight run` itself are told in figures */
        unsigned const columns = given->render.width;
        if (oomsight_text_redact(behind ? behind + 4 : line, &clean, &error) == OOMSIGHT_OK)
            fprintf(out, "%-8d%.*s\n", pid, columns > 20 ? (int)columns - 9 : 200, clean);
        oomsight_text_free(clean);
        fprintf(out, "%s\n", text);
    }
    oomsight_text_free(text);
    return shown;
}

/* `texts`: a place for what is shown of each, or NULL: it is printed. */
static unsigned draw(const cli_options *given, bool shown, char **texts)
{
    unsigned count = 0;
    char *paths[KEPT_MAX];
    size_t const found = run_segments(paths, KEPT_MAX);
    for (size_t i = 0; i < found; i++) {
        oomsight_run *run = open_kept(paths[i]);
        int const pid = run ? oomsight_run_launcher(run) : 0;
        size_t len;
        FILE *out = texts && pid && shown ? open_memstream(&texts[count], &len) : stdout;
        bool const done =
            pid && out &&
            (given->dump ? dump(given, run, pid) : !shown || show(given, run, pid, count == 0, out));
        if (out && out != stdout) {
            fclose(out);
            if (!done) free(texts[count]);
        }
        if (done) count++;
        free(paths[i]);
    }
    close_gone();
    return count;
}

/* What is on the screen, and how. */
typedef struct view_of {
    oomsight_top *top;
    double began;
    unsigned order;
    bool paused, components;
} view_of;

static void put_words(const char *line, unsigned columns)
{
    char *words = NULL;
    const char *text = oomsight_words(chosen_language, line, &words, NULL) == OOMSIGHT_OK ? words : line;
    top_screen_line(text, columns);
    oomsight_text_free(words);
}

/* Each run with its components. */
static void draw_components(const cli_options *given, unsigned rows, unsigned columns)
{
    char *texts[KEPT_MAX], line[80];
    unsigned const count = draw(given, true, texts);
    fputs("\033[H\033[J", stdout);
    snprintf(line, sizeof line, count == 1 ? "%u run, refreshed every %g s" : "%u runs, refreshed every %g s",
             count, number_or(given->every, 2));
    if (count) put_words(line, columns);
    puts("");
    top_screen_put(texts, count, rows - 2, columns);
    if (!count) puts("nothing runs under 'oomsight run' here");
    for (unsigned i = 0; i < count; i++) free(texts[i]);
    printf("\033[%u;1H", rows);
    put_words(columns < 40 ? "q d" : "q quit  d processes", columns);
}

static void draw_processes(const cli_options *given, const view_of *view, unsigned rows, unsigned columns)
{
    oomsight_error error = {0};
    char host[256] = "", clock[16] = "", *text = NULL;
    time_t const now = time(NULL);
    struct tm day;
    gethostname(host, sizeof host - 1);
    if (localtime_r(&now, &day))
        snprintf(clock, sizeof clock, "%02d:%02d:%02d", day.tm_hour, day.tm_min, day.tm_sec);
    oomsight_top_params asked = OOMSIGHT_TOP_PARAMS_INIT;
    oomsight_render_params render = given->render;
    asked.host = host;
    asked.clock = clock;
    asked.every_seconds = number_or(given->every, 2);
    asked.order = view->order;
    asked.paused = view->paused;
    asked.lines = rows;
    render.width = columns;
    if (oomsight_top_render(view->top, &asked, &render, &text, &error) != OOMSIGHT_OK) return;
    fputs("\033[H\033[J", stdout);
    top_screen_text(text, rows, columns);
    oomsight_text_free(text);
}

/* `look`: what is there is asked again; else only the screen has changed. */
static void draw_screen(cli_options *given, const view_of *view, bool look)
{
    oomsight_run *runs[KEPT_MAX];
    int pids[KEPT_MAX];
    unsigned rows, columns;
    top_screen_size(&rows, &columns);
    if (!getenv("COLUMNS")) given->render.width = columns < 120 ? columns : 120;
    if (look) {
        draw(given, false, NULL);
        size_t const count = kept_runs(runs, pids);
        oomsight_top_look(view->top, runs, pids, count, seconds_since_boot() - view->began);
    }
    if (view->components)
        draw_components(given, rows, columns);
    else
        draw_processes(given, view, rows, columns);
    fflush(stdout);
}

/* Until it is to end. */
static int screen_keep(cli_options *given)
{
    view_of view = {.began = seconds_since_boot()};
    oomsight_error error = {0};
    int key = TOP_KEY_NONE, code = 0;
    if (oomsight_top_create(&view.top, &error) != OOMSIGHT_OK) return fail_with(&error);
    top_screen_begin();
    while (key != 'q' && code == 0) {
        draw_screen(given, &view, key == TOP_KEY_NONE && !view.paused);
        if (given->metrics_file && !metrics_write(given->metrics_file)) code = EXIT_INPUT;
        key = top_screen_wait(number_or(given->every, 2));
        if (key == 's') view.order = (view.order + 1) % OOMSIGHT_TOP_ORDERS;
        if (key == 'p') view.paused = !view.paused;
        if (key == 'd') view.components = !view.components;
    }
    oomsight_top_free(view.top);
    return code;
}

int cmd_top(cli_options *given)
{
    if (given->word_count && (!given->dump || atoi(given->words[0]) <= 0)) {
        complain("oomsight top: no option '%s'", given->words[0]);
        return EXIT_USAGE;
    }
    if (given->dump) {
        if (draw(given, false, NULL)) return 0;
        complain("oomsight top: nothing runs under 'oomsight run' here that could write a diagnostic bundle");
        return EXIT_INPUT;
    }
    bool const json = given->render.format == OOMSIGHT_FORMAT_JSON;
    if (json) {
        puts("[");
        draw(given, true, NULL);
        puts("]");
        return !given->metrics_file || metrics_write(given->metrics_file) ? 0 : EXIT_INPUT;
    }
    bool const terminal = isatty(STDOUT_FILENO), again = !given->once && (terminal || given->metrics_file);
    if (again && terminal) return screen_keep(given);
    do { /* printed once, or it only keeps the file */
        if (!draw(given, !again, NULL) && !again) puts("nothing runs under 'oomsight run' here");
        fflush(stdout);
        if (given->metrics_file && !metrics_write(given->metrics_file)) return EXIT_INPUT;
    } while (again && top_screen_wait(number_or(given->every, 2)) != 'q');
    return 0;
}

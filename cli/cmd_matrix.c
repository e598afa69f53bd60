/* oomsight matrix: models x GPUs x flags x engine versions, each planned or dry-started. */
#include "cmd_dryrun.h"
#include "cmd_matrix.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDENTITIES_MAX = 64 };

/* How far it is, and how long it may still take. */
static void how_far(matrix_run *run)
{
    double const spent = seconds_since_boot() - run->progress.since;
    unsigned long long const points = oomsight_matrix_points(run->matrix);
    if (!progress_due(&run->progress) || !run->done || run->done == points) return;
    progress_show(&run->progress, "%llu of %llu points %s, about %.0f s left", (unsigned long long)run->done,
                  points, oomsight_matrix_is_dryrun(run->matrix) ? "started" : "planned",
                  spent * (double)(points - run->done) / (double)run->done);
}

void matrix_tell(matrix_run *run, const oomsight_matrix_point *point)
{
    FILE *const files[] = {run->lines, run->points};
    run->done++;
    for (size_t i = 0; i < 2; i++) {
        if (!files[i] || !point->line) continue;
        run->unwritten |= fwrite(point->line, 1, point->line_bytes, files[i]) != point->line_bytes;
        run->unwritten |= fputc('\n', files[i]) == EOF;
    }
    if (!oomsight_matrix_is_dryrun(run->matrix)) return how_far(run);
    for (size_t i = 0; i < 2; i++) /* they take minutes: whoever reads along sees each */
        if (files[i]) fflush(files[i]);
    if (run->given->quiet) return;
    progress_clear(&run->progress);
    static const char *const words[] = {"starts", "tight", "fails", "refused", "unknown"};
    char release[64];
    fprintf(stderr, "[%llu/%llu] %s on %s, %s, %s: %s", (unsigned long long)run->done,
            (unsigned long long)oomsight_matrix_points(run->matrix), point->model, point->gpu, point->flags,
            oomsight_engine_release(point->version, release, sizeof release),
            point->readable ? words[point->verdict] : "no answer");
    if (point->phase) fprintf(stderr, " in %s", point->phase);
    if ((!point->readable || point->verdict == OOMSIGHT_VERDICT_UNKNOWN) && point->why)
        fprintf(stderr, ": %s", point->why);
    fputs(point->cached ? " (kept from before)" : "", stderr);
    if (!point->cached) fprintf(stderr, " (%.0f s)", point->seconds);
    fputc('\n', stderr);
    how_far(run);
}

static int plan_all(matrix_run *run)
{
    int code = 0;
    for (;;) {
        oomsight_error error = {0};
        const oomsight_matrix_point *point = NULL;
        if (oomsight_matrix_next(run->matrix, &point, &error) != OOMSIGHT_OK) code = fail_with(&error);
        if (code || !point || run->unwritten) break;
        matrix_tell(run, point);
    }
    progress_clear(&run->progress);
    return code;
}

static int exit_code(const oomsight_matrix *matrix, bool diff)
{
    oomsight_matrix_tally tally = OOMSIGHT_MATRIX_TALLY_INIT;
    oomsight_matrix_count(matrix, &tally);
    if (tally.unkept)
        fprintf(stderr, "oomsight matrix: %llu results could not be written to the cache\n",
                (unsigned long long)tally.unkept);
    bool const bad = diff ? tally.broken : tally.seen - tally.unreadable - tally.starts;
    if (bad) return EXIT_DOES_NOT_FIT;
    return tally.unreadable || tally.uncompared ? EXIT_INPUT : EXIT_FITS;
}

static int answer(matrix_run *run)
{
    const cli_options *given = run->given;
    int code = !oomsight_matrix_is_dryrun(run->matrix) ? plan_all(run)
               : given->ray                            ? matrix_ray(run)
                                                       : matrix_pool(run);
    if (code) return code;
    if (!run->lines) {
        oomsight_error error = {0};
        char *text = NULL;
        oomsight_status const status = oomsight_matrix_render(run->matrix, &given->render, &text, &error);
        code = output_give(given, status, text, &error);
    }
    return code ? code : exit_code(run->matrix, given->diff[0] != NULL);
}

static FILE *file_open(const char *path)
{
    oomsight_error error = {0};
    int fd;
    if (oomsight_output_open(path, 0, &fd, &error) != OOMSIGHT_OK) {
        fail_with(&error);
        return NULL;
    }
    FILE *file = fdopen(fd, "w");
    if (file)
        setvbuf(file, NULL, _IOFBF, 1 << 20);
    else
        close(fd);
    return file;
}

static int run_all(const cli_options *given, oomsight_matrix *matrix)
{
    matrix_run run = {.given = given, .matrix = matrix, .progress = progress_begin(given)};
    int code = EXIT_INPUT;
    if (given->render.format == OOMSIGHT_FORMAT_JSON && !given->diff[0]) {
        run.lines = given->output ? file_open(given->output) : stdout;
        if (!run.lines) return EXIT_INPUT;
    }
    if (given->points && !(run.points = file_open(given->points))) goto out;
    code = answer(&run);
out:
    if (run.lines) run.unwritten |= (run.lines == stdout ? fflush(stdout) : fclose(run.lines)) != 0;
    if (run.points) run.unwritten |= fclose(run.points) != 0;
    if (run.unwritten) fputs("oomsight matrix: the answer could not be written\n", stderr);
    return run.unwritten ? EXIT_INPUT : code;
}

/* A dry start depends on this program and on the stand-ins: their content is part of what a kept result is kept for. */
static size_t identity_gather(const char *ret_paths[IDENTITIES_MAX], char paths[IDENTITIES_MAX][1024])
{
    size_t count = 0;
    snprintf(paths[count++], 1024, "/proc/self/exe");
    for (unsigned cuda = 12; cuda <= 13; cuda++) {
        char folder[800];
        if (!dryrun_shim_dir(cuda, folder, sizeof folder)) continue;
        struct dirent **list = NULL;
        int const found = scandir(folder, &list, NULL, alphasort);
        for (int i = 0; i < found; i++) {
            struct stat info;
            char *path = paths[count];
            if (count < IDENTITIES_MAX && strstr(list[i]->d_name, ".so")) {
                snprintf(path, 1024, "%.760s/%.200s", folder, list[i]->d_name);
                count += stat(path, &info) == 0 && S_ISREG(info.st_mode);
            }
            free(list[i]);
        }
        free(list);
    }
    for (size_t i = 0; i < count; i++) ret_paths[i] = paths[i];
    return count;
}

/* Dry starts are kept unless told otherwise; planning again is quicker than finding a plan. */
static void cache_settle(const cli_options *given, oomsight_matrix_params *params)
{
    static char folder[4096], paths[IDENTITIES_MAX][1024];
    static const char *list[IDENTITIES_MAX];
    if (given->no_cache) return;
    params->cache_dir = given->cache;
    if (!params->cache_dir) {
        const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        if (base && *base)
            snprintf(folder, sizeof folder, "%s/oomsight/matrix", base);
        else if (home && *home)
            snprintf(folder, sizeof folder, "%s/.cache/oomsight/matrix", home);
        if (folder[0]) params->cache_dir = folder;
        params->cache_dryruns_only = 1;
    }
    params->identity_paths = list;
    params->identity_count = identity_gather(list, paths);
}

int cmd_matrix(cli_options *given)
{
    oomsight_error error = {0};
    oomsight_data *data = NULL;
    oomsight_matrix *matrix = NULL;
    if (given->diff[0] && strcmp(given->diff[0], given->diff[1]) == 0) {
        fputs("oomsight matrix: --diff takes two different versions\n", stderr);
        return EXIT_USAGE;
    }
    if (given->logs && mkdir(given->logs, 0777) != 0 && errno != EEXIST) {
        complain("oomsight matrix: --logs %s: %s", given->logs, strerror(errno));
        return EXIT_INPUT;
    }
    if (oomsight_data_open(given->data, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    oomsight_matrix_params params = OOMSIGHT_MATRIX_PARAMS_INIT;
    params.data = data;
    params.path = given->words[0];
    params.from_version = given->diff[0];
    params.to_version = given->diff[1];
    if (given->moved.given) params.moved_ratio = given->moved.number / 100;
    params.models_dir = given->models;
    params.allow_hub = !given->offline;
    params.mode = given->mode;
    params.threads = (unsigned)given->threads.number;
    params.engines = given->engine;
    params.engine_count = given->engine_count;
    params.lines = given->points != NULL || given->render.format == OOMSIGHT_FORMAT_JSON;
    cache_settle(given, &params);
    oomsight_status const status = oomsight_matrix_open(&params, &matrix, &error);
    int const code = status == OOMSIGHT_OK ? run_all(given, matrix) : fail_with(&error);
    oomsight_matrix_close(matrix);
    oomsight_data_close(data);
    return code;
}

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
    unsigned long long const points = oomsight_matrix_share(run->matrix);
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
    if (run->given->merge) return;
    if (!oomsight_matrix_is_dryrun(run->matrix)) return how_far(run);
    for (size_t i = 0; i < 2; i++) /* they take minutes: whoever reads along sees each */
        if (files[i]) fflush(files[i]);
    if (run->given->quiet) return;
    progress_clear(&run->progress);
    static const char *const words[] = {"starts", "tight", "fails", "refused", "unknown"};
    char release[64];
    fprintf(stderr, "[%llu/%llu] %s on %s, %s, %s: %s", (unsigned long long)run->done,
            (unsigned long long)oomsight_matrix_share(run->matrix), point->model, point->gpu, point->flags,
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

static int exit_code(const matrix_run *run)
{
    oomsight_matrix_tally tally = OOMSIGHT_MATRIX_TALLY_INIT;
    oomsight_matrix_count(run->matrix, &tally);
    if (tally.unkept)
        fprintf(stderr, "oomsight matrix: %llu results could not be written to the cache\n",
                (unsigned long long)tally.unkept);
    if (tally.absent)
        complain(
            "oomsight matrix: %llu of %llu points are in none of the files: a shard is missing, or it did "
            "not end",
            (unsigned long long)tally.absent, (unsigned long long)tally.seen);
    if (run->part) return tally.unreadable ? EXIT_INPUT : EXIT_FITS;
    bool const bad = run->given->diff[0] ? tally.broken : tally.seen - tally.unreadable - tally.starts;
    if (bad) return EXIT_DOES_NOT_FIT;
    return tally.unreadable || tally.uncompared ? EXIT_INPUT : EXIT_FITS;
}

static int answer(matrix_run *run)
{
    const cli_options *given = run->given;
    int code = given->merge || !oomsight_matrix_is_dryrun(run->matrix) ? plan_all(run)
               : given->ray                                            ? matrix_ray(run)
                                                                       : matrix_pool(run);
    if (code) return code;
    if (!run->lines) {
        oomsight_error error = {0};
        char *text = NULL;
        oomsight_status const status = oomsight_matrix_render(run->matrix, &given->render, &text, &error);
        code = output_give(given, status, text, &error);
    }
    return code ? code : exit_code(run);
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
    matrix_run run = {
        .given = given, .matrix = matrix, .part = given->shard != NULL, .progress = progress_begin(given)};
    int code = EXIT_INPUT;
    if (run.part || (given->render.format == OOMSIGHT_FORMAT_JSON && !given->diff[0])) {
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

/* "3/8" is the third of eight. */
static bool shard_read(const char *text, oomsight_matrix_params *params)
{
    char *end;
    unsigned long long const at = strtoull(text, &end, 10);
    unsigned long long const of = *end == '/' ? strtoull(end + 1, &end, 10) : 0;
    if (*end || strspn(text, "0123456789/") != strlen(text) || !at || at > of) return false;
    params->shard = at - 1;
    params->shards = of;
    return true;
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
    if (given->merge ? given->shard || given->word_count < 2 : given->word_count > 1) {
        complain("oomsight matrix: %s", !given->merge ? "one FILE; lines of shards are read with --merge"
                                        : given->shard
                                            ? "--shard makes what --merge reads: one of the two"
                                            : "--merge FILE POINTS...: which files have the points?");
        return EXIT_USAGE;
    }
    if (given->logs && mkdir(given->logs, 0777) != 0 && errno != EEXIST) {
        complain("oomsight matrix: --logs %s: %s", given->logs, strerror(errno));
        return EXIT_INPUT;
    }
    oomsight_matrix_params params = OOMSIGHT_MATRIX_PARAMS_INIT;
    if (given->shard && !shard_read(given->shard, &params)) {
        complain("oomsight matrix: --shard %s: I/N is the I-th of N, such as 1/8", given->shard);
        return EXIT_USAGE;
    }
    if (oomsight_data_open(given->data, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    params.data = data;
    params.path = given->words[0];
    params.parts = (const char *const *)given->words + 1;
    params.part_count = (size_t)given->word_count - 1;
    params.from_version = given->diff[0];
    params.to_version = given->diff[1];
    if (given->moved.given) params.moved_ratio = given->moved.number / 100;
    params.models_dir = given->models;
    params.allow_hub = !given->offline;
    params.mode = given->mode;
    params.threads = (unsigned)given->threads.number;
    params.engines = given->engine;
    params.engine_count = given->engine_count;
    params.lines = given->points || given->shard || given->render.format == OOMSIGHT_FORMAT_JSON;
    cache_settle(given, &params);
    oomsight_asker asker = {0};
    if (given->exact && plan_asker_open(given, data, &asker)) params.asker = &asker;
    oomsight_status const status = oomsight_matrix_open(&params, &matrix, &error);
    bool const mixed = status == OOMSIGHT_OK && given->exact && oomsight_matrix_is_dryrun(matrix);
    if (mixed) fputs("oomsight matrix: --exact is for plans: a dry run is the engine's own answer\n", stderr);
    int const code = mixed ? EXIT_USAGE : status == OOMSIGHT_OK ? run_all(given, matrix) : fail_with(&error);
    oomsight_matrix_close(matrix);
    plan_asker_close(&asker);
    oomsight_data_close(data);
    return code;
}

/* oomsight matrix: models x GPUs x flags x engine versions, each planned or dry-started. */
#include "dryrun.h"
#include "matrix.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDENTITIES_MAX = 64 };

static const char help[] =
    "usage: oomsight matrix [options] FILE\n\n"
    "Every combination of the models, GPUs, flags and engine versions in FILE (YAML, "
    "docs/formats/matrix.md), planned\n"
    "or dry-started.\n\n"
    "  --diff OLD NEW        compare two versions: what an upgrade breaks, mends and moves\n"
    "  --moved PERCENT       a change of KV tokens that is told (5)\n"
    "  --models DIR          where models lie that FILE names (DIR/org/name or DIR/name)\n"
    "  --offline             never ask the hub; --insecure: HF_TOKEN over http://, too\n"
    "  --mode plan|dryrun    in place of what FILE says\n"
    "  --threads N           that plan (one per core)\n"
    "  --points FILE         also write every point there, one line of JSON each\n"
    "  --cache DIR           keep results in DIR and find them again; --no-cache: neither (dry starts are "
    "kept in\n"
    "                        ~/.cache/oomsight/matrix unless told otherwise, plans are not)\n\n"
    "dry starts:\n"
    "  --engine VERSION=DIR  the environment of that engine (DIR/bin/vllm); any number of times\n"
    "  --jobs N              at a time (one per two cores and 4 GiB of free memory)\n"
    "  --retries N           of a start whose process was killed (2)\n"
    "  --timeout SECONDS     of one start (1800)\n"
    "  --under 'WORDS'       in front of every start, e.g. 'nice -n 19'\n"
    "  --logs DIR            keep the log of every start\n"
    "  --ray ADDRESS         hand them to Ray (auto, HOST:PORT, ray://...); --python PROGRAM that has ray\n"
    "  --quiet               no progress\n\n"
    "  --json (one line a point; with --diff one document), --format text|json|md|html|junit, --output "
    "FILE,\n"
    "  --color WHEN, --data DIR\n\n"
    "Exit: 0 all start (--diff: nothing that started stops starting), 1 one does not, 2 wrong usage, 3 FILE "
    "or a model\n"
    "could not be read, or a point has no answer.\n";

static int take_number(const char *option, const char *value, unsigned most, unsigned *ret_number)
{
    char *end;
    unsigned long const number = strtoul(value, &end, 10);
    if (*value >= '0' && *value <= '9' && !*end && number <= most) return *ret_number = (unsigned)number, 1;
    complain("oomsight matrix: %s takes a number up to %u, not '%s'", option, most, value);
    return -1;
}

static int take_moved(const char *value, double *ret_ratio)
{
    char *end;
    double const percent = strtod(value, &end);
    if (end != value && !*end && isfinite(percent) && percent >= 0) return *ret_ratio = percent / 100, 1;
    complain("oomsight matrix: --moved takes a percentage, not '%s'", value);
    return -1;
}

static int take_diff(matrix_options *options, int argc, char **argv, int *at)
{
    if (*at + 2 >= argc || argv[*at + 1][0] == '-' || argv[*at + 2][0] == '-') {
        fputs("oomsight matrix: --diff takes two versions: --diff 0.19.1 0.32.0\n", stderr);
        return -1;
    }
    options->params.from_version = argv[*at + 1];
    options->params.to_version = argv[*at + 2];
    *at += 3;
    if (strcmp(options->params.from_version, options->params.to_version) != 0) return 1;
    fputs("oomsight matrix: --diff takes two different versions\n", stderr);
    return -1;
}

static int take_mode(const char *value, const char **ret_mode)
{
    *ret_mode = value;
    if (strcmp(value, "plan") == 0 || strcmp(value, "dryrun") == 0) return 1;
    complain("oomsight matrix: --mode takes plan or dryrun, not '%s'", value);
    return -1;
}

/* Plain words: no quotes, no variables. */
static int take_under(matrix_options *options, const char *value)
{
    char *words = strdup(value), *rest = NULL; /* lives as long as the program */
    size_t count = 0;
    for (char *word = words ? strtok_r(words, " \t", &rest) : NULL; word && count < MATRIX_UNDER;
         word = strtok_r(NULL, " \t", &rest))
        options->under[count++] = word;
    return 1;
}

static int take_engine(matrix_options *options, const char *value)
{
    if (options->params.engine_count == MATRIX_ENGINES) {
        fputs("oomsight matrix: too many engines\n", stderr);
        return -1;
    }
    options->engines[options->params.engine_count++] = value;
    return 1;
}

static int take_option(matrix_options *options, int argc, char **argv, int *at)
{
    bool wrong = false;
    const char *value;
    oomsight_matrix_params *params = &options->params;
    if (strcmp(argv[*at], "--diff") == 0) return take_diff(options, argc, argv, at);
    if (strcmp(argv[*at], "--offline") == 0) return params->allow_hub = 0, ++*at, 1;
    if (take_insecure(argv[*at])) return ++*at, 1;
    if (strcmp(argv[*at], "--no-cache") == 0) return options->no_cache = true, ++*at, 1;
    if (strcmp(argv[*at], "--quiet") == 0) return options->quiet = true, ++*at, 1;
    if ((value = option_value("--moved", argc, argv, at, &wrong)))
        return take_moved(value, &params->moved_ratio);
    if ((value = option_value("--models", argc, argv, at, &wrong))) return params->models_dir = value, 1;
    if ((value = option_value("--mode", argc, argv, at, &wrong))) return take_mode(value, &params->mode);
    if ((value = option_value("--threads", argc, argv, at, &wrong)))
        return take_number("--threads", value, 256, &params->threads);
    if ((value = option_value("--points", argc, argv, at, &wrong))) return options->points_path = value, 1;
    if ((value = option_value("--cache", argc, argv, at, &wrong))) return params->cache_dir = value, 1;
    if ((value = option_value("--engine", argc, argv, at, &wrong))) return take_engine(options, value);
    if ((value = option_value("--jobs", argc, argv, at, &wrong)))
        return take_number("--jobs", value, 256, &options->jobs);
    if ((value = option_value("--retries", argc, argv, at, &wrong)))
        return take_number("--retries", value, 100, &options->retries);
    if ((value = option_value("--timeout", argc, argv, at, &wrong)))
        return take_number("--timeout", value, 1000000, &options->timeout_seconds);
    if ((value = option_value("--under", argc, argv, at, &wrong))) return take_under(options, value);
    if ((value = option_value("--logs", argc, argv, at, &wrong))) return options->logs_dir = value, 1;
    if ((value = option_value("--ray", argc, argv, at, &wrong))) return options->ray = value, 1;
    if ((value = option_value("--python", argc, argv, at, &wrong))) return options->python = value, 1;
    return wrong ? -1 : 0;
}

/* 0, -1 wrong usage, -2 help was asked for */
static int read_options(matrix_options *options, int argc, char **argv)
{
    for (int at = 0; at < argc;) {
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            fputs(help, stdout);
            return -2;
        }
        int taken = output_options_take(&options->output, argc, argv, &at);
        if (taken == 0) taken = take_option(options, argc, argv, &at);
        if (taken < 0) return -1;
        if (taken > 0) continue;
        if (argv[at][0] == '-' || options->params.path) {
            fprintf(stderr,
                    argv[at][0] == '-' ? "oomsight matrix: no option '%s'\n"
                                       : "oomsight matrix: one file at a time; '%s' is a second\n",
                    argv[at]);
            return -1;
        }
        options->params.path = argv[at++];
    }
    if (options->params.path) return 0;
    fputs("oomsight matrix: which file? oomsight matrix fleet.yaml\n", stderr);
    return -1;
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
    if (!oomsight_matrix_is_dryrun(run->matrix)) return;
    for (size_t i = 0; i < 2; i++) /* they take minutes: whoever reads along sees each */
        if (files[i]) fflush(files[i]);
    if (run->options->quiet) return;
    static const char *const words[] = {"fits", "tight", "fails", "refused", "unknown"};
    fprintf(stderr, "[%llu/%llu] %s on %s, %s, vLLM %s: %s", (unsigned long long)run->done,
            (unsigned long long)oomsight_matrix_points(run->matrix), point->model, point->gpu, point->flags,
            point->version, point->readable ? words[point->verdict] : "no answer");
    if (point->phase) fprintf(stderr, " in %s", point->phase);
    if ((!point->readable || point->verdict == OOMSIGHT_VERDICT_UNKNOWN) && point->why)
        fprintf(stderr, ": %s", point->why);
    fputs(point->cached ? " (kept from before)" : "", stderr);
    if (!point->cached) fprintf(stderr, " (%.0f s)", point->seconds);
    fputc('\n', stderr);
}

static int plan_all(matrix_run *run)
{
    for (;;) {
        oomsight_error error = {0};
        const oomsight_matrix_point *point = NULL;
        if (oomsight_matrix_next(run->matrix, &point, &error) != OOMSIGHT_OK) return fail_with(&error);
        if (!point || run->unwritten) return 0;
        matrix_tell(run, point);
    }
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
    const matrix_options *options = run->options;
    bool const diff = options->params.from_version != NULL;
    int code = !oomsight_matrix_is_dryrun(run->matrix) ? plan_all(run)
               : options->ray                          ? matrix_ray(run)
                                                       : matrix_pool(run);
    if (code) return code;
    if (!run->lines) {
        oomsight_error error = {0};
        char *text = NULL;
        if (oomsight_matrix_render(run->matrix, &options->output.render, &text, &error) != OOMSIGHT_OK)
            return fail_with(&error);
        code = output_write(&options->output, text);
        oomsight_text_free(text);
    }
    return code ? code : exit_code(run->matrix, diff);
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

static int run_all(const matrix_options *options, oomsight_matrix *matrix)
{
    matrix_run run = {.options = options, .matrix = matrix};
    int code = EXIT_INPUT;
    if (options->params.lines && options->output.render.format == OOMSIGHT_FORMAT_JSON &&
        !options->params.from_version) {
        run.lines = options->output.output_path ? file_open(options->output.output_path) : stdout;
        if (!run.lines) return EXIT_INPUT;
    }
    if (options->points_path && !(run.points = file_open(options->points_path))) goto out;
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
static void cache_settle(matrix_options *options)
{
    static char folder[4096], paths[IDENTITIES_MAX][1024];
    static const char *list[IDENTITIES_MAX];
    oomsight_matrix_params *params = &options->params;
    if (options->no_cache) {
        params->cache_dir = NULL;
        return;
    }
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

int cmd_matrix(int argc, char **argv)
{
    matrix_options options = {.params = OOMSIGHT_MATRIX_PARAMS_INIT, .timeout_seconds = 1800, .retries = 2};
    output_options_init(&options.output);
    options.params.allow_hub = 1;
    int const read = read_options(&options, argc, argv);
    if (read == -2) return 0;
    if (read < 0) return EXIT_USAGE;
    output_options_settle(&options.output);

    oomsight_error error = {0};
    oomsight_data *data = NULL;
    oomsight_matrix *matrix = NULL;
    if (oomsight_data_open(options.output.data_dir, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    options.params.data = data;
    options.params.engines = options.engines;
    options.params.lines =
        options.points_path != NULL || options.output.render.format == OOMSIGHT_FORMAT_JSON;
    cache_settle(&options);
    int code;
    if (oomsight_matrix_open(&options.params, &matrix, &error) != OOMSIGHT_OK)
        code = fail_with(&error);
    else
        code = run_all(&options, matrix);
    oomsight_matrix_close(matrix);
    oomsight_data_close(data);
    return code;
}

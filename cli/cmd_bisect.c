/* oomsight bisect: the release with which the answer to a command moved, by plan or by dry starts. */
#include "matrix.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { BISECT_ENVIRONMENT = 64, BISECT_WORDS = 512 };

typedef struct bisect_options {
    matrix_options matrix; /* how a dry start is made */
    output_options output;
    oomsight_plan_params plan;
    oomsight_bisect_params params;
    const char *versions[MATRIX_ENGINES], *folders[MATRIX_ENGINES]; /* of --engine */
    const char *environment[BISECT_ENVIRONMENT];
    const char *total, *used;
    bool dryrun;
} bisect_options;

static const char help[] =
    "usage: oomsight bisect --good A --bad B [options] -- vllm serve MODEL [vllm flags...]\n\n"
    "The release between A and B with which the command stopped starting, began to start, needs another size "
    "or has\n"
    "another number of KV tokens; either may be the older. Every release between them is planned, and what "
    "moved there\n"
    "is printed.\n\n"
    "  --good VERSION, --bad VERSION\n"
    "  --moved PERCENT       a change of KV tokens or of the failing phase's need that is told (2)\n"
    "  --dryrun              start the real engines instead, by halves\n"
    "  --engine VERSION=DIR  with --dryrun: the environment of that engine (DIR/bin/vllm); any number of "
    "times\n"
    "  --timeout SECONDS     of one dry start (1800)\n"
    "  --gpu NAME[xN], --gpu-total SIZE, --gpu-used SIZE, --gpu-cc X.Y, --env NAME=VALUE, --offline, "
    "--insecure\n"
    "                        as for 'oomsight plan'\n"
    "  --json, --format text|json, --output FILE, --color auto|always|never, --ascii, --lang en|zh, --data "
    "DIR\n\n"
    "Exit: 0 found, 1 nothing moved, 2 wrong usage, 3 an input could not be read or an end has no answer.\n";

static int take_moved(const char *value, double *ret_ratio)
{
    char *end;
    double const percent = strtod(value, &end);
    if (end != value && !*end && percent > 0 && percent <= 100) return *ret_ratio = percent / 100, 1;
    complain("oomsight bisect: --moved takes a percentage, not '%s'", value);
    return -1;
}

/* VERSION=DIR; the copy lives as long as the program. */
static int take_engine(bisect_options *options, const char *value)
{
    char *word = strdup(value), *equals = word ? strchr(word, '=') : NULL;
    if (!equals || equals == word || !equals[1] || options->params.only_count == MATRIX_ENGINES) {
        complain("oomsight bisect: --engine takes VERSION=DIR, not '%s'", value);
        free(word);
        return -1;
    }
    *equals = '\0';
    options->folders[options->params.only_count] = equals + 1;
    options->versions[options->params.only_count++] = word;
    return 1;
}

static int take_timeout(const char *value, unsigned *ret_seconds)
{
    char *end;
    unsigned long const seconds = strtoul(value, &end, 10);
    if (*value >= '0' && *value <= '9' && !*end && seconds && seconds <= 1000000)
        return *ret_seconds = (unsigned)seconds, 1;
    complain("oomsight bisect: --timeout takes seconds, not '%s'", value);
    return -1;
}

static int take_environment(bisect_options *options, const char *value)
{
    if (strchr(value, '=') && options->plan.environment_count < BISECT_ENVIRONMENT) {
        options->environment[options->plan.environment_count++] = value;
        return 1;
    }
    complain("oomsight bisect: --env takes NAME=VALUE, at most %d times", BISECT_ENVIRONMENT);
    return -1;
}

static int take_option(void *given, int argc, char **argv, int *at)
{
    bisect_options *options = given;
    bool wrong = false;
    const char *value;
    oomsight_plan_params *plan = &options->plan;
    if (strcmp(argv[*at], "--dryrun") == 0) return options->dryrun = true, ++*at, 1;
    if (strcmp(argv[*at], "--offline") == 0) return plan->allow_hub = 0, ++*at, 1;
    if (take_insecure(argv[*at])) return ++*at, 1;
    if ((value = option_value("--good", argc, argv, at, &wrong))) return options->params.good = value, 1;
    if ((value = option_value("--bad", argc, argv, at, &wrong))) return options->params.bad = value, 1;
    if ((value = option_value("--moved", argc, argv, at, &wrong)))
        return take_moved(value, &options->params.moved_ratio);
    if ((value = option_value("--engine", argc, argv, at, &wrong))) return take_engine(options, value);
    if ((value = option_value("--timeout", argc, argv, at, &wrong)))
        return take_timeout(value, &options->matrix.timeout_seconds);
    if ((value = option_value("--gpu-total", argc, argv, at, &wrong)))
        return options->total = value, size_value("bisect", "--gpu-total", value, &plan->gpu_total_bytes);
    if ((value = option_value("--gpu-used", argc, argv, at, &wrong))) {
        options->used = value;
        plan->gpu_used_known = 1;
        return size_value("bisect", "--gpu-used", value, &plan->gpu_used_bytes);
    }
    if ((value = capability_value(argc, argv, at, &wrong))) return plan->compute_capability = value, 1;
    if ((value = option_value("--gpu", argc, argv, at, &wrong))) return plan->gpu = value, 1;
    if ((value = option_value("--env", argc, argv, at, &wrong))) return take_environment(options, value);
    return wrong ? -1 : 0;
}

/* 0, -1 wrong usage, -2 help was asked for */
static int read_options(bisect_options *options, int argc, char **argv)
{
    command_line const line = {.name = "bisect",
                               .help = help,
                               .what = "engine flags go",
                               .example = "oomsight bisect --good A --bad B -- vllm serve MODEL",
                               .output = &options->output,
                               .take = take_option,
                               .options = options};
    int const at = command_line_read(&line, argc, argv);
    if (at < 0) return at;
    options->plan.command = (const char *const *)(argv + at);
    options->plan.command_count = (size_t)(argc - at);
    options->plan.environment = options->environment;
    options->params.only = options->versions;
    const char *missing = !options->params.good || !options->params.bad
                              ? "--good and --bad are releases, both are needed"
                          : options->dryrun && !options->params.only_count
                              ? "--dryrun needs the environments: --engine 0.19.1=DIR, for each release"
                          : !options->dryrun && options->params.only_count ? "--engine is for --dryrun"
                                                                           : NULL;
    if (!missing) return 0;
    fprintf(stderr, "oomsight bisect: %s\n", missing);
    return -1;
}

static const char *folder_of(const bisect_options *options, const char *version)
{
    for (size_t i = 0; i < options->params.only_count; i++)
        if (strcmp(options->versions[i], version) == 0) return options->folders[i];
    return NULL;
}

static size_t dryrun_words(const bisect_options *options, const char *words[BISECT_WORDS])
{
    const oomsight_plan_params *plan = &options->plan;
    const char *const pairs[][2] = {{"--gpu", plan->gpu},
                                    {"--gpu-total", options->total},
                                    {"--gpu-used", options->used},
                                    {"--gpu-cc", plan->compute_capability}};
    size_t count = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][1]) {
            words[count++] = pairs[i][0];
            words[count++] = pairs[i][1];
        }
    words[count++] = "--";
    for (size_t i = 0; i < plan->command_count && count < BISECT_WORDS; i++)
        words[count++] = plan->command[i];
    return count;
}

/* One release, started for real. */
static int start(const bisect_options *options, oomsight_bisect *bisect, const char *version)
{
    const char *words[BISECT_WORDS];
    oomsight_matrix_task const task = {.size = sizeof task,
                                       .words = words,
                                       .word_count = dryrun_words(options, words),
                                       .environment = options->environment,
                                       .environment_count = options->plan.environment_count,
                                       .engine = folder_of(options, version)};
    matrix_child child = {0};
    matrix_outcome outcome = {0};
    int status = 0;
    fprintf(stderr, "oomsight bisect: starting vLLM %s\n", version);
    if (!matrix_child_start(&options->matrix, &task, 0, &child)) {
        fputs("oomsight bisect: no process for a dry start\n", stderr);
        return EXIT_OUR_FAULT;
    }
    while (waitpid(child.pid, &status, 0) < 0) continue;
    matrix_child_end(&child, status, &outcome);
    oomsight_error error = {0};
    oomsight_status const taken = oomsight_bisect_answer(bisect, version, outcome.report,
                                                         outcome.problem[0] ? outcome.problem : NULL, &error);
    if (!outcome.report) complain("oomsight bisect: vLLM %s gave no answer: %s", version, outcome.problem);
    free(outcome.report);
    return taken == OOMSIGHT_OK ? 0 : fail_with(&error);
}

static int answer(const bisect_options *options, oomsight_bisect *bisect)
{
    oomsight_error error = {0};
    char *text = NULL;
    for (const char *version; options->dryrun && (version = oomsight_bisect_next(bisect));) {
        int const code = start(options, bisect, version);
        if (code) return code;
    }
    if (oomsight_bisect_render(bisect, &options->output.render, &text, &error) != OOMSIGHT_OK)
        return fail_with(&error);
    int const code = output_write(&options->output, text);
    oomsight_text_free(text);
    return code ? code : oomsight_bisect_found(bisect) ? EXIT_FITS : EXIT_DOES_NOT_FIT;
}

int cmd_bisect(int argc, char **argv)
{
    bisect_options options = {.plan = OOMSIGHT_PLAN_PARAMS_INIT,
                              .params = OOMSIGHT_BISECT_PARAMS_INIT,
                              .matrix = {.timeout_seconds = 1800}};
    output_options_init(&options.output);
    options.plan.allow_hub = 1;
    int const read = read_options(&options, argc, argv);
    if (read == -2) return 0;
    if (read < 0) return EXIT_USAGE;
    output_options_settle(&options.output);
    options.matrix.output.data_dir = options.output.data_dir;

    oomsight_error error = {0};
    oomsight_data *data = NULL;
    oomsight_bisect *bisect = NULL;
    if (oomsight_data_open(options.output.data_dir, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    options.plan.data = data;
    options.params.plan = &options.plan;
    options.params.by_report = options.dryrun;
    int code;
    if (oomsight_bisect_create(&options.params, &bisect, &error) != OOMSIGHT_OK)
        code = fail_with(&error);
    else
        code = answer(&options, bisect);
    oomsight_bisect_free(bisect);
    oomsight_data_close(data);
    return code;
}

/* oomsight bisect: the release with which the answer to a command moved, by plan or by dry starts. */
#include "cmd_matrix.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { BISECT_WORDS = 512 };

typedef struct bisect_options {
    const cli_options *given;
    oomsight_plan_params plan;
    oomsight_bisect_params params;
    const char *versions[MATRIX_ENGINES], *folders[MATRIX_ENGINES]; /* of --engine */
} bisect_options;

/* VERSION=DIR; the copy lives as long as the program. */
static bool take_engine(bisect_options *bisect, const char *value)
{
    char *word = strdup(value), *equals = word ? strchr(word, '=') : NULL;
    if (!equals || equals == word || !equals[1]) {
        complain("oomsight bisect: --engine takes VERSION=DIR, not '%s'", value);
        free(word);
        return false;
    }
    *equals = '\0';
    bisect->folders[bisect->params.only_count] = equals + 1;
    bisect->versions[bisect->params.only_count++] = word;
    return true;
}

static bool take_options(bisect_options *bisect)
{
    const cli_options *given = bisect->given;
    bisect->params.good = given->good;
    bisect->params.bad = given->bad;
    if (given->moved.given) bisect->params.moved_ratio = given->moved.number / 100;
    bisect->params.only = bisect->versions;
    for (size_t i = 0; i < given->engine_count; i++)
        if (!take_engine(bisect, given->engine[i])) return false;
    const char *missing = !given->good || !given->bad ? "--good and --bad are releases, both are needed"
                          : given->dryrun && !given->engine_count
                              ? "--dryrun needs the environments: --engine 0.19.1=DIR, for each release"
                          : !given->dryrun && given->engine_count ? "--engine is for --dryrun"
                                                                  : NULL;
    if (missing) fprintf(stderr, "oomsight bisect: %s\n", missing);
    return !missing;
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
                                    {"--gpu-total", options->given->gpu_total.text},
                                    {"--gpu-used", options->given->gpu_used.text},
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
                                       .environment = options->plan.environment,
                                       .environment_count = options->plan.environment_count,
                                       .engine = folder_of(options, version)};
    matrix_child child = {0};
    matrix_outcome outcome = {0};
    int status = 0;
    const char *const title = engine_of(options->given)->title;
    fprintf(stderr, "oomsight bisect: starting %s %s\n", title, version);
    if (!matrix_child_start(options->given, &task, 0, &child)) {
        fputs("oomsight bisect: no process for a dry run\n", stderr);
        return EXIT_OUR_FAULT;
    }
    while (waitpid(child.pid, &status, 0) < 0) continue;
    matrix_child_end(&child, status, &outcome);
    oomsight_error error = {0};
    oomsight_status const taken = oomsight_bisect_answer(bisect, version, outcome.report,
                                                         outcome.problem[0] ? outcome.problem : NULL, &error);
    if (!outcome.report)
        complain("oomsight bisect: %s %s gave no answer: %s", title, version, outcome.problem);
    free(outcome.report);
    return taken == OOMSIGHT_OK ? 0 : fail_with(&error);
}

static int answer(const bisect_options *options, oomsight_bisect *bisect)
{
    oomsight_error error = {0};
    char *text = NULL;
    for (const char *version; options->given->dryrun && (version = oomsight_bisect_next(bisect));) {
        int const code = start(options, bisect, version);
        if (code) return code;
    }
    oomsight_status const status = oomsight_bisect_render(bisect, &options->given->render, &text, &error);
    int const code = output_give(options->given, status, text, &error);
    return code ? code : oomsight_bisect_found(bisect) ? EXIT_FITS : EXIT_DOES_NOT_FIT;
}

int cmd_bisect(cli_options *given)
{
    bisect_options options = {
        .given = given, .plan = plan_params(given), .params = OOMSIGHT_BISECT_PARAMS_INIT};
    if (!take_options(&options)) return EXIT_USAGE;

    oomsight_error error = {0};
    oomsight_data *data = NULL;
    oomsight_bisect *bisect = NULL;
    if (oomsight_data_open(given->data, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    options.plan.data = data;
    options.params.plan = &options.plan;
    options.params.by_report = given->dryrun;
    oomsight_status const status = oomsight_bisect_create(&options.params, &bisect, &error);
    int const code = status == OOMSIGHT_OK ? answer(&options, bisect) : fail_with(&error);
    oomsight_bisect_free(bisect);
    oomsight_data_close(data);
    return code;
}

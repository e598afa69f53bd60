/* oomsight explain: why did it run out, what to change. */
#include "cli.h"
#include "explain_follow.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int answer(const cli_options *given, const oomsight_explanation *explanation)
{
    oomsight_error error = {0};
    char *text = NULL;
    oomsight_status const status = oomsight_explain_render(explanation, &given->render, &text, &error);
    int const code = output_give(given, status, text, &error);
    if (code != EXIT_FITS) return code;
    oomsight_incident incident = {.size = sizeof incident};
    for (size_t i = 0; oomsight_explain_incident(explanation, i, &incident); i++)
        if (incident.is_oom) return EXIT_DOES_NOT_FIT;
    return EXIT_FITS;
}

static void tell_unreadable(const char *path, const char *why)
{
    oomsight_error error = {.status = OOMSIGHT_IO};
    snprintf(error.path, sizeof error.path, "%s", path);
    snprintf(error.text, sizeof error.text, "%s", why);
    fail_with(&error);
}

/* One of many that is not there must not hide the others: it is named, and the code says so in the end. The last one is left
 * to the library's own words. */
static size_t drop_unreadable(const char **paths, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool const last = i + 1 == count && kept == 0;
        if (last || strcmp(paths[i], "-") == 0 || access(paths[i], R_OK) == 0) {
            paths[kept++] = paths[i];
            continue;
        }
        tell_unreadable(paths[i], "cannot be read");
    }
    return kept;
}

int cmd_explain(cli_options *given)
{
    static char standard_input[] = "-";
    static const char *nothing[] = {standard_input};
    const char **paths = given->word_count ? (const char **)given->words : nothing;
    size_t const wanted = given->word_count ? (size_t)given->word_count : 1;
    if (!given->follow && !given->stream && (given->state || given->max_files.given)) {
        fputs("oomsight explain: --state and --max-files go with --follow or --stream\n", stderr);
        return EXIT_USAGE;
    }
    if (!given->follow && !given->stream && given->otlp) {
        fputs("oomsight explain: --otlp goes with --follow or --stream\n", stderr);
        return EXIT_USAGE;
    }
    if (!given->follow && given->metrics_file) {
        fputs("oomsight explain: --metrics-file goes with --follow\n", stderr);
        return EXIT_USAGE;
    }
    if (given->stream && (given->follow || wanted > 1 || strcmp(paths[0], "-") != 0)) {
        fputs("oomsight explain: --stream reads standard input alone, without --follow and FILE\n", stderr);
        return EXIT_USAGE;
    }

    oomsight_error error = {0};
    /* Not given back: the process ends, and taking apart what was read takes longer than reading a small log. */
    static oomsight_data *data;
    static oomsight_explanation *explanation;
    if (oomsight_data_open(given->data, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    if (given->stream) {
        int const code = follow_streams(given, data);
        oomsight_data_close(data);
        return code;
    }
    if (given->follow) {
        int const code = follow_logs(given, data, paths, wanted);
        oomsight_data_close(data);
        return code;
    }
    oomsight_explain_params params = OOMSIGHT_EXPLAIN_PARAMS_INIT;
    params.data = data;
    params.paths = paths;
    params.path_count = wanted > 1 ? drop_unreadable(paths, wanted) : wanted;
    params.allow_hub = given->hub && !given->offline;
    params.gpu = given->gpu;
    params.model = given->model;
    params.engine_version = LAST(given, release);
    oomsight_status const status = oomsight_explain_create(&params, &explanation, &error);
    int code = status == OOMSIGHT_OK ? answer(given, explanation) : fail_with(&error);
    bool unread = params.path_count < wanted;
    for (size_t i = 0; status == OOMSIGHT_OK && oomsight_explain_lost(explanation, i); i++, unread = true)
        tell_unreadable(oomsight_explain_lost(explanation, i),
                        "the archive is damaged or encrypted: nothing of it could be read");
    if (unread && (code == EXIT_FITS || code == EXIT_DOES_NOT_FIT)) code = EXIT_INPUT;
    return code;
}

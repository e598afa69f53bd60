/* oomsight explain: why did it run out, what to change. */
#include "cli.h"
#include "explain_follow.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATHS_MAX = 1024 };

static void print_help(void)
{
    fputs(
        "usage: oomsight explain [options] [FILE...]      '-' or nothing: standard input\n\n"
        "Reads logs in any form: plain, gz/zst/xz/bz2/tar/zip, docker, Kubernetes, journald or JSON-lines "
        "logs, pastes\n"
        "from a terminal or a forum. Says whether memory ran out, in which phase, why, and what to "
        "change.\n\n"
        "  --follow    logs that grow and are rotated: each incident as it ends, until interrupted. FILE may "
        "also be a\n"
        "              folder (/var/log/pods, docker's containers), a pattern in quotes, or '-'. With it:\n"
        "  --idle S            end when nothing has come for S seconds\n"
        "  --state DIR         keep positions here: after a restart nothing is lost, little is told twice\n"
        "  --metrics PORT      Prometheus metrics on 127.0.0.1, or with ADDRESS:PORT there\n"
        "  --metrics-file F    the same in a file, for a textfile collector\n"
        "  --max-files N       follow at most so many (4096)\n"
        "  --hub       the model that the log names may be fetched (config and headers), to compute fixes\n"
        "  --insecure  with --hub: send HF_TOKEN to an http:// hub on another machine\n"
        "  --gpu NAME, --model MODEL, --vllm VERSION    what the log does not tell, for fixes that are "
        "planned\n"
        "  --json, --format text|json|md|html|github|sarif, --output FILE, --color, --ascii, --lang en|zh, "
        "--explain, "
        "--data "
        "DIR\n\n"
        "Exit: 0 no OOM found, 1 an OOM was found, 2 wrong usage, 3 an input could not be read.\n",
        stdout);
}

static int answer(const output_options *options, const oomsight_explanation *explanation)
{
    oomsight_error error = {0};
    char *text = NULL;
    if (oomsight_explain_render(explanation, &options->render, &text, &error) != OOMSIGHT_OK)
        return fail_with(&error);
    int const code = output_write(options, text);
    oomsight_text_free(text);
    if (code != EXIT_FITS) return code;
    for (size_t i = 0; i < oomsight_explain_count(explanation); i++)
        if (oomsight_explain_is_oom(explanation, i)) return EXIT_DOES_NOT_FIT;
    return EXIT_FITS;
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
        oomsight_error error = {0};
        snprintf(error.path, sizeof error.path, "%s", paths[i]);
        snprintf(error.text, sizeof error.text, "cannot be read");
        error.status = OOMSIGHT_IO;
        fail_with(&error);
    }
    return kept;
}

int cmd_explain(int argc, char **argv)
{
    output_options options;
    output_options_init(&options);
    const char *paths[PATHS_MAX];
    size_t path_count = 0;
    const char *gpu = NULL, *model = NULL, *version = NULL;
    follow_options growing = {.idle_ms = -1};
    for (int at = 0; at < argc;) {
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            print_help();
            return 0;
        }
        if (strcmp(argv[at], "--hub") == 0) {
            growing.hub = true;
            at++;
            continue;
        }
        if (take_insecure(argv[at])) {
            at++;
            continue;
        }
        const struct {
            const char *name;
            const char **to;
        } given[] = {{"--gpu", &gpu}, {"--model", &model}, {"--vllm", &version}};
        bool took = false;
        for (size_t i = 0; i < sizeof given / sizeof *given && !took; i++) {
            if (strcmp(argv[at], given[i].name) != 0) continue;
            if (at + 1 == argc) {
                fprintf(stderr, "oomsight explain: %s wants a value\n", given[i].name);
                return EXIT_USAGE;
            }
            *given[i].to = argv[at + 1];
            at += 2;
            took = true;
        }
        if (took) continue;
        int const followed = follow_options_take(&growing, argc, argv, &at);
        if (followed < 0) return EXIT_USAGE;
        if (followed > 0) continue;
        int const taken = output_options_take(&options, argc, argv, &at);
        if (taken < 0) return EXIT_USAGE;
        if (taken > 0) continue;
        if (argv[at][0] == '-' && argv[at][1] != '\0') {
            complain("oomsight explain: no option '%s'", argv[at]);
            return EXIT_USAGE;
        }
        if (path_count == PATHS_MAX) {
            fprintf(stderr, "oomsight explain: more than %d files\n", PATHS_MAX);
            return EXIT_USAGE;
        }
        paths[path_count++] = argv[at++];
    }
    if (!growing.on &&
        (growing.state_dir || growing.metrics_address || growing.metrics_file || growing.most_files)) {
        fputs("oomsight explain: --state, --metrics, --metrics-file and --max-files go with --follow\n",
              stderr);
        return EXIT_USAGE;
    }
    if (path_count == 0) paths[path_count++] = "-";
    output_options_settle(&options);

    oomsight_error error = {0};
    oomsight_data *data = NULL;
    if (oomsight_data_open(options.data_dir, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    if (growing.on) {
        int const code = follow_logs(&options, &growing, data, paths, path_count);
        oomsight_data_close(data);
        return code;
    }
    size_t const wanted = path_count;
    if (path_count > 1) path_count = drop_unreadable(paths, path_count);
    oomsight_explain_params params = OOMSIGHT_EXPLAIN_PARAMS_INIT;
    params.data = data;
    params.paths = paths;
    params.path_count = path_count;
    params.allow_hub = growing.hub;
    params.gpu = gpu;
    params.model = model;
    params.engine_version = version;
    oomsight_explanation *explanation = NULL;
    oomsight_status const status = oomsight_explain_create(&params, &explanation, &error);
    int code = status == OOMSIGHT_OK ? answer(&options, explanation) : fail_with(&error);
    if (path_count < wanted && (code == EXIT_FITS || code == EXIT_DOES_NOT_FIT)) code = EXIT_INPUT;
    oomsight_explain_free(explanation);
    oomsight_data_close(data);
    return code;
}

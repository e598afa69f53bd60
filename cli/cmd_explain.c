/* oomsight explain: why did it run out, what to change. */
#include "cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATHS_MAX = 1024 };

static void print_help(void)
{
    fputs("usage: oomsight explain [options] [FILE...]      '-' or nothing: standard input\n\n"
          "Reads logs in any form: plain, gz/zst/xz/bz2/tar/zip, docker, Kubernetes, journald or JSON-lines "
          "logs, pastes\n"
          "from a terminal or a forum. Says whether memory ran out, in which phase, why, and what to "
          "change.\n\n"
          "  --follow    one FILE that grows (also when it is rotated): each incident as it ends, until "
          "interrupted\n"
          "  --idle S    with --follow: end when nothing has come for S seconds\n"
          "  --hub       the model that the log names may be fetched (config and headers), to compute fixes\n"
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

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

/* Each incident when it has ended: at the next start, when the engine went on, or after a second of silence. */
static int follow(const output_options *options, const oomsight_data *data, const char *path, bool hub,
                  long idle_ms)
{
    enum { POLL_MS = 100, SETTLE_MS = 1000 };
    oomsight_error error = {0};
    oomsight_follow *log = NULL;
    oomsight_follow_params params = OOMSIGHT_FOLLOW_PARAMS_INIT;
    params.data = data;
    params.path = path;
    params.allow_hub = hub;
    if (oomsight_follow_open(&params, &log, &error) != OOMSIGHT_OK) return fail_with(&error);
    struct sigaction const action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int code = EXIT_FITS;
    for (long quiet_ms = 0; code < EXIT_USAGE && !interrupted && (idle_ms < 0 || quiet_ms <= idle_ms);) {
        const oomsight_explanation *ended = NULL;
        uint64_t bytes = 0;
        int const settle = quiet_ms >= SETTLE_MS && quiet_ms < SETTLE_MS + POLL_MS;
        if (oomsight_follow_poll(log, settle, &bytes, &ended, &error) != OOMSIGHT_OK) {
            code = fail_with(&error);
            break;
        }
        if (ended) {
            int const answered = answer(options, ended);
            fflush(stdout);
            if (answered > code) code = answered;
        }
        quiet_ms = bytes ? 0 : quiet_ms + POLL_MS;
        struct timespec const pause = {.tv_nsec = bytes ? 0 : POLL_MS * 1000000L};
        nanosleep(&pause, NULL);
    }
    oomsight_follow_close(log);
    return code;
}

int cmd_explain(int argc, char **argv)
{
    output_options options;
    output_options_init(&options);
    const char *paths[PATHS_MAX];
    size_t path_count = 0;
    bool hub = false, growing = false;
    long idle_ms = -1;
    for (int at = 0; at < argc;) {
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            print_help();
            return 0;
        }
        if (strcmp(argv[at], "--hub") == 0) {
            hub = true;
            at++;
            continue;
        }
        if (strcmp(argv[at], "--follow") == 0) {
            growing = true;
            at++;
            continue;
        }
        bool wrong = false;
        const char *idle = option_value("--idle", argc, argv, &at, &wrong);
        if (wrong) return EXIT_USAGE;
        if (idle) {
            idle_ms = strtol(idle, NULL, 10) * 1000;
            continue;
        }
        int const taken = output_options_take(&options, argc, argv, &at);
        if (taken < 0) return EXIT_USAGE;
        if (taken > 0) continue;
        if (argv[at][0] == '-' && argv[at][1] != '\0') {
            fprintf(stderr, "oomsight explain: no option '%s'\n", argv[at]);
            return EXIT_USAGE;
        }
        if (path_count == PATHS_MAX) {
            fprintf(stderr, "oomsight explain: more than %d files\n", PATHS_MAX);
            return EXIT_USAGE;
        }
        paths[path_count++] = argv[at++];
    }
    if (growing && (path_count != 1 || strcmp(paths[0], "-") == 0)) {
        fputs("oomsight explain: --follow takes one file\n", stderr);
        return EXIT_USAGE;
    }
    if (path_count == 0) paths[path_count++] = "-";
    output_options_settle(&options);

    oomsight_error error = {0};
    oomsight_data *data = NULL;
    if (oomsight_data_open(options.data_dir, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    if (growing) {
        int const code = follow(&options, data, paths[0], hub, idle_ms);
        oomsight_data_close(data);
        return code;
    }
    oomsight_explain_params params = OOMSIGHT_EXPLAIN_PARAMS_INIT;
    params.data = data;
    params.paths = paths;
    params.path_count = path_count;
    params.allow_hub = hub;
    oomsight_explanation *explanation = NULL;
    oomsight_status const status = oomsight_explain_create(&params, &explanation, &error);
    int const code = status == OOMSIGHT_OK ? answer(&options, explanation) : fail_with(&error);
    oomsight_explain_free(explanation);
    oomsight_data_close(data);
    return code;
}

/* oomsight check: the engine commands in deployment files, each planned against a declared GPU. */
#include "cli.h"

#include <stdio.h>

static int answer(const cli_options *given, const oomsight_check *check)
{
    oomsight_error error = {0};
    char *text = NULL;
    oomsight_status const status = oomsight_check_render(check, &given->render, &text, &error);
    int const code = output_give(given, status, text, &error);
    if (code != EXIT_FITS) return code;
    oomsight_check_result result = {.size = sizeof result};
    oomsight_check_result_get(check, &result);
    if (result.failing || (given->strict && (result.doubtful || result.unplanned))) return EXIT_DOES_NOT_FIT;
    return result.unplanned ? EXIT_INPUT : EXIT_FITS;
}

static void told(void *progress, const char *path, size_t at, size_t of)
{
    cli_progress *shown = progress;
    if (progress_due(shown))
        progress_show(shown, "planning command %zu of %zu, %.0f s passed: %s", at, of,
                      seconds_since_boot() - shown->since, path);
}

int cmd_check(cli_options *given)
{
#if OOMSIGHT_PROCESSES
    if (given->python && !given->exact) {
        fputs("oomsight check: --python is for --exact\n", stderr);
        return EXIT_USAGE;
    }
#endif
    oomsight_error error = {0};
    oomsight_data *data = NULL;
    oomsight_check *check = NULL;
    if (oomsight_data_open(given->data, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    oomsight_check_params params = OOMSIGHT_CHECK_PARAMS_INIT;
    cli_progress progress = progress_begin(given);
    params.data = data;
    params.paths = (const char *const *)given->words;
    params.path_count = (size_t)given->word_count;
    params.allow_hub = !given->offline;
    params.gpu = given->gpu;
    params.gpu_total_bytes = given->gpu_total.bytes;
    params.gpu_used_bytes = given->gpu_used.bytes;
    params.gpu_used_known = given->gpu_used.text != NULL;
    params.compute_capability = given->gpu_cc;
    params.engine_version = LAST(given, release);
    params.models_dir = given->models;
    oomsight_asker asker = {0};
#if OOMSIGHT_PROCESSES
    if (given->exact && !plan_asker_open(given, data, &asker)) fputs("oomsight check: no memory\n", stderr);
#endif
    oomsight_check_with const with = {
        .asker = asker.ask ? &asker : NULL, .told = told, .told_data = &progress};
    oomsight_status const status = oomsight_check_create_with(&params, &with, &check, &error);
    progress_clear(&progress);
    int const code = status == OOMSIGHT_OK ? answer(given, check) : fail_with(&error);
#if OOMSIGHT_PROCESSES
    plan_asker_close(&asker);
#endif
    oomsight_check_free(check);
    oomsight_data_close(data);
    return code;
}

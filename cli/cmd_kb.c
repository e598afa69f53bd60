/* oomsight kb: what is known of error signatures, and which flag helps in which phase. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static int show(const cli_options *given, const oomsight_data *data, const char *id)
{
    oomsight_error error = {0};
    char *text = NULL;
    oomsight_status const status = oomsight_kb_render(data, id, &given->render, &text, &error);
    return output_give(given, status, text, &error);
}

static int phases(const cli_options *given, const oomsight_data *data, const char *phase)
{
    oomsight_error error = {0};
    char *text = NULL;
    oomsight_status const status = oomsight_kb_phases(
        data, phase, given->engine_count ? given->engine[0] : NULL, &given->render, &text, &error);
    return output_give(given, status, text, &error);
}

static int check(const cli_options *given, const oomsight_data *data, const char *fixtures)
{
    oomsight_error error = {0};
    char *text = NULL;
    size_t problems = 0;
    oomsight_status const status = oomsight_kb_check(data, fixtures, &problems, &text, &error);
    int const code = output_give(given, status, text, &error);
    return code != EXIT_FITS ? code : problems ? EXIT_DOES_NOT_FIT : EXIT_FITS;
}

int cmd_kb(cli_options *given)
{
    const char *what = given->word_count ? given->words[0] : "list";
    const char *word = given->word_count > 1 ? given->words[1] : NULL;
    bool const needs_word = strcmp(what, "show") == 0 || strcmp(what, "test") == 0;
    bool const by_phase = strcmp(what, "phases") == 0;
    bool const known = needs_word || by_phase || strcmp(what, "list") == 0 || strcmp(what, "lint") == 0;
    if (!known || (needs_word && !word) || given->engine_count > by_phase) {
        fprintf(stderr, "oomsight kb: list, show ID, phases [PHASE] [--engine NAME], lint, or test DIR\n");
        return EXIT_USAGE;
    }

    oomsight_error error = {0};
    oomsight_data *data = NULL;
    if (oomsight_data_open(given->data, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    int code;
    if (strcmp(what, "lint") == 0 || strcmp(what, "test") == 0)
        code = check(given, data, word);
    else if (by_phase)
        code = phases(given, data, word);
    else
        code = show(given, data, word);
    oomsight_data_close(data);
    return code;
}

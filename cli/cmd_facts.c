/* oomsight gpus | engines | models: what is known, as a table or JSON. */
#include "cli.h"

static int show(const char *what, const cli_options *given)
{
    oomsight_error error = {0};
    oomsight_data *data = NULL;
    if (oomsight_data_open(given->data, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    char *text = NULL;
    oomsight_status const status = oomsight_data_render(data, what, &given->render, &text, &error);
    oomsight_data_close(data);
    return output_give(given, status, text, &error);
}

int cmd_gpus(cli_options *given)
{
    return show("gpus", given);
}

int cmd_engines(cli_options *given)
{
    return show("engines", given);
}

int cmd_models(cli_options *given)
{
    oomsight_error error = {0};
    oomsight_data *data = NULL;
    char *text = NULL;
    size_t count = 0;
    if (given->update) {
        oomsight_status const status = oomsight_models_update(given->update, &text, &error);
        return output_give(given, status, text, &error);
    }
    if (oomsight_data_open(given->data, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    oomsight_status const status = oomsight_models_render(data, given->word_count ? given->words[0] : NULL,
                                                          &given->render, &count, &text, &error);
    oomsight_data_close(data);
    int const code = output_give(given, status, text, &error);
    return code == EXIT_FITS && count == 0 ? EXIT_DOES_NOT_FIT : code;
}

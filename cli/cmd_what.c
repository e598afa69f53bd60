/* oomsight what: what a text is, and which command answers it. */
#include "cli.h"

int cmd_what(cli_options *given)
{
    oomsight_error error = {0};
    oomsight_data *data = NULL;
    char *text = NULL;
    if (oomsight_data_open(given->data, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    const char *path = given->word_count ? given->words[0] : "-";
    oomsight_status const status = oomsight_what_render(data, path, &given->render, &text, &error);
    int const code = output_give(given, status, text, &error);
    oomsight_data_close(data);
    return code;
}

/* oomsight gpus | engines: what is known, as a table or JSON. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static int show(const char *what, int argc, char **argv)
{
    output_options options;
    output_options_init(&options);
    for (int at = 0; at < argc;) {
        if (strcmp(argv[at], "--help") == 0) {
            printf("usage: oomsight %s [--json] [--output FILE] [--data DIR]\n", what);
            return 0;
        }
        int const taken = output_options_take(&options, argc, argv, &at);
        if (taken < 0) return EXIT_USAGE;
        if (taken == 0) {
            complain("oomsight %s: no option '%s'", what, argv[at]);
            return EXIT_USAGE;
        }
    }
    output_options_settle(&options);

    oomsight_error error = {0};
    oomsight_data *data = NULL;
    if (oomsight_data_open(options.data_dir, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    char *text = NULL;
    oomsight_status const status = oomsight_data_render(data, what, &options.render, &text, &error);
    oomsight_data_close(data);
    if (status != OOMSIGHT_OK) return fail_with(&error);
    int const code = output_write(&options, text);
    oomsight_text_free(text);
    return code;
}

int cmd_gpus(int argc, char **argv)
{
    return show("gpus", argc, argv);
}

int cmd_engines(int argc, char **argv)
{
    return show("engines", argc, argv);
}

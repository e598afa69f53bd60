/* oomsight doctor: this machine, ready to paste into an issue. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "usage: oomsight doctor [--json] [--output FILE]\n\n"
    "This machine, ready to paste into an issue: driver, devices and who holds their memory, RAM and the "
    "limit on it,\n"
    "/dev/shm, the versions of vLLM, PyTorch, FlashInfer and NCCL beside the Python of PATH, caches, and the "
    "environment\n"
    "variables that move memory. No secrets; no code of others is run, and what does not answer is given up "
    "after 5 seconds.\n\n"
    "  --json, --output FILE, --color auto|always|never, --lang en|zh\n\n"
    "Exit: 0 told, 1 a driver is here and does not answer as it should, 2 wrong usage.\n";

int cmd_doctor(int argc, char **argv)
{
    output_options options;
    output_options_init(&options);
    for (int at = 0; at < argc;) {
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) return fputs(help, stdout), 0;
        int const taken = output_options_take(&options, argc, argv, &at);
        if (taken > 0) continue;
        if (taken == 0) complain("oomsight doctor: no option '%s'", argv[at]);
        return EXIT_USAGE;
    }
    output_options_settle(&options);
    oomsight_error error = {0};
    oomsight_machine *machine = NULL;
    oomsight_machine_params const params = OOMSIGHT_MACHINE_PARAMS_INIT;
    char *text = NULL;
    if (oomsight_machine_open(&params, &machine, &error) != OOMSIGHT_OK) return fail_with(&error);
    int code;
    if (oomsight_machine_render(machine, &options.render, &text, &error) != OOMSIGHT_OK)
        code = fail_with(&error);
    else
        code = output_write(&options, text);
    if (code == EXIT_FITS && oomsight_machine_troubled(machine)) code = EXIT_DOES_NOT_FIT;
    oomsight_text_free(text);
    oomsight_machine_close(machine);
    return code;
}

/* oomsight doctor: this machine, ready to paste into an issue. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: oomsight doctor [--json] [--output FILE]\n"
    "       oomsight doctor --measure [--device N] [--timeout SECONDS] [--json] [--output FILE]\n\n"
    "This machine, ready to paste into an issue: driver, devices and who holds their memory, RAM and the "
    "limit on it,\n"
    "/dev/shm, the versions of vLLM, PyTorch, FlashInfer and NCCL beside the Python of PATH, caches, and the "
    "environment\n"
    "variables that move memory. No secrets; no code of others is run, and what does not answer is given up "
    "after 5 seconds.\n\n"
    "  --measure             what device N (0) itself costs: totals by every API, context, granule, CUDA "
    "graphs, communicators,\n"
    "                        beside the figures in use, and a record for data/gpus. Takes up to 1 GiB of the "
    "device for some\n"
    "                        seconds, in processes of its own that are ended after --timeout (60)\n"
    "  --json, --output FILE, --color auto|always|never, --lang en|zh\n\n"
    "Exit: 0 told, 1 a driver is here and does not answer as it should or the device could not be\n"
    "measured, 2 wrong usage.\n";

typedef struct doctor_options {
    output_options output;
    bool measure;
    unsigned device, timeout_s;
} doctor_options;

static bool take_number(const char *word, unsigned least, unsigned most, unsigned *ret_number)
{
    char *end;
    unsigned long const number = strtoul(word, &end, 10);
    if (*word < '0' || *word > '9' || *end || number < least || number > most) return false;
    *ret_number = (unsigned)number;
    return true;
}

/* 1: taken, 0: not ours, -1: told what is wrong. */
static int own_option(doctor_options *options, int argc, char **argv, int *at)
{
    const char *word = argv[*at];
    bool const device = strcmp(word, "--device") == 0;
    if (strcmp(word, "--measure") == 0) return options->measure = true, *at += 1, 1;
    if (!device && strcmp(word, "--timeout") != 0) return 0;
    if (*at + 1 >= argc || !(device ? take_number(argv[*at + 1], 0, 1023, &options->device)
                                    : take_number(argv[*at + 1], 1, 3600, &options->timeout_s)))
        return complain("oomsight doctor: %s needs a number", word), -1;
    *at += 2;
    return 1;
}

static int measure(const doctor_options *options)
{
    oomsight_error error = {0};
    oomsight_data *data = NULL;
    char *text = NULL;
    int whole = 0;
    if (oomsight_data_open(options->output.data_dir, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    oomsight_measure_params params = OOMSIGHT_MEASURE_PARAMS_INIT;
    params.data = data;
    params.device = options->device;
    params.timeout_ms = options->timeout_s * 1000;
    int code;
    if (oomsight_measure(&params, &options->output.render, &text, &whole, &error) != OOMSIGHT_OK)
        code = fail_with(&error);
    else
        code = output_write(&options->output, text);
    if (code == EXIT_FITS && !whole) code = EXIT_DOES_NOT_FIT;
    oomsight_text_free(text);
    oomsight_data_close(data);
    return code;
}

int cmd_doctor(int argc, char **argv)
{
    doctor_options options = {.timeout_s = 60};
    output_options_init(&options.output);
    for (int at = 0; at < argc;) {
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) return fputs(help, stdout), 0;
        int taken = own_option(&options, argc, argv, &at);
        if (taken == 0) taken = output_options_take(&options.output, argc, argv, &at);
        if (taken > 0) continue;
        if (taken == 0) complain("oomsight doctor: no option '%s'", argv[at]);
        return EXIT_USAGE;
    }
    output_options_settle(&options.output);
    if (options.measure) return measure(&options);
    oomsight_error error = {0};
    oomsight_machine *machine = NULL;
    oomsight_machine_params const params = OOMSIGHT_MACHINE_PARAMS_INIT;
    char *text = NULL;
    if (oomsight_machine_open(&params, &machine, &error) != OOMSIGHT_OK) return fail_with(&error);
    int code;
    if (oomsight_machine_render(machine, &options.output.render, &text, &error) != OOMSIGHT_OK)
        code = fail_with(&error);
    else
        code = output_write(&options.output, text);
    if (code == EXIT_FITS && oomsight_machine_troubled(machine)) code = EXIT_DOES_NOT_FIT;
    oomsight_text_free(text);
    oomsight_machine_close(machine);
    return code;
}

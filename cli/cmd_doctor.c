/* oomsight doctor: this machine, ready to paste into an issue. */
#include "cli.h"

static int measure(const cli_options *given)
{
    oomsight_error error = {0};
    oomsight_data *data = NULL;
    char *text = NULL;
    int whole = 0;
    if (oomsight_data_open(given->data, &data, &error) != OOMSIGHT_OK) return fail_with(&error);
    oomsight_measure_params params = OOMSIGHT_MEASURE_PARAMS_INIT;
    params.data = data;
    params.device = (unsigned)given->device.number;
    params.timeout_ms = (unsigned)number_or(given->timeout, 60) * 1000;
    oomsight_status const status = oomsight_measure(&params, &given->render, &text, &whole, &error);
    int const code = output_give(given, status, text, &error);
    oomsight_data_close(data);
    return code == EXIT_FITS && !whole ? EXIT_DOES_NOT_FIT : code;
}

int cmd_doctor(cli_options *given)
{
    oomsight_error error = {0};
    oomsight_machine *machine = NULL;
    oomsight_machine_params const params = OOMSIGHT_MACHINE_PARAMS_INIT;
    char *text = NULL;
    if (given->timeout.given && given->timeout.number < 1) {
        complain("oomsight doctor: --timeout takes at least a second");
        return EXIT_USAGE;
    }
    if (given->measure) return measure(given);
    if (given->canary) return canary_send(given);
    if (given->sink || given->state) {
        complain("oomsight doctor: --sink and --state go with --canary");
        return EXIT_USAGE;
    }
    if (oomsight_machine_open(&params, &machine, &error) != OOMSIGHT_OK) return fail_with(&error);
    oomsight_status const status = oomsight_machine_render(machine, &given->render, &text, &error);
    int code = output_give(given, status, text, &error);
    if (code == EXIT_FITS && oomsight_machine_troubled(machine)) code = EXIT_DOES_NOT_FIT;
    oomsight_machine_close(machine);
    return code;
}

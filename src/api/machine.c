/* The public face of the machine we run on. */
#include "api/api.h"
#include "report/doctor.h"

#include <stdlib.h>

enum { TIMEOUT_MS = 5000 };

oomsight_status oomsight_machine_open(const oomsight_machine_params *params, oomsight_machine **ret_machine,
                                      oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_machine_params, params);
    (void)params_denied;
    oomsight_machine *machine = calloc(1, sizeof *machine);
    if (!machine) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the machine");
    if (!oos_machine_read(params->program, !params->skip_devices,
                          params->timeout_ms ? params->timeout_ms : TIMEOUT_MS, &machine->machine)) {
        free(machine);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no process for a look at the machine");
    }
    *ret_machine = machine;
    return OOMSIGHT_OK;
}

void oomsight_machine_close(oomsight_machine *machine)
{
    free(machine);
}

int oomsight_machine_troubled(const oomsight_machine *machine)
{
    const oos_machine *m = &machine->machine;
    return !m->whole || m->nvml.state == OOS_DRIVER_FAILED || m->nvml.state == OOS_DRIVER_SILENT;
}

oomsight_status oomsight_machine_render(const oomsight_machine *machine, const oomsight_render_params *params,
                                        char **ret_text, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_render_params, params);
    oos_text text = {0};
    if (params->format == OOMSIGHT_FORMAT_JSON)
        oos_report_doctor_json(&text, &machine->machine);
    else if (params->format == OOMSIGHT_FORMAT_TEXT)
        oos_report_doctor_text(&text, &machine->machine, params);
    else
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "a machine is written as text or JSON");
    return OOS_WHOLE_TEXT(params, &text, ret_text);
}

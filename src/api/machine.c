/* The public face of the machine we run on. */
#include "api/api.h"
#include "machine/machine.h"
#include "report/report.h"

#include <stdlib.h>

enum { TIMEOUT_MS = 5000, MEASURE_MS = 60000 };

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

oomsight_status oomsight_measure(const oomsight_measure_params *params, const oomsight_render_params *render,
                                 char **ret_text, int *ret_whole, oomsight_error *reterr)
{
    OOS_TAKE_PARAMS(oomsight_measure_params, params);
    if (!params->data) return oos_fail(reterr, OOMSIGHT_USAGE, "a measurement needs the data");
    if (render->format != OOMSIGHT_FORMAT_JSON && render->format != OOMSIGHT_FORMAT_TEXT)
        return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "a measurement is written as text or JSON");
    unsigned const limit_ms = params->timeout_ms ? params->timeout_ms : MEASURE_MS;
    oos_machine *machine = calloc(1, sizeof *machine); /* NCCL lies among its packages */
    oos_measure measure;
    bool const ok = machine && oos_machine_read(NULL, false, TIMEOUT_MS, machine) &&
                    oos_measure_device(params->device, machine->installed.folder, limit_ms, &measure);
    free(machine);
    if (!ok) return oos_fail(reterr, OOMSIGHT_NOMEM, "no process for a measurement");
    uint64_t count;
    const oos_gpu *gpu =
        measure.name[0] ? oos_gpus_find(&params->data->gpus, oos_view_of(measure.name), &count) : NULL;
    oos_text text = {0};
    if (render->format == OOMSIGHT_FORMAT_JSON)
        oos_report_measure_json(&text, &measure, gpu);
    else
        oos_report_measure_text(&text, &measure, gpu, render);
    OOS_TRY(OOS_WHOLE_TEXT(params, &text, ret_text));
    *ret_whole = measure.stage == OOS_MEASURE_DONE && !measure.graph_error[0];
    return OOMSIGHT_OK;
}

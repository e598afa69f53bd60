/* From the guard's segment to figures. */
#include "run/run.h"
#include "machine/machine.h"

#include <stdlib.h>
#include <string.h>

unsigned oos_run_devices_before(oos_device_spec *ret_specs, unsigned most)
{
    unsigned filled = 0;
    oos_nvml *nvml = malloc(sizeof *nvml);
    if (!nvml) return 0;
    oos_nvml_ask(nvml);
    for (unsigned i = 0; i < nvml->device_count && filled < most; i++) {
        const oos_machine_device *d = &nvml->devices[i];
        if (d->is_slice || !d->memory_known || !d->bus_id[0]) continue;
        ret_specs[filled] = (oos_device_spec){
            .total_bytes = 1, .nvml_bytes = d->total_bytes, .before_bytes = d->used_bytes, .before_known = 1};
        memcpy(ret_specs[filled++].name, d->bus_id, sizeof d->bus_id);
    }
    free(nvml);
    return filled;
}

static void read_device(const oos_segment_device *device, oos_run_device *ret_device)
{
    const oos_device_spec *spec = &device->spec;
    unsigned highest = 0;
    for (unsigned phase = 1; phase < OOS_SEGMENT_PHASES; phase++)
        if (device->phase_peak_bytes[phase] > device->phase_peak_bytes[highest]) highest = phase;
    *ret_device = (oos_run_device){.bus_id = spec->name,
                                   .total_bytes = spec->property_bytes,
                                   .budget_bytes = spec->property_bytes ? spec->total_bytes : 0,
                                   .held_bytes = device->held_bytes,
                                   .outside_bytes = device->outside_bytes,
                                   .peak_bytes = device->peak_bytes,
                                   .refused_count = device->refused_count,
                                   .outside_known = spec->before_known != 0};
    for (unsigned owner = 0; owner < OOS_SEGMENT_OWNERS; owner++)
        for (unsigned use = 0; use < OOS_USE_COUNT; use++)
            ret_device->at_peak[use] += device->at_phase_peak[highest][owner][use];
}

static void read_processes(const oos_segment *segment, oos_run_state *state)
{
    for (unsigned p = 0; p < OOS_SEGMENT_PROCESSES; p++) {
        const oos_segment_process *process = &segment->processes[p];
        if (!process->pid) continue;
        oos_run_process *row = &state->processes[state->process_count++];
        *row = (oos_run_process){.pid = process->pid,
                                 .pinned_bytes = process->pinned_bytes,
                                 .pinned_peak_bytes = process->pinned_peak_bytes};
        for (unsigned d = 0; d < OOS_SEGMENT_DEVICES; d++) {
            row->held_bytes += process->held_bytes[d];
            row->peak_bytes += process->peak_bytes[d];
        }
        if (row->pinned_peak_bytes > state->pinned_peak_bytes)
            state->pinned_peak_bytes = row->pinned_peak_bytes;
    }
}

void oos_run_read(const oos_segment *segment, oos_run_state *ret_state)
{
    memset(ret_state, 0, sizeof *ret_state);
    for (uint32_t i = 0; i < segment->device_count && i < OOS_SEGMENT_DEVICES; i++) {
        const oos_segment_device *device = &segment->devices[i];
        if (!memchr(device->spec.name, 0, sizeof device->spec.name)) continue;
        if (device->peak_bytes || device->refused_count)
            read_device(device, &ret_state->devices[ret_state->device_count++]);
    }
    read_processes(segment, ret_state);
    ret_state->reserve_bytes = segment->reserve_bytes;
    ret_state->refused_count = segment->failure_count;
    ret_state->any_refused = segment->failure_count > 0;
    uint64_t const oldest =
        segment->failure_count > OOS_SEGMENT_FAILURES ? segment->failure_count % OOS_SEGMENT_FAILURES : 0;
    if (ret_state->any_refused) ret_state->first_refused = segment->failures[oldest];
}

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
        ret_specs[filled] = (oos_device_spec){.total_bytes = 1,
                                              .nvml_bytes = d->total_bytes,
                                              .before_bytes = d->used_bytes,
                                              .before_known = 1,
                                              .capability = d->capability};
        memcpy(ret_specs[filled].card, d->name, sizeof d->name);
        memcpy(ret_specs[filled++].name, d->bus_id, sizeof d->bus_id);
    }
    free(nvml);
    return filled;
}

static void sum_by_owner(oos_held const held, uint64_t ret_owners[OOS_SEGMENT_OWNERS])
{
    for (unsigned owner = 0; owner < OOS_SEGMENT_OWNERS; owner++) {
        ret_owners[owner] = 0;
        for (unsigned use = 0; use < OOS_USE_COUNT; use++) ret_owners[owner] += held[owner][use];
    }
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
    if (memchr(spec->card, 0, sizeof spec->card)) ret_device->card = spec->card[0] ? spec->card : NULL;
    if (spec->capability < 1000) ret_device->capability = spec->capability;
    for (unsigned owner = 0; owner < OOS_SEGMENT_OWNERS; owner++)
        for (unsigned use = 0; use < OOS_USE_COUNT; use++)
            ret_device->at_peak[use] += device->at_phase_peak[highest][owner][use];
    sum_by_owner(device->at_phase_peak[highest], ret_device->owners_at_peak);
    sum_by_owner(device->held, ret_device->owners_now);
    sum_by_owner(device->at_refusal, ret_device->owners_at_refusal);
    ret_device->refusal_outside_bytes = device->refusal_outside_bytes;
    for (unsigned phase = 0; phase < OOS_SEGMENT_PHASES; phase++) {
        ret_device->phase_bytes[phase] = device->phase_peak_bytes[phase];
        sum_by_owner(device->at_phase_peak[phase], ret_device->owners_by_phase[phase]);
    }
}

static void read_processes(const oos_segment *segment, oos_run_state *state)
{
    for (unsigned p = 0; p < OOS_SEGMENT_PROCESSES; p++) {
        const oos_segment_process *process = &segment->processes[p];
        if (!process->pid) continue;
        oos_run_process *row = &state->processes[state->process_count++];
        *row = (oos_run_process){.pid = process->pid,
                                 .pinned_bytes = process->pinned_bytes,
                                 .pinned_peak_bytes = process->pinned_peak_bytes,
                                 .lives = oos_process_start_ticks(process->pid) == process->start_ticks};
        for (unsigned d = 0; d < OOS_SEGMENT_DEVICES; d++) {
            row->held_bytes += process->held_bytes[d];
            row->peak_bytes += process->peak_bytes[d];
            if (process->peak_bytes[d]) row->devices |= 1u << d;
        }
        state->lives |= row->lives;
        if (row->pinned_peak_bytes > state->pinned_peak_bytes)
            state->pinned_peak_bytes = row->pinned_peak_bytes;
    }
}

static void read_unseen(const oos_segment *segment, oos_run_state *state)
{
    for (unsigned i = 0; i < OOS_SEGMENT_UNSEEN; i++) {
        oos_segment_unseen const entry = segment->unseen[i];
        if (!entry.pid || entry.why >= OOS_UNSEEN_COUNT || !memchr(entry.name, 0, sizeof entry.name))
            continue;
        state->unseen[state->unseen_count++] = entry;
    }
    state->seen_count = segment->claimed_count;
    if (segment->budget_bytes || segment->budget_millionths || segment->reserve_bytes)
        state->limit = state->unseen_count  ? OOMSIGHT_RUN_LIMIT_NOT_FOR_ALL
                       : !state->seen_count ? OOMSIGHT_RUN_LIMIT_FOR_NOBODY
                                            : OOMSIGHT_RUN_LIMIT_IN_FORCE;
}

void oos_run_read(const oos_segment *segment, oos_run_state *ret_state)
{
    memset(ret_state, 0, sizeof *ret_state);
    for (uint32_t i = 0; i < segment->device_count && i < OOS_SEGMENT_DEVICES; i++) {
        const oos_segment_device *device = &segment->devices[i];
        if (!memchr(device->spec.name, 0, sizeof device->spec.name)) continue;
        if (!device->peak_bytes && !device->refused_count) continue;
        read_device(device, &ret_state->devices[ret_state->device_count]);
        ret_state->devices[ret_state->device_count++].place = i;
    }
    read_processes(segment, ret_state);
    read_unseen(segment, ret_state);
    ret_state->asked_bytes = segment->budget_bytes;
    if (segment->failure_count)
        for (unsigned i = 0; i < ret_state->device_count; i++)
            ret_state->devices[i].at_refusal_known =
                ret_state->devices[i].bus_id ==
                segment->devices[segment->first_failure.device % OOS_SEGMENT_DEVICES].spec.name;
    ret_state->reserve_bytes = segment->reserve_bytes;
    ret_state->refused_count = segment->failure_count;
    ret_state->any_refused = segment->failure_count > 0;
    if (ret_state->any_refused) ret_state->first_refused = segment->first_failure;
    ret_state->phase =
        segment->phase < OOS_SEGMENT_PHASES && segment->phase_told ? segment->phase : OOS_SEGMENT_PHASES;
    if (segment->bundle_count && memchr(segment->bundle_path, 0, sizeof segment->bundle_path))
        ret_state->bundle_path = segment->bundle_path;
}

const char *oos_run_refused_by(const oos_run_state *state)
{
    if (!state->any_refused) return NULL;
    if (state->first_refused.host) return "reserve";
    for (unsigned i = 0; i < state->device_count; i++)
        if (state->devices[i].at_refusal_known &&
            state->devices[i].budget_bytes >= state->devices[i].total_bytes)
            return "device";
    return "budget";
}

/* ---- the last events -------------------------------------------------------------------------------------------- */

static uint64_t taken_by(const oos_segment *segment, uint32_t pid, uint32_t device)
{
    uint64_t taken = 0;
    for (size_t i = 0; i < OOS_SEGMENT_EVENTS; i++) {
        const oomsight_trace_record *event = &segment->events[i];
        if (event->kind == OOMSIGHT_TRACE_MALLOC && event->pid == pid && event->device == device)
            taken += event->size;
    }
    return taken;
}

/* Who was refused first, else who took most: a process of each device and pid is looked at once. */
static void whose_events(const oos_segment *segment, uint32_t *ret_pid, uint32_t *ret_device)
{
    uint64_t most = 0;
    uint32_t pid = 0, device = 0;
    *ret_pid = segment->first_failure.pid;
    *ret_device = segment->first_failure.device % OOS_SEGMENT_DEVICES;
    for (size_t i = 0; !segment->first_failure.pid && i < OOS_SEGMENT_EVENTS; i++) {
        const oomsight_trace_record *event = &segment->events[i];
        if (event->kind == 0 || event->device >= OOS_SEGMENT_DEVICES ||
            (event->pid == pid && event->device == device))
            continue;
        pid = event->pid;
        device = event->device;
        uint64_t const taken = taken_by(segment, pid, device);
        if (taken < most) continue;
        most = taken;
        *ret_pid = pid;
        *ret_device = device;
    }
}

static int by_address(const void *a, const void *b)
{
    const oomsight_trace_record *x = a, *y = b;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    return x->stream < y->stream ? -1 : x->stream > y->stream;
}

/* What the events up to the first that failed took and did not give back. A free of what was taken before them says nothing. */
static uint64_t net_bytes(const oomsight_trace_record *events, size_t count)
{
    size_t until = 0;
    uint64_t net = 0;
    while (until < count && events[until].kind != OOMSIGHT_TRACE_MALLOC_FAILED) until++;
    oomsight_trace_record *sorted = malloc((until + 1) * sizeof *sorted);
    if (!sorted) return 0;
    for (size_t i = 0; i < until; i++) {
        sorted[i] = events[i];
        sorted[i].stream = i; /* which came first at one address */
    }
    qsort(sorted, until, sizeof *sorted, by_address);
    for (size_t i = 0; i < until; i++) {
        bool const given = i + 1 < until && sorted[i + 1].address == sorted[i].address &&
                           sorted[i + 1].kind == OOMSIGHT_TRACE_FREE;
        if (sorted[i].kind == OOMSIGHT_TRACE_MALLOC && !given) net += sorted[i].size;
    }
    free(sorted);
    return net;
}

/* By calls and without one, when a call was first refused; now when none was. */
static uint64_t held_then(const oos_segment *segment, const oos_segment_device *device)
{
    uint64_t owners[OOS_SEGMENT_OWNERS], all = device->refusal_outside_bytes;
    if (!segment->failure_count) return device->held_bytes + device->outside_bytes;
    sum_by_owner(device->at_refusal, owners);
    for (unsigned owner = 0; owner < OOS_SEGMENT_OWNERS; owner++) all += owners[owner];
    return all;
}

size_t oos_run_events(const oos_segment *segment, oomsight_trace_header *ret_header,
                      oomsight_trace_record *ret_events)
{
    uint32_t pid, device;
    size_t count = 0;
    whose_events(segment, &pid, &device);
    uint64_t const first = segment->event_count > OOS_SEGMENT_EVENTS ? segment->event_count : 0;
    for (size_t i = 0; i < OOS_SEGMENT_EVENTS; i++) {
        oomsight_trace_record const event = segment->events[(first + i) % OOS_SEGMENT_EVENTS];
        if (!event.kind || event.pid != pid || event.device != device) continue;
        ret_events[count] = event;
        ret_events[count++].device = 0; /* whose figures the header has */
    }
    const oos_segment_device *row = &segment->devices[device];
    uint64_t const net = net_bytes(ret_events, count), held = held_then(segment, row);
    *ret_header = (oomsight_trace_header){.version = OOMSIGHT_TRACE_VERSION,
                                          .record_bytes = sizeof *ret_events,
                                          .device_total_bytes = row->spec.total_bytes,
                                          .device_base_bytes = held > net ? held - net : 0};
    memcpy(ret_header->magic, OOMSIGHT_TRACE_MAGIC, sizeof ret_header->magic);
    return count;
}

/* Charging bytes to a device and returning them: exact, for all processes of the run, with whose they are and
 * what took them. Addresses are arena.c's business. */
#include "device/internal.h"

#include <string.h>

enum { OFTEN = 3 }; /* an allocation that is denied is asked for */

static void peak_note(oos_segment_device *device, uint32_t phase)
{
    if (device->held_bytes > device->peak_bytes) device->peak_bytes = device->held_bytes;
    if (device->held_bytes <= device->phase_peak_bytes[phase]) return;
    device->phase_peak_bytes[phase] = device->held_bytes;
    memcpy(device->at_phase_peak[phase], device->held, sizeof device->held);
}

/* Both are read back from memory that others can write: they stay inside their tables. */
static uint32_t phase_of(const oos_segment *segment, const oos_segment_process *mine)
{
    uint32_t const phase = mine->told ? mine->phase : __atomic_load_n(&segment->phase, __ATOMIC_RELAXED);
    return phase % OOS_SEGMENT_PHASES;
}

static uint32_t owner_of(const oos_segment *segment, const oos_segment_process *mine)
{
    uint32_t const owner = mine->told ? mine->owner : __atomic_load_n(&segment->owner, __ATOMIC_RELAXED);
    return owner % OOS_SEGMENT_OWNERS;
}

static void failure_write(oos_segment *segment, uint32_t pid, uint32_t phase, unsigned physical, oos_use use,
                          uint64_t bytes, uint64_t free_bytes, bool host)
{
    segment->failures[segment->failure_count++ % OOS_SEGMENT_FAILURES] =
        (oos_segment_failure){pid, physical, phase, use, bytes, free_bytes, host, 0};
}

void oos_failure_note(unsigned physical, oos_use use, uint64_t bytes, uint64_t free_bytes, bool host)
{
    oos_segment_process *mine;
    if (!oos_run_lock(&mine)) return;
    oos_segment *segment = oos_run();
    failure_write(segment, mine->pid, phase_of(segment, mine), physical, use, bytes, free_bytes, host);
    oos_run_unlock();
}

/* Is this the allocation that --fail-after denies? Whoever is denied may give back what it keeps and ask for the same again: that is the
 * same allocation. PyTorch does so once, twice with max_split_size_mb, and then asks what is free for its message: from there on it is
 * another one (oos_denial_over). Not what the driver takes for itself: no call of it can be answered with an error. */
static bool is_denied(oos_segment *segment, uint32_t pid, uint32_t phase, unsigned physical, oos_use use,
                      uint64_t bytes, uint64_t free_bytes)
{
    if (!segment->fail_after ||
        (use != OOS_USE_MALLOC && use != OOS_USE_POOL && use != OOS_USE_VMM && use != OOS_USE_MANAGED))
        return false;
    oos_segment_failure *denied = &segment->denied;
    if (++segment->asked_count == segment->fail_after)
        *denied = (oos_segment_failure){pid, physical, phase, use, bytes, free_bytes, 0, 0};
    else if (denied->pid != pid || denied->bytes != bytes) {
        if (denied->pid == pid) segment->denied_count = OFTEN; /* it went on with something else */
        return false;
    }
    return segment->denied_count < OFTEN && ++segment->denied_count;
}

void oos_denial_over(oos_segment *segment, uint32_t pid)
{
    if (segment->denied.pid == pid) segment->denied_count = OFTEN;
}

int oos_charge_take(unsigned index, oos_use use, uint64_t bytes, oos_charge *ret_charge)
{
    if (index >= oos_device_count()) return oos_run() ? OOS_CODE_INVALID_DEVICE : OOS_CODE_NO_DEVICE;
    unsigned const physical = oos_device_physical(index);
    oos_segment_process *mine;
    if (!oos_run_lock(&mine)) return OOS_CODE_NOT_INITIALIZED;

    oos_segment *segment = oos_run();
    oos_segment_device *device = &segment->devices[physical];
    uint64_t const room = device->spec.total_bytes - device->spec.others_bytes;
    uint32_t const phase = phase_of(segment, mine), owner = owner_of(segment, mine);
    oos_charge const charge = {bytes, physical, owner, use};

    /* Only when it does not fit is it worth looking for the dead. */
    bool fits = bytes <= room && device->held_bytes <= room - bytes;
    if (segment->machine_bytes)
        fits = bytes <= segment->machine_bytes; /* such a driver takes what the host has */
    if (!fits && oos_segment_reap(segment)) fits = bytes <= room && device->held_bytes <= room - bytes;
    if (fits && is_denied(segment, mine->pid, phase, physical, use, bytes, room - device->held_bytes))
        fits = false;
    if (fits) {
        oos_machine_look(segment, bytes);
        mine->held[physical][owner][use] += bytes;
        mine->held_bytes[physical] += bytes;
        if (mine->held_bytes[physical] > mine->peak_bytes[physical])
            mine->peak_bytes[physical] = mine->held_bytes[physical];
        device->held[owner][use] += bytes;
        device->held_bytes += bytes;
        peak_note(device, phase);
        *ret_charge = charge;
    } else
        failure_write(segment, mine->pid, phase, physical, use, bytes,
                      device->held_bytes < room ? room - device->held_bytes : 0, false);
    oos_run_unlock();
    if (!fits) oos_trace(OOS_TRACE_FAIL, &charge, 0);
    return fits ? OOS_CODE_OK : OOS_CODE_OUT_OF_MEMORY;
}

void oos_charge_return(const oos_charge *charge)
{
    oos_segment_process *mine;
    if (!charge->bytes || !oos_run_lock(&mine)) return;
    uint64_t *held = &mine->held[charge->device][charge->owner][charge->use];
    if (*held >= charge->bytes) {
        oos_segment_device *device = &oos_run()->devices[charge->device];
        *held -= charge->bytes;
        mine->held_bytes[charge->device] -= charge->bytes;
        device->held[charge->owner][charge->use] -= charge->bytes;
        device->held_bytes -= charge->bytes;
        oos_machine_look(oos_run(), 0);
    }
    oos_run_unlock();
}

void oos_pinned_add(int64_t bytes)
{
    oos_segment_process *mine;
    if (!oos_run_lock(&mine)) return;
    mine->pinned_bytes += (uint64_t)bytes;
    if (mine->pinned_bytes > mine->pinned_peak_bytes) mine->pinned_peak_bytes = mine->pinned_bytes;
    oos_run_unlock();
}

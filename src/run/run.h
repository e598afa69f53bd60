/* A guarded run: the segment that `oomsight run` makes for the guard (shim/guard), and what stands in it. */
#ifndef OOS_RUN_RUN_H
#define OOS_RUN_RUN_H

#include "base/segment.h"
#include "oomsight_private.h"

#include <oomsight/oomsight.h>

typedef struct oos_run_device {
    const char *bus_id;
    const char *card;      /* its name; NULL: NVML did not tell */
    unsigned capability;   /* 89; 0: not told */
    uint64_t total_bytes;  /* of the device; 0: no process asked yet */
    uint64_t budget_bytes; /* 0: none */
    uint64_t held_bytes, outside_bytes, peak_bytes;
    uint64_t at_peak[OOS_USE_COUNT]; /* by call, when the calls held most */
    uint64_t owners_at_peak[OOS_SEGMENT_OWNERS], owners_now[OOS_SEGMENT_OWNERS];
    uint64_t owners_at_refusal[OOS_SEGMENT_OWNERS], refusal_outside_bytes; /* when a call was first refused */
    uint64_t phase_bytes[OOS_SEGMENT_PHASES]; /* by calls, at most; 0: nothing was taken in it */
    uint64_t owners_by_phase[OOS_SEGMENT_PHASES][OOS_SEGMENT_OWNERS];
    uint64_t refused_count;
    bool outside_known, at_refusal_known;
} oos_run_device;

typedef struct oos_run_process {
    uint32_t pid;
    uint64_t held_bytes, peak_bytes; /* over all devices */
    uint64_t pinned_bytes, pinned_peak_bytes;
    bool lives;
} oos_run_process;

typedef struct oos_run_state {
    oos_run_device devices[OOS_SEGMENT_DEVICES];
    unsigned device_count; /* those that a process of the run used */
    oos_run_process processes[OOS_SEGMENT_PROCESSES];
    unsigned process_count;
    uint64_t pinned_peak_bytes; /* the largest of a process */
    uint64_t refused_count, reserve_bytes;
    uint64_t asked_bytes; /* the budget, as it was asked for in bytes; 0: none */
    uint64_t seen_count;  /* processes that ever came to the guard */
    oos_segment_unseen unseen[OOS_SEGMENT_UNSEEN];
    unsigned unseen_count;
    oomsight_run_limit limit;
    oos_segment_failure first_refused;
    uint32_t phase; /* that the log told; OOS_SEGMENT_PHASES: none */
    bool any_refused;
    bool lives;              /* a process of it is there */
    const char *bundle_path; /* of the last bundle; NULL: none */
} oos_run_state;

/* What said no: the budget, the host's reserve, or the device, which is full; NULL: nothing was refused. */
const char *oos_run_refused_by(const oos_run_state *state);

/* What NVML says is used on each device, by its address on the bus; 0 without NVML. Nothing of NVML stays loaded. */
unsigned oos_run_devices_before(oos_device_spec *ret_specs, unsigned most);

/* Everything read from the segment is checked; names point into it. */
void oos_run_read(const oos_segment *segment, oos_run_state *ret_state);

/* The last events of one process on one device, oldest first: those of the call that was first refused, else of the process that holds
 * most. What was held before the first of them, and by others, is the base of the device. Returns how many; `ret_events` has
 * OOS_SEGMENT_EVENTS places. */
size_t oos_run_events(const oos_segment *segment, oomsight_trace_header *ret_header,
                      oomsight_trace_record *ret_events);

#endif

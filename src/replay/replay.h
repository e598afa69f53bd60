/* Driving a simulator with a trace: one device, one setting, one pass. */
#ifndef OOS_REPLAY_REPLAY_H
#define OOS_REPLAY_REPLAY_H

#include "replay/sim.h"

/* What to change against the trace. Zero means: as the trace has it. */
typedef struct oos_scenario {
    const char *settings; /* not NULL: in force from the start, and settings calls in the trace are ignored */
    oos_version torch;    /* 0: the trace's, or the default */
    oos_u64 total_bytes, base_bytes;
    double sweep_ratio; /* see oos_sim_create */
    bool set_backend;   /* give every private pool `backend` */
    oos_backend backend;
    bool log;
    bool stop_at_oom;
    bool modelled_addresses; /* place segments anew even where the trace tells their addresses */
    unsigned device;
} oos_scenario;

/* A device nobody named: large enough that nothing runs out. */
#define OOS_UNKNOWN_DEVICE_BYTES ((uint64_t)1 << 40)

typedef struct oos_runner oos_runner;

/* Whether the addresses of a device's segments are known from the beginning: then a run can end in the recorded state. */
bool oos_run_has_addresses(const oos_trace *trace, unsigned device);

oomsight_status oos_runner_create(const oos_trace *trace, const oos_scenario *scenario,
                                  oos_runner **ret_runner, oomsight_error *reterr);
void oos_runner_free(oos_runner *runner); /* NULL is fine */
oos_sim *oos_runner_sim(oos_runner *runner);

/* What became of one event. */
typedef struct oos_step {
    uint32_t block;        /* malloc: the block; 0 with `oom` */
    bool oom, skipped;     /* skipped: not this device's, or about an allocation that is not live */
    bool refused;          /* settings were not accepted: see `error` */
    oomsight_error *error; /* may be NULL; filled when refused */
} oos_step;
void oos_runner_step(oos_runner *runner, const oos_event *event, oos_step *step);

/* The block of a live allocation, 0 when it is not live. */
uint32_t oos_runner_block(const oos_runner *runner, uint32_t id);

/* ---- a whole pass ---------------------------------------------------------------------------------------------- */

typedef struct oos_outcome {
    bool oom;         /* at least one malloc failed */
    size_t first_oom; /* event */
    uint64_t ooms;
    uint64_t first_oom_bytes; /* asked */
    char *oom_text;           /* of the first one; owned: oos_outcome_release() */
    uint64_t peak_allocated_bytes, peak_reserved_bytes;
    size_t peak_event; /* when allocated bytes were highest */
    size_t reserved_peak_event;
    uint64_t end_allocated_bytes, end_reserved_bytes;
    uint64_t
        stranded_bytes; /* free bytes inside reserved memory when it mattered: at the first OOM, or at the peak
                                     of reserved bytes */
    uint64_t stranded_private_bytes; /* ... in private pools */
    uint64_t segments, device_allocs, device_frees, retries;
} oos_outcome;

/* Run every event of the scenario's device. A failed malloc is counted and the trace goes on without it, as a program
 * that catches the exception would. */
oomsight_status oos_run(const oos_trace *trace, const oos_scenario *scenario, oos_outcome *ret_outcome,
                        oomsight_error *reterr);
void oos_outcome_release(oos_outcome *outcome);

/* The same with a runner of one's own, and a look at every event of its device (`look` may be NULL). */
typedef void oos_look(void *context, size_t event, oos_runner *runner);
oomsight_status oos_runner_run(oos_runner *runner, oos_look *look, void *context, oos_outcome *ret_outcome,
                               oomsight_error *reterr);

#endif

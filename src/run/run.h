#pragma once
#include "base/segment.h"
#include "base/slope.h"
#include "base/view.h"
#include "oomsight_private.h"
#include <oomsight/oomsight.h>
#include <stdint.h>

/* A guarded run: the segment that `oomsight run` makes for the guard (shim/guard), and what stands in it. */

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
    unsigned place; /* in the segment */
} oos_run_device;

typedef struct oos_run_process {
    uint32_t pid;
    uint64_t held_bytes, peak_bytes; /* over all devices */
    uint64_t pinned_bytes, pinned_peak_bytes;
    uint32_t devices; /* a bit for each place in the segment that it took memory of */
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

/* What grows while an engine serves: figures of a run taken down over time, thinned out as they become many, and the slope of each
 * by Theil and Sen, which a single jump or a saw does not move. */

enum { OOS_HISTORY_MAX = OOS_SLOPE_POINTS_MAX };
#define OOS_GROWTH_HOURS_MIN (5.0 / 60) /* of the later half, which is judged */

typedef enum oos_growth_what {
    OOS_GROWTH_CALLS,   /* of a device, by calls: PyTorch's reserved memory for the most part */
    OOS_GROWTH_OUTSIDE, /* of a device, by no call */
    OOS_GROWTH_PINNED,  /* of the host, over all processes */
    OOS_GROWTH_HOST,    /* resident, over all processes that are on a device */
    OOS_GROWTH_COUNT
} oos_growth_what;

const char *oos_growth_word(oos_growth_what what);

typedef struct oos_growth {
    oos_growth_what what;
    const char *bus_id; /* NULL: of the host */
    unsigned
        owner; /* of a device, by calls: whose part grows most; OOS_SEGMENT_OWNERS: nobody's does alone */
    oos_slope slope;       /* bytes, by hours */
    double hours_to_limit; /* at this slope; 0: there is no limit */
} oos_growth;

typedef struct oos_history oos_history;

oos_history *oos_history_create(void); /* NULL: no memory */
void oos_history_free(oos_history *history);

/* `hours` since the start, never going back. Calls that come sooner than a sample is wanted change nothing. */
void oos_history_add(oos_history *history, double hours, const oos_run_state *state, uint64_t host_bytes);

/* Only what surely grows: the range of its slope is above zero, and it came to more than the units that memory is taken in. */
size_t oos_history_growth(const oos_history *history, const oos_run_state *state, oos_growth *ret_list,
                          size_t most);

/* Resident bytes of the processes of a run, from /proc. */
uint64_t oos_run_host_bytes(const oos_run_state *state);

/* The processes below a command. Those that use CUDA and that the guard does not see are written into the segment, with the reason, when
 * two looks in a row say the same: what is read of a process that starts or ends meanwhile is not whole. A process that ends between two
 * looks is not found. */

typedef struct oos_process_family oos_process_family;

/* `root`: where /proc is; "" for this machine's. It must outlive the family. NULL: no memory. */
oos_process_family *oos_family_create(const char *root);
void oos_family_free(oos_process_family *family);

/* `pid`: the process that was started. True: there is somebody to look at again soon. */
bool oos_family_look(oos_process_family *family, oos_segment *segment, uint32_t pid);

/* What an engine says of itself while it serves: a few figures of its answer to GET /metrics, which may be anything. */

typedef struct oos_serving {
    uint64_t running, waiting; /* requests, over all of its engines */
    double kv_used;            /* the fullest KV cache, 0 to 1 */
    bool requests_known, kv_known;
} oos_serving;

/* False: there is no such figure in it. */
bool oos_serving_read(oos_view metrics, oos_serving *ret_serving);

/* What uses the GPUs of this machine: a row for each process, of runs and, as NVML tells them, of others. */

enum { OOS_TOP_ROWS = 256, OOS_TOP_SAMPLES = 32, OOS_TOP_NAME = 400 };
#define OOS_TOP_WINDOW 60.0 /* seconds over which growth is told */
#define OOS_TOP_ENDED 10.0  /* for so long a process that is gone is shown */

typedef struct oos_top_gpu {
    char name[96], bus_id[32];
    uint64_t total_bytes, used_bytes;
    unsigned number; /* as nvidia-smi counts */
    bool is_slice;
} oos_top_gpu;

typedef struct oos_top_row {
    uint32_t pid, run_pid; /* 0: under no run */
    uint64_t start_ticks;
    char name[OOS_TOP_NAME];
    uint64_t gpus; /* a bit for each of oos_top.gpus */
    uint64_t now_bytes, peak_bytes, limit_bytes,
        left_bytes; /* limit and left: of the GPU where least is left */
    bool now_known, left_known, refused, seen;
    uint32_t phase;  /* OOS_SEGMENT_PHASES: not told */
    double ended_at; /* 0: it lives */
    double seconds[OOS_TOP_SAMPLES], bytes[OOS_TOP_SAMPLES];
    unsigned samples;
} oos_top_row;

typedef enum oos_top_order { OOS_TOP_BY_MEMORY, OOS_TOP_BY_GROWTH, OOS_TOP_BY_PID } oos_top_order;

typedef struct oos_top {
    oos_top_gpu gpus[OOS_SEGMENT_DEVICES];
    oos_top_row rows[OOS_TOP_ROWS];
    unsigned gpu_count, row_count;
    uint32_t unlimited_pid; /* of a run with a process that its limit does not hold; 0: none */
    bool nvml_known;        /* what no run counts is seen, too */
    bool silent;            /* the driver has not answered once, and is not asked again */
} oos_top;

/* `seconds`: never going back. A look has three parts: GPUs and their processes, each run, and what is gone. */
void oos_top_begin(oos_top *top);
void oos_top_run(oos_top *top, const oos_run_state *state, uint32_t launcher_pid);
void oos_top_end(oos_top *top, double seconds);
void oos_top_sort(oos_top *top, oos_top_order order);

/* Bytes for each minute, over the last one; false while it is not yet known. */
bool oos_top_growth(const oos_top_row *row, double *ret_per_minute);

/* The words of a process for people: without the folder of its program, and without the interpreter before it. */
void oos_top_name(const char *words, size_t len, char *ret_name, size_t capacity);

#pragma once
#include "base/arena.h"
#include "base/segment.h"
#include "base/size.h"
#include "base/slope.h"
#include "base/view.h"
#include "explain/explain.h"
#include "facts/facts.h"
#include "ledger/ledger.h"
#include "oomsight_private.h"
#include <oomsight/oomsight.h>

/* A dry run: the real engine on devices that are not there. Here: the devices, what the engine's log says, and the
 * ledger per phase, measured by the stand-ins in the shared segment. Starting processes is the caller's part. */

/* A figure of the engine: GiB with two decimals on paper, to the byte where the dry run's own module was loaded. */
typedef struct oos_dryrun_figure {
    oos_u64 bytes; /* unknown until printed */
    bool exact;
} oos_dryrun_figure;

/* What the engine prints of itself. */
typedef struct oos_dryrun_log {
    oos_line_reader *reader;
    oos_phase phase; /* as far as the log tells, or the processes themselves */
    bool told;       /* the processes do: lines that begin a phase are not looked for */
    oos_phase told_phase;
    bool program;                   /* no engine so far: it has no phases */
    const oos_engine_words *engine; /* that a process says it is; NULL: none has said */
    char engine_version[32];
    const char *ready_line; /* what it prints then */
    bool ready;             /* it accepts requests */
    bool compiled;          /* graphs were compiled: the cache did not have them */
    bool from_cache;        /* compiled graphs were found in the cache */
    bool ran_out;           /* it printed an out-of-memory error of the device */
    bool recovered;         /* and became ready after it */
    bool refused;           /* the engine itself said no: KV cache too small, memory not free */
    char message[512];      /* the first such line */
    char error[512];        /* the first exception after it was ready that is not of memory */
    char start_error[512];  /* the last one before */
    char backend[32];       /* attention backend */
    oos_phase failed;       /* phase of that line; OOS_PHASE_COUNT: none */
    oos_u64 tried_bytes;    /* "Tried to allocate" */
    oos_u64 kv_tokens, private_pool_bytes, allocated_bytes;
    oos_dryrun_figure weights; /* "Model loading took"; the largest rank */
    /* of a program that trains, as its optimizer holds them; the largest rank */
    oos_dryrun_figure parameters, gradients, optimizer;
    oos_dryrun_figure kv_available;    /* "Available KV cache memory"; the smallest rank */
    oos_dryrun_figure activation_peak; /* "torch peak memory increase"; the largest rank */
    oos_u64 budget_bytes,
        graph_estimate_bytes; /* of the rank with the smallest cache, where the module was loaded */
    oos_f64 max_concurrency;
} oos_dryrun_log;

/* What reports call a program that is no engine: "torch". */
extern const oos_engine_words oos_dryrun_program;

/* The reader stays the caller's. */
void oos_dryrun_log_init(oos_dryrun_log *log, oos_line_reader *reader);

/* One line of output, of whichever process. Returns true when the phase has changed. */
bool oos_dryrun_log_line(oos_dryrun_log *log, oos_view line);

/* Where the processes say they are: the furthest of them. Before the line that is read next. */
void oos_dryrun_log_told(oos_dryrun_log *log, const oos_segment *segment);

/* What steps took beyond what was held when they began, at most; written by the module in the engine's processes
 * (shim/python/oomsight_aid.py) beside the segment. */
typedef enum oos_step_part {
    OOS_STEP_PREFILL,
    OOS_STEP_DECODE,
    OOS_STEP_SAMPLER,
    OOS_STEP_PARTS
} oos_step_part;

typedef struct oos_step_peak {
    oos_u64 bytes; /* unknown: there was no such step */
    uint64_t step, requests, tokens;
} oos_step_peak;

/* Here and not beside what reads steps: reports have the words where nothing is run (-Dprocesses=false). */
static inline const char *oos_step_word(oos_step_part part)
{
    static const char *const words[OOS_STEP_PARTS] = {"prefill", "decode", "sampler"};
    return words[part];
}

/* The order of a start, in which a plan has them too: communicators before the first look at free memory, the encoder before the
 * model. */
static inline oos_phase oos_dryrun_in_order(unsigned place)
{
    switch (place) {
    case OOS_PHASE_INIT_FREE_MEMORY_CHECK: return OOS_PHASE_DISTRIBUTED_INIT;
    case OOS_PHASE_DISTRIBUTED_INIT: return OOS_PHASE_INIT_FREE_MEMORY_CHECK;
    case OOS_PHASE_PROFILE_RUN: return OOS_PHASE_MM_PROFILE;
    case OOS_PHASE_MM_PROFILE: return OOS_PHASE_PROFILE_RUN;
    default: return place;
    }
}

/* What a load of requests grows by, in bytes a request; `span` is the requests it was judged on. */
typedef struct oos_load_growth {
    bool known; /* false: too few samples */
    oos_slope device, host;
} oos_load_growth;

/* The host's memory at the moment of a phase at which most was resident. */
enum { OOS_HOST_PROCESSES = 64 }; /* rows that are kept; the sums are of all */
typedef struct oos_host_row {
    oomsight_dryrun_process process;
    uint64_t pinned_bytes; /* as it was asked for: the stand-in backs it when somebody writes */
} oos_host_row;

typedef struct oos_host_moment {
    uint64_t resident_bytes, shared_bytes, pinned_bytes; /* of all processes; 0: nobody looked */
    size_t process_count;
    oos_host_row rows[OOS_HOST_PROCESSES]; /* the largest first */
} oos_host_moment;

typedef struct oos_call_count {
    const char *name;
    uint64_t count;
} oos_call_count;

typedef struct oos_dryrun {
    const oos_engine_words *engine;
    const char *engine_version; /* NULL: not known */
    const oos_device_spec *device;
    uint32_t device_count;
    oos_dryrun_log log;
    oomsight_verdict verdict;
    oos_moment phases[OOS_PHASE_COUNT]; /* in the order of a start */
    size_t phase_count;
    oos_call_count *calls, *refused,
        *unknown; /* by count, largest first; unknown: counted, nothing was done */
    size_t call_count, refused_count, unknown_count;
    uint64_t reaped_count, graph_count, graph_node_count, failure_count, host_failure_count;
    uint64_t failed_most_bytes;              /* of the refused allocations that are kept, the largest */
    oos_host_moment *hosts[OOS_PHASE_COUNT]; /* NULL: not looked at in that phase */
    int child_exit;
    int child_signal; /* that ended it; 0: none */
    bool timed_out, interrupted;
    unsigned load_requests, load_answered;
    const oomsight_dryrun_load *loads;
    size_t load_count;
    const oos_load_growth *growths; /* one for each load */
    oos_step_peak steps[OOS_STEP_PARTS];
    bool wedged;                       /* host and device together needed more than the machine has */
    uint64_t fail_after, asked_count;  /* the allocation to be denied (0: none), and how many there were */
    const oos_segment_failure *denied; /* NULL: it was not reached */
    const char *denied_call;
    bool damaged; /* the segment was not readable at the end */
    const char *trace_path;
    const char *model; /* the word of the command; NULL: none */
    double seconds;    /* the whole run; 0: not told */
    const char *with;  /* a variable that was set for the requests, "NAME=value"; NULL: none */
} oos_dryrun;

/* What the device costs beside what allocation calls show. `outside_bytes` replaces the model when it is known: then all
 * of it is charged with the context. `torch_minor` 0: the newest. */
void oos_dryrun_device(const oos_gpu *gpu, oos_u64 outside_bytes, uint64_t torch_minor,
                       oos_device_spec *ret_spec);

/* What is held and done at this moment, while others write. */
void oos_dryrun_watch(const oos_segment *segment, const char *segment_path, oomsight_dryrun_look *ret_moment);

/* One look at the host: kept when more is resident than at any other look of that phase. */
void oos_dryrun_host_take(const oos_segment *segment, const oomsight_dryrun_process *processes, size_t count,
                          oos_host_moment *moment);

/* The peaks of steps that were left beside the segment; the largest of all processes. */
void oos_dryrun_steps_read(const char *segment_path, oos_step_peak steps[OOS_STEP_PARTS]);

/* The later half of the samples of one load: in the earlier one caches fill. */
void oos_dryrun_growth(const oomsight_dryrun_sample *samples, size_t count, unsigned load,
                       oos_load_growth *ret_growth);

/* Read the segment into phases and counts. `log`, `engine_version` and how it ended are set by the caller before. */
oomsight_status oos_dryrun_read(oos_arena *arena, const oos_segment *segment, const char *segment_path,
                                oos_dryrun *run);

/* The answer in a report of a dry run that another process made. */

typedef struct oos_dryrun_answer {
    oomsight_verdict verdict;
    bool starts;                /* or likely starts */
    bool killed;                /* from outside: another try may have an answer */
    const char *engine_version; /* any of these may be NULL */
    const char *phase, *cause, *why, *unknown_flag, *command;
    oos_u64 tried_bytes, weights_bytes, kv_tokens, kv_available_bytes;
    double max_concurrency; /* below 0: not told */
} oos_dryrun_answer;

/* False: the text is no such report. Strings live as long as the arena. */
bool oos_dryrun_report_read(oos_arena *arena, oos_view json, oos_dryrun_answer *ret_answer);

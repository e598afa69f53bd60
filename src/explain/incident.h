/* Incidents: what a log tells of one failure (or of one healthy start), and what follows from it. Filled in three
 * steps: collect.c takes lines, reason.c draws conclusions, and the knowledge base gives the words. */
#ifndef OOS_EXPLAIN_INCIDENT_H
#define OOS_EXPLAIN_INCIDENT_H

#include "explain/signals.h"
#include "base/size.h"
#include "ledger/moment.h"
#include "log/logtime.h"

/* name, key in JSON, unit: B bytes, N count, R ratio */
#define OOS_NUMBER_MAP(X)                                                                                    \
    X(tried, "tried_bytes", B)                                                                               \
    X(total, "total_bytes", B)                                                                               \
    X(free, "free_bytes", B)                                                                                 \
    X(process, "process_bytes", B)                                                                           \
    X(others, "other_processes_bytes", B)                                                                    \
    X(torch_allocated, "torch_allocated_bytes", B)                                                           \
    X(private_pools, "private_pools_bytes", B)                                                               \
    X(reserved_unallocated, "reserved_unallocated_bytes", B)                                                 \
    X(reserved_total, "reserved_total_bytes", B)                                                             \
    X(kv_available, "kv_available_bytes", B)                                                                 \
    X(kv_needed, "kv_needed_bytes", B)                                                                       \
    X(kv_tokens, "kv_tokens", N)                                                                             \
    X(weights, "weights_bytes", B)                                                                           \
    X(load_peak, "load_peak_bytes", B)                                                                       \
    X(activation_peak, "activation_peak_bytes", B)                                                           \
    X(non_torch, "non_torch_bytes", B)                                                                       \
    X(non_kv, "non_kv_bytes", B)                                                                             \
    X(cudagraph, "cudagraph_bytes", B)                                                                       \
    X(cudagraph_estimate, "cudagraph_estimate_bytes", B)                                                     \
    X(requested, "requested_bytes", B)                                                                       \
    X(startup_free, "startup_free_bytes", B)                                                                 \
    X(gmu, "gpu_memory_utilization", R)                                                                      \
    X(initial_usage, "initial_usage_bytes", B)                                                               \
    X(max_seq_len, "max_seq_len", N)                                                                         \
    X(est_max_model_len, "est_max_model_len", N)                                                             \
    X(dummy_requests, "dummy_requests", N)                                                                   \
    X(max_num_seqs, "max_num_seqs", N)                                                                       \
    X(state_blocks, "state_blocks", N)                                                                       \
    X(gpu_blocks, "gpu_blocks", N)                                                                           \
    X(cpu_blocks, "cpu_blocks", N)                                                                           \
    X(trial_blocks, "trial_blocks", N)                                                                       \
    X(block_tokens, "block_tokens", N)                                                                       \
    X(padding_layers, "padding_layers", N)                                                                   \
    X(running, "running_requests", N)                                                                        \
    X(slice_would_use, "slice_would_use_bytes", B)                                                           \
    X(slice_limit, "slice_limit_bytes", B)                                                                   \
    X(profile_free_before, "profile_free_before_bytes", B)                                                   \
    X(profile_free_after, "profile_free_after_bytes", B)                                                     \
    X(sleep_freed, "sleep_freed_bytes", B)                                                                   \
    X(sleep_used, "sleep_used_bytes", B)                                                                     \
    X(host_wanted, "host_wanted_bytes", B)                                                                   \
    X(host_total, "host_total_bytes", B)                                                                     \
    X(host_used, "host_used_bytes", B)                                                                       \
    X(host_limit, "host_limit_bytes", B)                                                                     \
    X(swap_space, "swap_space_bytes", B)                                                                     \
    X(pool_wanted, "pool_wanted_tokens", N)                                                                  \
    X(pool_free, "pool_free_tokens", N)                                                                      \
    X(ready_free, "ready_free_bytes", B)                                                                     \
    X(cudagraph_prefill, "cudagraph_prefill_bytes", B)                                                       \
    X(static_fraction, "mem_fraction_static", R)                                                             \
    X(least_fraction, "least_mem_fraction_static", R)

typedef enum oos_number_id {
#define OOS_NUMBER_ENUM(name, key, unit) OOS_NUMBER_##name,
    OOS_NUMBER_MAP(OOS_NUMBER_ENUM)
#undef OOS_NUMBER_ENUM
        OOS_NUMBER_COUNT
} oos_number_id;

/* A figure as printed, in bytes, as a count, or as millionths for a ratio. */
typedef struct oos_number {
    bool known, negative;
    uint64_t value;
    uint64_t line; /* where it was read */
    char text[24]; /* as it was written, to point at it */
} oos_number;

typedef struct oos_evidence {
    uint64_t line;
    const char *text;   /* cut to a readable length */
    const char *signal; /* id */
    bool decides;       /* states the failure, as against its surroundings */
    bool whole;         /* is the engine's own answer */
} oos_evidence;

/* One of several processes that failed, by its own message. */
typedef struct oos_rank {
    const char *rank; /* "TP3" */
    oos_number numbers[OOS_NUMBER_COUNT];
    oos_moment held; /* peak_bytes is what was in use; 0: nothing is known of it */
} oos_rank;

/* What the log tells of the engine's set-up. Any may be NULL. */
typedef struct oos_setup_text {
    const char *version, *torch, *model, *gpu, *args, *config, *command;
} oos_setup_text;

enum { OOS_EVIDENCE_MAX = 24, OOS_RANKS_MAX = 64, OOS_ALSO_MAX = 2 };

typedef struct oos_incident {
    /* collected */
    oos_signal_set signals;
    oos_number numbers[OOS_NUMBER_COUNT];
    oos_evidence evidence[OOS_EVIDENCE_MAX];
    size_t evidence_count;
    oos_rank *ranks; /* the collector's while collecting */
    size_t rank_count;
    oos_setup_text setup;
    const char *file; /* inside an archive; "" for a plain input */
    uint64_t first_line, last_line;
    /* Of a growing text. */
    uint32_t first_part, last_part; /* which of the files that the text was rotated into */
    uint64_t first_byte, last_byte; /* in them: of the first line, and of the last byte of the last */
    int64_t started, first_time,
        at;                /* the time at the start of the engine, of the first and of the last line */
    oos_traceback stack;   /* of the failure */
    oos_phase furthest;    /* the last stage that was ever reached since the start; OOS_PHASE_COUNT: none */
    oos_phase last_marker; /* OOS_PHASE_COUNT: none */
    uint64_t last_marker_line;
    bool failed;    /* a failure of some kind was seen */
    bool read_on;   /* its text begins with the failure: how far the engine got is told below it */
    bool old_shape; /* lines of vLLM before 0.8 */
    bool v1;        /* lines of the V1 engine's processes */
    bool v1_early;  /* ... as they were up to 0.10.0 */
    bool binary;    /* the input was no text */
    uint64_t count; /* equal incidents */

    /* concluded */
    bool is_oom;
    oos_phase phase;
    double phase_sure;
    const char *phase_why, *phase_rule; /* the rule's id; "" where none decided */
    const char *cause;
    const char *also[OOS_ALSO_MAX];
    size_t also_count, also_shown; /* the first of them by signs of their own in the text */
    double cause_sure;
    const char *cause_why, *cause_rule;
    const char *verdict_rule; /* the signal that says that it is memory, or that it is not */
    const char *ask;          /* what would decide it, NULL when nothing is missing */
    double confidence;
    const char *engine;
    bool program;                       /* one on PyTorch that is no server */
    const struct oos_kb_record *record; /* of the knowledge base, NULL: none fits */
    /* With the figures of this log; what is worth most first. */
    const struct oos_advice *fixes, *dead_ends;
    size_t fix_count, dead_end_count;
    oos_moment held; /* peak_bytes is what was in use; 0: nothing is known of it */
    uint64_t fingerprint;
} oos_incident;

const char *oos_number_key(oos_number_id id);
char oos_number_unit(oos_number_id id);

static inline bool oos_known(const oos_incident *incident, oos_number_id id)
{
    return incident->numbers[id].known;
}
/* The value of a number that is known and not negative, else 0. */
static inline uint64_t oos_value(const oos_incident *incident, oos_number_id id)
{
    return incident->numbers[id].known && !incident->numbers[id].negative ? incident->numbers[id].value : 0;
}

#endif

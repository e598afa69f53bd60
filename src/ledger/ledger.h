/* The ledger: who holds how many bytes of one device, in which startup phase, and how we know.
 * Every command ends in one of these. Depends on base/ only. */
#ifndef OOS_LEDGER_LEDGER_H
#define OOS_LEDGER_LEDGER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/size.h"

/* name, word: the same words everywhere (CONTRACT, Phases). In the order in which an engine goes through them. */
#define OOS_PHASE_MAP(X)                                                                                     \
    X(ARGUMENTS, "arguments")                                                                                \
    X(ENV, "env")                                                                                            \
    X(INIT_FREE_MEMORY_CHECK, "init_free_memory_check")                                                      \
    X(DISTRIBUTED_INIT, "distributed_init")                                                                  \
    X(WEIGHT_LOAD, "weight_load")                                                                            \
    X(QUANT_POSTPROCESS, "quant_postprocess")                                                                \
    X(PROFILE_RUN, "profile_run")                                                                            \
    X(MM_PROFILE, "mm_profile")                                                                              \
    X(CUDAGRAPH_PROFILE, "cudagraph_profile")                                                                \
    X(KV_SIZING, "kv_sizing")                                                                                \
    X(KV_ALLOC, "kv_alloc")                                                                                  \
    X(COMPILE, "compile")                                                                                    \
    X(CUDAGRAPH_CAPTURE, "cudagraph_capture")                                                                \
    X(SAMPLER_WARMUP, "sampler_warmup")                                                                      \
    X(RUNTIME_PREFILL, "runtime_prefill")                                                                    \
    X(RUNTIME_SAMPLER, "runtime_sampler")                                                                    \
    X(RUNTIME_OTHER, "runtime_other")                                                                        \
    X(SLEEP_WAKE, "sleep_wake")                                                                              \
    X(HOST_MEMORY, "host_memory")                                                                            \
    X(NOT_OOM, "not_oom")                                                                                    \
    X(UNKNOWN, "unknown")

typedef enum oos_phase {
#define OOS_PHASE_ENUM(name, word) OOS_PHASE_##name,
    OOS_PHASE_MAP(OOS_PHASE_ENUM)
#undef OOS_PHASE_ENUM
        OOS_PHASE_COUNT
} oos_phase;

const char *oos_phase_word(oos_phase phase);

/* How a number came to be known, weakest last. A guess is never printed without its mark. */
typedef enum oos_source {
    OOS_SOURCE_MEASURED, /* counted at an allocation call */
    OOS_SOURCE_READ,     /* read from a log line or a file header */
    OOS_SOURCE_DERIVED,  /* exact arithmetic on the above */
    OOS_SOURCE_ESTIMATED /* a model with an error bar */
} oos_source;

const char *oos_source_word(oos_source source);

/* A number of bytes with its origin. low <= bytes <= high; equal unless estimated. */
typedef struct oos_amount {
    uint64_t bytes, low, high;
    oos_source source;
    const char *how; /* one sentence: the formula or the source; NULL when the owner says it all */
    bool settled;    /* were it more, another row would be less by as much: its range does not move the sum */
} oos_amount;

static inline oos_amount oos_amount_exact(uint64_t bytes, oos_source source, const char *how)
{
    return (oos_amount){.bytes = bytes, .low = bytes, .high = bytes, .source = source, .how = how};
}
static inline oos_amount oos_amount_guess(uint64_t bytes, uint64_t low, uint64_t high, const char *how)
{
    return (oos_amount){.bytes = bytes, .low = low, .high = high, .source = OOS_SOURCE_ESTIMATED, .how = how};
}
oos_amount oos_amount_sum(oos_amount a, oos_amount b); /* the weaker source, ranges added */

/* One row. */
typedef struct oos_hold {
    const struct oos_hold *next; /* in the order in which they were added */
    const char *owner;
    oos_amount amount;
} oos_hold;

/* The rows of one moment on one device. */
typedef struct oos_ledger {
    oos_arena *arena;
    oos_hold *first, *last;
    uint64_t held_bytes, held_low, held_high;
} oos_ledger;

void oos_ledger_init(oos_ledger *ledger, oos_arena *arena);

/* `owner` and `amount.how` must outlive the ledger (string literals and arena strings do). Rows of 0 bytes are kept out
 * unless they carry a range. On failure nothing has changed. */
oomsight_status oos_ledger_hold(oos_ledger *ledger, const char *owner, oos_amount amount);

/* Make the rows add up to `total_bytes`: what is missing becomes the row `unaccounted`. */
oomsight_status oos_ledger_close(oos_ledger *ledger, uint64_t total_bytes);

#endif

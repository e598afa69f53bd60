/* Signals: the sentences, frames and markers that the engines, PyTorch and the drivers print, each with one or more
 * distinctive literals and, where figures are to be taken, a regex. Read from data/explain/signals.json. A regex takes
 * figures by the names of its groups: `tried_size` is the number `tried` written with a unit, `weights_gib` a number of
 * GiB, `kv_tokens_n` a count, `gmu_ratio` a fraction, `text_model` a piece of text. */
#ifndef OOS_EXPLAIN_SIGNALS_H
#define OOS_EXPLAIN_SIGNALS_H

#include "ledger/ledger.h"
#include "explain/traceback.h"
#include "match/capture.h"
#include "match/literals.h"

enum { OOS_SIGNALS_MAX = 448 };

/* name, word in the data file */
#define OOS_SIGNAL_KIND_MAP(X)                                                                               \
    X(OOM, "oom")         /* memory ran out, in the words of an allocator or a driver */                     \
    X(PART, "part")       /* a piece of such a message that carries figures */                               \
    X(REFUSAL, "refusal") /* the engine itself says no for lack of memory */                                 \
    X(HOST, "host")       /* host memory, shared memory, kills */                                            \
    X(WORDING, "words")   /* words that speak of memory: the sentence decides (grammar.c) */                 \
    X(PLACE, "place")     /* where in its source a sentence about memory stands: stage and cause */          \
    X(FAULT, "fault")     /* a failure that is not about memory */                                           \
    X(MUTE, "mute")       /* harmless sentence that holds the words of a failure */                          \
    X(FRAME, "frame")     /* a line of a traceback */                                                        \
    X(MARKER, "marker")   /* progress: from here on, this phase is under way */                              \
    X(START, "start")     /* an engine starts */                                                             \
    X(READY, "ready")     /* an engine has started */                                                        \
    X(WRAPPER, "wrapper") /* somebody passes a failure on; never the cause */                                \
    X(ENGINE, "engine")   /* who speaks */                                                                   \
    X(HINT, "hint")       /* a feature that is on */                                                         \
    X(SETUP, "setup")     /* model, flags, version, device */

typedef enum oos_signal_kind {
#define OOS_SIGNAL_KIND_ENUM(name, word) OOS_SIGNAL_##name,
    OOS_SIGNAL_KIND_MAP(OOS_SIGNAL_KIND_ENUM)
#undef OOS_SIGNAL_KIND_ENUM
} oos_signal_kind;

/* Says itself that memory ran out or was refused. */
static inline bool oos_signal_is_message(oos_signal_kind kind)
{
    return kind == OOS_SIGNAL_OOM || kind == OOS_SIGNAL_PART || kind == OOS_SIGNAL_REFUSAL ||
           kind == OOS_SIGNAL_HOST;
}

typedef struct oos_signal {
    const char *id; /* "torch.oom" */
    oos_signal_kind kind;
    oos_pattern *pattern; /* NULL: the literal says it all */
    const char *regex;
    oos_phase phase; /* OOS_PHASE_COUNT: none of its own */
    const char *cause;
    const char *engine; /* whose sentence it is; NULL: anybody's */
    bool repeat;        /* every match of a line counts, not only the first */
    bool cheap;         /* so frequent that nothing but its presence is noted */
    bool quiet;         /* figures only: does not move the phase */
    bool vague;         /* of a fault: names no reason, so a line that speaks of memory is not its own */
    bool hard;          /* of a fault: what follows it says nothing of its own reason in unlisted words */
    bool whole;         /* the sentence is the engine's own answer: it is shown whole */
    const char *unless; /* a signal in whose company this one is a consequence */
    bool cuttable;      /* the beginning of its sentence is enough: no part of it is left open */
    bool
        piece; /* looked for in every allocator message, also without its literal: it may be broken by a line end */
} oos_signal;

typedef struct oos_signals {
    oos_signal *list;
    size_t count;
    oos_literals *literals;
    /* signals of literal i: owners[first[i]] .. owners[first[i + 1] - 1] */
    const uint32_t *first;
    const uint16_t *owners;
    const char *const *words; /* the literals themselves */
    size_t literal_count;
    const struct oos_grammar *grammar;
    const oos_frames *frames;
    size_t lack_signal;      /* index of "words.lack" */
    size_t serving_signal;   /* a logger that speaks only while requests are served */
    size_t topic_signals[8]; /* of "words.kv" and the other topics of grammar.h */
} oos_signals;

/* A set of signals and facts. */
enum { OOS_SIGNAL_WORDS = (OOS_SIGNALS_MAX + 128) / 64 };
typedef struct oos_signal_set {
    uint64_t words[OOS_SIGNAL_WORDS];
} oos_signal_set;

static inline void oos_set_add(oos_signal_set *set, size_t index)
{
    set->words[index / 64] |= (uint64_t)1 << index % 64;
}
static inline void oos_set_remove(oos_signal_set *set, size_t index)
{
    set->words[index / 64] &= ~((uint64_t)1 << index % 64);
}
static inline bool oos_set_has(const oos_signal_set *set, size_t index)
{
    return set->words[index / 64] >> index % 64 & 1;
}
static inline void oos_set_join(oos_signal_set *set, const oos_signal_set *more)
{
    for (size_t i = 0; i < OOS_SIGNAL_WORDS; i++) set->words[i] |= more->words[i];
}

oomsight_status oos_signals_load(oos_arena *arena, const char *data_dir, oos_signals *ret_signals,
                                 oomsight_error *reterr);

/* Index of a signal, or SIZE_MAX. */
size_t oos_signals_find(const oos_signals *signals, const char *id);

#endif

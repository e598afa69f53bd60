#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "base/size.h"
#include "base/view.h"
#include "facts/facts.h"
#include "ledger/ledger.h"
#include "log/log.h"
#include "match/match.h"
#include <stdbool.h>
#include <stdint.h>

/* A traceback as a path through stages. Each frame belongs to some stages, by its function and its module
 * (data/explain/frames.json). The engine's own steps, which stand outside, say what is running: a start or a served step.
 * Within that the other frames are intersected, innermost first. What no engine ever ran is placed by
 * the names of its folders and files, which are alike across engines. */

typedef uint32_t oos_phase_set; /* a bit per phase; 0: nothing is known */
#define OOS_PHASE_BIT(phase) ((oos_phase_set)1 << (phase))
_Static_assert(OOS_PHASE_COUNT <= 32, "a set has a bit per phase");

typedef struct oos_frames oos_frames;

struct oos_signals; /* NULL: no names in other lines are read */
oomsight_status oos_frames_load(oos_arena *arena, const char *data_dir, const struct oos_signals *signals,
                                const oos_frames **ret_frames, oomsight_error *reterr);

/* The signals that name a frame in any line of a traceback, the most telling first, and the stages that each leaves. */
bool oos_frames_line(const oos_frames *frames, size_t at, size_t *ret_signal, oos_phase_set *ret_stages);

/* A list of stages by their words. */
oomsight_status oos_stages_read(const json_t *words, oos_phase_set *ret_stages, oomsight_error *reterr);

enum { OOS_TRACEBACK_MAX = 48 };

/* The frames of one failure, in the order they were printed: the innermost last. The oldest are forgotten. */
typedef struct oos_traceback {
    oos_phase_set frames[OOS_TRACEBACK_MAX];
    oos_phase_set
        bounds[OOS_TRACEBACK_MAX]; /* of a frame that is a step of the engine itself; 0: it is none */
    oos_phase_set method;          /* of the worker's method that is said to have failed */
    oos_phase_set logged;          /* of the loggers that print the traceback */
    oos_phase_set callee; /* of what the last frame's line of code calls: where a cut traceback went on */
    uint16_t count;
    bool dispatched; /* the last frame of an engine was one that passes a worker's method on */
    bool forward;    /* has frames of a model, its layers or their kernels */
    bool worker;     /* the last frame of an engine is one of its worker */
    bool closed;     /* the error's own line came: what follows is somebody else's */
    bool ending;     /* frames of a shutdown: a consequence, not a stage */
} oos_traceback;

/* Takes the frame of `line`, if it has one, or the method that it says has failed. `after`: what follows the line. */
void oos_traceback_take(const oos_frames *frames, oos_traceback *stack, oos_view line, oos_view after);

/* Takes the `[file.py:123]` in front of a line: where an engine logs a traceback it knows what it had called. */
void oos_traceback_logger(const oos_frames *frames, oos_traceback *stack, oos_view line);

/* The stages that all of the stack allows; 0: it says nothing. */
oos_phase_set oos_traceback_stages(const oos_traceback *stack);

/* Signals: the sentences, frames and markers that the engines, PyTorch and the drivers print, each with one or more
 * distinctive literals and, where figures are to be taken, a regex. Read from data/explain/signals.json. A regex takes
 * figures by the names of its groups: `tried_size` is the number `tried` written with a unit, `weights_gib` a number of
 * GiB, `kv_tokens_n` a count, `gmu_ratio` a fraction, `text_model` a piece of text. */

enum { OOS_SIGNALS_MAX = 512 };

/* name, word in the data file */
#define OOS_SIGNAL_KIND_MAP(X)                                                                               \
    X(OOM, "oom")         /* memory ran out, in the words of an allocator or a driver */                     \
    X(PART, "part")       /* a piece of such a message that carries figures */                               \
    X(REFUSAL, "refusal") /* the engine itself says no for lack of memory */                                 \
    X(HOST, "host")       /* host memory, shared memory, kills */                                            \
    X(WORDING, "words")   /* words that speak of memory: the sentence decides (grammar.c) */                 \
    X(PLACE, "place")     /* where in its source a sentence about memory stands: stage and cause */          \
    X(DENY, "deny")     /* words of a failure in a line that denies it, or only names them: not looked at */ \
    X(FAULT, "fault")   /* a failure that is not about memory */                                             \
    X(MUTE, "mute")     /* harmless sentence that holds the words of a failure */                            \
    X(FRAME, "frame")   /* a line of a traceback */                                                          \
    X(MARKER, "marker") /* progress: from here on, this phase is under way */                                \
    X(START, "start")   /* an engine starts */                                                               \
    X(READY, "ready")   /* an engine has started */                                                          \
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
    const char *why,
        *ask;           /* of a failure that may be about memory or not: what is known, and what would tell */
    bool repeat;        /* every match of a line counts, not only the first */
    bool cheap;         /* so frequent that nothing but its presence is noted */
    bool quiet;         /* figures only: does not move the phase */
    bool vague;         /* of a fault: names no reason, so a line that speaks of memory is not its own */
    bool hard;          /* of a fault: what follows it says nothing of its own reason in unlisted words */
    bool whole;         /* the sentence is the engine's own answer: it is shown whole */
    const char *unless; /* a signal in whose company this one is a consequence */
    const json_t *yields_to; /* signals in whose company its sentence does not name the stage */
    bool cuttable;           /* the beginning of its sentence is enough: no part of it is left open */
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

static inline void oos_signal_add(oos_signal_set *set, size_t index)
{
    set->words[index / 64] |= (uint64_t)1 << index % 64;
}
static inline void oos_signal_remove(oos_signal_set *set, size_t index)
{
    set->words[index / 64] &= ~((uint64_t)1 << index % 64);
}
static inline bool oos_signal_has(const oos_signal_set *set, size_t index)
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
bool oos_signals_have(const oos_signals *signals, const oos_signal_set *set, const char *id);
const oos_signal *oos_signals_first(const oos_signals *signals, const oos_signal_set *set,
                                    oos_signal_kind kind); /* NULL: none of that kind */

/* Conditions over a set of signals and facts, as rules and records of the knowledge base state them. */

enum { OOS_CONDITION_MAX = 24 };

/* All of, at least one of, none of: indices into a set. */
typedef struct oos_condition {
    uint16_t all[OOS_CONDITION_MAX], any[OOS_CONDITION_MAX], none[OOS_CONDITION_MAX];
    uint8_t all_count, any_count, none_count;
} oos_condition;

/* From the fields "all", "any" and "none" of a rule: names of signals ("torch.oom") and facts ("fact.torch_full"). */
oomsight_status oos_condition_read(const oos_signals *signals, const json_t *rule, oos_condition *ret_when,
                                   oomsight_error *reterr);

bool oos_condition_holds(const oos_condition *when, const oos_signal_set *set);

bool oos_phase_named(const char *word, oos_phase *ret_phase);

/* Incidents: what a log tells of one failure (or of one healthy start), and what follows from it. Filled in three
 * steps: collect.c takes lines, reason.c draws conclusions, and the knowledge base gives the words. */

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
    X(least_fraction, "least_mem_fraction_static", R)                                                        \
    X(step_tokens, "step_tokens", N)                                                                         \
    X(layers, "layers", N)                                                                                   \
    X(states, "states_bytes", B)                                                                             \
    X(prompt_limit, "prompt_cache_limit_bytes", B)                                                           \
    X(host_free, "host_free_bytes", B)

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

/* What a phase rests on, the most trusted first. name, word in JSON, words in the text */
#define OOS_BASIS_MAP(X)                                                                                     \
    X(SAID, "said", "the log says")          /* a sentence that names it */                                  \
    X(STACK, "stack", "the stack shows")     /* frames */                                                    \
    X(MARK, "mark", "by how far it got")     /* what the log had reached, or went on with */                 \
    X(FIGURES, "figures", "the figures fit") /* arithmetic on what was printed */                            \
    X(USUAL, "usual", "most often")          /* nothing of this text */

typedef enum oos_basis {
    OOS_BASIS_NONE, /* no phase is named */
#define OOS_BASIS_ENUM(name, word, words) OOS_BASIS_##name,
    OOS_BASIS_MAP(OOS_BASIS_ENUM)
#undef OOS_BASIS_ENUM
        OOS_BASIS_COUNT
} oos_basis;

const char *oos_basis_word(oos_basis basis);  /* NULL: none */
const char *oos_basis_words(oos_basis basis); /* "the stack shows"; "" */

enum { OOS_STAGES_MAX = 3 }; /* that are named where one is not certain */

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
    bool failed;     /* a failure of some kind was seen */
    bool read_on;    /* its text begins with the failure: how far the engine got is told below it */
    bool old_shape;  /* lines of vLLM before 0.8 */
    bool v1;         /* lines of the V1 engine's processes */
    bool v1_early;   /* ... as they were up to 0.10.0 */
    bool binary;     /* the input was no text */
    bool text_model; /* it is known, and has no encoder: asked for where an encoder is the answer */
    bool
        beyond_weights; /* PyTorch held far more than the model has: asked for where weights are the answer */
    uint64_t count;     /* equal incidents */

    /* concluded */
    bool is_oom;
    oos_phase phase;
    double phase_sure;
    const char *phase_why, *phase_rule; /* the rule's id; "" where none decided */
    oos_basis basis;
    oos_phase phases[OOS_STAGES_MAX]; /* the phase, and what else the text leaves, likeliest first */
    size_t phase_count;               /* 1 where the phase is certain, 0 where nothing shows one */
    const char *question; /* what would tell them apart; NULL: nothing has to, or the text has it all */
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
    uint64_t fingerprint, exact_print;
} oos_incident;

oos_number_id oos_number_find(const char *name, size_t len); /* OOS_NUMBER_COUNT: there is none */
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

/* The knowledge base: one record per error signature, with its mechanism, what helps at which cost, and what does not.
 * Read from data/kb; a record's path is its id. */

/* The same sentence in the languages we write. */
typedef struct oos_sentence {
    const char *en, *zh;
} oos_sentence;

/* Something people change: flags as one would paste them, or an action in words. */
typedef struct oos_advice {
    const char *const *change;
    size_t change_count;
    oos_sentence why, cost; /* cost NULL: none */
    const char *evidence;
    const char *since, *until; /* engine versions that have what it names; NULL: all the record is about */
    bool only_known;           /* told only of a log that is known to be of a version before `until` */
    oos_condition when;        /* what else the log shows */
    const char *command; /* the whole command with it; NULL: the log does not have one, or it is in words */
} oos_advice;

typedef struct oos_kb_record {
    const char *id; /* "vllm/context-too-long" */
    oos_sentence title, mechanism;
    const char *signature; /* a typical line */
    const char *engine, *introduced, *fixed;
    const oos_advice *fixes, *dead_ends;
    size_t fix_count, dead_end_count;
    const char *const *confused_with, *const *leads_to;
    size_t confused_count, leads_count;
    bool of_one; /* of one program: no explanation for another */
    oos_condition when;
    oos_phase_set phases; /* 0: any */
    const char *const *causes;
    size_t cause_count; /* 0: any */
    const json_t *json; /* the record itself, for printing */
} oos_kb_record;

typedef struct oos_kb {
    const oos_kb_record *list; /* sorted by id */
    size_t count;
} oos_kb;

oomsight_status oos_kb_load(oos_arena *arena, const char *data_dir, const oos_signals *signals,
                            oos_kb *ret_kb, oomsight_error *reterr);

const oos_kb_record *oos_kb_find(const oos_kb *kb, const char *id); /* NULL: no such record */

/* The most specific record that fits a concluded incident, or NULL. */
const oos_kb_record *oos_kb_match(const oos_kb *kb, const oos_incident *incident);

/* Advice put through the figures of the log: a value is computed from them, or given as a direction, and what does not lift
 * the failure or is what the log already has is not given at all. */

typedef enum oos_advice_fate {
    OOS_ADVICE_AS_IT_IS,
    OOS_ADVICE_FILLED, /* the second word is another */
    OOS_ADVICE_DROPPED
} oos_advice_fate;

/* What a flag is filled with where no figure is known: a direction, which nobody can paste. */
#define OOS_ADVICE_LOWER "lower"
#define OOS_ADVICE_HIGHER "higher"
#define OOS_ADVICE_LEAST "{least}" /* of a share: what the log says is the least that works */

typedef struct oos_settled {
    oos_advice_fate fate;
    char value[32]; /* of what is filled */
    char why[120],
        why_zh[160]; /* of what is dropped: what the figures say against it, "" where they say nothing */
} oos_settled;

/* What to change and what not to, for one incident: the advice of its record, of the causes that are possible beside it, and of the
 * engine's ladder of levers for the phase, put through the figures of the log. */

enum { OOS_FIXES_MAX = 8, OOS_DEAD_ENDS_MAX = 8 };

/* How often people report a lever as the cure, or as tried in vain, at a failure in these phases: orders what the ladder holds equal. */
typedef struct oos_tried {
    const char *lever;
    oos_phase_set phases; /* bits by oos_phase */
    uint64_t worked, in_vain;
} oos_tried;

/* A lever that is of no use before a release, where the log shows what it depends on, whatever the ladder says. */
typedef struct oos_spent {
    const char *engine, *lever;
    oos_condition when;
    oos_phase_set phases;
    oos_version until;
    oos_sentence why;
} oos_spent;

/* Advice that is no engine's flag and whose use the log decides. */
typedef struct oos_named {
    const char *change;
    oos_role role;
    const char *flag;          /* tells the type of weights; or several ranks crash without it */
    const char *const *values; /* of the flag, or in the model's name: no smaller weights are to be had */
    size_t value_count;
    /* Of a part of the memory that a count makes smaller: the count, the part, and the cause at which that part is the request itself. */
    oos_number_id count, part;
    const char *cause;
    uint64_t step; /* of the count */
    bool rises;    /* what is moved elsewhere is counted */
    bool each;     /* the log has the count of all sequences together */
} oos_named;

enum { OOS_NAMED_MAX = 32 };
typedef struct oos_advisers {
    const oos_ladder *ladders[OOS_ENGINE_COUNT]; /* by the engine's place in oos_engine_list */
    oos_named named[OOS_NAMED_MAX];
    size_t named_count;
    const oos_tried *tried;
    const oos_spent *spent;
    size_t tried_count, spent_count;
} oos_advisers;

oomsight_status oos_advisers_load(oos_arena *arena, const char *data_dir, const oos_signals *signals,
                                  oos_advisers *ret_advisers, oomsight_error *reterr);

/* What the flag is to the engine of the ladder (NULL: none has one), or the words are to any. Of a flag only its name counts. */
oos_role oos_advice_role(const oos_advisers *advisers, const oos_ladder *ladder, const char *change);
const oos_named *oos_advice_named(const oos_advisers *advisers, oos_role role); /* NULL: none */
const oos_named *oos_advice_change(const oos_advisers *advisers, const char *change);

oos_settled oos_advice_settle(const oos_advisers *advisers, const oos_ladder *ladder,
                              const oos_advice *advice, const oos_incident *incident);

/* Sets `fixes` and `dead_ends` of a concluded incident; without memory there are none. */
void oos_advise(oos_arena *arena, const oos_advisers *advisers, const oos_kb *kb, oos_incident *incident);

/* From lines to incidents: groups what belongs to one failure, keeps figures and evidence, bounded in memory however
 * long the log is and however often it fails. */

typedef struct oos_collector oos_collector;

/* `on_incident` gets each incident when it is over. All of it, strings too, is the collector's and valid during the call
 * only: whoever wants to keep it copies it. */
oomsight_status oos_collector_create(const oos_signals *signals, oos_bench *bench,
                                     void (*on_incident)(void *context, const oos_incident *incident),
                                     void *context, oos_collector **ret_collector, oomsight_error *reterr);

void oos_collector_free(oos_collector *collector); /* NULL is fine */

void oos_collector_file(oos_collector *collector, const char *name); /* a new file begins */
void oos_collector_line(void *collector, const oos_hit_line *line);  /* to be given to oos_scan_file() */
/* Nothing more for now: what is open is told. What still comes of it (somebody passes the failure on) is not told again. */
void oos_collector_settle(oos_collector *collector);
void oos_collector_part(oos_collector *collector); /* the text goes on in another file, with lines from 1 */
/* The file is over. `binary`: it was no text. */
void oos_collector_end(oos_collector *collector, uint64_t lines, bool binary);

/* Where a collector stands, to go on from there: with the lines behind `incident` to come again if one is open. */
typedef struct oos_collector_point {
    const oos_incident *history; /* since the last start of the engine, and before the open incident */
    bool open; /* an incident is open and not told: first_part, first_byte and first_line say where */
    bool told; /* the last one is told, but may go on */
    uint32_t first_part;
    uint64_t first_byte, first_line;
    uint64_t version; /* changes when the history may have changed */
    int64_t time;     /* the last one that was read until there */
} oos_collector_point;

oos_collector_point oos_collector_at(const oos_collector *collector);
void oos_collector_resume(oos_collector *collector, const oos_incident *history, bool told, int64_t time);
uint64_t oos_collector_touched(const oos_collector *collector);            /* counts signs of failure */
const oos_incident *oos_collector_history(const oos_collector *collector); /* figures since the last start */

/* From an incident's lines and figures to its phase and cause: arithmetic gives facts, and ordered rules over signals
 * and facts (data/explain/phases.json, causes.json) give the answer, how sure it is, and what would make it surer. */

/* name: what holds when the fact is true. Shares are of the device's total. */
#define OOS_FACT_MAP(X)                                                                                         \
    X(has_figures)    /* the failing request's size is known */                                                 \
    X(torch_known)    /* so is what PyTorch held */                                                             \
    X(tried_gt_total) /* one request above the whole card */                                                    \
    X(tried_huge)     /* one request above 256 GiB, card unknown */                                             \
    X(text_model)     /* the model of the log has no encoder */                                                 \
    X(beyond_weights) /* PyTorch held far more than the weights of the model */                                 \
    X(device_small) /* PyTorch holds nothing, the device is all but free, and one request is above its total */ \
    X(pool_le_free)   /* the engine's pool refused although it had as many tokens as were asked for */          \
    X(kv_given)       /* the size of the KV cache was given by hand: no budget enters it */                     \
    X(kv_given_large) /* ... and is more than the card has beside the weights */                                \
    X(tried_le_free)  /* refused although as much was free: a slice, shared memory, or pieces */                \
    X(alloc_gt_total) /* PyTorch holds more than the card: a driver that spills into host memory */             \
    X(cg_large)       /* graphs are estimated at an eighth of the card, or 8 GiB: out of proportion */          \
    X(tried_fifth)    /* one request of a fifth of the card: no single weight is that large */                  \
    X(tried_ge_256mib)                                                                                          \
    X(tried_ge_512mib)                                                                                          \
    X(tried_ge_gib)                                                                                             \
    X(others_hold)      /* other processes hold 10 % or more */                                                 \
    X(others_most)      /* ... 40 % or more */                                                                  \
    X(unalloc_ge_tried) /* PyTorch caches more than was asked for */                                            \
    X(unalloc_large)    /* ... a gibibyte or more: large temporaries came and went */                           \
    X(private_some)     /* a private pool holds free blocks */                                                  \
    X(private_gib)      /* ... a gibibyte or more */                                                            \
    X(private_large)    /* ... a tenth of the card: no graph pool is that large */                              \
    X(unalloc_tenth)    /* PyTorch caches a tenth of the card, or 16 times what was asked for */                \
    X(torch_empty)      /* PyTorch held nothing yet */                                                          \
    X(card_full)        /* next to nothing of the card was free, less than was asked for */                     \
    X(torch_full)       /* live and pooled tensors fill 85 % */                                                 \
    X(kv_negative)      /* the KV share came out zero or negative */                                            \
    X(budget_exceeded)  /* KV share negative, or weights and activations above the budget */                    \
    X(share_low)        /* the command gives the engine 85 % of the card or less */                             \
    X(weights_over_budget)                                                                                      \
    X(weights_tiny)    /* nothing left although the weights are below 2 GiB */                                  \
    X(initial_used)    /* much in use before the engine's own weights */                                        \
    X(non_torch_large) /* 2 GiB or more outside PyTorch while profiling */                                      \
    X(startup_own)     /* in use at start: no more than a context (7 %) */                                      \
    X(startup_little)  /* ... up to 15 % */                                                                     \
    X(free_unchanged)  /* as much free after the profile as before it */                                        \
    X(sleep_residue)   /* much still in use after falling asleep */                                             \
    X(old_shape)       /* vLLM before 0.8 */                                                                    \
    X(v1)              /* processes of the V1 engine */                                                         \
    X(last_marker)     /* the log told how far it got */                                                        \
    X(serving_last)    /* ... and that was work on a request */                                                 \
    X(read_on)         /* ... below the failure */                                                              \
    X(program)         /* a program on PyTorch without a budget of its own: no server's causes */               \
    X(server)          /* an engine that shares the card out beforehand */                                      \
    X(forward)         /* the stack has frames of a model */                                                    \
    X(ending)          /* the stack is that of a shutdown: a consequence, not a stage */
/* Where it failed. */
typedef struct oos_stage_rules oos_stage_rules;

oomsight_status oos_stage_rules_load(oos_arena *arena, const char *data_dir, const oos_signals *signals,
                                     const oos_stage_rules **ret_rules, oomsight_error *reterr);

/* Fills the phase and what it rests on; false: nothing in the text shows a stage. `*ret_sentence`: the signal that names it, or NULL. */
bool oos_stages_decide(const oos_signals *signals, const oos_stage_rules *rules, const oos_signal_set *set,
                       oos_incident *incident, const oos_signal **ret_sentence);

/* The engine said that it is up, or worked on requests. */
bool oos_stages_serving(const oos_signals *signals, const oos_signal_set *set, const oos_incident *incident);

typedef struct oos_cause_rules oos_cause_rules;

oomsight_status oos_cause_rules_load(oos_arena *arena, const char *data_dir, const oos_signals *signals,
                                     const oos_cause_rules **ret_rules, oomsight_error *reterr);

/* Fills the concluded part of `incident`, without signature and ledger. */
void oos_reason(const oos_signals *signals, const oos_cause_rules *rules, oos_incident *incident);

/* A log explained: every incident in it, or the one healthy start. */

enum { OOS_INCIDENTS_MAX = 128 };

/* What an explanation needs of data/: built once, shared by explanations of one thread. */
typedef struct oos_knowledge {
    oos_signals signals;
    const oos_cause_rules *rules;
    oos_kb kb;
    oos_advisers advisers;
    /* Whether the model that a log names is known and takes text alone; NULL: no models are known. */
    bool (*is_text_model)(const void *models, const oos_incident *incident);
    /* Bytes of its weights at most, on one GPU; 0: unknown. */
    uint64_t (*weights_of)(const void *models, const oos_incident *incident);
    const void *models;
} oos_knowledge;

oomsight_status oos_knowledge_load(oos_arena *arena, const char *data_dir, oos_knowledge *ret_knowledge,
                                   oomsight_error *reterr);

typedef struct oos_explanation {
    oos_incident *incidents; /* distinct ones in order of appearance, at most OOS_INCIDENTS_MAX */
    size_t count, room;
    uint64_t dropped; /* incidents beyond that */
    uint64_t lines, bytes;
    bool cut_hits, cut_lines;
    unsigned cleaned; /* OOS_CLEAN_* */
    oos_logstream_cut stream_cut;
} oos_explanation;

/* Told of each distinct incident when it is over, and of each repetition (`again`). May be NULL. */
typedef void oos_on_incident(void *context, const oos_incident *incident, bool again);

/* Read `stream` to its end. `explanation` must be zero or the result of an earlier call, which is then extended. */
oomsight_status oos_explain_stream(oos_arena *arena, const oos_knowledge *knowledge, oos_logstream *stream,
                                   oos_explanation *explanation, oomsight_error *reterr);

/* The same for one text that comes bit by bit, as long as it likes: a growing file. */
typedef struct oos_explainer oos_explainer;

oomsight_status oos_explainer_open(oos_arena *arena, const oos_knowledge *knowledge,
                                   oos_explanation *explanation, oos_on_incident *on_incident, void *context,
                                   oos_explainer **ret_explainer, oomsight_error *reterr);
void oos_explainer_close(oos_explainer *explainer); /* NULL is fine */
/* What takes its bytes, and has its lines: of the text that is being read. */
oos_linescan *oos_explainer_scan(const oos_explainer *explainer);
/* Nothing more for now: an incident that is open counts as over. */
oomsight_status oos_explainer_settle(oos_explainer *explainer, oomsight_error *reterr);
/* The text is over; another may follow, with line numbers from 1. */
oomsight_status oos_explainer_finish(oos_explainer *explainer, oomsight_error *reterr);

/* One of many growing texts that share a bench. `part` 0 begins at `origin`. With `each`, equal incidents are told one by one
 * and nothing is kept of them: `explanation` is empty again after each call of `on_incident`. */
oomsight_status oos_explainer_open_growing(oos_arena *arena, const oos_knowledge *knowledge, oos_bench *bench,
                                           const oos_scan_origin *origin, oos_explanation *explanation,
                                           oos_on_incident *on_incident, void *context,
                                           oos_explainer **ret_explainer, oomsight_error *reterr);
/* The text goes on in another file: what is open stays open. */
oomsight_status oos_explainer_next_part(oos_explainer *explainer, const oos_scan_origin *origin,
                                        oomsight_error *reterr);
/* Something waits to be told, or for what follows it. */
bool oos_explainer_waits(const oos_explainer *explainer);
oos_collector *oos_explainer_collector(oos_explainer *explainer);

/* Arithmetic on the figures of one incident. */

typedef enum oos_fact {
#define OOS_FACT_ENUM(name) OOS_FACT_##name,
    OOS_FACT_MAP(OOS_FACT_ENUM)
#undef OOS_FACT_ENUM
        OOS_FACT_COUNT
} oos_fact;

const char *oos_fact_name(oos_fact fact); /* "tried_gt_total" */

static inline bool oos_has_fact(const oos_signal_set *set, oos_fact fact)
{
    return oos_signal_has(set, OOS_SIGNALS_MAX + (size_t)fact);
}

/* Adds what holds to `set`, fact i at index OOS_SIGNALS_MAX + i. */
void oos_facts_find(const oos_incident *incident, oos_signal_set *set);

/* What other processes held, by the message's own list or by subtraction. */
bool oos_facts_others(const oos_incident *incident, uint64_t *ret_bytes);

/* What PyTorch holds and has not given out; 0: not known. */
uint64_t oos_facts_cached(const oos_incident *incident);

/* Does a sentence say that memory is lacking, in words that nobody listed as a whole? {failing or lacking} x {allocating,
 * mapping, fitting} x {a word for memory, or a size}; the words are in data/explain/words.json, written by hand and held
 * against what tools/harvest_messages.py finds in the sources of PyTorch, the drivers' libraries and the engines. */

typedef enum oos_says {
    OOS_SAYS_NOTHING,
    OOS_SAYS_ADVICE, /* speaks of memory that may lack: "if you run out of memory" */
    OOS_SAYS_MEMORY, /* speaks of memory */
    OOS_SAYS_LACK    /* says that it is lacking */
} oos_says;

/* What the lacking thing is said to be; each is a signal, "words.kv" and so on. */
enum {
    OOS_TOPIC_KV = 1,
    OOS_TOPIC_SHARED = 2,
    OOS_TOPIC_HOST = 4,
    OOS_TOPIC_LOAD = 8,
    OOS_TOPIC_GRAPH = 16,
    OOS_TOPIC_COMM = 32,  /* communicators */
    OOS_TOPIC_SERVE = 64, /* a request, a batch, a decode step */
    OOS_TOPIC_PREFILL = 128,
    OOS_TOPIC_COUNT = 8
};

typedef struct oos_grammar oos_grammar;

oomsight_status oos_grammar_load(oos_arena *arena, const char *data_dir, const oos_grammar **ret_grammar,
                                 oomsight_error *reterr);

/* *ret_topics (may be NULL): of the sentences that say it. */
oos_says oos_grammar_read(const oos_grammar *grammar, oos_view text, unsigned *ret_topics);

/* The ledger of an incident: who held the device at the moment of failure, as far as the log tells. */

/* Fills `held`, so that the rows add up to what the device had in use; nothing is filled when
 * the log does not tell that much. */
void oos_holdings_rebuild(oos_arena *arena, oos_incident *incident);

/* The same for each rank that printed figures of its own. */
void oos_holdings_of_ranks(oos_arena *arena, oos_incident *incident);

/* One line at a time against the signals: for output that is read while it is printed, where the collector reads whole texts. */

typedef struct oos_line_reader oos_line_reader;

/* `data_dir` NULL: embedded data. */
oomsight_status oos_line_reader_create(const char *data_dir, oos_line_reader **ret_reader,
                                       oomsight_error *reterr);
void oos_line_reader_free(oos_line_reader *reader); /* NULL is fine */

/* Hands over every signal that the line holds, in the order of the data. `match` has no captures where the literal says it all. */
void oos_line_read(oos_line_reader *reader, oos_view line,
                   void (*on_signal)(void *context, const oos_signal *signal, const oos_match *match),
                   void *context);

/* Figures out of captures: `tried_size` = "1.56 GiB" and the like. */

/* Which number a group name stands for and what its text is worth. False: the name is none of ours, or the text is no
 * number. */
bool oos_number_read(const oos_capture *capture, uint64_t line, oos_number_id *ret_id,
                     oos_number *ret_number);

/* A size with its unit: "1.56 GiB", "0 bytes". */
bool oos_number_size(oos_view text, oos_number *ret_number);

/* Values of the engine's set-up as a log prints them: `key=0.8`, `'key': 0.8`, `--key 0.8`. */

/* Of the command, the arguments or the configuration, in this order. */
bool oos_setup_value(const oos_setup_text *setup, const char *flag, double *ret_value);

/* The same with a unit behind it: 60G is 60 x 2^30, 60g is 60 x 10^9, as the engines read them. */
bool oos_setup_bytes(const oos_setup_text *setup, const char *flag, double *ret_bytes);

bool oos_setup_on(const oos_setup_text *setup, const char *flag); /* a switch */

/* Whether a value of the flag begins so, whatever the case of its letters; or, of JSON, has these keys with these values. */
bool oos_setup_begins(const oos_setup_text *setup, const char *flag, const char *value);
bool oos_setup_has(const oos_setup_text *setup, const char *flag, const char *value);

/* Whether the command or the arguments that differ from the defaults have this flag. */
bool oos_setup_names(const oos_setup_text *setup, const char *flag);

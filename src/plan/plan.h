#pragma once
#include "base/size.h"
#include "command/command.h"
#include "facts/facts.h"
#include "ledger/ledger.h"
#include "sizes/sizes.h"

/* The KV cache of a plan: its layout, and what fits into the memory that is left. */

/* Layers that share tensors. */
typedef struct oos_kv_set {
    const char *kind; /* "full_attention", "sliding_window", "mamba", ... */
    uint64_t layers, block_tokens, page_bytes;
    uint64_t request_blocks; /* that one request of the longest length claims */
} oos_kv_set;

typedef struct oos_kv_layout {
    double bytes_per_token; /* of full attention on one GPU: for people */
    uint64_t block_tokens, page_bytes, block_bytes, tensor_count;
    uint64_t padding_layers;
    bool estimated;    /* an architecture we do not know: from the common fields */
    bool blocks_given; /* the command says how many, whatever memory there is */
    const oos_kv_set *groups;
    size_t group_count;
} oos_kv_layout;

/* The cache filled into an amount of memory. Blocks and tokens are set even when the engine refuses. */
typedef struct oos_kv_fill {
    uint64_t available_bytes;
    uint64_t blocks, tokens; /* as the engine prints them */
    double max_concurrency;
    uint64_t needed_bytes; /* for one request of max_model_len */
    uint64_t
        insisted_bytes; /* ... and what else the engine insists on: the null block, a state for each request */
    bool refused;       /* the engine says no */
    const char *refusal;       /* its sentence, with the same figures */
    oos_u64 estimated_max_len; /* the length the refusal names, or what auto-fit chose */
    oos_u64 capture_cap;       /* graphs are captured for so many requests at most, by the blocks of states */
} oos_kv_fill;

/* A plan: the start-up of an engine foreseen, phase by phase, with the first phase that fails and what would help. */

/* One change that may mend a refused command: leave a flag out, or give it a number, a word or nothing. */
typedef struct oos_mend {
    const char *flag;
    bool leave_out;
    const char *instead_of; /* what it stands for in the command, and is left out; NULL: nothing */
    bool misspelt;          /* ... because no flag is written so */
    bool rewritten;         /* ... because its number is, which the engine does not read as it stands */
    const char *text;       /* the word in place of a number; NULL: `value`, or 0: a switch */
    uint64_t value;
} oos_mend;

enum { OOS_MENDS_MAX = 4 };

typedef struct oos_refusal {
    const char *sentence; /* the engine's own, shortened; NULL: nothing is refused */
    oos_phase phase;      /* arguments, or the phase in which the engine comes to it */
    bool
        may_be_over; /* it rests on what has changed from release to release, and this one is newer than any known */
    oos_mend mends[OOS_MENDS_MAX];
    size_t mend_count;
} oos_refusal;

/* A command while it is checked, see plan/refusals.c. */
typedef struct oos_term_value {
    const char *word; /* NULL: it is none */
    double real;
    uint64_t number;
    bool numbered, whole; /* has a number; which is not negative and has no fraction */
} oos_term_value;

static inline oos_term_value oos_number_value(uint64_t number)
{
    return (oos_term_value){.number = number, .real = (double)number, .numbered = true, .whole = true};
}

typedef struct oos_check {
    oos_arena *arena;
    const oos_serve *serve;
    const oos_argument_facts *facts;
    oos_version version;
    const oos_refusals *refusals;
    const void *rules; /* the struct that the engine's rules lie in */
    const void *of;    /* the start, as the engine's code knows it */
    oos_term_value (*field)(const struct oos_check *c, size_t id);
    bool (*const *checks)(struct oos_check *c); /* each returns true when it refused */
    oos_refusal *refusal;
    bool newer;     /* than any release that is known */
    uint64_t given; /* a bit for each flag of the command: most questions are about flags that it has not */
    bool nomem;
} oos_check;

/* The first refusal of the command, if there is one. */
oomsight_status oos_check_run(oos_check *c, oomsight_error *reterr);

/* Refuse with a sentence; only the first counts. Always true, so that a check can return it. */
bool oos_check_refuse(oos_check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool oos_check_words(oos_check *c); /* what the parser of the command itself refused */
void oos_check_mend(oos_check *c, const char *flag, uint64_t value);
void oos_check_mend_without(oos_check *c, const char *flag);

/* The text a flag was last given with; NULL: not given, or a switch. */
const char *oos_check_given(const oos_check *c, const char *flag);
bool oos_check_number(const oos_check *c, const char *flag, uint64_t *ret_value); /* whole, not negative */
bool oos_check_has(const oos_check *c, const char *flag);

/* A change of the command, planned again. The first of a plan's fixes may be answers: they have a name. */
typedef struct oos_fix {
    const char *const *change; /* words to add to the command */
    size_t change_count;
    const char *const *leave_out; /* flags to leave out */
    size_t leave_out_count;
    const char *without; /* ... with blanks between them, NULL: none */
    oomsight_verdict verdict;
    double probability; /* of starting */
    oos_phase phase;    /* OOS_PHASE_COUNT: none fails */
    uint64_t kv_tokens;
    const char *keeps, *gives_up;
    oos_rung rung;       /* of what it gives up, the dearest */
    const char *release; /* of the engine that the command starts with; NULL: the one that was planned */
    bool unmeasured;     /* ... and no start of that one was measured */
    bool host_open;      /* ... and whether the host has room for what that one offloads is open */
    const char *name;    /* "least_change", ...; NULL: no answer */
    const char *model;   /* a checkpoint in the place of the command's; NULL: that one */
    uint64_t likely_length, certain_length; /* of an answer: the longest requests with these flags; 0: none */
    uint64_t
        middle_length; /* ... where a certain start costs much: with flags that are enough by the middle estimate; 0: not much */
    uint64_t requests, request_tokens; /* of an answer: how many at once, of that length */
    const char *command;               /* the whole command, quoted for a shell; NULL: not formed */
} oos_fix;

/* Before what the engine would print. A log that holds a report is not taken for a failure by it. */
#define OOS_EXPECTED_ERROR "Expected error: "

/* When flags cannot do it. */
enum { OOS_NEED_GPUS_MAX = 4, OOS_NEED_FLAGS_MAX = 24 };
typedef struct oos_need_gpu {
    const char *gpu;
    uint64_t count;
    const char *flags[OOS_NEED_FLAGS_MAX];
    size_t flag_count;
    uint64_t kv_tokens;
    uint64_t memory_bytes; /* of one card, all of it */
    const char *command;   /* the whole command with these flags; NULL: not formed */
    oomsight_verdict verdict;
    double probability; /* of starting */
} oos_need_gpu;
/* A quantised checkpoint of the same model that is known by its name, in its place. */
enum { OOS_NEED_CHECKPOINTS_MAX = 4 };
typedef struct oos_need_checkpoint {
    const char *id;
    uint64_t weights_bytes; /* of one rank */
    oos_fix fix;            /* what else changes; its command is whole. Verdict unknown: the weights fit */
} oos_need_checkpoint;
typedef struct oos_needs {
    uint64_t checkpoint_bytes,
        checkpoint_tokens; /* of a 4-bit checkpoint, one rank; 0: it would not fit or is none */
    oos_need_checkpoint checkpoints[OOS_NEED_CHECKPOINTS_MAX]; /* the smallest change first */
    size_t checkpoint_count;
    oos_need_gpu gpus[OOS_NEED_GPUS_MAX]; /* smallest first */
    size_t gpu_count;
    const char *release; /* of the engine that takes the command; NULL: this one does, or none */
    bool no_release;     /* none that is known takes it */
    bool no_device;      /* sixteen of no known device are enough */
} oos_needs;

/* What no flag tells: what the plan takes, and what comes out the other way. */
enum { OOS_FORKS_MAX = 4 };
typedef struct oos_fork {
    const char *meant, *other, *closed_by;
    uint64_t kv_bytes, kv_tokens, other_kv_bytes, other_kv_tokens;
    oomsight_verdict verdict, other_verdict;
    oos_phase phase, other_phase; /* OOS_PHASE_COUNT: none fails */
} oos_fork;

/* A flag of which no value, alone, gets past the phase that decides. */
typedef struct oos_inert {
    const char *flag, *why;
    oos_phase needed_by; /* a later phase, for which the first answer has it; OOS_PHASE_COUNT: none */
} oos_inert;

/* What an engine resolved, under the name by which it is known. */
typedef enum oos_setting_kind {
    OOS_SETTING_WHOLE,
    OOS_SETTING_REAL,
    OOS_SETTING_YES, /* whole: 0 or 1 */
    OOS_SETTING_TEXT,
    OOS_SETTING_GIB,  /* whole: bytes */
    OOS_SETTING_SIZES /* whole: how many, 0 for none; most: the largest */
} oos_setting_kind;
typedef struct oos_setting {
    const char *name, *called; /* by reports, and by an engine that has another word; NULL: the same */
    oos_setting_kind kind;
    uint64_t whole, most;
    double real;
    const char *text;
} oos_setting;

static inline oos_setting oos_setting_called(const char *called, oos_setting setting)
{
    setting.called = called;
    return setting;
}
static inline oos_setting oos_setting_text(const char *name, const char *value)
{
    return (oos_setting){.name = name, .kind = OOS_SETTING_TEXT, .text = value};
}
static inline oos_setting oos_setting_whole(const char *name, uint64_t value)
{
    return (oos_setting){.name = name, .kind = OOS_SETTING_WHOLE, .whole = value};
}
static inline oos_setting oos_setting_yes(const char *name, bool value)
{
    return (oos_setting){.name = name, .kind = OOS_SETTING_YES, .whole = value};
}
static inline oos_setting oos_setting_real(const char *name, double value)
{
    return (oos_setting){.name = name, .kind = OOS_SETTING_REAL, .real = value};
}
static inline oos_setting oos_setting_gib(const char *name, uint64_t bytes)
{
    return (oos_setting){.name = name, .kind = OOS_SETTING_GIB, .whole = bytes};
}
static inline oos_setting oos_setting_sizes(const char *name, uint64_t count, uint64_t most)
{
    return (oos_setting){.name = name, .kind = OOS_SETTING_SIZES, .whole = count, .most = most};
}

/* An amount that the phases are made of, for who compares with a log. */
typedef struct oos_part {
    const char *name;
    oos_amount amount;
} oos_part;

/* What an engine resolved under names of its own. */
typedef struct oos_own_setting {
    const char *name; /* "mem_fraction_static" */
    double value;
} oos_own_setting;

/* What the doubts of a plan are found by (plan/doubt.c), as far as engines differ. */
typedef struct oos_doubtful {
    uint64_t torch_minor;   /* of the PyTorch that the release pins */
    const char *share_flag; /* says which share of the device is the engine's */
    double share;
    const char *cache_flag;         /* says the size of the cache itself */
    uint64_t cache_bytes;           /* ... which it has; 0: by the share */
    uint64_t beside_bytes;          /* graphs and what serving adds, at most */
    const char *offload_flag;       /* says how many GiB of weights stay in host memory; NULL: none does */
    double offload_gib;             /* ... of each rank */
    const char *offload_cache_flag; /* the same of the cache, over all ranks; NULL: none does */
    bool drafter;                   /* a model of its own drafts */
    bool drafter_unknown;           /* layers draft that are not known here */
    const char *untried;            /* what no start shows, as a sentence; NULL: nothing */
} oos_doubtful;

/* Will it start? */
typedef struct oos_plan_answer {
    oomsight_verdict verdict;
    double chance;            /* of starting, by the ranges alone: that of the phase with the least */
    double probability;       /* ... as starts of that chance turned out; below 0: nobody can tell */
    oos_phase phase;          /* first that fails at the best guess, OOS_PHASE_COUNT: none */
    double phase_probability; /* that it fails there or before; 0: none fails */
    oos_cause cause;
    const char *why; /* the mechanism in one or two sentences, NULL when it fits */
    oos_u64 tried_bytes;
    const char *parted; /* what it does each way of a fork; NULL: both ways end alike, or nobody can tell */
} oos_plan_answer;

/* What it serves then. */
typedef struct oos_plan_serving {
    uint64_t tp, pp, dp;          /* ranks: tensor parallel, stages, replicas */
    uint64_t ranks;               /* on one machine, each on a GPU of its own */
    uint64_t length;              /* tokens of the longest request */
    uint64_t requests;            /* at once, at most */
    uint64_t step_tokens;         /* of one step of prefill */
    const char *attention;        /* the backend */
    const char *attention_reason; /* why not the one before it; NULL: it was first */
} oos_plan_serving;

/* What it is made of, of the stage that holds most. */
typedef struct oos_plan_sizes {
    uint64_t stage;                    /* the pipeline stage that holds most */
    oos_weights weights;               /* ... its weights */
    const uint64_t *stage_param_bytes; /* parameters as created, per pipeline stage */
    oos_amount context, communicators; /* held from the first phase on */
    uint64_t budget_bytes;             /* the engine's share of the device, as it rounds it */
    oos_amount non_kv;                 /* what the engine subtracts from it */
    const oos_part *parts;
    size_t part_count;
} oos_plan_sizes;

/* What would help. */
typedef struct oos_plan_help {
    const oos_fix *fixes;
    size_t fix_count, answer_count; /* the answers are the first of the fixes, what to paste first of them */
    const oos_needs *needs;         /* NULL: flags can do it, or nobody knows */
    const oos_inert *inert;
    size_t inert_count;
    const oos_fork *forks;
    size_t fork_count;
    const oos_need_gpu *choices; /* for every GPU: those on which it likely starts, the least memory first */
    size_t choice_count;
} oos_plan_help;

/* What an engine says of it in its own words. */
typedef struct oos_plan_told {
    const oos_setting *settings; /* what the engine resolved, in the order of reports */
    const oos_setting *compared; /* what releases of the engine are compared by */
    const oos_own_setting *own;  /* beside the settings */
    size_t setting_count, compared_count, own_count;
    const char *const *resolved; /* what was assumed or downgraded while resolving, in words */
    size_t resolved_count;
    const char *const *notes;
    size_t note_count;
} oos_plan_told;

/* What the engine that is installed answers to a command (docs/reference/formats/exact.md): one line of JSON from a process that
 * has it imported. Written by somebody else's program, so every field is bounded. */
typedef enum oos_exact_verdict { OOS_EXACT_UNKNOWN, OOS_EXACT_TAKEN, OOS_EXACT_REFUSED } oos_exact_verdict;
enum { OOS_EXACT_VALUES_MAX = 64, OOS_EXACT_SIZES_MAX = 512, OOS_EXACT_STAGES_MAX = 64 };
typedef struct oos_exact {
    oos_exact_verdict verdict;
    uint64_t id;                              /* of its request; 0: not told */
    const char *engine, *version;             /* version NULL: it could not be imported */
    const char *stage, *sentence;             /* where it stopped, and its words; NULL: not told */
    oos_setting values[OOS_EXACT_VALUES_MAX]; /* under the names of the settings of a plan */
    size_t value_count;
    uint64_t sizes[OOS_EXACT_SIZES_MAX]; /* batches that are captured, ascending */
    size_t size_count;
    bool sizes_known;
    uint64_t param_bytes[OOS_EXACT_STAGES_MAX]; /* as its classes create them on one rank of each stage */
    size_t stage_count;                         /* 0: they were not built */
    const char *kv_layers_json;                 /* what its layers keep for each token; NULL: not told */
    uint64_t budget_bytes, blocks, tokens;      /* that fit into so much by its own planning; 0: not told */
    double seconds, import_seconds;             /* what it took; below 0: not told */
} oos_exact;

const char *oos_exact_word(oos_exact_verdict verdict); /* "taken" */

/* False: it is no answer. */
bool oos_exact_read(oos_arena *arena, oos_view line, oos_exact *ret_exact);
const oos_setting *oos_exact_value(const oos_exact *exact, const char *name); /* NULL: it was not told */
bool oos_exact_whole(const oos_exact *exact, const char *name, uint64_t most, uint64_t *ret_value);

/* What became of asking it. */
typedef struct oos_exact_told {
    const oos_exact *answer; /* NULL: there is none, and `problem` says why */
    const char *problem;     /* why the figures are plan's own; NULL: they are the engine's */
    const char *said;        /* in one sentence; NULL: it was not asked */
    struct oos_exact_change {
        oos_setting plan, engine; /* the same setting as plan has it, and as the engine has it */
    } changes[OOS_EXACT_VALUES_MAX];
    size_t change_count;
    bool taken_after_all, refused_after_all; /* plan alone says the opposite */
    bool sized;                              /* weights and cache are the engine's, too */
} oos_exact_told;

typedef struct oos_plan {
    const oos_engine_words *engine;
    void *detail; /* the engine's own: its folder alone looks inside */
    const oos_model *model;
    oos_device_facts device;
    oos_doubtful doubtful;
    const char *engine_version; /* "0.19.1" */
    const char
        *asked; /* the command in this engine's words where it was given in another's; NULL: as given */
    oos_plan_answer answer;
    oos_plan_serving serving;
    oos_plan_sizes sizes;
    oos_plan_help help;
    oos_plan_told told;
    oos_kv_layout layout;
    oos_kv_fill kv;
    oos_moment phases[OOS_PHASE_COUNT];
    size_t phase_count;
    oos_refusal refusal;                /* sentence NULL: the arguments are taken */
    const char *const *doubts;          /* why a start that fits is not certain (plan/doubt.c) */
    size_t doubt_count, lasting_doubts; /* the second: of them, those that no change of a value takes away */
    size_t release_doubts;              /* ... and of those, the ones that another release takes away */
    const char *unseen;         /* one of them: a combination that no measured start had; NULL: none */
    bool no_code;               /* ... no PyTorch of the release has code for the GPU */
    bool host_short;            /* ... the host has too little memory for what is offloaded */
    const char *const *assumed; /* what the command did not say: the machine's GPU, the release */
    size_t assumed_count;
    const oos_exact_told *exact; /* NULL: the installed engine was not asked */
} oos_plan;

/* "taken" or "refused" where its word is used, else "unknown"; NULL: it was not asked. */
const char *oos_exact_told_word(const oos_exact_told *told);

/* How often starts with such an answer started: docs/evidence/accuracy.md, by tools/figures.py. */
#define OOS_PROBABILITY_FITS 0.97
#define OOS_PROBABILITY_FAILS 0.02
#define OOS_PROBABILITY_DOUBTED 0.9
#define OOS_PROBABILITY_UNSEEN 0.7
#define OOS_PROBABILITY_HOST_SHORT 0.2
#define OOS_PROBABILITY_REFUSED_BEFORE 0.2 /* chosen by judgement, not measured */
#define OOS_PROBABILITY_NONE (-1.0)

/* Starts, or likely starts. */
static inline bool oos_plan_likely(const oos_plan *plan)
{
    return plan->answer.probability >= 0.5;
}

/* Every phase fits, if only with a doubt that no flag takes away. */
static inline bool oos_plan_needs_nothing(const oos_plan *plan)
{
    return plan->answer.verdict == OOMSIGHT_VERDICT_FITS ||
           (plan->answer.verdict == OOMSIGHT_VERDICT_TIGHT && plan->answer.phase == OOS_PHASE_COUNT &&
            !plan->host_short);
}

/* It starts, or likely starts. */
static inline bool oos_answer_starts(oomsight_verdict verdict, double probability)
{
    return verdict == OOMSIGHT_VERDICT_FITS || (verdict == OOMSIGHT_VERDICT_TIGHT && probability >= 0.5);
}

/* Verdict, chance, probability and the phase that decides, by the moments. The second: how often starts of that chance, of which one
 * phase may go either way, started. */
void oos_plan_judge(oos_plan *plan);
double oos_plan_probability(double chance);

/* Lets the plan's refusal decide, before everything else. */
/* The verdict of a refusal: a certain one, or of a release that may have dropped it. */
void oos_plan_refused(oos_plan *plan, oos_phase phase, bool may_be_over);
oomsight_status oos_plan_refuse(oos_arena *arena, oos_plan *plan, oomsight_error *reterr);

/* The amounts that the phases are made of, by name. */
oomsight_status oos_parts_tell(oos_arena *arena, const oos_activation *activation, const oos_outside *outside,
                               const oos_graphs *graphs, oos_plan *plan, oomsight_error *reterr);

bool oos_plan_is_sound(const oos_plan *plan); /* for oos_assert: false is our own mistake */

/* What keeps a start that fits from being certain: something in the command that is not modelled, a release that nobody has run,
 * a PyTorch without code for the GPU, memory that the host shares. Each is a sentence that a reader sees first. */

/* What the plan itself does not know of the release. */
typedef struct oos_doubt_facts {
    const oos_serve *serve;    /* the flags that were given */
    const oos_engine_env *env; /* ... and variables */
    const oos_torch_builds *torch;
    const char *title, *release; /* "vLLM", "0.24.0" */
    bool measured;               /* starts of this release were set beside its rules */
    const char *newer;           /* a sentence: it is newer than any known here, or may be; NULL: it is not */
    const char *const *changed;  /* a sentence for each of its rules that may be another */
    size_t changed_count;
} oos_doubt_facts;

/* Fills doubts of the plan, and leaves its verdict as it is. */
oomsight_status oos_doubts_find(oos_arena *arena, const oos_doubt_facts *facts, oos_plan *plan,
                                oomsight_error *reterr);

/* Whether the host's memory is unknown, or may be too little for the weights that the plan leaves there. */
bool oos_doubts_host(const oos_plan *plan);

/* One answer, made less certain. */
void oos_doubts_lower(const oos_plan *plan, oomsight_verdict *verdict, double *probability);

/* Memory that the host shares: the share of it at which about a tenth stays free, and whether this plan goes beyond. Doubts and answers
 * read the same figure. */
double oos_plan_safe_share(const oos_plan *plan);
bool oos_plan_too_full(const oos_plan *plan, double share);

/* A start that fits and has doubts likely starts; where no PyTorch has code for the GPU nobody can tell. So do its fixes. */
void oos_doubts_apply(oos_plan *plan, oos_fix *fixes);

/* The same command on other GPUs: which are looked at, and in which order. How a command is cut and whether it starts there is the
 * engine's to say. */

typedef struct oos_elsewhere {
    const oos_gpus *gpus;
    const oos_plan *plan; /* that fails, or that asks which GPU it takes */
    uint64_t ranks;       /* GPUs that the plan is for; each holds its `weights` */
    /* Does it start on `count` of a GPU? `fewer`: with fewer requests at once, too. The need is filled if it does. */
    bool (*starts)(void *of, const oos_gpu *gpu, uint64_t count, bool fewer, oos_need_gpu *ret_need);
    void *of;
} oos_elsewhere;

/* More of the GPU that is asked about, then others of its class; where nothing there is enough, those of a data centre. */
void oos_elsewhere_needs(const oos_elsewhere *e, oos_needs *needs);

/* Every known GPU on which it starts, each with the fewest cards that are enough, the least memory first. `fixed`: the command says
 * how many. False when memory runs out. */
bool oos_elsewhere_choices(oos_arena *arena, const oos_elsewhere *e, bool fixed,
                           const oos_need_gpu **ret_list, size_t *ret_count);

/* GPUs of one name and several sizes: the name that means this one. */
const char *oos_elsewhere_name(const oos_gpus *gpus, const oos_gpu *gpu);

/* The moments of a plan: what each opens with, and the device. */

/* Open the next phase of the plan with what every phase holds: other processes, the context, communicators. */
oos_amount oos_moment_others(const oos_plan *plan); /* held by others on the device */
oos_moment *oos_moment_open(oos_arena *arena, oos_plan *plan, oos_phase phase);

/* ... with the rows of another phase. */
oos_moment *oos_moment_open_as(oos_arena *arena, oos_plan *plan, oos_phase phase, const oos_ledger *rows);

/* The device. `share` is how much of a byte more on it this phase has to itself: all of it while loading, what the budget
 * leaves once the cache grows with the device. */
oos_limit oos_limit_device(const oos_plan *plan, double share);

/* The search for flags that help, which is the same for every engine (plan/search.c). A lever has values from "as it is" (0) to the
 * strongest; at a point each stands at one of them. An engine says which levers there are and plans a point. */

/* What a value does: too small a one leaves no cache, too large a one nothing for what lies outside of it. */
typedef enum oos_side { OOS_SIDE_FITS, OOS_SIDE_SMALL, OOS_SIDE_LARGE, OOS_SIDE_NEITHER } oos_side;

/* The share of the device that is the engine's, in thousandths. What starts is a span of it. */
typedef struct oos_share {
    oos_side (*at)(void *of, uint64_t share); /* planned with it; 0: with the command's own */
    void *of;
    uint64_t own, lowest, highest;
} oos_share;

/* Some share that fits: the command's own if it does (0), then `hint` (0: none), then any. The second: any. */
bool oos_share_find(const oos_share *s, uint64_t hint, uint64_t *ret_share);
bool oos_share_any(const oos_share *s, uint64_t *ret_share);

/* From one that fits towards another, as far as it does. The one that is nearest to the command's own (0: that one), and the largest. */
uint64_t oos_share_towards(const oos_share *s, uint64_t good, uint64_t to);
uint64_t oos_share_nearest(const oos_share *s, uint64_t share);
uint64_t oos_share_highest(const oos_share *s, uint64_t share);

/* The largest value in [low, high] on the grid of `step` that fits, 0: none does. Asked last is the one that is returned. */
typedef bool (*oos_fits)(void *of, uint64_t value);
uint64_t oos_largest(oos_fits fits, void *of, uint64_t low, uint64_t high, uint64_t step);

/* The same where fitting is not monotone: `most` may fit though less does not. `good` is a value that fits, 0: none is known, and `least`
 * is the smallest that is worth it. */
uint64_t oos_longest(oos_fits fits, void *of, uint64_t good, uint64_t least, uint64_t most, uint64_t step);

/* What a search may ask besides the plan. */
typedef struct oos_search_facts {
    const oos_flag_table *flags; /* which release has which flag */
    const oos_ladder *ladder;    /* what each lever costs */
    const oos_torch_builds *torch;
    const oos_gpus *gpus;       /* NULL: no other devices are looked at */
    bool flags_alone;           /* the least change of flags, if any is enough, and nothing beside it */
    const oos_rule_book *rules; /* NULL: no other releases are looked at */
    const char *kv_layers_json;
} oos_search_facts;

enum { OOS_PLAN_FIXES_MAX = 12, OOS_ANSWERS_MAX = 3, OOS_TRIAL_WORDS_MAX = 24 };
enum {
    OOS_USUAL_TOKENS = 8192,
    OOS_LEAST_TOKENS = 2048
}; /* of a request: one that a server is expected to take, and the least; chosen */

/* One attempt: a changed command, planned again. */
typedef struct oos_trial {
    oos_serve serve;                        /* the changed command, of an engine that reads it anew */
    const char *words[OOS_TRIAL_WORDS_MAX]; /* what to paste */
    size_t word_count;
    const char *keeps, *gives_up;
    oos_rung rung; /* of what it gives up */
    oomsight_verdict verdict;
    oos_phase phase;
    double probability;
    bool starts;                           /* nothing fails where every estimate is right */
    oos_phase first_short, first_doubtful; /* fails by the estimates; may fail; OOS_PHASE_COUNT: none */
    uint64_t kv_tokens,
        length;   /* of the cache, and of the longest request (set where `by_tokens`, and of a release) */
    bool reached; /* the phase that decides the user's command is there; what it is then: */
    bool phase_ok, phase_tight;
    uint64_t need_bytes, limit_bytes;
    bool host_open; /* of a release: see oos_fix */
} oos_trial;

/* What made the engine take the command before the search began; part of every fix. */
enum { OOS_MENDED_MAX = 8, OOS_LATER_MAX = 8 };
typedef struct oos_mended {
    const char *leave_out[OOS_MENDED_MAX], *words[2 * OOS_MENDED_MAX]; /* pairs; NULL behind a switch */
    size_t leave_out_count, word_count;
    const char *gives_up; /* NULL: nothing was mended */
} oos_mended;

struct oos_lever_table;
typedef struct oos_search {
    oos_arena *arena, *scratch;
    const oos_plan *plan;
    const struct oos_lever_table *table;
    void *of; /* the engine's own */
    const oos_search_facts *facts;
    const oos_serve *serve; /* of the plan */
    oos_version version;
    oos_fix *fixes;
    size_t count;
    bool tight_too;                         /* the second round */
    bool as_it_is;                          /* a point that moves nothing is an answer, too */
    const char *later_flags[OOS_LATER_MAX]; /* of the first answer, and the phases that fail without them */
    oos_phase later_phases[OOS_LATER_MAX];
    size_t later_count;
    oos_u64 parallel;  /* the cut over idle GPUs, once it was looked for, as a value of its lever; 0: none */
    oos_rung most;     /* of single levers that are offered beside the answers */
    oos_mended mended; /* of a refused command: the plan is that of the mended one */
} oos_search;

enum { OOS_LEVERS_MAX = 13, OOS_LEVER_VALUES_MAX = 24 };

/* How far down the ladder the search may go: levers up to a rung, and of the last ones those that are named. */
typedef struct oos_stage {
    oos_rung rung;
    uint64_t tokens; /* of a request that has to go */
    bool parallel, text, eager;
    unsigned way; /* in which weights are made smaller, by the engine; 0: they are not */
    bool chosen;  /* ... of its values the weakest that takes a usual request is chosen first */
    bool last;    /* comes behind what the plan needs: no graphs, weights in host memory */
} oos_stage;

/* What may be moved at a stage, and how far. */
typedef struct oos_levers {
    oos_stage stage;
    uint64_t values[OOS_LEVERS_MAX][OOS_LEVER_VALUES_MAX]; /* [0] is as it is */
    uint64_t steps[OOS_LEVERS_MAX];                        /* between two of them, 0: none */
    size_t counts[OOS_LEVERS_MAX];                         /* up to 1: there is nothing to move */
    uint64_t least, most;          /* tokens of a request, where its length is looked for */
    uint64_t need;                 /* tokens that the cache has to hold; 0: the engine insists itself */
    uint64_t own, lowest, highest; /* share of the device, thousandths */
    bool share_moves;              /* whatever else is moved */
    bool share_given;              /* ... and the least change of it is asked for */
} oos_levers;

typedef struct oos_point {
    uint8_t at[OOS_LEVERS_MAX];
    uint64_t exact[OOS_LEVERS_MAX]; /* a value between those of the list; 0: the one of the list */
    uint64_t share;                 /* thousandths, 0: as it is */
    uint64_t length;                /* 0: as it is */
} oos_point;

typedef struct oos_answer {
    const char *name;
    oos_point point;
    unsigned flags, price;
    oos_rung rung;
    uint64_t length, likely_length, requests; /* likely_length is set before it is offered */
    bool found;
} oos_answer;

/* What an engine brings to the search. The order of levers is the order in which they are tried, and of two that are as good the first
 * one stays. A lever is a number below OOS_LEVERS_MAX; OOS_LEVERS_MAX: there is none. */
typedef struct oos_lever_table {
    const oos_stage *stages;
    const size_t *groups; /* ends of stages between which it is not worth while to be certain */
    size_t group_count;
    const uint8_t *let_go; /* the dearest first */
    size_t let_go_count;
    uint8_t share, length;  /* have no list of values: they are found by themselves */
    uint8_t forced;         /* stands wherever it may be moved */
    uint8_t cache;          /* brings another backend: what gives more is looked for without it, too */
    uint8_t context;        /* a length with a list of values */
    uint8_t eager;          /* a stage is the last one only where it is moved */
    uint8_t step, requests; /* a step has a token of each request */
    uint8_t kept[2];        /* most requests: kept as they are where it starts so */
    unsigned sizes_max;     /* levers that are moved together; beyond that all of them, let go */
    bool first_of_size;     /* of as few flags the first one found; else by rung, price and length */
    bool upwards;           /* masks are tried from none to all */
    bool
        by_tokens; /* the share is found anew at each point, and beside its own it is the one with nearly most tokens */
    bool (*levers_of)(oos_search *s, const oos_stage *stage, oos_levers *ret_levers); /* false: not here */
    oos_side (*plan)(oos_search *s, const oos_levers *levers, const oos_point *point, oos_trial *ret_trial);
    oos_rung (*rung)(const oos_search *s, const oos_levers *levers, const oos_point *point);
    unsigned (*price)(const oos_levers *levers,
                      const oos_point *point); /* decides between changes of a rung */
    /* In words, as the next of the fixes. False when memory runs out. */
    bool (*offer)(oos_search *s, const oos_levers *levers, const oos_answer *answer);
    bool (*is_given)(const oos_serve *serve, const char *flag);
    /* The same command with another release, with its defaults and with those of this one: a flag is the smaller change where one of them
     * is the reason. */
    bool (*starts_with)(oos_search *s, oos_version version, oos_trial *ret_trial);
    bool unmeasured; /* such a fix says where no start of that release was measured */
    /* A refused command with one correction; NULL: it cannot be planned so. And corrections beside those that the refusal names, OOS_MENDS_MAX
     * at most in all; NULL: none. */
    const oos_plan *(*plan_mended)(oos_search *s, const oos_plan *from, const oos_mend *mend);
    size_t (*mends_add)(const oos_plan *plan, oos_mend *mends, size_t count);
    bool (*is_held_down)(const oos_plan *plan); /* not refused, but still to be corrected; NULL: never */
} oos_lever_table;

/* A refused command that is corrected step by step (plan/mends.c). */
typedef struct oos_repair {
    const oos_plan *plan; /* of the command so far */
    oos_mended said;
} oos_repair;
const char *oos_refusal_sentence(const oos_plan *plan); /* NULL: the engine takes it */
bool oos_mend_apply(oos_arena *arena, oos_serve *serve, const oos_mend *mend);

/* One correction further; false: none of them changes the refusal. Begun with one, as far as it goes; false: it is still refused. */
bool oos_repair_step(oos_search *s, oos_repair *repair, const oos_mend *mends, size_t count);
bool oos_repair_follow(oos_search *s, const oos_mend *first, oos_repair *ret_repair);
bool oos_repair_offer(oos_search *s, const oos_repair *repair); /* false when memory runs out */

/* Every correction of the search's plan: what then starts is offered, the rest is left in the list. False when memory runs out. */
bool oos_repairs_find(oos_search *s, oos_repair *ret_short, size_t *ret_short_count);

/* The rung of a lever for this command: dearer where the command has its flag; OOS_RUNG_COUNT: not in this release. */
oos_rung oos_trial_rung(const oos_search *s, const char *id);
uint64_t oos_trial_step(const oos_search *s, const char *id); /* between two of its numbers */
const char *oos_trial_cost(const oos_search *s, const char *id);

/* What was noted of flags with no effect, once the first answer is known: it says for which later phase that has them, or it does not
 * have them. False when memory runs out. */
bool oos_inert_settle(oos_arena *arena, oos_plan_help *help);

/* A fix in the making (plan/offer.c): what to paste, and what is lost, one thing after the other. */
typedef struct oos_saying {
    oos_search *s;
    oos_trial *t; /* its words, and gives_up (NULL: nothing yet) */
    bool failed;
} oos_saying;
void oos_say_word(oos_saying *w, const char *text); /* NULL: no memory */
void oos_say_number(oos_saying *w, uint64_t value);
void oos_say_lost(oos_saying *w, const char *text);

typedef struct oos_lever_words {
    const char *id, *flag,
        *word; /* of the ladder; to paste, with this value; NULL: with the number, "": a switch */
    const char *most, *of_what; /* lost with the number between them; NULL: the ladder's cost */
    uint64_t mild, strong;      /* values from which on it is the first and the second of the prices */
    unsigned price
        [3]; /* decides between changes of a rung with as many flags; chosen by judgement, not measured */
} oos_lever_words;
void oos_say_lever(oos_saying *w, const oos_lever_words *lever, uint64_t value);

/* What was not touched: the whole length, all requests, graphs in these words ("": none). NULL: no memory. */
const char *oos_say_kept(const oos_search *s, bool length, bool requests, const char *graphs);

/* As the next of the fixes; as an answer, with what it reaches. A release with which the same command starts, as well. False when memory
 * runs out. */
typedef struct oos_reached {
    uint64_t certain_length, likely_length, requests, request_tokens;
} oos_reached;
bool oos_trial_offer(oos_search *s, const oos_trial *t);
bool oos_answer_offer(oos_search *s, const oos_trial *t, const oos_answer *a, const oos_reached *reached);
bool oos_release_find(oos_search *s);

/* What is worth pasting: least change, longest context, most requests, at most three, the next of the fixes. *ret_last: they come behind
 * what the plan needs. False when memory runs out. */
bool oos_answers_find(oos_search *s, bool *ret_last);

/* The least change at a stage; false: nothing starts there. */
bool oos_answers_least(oos_search *s, oos_levers *levers, oos_answer *ret_answer);

/* At some share, if `free`; the point is left at it. */
bool oos_point_place(oos_search *s, oos_levers *levers, oos_point *point, bool free, oos_trial *ret_trial);
uint64_t oos_point_value(const oos_levers *levers, const oos_point *point, unsigned lever);

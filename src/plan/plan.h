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
    const char *text;       /* the word in place of a number; NULL: `value`, or 0: a switch */
    uint64_t value;
} oos_mend;

enum { OOS_MENDS_MAX = 4 };

typedef struct oos_refusal {
    const char *sentence; /* the engine's own, shortened; NULL: nothing is refused */
    oos_phase phase;      /* arguments, or the phase in which the engine comes to it */
    oos_mend mends[OOS_MENDS_MAX];
    size_t mend_count;
} oos_refusal;

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
    const char *name;    /* "least_change", ...; NULL: no answer */
    uint64_t likely_length, certain_length; /* of an answer: the longest requests with these flags; 0: none */
    uint64_t requests, request_tokens;      /* of an answer: how many at once, of that length */
    const char *command;                    /* the whole command, quoted for a shell; NULL: not formed */
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
    OOS_SETTING_GIB /* whole: bytes */
} oos_setting_kind;
typedef struct oos_setting {
    const char *name;
    oos_setting_kind kind;
    uint64_t whole;
    double real;
    const char *text;
} oos_setting;

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
    bool cache_given;               /* the cache has a size of its own */
    uint64_t beside_bytes;          /* graphs and what serving adds, at most */
    const char *offload_flag;       /* says how many GiB of weights stay in host memory; NULL: none does */
    double offload_gib;             /* ... of each rank */
    const char *offload_cache_flag; /* the same of the cache, over all ranks; NULL: none does */
    bool drafter;                   /* a model of its own drafts */
    bool drafter_unknown;           /* layers draft that are not known here */
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
} oos_plan_answer;

/* What it serves then. */
typedef struct oos_plan_serving {
    uint64_t tp, pp, dp;          /* ranks: tensor parallel, stages, replicas */
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
} oos_plan;

/* How often starts with such an answer started: docs/evidence/accuracy.md, by tools/reliability.py. */
#define OOS_PROBABILITY_FITS 0.97
#define OOS_PROBABILITY_FAILS 0.02
#define OOS_PROBABILITY_DOUBTED 0.9
#define OOS_PROBABILITY_UNSEEN 0.7
#define OOS_PROBABILITY_HOST_SHORT 0.2
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
} oos_doubt_facts;

/* Fills doubts of the plan, and leaves its verdict as it is. */
oomsight_status oos_doubts_find(oos_arena *arena, const oos_doubt_facts *facts, oos_plan *plan,
                                oomsight_error *reterr);

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

/* A plan: the start-up of an engine foreseen, phase by phase, with the first phase that fails and what would help. */
#ifndef OOS_PLAN_PLAN_H
#define OOS_PLAN_PLAN_H

#include "facts/engine.h"
#include "ledger/moment.h"
#include "engines/vllm/activation/activation.h"
#include "engines/vllm/arguments/arguments.h"
#include "engines/vllm/backend/backend.h"
#include "engines/vllm/kv/kv.h"
#include "engines/vllm/graphs.h"
#include "engines/vllm/outside.h"
#include "engines/vllm/setup/setup.h"
#include "sizes/weights.h"

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
    const char *name;                       /* "least_change", ...; NULL: no answer */
    uint64_t likely_length, certain_length; /* of an answer: the longest requests with these flags; 0: none */
    uint64_t requests, request_tokens;      /* of an answer: how many at once, of that length */
    const char *command;                    /* the whole command, quoted for a shell; NULL: not formed */
} oos_fix;

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
typedef struct oos_needs {
    uint64_t checkpoint_bytes,
        checkpoint_tokens; /* of a 4-bit checkpoint, one rank; 0: it would not fit or is none */
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

/* What an engine resolved under names of its own. */
typedef struct oos_own_setting {
    const char *name; /* "mem_fraction_static" */
    double value;
} oos_own_setting;

typedef struct oos_plan {
    const oos_setup *setup;
    const oos_engine_words *engine;
    const char *engine_version; /* "0.19.1" */
    const char
        *asked; /* the command in this engine's words where it was given in another's; NULL: as given */
    const oos_own_setting *own; /* beside the setup */
    size_t own_count;
    oomsight_verdict verdict;
    double chance;            /* of starting, by the ranges alone: that of the phase with the least */
    double probability;       /* ... as starts of that chance turned out; below 0: nobody can tell */
    oos_phase phase;          /* first that fails at the best guess, OOS_PHASE_COUNT: none */
    double phase_probability; /* that it fails there or before; 0: none fails */
    oos_cause cause;
    const char *why; /* the mechanism in one or two sentences, NULL when it fits */
    oos_u64 tried_bytes;
    uint64_t stage;                    /* the pipeline stage that holds most */
    oos_weights weights;               /* ... its weights */
    const uint64_t *stage_param_bytes; /* parameters as created, per pipeline stage */
    oos_kv_shape kv_shape;
    oos_kv_fill kv;
    oos_backend_choice backend;
    oos_activation activation;
    oos_outside outside;
    oos_graphs graphs;
    uint64_t budget_bytes; /* total * gpu_memory_utilization as the engine rounds it */
    oos_amount non_kv;     /* what the engine subtracts from it */
    uint64_t strand_bytes; /* free segments stranded in the sleep-mode pool at the end of loading */
    uint64_t trial_blocks; /* blocks of the cache that graph profiling allocates, 0: it does not run */
    oos_moment phases[OOS_PHASE_COUNT];
    size_t phase_count;
    oos_refusal refusal; /* sentence NULL: the arguments are taken */
    const oos_fix *fixes;
    size_t fix_count, answer_count; /* the answers are the first of the fixes, what to paste first of them */
    const oos_needs *needs;         /* NULL: flags can do it, or nobody knows */
    const oos_inert *inert;
    size_t inert_count;
    const oos_fork *forks;
    size_t fork_count;
    const oos_need_gpu *choices; /* for every GPU: those on which it likely starts, the least memory first */
    size_t choice_count;
    const char *const *doubts;          /* why a start that fits is not certain (plan/doubt.h) */
    size_t doubt_count, lasting_doubts; /* the second: of them, those that no change of a value takes away */
    const char *unseen;         /* one of them: a combination that no measured start had; NULL: none */
    bool no_code;               /* ... no PyTorch of the release has code for the GPU */
    bool host_short;            /* ... the host has too little memory for what is offloaded */
    const char *const *assumed; /* what the command did not say: the machine's GPU, the release */
    size_t assumed_count;
    const char *const *notes;
    size_t note_count;
} oos_plan;

/* How often starts with such an answer started: docs/evidence/accuracy.md, by tools/reliability.py. */
#define OOS_PROBABILITY_FITS 0.97
#define OOS_PROBABILITY_FAILS 0.02
#define OOS_PROBABILITY_DOUBTED 0.9
#define OOS_PROBABILITY_UNSEEN 0.7
#define OOS_PROBABILITY_HOST_SHORT 0.2
#define OOS_PROBABILITY_NONE (-1.0)

/* The length of requests that the engine runs with: with --max-model-len auto what it chooses. */
static inline uint64_t oos_plan_length(const oos_plan *plan)
{
    return plan->setup->auto_model_len && !plan->kv.refused
               ? oos_u64_or(plan->kv.estimated_max_len, plan->setup->max_model_len)
               : plan->setup->max_model_len;
}

/* Starts, or likely starts. */
static inline bool oos_plan_likely(const oos_plan *plan)
{
    return plan->probability >= 0.5;
}

/* Every phase fits, if only with a doubt that no flag takes away. */
static inline bool oos_plan_needs_nothing(const oos_plan *plan)
{
    return plan->verdict == OOMSIGHT_VERDICT_FITS ||
           (plan->verdict == OOMSIGHT_VERDICT_TIGHT && plan->phase == OOS_PHASE_COUNT && !plan->host_short);
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

bool oos_plan_is_sound(const oos_plan *plan); /* for oos_assert: false is our own mistake */

/* One start. Fixes and inert flags are left empty: see engines/vllm/solve/solve.h. */
oomsight_status oos_plan_make(oos_arena *arena, const oos_setup *setup, const char *kv_layers_json,
                              oos_plan *ret_plan, oomsight_error *reterr);

/* The same start with the compile cache or the sampler of `setup`, in which nothing else may differ: what comes before the profile
 * run is taken over from `plan`. */
oomsight_status oos_plan_other_way(oos_arena *arena, const oos_plan *plan, const oos_setup *setup,
                                   oos_plan *ret_other, oomsight_error *reterr);

#endif

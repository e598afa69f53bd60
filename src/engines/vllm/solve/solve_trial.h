/* One attempt of the search for flags that fit: a changed serve command, planned again. Used by solve*.c. */
#ifndef OOS_PLAN_SOLVE_TRIAL_H
#define OOS_PLAN_SOLVE_TRIAL_H

#include "engines/vllm/solve/solve.h"

enum { OOS_FIXES_MAX = 12, OOS_ANSWERS_MAX = 3, OOS_TRIAL_WORDS_MAX = 24 };
enum { OOS_USUAL_TOKENS = 8192 }; /* a request that a server is expected to take; chosen, not measured */

typedef struct oos_trial {
    oos_serve serve;                        /* the changed command */
    const char *words[OOS_TRIAL_WORDS_MAX]; /* what to paste */
    size_t word_count;
    const char *keeps, *gives_up;
    oos_rung rung; /* of what it gives up */
    oomsight_verdict verdict;
    oos_phase phase;
    double probability;
    bool starts;                           /* nothing fails where every estimate is right */
    oos_phase first_short, first_doubtful; /* fails by the estimates; may fail; OOS_PHASE_COUNT: none */
    uint64_t kv_tokens;
    bool reached; /* the phase that decides the user's command is there; what it is then: */
    bool phase_ok, phase_tight;
    uint64_t need_bytes, limit_bytes;
} oos_trial;

/* What made the engine take the command before the search began; part of every fix. */
enum { OOS_MENDED_MAX = 8, OOS_LATER_MAX = 8 };
typedef struct oos_mended {
    const char *leave_out[OOS_MENDED_MAX], *words[2 * OOS_MENDED_MAX]; /* pairs; NULL behind a switch */
    size_t leave_out_count, word_count;
    const char *gives_up; /* NULL: nothing was mended */
} oos_mended;

typedef struct oos_search {
    oos_arena *arena, *scratch;
    const oos_plan *plan;
    const oos_solve_facts *facts;
    oos_fix *fixes;
    size_t count;
    bool tight_too;                         /* the second round */
    const char *later_flags[OOS_LATER_MAX]; /* of the first answer, and the phases that fail without them */
    oos_phase later_phases[OOS_LATER_MAX];
    size_t later_count;
    oos_u64
        parallel; /* the cut over GPUs that are there and idle, once it was looked for: 100 x TP + PP, 0: none */
    oos_rung most;     /* of single levers that are offered beside the answers */
    oos_mended mended; /* of a refused command: the plan is that of the mended one */
} oos_search;

/* What the command itself asks for is not taken away: may its graphs, the type of its cache, its images go? */
bool oos_may_go_eager(const oos_search *s);
bool oos_may_shrink_cache(const oos_search *s);
bool oos_may_drop_media(const oos_search *s);

/* The rung of a lever for this command: dearer where the command has its flag; OOS_RUNG_COUNT: not in this release. */
oos_rung oos_trial_rung(const oos_search *s, const char *id);
uint64_t oos_trial_step(const oos_search *s, const char *id); /* between two of its numbers */
const char *oos_trial_cost(const oos_search *s, const char *id);

oos_trial oos_trial_start(const oos_search *s);
bool oos_trial_has_flag(const oos_search *s, const char *flag); /* this release has it */
bool oos_trial_plan(oos_search *s, oos_trial *t);               /* false: it cannot be planned */
bool oos_trial_fits(const oos_search *s, const oos_trial *t);

/* Offering ends with false only when memory runs out. The second plans first, and where the cache is then too small for
 * the longest request it offers a shorter length with it. */
bool oos_trial_offer(oos_search *s, const oos_trial *t);
bool oos_trial_offer_if_it_fits(oos_search *s, oos_trial *t);

/* The user's own --compilation-config. The engine takes the last one given, whole. */
typedef enum oos_compilation_given {
    OOS_COMPILATION_NONE,
    OOS_COMPILATION_WHOLE, /* one, into which another size can be put */
    OOS_COMPILATION_PARTS  /* dotted parts, -O, or several: not put together here */
} oos_compilation_given;
oos_compilation_given oos_compilation_look(const oos_serve *serve, const char **ret_value);
/* ... with another largest captured size; NULL: it is no object, or no memory. */
const char *oos_compilation_merged(oos_arena *arena, const char *value, uint64_t size);

typedef void (*oos_set_value)(oos_serve *serve, uint64_t value);
void oos_set_seqs(oos_serve *serve, uint64_t value);
void oos_set_tokens(oos_serve *serve, uint64_t value);
void oos_set_length(oos_serve *serve, uint64_t value);
void oos_set_capture(oos_serve *serve, uint64_t value);
void oos_set_gmu_thousandths(oos_serve *serve, uint64_t value);
void oos_set_kv_mib(oos_serve *serve, uint64_t value);

/* The largest value in [low, high] on the grid of `step` that fits, 0 when none does; the trial is left at it. The second
 * is for a failure before the cache is sized: the lever is found at a short length, so that it answers that failure alone;
 * how long requests may then be is asked when it is offered. */
uint64_t oos_trial_largest(oos_search *s, oos_trial *t, oos_set_value set, uint64_t low, uint64_t high,
                           uint64_t step);
uint64_t oos_trial_best(oos_search *s, oos_trial *t, oos_set_value set, uint64_t low, uint64_t high,
                        uint64_t step);

/* The shortest length that is worth offering: 2,048, or less where less was asked for. */
uint64_t oos_trial_least_length(const oos_search *s);

/* A trial for another device or another form of the model: NULL is as it is. */
bool oos_trial_plan_other(oos_search *s, oos_trial *t, const oos_device_facts *device, const oos_model *model,
                          uint64_t *ret_weights_bytes);

/* The longest length up to `most` that fits, in steps of the ladder; 0: none is worth it. The trial is left at it. `good` is a
 * length that fits, 0: none is known. Fitting is not monotone: a start that is certain at a short one may be doubted there. */
uint64_t oos_trial_longest(oos_search *s, oos_trial *t, uint64_t good, uint64_t most);

#endif

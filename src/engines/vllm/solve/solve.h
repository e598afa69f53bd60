#pragma once
#include "engines/vllm/vllm.h"
#include "facts/facts.h"

/* What would help: a search over the real levers, each answer verified by planning again; and the flags people would try
 * that change nothing here. */

/* What a search may ask besides the plan. */
typedef struct oos_solve_facts {
    const oos_flag_table *flags; /* which release has which flag */
    const oos_ladder *ladder;    /* what each lever costs */
    const oos_torch_builds *torch;
    const oos_gpus *gpus;       /* NULL: no other devices are looked at */
    bool flags_alone;           /* the least change of flags, if any is enough, and nothing beside it */
    const oos_rule_book *rules; /* NULL: no other releases are looked at */
    const char *kv_layers_json;
} oos_solve_facts;

/* Fills fixes, answers, needs and inert of a plan that does not fit. `scratch` is reset between candidates; results go to
 * `arena`. */
oomsight_status oos_plan_solve(oos_arena *arena, oos_arena *scratch, oos_plan *plan,
                               const oos_solve_facts *facts, oomsight_error *reterr);

/* Which GPU does it take? Fills the choices of a plan, whatever device it was made for. */
oomsight_status oos_plan_choose(oos_arena *arena, oos_arena *scratch, oos_plan *plan,
                                const oos_solve_facts *facts, oomsight_error *reterr);

/* One attempt of the search for flags that fit: a changed serve command, planned again. Used by solve*.c. */

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

/* The share of the device for the engine (--gpu-memory-utilization), in hundredths. Too small a share leaves no cache, too large
 * a one leaves nothing for what lies outside of it: what starts is a span between the two. Used by solve*.c. */

/* A command that is planned with one share after another; `device` NULL: the user's. */
typedef struct oos_budget {
    oos_search *s;
    oos_trial *t;
    const oos_device_facts *device;
    uint64_t own; /* thousandths of the command as it is */
    uint64_t lowest, highest;
} oos_budget;

oos_budget oos_budget_of(oos_search *s, oos_trial *t, const oos_device_facts *device);

/* Some share that fits, in thousandths: the command's own if it does (0), then `hint` (0: none), then any. */
bool oos_budget_find(oos_budget *b, uint64_t hint, uint64_t *ret_share);

/* From a share that fits: the one that is nearest to the command's own (0: that one), and the largest. */
uint64_t oos_budget_nearest(oos_budget *b, uint64_t share);
uint64_t oos_budget_highest(oos_budget *b, uint64_t share);

/* The trial with a share, planned. */
bool oos_budget_fits(oos_budget *b, uint64_t share);

/* The parts of the search for fixes, a file each. Used by solve.c. */

/* solve_levers.c: one round of every change of the command that is worth trying against a failure. What helps is added to the
 * search's fixes. False when memory runs out. */
bool oos_levers_try(oos_search *s);

/* solve_answers.c: what is worth pasting (least change, longest context, most requests). At most three, put first among the
 * search's fixes, what to paste first of them. *ret_last: they run without graphs or keep weights in host memory, which comes behind
 * what the plan needs. False when memory runs out. */
bool oos_answers_find(oos_search *s, size_t *ret_count, bool *ret_last);

/* solve_release.c: a release with which the same command starts, put first among the fixes. False when memory runs out. */
bool oos_release_find(oos_search *s);

/* solve_mends.c: a command that asks for what cannot be. Its refusals are mended one after the other, its own limits taken away. */
bool oos_mends_needed(const oos_plan *plan); /* the engine refuses it, whatever the memory */
bool oos_mends_limits(const oos_plan *plan); /* it sizes its own cache, and that is where it fails */

/* Offers the command without these limits where that is enough. False when memory runs out. */
bool oos_mends_start(oos_search *s, oos_plan *plan);

/* In place of the answers from `from` on those without these limits, where they are of a higher rung. False when memory runs out. */
bool oos_mends_cheaper(oos_search *s, size_t from, bool *ret_last);

/* Fills fixes, answers and needs of such a plan, or of one that nothing else helps. False when memory runs out. */
bool oos_mends_find(oos_search *s, oos_plan *plan);

/* solve_needs.c: what it takes when flags cannot do it, a smaller checkpoint or other GPUs. NULL in *ret_needs: nothing was
 * found. False when memory runs out. */
bool oos_needs_find(oos_search *s, const oos_needs **ret_needs);

/* Every known device on which the command likely starts, each with the fewest cards that are enough, the least memory first. */
bool oos_choices_find(oos_search *s, const oos_need_gpu **ret_list, size_t *ret_count);

/* The levers of the search and a point among them. A lever has values from "as it is" (0) to the strongest; at a point each
 * stands at one of them. Used by solve_answers.c. */

typedef enum oos_lever {
    OOS_LEVER_BUDGET, /* has no list of values: see solve_budget.h */
    OOS_LEVER_PARALLEL,
    OOS_LEVER_SLEEP,
    OOS_LEVER_BACKEND,
    OOS_LEVER_TOKENS,
    OOS_LEVER_SEQS,
    OOS_LEVER_KV,
    OOS_LEVER_GRAPHS,
    OOS_LEVER_MEDIA, /* fewer items in a request than the engine's own limit */
    OOS_LEVER_TEXT,
    OOS_LEVER_WEIGHTS, /* quantised while they are loaded, or kept in host memory: only where nothing else is enough */
    OOS_LEVER_LENGTH,
    OOS_LEVER_COUNT
} oos_lever;

enum { OOS_LEVER_VALUES_MAX = 24 };

/* How weights are made smaller, in the order in which it is tried. */
typedef enum oos_weights_way {
    OOS_WEIGHTS_AS_THEY_ARE,
    OOS_WEIGHTS_FP8,
    OOS_WEIGHTS_BNB,
    OOS_WEIGHTS_OFFLOAD,
} oos_weights_way;

/* How far down the ladder the search may go: levers up to a rung, and of the last ones those that are named. */
typedef struct oos_stage {
    oos_rung rung;
    bool usable; /* with a length that one can work with */
    bool parallel, text, eager;
    oos_weights_way way;
} oos_stage;

typedef struct oos_levers {
    uint64_t values[OOS_LEVER_COUNT][OOS_LEVER_VALUES_MAX]; /* [0] is as it is */
    uint64_t steps[OOS_LEVER_COUNT];                        /* between two of them, 0: none */
    size_t counts[OOS_LEVER_COUNT];                         /* 1: there is nothing to move */
    uint64_t least, most;                                   /* lengths */
    uint64_t lowest;                                        /* share of the device, thousandths */
} oos_levers;

typedef struct oos_lever_point {
    uint8_t at[OOS_LEVER_COUNT];
    uint64_t exact[OOS_LEVER_COUNT]; /* a value between those of the list; 0: the one of the list */
    uint64_t budget;                 /* thousandths, 0: as it is */
    uint64_t length;                 /* 0: as it is */
} oos_lever_point;

/* False: the stage has a way of making weights smaller that is not here. */
bool oos_levers_of(oos_search *s, const oos_stage *stage, oos_levers *ret_levers);

/* The command at a point. */
oos_trial oos_point_start(const oos_search *s, const oos_levers *levers, const oos_lever_point *point);

/* What to paste, what it keeps and what it costs; false: no memory, or the words cannot be put together. */
bool oos_point_say(oos_search *s, const oos_levers *levers, const oos_lever_point *point, oos_trial *t);

/* Numbers between two values of the list: the step, 0: the lever has none. */
uint64_t oos_point_step(const oos_levers *levers, const oos_lever_point *point, oos_lever lever);
uint64_t oos_point_value(const oos_levers *levers, const oos_lever_point *point, oos_lever lever);

/* The dearest rung of what a point moves. */
oos_rung oos_point_rung(const oos_search *s, const oos_levers *levers, const oos_lever_point *point);

/* What people would rather not do is dearer; it decides between changes of a rung. */
unsigned oos_point_price(const oos_levers *levers, const oos_lever_point *point);

/* Requests at once at a point, at most. */
uint64_t oos_point_seqs(const oos_search *s, const oos_levers *levers, const oos_lever_point *point);

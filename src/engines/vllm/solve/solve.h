#pragma once
#include "engines/vllm/vllm.h"
#include "facts/facts.h"

/* What would help: a search over the real levers, each answer verified by planning again; and the flags people would try
 * that change nothing here. */

/* Fills fixes, answers, needs and inert of a plan that does not fit. `scratch` is reset between candidates; results go to
 * `arena`. */
oomsight_status oos_plan_solve(oos_arena *arena, oos_arena *scratch, oos_plan *plan,
                               const oos_search_facts *facts, oomsight_error *reterr);

/* Which GPU does it take? Fills the choices of a plan, whatever device it was made for. */
oomsight_status oos_plan_choose(oos_arena *arena, oos_arena *scratch, oos_plan *plan,
                                const oos_search_facts *facts, oomsight_error *reterr);

/* What the command itself asks for is not taken away: may its graphs, the type of its cache, its images go? */
bool oos_may_go_eager(const oos_search *s);
bool oos_may_shrink_cache(const oos_search *s);
bool oos_may_drop_media(const oos_search *s);

oos_trial oos_trial_start(const oos_search *s);
bool oos_trial_has_flag(const oos_search *s, const char *flag); /* this release has it */
bool oos_trial_plan(oos_search *s, oos_trial *t);               /* false: it cannot be planned */
bool oos_trial_fits(const oos_search *s, const oos_trial *t);

/* Plans and offers; where the cache is then too small for the longest request a shorter length is offered with it. False when memory
 * runs out. */
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

/* The longest length up to `most` that fits, in steps of the ladder; 0: none is worth it. The trial is left at it. */
uint64_t oos_trial_longest(oos_search *s, oos_trial *t, uint64_t most);

/* The share of the device (--gpu-memory-utilization) of a command that is planned with one after another. */
typedef struct oos_budget {
    oos_search *s;
    oos_trial *t;
    const oos_device_facts *device; /* NULL: the user's */
} oos_budget;

oos_share oos_budget_of(oos_budget *b);
void oos_budget_bounds(const oos_search *s, uint64_t *ret_own, uint64_t *ret_lowest, uint64_t *ret_highest);
oos_side oos_trial_side(const oos_search *s, const oos_trial *t); /* of a trial that was planned */

/* The parts of the search for fixes, a file each. Used by solve.c. */

/* solve_levers.c: one round of every change of the command that is worth trying against a failure. What helps is added to the
 * search's fixes. False when memory runs out. */
bool oos_levers_try(oos_search *s);

/* solve_release.c: does the same command start with another release? */
bool oos_vllm_starts_with(oos_search *s, oos_version version, oos_trial *ret_trial);
bool oos_vllm_is_given(const oos_serve *serve, const char *flag);

/* solve_mends.c: a command that asks for what cannot be. Its refusals are mended one after the other, its own limits taken away. */
const oos_plan *oos_vllm_plan_mended(oos_search *s, const oos_plan *from, const oos_mend *m);
size_t oos_vllm_mends_add(const oos_plan *plan, oos_mend *mends, size_t count);
bool oos_vllm_is_held_down(const oos_plan *plan);
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
 * stands at one of them. What moves them is plan/search.c. */

typedef enum oos_lever {
    OOS_LEVER_BUDGET, /* has no list of values: see solve_budget.c */
    OOS_LEVER_PARALLEL,
    OOS_LEVER_SLEEP,
    OOS_LEVER_BACKEND,
    OOS_LEVER_TOKENS,
    OOS_LEVER_SEQS,
    OOS_LEVER_LORAS,
    OOS_LEVER_KV,
    OOS_LEVER_GRAPHS,
    OOS_LEVER_MEDIA, /* fewer items in a request than the engine's own limit */
    OOS_LEVER_TEXT,
    OOS_LEVER_WEIGHTS, /* quantised while they are loaded, or kept in host memory: only where nothing else is enough */
    OOS_LEVER_LENGTH,
} oos_lever;

enum { OOS_EAGER = 0 }; /* a value of the graphs' lever; any other is the largest size that is captured */

extern const oos_lever_table oos_vllm_levers; /* solve_answers.c */

/* How weights are made smaller, in the order in which it is tried. */
typedef enum oos_weights_way {
    OOS_WEIGHTS_AS_THEY_ARE,
    OOS_WEIGHTS_FP8,
    OOS_WEIGHTS_BNB,
    OOS_WEIGHTS_OFFLOAD,
} oos_weights_way;

/* False: the stage has a way of making weights smaller that is not here. */
bool oos_levers_of(oos_search *s, const oos_stage *stage, oos_levers *ret_levers);

/* The command at a point. */
oos_trial oos_point_start(const oos_search *s, const oos_levers *levers, const oos_point *point);

/* What to paste, what it keeps and what it costs; false: no memory, or the words cannot be put together. */
bool oos_point_say(oos_search *s, const oos_levers *levers, const oos_point *point, oos_trial *t);

/* The dearest rung of what a point moves. */
oos_rung oos_point_rung(const oos_search *s, const oos_levers *levers, const oos_point *point);

/* What people would rather not do is dearer; it decides between changes of a rung. */
unsigned oos_point_price(const oos_levers *levers, const oos_point *point);

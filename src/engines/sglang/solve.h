/* The search for what helps SGLang, in parts: solve.c goes down the ladder, solve_points.c moves levers and plans again, solve_say.c puts
 * an answer into words, solve_elsewhere.c looks at other releases and other GPUs. */
#ifndef OOS_ENGINES_SGLANG_SOLVE_H
#define OOS_ENGINES_SGLANG_SOLVE_H

#include "engines/sglang/sglang.h"
#include "plan/elsewhere.h"

/* In the order in which they are tried, the cheapest first. */
typedef enum sglang_lever {
    LEVER_CHUNK,
    LEVER_GRAPHS,
    LEVER_REQUESTS,
    LEVER_CONTEXT,
    LEVER_KV,
    LEVER_PARALLEL,
    LEVER_WEIGHTS,
    LEVER_EAGER,
    LEVERS
} sglang_lever;

enum { FIXES_MAX = 4, WORDS_MAX = 2 * (LEVERS + 1), VALUES_MAX = 12 };
enum { USUAL_TOKENS = 8192, LEAST_TOKENS = 2048 }; /* of a request: one that a server takes, and the least */
enum { REQUESTS_FEW = 32, REQUESTS_LEAST = 4 };    /* at once: before and after what is asked for goes */
enum { LOWEST = 5, HIGHEST = 97 };                 /* hundredths of --mem-fraction-static */

/* How far down the ladder the sglang_search may go; of the last rung what is named. */
typedef struct sglang_stage {
    oos_rung rung;
    uint64_t tokens; /* of a request that the pool has to hold, where the whole one may go */
    bool parallel, weights, eager;
} sglang_stage;

/* A lever stands at one of its values, 0 is as it is; the fraction in hundredths, 0 is as it is. */
typedef struct sglang_point {
    uint8_t at[LEVERS];
    uint64_t exact[LEVERS]; /* a number between two values of the list; 0: the one of the list */
    unsigned fraction;
} sglang_point;

typedef struct sglang_search {
    oos_arena *arena, *scratch;
    const oos_start *start;
    const oos_engine_facts *facts;
    const oos_gpus *gpus;
    const sglang_rules *rules;
    const oos_plan *plan;
    sglang_request request; /* as it is */
    uint64_t values[LEVERS][VALUES_MAX];
    size_t counts[LEVERS]; /* 1: there is nothing to move */
    bool fraction_moves;
    uint64_t need;    /* tokens that the pool has to hold */
    oos_u64 mended;   /* the context length in place of one that the engine refuses: in every answer */
    bool certain;     /* only what starts at both ends of the ranges */
    bool unknown_too; /* a GPU that holds the weights, where nobody can tell whether it starts */
    oos_fix *fixes;
    size_t count;
} sglang_search;

typedef struct sglang_lever_name {
    const char *id, *flag;
} sglang_lever_name;
extern const sglang_lever_name sglang_levers[LEVERS];

bool sglang_is_given(const sglang_search *s, const char *flag);

/* OOS_RUNG_COUNT: not in this release. */
oos_rung sglang_rung_of(const sglang_search *s, const char *id);
const char *sglang_cost_of(const sglang_search *s, const char *id);

/* The pool is too small; good; what comes after the pool does not fit; nothing that a fraction mends. */
typedef enum sglang_fit { FIT_SHORT, FIT_GOOD, FIT_OVER, FIT_NOT } sglang_fit;

uint64_t sglang_value_at(const sglang_search *s, const sglang_point *p, sglang_lever which);
sglang_fit sglang_try(sglang_search *s, const sglang_point *p, oos_plan *ret_plan);

/* With the fraction as it is, or with another one if it may move. One that the command gives moves least; else it is the one next to
 * the engine's own that has nearly the largest pool. */
bool sglang_place(sglang_search *s, sglang_point *p);

/* What may be moved at a stage, and what the pool has to hold then. */
void sglang_levers_of(sglang_search *s, const sglang_stage *at);

/* The fewest levers, of those with one and with two; or all of them, let go. In the order of the list. */
bool sglang_least_change(sglang_search *s, sglang_point *ret_point);

/* The largest pool that the levers give; then each is let go as far as the pool stays, nearly. */
bool sglang_most_tokens(sglang_search *s, sglang_point *ret_point);

/* The rest return false when memory runs out. */
bool sglang_offer(sglang_search *s, const sglang_point *p, const char *name);
bool sglang_release_find(sglang_search *s);
oos_elsewhere sglang_elsewhere(sglang_search *s);
bool sglang_needs_find(sglang_search *s, const oos_needs **ret_needs);

#endif

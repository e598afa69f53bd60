/* The levers of the search and a point among them. A lever has values from "as it is" (0) to the strongest; at a point each
 * stands at one of them. Used by solve_answers.c. */
#ifndef OOS_PLAN_SOLVE_POINTS_H
#define OOS_PLAN_SOLVE_POINTS_H

#include "engines/vllm/solve/solve_trial.h"

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

#endif

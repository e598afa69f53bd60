/* The same command on other GPUs: which are looked at, and in which order. How a command is cut and whether it starts there is the
 * engine's to say. */
#ifndef OOS_PLAN_ELSEWHERE_H
#define OOS_PLAN_ELSEWHERE_H

#include "plan/plan.h"

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

#endif

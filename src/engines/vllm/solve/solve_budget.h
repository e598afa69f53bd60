/* The share of the device for the engine (--gpu-memory-utilization), in hundredths. Too small a share leaves no cache, too large
 * a one leaves nothing for what lies outside of it: what starts is a span between the two. Used by solve*.c. */
#ifndef OOS_PLAN_SOLVE_BUDGET_H
#define OOS_PLAN_SOLVE_BUDGET_H

#include "engines/vllm/solve/solve_trial.h"

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

#endif

/* What would help: a search over the real levers, each answer verified by planning again; and the flags people would try
 * that change nothing here. */
#ifndef OOS_PLAN_SOLVE_H
#define OOS_PLAN_SOLVE_H

#include "engines/vllm/plan.h"
#include "facts/torch.h"

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

#endif

/* What keeps a start that fits from being certain: something in the command that is not modelled, a release that nobody has run,
 * a PyTorch without code for the GPU, memory that the host shares. Each is a sentence that a reader sees first. */
#ifndef OOS_PLAN_DOUBT_H
#define OOS_PLAN_DOUBT_H

#include "command/serve.h"
#include "facts/torch.h"
#include "plan/plan.h"

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

#endif

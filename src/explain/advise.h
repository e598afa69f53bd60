/* What to change and what not to, for one incident: the advice of its record, of the causes that are possible beside it, and of the
 * engine's ladder of levers for the phase, put through the figures of the log. */
#ifndef OOS_EXPLAIN_ADVISE_H
#define OOS_EXPLAIN_ADVISE_H

#include "explain/kb.h"
#include "facts/engine.h"
#include "facts/levers.h"

enum { OOS_FIXES_MAX = 8, OOS_DEAD_ENDS_MAX = 8 };

/* How often people report a lever as the cure, or as tried in vain, at a failure in these phases: orders what the ladder holds equal. */
typedef struct oos_tried {
    const char *lever;
    uint64_t phases; /* bits by oos_phase */
    uint64_t worked, in_vain;
} oos_tried;

/* A lever that is of no use before a release, where the log shows what it depends on, whatever the ladder says. */
typedef struct oos_spent {
    const char *engine, *lever;
    oos_condition when;
    uint64_t phases;
    oos_version until;
    oos_sentence why;
} oos_spent;

typedef struct oos_advisers {
    const oos_ladder *ladders[OOS_ENGINE_COUNT]; /* by the engine's place in oos_engine_list */
    const oos_tried *tried;
    const oos_spent *spent;
    size_t tried_count, spent_count;
} oos_advisers;

oomsight_status oos_advisers_load(oos_arena *arena, const char *data_dir, const oos_signals *signals,
                                  oos_advisers *ret_advisers, oomsight_error *reterr);

/* Sets `fixes` and `dead_ends` of a concluded incident; without memory there are none. */
void oos_advise(oos_arena *arena, const oos_advisers *advisers, const oos_kb *kb, oos_incident *incident);

#endif

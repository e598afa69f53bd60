/* What the engine refuses before it looks at a device's memory: the checks of its own configuration, in the order in which it
 * makes them, with its own sentences. Bounds, methods and architectures come from facts/arguments.h; what is code in the
 * engine is code here. */
#ifndef OOS_PLAN_ARGUMENTS_H
#define OOS_PLAN_ARGUMENTS_H

#include "ledger/ledger.h"
#include "engines/vllm/setup/setup.h"

/* One change that may mend a refused command: leave a flag out, or give it a number, a word or nothing. */
typedef struct oos_mend {
    const char *flag;
    bool leave_out;
    const char *instead_of; /* what it stands for in the command, and is left out; NULL: nothing */
    const char *text;       /* the word in place of a number; NULL: `value`, or 0: a switch */
    uint64_t value;
} oos_mend;

enum { OOS_MENDS_MAX = 4 };

typedef struct oos_refusal {
    const char *sentence; /* the engine's own, shortened; NULL: nothing is refused */
    oos_phase phase;      /* arguments, or the phase in which the engine comes to it */
    oos_mend mends[OOS_MENDS_MAX];
    size_t mend_count;
} oos_refusal;

/* The first refusal of the command, if there is one. */
oomsight_status oos_arguments_check(oos_arena *arena, const oos_setup *setup, oos_refusal *ret_refusal,
                                    oomsight_error *reterr);

#endif

/* Advice put through the figures of the log: a value is computed from them, or given as a direction, and what does not lift
 * the failure or is what the log already has is not given at all. */
#ifndef OOS_EXPLAIN_ADVICE_H
#define OOS_EXPLAIN_ADVICE_H

#include "explain/kb.h"

typedef enum oos_advice_fate {
    OOS_ADVICE_AS_IT_IS,
    OOS_ADVICE_FILLED, /* the second word is another */
    OOS_ADVICE_DROPPED
} oos_advice_fate;

/* What a flag is filled with where no figure is known: a direction, which nobody can paste. */
#define OOS_ADVICE_LOWER "lower"
#define OOS_ADVICE_HIGHER "higher"

typedef struct oos_settled {
    oos_advice_fate fate;
    char value[32]; /* of what is filled */
    char why[120],
        why_zh[160]; /* of what is dropped: what the figures say against it, "" where they say nothing */
} oos_settled;

oos_settled oos_advice_settle(const oos_advice *advice, const oos_incident *incident);

#endif

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

enum { OOS_ADVICE_VALUE_BYTES = 32 };

/* What a flag is filled with where no figure is known: a direction, which nobody can paste. */
#define OOS_ADVICE_LOWER "lower"
#define OOS_ADVICE_HIGHER "higher"

/* The direction that `advice` is filled with, or NULL. */
const char *oos_advice_direction(const oos_advice *advice, const oos_incident *incident);

/* `value` is set when it is filled. Without an incident everything stays as it is. */
oos_advice_fate oos_advice_settle(const oos_advice *advice, const oos_incident *incident,
                                  char value[OOS_ADVICE_VALUE_BYTES]);

#endif

/* Arithmetic on the figures of one incident. */
#ifndef OOS_EXPLAIN_FACTS_H
#define OOS_EXPLAIN_FACTS_H

#include "explain/reason.h"

typedef enum oos_fact {
#define OOS_FACT_ENUM(name) OOS_FACT_##name,
    OOS_FACT_MAP(OOS_FACT_ENUM)
#undef OOS_FACT_ENUM
        OOS_FACT_COUNT
} oos_fact;

const char *oos_fact_name(oos_fact fact); /* "tried_gt_total" */

/* Adds what holds to `set`, fact i at index OOS_SIGNALS_MAX + i. */
void oos_facts_find(const oos_incident *incident, oos_signal_set *set);

/* What other processes held, by the message's own list or by subtraction. */
bool oos_facts_others(const oos_incident *incident, uint64_t *ret_bytes);

/* What PyTorch holds and has not given out; 0: not known. */
uint64_t oos_facts_cached(const oos_incident *incident);

#endif

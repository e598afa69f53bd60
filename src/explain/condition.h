/* Conditions over a set of signals and facts, as rules and records of the knowledge base state them. */
#ifndef OOS_EXPLAIN_CONDITION_H
#define OOS_EXPLAIN_CONDITION_H

#include "base/json.h"
#include "explain/signals.h"

enum { OOS_CONDITION_MAX = 24 };

/* All of, at least one of, none of: indices into a set. */
typedef struct oos_condition {
    uint16_t all[OOS_CONDITION_MAX], any[OOS_CONDITION_MAX], none[OOS_CONDITION_MAX];
    uint8_t all_count, any_count, none_count;
} oos_condition;

/* From the fields "all", "any" and "none" of a rule: names of signals ("torch.oom") and facts ("fact.torch_full"). */
oomsight_status oos_condition_read(const oos_signals *signals, const json_t *rule, oos_condition *ret_when,
                                   oomsight_error *reterr);

bool oos_condition_holds(const oos_condition *when, const oos_signal_set *set);

bool oos_phase_named(const char *word, oos_phase *ret_phase);

#endif

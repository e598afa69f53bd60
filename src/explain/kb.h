/* The knowledge base: one record per error signature, with its mechanism, what helps at which cost, and what does not.
 * Read from data/kb; a record's path is its id. */
#ifndef OOS_EXPLAIN_KB_H
#define OOS_EXPLAIN_KB_H

#include "explain/condition.h"
#include "explain/incident.h"

/* The same sentence in the languages we write. */
typedef struct oos_sentence {
    const char *en, *zh;
} oos_sentence;

/* Something people change: flags as one would paste them, or an action in words. */
typedef struct oos_advice {
    const char *const *change;
    size_t change_count;
    oos_sentence why, cost; /* cost NULL: none */
    const char *evidence;
    const char *since, *until; /* engine versions that have what it names; NULL: all the record is about */
    bool only_known;           /* told only of a log that is known to be of a version before `until` */
    oos_condition when;        /* what else the log shows */
} oos_advice;

typedef struct oos_kb_record {
    const char *id; /* "vllm/context-too-long" */
    oos_sentence title, mechanism;
    const char *signature; /* a typical line */
    const char *engine, *introduced, *fixed;
    const oos_advice *fixes, *dead_ends;
    size_t fix_count, dead_end_count;
    const char *const *confused_with, *const *leads_to;
    size_t confused_count, leads_count;
    oos_condition when;
    const oos_phase *phases;
    size_t phase_count; /* 0: any */
    const char *const *causes;
    size_t cause_count; /* 0: any */
    const json_t *json; /* the record itself, for printing */
} oos_kb_record;

typedef struct oos_kb {
    const oos_kb_record *list; /* sorted by id */
    size_t count;
} oos_kb;

oomsight_status oos_kb_load(oos_arena *arena, const char *data_dir, const oos_signals *signals,
                            oos_kb *ret_kb, oomsight_error *reterr);

const oos_kb_record *oos_kb_find(const oos_kb *kb, const char *id); /* NULL: no such record */

/* The most specific record that fits a concluded incident, or NULL. */
const oos_kb_record *oos_kb_match(const oos_kb *kb, const oos_incident *incident);

#endif

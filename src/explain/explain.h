/* A log explained: every incident in it, or the one healthy start. */
#ifndef OOS_EXPLAIN_EXPLAIN_H
#define OOS_EXPLAIN_EXPLAIN_H

#include "explain/advise.h"
#include "explain/collect.h"
#include "explain/incident.h"
#include "explain/kb.h"
#include "explain/reason.h"
#include "log/logstream.h"

enum { OOS_INCIDENTS_MAX = 128 };

/* What an explanation needs of data/: built once, shared by explanations of one thread. */
typedef struct oos_knowledge {
    oos_signals signals;
    const oos_cause_rules *rules;
    oos_kb kb;
    oos_advisers advisers;
} oos_knowledge;

oomsight_status oos_knowledge_load(oos_arena *arena, const char *data_dir, oos_knowledge *ret_knowledge,
                                   oomsight_error *reterr);

typedef struct oos_explanation {
    oos_incident *incidents; /* distinct ones in order of appearance, at most OOS_INCIDENTS_MAX */
    size_t count, room;
    uint64_t dropped; /* incidents beyond that */
    uint64_t lines, bytes;
    bool cut_hits, cut_lines;
    unsigned cleaned; /* OOS_CLEAN_* */
    oos_logstream_cut stream_cut;
} oos_explanation;

/* Told of each distinct incident when it is over, and of each repetition (`again`). May be NULL. */
typedef void oos_on_incident(void *context, const oos_incident *incident, bool again);

/* Read `stream` to its end. `explanation` must be zero or the result of an earlier call, which is then extended. */
oomsight_status oos_explain_stream(oos_arena *arena, const oos_knowledge *knowledge, oos_logstream *stream,
                                   oos_explanation *explanation, oomsight_error *reterr);

/* The same for one text that comes bit by bit, as long as it likes: a growing file. */
typedef struct oos_explainer oos_explainer;

oomsight_status oos_explainer_open(oos_arena *arena, const oos_knowledge *knowledge,
                                   oos_explanation *explanation, oos_on_incident *on_incident, void *context,
                                   oos_explainer **ret_explainer, oomsight_error *reterr);
void oos_explainer_close(oos_explainer *explainer); /* NULL is fine */
char *oos_explainer_room(oos_explainer *explainer, size_t *ret_capacity);
oomsight_status oos_explainer_took(oos_explainer *explainer, size_t count, oomsight_error *reterr);
/* Nothing more for now: an incident that is open counts as over. */
oomsight_status oos_explainer_settle(oos_explainer *explainer, oomsight_error *reterr);
/* The text is over; another may follow, with line numbers from 1. */
oomsight_status oos_explainer_finish(oos_explainer *explainer, oomsight_error *reterr);

/* One of many growing texts that share a bench. `part` 0 begins at `origin`. With `each`, equal incidents are told one by one
 * and nothing is kept of them: `explanation` is empty again after each call of `on_incident`. */
oomsight_status oos_explainer_open_growing(oos_arena *arena, const oos_knowledge *knowledge, oos_bench *bench,
                                           const oos_scan_origin *origin, oos_explanation *explanation,
                                           oos_on_incident *on_incident, void *context,
                                           oos_explainer **ret_explainer, oomsight_error *reterr);
/* The text goes on in another file: what is open stays open. */
oomsight_status oos_explainer_next_part(oos_explainer *explainer, const oos_scan_origin *origin,
                                        oomsight_error *reterr);
/* Something waits to be told, or for what follows it. */
bool oos_explainer_waits(const oos_explainer *explainer);
bool oos_explainer_lines_wait(const oos_explainer *explainer); /* the latter */
/* Nothing more for now: lines no longer wait. An incident stays open. */
oomsight_status oos_explainer_hand_on(oos_explainer *explainer, oomsight_error *reterr);
uint64_t oos_explainer_lines(const oos_explainer *explainer); /* read of this part, and before it */
oos_collector *oos_explainer_collector(oos_explainer *explainer);
/* The first byte of this part that was not looked at to the end. */
void oos_explainer_place(const oos_explainer *explainer, uint64_t *ret_byte, uint64_t *ret_lines);

#endif

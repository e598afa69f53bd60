/* A log explained: every incident in it, or the one healthy start. */
#ifndef OOS_EXPLAIN_EXPLAIN_H
#define OOS_EXPLAIN_EXPLAIN_H

#include "explain/incident.h"
#include "explain/kb.h"
#include "explain/reason.h"
#include "input/logstream.h"

enum { OOS_INCIDENTS_MAX = 128 };

/* What an explanation needs of data/: built once, shared by explanations of one thread. */
typedef struct oos_knowledge {
    oos_signals signals;
    const oos_rules *rules;
    oos_kb kb;
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

/* Watches an explanation grow. Either may be NULL. */
typedef struct oos_explain_hooks {
    void (*on_incident)(void *context, const oos_incident *incident); /* concluded, in the order of the log */
    bool (*keep_going)(void *context); /* at the end of the data: wait for more? */
    void *context;
} oos_explain_hooks;

/* Read `stream` to its end. `explanation` must be zero or the result of an earlier call, which is then extended. */
oomsight_status oos_explain_stream(oos_arena *arena, const oos_knowledge *knowledge, oos_logstream *stream,
                                   const oos_explain_hooks *hooks, oos_explanation *explanation,
                                   oomsight_error *reterr);

#endif

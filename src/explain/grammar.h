/* Does a sentence say that memory is lacking, in words that nobody listed as a whole? {failing or lacking} x {allocating,
 * mapping, fitting} x {a word for memory, or a size}; the words are in data/explain/words.json, written by hand and held
 * against what tools/harvest_messages.py finds in the sources of PyTorch, the drivers' libraries and the engines. */
#ifndef OOS_EXPLAIN_GRAMMAR_H
#define OOS_EXPLAIN_GRAMMAR_H

#include "base/arena.h"
#include "base/error.h"

typedef enum oos_says {
    OOS_SAYS_NOTHING,
    OOS_SAYS_ADVICE, /* speaks of memory that may lack: "if you run out of memory" */
    OOS_SAYS_MEMORY, /* speaks of memory */
    OOS_SAYS_LACK    /* says that it is lacking */
} oos_says;

/* What the lacking thing is said to be; each is a signal, "words.kv" and so on. */
enum {
    OOS_TOPIC_KV = 1,
    OOS_TOPIC_SHARED = 2,
    OOS_TOPIC_HOST = 4,
    OOS_TOPIC_LOAD = 8,
    OOS_TOPIC_GRAPH = 16,
    OOS_TOPIC_COMM = 32,  /* communicators */
    OOS_TOPIC_SERVE = 64, /* a request, a batch, a decode step */
    OOS_TOPIC_PREFILL = 128,
    OOS_TOPIC_COUNT = 8
};

typedef struct oos_grammar oos_grammar;

oomsight_status oos_grammar_load(oos_arena *arena, const char *data_dir, const oos_grammar **ret_grammar,
                                 oomsight_error *reterr);

/* *ret_topics (may be NULL): of the sentences that say it. */
oos_says oos_grammar_read(const oos_grammar *grammar, oos_view text, unsigned *ret_topics);

#endif

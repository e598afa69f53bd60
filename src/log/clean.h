/* Undoing what was done to a log on its way here: JSON around each line (docker, journald, structured logging),
 * Kubernetes CRI prefixes, journald export fields, markdown escapes, lines cut at the width of a terminal.
 * The number of '\n' is kept, so line numbers stay those of the input: lines joined leave empty ones behind, and a
 * line that holds several gets '\v' between them. What needs no cleaning is not touched. */
#ifndef OOS_INPUT_CLEAN_H
#define OOS_INPUT_CLEAN_H

#include "base/text.h"

enum {
    OOS_CLEAN_JSON = 1,     /* a JSON object per line */
    OOS_CLEAN_CRI = 2,      /* `2025-01-01T00:00:00Z stderr F ` */
    OOS_CLEAN_JOURNAL = 4,  /* `MESSAGE=` among other fields */
    OOS_CLEAN_MARKDOWN = 8, /* `\[file.py:1\]`, `&quot;` */
    OOS_CLEAN_WRAPPED = 16, /* cut at a terminal's width */
    OOS_CLEAN_WIDTH = 256   /* times the width in columns, when it is known */
};

/* What the first bytes of an input ask for, a sum of the above; 0: nothing. */
unsigned oos_clean_sniff(oos_view head);

typedef struct oos_cleaner {
    unsigned what;
    oos_text pending;    /* a line whose end, or whose continuation, has not come yet */
    size_t joined;       /* lines that were joined to it */
    size_t last_columns; /* of the last of them */
    bool wants_more;     /* the pending line is complete, but the next may belong to it */
} oos_cleaner;

void oos_cleaner_init(oos_cleaner *cleaner, unsigned what);
void oos_cleaner_free(oos_cleaner *cleaner);

/* Clean the next bytes into `out` (appended). `last`: nothing follows. */
void oos_cleaner_feed(oos_cleaner *cleaner, oos_view bytes, bool last, oos_text *out);

#endif

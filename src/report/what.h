/* What a text is, and which command answers it. */
#ifndef OOS_REPORT_WHAT_H
#define OOS_REPORT_WHAT_H

#include "report/style.h"

typedef struct oos_what {
    const char *kind;     /* "command", "other", "config", "trace", "log", "empty", "nothing" */
    const char *sentence; /* the same for people */
    const char *ask;      /* the command that answers it; NULL: none does */
    const char *title;    /* of the engine that is named; NULL: none is */
    bool pasted; /* the answer takes it from standard input: what stands around it is taken off there */
} oos_what;

void oos_report_what(const oos_what *what, const char *path, const oos_style *style, bool json);

#endif

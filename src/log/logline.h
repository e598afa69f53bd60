/* One line of a log, taken apart: who printed it, with which level, and what it says. Everything that loggers,
 * containers and terminals put in front of a message is peeled off here. */
#ifndef OOS_INPUT_LOGLINE_H
#define OOS_INPUT_LOGLINE_H

#include "base/view.h"

typedef struct oos_logline {
    oos_view process; /* "Worker_TP3", "EngineCore_DP0", "rank0", "VllmWorker rank=1"; empty: not told */
    oos_view source;  /* "core.py:340"; empty: not told */
    oos_view message; /* the rest; its own indentation is kept */
    char level;       /* 'D', 'I', 'W', 'E', 'C', or 0 */
    bool labelled;    /* has a process or a level: the start of a record, not a continuation */
    bool old_shape;   /* `file.py:12] text` without the opening bracket: vLLM before 0.8 */
} oos_logline;

/* Copy without colour codes; also those whose ESC was lost in a paste ("[0;36m"). Returns the new length, which is at
 * most the old one. `to` may be the line itself. */
size_t oos_logline_uncolour(oos_view line, char *to);

oos_logline oos_logline_read(oos_view line);

/* "TP3" of "Worker_TP3", "0" of "VllmWorker rank=0" and "rank0"; empty when the process is no rank. */
oos_view oos_logline_rank(oos_view process);

#endif

/* The answer in a report of a dry run that another process made. */
#ifndef OOS_DRYRUN_REPORT_READ_H
#define OOS_DRYRUN_REPORT_READ_H

#include "base/arena.h"
#include "base/size.h"
#include "base/view.h"

#include <oomsight/oomsight.h>

typedef struct oos_dryrun_answer {
    oomsight_verdict verdict;
    bool starts;                /* or likely starts */
    bool killed;                /* from outside: another try may have an answer */
    const char *engine_version; /* any of these may be NULL */
    const char *phase, *cause, *why, *unknown_flag, *command;
    oos_u64 tried_bytes, weights_bytes, kv_tokens, kv_available_bytes;
    double max_concurrency; /* below 0: not told */
} oos_dryrun_answer;

/* False: the text is no such report. Strings live as long as the arena. */
bool oos_dryrun_report_read(oos_arena *arena, oos_view json, oos_dryrun_answer *ret_answer);

#endif

/* A guarded run, to those who tell of it. */
#ifndef OOS_API_RUN_HANDLE_H
#define OOS_API_RUN_HANDLE_H

#include "api/api.h"
#include "dryrun/dryrun.h"
#include "run/growth.h"
#include "run/processes.h"
#include "run/serving.h"

struct oomsight_run {
    oos_segment *segment;
    char path[600];       /* of the segment */
    oos_history *history; /* NULL: nobody watches */
    oos_dryrun_log log;   /* an engine prints the same on a real device */
    int alive; /* locked while whoever made the segment lives, in any container; -1: it is not ours */
    oos_process_family *family; /* NULL: nobody has looked */
    unsigned told_unseen;       /* how many of those that are not counted were told */
    oos_serving serving;        /* that it said last; nothing known: not asked, or no answer */
};

uint64_t oos_run_smallest(const oos_segment *segment); /* device; 0: none is known */

#endif

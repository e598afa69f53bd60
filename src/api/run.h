/* A guarded run, to those who tell of it. */
#ifndef OOS_API_RUN_H
#define OOS_API_RUN_H

#include "api/api.h"
#include "dryrun/dryrun.h"
#include "run/growth.h"
#include "run/serving.h"

struct oomsight_run {
    oos_segment *segment;
    char path[600];       /* of the segment */
    oos_history *history; /* NULL: nobody watches */
    oos_dryrun_log log;   /* an engine prints the same on a real device */
    oos_serving serving;  /* that it said last; nothing known: not asked, or no answer */
};

#endif

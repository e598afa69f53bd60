/* What grows while an engine serves: figures of a run taken down over time, thinned out as they become many, and the slope of each
 * by Theil and Sen, which a single jump or a saw does not move. */
#ifndef OOS_RUN_GROWTH_H
#define OOS_RUN_GROWTH_H

#include "base/slope.h"
#include "run/run.h"

enum { OOS_HISTORY_MAX = OOS_SLOPE_POINTS_MAX };
#define OOS_GROWTH_HOURS_MIN (5.0 / 60) /* of the later half, which is judged */

typedef enum oos_growth_what {
    OOS_GROWTH_CALLS,   /* of a device, by calls: PyTorch's reserved memory for the most part */
    OOS_GROWTH_OUTSIDE, /* of a device, by no call */
    OOS_GROWTH_PINNED,  /* of the host, over all processes */
    OOS_GROWTH_HOST,    /* resident, over all processes that are on a device */
    OOS_GROWTH_COUNT
} oos_growth_what;

const char *oos_growth_word(oos_growth_what what);

typedef struct oos_growth {
    oos_growth_what what;
    const char *bus_id; /* NULL: of the host */
    unsigned
        owner; /* of a device, by calls: whose part grows most; OOS_SEGMENT_OWNERS: nobody's does alone */
    oos_slope slope;       /* bytes, by hours */
    double hours_to_limit; /* at this slope; 0: there is no limit */
} oos_growth;

typedef struct oos_history oos_history;

oos_history *oos_history_create(void); /* NULL: no memory */
void oos_history_free(oos_history *history);

/* `hours` since the start, never going back. Calls that come sooner than a sample is wanted change nothing. */
void oos_history_add(oos_history *history, double hours, const oos_run_state *state, uint64_t host_bytes);

/* Only what surely grows: the range of its slope is above zero, and it came to more than the units that memory is taken in. */
size_t oos_history_growth(const oos_history *history, const oos_run_state *state, oos_growth *ret_list,
                          size_t most);

/* Resident bytes of the processes of a run, from /proc. */
uint64_t oos_run_host_bytes(const oos_run_state *state);

#endif

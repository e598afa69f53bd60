/* The slope of a line of points by Theil and Sen: the median of the slopes of all pairs, which a single jump or a saw does not move. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { OOS_SLOPE_POINTS_MIN = 20, OOS_SLOPE_POINTS_MAX = 240 };

typedef struct oos_slope {
    double per, low,
        high;    /* y for each unit of x; 95 % of such points lie inside, were their errors independent */
    double span; /* of x */
} oos_slope;

/* Points in the order of x; false with fewer or more of them than above, when x stands still, or when memory runs out. */
bool oos_slope_of(const double *x, const double *y, size_t count, oos_slope *ret_slope);

/* Growth is a claim: the whole range of the slope lies above zero, and it came to more bytes than the units that PyTorch and the driver
 * take memory in. */
bool oos_slope_grows(const oos_slope *slope);

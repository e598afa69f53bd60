#include "base/slope.h"
#include "base/check.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double const x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

bool oos_slope_of(const double *x, const double *y, size_t count, oos_slope *ret_slope)
{
    if (count < OOS_SLOPE_POINTS_MIN || count > OOS_SLOPE_POINTS_MAX) return false;
    double *slopes = malloc(count * (count - 1) / 2 * sizeof *slopes);
    size_t pairs = 0;
    if (!slopes) return false;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            if (x[j] > x[i]) slopes[pairs++] = (y[j] - y[i]) / (x[j] - x[i]);
    if (pairs) qsort(slopes, pairs, sizeof *slopes, by_value);
    double const n = (double)count, spread = 1.96 * sqrt(n * (n - 1) * (2 * n + 5) / 18);
    double const lowest = ((double)pairs - spread) / 2, highest = ((double)pairs + spread) / 2;
    bool const done = pairs > 0 && lowest >= 0;
    if (done)
        *ret_slope = (oos_slope){.per = slopes[pairs / 2],
                                 .low = slopes[(size_t)lowest],
                                 .high = slopes[highest < (double)pairs ? (size_t)highest : pairs - 1],
                                 .span = x[count - 1] - x[0]};
    oos_assert(!done || (ret_slope->low <= ret_slope->per && ret_slope->per <= ret_slope->high));
    free(slopes);
    return done;
}

bool oos_slope_grows(const oos_slope *slope)
{
    double const units_bytes = 2 * 0x1p21; /* two of the blocks that they take */
    return slope->low > 0 && slope->per * slope->span >= units_bytes;
}

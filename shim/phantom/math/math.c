/* cuFFT, cuRAND, cuSOLVER, cuSPARSE, cuSPARSELt: only what hands out a number that is not a handle. The rest of these
 * libraries is table alone: handles are made, work is counted, sizes are refused. */
#include "phantom/phantom.h"

#if defined(OOS_TABLE_cufft)
TAKE(int, cufftCreate, int *ret_plan)
{
    static int last;
    *ret_plan = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return 0;
}
#endif

#if defined(OOS_TABLE_cusparselt)
TAKE(int, cusparseLtInit, void **ret_handle)
{
    return oos_handle_new(ret_handle);
}
#endif

typedef int oos_math_unit; /* a table may need nothing from here */

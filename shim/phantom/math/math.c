/* cuFFT, cuRAND, cuSOLVER, cuSPARSE, cuSPARSELt: only what hands out a number that is not a handle, or a text. The rest of these
 * libraries is table alone: handles are made, work is counted, workspaces are none (device/none.c), other sizes are refused. */
#include "phantom/phantom.h"

#if defined(OOS_TABLE_cufft)
TAKE(int, cufftCreate, int *ret_plan)
{
    static int last;
    *ret_plan = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return 0;
}
#endif

#if defined(OOS_TABLE_cufft)
TAKE(int, cufftGetVersion, int *ret_version)
{
    *ret_version = OOS_CUDA_MAJOR == 12 ? 11303 : 12000;
    return 0;
}
#endif

#if defined(OOS_TABLE_cusparse)
TAKE(const char *, cusparseGetErrorName, int status)
{
    return status ? "CUSPARSE_STATUS_NOT_SUPPORTED" : "CUSPARSE_STATUS_SUCCESS";
}

TAKE(const char *, cusparseGetErrorString, int status)
{
    return status ? "operation not supported" : "success";
}
#endif

#if defined(OOS_TABLE_cusparselt)
TAKE(const char *, cusparseLtGetErrorName, int status)
{
    return status ? "CUSPARSE_STATUS_NOT_SUPPORTED" : "CUSPARSE_STATUS_SUCCESS";
}

TAKE(const char *, cusparseLtGetErrorString, int status)
{
    return status ? "operation not supported" : "success";
}

TAKE(int, cusparseLtInit, void **ret_handle)
{
    return oos_handle_new(ret_handle);
}
#endif

typedef int oos_math_unit; /* a table may need nothing from here */

/* cuBLAS: handles with a stream and modes; products are launches that do nothing. Workspaces are torch's own. */
#include "phantom/phantom.h"

#include <stdlib.h>

typedef struct blas {
    void *stream;
    int math_mode, pointer_mode, atomics_mode, sm_target;
} blas;

TAKE(int, cublasCreate_v2, blas **ret_handle)
{
    *ret_handle = calloc(1, sizeof **ret_handle);
    return *ret_handle ? 0 : 3; /* allocation failed */
}

TAKE(int, cublasDestroy_v2, blas *handle)
{
    free(handle);
    return 0;
}

#define PROPERTY(type, name, field)                                                                          \
    static int set_##name(blas *handle, type value)                                                          \
    {                                                                                                        \
        handle->field = value;                                                                               \
        return 0;                                                                                            \
    }                                                                                                        \
    static int get_##name(const blas *handle, type *ret_value)                                               \
    {                                                                                                        \
        *ret_value = handle->field;                                                                          \
        return 0;                                                                                            \
    }
PROPERTY(void *, stream, stream)
PROPERTY(int, math_mode, math_mode)
PROPERTY(int, pointer_mode, pointer_mode)
PROPERTY(int, atomics_mode, atomics_mode)
PROPERTY(int, sm_target, sm_target)

TAKE(int, cublasSetStream_v2, blas *handle, void *stream)
{
    return set_stream(handle, stream);
}

TAKE(int, cublasGetStream_v2, const blas *handle, void **ret_stream)
{
    return get_stream(handle, ret_stream);
}

TAKE(int, cublasSetMathMode, blas *handle, int mode)
{
    return set_math_mode(handle, mode);
}

TAKE(int, cublasGetMathMode, const blas *handle, int *ret_mode)
{
    return get_math_mode(handle, ret_mode);
}

TAKE(int, cublasSetPointerMode_v2, blas *handle, int mode)
{
    return set_pointer_mode(handle, mode);
}

TAKE(int, cublasGetPointerMode_v2, const blas *handle, int *ret_mode)
{
    return get_pointer_mode(handle, ret_mode);
}

TAKE(int, cublasSetAtomicsMode, blas *handle, int mode)
{
    return set_atomics_mode(handle, mode);
}

TAKE(int, cublasGetAtomicsMode, const blas *handle, int *ret_mode)
{
    return get_atomics_mode(handle, ret_mode);
}

TAKE(int, cublasSetSmCountTarget, blas *handle, int target)
{
    return set_sm_target(handle, target);
}

TAKE(int, cublasGetSmCountTarget, const blas *handle, int *ret_target)
{
    return get_sm_target(handle, ret_target);
}

TAKE(int, cublasGetVersion_v2, const blas *handle, int *ret_version)
{
    *ret_version = OOS_CUDA_MAJOR == 12 ? 120804 : 130002;
    return 0;
}

TAKE(int, cublasGetProperty, int which, int *ret_value)
{
    *ret_value = which == 0 ? OOS_CUDA_MAJOR : which == 1 && OOS_CUDA_MAJOR == 12 ? 8 : 0;
    return 0;
}

TAKE(const char *, cublasGetStatusName, int status)
{
    return status ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_SUCCESS";
}

TAKE(const char *, cublasGetStatusString, int status)
{
    return status ? "the requested functionality is not supported" : "success";
}

/* Launches count as nodes of a graph that is being captured. */
TAKE(int, cublasGemmEx, const blas *handle)
{
    oos_stream_launch(handle->stream);
    return 0;
}

TAKE(int, cublasGemmStridedBatchedEx, const blas *handle)
{
    oos_stream_launch(handle->stream);
    return 0;
}

TAKE(int, cublasGemmBatchedEx, const blas *handle)
{
    oos_stream_launch(handle->stream);
    return 0;
}

TAKE(int, cublasSgemm_v2, const blas *handle)
{
    oos_stream_launch(handle->stream);
    return 0;
}

TAKE(int, cublasSgemmStridedBatched, const blas *handle)
{
    oos_stream_launch(handle->stream);
    return 0;
}

TAKE(int, cublasSgemmEx, const blas *handle)
{
    oos_stream_launch(handle->stream);
    return 0;
}

TAKE(int, cublasHgemm, const blas *handle)
{
    oos_stream_launch(handle->stream);
    return 0;
}

TAKE(int, cublasHgemmStridedBatched, const blas *handle)
{
    oos_stream_launch(handle->stream);
    return 0;
}

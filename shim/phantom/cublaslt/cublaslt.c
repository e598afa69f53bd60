/* cuBLASLt: descriptors and one algorithm that needs no workspace (torch gives it its own). */
#include "phantom/phantom.h"

#include <stdlib.h>

typedef struct heuristic {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} heuristic;
_Static_assert(sizeof(heuristic) == 96, "layout of the vendor");

TAKE(int, cublasLtMatmulDescCreate, void **ret_desc, int compute, int scale)
{
    return oos_handle_new(ret_desc) ? 3 : 0;
}

TAKE(int, cublasLtMatrixLayoutCreate, void **ret_layout, int type, uint64_t rows, uint64_t columns,
     int64_t stride)
{
    return oos_handle_new(ret_layout) ? 3 : 0;
}

TAKE(int, cublasLtMatmulPreferenceCreate, void **ret_preference)
{
    return oos_handle_new(ret_preference) ? 3 : 0;
}

TAKE(int, cublasLtMatrixTransformDescCreate, void **ret_desc, int scale)
{
    return oos_handle_new(ret_desc) ? 3 : 0;
}

TAKE(int, cublasLtMatmulDescDestroy, void *desc)
{
    free(desc);
    return 0;
}

TAKE(int, cublasLtMatrixLayoutDestroy, void *layout)
{
    free(layout);
    return 0;
}

TAKE(int, cublasLtMatmulPreferenceDestroy, void *preference)
{
    free(preference);
    return 0;
}

TAKE(size_t, cublasLtGetVersion, void)
{
    return OOS_CUDA_MAJOR == 12 ? 120804 : 130002;
}

TAKE(size_t, cublasLtGetCudartVersion, void)
{
    return OOS_CUDA_VERSION;
}

TAKE(int, cublasLtGetProperty, int which, int *ret_value)
{
    *ret_value = which == 0 ? OOS_CUDA_MAJOR : which == 1 && OOS_CUDA_MAJOR == 12 ? 8 : 0;
    return 0;
}

TAKE(int, cublasLtMatmulAlgoGetHeuristic, void *handle, void *desc, void *a, void *b, void *c, void *d,
     void *preference, int wanted, heuristic *ret_results, int *ret_count)
{
    if (wanted < 1) return 7; /* invalid value */
    ret_results[0] = (heuristic){.waves = 1.0f};
    *ret_count = 1;
    return 0;
}

TAKE(int, cublasLtMatmul, void *handle, void *desc, const void *alpha, const void *a, void *a_layout,
     const void *b, void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
     const void *algorithm, void *workspace, size_t workspace_bytes, void *stream)
{
    oos_stream_launch(stream);
    return 0;
}

TAKE(const char *, cublasLtGetStatusName, int status)
{
    return status ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_SUCCESS";
}

TAKE(const char *, cublasLtGetStatusString, int status)
{
    return status ? "the requested functionality is not supported" : "success";
}

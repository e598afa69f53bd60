/* cuDNN: version, descriptors, and graphs that have no engine, so that PyTorch takes its own kernels. */
#include "phantom/phantom.h"

#include <stdlib.h>

enum { NOT_SUPPORTED = 3000 };

TAKE(size_t, cudnnGetVersion, void)
{
    return OOS_CUDA_MAJOR == 12 ? 91002 : 92000;
}

TAKE(size_t, cudnnGetCudartVersion, void)
{
    return OOS_CUDA_VERSION;
}

TAKE(size_t, cudnnGetMaxDeviceVersion, void)
{
    return 1210;
}

TAKE(const char *, cudnnGetErrorString, int status)
{
    return status ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_SUCCESS";
}

TAKE(void, cudnnGetLastErrorString, char *ret_text, size_t capacity)
{
    if (capacity) ret_text[0] = '\0';
}

TAKE(int, cudnnGetProperty, int which, int *ret_value)
{
    *ret_value = which == 0                           ? 9
                 : which == 1                         ? (OOS_CUDA_MAJOR == 12 ? 10 : 20)
                 : which == 2 && OOS_CUDA_MAJOR == 12 ? 2
                                                      : 0;
    return 0;
}

TAKE(int, cudnnBackendCreateDescriptor, int kind, void **ret_descriptor)
{
    return oos_handle_new(ret_descriptor) ? NOT_SUPPORTED : 0;
}

TAKE(int, cudnnBackendDestroyDescriptor, void *descriptor)
{
    free(descriptor);
    return 0;
}

/* No engine is on offer: a caller that asks how many gets none. */
TAKE(int, cudnnBackendGetAttribute, void *descriptor, int name, int type, int64_t wanted, int64_t *ret_count,
     void *ret_values)
{
    if (ret_count) *ret_count = 0;
    return 0;
}

TAKE(int, cudnnGetStream, void *handle, void **ret_stream)
{
    *ret_stream = NULL;
    return 0;
}

TAKE(int, cudnnGetConvolutionForwardWorkspaceSize, void *handle, void *a, void *b, void *c, void *d,
     int algorithm, size_t *ret_bytes)
{
    *ret_bytes = 0;
    return 0;
}

TAKE(int, cudnnGetConvolutionBackwardDataWorkspaceSize, void *handle, void *a, void *b, void *c, void *d,
     int algorithm, size_t *ret_bytes)
{
    *ret_bytes = 0;
    return 0;
}

TAKE(int, cudnnGetConvolutionBackwardFilterWorkspaceSize, void *handle, void *a, void *b, void *c, void *d,
     int algorithm, size_t *ret_bytes)
{
    *ret_bytes = 0;
    return 0;
}

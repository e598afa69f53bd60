/* The calls of libcuda that a measurement needs, by dlopen. Handles are pointers, results 0 or CUDA's error numbers. */
#ifndef OOS_MACHINE_LIBCUDA_H
#define OOS_MACHINE_LIBCUDA_H

#include <stddef.h>

typedef struct oos_cuda_place {
    int type, handle_types, location_type,
        location_id; /* CUmemAllocationProp: pinned, none, device, number */
    void *rest[2];
} oos_cuda_place;

/* name, arguments. The first nine are needed for anything, the others for a part. */
#define OOS_LIBCUDA_MAP(X)                                                                                   \
    X(cuInit, (unsigned))                                                                                    \
    X(cuDriverGetVersion, (int *))                                                                           \
    X(cuDeviceGetCount, (int *))                                                                             \
    X(cuDeviceGet, (int *, int))                                                                             \
    X(cuDeviceGetName, (char *, int, int))                                                                   \
    X(cuDeviceGetAttribute, (int *, int, int))                                                               \
    X(cuDevicePrimaryCtxRetain, (void **, int))                                                              \
    X(cuCtxSetCurrent, (void *))                                                                             \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                                                                 \
    X(cuDeviceTotalMem_v2, (size_t *, int))                                                                  \
    X(cuDeviceGetPCIBusId, (char *, int, int))                                                               \
    X(cuMemGetAllocationGranularity, (size_t *, const oos_cuda_place *, int))                                \
    X(cuMemAlloc_v2, (unsigned long long *, size_t))                                                         \
    X(cuMemFree_v2, (unsigned long long))                                                                    \
    X(cuModuleLoadData, (void **, const void *))                                                             \
    X(cuModuleGetFunction, (void **, void *, const char *))                                                  \
    X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, \
                       void **, void **))                                                                    \
    X(cuStreamCreate, (void **, unsigned))                                                                   \
    X(cuStreamSynchronize, (void *))                                                                         \
    X(cuStreamBeginCapture_v2, (void *, int))                                                                \
    X(cuStreamEndCapture, (void *, void **))                                                                 \
    X(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long))                                    \
    X(cuGraphLaunch, (void *, void *))
enum { OOS_LIBCUDA_NEEDED = 9 };

typedef struct oos_libcuda {
#define OOS_LIBCUDA_POINTER(name, arguments) int(*name) arguments;
    OOS_LIBCUDA_MAP(OOS_LIBCUDA_POINTER)
#undef OOS_LIBCUDA_POINTER
} oos_libcuda;

extern const char *const oos_libcuda_names[]; /* NULL at the end */

/* False: there is no libcuda. A call that it lacks is NULL. It stays loaded: its threads cannot be ended. */
int oos_libcuda_open(oos_libcuda *ret_cuda);

#endif

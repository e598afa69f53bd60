/* A CUDA runtime and driver of 24 GiB for one process, in one file: no stand-in, so any user can have it, and it gives out arrays, too. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static size_t const total = (size_t)24 << 30;
static size_t used;
static uintptr_t last = 0x7000000000;

static int take(void **ret_at, size_t bytes)
{
    if (bytes > total - used) return 2;
    used += bytes;
    last += 4096;
    *ret_at = (void *)last;
    return 0;
}

typedef struct extent {
    size_t width, height, depth;
} extent;

/* No prototypes: the test's program has them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC visibility push(default)

int cudaMalloc(void **ret_at, size_t bytes)
{
    return take(ret_at, bytes);
}
int cudaFree(void *at)
{
    (void)at;
    return 0;
}
int cudaMallocArray(void **ret_at, const int *format, size_t width, size_t height, unsigned flags)
{
    (void)flags;
    return take(ret_at, (size_t)format[0] / 8 * width * (height ? height : 1));
}
int cudaMalloc3DArray(void **ret_at, const int *format, extent size, unsigned flags)
{
    (void)flags;
    return take(ret_at, (size_t)format[0] / 8 * size.width * size.height * size.depth);
}
int cudaMallocMipmappedArray(void **ret_at, const int *format, extent size, unsigned levels, unsigned flags)
{
    (void)flags, (void)levels;
    return take(ret_at, (size_t)format[0] / 8 * size.width * size.height * size.depth);
}
int cudaMalloc3D(void **ret_at, extent size)
{
    return take(ret_at, size.width * size.height * size.depth);
}
int cudaFreeArray(void *at)
{
    (void)at;
    return 0;
}
int cudaFreeMipmappedArray(void *at)
{
    (void)at;
    return 0;
}
int cuArrayCreate_v2(void **ret_at, const size_t *shape)
{
    return take(ret_at, shape[0] * (shape[1] ? shape[1] : 1));
}
int cuArray3DCreate_v2(void **ret_at, const size_t *shape)
{
    return take(ret_at, shape[0] * (shape[1] ? shape[1] : 1) * (shape[2] ? shape[2] : 1));
}
int cuMipmappedArrayCreate(void **ret_at, const size_t *shape, unsigned levels)
{
    (void)levels;
    return cuArray3DCreate_v2(ret_at, shape);
}
int cuArrayDestroy(void *at)
{
    (void)at;
    return 0;
}
int cuMipmappedArrayDestroy(void *at)
{
    (void)at;
    return 0;
}
int cudaMemGetInfo(size_t *ret_free, size_t *ret_total)
{
    *ret_free = total - used;
    *ret_total = total;
    return 0;
}
int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
    return cudaMemGetInfo(ret_free, ret_total);
}
int cudaGetDevice(int *ret_device)
{
    *ret_device = 0;
    return 0;
}
int cuCtxGetDevice(int *ret_device)
{
    *ret_device = 0;
    return 0;
}
int cudaDeviceGetPCIBusId(char *ret_id, int capacity, int device)
{
    (void)device;
    strncpy(ret_id, "0000:01:00.0", (size_t)capacity);
    return 0;
}
int cuDeviceGetPCIBusId(char *ret_id, int capacity, int device)
{
    return cudaDeviceGetPCIBusId(ret_id, capacity, device);
}

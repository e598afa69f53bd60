/* Memory of the runtime API. What an allocation costs is decided in shim/device. */
#include "phantom/cudart/cudart.h"

#include <unistd.h>

static unsigned here(void)
{
    return oos_device_current();
}

TAKE(int, cudaMalloc, void **ret_at, size_t bytes)
{
    if (!ret_at) return told(OOS_CODE_INVALID_VALUE);
    return told(oos_memory_take(here(), OOS_USE_MALLOC, bytes, ret_at));
}

TAKE(int, cudaFree, void *at)
{
    int const code = oos_device_context(here());
    return told(code ? code : oos_memory_give(at));
}

TAKE(int, cudaMallocManaged, void **ret_at, size_t bytes, unsigned flags)
{
    return told(oos_memory_take(here(), OOS_USE_MANAGED, bytes, ret_at));
}

TAKE(int, cudaMallocPitch, void **ret_at, size_t *ret_pitch, size_t width, size_t height)
{
    size_t bytes;
    *ret_pitch = (width + 511) / 512 * 512;
    if (__builtin_mul_overflow(*ret_pitch, height, &bytes)) return told(OOS_CODE_INVALID_VALUE);
    return told(oos_memory_take(here(), OOS_USE_MALLOC, bytes, ret_at));
}

TAKE(int, cudaMallocAsync, void **ret_at, size_t bytes, void *stream)
{
    return told(oos_memory_take(here(), OOS_USE_POOL, bytes, ret_at));
}

TAKE(int, cudaMallocFromPoolAsync, void **ret_at, size_t bytes, void *pool, void *stream)
{
    return told(oos_memory_take(here(), OOS_USE_POOL, bytes, ret_at));
}

TAKE(int, cudaFreeAsync, void *at, void *stream)
{
    return told(oos_memory_give(at));
}

TAKE(int, cudaHostAlloc, void **ret_at, size_t bytes, unsigned flags)
{
    return told(oos_memory_host(bytes, ret_at));
}

TAKE(int, cudaMallocHost, void **ret_at, size_t bytes)
{
    return told(oos_memory_host(bytes, ret_at));
}

TAKE(int, cudaFreeHost, void *at)
{
    return told(oos_memory_give(at));
}

TAKE(int, cudaHostRegister, void *at, size_t bytes, unsigned flags)
{
    return told(oos_memory_register(at, bytes));
}

TAKE(int, cudaHostUnregister, void *at)
{
    return told(oos_memory_unregister(at));
}

TAKE(int, cudaHostGetDevicePointer, void **ret_at, void *host, unsigned flags)
{
    *ret_at = host;
    return 0;
}

TAKE(int, cudaHostGetFlags, unsigned *ret_flags, void *host)
{
    *ret_flags = 0;
    return 0;
}

TAKE(int, cudaMemGetInfo, size_t *ret_free, size_t *ret_total)
{
    int const code = oos_device_context(here());
    if (code) return told(code);
    uint64_t free_bytes, total_bytes;
    oos_device_free_bytes(oos_device_physical(here()), &free_bytes, &total_bytes);
    *ret_free = free_bytes;
    *ret_total = total_bytes;
    return 0;
}

/* CUDA 13 added reserved words behind the four fields. */
typedef struct pointer_attributes {
    int type, device; /* type: 0 not known, 1 host, 2 device, 3 managed */
    void *device_pointer, *host_pointer;
#if OOS_CUDA_MAJOR >= 13
    long reserved[8];
#endif
} pointer_attributes;
_Static_assert(sizeof(pointer_attributes) == (OOS_CUDA_MAJOR == 12 ? 24 : 88), "layout of the vendor");

TAKE(int, cudaPointerGetAttributes, pointer_attributes *ret_attributes, const void *at)
{
    oos_range range;
    pointer_attributes *a = ret_attributes;
    *a = (pointer_attributes){.device = -2, .host_pointer = (void *)(uintptr_t)at};
    if (oos_range_find(at, &range) && range.kind != OOS_RANGE_RESERVED) {
        a->type = range.kind == OOS_RANGE_HOST ? 1 : range.kind == OOS_RANGE_MANAGED ? 3 : 2;
        a->device = (int)(range.kind == OOS_RANGE_HOST ? here() : range.device);
        a->device_pointer = (void *)(uintptr_t)at;
        if (a->type == 2) a->host_pointer = NULL;
    } else if (oos_memory_registered(at)) {
        a->type = 1;
        a->device = (int)here();
        a->device_pointer = (void *)(uintptr_t)at;
    }
    return 0;
}

TAKE(int, cudaMemcpy, void *to, const void *from, size_t bytes, int kind)
{
    return told(oos_copy(to, from, bytes));
}

TAKE(int, cudaMemcpyAsync, void *to, const void *from, size_t bytes, int kind, void *stream)
{
    oos_stream_launch(stream);
    return told(oos_copy(to, from, bytes));
}

TAKE(int, cudaMemcpyPeer, void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    return told(oos_copy(to, from, bytes));
}

TAKE(int, cudaMemcpyPeerAsync, void *to, int to_device, const void *from, int from_device, size_t bytes,
     void *stream)
{
    oos_stream_launch(stream);
    return told(oos_copy(to, from, bytes));
}

TAKE(int, cudaMemcpy2D, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
     size_t height, int kind)
{
    return told(oos_copy_2d(to, to_pitch, from, from_pitch, width, height));
}

TAKE(int, cudaMemcpy2DAsync, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
     size_t height, int kind, void *stream)
{
    oos_stream_launch(stream);
    return told(oos_copy_2d(to, to_pitch, from, from_pitch, width, height));
}

TAKE(int, cudaMemcpyBatchAsync, void *const *to, const void *const *from, const size_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int const code = oos_copy(to[i], from[i], bytes[i]);
        if (code) return told(code);
    }
    return 0;
}

TAKE(int, cudaMemset, void *at, int value, size_t bytes)
{
    return told(oos_fill(at, (unsigned)value & 0xff, 1, bytes));
}

TAKE(int, cudaMemsetAsync, void *at, int value, size_t bytes, void *stream)
{
    oos_stream_launch(stream);
    return told(oos_fill(at, (unsigned)value & 0xff, 1, bytes));
}

/* Pools: torch's cudaMallocAsync backend asks for one and sets its threshold; what it holds is charged per call. */
static char pools[OOS_SEGMENT_DEVICES];

TAKE(int, cudaDeviceGetDefaultMemPool, void **ret_pool, int device)
{
    if (device < 0 || (unsigned)device >= oos_device_count()) return told(OOS_CODE_INVALID_DEVICE);
    *ret_pool = &pools[device];
    return 0;
}

TAKE(int, cudaDeviceGetMemPool, void **ret_pool, int device)
{
    return take_cudaDeviceGetDefaultMemPool(ret_pool, device);
}

TAKE(int, cudaMemPoolCreate, void **ret_pool, const void *properties)
{
    return told(oos_handle_new(ret_pool));
}

TAKE(int, cudaMemPoolGetAttribute, void *pool, int attribute, uint64_t *ret_value)
{
    *ret_value = 0;
    return 0;
}

/* A peer's memory costs address space only: the bytes are the exporter's. */
typedef struct ipc_handle {
    uint64_t pid, at, bytes;
    char reserved[40];
} ipc_handle;
_Static_assert(sizeof(ipc_handle) == 64, "layout of the vendor");

TAKE(int, cudaIpcGetMemHandle, ipc_handle *ret_handle, void *at)
{
    oos_range range;
    if (!oos_range_find(at, &range)) return told(OOS_CODE_INVALID_VALUE);
    *ret_handle = (ipc_handle){.pid = (uint64_t)getpid(), .at = (uint64_t)(uintptr_t)at, .bytes = range.size};
    return 0;
}

TAKE(int, cudaIpcOpenMemHandle, void **ret_at, ipc_handle handle, unsigned flags)
{
    if (!handle.bytes) return told(OOS_CODE_INVALID_VALUE);
    return told(oos_memory_uncharged(here(), handle.bytes, ret_at));
}

TAKE(int, cudaIpcCloseMemHandle, void *at)
{
    return told(oos_memory_give(at));
}

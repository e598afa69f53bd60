/* Memory of the driver API: plain, asynchronous, managed, pinned, and virtual memory management. */
#include "phantom/phantom.h"

void *oos_context_of(unsigned device);

static unsigned here(void)
{
    return oos_device_current();
}

TAKE(int, cuMemAlloc_v2, void **ret_at, size_t bytes)
{
    if (!ret_at || !bytes) return OOS_CODE_INVALID_VALUE;
    return oos_memory_take(here(), OOS_USE_MALLOC, bytes, ret_at);
}

TAKE(int, cuMemFree_v2, void *at)
{
    return oos_memory_give(at);
}

TAKE(int, cuMemAllocAsync, void **ret_at, size_t bytes, void *stream)
{
    return oos_memory_take(here(), OOS_USE_POOL, bytes, ret_at);
}

TAKE(int, cuMemFreeAsync, void *at, void *stream)
{
    return oos_memory_give(at);
}

TAKE(int, cuMemAllocManaged, void **ret_at, size_t bytes, unsigned flags)
{
    return oos_memory_take(here(), OOS_USE_MANAGED, bytes, ret_at);
}

TAKE(int, cuMemAllocHost_v2, void **ret_at, size_t bytes)
{
    return oos_memory_host(bytes, ret_at);
}

TAKE(int, cuMemHostAlloc, void **ret_at, size_t bytes, unsigned flags)
{
    return oos_memory_host(bytes, ret_at);
}

TAKE(int, cuMemFreeHost, void *at)
{
    return oos_memory_give(at);
}

TAKE(int, cuMemHostRegister_v2, void *at, size_t bytes, unsigned flags)
{
    return oos_memory_register(at, bytes);
}

TAKE(int, cuMemHostUnregister, void *at)
{
    return oos_memory_unregister(at);
}

TAKE(int, cuMemHostGetDevicePointer_v2, void **ret_at, void *host, unsigned flags)
{
    *ret_at = host;
    return 0;
}

TAKE(int, cuMemGetInfo_v2, size_t *ret_free, size_t *ret_total)
{
    int const code = oos_device_context(here());
    if (code) return code;
    uint64_t free_bytes, total_bytes;
    oos_device_free_bytes(oos_device_physical(here()), &free_bytes, &total_bytes);
    *ret_free = free_bytes;
    *ret_total = total_bytes;
    return 0;
}

TAKE(int, cuMemGetAddressRange_v2, uint64_t *ret_base, size_t *ret_bytes, const void *at)
{
    oos_range range;
    if (!oos_range_find(at, &range)) return OOS_CODE_NOT_FOUND;
    if (ret_base) *ret_base = range.base;
    if (ret_bytes) *ret_bytes = range.size;
    return 0;
}

typedef struct allocation_prop {
    int type, handle_types;
    int location_type, location_id; /* type 1: device */
    void *rest[2];
} allocation_prop;
_Static_assert(sizeof(allocation_prop) == 32, "layout of the vendor");

TAKE(int, cuMemGetAllocationGranularity, size_t *ret_bytes, const allocation_prop *prop, int which)
{
    *ret_bytes = (size_t)2 << 20;
    return 0;
}

TAKE(int, cuMemCreate, oos_handle **ret_handle, size_t bytes, const allocation_prop *prop,
     unsigned long long flags)
{
    if (!prop) return OOS_CODE_INVALID_VALUE;
    if (prop->location_type == 1 &&
        (prop->location_id < 0 || (unsigned)prop->location_id >= oos_device_count()))
        return OOS_CODE_INVALID_DEVICE;
    return oos_vmm_create(prop->location_type == 1 ? prop->location_id : -1, bytes, ret_handle);
}

TAKE(int, cuMemRelease, oos_handle *handle)
{
    return oos_vmm_release(handle);
}

TAKE(int, cuMemAddressReserve, void **ret_at, size_t bytes, size_t alignment, void *wish,
     unsigned long long flags)
{
    return oos_vmm_reserve(bytes, ret_at);
}

TAKE(int, cuMemAddressFree, void *at, size_t bytes)
{
    return oos_vmm_unreserve(at, bytes);
}

TAKE(int, cuMemMap, void *at, size_t bytes, size_t offset, oos_handle *handle, unsigned long long flags)
{
    return oos_vmm_map(at, bytes, handle);
}

TAKE(int, cuMemUnmap, void *at, size_t bytes)
{
    return oos_vmm_unmap(at, bytes);
}

TAKE(int, cuMemRetainAllocationHandle, oos_handle **ret_handle, void *at)
{
    return oos_vmm_retain(at, ret_handle);
}

TAKE(int, cuMemGetAllocationPropertiesFromHandle, allocation_prop *ret_prop, oos_handle *handle)
{
    *ret_prop = (allocation_prop){.type = 1, .location_type = 1, .location_id = oos_vmm_device(handle)};
    return 0;
}

/* Numbers of CUpointer_attribute. */
TAKE(int, cuPointerGetAttribute, void *ret_value, int attribute, const void *at)
{
    oos_range range;
    bool const found = oos_range_find(at, &range) && range.kind != OOS_RANGE_RESERVED;
    bool const host = found ? range.kind == OOS_RANGE_HOST : oos_memory_registered(at);
    if (!found && !host) return OOS_CODE_INVALID_VALUE;
    unsigned const device = found && !host ? range.device : here();
    uint64_t const base = found ? range.base : (uint64_t)(uintptr_t)at;
    switch (attribute) {
    case 1: *(void **)ret_value = oos_context_of(device); break;
    case 2: *(unsigned *)ret_value = host ? 1 : 2; break;
    case 3:
    case 4: *(const void **)ret_value = at; break;
    case 7: *(unsigned long long *)ret_value = base; break; /* buffer id */
    case 8: *(unsigned *)ret_value = found && range.kind == OOS_RANGE_MANAGED; break;
    case 9: *(int *)ret_value = (int)device; break;
    case 11: *(uint64_t *)ret_value = base; break;
    case 12: *(size_t *)ret_value = found ? range.size : 0; break;
    case 13: *(unsigned *)ret_value = 1; break; /* mapped */
    default: *(unsigned *)ret_value = 0;
    }
    return 0;
}

TAKE(int, cuPointerGetAttributes, unsigned count, const int *attributes, void **ret_values, const void *at)
{
    for (unsigned i = 0; i < count; i++)
        if (take_cuPointerGetAttribute(ret_values[i], attributes[i], at)) *(unsigned *)ret_values[i] = 0;
    return 0;
}

TAKE(int, cuMemcpyHtoD_v2, void *to, const void *from, size_t bytes)
{
    return oos_copy(to, from, bytes);
}

TAKE(int, cuMemcpyDtoH_v2, void *to, const void *from, size_t bytes)
{
    return oos_copy(to, from, bytes);
}

TAKE(int, cuMemcpyDtoD_v2, void *to, const void *from, size_t bytes)
{
    return oos_copy(to, from, bytes);
}

TAKE(int, cuMemcpy, void *to, const void *from, size_t bytes)
{
    return oos_copy(to, from, bytes);
}

TAKE(int, cuMemcpyHtoDAsync_v2, void *to, const void *from, size_t bytes, void *stream)
{
    oos_stream_launch(stream);
    return oos_copy(to, from, bytes);
}

TAKE(int, cuMemcpyDtoHAsync_v2, void *to, const void *from, size_t bytes, void *stream)
{
    oos_stream_launch(stream);
    return oos_copy(to, from, bytes);
}

TAKE(int, cuMemcpyDtoDAsync_v2, void *to, const void *from, size_t bytes, void *stream)
{
    oos_stream_launch(stream);
    return oos_copy(to, from, bytes);
}

TAKE(int, cuMemcpyAsync, void *to, const void *from, size_t bytes, void *stream)
{
    oos_stream_launch(stream);
    return oos_copy(to, from, bytes);
}

TAKE(int, cuMemsetD8_v2, void *at, unsigned char value, size_t count)
{
    return oos_fill(at, value, 1, count);
}

TAKE(int, cuMemsetD8Async, void *at, unsigned char value, size_t count, void *stream)
{
    oos_stream_launch(stream);
    return oos_fill(at, value, 1, count);
}

TAKE(int, cuMemsetD32_v2, void *at, unsigned value, size_t count)
{
    return oos_fill(at, value, 4, count);
}

TAKE(int, cuMemsetD32Async, void *at, unsigned value, size_t count, void *stream)
{
    oos_stream_launch(stream);
    return oos_fill(at, value, 4, count);
}

static char pools[OOS_SEGMENT_DEVICES];

TAKE(int, cuDeviceGetDefaultMemPool, void **ret_pool, int device)
{
    if (device < 0 || (unsigned)device >= oos_device_count()) return OOS_CODE_INVALID_DEVICE;
    *ret_pool = &pools[device];
    return 0;
}

TAKE(int, cuDeviceGetMemPool, void **ret_pool, int device)
{
    return take_cuDeviceGetDefaultMemPool(ret_pool, device);
}

TAKE(int, cuMemPoolGetAttribute, void *pool, int attribute, uint64_t *ret_value)
{
    *ret_value = 0;
    return 0;
}

TAKE(int, cuMulticastGetGranularity, size_t *ret_bytes, const void *prop, int which)
{
    *ret_bytes = (size_t)2 << 20;
    return 0;
}

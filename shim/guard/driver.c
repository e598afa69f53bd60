/* Forwarders of the CUDA driver. Statically linked runtimes come here, by dlsym() and cuGetProcAddress(). */
#include "guard/forward.h"

OOS_GUARD_CALL int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total);
OOS_GUARD_CALL int cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
    bool const first = oos_guard_enter();
    int const code = NEXT(cuMemGetInfo_v2)(ret_free, ret_total);
    if (first && code == 0 && ret_free && ret_total) view(OOS_GUARD_BY_DRIVER, ret_free, ret_total);
    if (first) oos_guard_leave();
    return code;
}

OOS_GUARD_CALL int cuDeviceTotalMem_v2(size_t *ret_bytes, int ordinal);
OOS_GUARD_CALL int cuDeviceTotalMem_v2(size_t *ret_bytes, int ordinal)
{
    bool const first = oos_guard_enter();
    int const code = NEXT(cuDeviceTotalMem_v2)(ret_bytes, ordinal);
    if (first && code == 0 && ret_bytes)
        *ret_bytes = oos_guard_total(oos_guard_device(OOS_GUARD_BY_DRIVER, ordinal), *ret_bytes);
    if (first) oos_guard_leave();
    return code;
}

FORWARD_TAKE(cuMemAlloc_v2, DRIVER, MALLOC, bytes, (void **ret_at, size_t bytes), (ret_at, bytes))
FORWARD_TAKE(cuMemAllocPitch_v2, DRIVER, MALLOC, pitched(width, height),
             (void **ret_at, size_t *ret_pitch, size_t width, size_t height, unsigned element),
             (ret_at, ret_pitch, width, height, element))
FORWARD_TAKE(cuMemAllocManaged, DRIVER, MANAGED, bytes, (void **ret_at, size_t bytes, unsigned flags),
             (ret_at, bytes, flags))
FORWARD_TAKE(cuMemAllocAsync, DRIVER, POOL, bytes, (void **ret_at, size_t bytes, void *stream),
             (ret_at, bytes, stream))
FORWARD_TAKE(cuMemAllocAsync_ptsz, DRIVER, POOL, bytes, (void **ret_at, size_t bytes, void *stream),
             (ret_at, bytes, stream))
FORWARD_TAKE(cuMemAllocFromPoolAsync, DRIVER, POOL, bytes,
             (void **ret_at, size_t bytes, void *pool, void *stream), (ret_at, bytes, pool, stream))
FORWARD_TAKE(cuMemAllocFromPoolAsync_ptsz, DRIVER, POOL, bytes,
             (void **ret_at, size_t bytes, void *pool, void *stream), (ret_at, bytes, pool, stream))
FORWARD_GIVE(cuMemFree_v2, (void *at), (at))
FORWARD_GIVE(cuMemFreeAsync, (void *at, void *stream), (at, stream))
FORWARD_GIVE(cuMemFreeAsync_ptsz, (void *at, void *stream), (at, stream))
FORWARD_PIN(cuMemAllocHost_v2, (void **ret_at, size_t bytes), (ret_at, bytes), *ret_at)
FORWARD_PIN(cuMemHostAlloc, (void **ret_at, size_t bytes, unsigned flags), (ret_at, bytes, flags), *ret_at)
FORWARD_PIN(cuMemHostRegister_v2, (void *at, size_t bytes, unsigned flags), (at, bytes, flags), at)
FORWARD_UNPIN(cuMemFreeHost)
FORWARD_UNPIN(cuMemHostUnregister)

/* ---- Arrays ---- */

typedef struct array_shape {
    size_t width, height;
    unsigned format, channels;
} array_shape;
typedef struct array3d_shape {
    size_t width, height, depth;
    unsigned format, channels, flags;
} array3d_shape;
enum { LAYERED = 0x01, SPARSE = 0x40, DEFERRED = 0x80 }; /* the last two have no memory of their own */

/* Of the plain formats; a compressed or video format is counted as a byte for each element. */
static uint64_t element_bytes(unsigned format, unsigned channels)
{
    uint64_t const each = format == 0x02 || format == 0x09 || format == 0x10   ? 2
                          : format == 0x03 || format == 0x0a || format == 0x20 ? 4
                                                                               : 1;
    return each * (channels && channels <= 4 ? channels : 1);
}

static uint64_t array_bytes(const array_shape *s)
{
    return s ? box_bytes(element_bytes(s->format, s->channels), s->width, s->height, 0) : 0;
}

static uint64_t array3d_bytes(const array3d_shape *s, unsigned levels)
{
    if (!s || s->flags & (SPARSE | DEFERRED)) return 0;
    return levels_bytes(element_bytes(s->format, s->channels), s->width, s->height, s->depth, levels,
                        s->flags & LAYERED);
}

FORWARD_TAKE(cuArrayCreate_v2, DRIVER, MALLOC, array_bytes(shape), (void **ret_at, const array_shape *shape),
             (ret_at, shape))
FORWARD_TAKE(cuArray3DCreate_v2, DRIVER, MALLOC, array3d_bytes(shape, 1),
             (void **ret_at, const array3d_shape *shape), (ret_at, shape))
FORWARD_TAKE(cuMipmappedArrayCreate, DRIVER, MALLOC, array3d_bytes(shape, levels),
             (void **ret_at, const array3d_shape *shape, unsigned levels), (ret_at, shape, levels))
FORWARD_GIVE(cuArrayDestroy, (void *at), (at))
FORWARD_GIVE(cuMipmappedArrayDestroy, (void *at), (at))

/* ---- Memory without an address: it is free again when nobody refers to the handle and no range shows it. ---- */

/* CUmemAllocationProp: type, handle types, then where it shall lie. */
typedef struct allocation_prop {
    int type, handle_types, location_type, location_id;
} allocation_prop;
enum { ON_A_DEVICE = 1 };

OOS_GUARD_CALL int cuMemCreate(uint64_t *ret_handle, size_t bytes, const allocation_prop *prop,
                               unsigned long long flags);
OOS_GUARD_CALL int cuMemCreate(uint64_t *ret_handle, size_t bytes, const allocation_prop *prop,
                               unsigned long long flags)
{
    if (!oos_guard_enter()) return NEXT(cuMemCreate)(ret_handle, bytes, prop, flags);
    oos_guard_charge charge = {0};
    int code = OOS_GUARD_OUT_OF_MEMORY;
    bool const on_device = prop && prop->location_type == ON_A_DEVICE;
    int const device = on_device ? oos_guard_device(OOS_GUARD_BY_DRIVER, prop->location_id) : -1;
    if (oos_guard_take(OOS_GUARD_BY_DRIVER, device, OOS_USE_VMM, charged_bytes(bytes), &charge)) {
        code = NEXT(cuMemCreate)(ret_handle, bytes, prop, flags);
        if (on_device) device_check(device, code);
        if (code == 0) oos_guard_granted(&charge);
        oos_guard_block const block = {
            .key = code == 0 ? *ret_handle : 0, .charge = charge, .kind = OOS_GUARD_HANDLE, .holders = 1};
        if (code != 0 || !charge.bytes || !oos_guard_block_put(&block))
            oos_guard_return(&charge);
        else
            oos_guard_event(OOMSIGHT_TRACE_MALLOC, &charge, *ret_handle);
    }
    oos_guard_leave();
    return code;
}

static void handle_drop(uint64_t handle)
{
    oos_guard_block gone;
    bool is_last;
    if (!oos_guard_handle_drop(handle, &gone, &is_last) || !is_last) return;
    oos_guard_event(OOMSIGHT_TRACE_FREE, &gone.charge, handle);
    oos_guard_return(&gone.charge);
}

OOS_GUARD_CALL int cuMemRelease(uint64_t handle);
OOS_GUARD_CALL int cuMemRelease(uint64_t handle)
{
    if (!oos_guard_enter()) return NEXT(cuMemRelease)(handle);
    int const code = NEXT(cuMemRelease)(handle);
    if (code == 0) handle_drop(handle);
    oos_guard_leave();
    return code;
}

OOS_GUARD_CALL int cuMemRetainAllocationHandle(uint64_t *ret_handle, void *at);
OOS_GUARD_CALL int cuMemRetainAllocationHandle(uint64_t *ret_handle, void *at)
{
    if (!oos_guard_enter()) return NEXT(cuMemRetainAllocationHandle)(ret_handle, at);
    int const code = NEXT(cuMemRetainAllocationHandle)(ret_handle, at);
    if (code == 0) oos_guard_handle_hold(*ret_handle);
    oos_guard_leave();
    return code;
}

OOS_GUARD_CALL int cuMemMap(uint64_t at, size_t bytes, size_t offset, uint64_t handle,
                            unsigned long long flags);
OOS_GUARD_CALL int cuMemMap(uint64_t at, size_t bytes, size_t offset, uint64_t handle,
                            unsigned long long flags)
{
    if (!oos_guard_enter()) return NEXT(cuMemMap)(at, bytes, offset, handle, flags);
    int const code = NEXT(cuMemMap)(at, bytes, offset, handle, flags);
    oos_guard_block const block = {.key = at, .handle = handle, .bytes = bytes, .kind = OOS_GUARD_MAPPED};
    if (code == 0 && oos_guard_handle_hold(handle) && !oos_guard_block_put(&block)) handle_drop(handle);
    oos_guard_leave();
    return code;
}

OOS_GUARD_CALL int cuMemUnmap(uint64_t at, size_t bytes);
OOS_GUARD_CALL int cuMemUnmap(uint64_t at, size_t bytes)
{
    if (!oos_guard_enter()) return NEXT(cuMemUnmap)(at, bytes);
    int const code = NEXT(cuMemUnmap)(at, bytes);
    oos_guard_block mapped;
    while (code == 0 && oos_guard_mapped_pop(at, bytes, &mapped)) handle_drop(mapped.handle);
    oos_guard_leave();
    return code;
}

/* ---- Functions by name ---- */

enum { PER_THREAD_STREAM = 2 };

OOS_GUARD_CALL int cuGetProcAddress_v2(const char *name, void **ret_at, int version, uint64_t flags,
                                       int *ret_result);
OOS_GUARD_CALL int cuGetProcAddress_v2(const char *name, void **ret_at, int version, uint64_t flags,
                                       int *ret_result)
{
    int const code = NEXT(cuGetProcAddress_v2)(name, ret_at, version, flags, ret_result);
    if (code == 0) oos_guard_put_forwarder(name, (unsigned)version, flags & PER_THREAD_STREAM, ret_at);
    return code;
}

OOS_GUARD_CALL int cuGetProcAddress(const char *name, void **ret_at, int version, uint64_t flags);
OOS_GUARD_CALL int cuGetProcAddress(const char *name, void **ret_at, int version, uint64_t flags)
{
    int const code = NEXT(cuGetProcAddress)(name, ret_at, version, flags);
    if (code == 0) oos_guard_put_forwarder(name, (unsigned)version, flags & PER_THREAD_STREAM, ret_at);
    return code;
}

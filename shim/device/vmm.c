/* Virtual memory management: handles that hold bytes, addresses that hold none, and maps between the two. A map keeps
 * its handle alive after cuMemRelease, as the driver does. */
#include "device/internal.h"

#include <stdlib.h>

struct oos_handle {
    uint64_t bytes;
    oos_charge charge;
    int device; /* as CUDA counts; -1: host */
    unsigned references;
};

int oos_vmm_create(int index, uint64_t bytes, oos_handle **ret_handle)
{
    if (!bytes || bytes % OOS_GRANULE) return OOS_CODE_INVALID_VALUE;
    oos_charge charge = {0, 0, 0, 0};
    if (index >= 0) {
        int code = oos_device_context((unsigned)index);
        if (code == OOS_CODE_OK) code = oos_charge_take((unsigned)index, OOS_USE_VMM, bytes, &charge);
        if (code != OOS_CODE_OK) return code;
    }
    oos_handle *handle = calloc(1, sizeof *handle);
    if (!handle) {
        oos_charge_return(&charge);
        return OOS_CODE_OUT_OF_MEMORY;
    }
    *handle = (oos_handle){bytes, charge, index, 1};
    oos_trace(OOS_TRACE_TAKE, &charge, (uint64_t)(uintptr_t)handle);
    *ret_handle = handle;
    return OOS_CODE_OK;
}

int oos_vmm_release(oos_handle *handle)
{
    if (!handle) return OOS_CODE_INVALID_VALUE;
    if (__atomic_sub_fetch(&handle->references, 1, __ATOMIC_ACQ_REL)) return OOS_CODE_OK;
    oos_trace(OOS_TRACE_GIVE, &handle->charge, (uint64_t)(uintptr_t)handle);
    oos_charge_return(&handle->charge);
    free(handle);
    return OOS_CODE_OK;
}

int oos_vmm_retain(const void *at, oos_handle **ret_handle)
{
    oos_range range;
    if (!oos_range_find(at, &range) || range.kind != OOS_RANGE_MAPPED) return OOS_CODE_INVALID_VALUE;
    oos_handle *handle = range.handle;
    __atomic_add_fetch(&handle->references, 1, __ATOMIC_RELAXED);
    *ret_handle = handle;
    return OOS_CODE_OK;
}

int oos_vmm_device(const oos_handle *handle)
{
    return handle->device;
}

int oos_vmm_reserve(uint64_t bytes, void **ret_at)
{
    if (!bytes || bytes % OOS_GRANULE) return OOS_CODE_INVALID_VALUE;
    oos_arena_lock();
    oos_range *range = oos_arena_take(bytes, OOS_RANGE_RESERVED);
    oos_arena_unlock();
    if (!range) return OOS_CODE_OUT_OF_MEMORY;
    *ret_at = (void *)(uintptr_t)range->base;
    return OOS_CODE_OK;
}

int oos_vmm_unreserve(void *at, uint64_t bytes)
{
    int code = OOS_CODE_INVALID_VALUE;
    oos_arena_lock();
    oos_range *range = oos_arena_at(at);
    if (range && range->kind == OOS_RANGE_RESERVED && range->base == (uint64_t)(uintptr_t)at &&
        range->size == bytes) {
        oos_arena_give(range);
        code = OOS_CODE_OK;
    }
    oos_arena_unlock();
    return code;
}

int oos_vmm_map(void *at, uint64_t bytes, oos_handle *handle)
{
    if (!handle || bytes > handle->bytes) return OOS_CODE_INVALID_VALUE;
    oos_arena_lock();
    oos_range *under = oos_arena_at(at);
    oos_range *range = under ? oos_arena_overlay(under, at, bytes) : NULL;
    if (range) {
        range->handle = handle;
        range->device = handle->device < 0 ? 0 : (uint32_t)handle->device;
        __atomic_add_fetch(&handle->references, 1, __ATOMIC_RELAXED);
    }
    oos_arena_unlock();
    return range ? OOS_CODE_OK : OOS_CODE_INVALID_VALUE;
}

int oos_vmm_unmap(void *at, uint64_t bytes)
{
    uint64_t done = 0;
    while (done < bytes) {
        oos_handle *handle = NULL;
        oos_arena_lock();
        oos_range *range = oos_arena_at((char *)at + done);
        if (range && range->kind == OOS_RANGE_MAPPED && range->base == (uint64_t)(uintptr_t)at + done) {
            handle = range->handle;
            done += range->size;
            oos_arena_uncover(range);
        }
        oos_arena_unlock();
        if (!handle) return OOS_CODE_INVALID_VALUE;
        oos_vmm_release(handle);
    }
    return OOS_CODE_OK;
}

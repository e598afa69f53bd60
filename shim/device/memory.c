/* What the allocation calls of every API come down to: charge the bytes, find an address, and both back again. */
#include "device/internal.h"

#include <string.h>

enum {
    SMALL_BYTES = 1 << 20
}; /* below, allocations share a granule (inferred from cudaMemGetInfo of real devices) */

/* Registered host memory is the caller's own: only its extent is remembered. */
enum { REGISTERED = 4096 };
static struct {
    const char *at;
    uint64_t bytes;
} registered[REGISTERED];

static int take_small(unsigned index, oos_use use, uint64_t bytes, void **ret_at)
{
    oos_arena_lock();
    oos_range *slab = oos_slab_with_room(index, use, bytes);
    int code = OOS_CODE_OK;
    if (!slab) {
        oos_charge charge;
        code = oos_charge_take(index, use, OOS_GRANULE, &charge);
        if (code == OOS_CODE_OK) {
            slab = oos_slab_create(index);
            if (slab)
                slab->charge = charge;
            else
                oos_charge_return(&charge);
        }
    }
    *ret_at = slab ? oos_slab_take(slab, bytes) : NULL;
    oos_arena_unlock();
    if (slab || code != OOS_CODE_OK) return code;
    oos_failure_note(oos_device_physical(index), use, bytes, 0, true);
    return OOS_CODE_OUT_OF_MEMORY;
}

int oos_memory_take(unsigned index, oos_use use, uint64_t bytes, void **ret_at)
{
    int code = oos_device_context(index);
    if (code != OOS_CODE_OK) return code;
    if (bytes == 0) {
        *ret_at = NULL;
        return OOS_CODE_OK;
    }
    if (bytes > (uint64_t)1 << 48) return OOS_CODE_OUT_OF_MEMORY;
    void *at;
    oos_charge charge = {bytes, oos_device_physical(index), 0, use};
    if (bytes < SMALL_BYTES) {
        code = take_small(index, use, bytes, &at);
        if (code != OOS_CODE_OK) return code;
    } else {
        uint64_t const whole = (bytes + OOS_GRANULE - 1) / OOS_GRANULE * OOS_GRANULE;
        code = oos_charge_take(index, use, whole, &charge);
        if (code != OOS_CODE_OK) return code;
        oos_arena_lock();
        oos_range *range =
            oos_arena_take(bytes, use == OOS_USE_MANAGED ? OOS_RANGE_MANAGED : OOS_RANGE_DEVICE);
        if (range) {
            range->device = index;
            range->charge = charge;
        }
        oos_arena_unlock();
        if (!range) {
            oos_charge_return(&charge);
            oos_failure_note(oos_device_physical(index), use, bytes, 0, true);
            return OOS_CODE_OUT_OF_MEMORY;
        }
        at = (void *)(uintptr_t)range->base;
        if (use == OOS_USE_MANAGED) oos_range_touch(at);
    }
    oos_trace(OOS_TRACE_TAKE, &charge, (uint64_t)(uintptr_t)at);
    *ret_at = at;
    return OOS_CODE_OK;
}

static int give_piece(oos_range *slab, const void *at, oos_charge *ret_charge)
{
    bool empty;
    if (!oos_slab_give(slab, at, &empty)) return OOS_CODE_INVALID_VALUE;
    if (empty) {
        *ret_charge = slab->charge;
        oos_arena_give(slab);
    }
    return OOS_CODE_OK;
}

int oos_memory_give(void *at)
{
    if (!at) return OOS_CODE_OK;
    oos_charge charge = {0, 0, 0, 0};
    int code = OOS_CODE_OK;
    oos_arena_lock();
    oos_range *range = oos_arena_at(at);
    if (!range)
        code = OOS_CODE_INVALID_VALUE;
    else if (range->kind == OOS_RANGE_SLAB)
        code = give_piece(range, at, &charge);
    else if (range->base != (uint64_t)(uintptr_t)at || range->kind == OOS_RANGE_RESERVED ||
             range->kind == OOS_RANGE_MAPPED)
        code = OOS_CODE_INVALID_VALUE;
    else {
        charge = range->charge;
        if (range->kind == OOS_RANGE_HOST) oos_pinned_add(-(int64_t)range->size);
        oos_arena_give(range);
    }
    oos_arena_unlock();
    if (code != OOS_CODE_OK) return code;
    oos_trace(OOS_TRACE_GIVE, &charge, (uint64_t)(uintptr_t)at);
    oos_charge_return(&charge);
    return OOS_CODE_OK;
}

int oos_memory_host(uint64_t bytes, void **ret_at)
{
    if (bytes == 0) {
        *ret_at = NULL;
        return OOS_CODE_OK;
    }
    oos_charge charge = {0, 0, 0, 0};
    if (!oos_run()) return OOS_CODE_NO_DEVICE;
    unsigned const index = oos_device_current();
    if (oos_device_spec_of(index)->unified) { /* the same memory under another name */
        int const code = oos_charge_take(index, OOS_USE_PINNED, bytes, &charge);
        if (code != OOS_CODE_OK) return code;
    }
    oos_arena_lock();
    oos_range *range = oos_arena_take(bytes, OOS_RANGE_HOST);
    if (range) range->charge = charge;
    oos_arena_unlock();
    if (!range) {
        oos_charge_return(&charge);
        oos_failure_note(oos_device_physical(index), OOS_USE_PINNED, bytes, 0, true);
        return OOS_CODE_OUT_OF_MEMORY;
    }
    *ret_at = (void *)(uintptr_t)range->base;
    oos_range_touch(*ret_at);
    oos_pinned_add((int64_t)bytes);
    return OOS_CODE_OK;
}

int oos_memory_uncharged(unsigned index, uint64_t bytes, void **ret_at)
{
    oos_arena_lock();
    oos_range *range = oos_arena_take(bytes ? bytes : 1, OOS_RANGE_DEVICE);
    if (range) range->device = index;
    oos_arena_unlock();
    if (!range) return OOS_CODE_OUT_OF_MEMORY;
    *ret_at = (void *)(uintptr_t)range->base;
    return OOS_CODE_OK;
}

int oos_memory_register(void *at, uint64_t bytes)
{
    int code = OOS_CODE_OUT_OF_MEMORY;
    oos_arena_lock();
    for (unsigned i = 0; i < REGISTERED; i++)
        if (!registered[i].at) {
            registered[i].at = at;
            registered[i].bytes = bytes;
            code = OOS_CODE_OK;
            break;
        }
    oos_arena_unlock();
    if (code == OOS_CODE_OK) oos_pinned_add((int64_t)bytes);
    return code;
}

int oos_memory_unregister(void *at)
{
    uint64_t bytes = 0;
    oos_arena_lock();
    for (unsigned i = 0; i < REGISTERED; i++)
        if (registered[i].at == at) {
            bytes = registered[i].bytes;
            registered[i].at = NULL;
            break;
        }
    oos_arena_unlock();
    oos_pinned_add(-(int64_t)bytes);
    return bytes ? OOS_CODE_OK : OOS_CODE_INVALID_VALUE;
}

bool oos_memory_registered(const void *at)
{
    bool found = false;
    oos_arena_lock();
    for (unsigned i = 0; i < REGISTERED && !found; i++)
        found = registered[i].at && (const char *)at >= registered[i].at &&
                (uint64_t)((const char *)at - registered[i].at) < registered[i].bytes;
    oos_arena_unlock();
    return found;
}

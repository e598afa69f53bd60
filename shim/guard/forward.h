/* The shapes of forwarders: take, give, pin, unpin. */
#pragma once
#include "guard/guard.h"

#include <string.h>

/* The driver's granule: larger allocations are whole granules, smaller ones share them. */
static inline uint64_t charged_bytes(uint64_t bytes)
{
    uint64_t const unit = bytes >= (uint64_t)1 << 20 ? (uint64_t)2 << 20 : 512;
    return bytes > UINT64_MAX - unit ? bytes : (bytes + unit - 1) / unit * unit;
}

/* Bytes of so many elements in three directions; a direction that is not used is 0. UINT64_MAX: more than there can be. */
static inline uint64_t box_bytes(uint64_t element, uint64_t width, uint64_t height, uint64_t depth)
{
    uint64_t bytes = element;
    uint64_t const sides[] = {width, height ? height : 1, depth ? depth : 1};
    for (int i = 0; i < 3; i++)
        if (__builtin_mul_overflow(bytes, sides[i], &bytes)) return UINT64_MAX;
    return bytes;
}

/* The same with every smaller level of detail; layers stay as many. */
static inline uint64_t levels_bytes(uint64_t element, uint64_t width, uint64_t height, uint64_t depth,
                                    unsigned levels, bool layered)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < levels && i < 64; i++) {
        uint64_t const one = box_bytes(element, width ? width : 1, height, depth);
        if (__builtin_add_overflow(all, one, &all)) return UINT64_MAX;
        width /= 2;
        height /= 2;
        depth = layered ? depth : depth / 2;
    }
    return all;
}

static inline uint64_t pitched(size_t width, size_t height)
{
    uint64_t bytes;
    uint64_t const pitch = ((uint64_t)width / 512 + (width % 512 != 0)) * 512;
    return __builtin_mul_overflow(pitch, height, &bytes) ? UINT64_MAX : bytes;
}

static inline void view(oos_guard_side side, size_t *ret_free, size_t *ret_total)
{
    uint64_t free_bytes = *ret_free, total_bytes = *ret_total;
    oos_guard_view(oos_guard_device(side, -1), &free_bytes, &total_bytes);
    *ret_free = free_bytes;
    *ret_total = total_bytes;
}

/* A charge that cannot be tracked could never be returned: then it is not made. */
static inline void keep(void *at, oos_guard_charge *charge)
{
    oos_guard_granted(charge);
    oos_guard_block const block = {
        .key = (uint64_t)(uintptr_t)at, .charge = *charge, .kind = OOS_GUARD_BLOCK};
    if (charge->bytes && !oos_guard_block_put(&block))
        oos_guard_return(charge);
    else
        oos_guard_event(OOMSIGHT_TRACE_MALLOC, charge, block.key);
}

/* A call that was let through because its device is not known. */
static inline void device_check(int device, int code)
{
    if (device < 0 && code == 0) oos_guard_unseen(OOS_UNSEEN_DEVICE);
}

#define FORWARD_TAKE(name, side, use, size, parameters, arguments)                                           \
    OOS_GUARD_CALL int name parameters;                                                                      \
    OOS_GUARD_CALL int name parameters                                                                       \
    {                                                                                                        \
        if (!oos_guard_enter()) return NEXT(name) arguments;                                                 \
        oos_guard_charge charge;                                                                             \
        int const device = oos_guard_device(OOS_GUARD_BY_##side, -1);                                        \
        int code = OOS_GUARD_OUT_OF_MEMORY;                                                                  \
        if (oos_guard_take(OOS_GUARD_BY_##side, device, OOS_USE_##use, charged_bytes(size), &charge)) {      \
            code = NEXT(name) arguments;                                                                     \
            device_check(device, code);                                                                      \
            if (code == 0)                                                                                   \
                keep(*(void **)ret_at, &charge);                                                             \
            else                                                                                             \
                oos_guard_return(&charge);                                                                   \
        }                                                                                                    \
        oos_guard_leave();                                                                                   \
        return code;                                                                                         \
    }

/* Out of the table before it is given back: another thread may get the same address at once. */
#define FORWARD_GIVE(name, parameters, arguments)                                                            \
    OOS_GUARD_CALL int name parameters;                                                                      \
    OOS_GUARD_CALL int name parameters                                                                       \
    {                                                                                                        \
        if (!oos_guard_enter()) return NEXT(name) arguments;                                                 \
        oos_guard_block block;                                                                               \
        bool const known = oos_guard_block_pop(OOS_GUARD_BLOCK, (uint64_t)(uintptr_t)at, &block);            \
        if (known) oos_guard_event(OOMSIGHT_TRACE_FREE, &block.charge, block.key);                           \
        int const code = NEXT(name) arguments;                                                               \
        if (known && code == 0)                                                                              \
            oos_guard_return(&block.charge);                                                                 \
        else if (known)                                                                                      \
            keep(at, &block.charge);                                                                         \
        oos_guard_leave();                                                                                   \
        return code;                                                                                         \
    }

#define FORWARD_PIN(name, parameters, arguments, address)                                                    \
    OOS_GUARD_CALL int name parameters;                                                                      \
    OOS_GUARD_CALL int name parameters                                                                       \
    {                                                                                                        \
        if (!oos_guard_enter()) return NEXT(name) arguments;                                                 \
        int code = OOS_GUARD_OUT_OF_MEMORY;                                                                  \
        if (oos_guard_pinned_take(bytes)) {                                                                  \
            code = NEXT(name) arguments;                                                                     \
            oos_guard_block const block = {.key = code == 0 ? (uint64_t)(uintptr_t)(address) : 0,            \
                                           .charge.bytes = bytes,                                            \
                                           .kind = OOS_GUARD_PINNED};                                        \
            if (code != 0 || !oos_guard_block_put(&block)) oos_guard_pinned_return(bytes);                   \
        }                                                                                                    \
        oos_guard_leave();                                                                                   \
        return code;                                                                                         \
    }

#define FORWARD_UNPIN(name)                                                                                  \
    OOS_GUARD_CALL int name(void *at);                                                                       \
    OOS_GUARD_CALL int name(void *at)                                                                        \
    {                                                                                                        \
        if (!oos_guard_enter()) return NEXT(name)(at);                                                       \
        oos_guard_block block;                                                                               \
        bool const known = oos_guard_block_pop(OOS_GUARD_PINNED, (uint64_t)(uintptr_t)at, &block);           \
        int const code = NEXT(name)(at);                                                                     \
        if (known && code == 0)                                                                              \
            oos_guard_pinned_return(block.charge.bytes);                                                     \
        else if (known)                                                                                      \
            oos_guard_block_put(&block);                                                                     \
        oos_guard_leave();                                                                                   \
        return code;                                                                                         \
    }

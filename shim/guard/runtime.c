/* Forwarders of the CUDA runtime. */
#include "guard/guard.h"
#include "guard/forward.h"

OOS_GUARD_CALL int cudaMemGetInfo(size_t *ret_free, size_t *ret_total);
OOS_GUARD_CALL int cudaMemGetInfo(size_t *ret_free, size_t *ret_total)
{
    bool const first = oos_guard_enter();
    int const code = NEXT(cudaMemGetInfo)(ret_free, ret_total);
    if (first && code == 0 && ret_free && ret_total) view(OOS_GUARD_BY_RUNTIME, ret_free, ret_total);
    if (first) oos_guard_leave();
    return code;
}

FORWARD_TAKE(cudaMalloc, RUNTIME, MALLOC, bytes, (void **ret_at, size_t bytes), (ret_at, bytes))
FORWARD_TAKE(cudaMallocManaged, RUNTIME, MANAGED, bytes, (void **ret_at, size_t bytes, unsigned flags),
             (ret_at, bytes, flags))
FORWARD_TAKE(cudaMallocPitch, RUNTIME, MALLOC, pitched(width, height),
             (void **ret_at, size_t *ret_pitch, size_t width, size_t height),
             (ret_at, ret_pitch, width, height))
FORWARD_TAKE(cudaMallocAsync, RUNTIME, POOL, bytes, (void **ret_at, size_t bytes, void *stream),
             (ret_at, bytes, stream))
FORWARD_TAKE(cudaMallocAsync_ptsz, RUNTIME, POOL, bytes, (void **ret_at, size_t bytes, void *stream),
             (ret_at, bytes, stream))
FORWARD_TAKE(cudaMallocFromPoolAsync, RUNTIME, POOL, bytes,
             (void **ret_at, size_t bytes, void *pool, void *stream), (ret_at, bytes, pool, stream))
FORWARD_TAKE(cudaMallocFromPoolAsync_ptsz, RUNTIME, POOL, bytes,
             (void **ret_at, size_t bytes, void *pool, void *stream), (ret_at, bytes, pool, stream))
FORWARD_GIVE(cudaFree, (void *at), (at))
FORWARD_GIVE(cudaFreeAsync, (void *at, void *stream), (at, stream))
FORWARD_GIVE(cudaFreeAsync_ptsz, (void *at, void *stream), (at, stream))
FORWARD_PIN(cudaHostAlloc, (void **ret_at, size_t bytes, unsigned flags), (ret_at, bytes, flags), *ret_at)
FORWARD_PIN(cudaMallocHost, (void **ret_at, size_t bytes), (ret_at, bytes), *ret_at)
FORWARD_PIN(cudaHostRegister, (void *at, size_t bytes, unsigned flags), (at, bytes, flags), at)
FORWARD_UNPIN(cudaFreeHost)
FORWARD_UNPIN(cudaHostUnregister)

/* ---- Arrays: an opaque layout, at least as large as its elements. ---- */

typedef struct channels {
    int bits[4], kind;
} channels;
typedef struct extent {
    size_t width, height, depth;
} extent;
typedef struct pitched_pointer {
    void *at;
    size_t pitch, width, height;
} pitched_pointer;
enum { LAYERED = 0x01, SPARSE = 0x40, DEFERRED = 0x80 }; /* the last two have no memory of their own */

static uint64_t element_bytes(const channels *format, unsigned flags)
{
    uint64_t bits = 0;
    if (flags & (SPARSE | DEFERRED)) return 0;
    for (int i = 0; format && i < 4; i++)
        if (format->bits[i] > 0 && format->bits[i] <= 64) bits += (uint64_t)format->bits[i];
    return (bits + 7) / 8;
}

FORWARD_TAKE(cudaMallocArray, RUNTIME, MALLOC, box_bytes(element_bytes(format, flags), width, height, 0),
             (void **ret_at, const channels *format, size_t width, size_t height, unsigned flags),
             (ret_at, format, width, height, flags))
FORWARD_TAKE(cudaMalloc3DArray, RUNTIME, MALLOC,
             box_bytes(element_bytes(format, flags), size.width, size.height, size.depth),
             (void **ret_at, const channels *format, extent size, unsigned flags),
             (ret_at, format, size, flags))
FORWARD_TAKE(cudaMallocMipmappedArray, RUNTIME, MALLOC,
             levels_bytes(element_bytes(format, flags), size.width, size.height, size.depth, levels,
                          flags &LAYERED),
             (void **ret_at, const channels *format, extent size, unsigned levels, unsigned flags),
             (ret_at, format, size, levels, flags))
FORWARD_TAKE(cudaMalloc3D, RUNTIME, MALLOC, box_bytes(pitched(size.width, 1), 1, size.height, size.depth),
             (pitched_pointer * ret_at, extent size), (ret_at, size))
FORWARD_GIVE(cudaFreeArray, (void *at), (at))
FORWARD_GIVE(cudaFreeMipmappedArray, (void *at), (at))

/* cudaDeviceProp: name[256], uuid[16], luid[8], a mask of 4 bytes, then the total. The same in CUDA 10 to 13. */
enum { PROPERTY_TOTAL_AT = 288 };

static void properties_within(char *properties, int ordinal)
{
    size_t total;
    memcpy(&total, properties + PROPERTY_TOTAL_AT, sizeof total);
    total = oos_guard_total(oos_guard_device(OOS_GUARD_BY_RUNTIME, ordinal), total);
    memcpy(properties + PROPERTY_TOTAL_AT, &total, sizeof total);
}

#define FORWARD_PROPERTIES(name)                                                                             \
    OOS_GUARD_CALL int name(char *properties, int ordinal);                                                  \
    OOS_GUARD_CALL int name(char *properties, int ordinal)                                                   \
    {                                                                                                        \
        bool const first = oos_guard_enter();                                                                \
        int const code = NEXT(name)(properties, ordinal);                                                    \
        if (first && code == 0 && ordinal >= 0) properties_within(properties, ordinal);                      \
        if (first) oos_guard_leave();                                                                        \
        return code;                                                                                         \
    }
FORWARD_PROPERTIES(cudaGetDeviceProperties)
FORWARD_PROPERTIES(cudaGetDeviceProperties_v2)

OOS_GUARD_CALL int cudaDeviceReset(void);
OOS_GUARD_CALL int cudaDeviceReset(void)
{
    bool const first = oos_guard_enter();
    int const device = first ? oos_guard_device(OOS_GUARD_BY_RUNTIME, -1) : -1;
    int const code = NEXT(cudaDeviceReset)();
    oos_guard_block gone;
    while (code == 0 && device >= 0 && oos_guard_device_pop((uint32_t)device, &gone)) {
        oos_guard_event(OOMSIGHT_TRACE_FREE, &gone.charge, gone.key);
        oos_guard_return(&gone.charge);
    }
    if (first) oos_guard_leave();
    return code;
}

enum { PER_THREAD_STREAM = 2, ANY_VERSION = 12000 };

#define FORWARD_ENTRY(name, per_thread)                                                                      \
    OOS_GUARD_CALL int name(const char *symbol, void **ret_at, unsigned long long flags, int *ret_status);   \
    OOS_GUARD_CALL int name(const char *symbol, void **ret_at, unsigned long long flags, int *ret_status)    \
    {                                                                                                        \
        int const code = NEXT(name)(symbol, ret_at, flags, ret_status);                                      \
        if (code == 0)                                                                                       \
            oos_guard_put_forwarder(symbol, ANY_VERSION, per_thread || flags & PER_THREAD_STREAM, ret_at);   \
        return code;                                                                                         \
    }
FORWARD_ENTRY(cudaGetDriverEntryPoint, false)
FORWARD_ENTRY(cudaGetDriverEntryPoint_ptsz, true)

#define FORWARD_ENTRY_OF(name, per_thread)                                                                   \
    OOS_GUARD_CALL int name(const char *symbol, void **ret_at, unsigned version, unsigned long long flags,   \
                            int *ret_status);                                                                \
    OOS_GUARD_CALL int name(const char *symbol, void **ret_at, unsigned version, unsigned long long flags,   \
                            int *ret_status)                                                                 \
    {                                                                                                        \
        int const code = NEXT(name)(symbol, ret_at, version, flags, ret_status);                             \
        if (code == 0)                                                                                       \
            oos_guard_put_forwarder(symbol, version, per_thread || flags & PER_THREAD_STREAM, ret_at);       \
        return code;                                                                                         \
    }
FORWARD_ENTRY_OF(cudaGetDriverEntryPointByVersion, false)
FORWARD_ENTRY_OF(cudaGetDriverEntryPointByVersion_ptsz, true)

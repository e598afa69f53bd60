/* Bytes that move. Device memory can be addressed by the host, so small copies are made for real: sizes and indices
 * that a program uploads can be read back. Large ones are not, or a 110 GiB model would need 110 GiB of RAM. */
#include "device/internal.h"

#include <string.h>
#include <sys/mman.h>

enum {
    UPLOAD_BYTES = 1 << 20,    /* host to device */
    DEVICE_BYTES = 64 << 10,   /* device to device: expert repacks move megabytes at a time */
    DOWNLOAD_BYTES = 64 << 20, /* device to host */
    FILL_BYTES = 1 << 20
};

static bool on_device(const void *at)
{
    oos_range range;
    return oos_range_find(at, &range) && range.kind != OOS_RANGE_HOST && range.kind != OOS_RANGE_RESERVED;
}

int oos_copy(void *to, const void *from, uint64_t bytes)
{
    if (!bytes) return OOS_CODE_OK;
    if (!to || !from) return OOS_CODE_INVALID_VALUE;
    bool const to_device = on_device(to), from_device = on_device(from);
    uint64_t const most =
        to_device ? (from_device ? DEVICE_BYTES : UPLOAD_BYTES) : (from_device ? DOWNLOAD_BYTES : UINT64_MAX);
    if (bytes > most) return OOS_CODE_OK;
    if (to_device) oos_range_touch(to);
    memmove(to, from, bytes);
    return OOS_CODE_OK;
}

int oos_copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height)
{
    uint64_t total;
    if (__builtin_mul_overflow(width, height, &total)) return OOS_CODE_INVALID_VALUE;
    if (total > UPLOAD_BYTES) return OOS_CODE_OK;
    for (size_t row = 0; row < height; row++) {
        int const code = oos_copy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
        if (code != OOS_CODE_OK) return code;
    }
    return OOS_CODE_OK;
}

/* Zeroing much is giving pages back. */
static void zero(char *at, uint64_t bytes)
{
    uint64_t const page = 4096, base = (uint64_t)(uintptr_t)at;
    uint64_t const first = (base + page - 1) / page * page, last = (base + bytes) / page * page;
    if (last <= first) {
        memset(at, 0, bytes);
        return;
    }
    memset(at, 0, first - base);
    memset((char *)(uintptr_t)last, 0, base + bytes - last);
    madvise((void *)(uintptr_t)first, last - first, MADV_DONTNEED);
}

int oos_fill(void *at, unsigned value, unsigned value_bytes, uint64_t count)
{
    uint64_t bytes;
    if (!count) return OOS_CODE_OK;
    if (!at || __builtin_mul_overflow(count, value_bytes, &bytes)) return OOS_CODE_INVALID_VALUE;
    if (on_device(at)) {
        oos_range_touch(at);
        if (bytes > FILL_BYTES) {
            if (value == 0) zero(at, bytes);
            return OOS_CODE_OK;
        }
    }
    if (value_bytes == 1)
        memset(at, (int)value, bytes);
    else
        for (uint64_t i = 0; i < count; i++) memcpy((char *)at + i * value_bytes, &value, value_bytes);
    return OOS_CODE_OK;
}

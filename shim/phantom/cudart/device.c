/* Devices of the runtime API: count, choice, attributes, properties. */
#include "phantom/cudart/cudart.h"

#include <stdio.h>
#include <stdlib.h>

static bool wrong(int device)
{
    return device < 0 || (unsigned)device >= oos_device_count();
}

TAKE(int, cudaDriverGetVersion, int *ret_version)
{
    *ret_version = oos_run() ? OOS_CUDA_VERSION : 0;
    return 0;
}

TAKE(int, cudaRuntimeGetVersion, int *ret_version)
{
    *ret_version = OOS_CUDA_VERSION;
    return 0;
}

TAKE(int, cudaGetDeviceCount, int *ret_count)
{
    *ret_count = (int)oos_device_count();
    return *ret_count ? 0 : told(OOS_CODE_NO_DEVICE);
}

TAKE(int, cudaGetDevice, int *ret_device)
{
    *ret_device = (int)oos_device_current();
    return 0;
}

TAKE(int, cudaSetDevice, int device)
{
    return told(oos_device_select(device));
}

TAKE(int, cudaInitDevice, int device, unsigned device_flags, unsigned flags)
{
    return told(wrong(device) ? OOS_CODE_INVALID_DEVICE : oos_device_context((unsigned)device));
}

TAKE(int, cudaDeviceGetAttribute, int *ret_value, int attribute, int device)
{
    if (wrong(device)) return told(OOS_CODE_INVALID_DEVICE);
    *ret_value = oos_attribute(attribute, (unsigned)device);
    return 0;
}

/* cudaDeviceProp has another layout in each major: a table of offsets instead of two structures. */
static int properties(char *at, int device)
{
    enum { BYTES = OOS_CUDA_MAJOR == 12 ? 1032 : 1008, NAME_BYTES = 256, UUID = 256 };
    if (wrong(device)) return told(OOS_CODE_INVALID_DEVICE);
    unsigned const index = (unsigned)device;
    const oos_device_spec *spec = oos_device_spec_of(index);
    memset(at, 0, BYTES);
    snprintf(at, NAME_BYTES, "%s", spec->name);
    memset(at + UUID, 0x50, 16);
    at[UUID + 15] = (char)oos_device_physical(index);
#define A(number) oos_attribute(number, index)
#define F(field, offset_12, offset_13, bytes, from)                                                          \
    {                                                                                                        \
        int const offset = OOS_CUDA_MAJOR == 12 ? offset_12 : offset_13;                                     \
        uint64_t const value = (uint64_t)(from);                                                             \
        if (offset >= 0) memcpy(at + offset, &value, bytes);                                                 \
    }
#include "phantom/cudart/properties.def"
#undef F
#undef A
    static const int block_dims[3] = {1024, 1024, 64}, grid_dims[3] = {2147483647, 65535, 65535};
    memcpy(at + 324, block_dims, sizeof block_dims);
    memcpy(at + 336, grid_dims, sizeof grid_dims);
    return 0;
}

TAKE(int, cudaGetDeviceProperties, void *ret_properties, int device)
{
    return properties(ret_properties, device);
}

#if OOS_CUDA_MAJOR == 12
TAKE(int, cudaGetDeviceProperties_v2, void *ret_properties, int device)
{
    return properties(ret_properties, device);
}
#endif

TAKE(int, cudaDeviceGetStreamPriorityRange, int *ret_least, int *ret_greatest)
{
    if (ret_least) *ret_least = 0;
    if (ret_greatest) *ret_greatest = -5;
    return 0;
}

TAKE(int, cudaDeviceCanAccessPeer, int *ret_can, int device, int peer)
{
    if (wrong(device) || wrong(peer)) return told(OOS_CODE_INVALID_DEVICE);
    *ret_can = device != peer;
    return 0;
}

TAKE(int, cudaDeviceGetP2PAttribute, int *ret_value, int attribute, int from, int to)
{
    *ret_value = attribute == 2; /* access supported */
    return 0;
}

TAKE(int, cudaDeviceGetLimit, size_t *ret_value, int limit)
{
    *ret_value = limit == 0 ? 1024 : limit == 1 ? 7340032 : 8388608; /* stack, printf buffer, heap */
    return 0;
}

TAKE(int, cudaDeviceGetPCIBusId, char *ret_text, int capacity, int device)
{
    if (wrong(device)) return told(OOS_CODE_INVALID_DEVICE);
    snprintf(ret_text, (size_t)capacity, "0000:%02X:00.0", 1 + oos_device_physical((unsigned)device));
    return 0;
}

TAKE(int, cudaDeviceGetByPCIBusId, int *ret_device, const char *text)
{
    const char *bus = strchr(text, ':');
    unsigned const physical = bus ? (unsigned)strtoul(bus + 1, NULL, 16) - 1 : OOS_SEGMENT_DEVICES;
    for (unsigned i = 0; i < oos_device_count(); i++)
        if (oos_device_physical(i) == physical) {
            *ret_device = (int)i;
            return 0;
        }
    return told(OOS_CODE_INVALID_DEVICE);
}

TAKE(int, cudaGetDeviceFlags, unsigned *ret_flags)
{
    *ret_flags = 0;
    return 0;
}

TAKE(int, cudaDeviceGetCacheConfig, int *ret_config)
{
    *ret_config = 0;
    return 0;
}

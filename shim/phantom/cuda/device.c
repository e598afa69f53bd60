/* Devices, contexts and errors of the driver API. There is one context per device, the primary one. */
#include "phantom/phantom.h"

#include <stdio.h>

typedef struct context {
    unsigned device;
} context;

static context contexts[OOS_SEGMENT_DEVICES];
enum { STACK = 32 };
static __thread context *stack[STACK];
static __thread int depth;

#define CHECK_DEVICE(device)                                                                                 \
    if ((device) < 0 || (unsigned)(device) >= oos_device_count()) return OOS_CODE_INVALID_DEVICE

static context *context_of(unsigned device)
{
    context *c = &contexts[device % OOS_SEGMENT_DEVICES];
    c->device = device;
    return c;
}

TAKE(int, cuInit, unsigned flags)
{
    return oos_device_count() ? OOS_CODE_OK : OOS_CODE_NO_DEVICE;
}

TAKE(int, cuDriverGetVersion, int *ret_version)
{
    *ret_version = OOS_CUDA_VERSION;
    return 0;
}

TAKE(int, cuDeviceGet, int *ret_device, int ordinal)
{
    CHECK_DEVICE(ordinal);
    *ret_device = ordinal;
    return 0;
}

TAKE(int, cuDeviceGetCount, int *ret_count)
{
    *ret_count = (int)oos_device_count();
    return 0;
}

TAKE(int, cuDeviceGetName, char *ret_name, int capacity, int device)
{
    CHECK_DEVICE(device);
    snprintf(ret_name, (size_t)capacity, "%s", oos_device_spec_of((unsigned)device)->name);
    return 0;
}

TAKE(int, cuDeviceGetUuid, unsigned char *ret_uuid, int device)
{
    CHECK_DEVICE(device);
    memset(ret_uuid, 0x50, 16);
    ret_uuid[15] = (unsigned char)oos_device_physical((unsigned)device);
    return 0;
}

TAKE(int, cuDeviceGetUuid_v2, unsigned char *ret_uuid, int device)
{
    return take_cuDeviceGetUuid(ret_uuid, device);
}

TAKE(int, cuDeviceTotalMem_v2, size_t *ret_bytes, int device)
{
    CHECK_DEVICE(device);
    *ret_bytes = oos_device_spec_of((unsigned)device)->property_bytes;
    return 0;
}

TAKE(int, cuDeviceGetAttribute, int *ret_value, int attribute, int device)
{
    CHECK_DEVICE(device);
    *ret_value = oos_attribute(attribute, (unsigned)device);
    return 0;
}

TAKE(int, cuDeviceComputeCapability, int *ret_major, int *ret_minor, int device)
{
    CHECK_DEVICE(device);
    *ret_major = oos_attribute(75, (unsigned)device);
    *ret_minor = oos_attribute(76, (unsigned)device);
    return 0;
}

TAKE(int, cuDeviceGetPCIBusId, char *ret_text, int capacity, int device)
{
    CHECK_DEVICE(device);
    snprintf(ret_text, (size_t)capacity, "0000:%02X:00.0", 1 + oos_device_physical((unsigned)device));
    return 0;
}

TAKE(int, cuDeviceCanAccessPeer, int *ret_can, int device, int peer)
{
    CHECK_DEVICE(device);
    CHECK_DEVICE(peer);
    *ret_can = device != peer;
    return 0;
}

TAKE(int, cuDeviceGetP2PAttribute, int *ret_value, int attribute, int from, int to)
{
    *ret_value = attribute == 2;
    return 0;
}

TAKE(int, cuDevicePrimaryCtxRetain, context **ret_context, int device)
{
    CHECK_DEVICE(device);
    int const code = oos_device_context((unsigned)device);
    if (code == OOS_CODE_OK) *ret_context = context_of((unsigned)device);
    return code;
}

/* The true state: torch sets a device only where a context is, and a wrong yes would put one of every rank on GPU 0. */
TAKE(int, cuDevicePrimaryCtxGetState, int device, unsigned *ret_flags, int *ret_active)
{
    CHECK_DEVICE(device);
    if (ret_flags) *ret_flags = 0;
    *ret_active = oos_device_has_context((unsigned)device);
    return 0;
}

TAKE(int, cuCtxGetCurrent, context **ret_context)
{
    unsigned const device = oos_device_current();
    *ret_context = oos_device_has_context(device) ? context_of(device) : NULL;
    return 0;
}

TAKE(int, cuCtxSetCurrent, context *c)
{
    return c ? oos_device_select((int)c->device) : OOS_CODE_OK;
}

TAKE(int, cuCtxPushCurrent_v2, context *c)
{
    if (!c) return OOS_CODE_INVALID_CONTEXT;
    if (depth >= STACK) return OOS_CODE_INVALID_VALUE;
    stack[depth++] = context_of(oos_device_current());
    return oos_device_select((int)c->device);
}

TAKE(int, cuCtxPopCurrent_v2, context **ret_context)
{
    if (ret_context) *ret_context = context_of(oos_device_current());
    return depth > 0 ? oos_device_select((int)stack[--depth]->device) : OOS_CODE_OK;
}

static int context_create(context **ret_context, int device)
{
    CHECK_DEVICE(device);
    int const code = oos_device_select(device);
    if (code == OOS_CODE_OK) *ret_context = context_of((unsigned)device);
    return code;
}

TAKE(int, cuCtxCreate_v2, context **ret_context, unsigned flags, int device)
{
    return context_create(ret_context, device);
}

TAKE(int, cuCtxCreate_v4, context **ret_context, void *params, unsigned flags, int device)
{
    return context_create(ret_context, device);
}

TAKE(int, cuCtxGetDevice, int *ret_device)
{
    if (!oos_device_has_context(oos_device_current())) return OOS_CODE_INVALID_CONTEXT;
    *ret_device = (int)oos_device_current();
    return 0;
}

TAKE(int, cuCtxGetDevice_v2, int *ret_device, context *c)
{
    *ret_device = (int)(c ? c->device : oos_device_current());
    return 0;
}

TAKE(int, cuCtxGetId, context *c, unsigned long long *ret_id)
{
    *ret_id = 1 + (c ? c->device : oos_device_current());
    return 0;
}

TAKE(int, cuCtxGetFlags, unsigned *ret_flags)
{
    *ret_flags = 0;
    return 0;
}

TAKE(int, cuCtxGetApiVersion, context *c, unsigned *ret_version)
{
    *ret_version = OOS_CUDA_VERSION;
    return 0;
}

TAKE(int, cuCtxGetLimit, size_t *ret_value, int limit)
{
    *ret_value = limit == 0 ? 1024 : limit == 1 ? 7340032 : 8388608;
    return 0;
}

TAKE(int, cuCtxGetStreamPriorityRange, int *ret_least, int *ret_greatest)
{
    if (ret_least) *ret_least = 0;
    if (ret_greatest) *ret_greatest = -5;
    return 0;
}

TAKE(int, cuStreamGetCtx, void *stream, context **ret_context)
{
    *ret_context = context_of(oos_stream_info_of(stream).device);
    return 0;
}

void *oos_context_of(unsigned device);
void *oos_context_of(unsigned device)
{
    return context_of(device);
}

typedef struct error_text {
    int code;
    const char *name, *sentence;
} error_text;

static const error_text errors[] = {
#define X(code, runtime, driver, sentence) {code, driver, sentence},
#include "phantom/errors.def"
#undef X
};

static const error_text *find(int code)
{
    for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code) return &errors[i];
    return NULL;
}

TAKE(int, cuGetErrorName, int code, const char **ret_name)
{
    const error_text *text = find(code);
    *ret_name = text ? text->name : NULL;
    return text ? OOS_CODE_OK : OOS_CODE_INVALID_VALUE;
}

TAKE(int, cuGetErrorString, int code, const char **ret_sentence)
{
    const error_text *text = find(code);
    *ret_sentence = text ? text->sentence : NULL;
    return text ? OOS_CODE_OK : OOS_CODE_INVALID_VALUE;
}

/* A libcuda of few calls, which answers, hangs or dies as POOR_CUDA says: no driver is as bad, but each fault has been met. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int is(const char *word)
{
    const char *how = getenv("POOR_CUDA");
    return how && strcmp(how, word) == 0;
}

EXPORT int cuInit(unsigned flags);
EXPORT int cuInit(unsigned flags)
{
    (void)flags;
    while (is("hangs")) sleep(100);
    if (is("dies")) abort();
    return is("refuses") ? 100 : 0;
}

#define CALL(name, ...)                                                                                      \
    EXPORT int name(__VA_ARGS__);                                                                            \
    EXPORT int name(__VA_ARGS__)

CALL(cuDriverGetVersion, int *ret_version)
{
    return *ret_version = 11040, 0;
}

CALL(cuDeviceGetCount, int *ret_count)
{
    return *ret_count = 1, 0;
}

CALL(cuDeviceGet, int *ret_device, int ordinal)
{
    return *ret_device = ordinal, ordinal != 0;
}

CALL(cuDeviceGetName, char *ret_name, int capacity, int device)
{
    (void)device;
    strncpy(ret_name, "Poor GPU", (size_t)capacity);
    return 0;
}

CALL(cuDeviceGetAttribute, int *ret_value, int attribute, int device)
{
    (void)device;
    return *ret_value = attribute == 75 ? 7 : attribute == 76 ? 5 : 1, 0;
}

CALL(cuDevicePrimaryCtxRetain, void **ret_context, int device)
{
    (void)device;
    static int context;
    return *ret_context = &context, 0;
}

CALL(cuCtxSetCurrent, void *context)
{
    return context == NULL;
}

CALL(cuMemGetInfo_v2, size_t *ret_free, size_t *ret_total)
{
    *ret_total = (size_t)4 << 30;
    *ret_free = *ret_total - ((size_t)100 << 20);
    return 0;
}

/* Driver calls by name and version. A name without a suffix means the spelling of the CUDA that the caller was built
 * for: SINCE rows of shim/calls/cuda.def. */
#include "phantom/phantom.h"

typedef struct since {
    const char *name;
    uint64_t version;
    const char *spelling;
} since;
extern const since oos_since[]; /* newest first for each name; ends with a NULL name */
extern const oos_calls oos_calls_cuda;

OOS_SHARED void *oos_driver_entry(const char *name, unsigned version);
void *oos_driver_entry(const char *name, unsigned version)
{
    for (const since *row = oos_since; row->name; row++)
        if (row->version <= version && strcmp(row->name, name) == 0)
            return oos_calls_find(&oos_calls_cuda, row->spelling);
    return oos_calls_find(&oos_calls_cuda, name);
}

TAKE(int, cuGetProcAddress_v2, const char *name, void **ret_at, int version, uint64_t flags, int *ret_result)
{
    void *at = oos_driver_entry(name, (unsigned)version);
    *ret_at = at;
    if (ret_result) *ret_result = at ? 0 : 1; /* 1: no such symbol */
    return at ? OOS_CODE_OK : OOS_CODE_NOT_FOUND;
}

TAKE(int, cuGetProcAddress, const char *name, void **ret_at, int version, uint64_t flags)
{
    return take_cuGetProcAddress_v2(name, ret_at, version, flags, NULL);
}

/* Copies between a struct of the caller and ours, as far as both reach. */
#include "base/params.h"
#include "base/check.h"

#include <string.h>

enum { PARAMS_MAX_BYTES = 4096 }; /* larger than any of ours will be: a size beyond it is not a size */

oomsight_status oos_params_take(void *ours, size_t our_bytes, const void *given, oomsight_error *reterr)
{
    oos_assert(our_bytes >= sizeof our_bytes && our_bytes <= PARAMS_MAX_BYTES);
    size_t bytes = 0;
    if (given) memcpy(&bytes, given, sizeof bytes);
    if (bytes < sizeof bytes || bytes > PARAMS_MAX_BYTES)
        return oos_fail(reterr, OOMSIGHT_USAGE, "`size`, the first field of the parameters, is not set");
    for (size_t i = our_bytes; i < bytes; i++)
        if (((const unsigned char *)given)[i])
            return oos_fail(reterr, OOMSIGHT_UNSUPPORTED,
                            "the parameters have a field that this release of the library does not know");
    memcpy(ours, given, bytes < our_bytes ? bytes : our_bytes);
    memcpy(ours, &our_bytes, sizeof our_bytes);
    return OOMSIGHT_OK;
}

void oos_params_give(void *given, const void *ours, size_t our_bytes)
{
    size_t bytes;
    memcpy(&bytes, given, sizeof bytes);
    size_t const filled = bytes < our_bytes ? bytes : our_bytes;
    if (filled > sizeof bytes)
        memcpy((char *)given + sizeof bytes, (const char *)ours + sizeof bytes, filled - sizeof bytes);
}

oomsight_status oos_params_whole(oomsight_status status, uint64_t denied_before, oomsight_error *reterr)
{
    if (status != OOMSIGHT_OK || oos_memory_denied() == denied_before) return status;
    return oos_fail(reterr, OOMSIGHT_NOMEM, "oomsight itself ran out of memory");
}

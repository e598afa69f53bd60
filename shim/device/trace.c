/* The trace of device allocations, off unless the launcher asked for it. */
#include "device/internal.h"

void oos_trace(oos_trace_what what, const oos_charge *charge, uint64_t address)
{
    (void)what;
    (void)charge;
    (void)address;
}

/* Invariants: what must hold if our own code is right, whatever the input was. Checked in debug, test and fuzz builds
 * (-Dchecks=true, sanitizers, fuzzers), free in the others: there a condition is compiled but never run. For what a user or a file
 * can get wrong there are statuses. */
#pragma once

#ifdef OOS_CHECKS
#include <assert.h>
#define oos_assert(condition) assert(condition)
#else
#define oos_assert(condition)                                                                                \
    do {                                                                                                     \
        if (0) (void)(condition);                                                                            \
    } while (0)
#endif

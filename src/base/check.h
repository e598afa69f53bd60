/* Invariants: what must hold if our own code is right, whatever the input was. Checked in debug, test and fuzz builds
 * (-Dchecks=true, sanitizers, fuzzers), free in the others: there a condition is compiled but never run. For what a user or a file
 * can get wrong there are statuses. */
#ifndef OOS_BASE_CHECK_H
#define OOS_BASE_CHECK_H

#ifdef OOS_CHECKS
#include <assert.h>
#define oos_assert(condition) assert(condition)
#else
#define oos_assert(condition)                                                                                \
    do {                                                                                                     \
        if (0) (void)(condition);                                                                            \
    } while (0)
#endif

#endif

/* Failing with a reason. Fallible functions return oomsight_status; detail goes to `reterr`, which may be NULL. */
#pragma once
#include <oomsight/oomsight.h>

/* Fill *reterr with a sentence and give `status` back, so that `return oos_fail(...)` reads well. */
oomsight_status oos_fail(oomsight_error *reterr, oomsight_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Name the file an error belongs to, if it has no path yet. Gives `status` back. */
oomsight_status oos_fail_in(oomsight_error *reterr, oomsight_status status, const char *path);

/* Name the parameter that an error is about: "gpu". Gives `status` back. */
oomsight_status oos_fail_of(oomsight_error *reterr, oomsight_status status, const char *field);

#define OOS_TRY(call)                                                                                        \
    do {                                                                                                     \
        oomsight_status const try_status_ = (call);                                                          \
        if (try_status_ != OOMSIGHT_OK) return try_status_;                                                  \
    } while (0)

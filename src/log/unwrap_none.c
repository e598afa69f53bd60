/* Without libarchive: no wrapper is opened. */
#include "log/log.h"

#include <stdlib.h>

bool oos_unwrap_is_built(void)
{
    return false;
}

oos_unwrap *oos_unwrap_open(oos_unwrap_kind kind, ssize_t (*below)(void *, const void **), void *context)
{
    (void)kind;
    (void)below;
    free(context);
    return NULL;
}

void oos_unwrap_close(oos_unwrap *wrapper)
{
    (void)wrapper;
}

int oos_unwrap_next(oos_unwrap *wrapper, char *name, size_t capacity)
{
    (void)wrapper;
    (void)name;
    (void)capacity;
    return -1;
}

ssize_t oos_unwrap_read(oos_unwrap *wrapper, char *bytes, size_t capacity)
{
    (void)wrapper;
    (void)bytes;
    (void)capacity;
    return -1;
}

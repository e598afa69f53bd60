/* Nothing is unpacked, so nothing is fetched ahead. */
#include "log/log.h"

oos_readahead *oos_readahead_start(ssize_t (*fill)(void *, char *, size_t), void *context)
{
    (void)fill;
    (void)context;
    return NULL;
}

size_t oos_readahead_take(oos_readahead *ahead, char *bytes, size_t capacity)
{
    (void)ahead;
    (void)bytes;
    (void)capacity;
    return 0;
}

void oos_readahead_stop(oos_readahead *ahead)
{
    (void)ahead;
}

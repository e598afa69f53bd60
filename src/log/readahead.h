/* Bytes fetched ahead by a thread of their own, so that unpacking and scanning share two processors. */
#ifndef OOS_INPUT_READAHEAD_H
#define OOS_INPUT_READAHEAD_H

#include <stddef.h>
#include <sys/types.h>

typedef struct oos_readahead oos_readahead;

/* `fill` gives the next bytes, 0 or less at the end; it is called by the thread only, until stop() returns. NULL: no
 * thread can be had, the caller goes on alone. */
oos_readahead *oos_readahead_start(ssize_t (*fill)(void *context, char *bytes, size_t capacity),
                                   void *context);

/* Waits for bytes. 0: the end. */
size_t oos_readahead_take(oos_readahead *ahead, char *bytes, size_t capacity);

void oos_readahead_stop(oos_readahead *ahead); /* waits for the thread; NULL is fine */

#endif

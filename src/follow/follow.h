/* A file that grows, is cut, or is replaced by another of its name. One of these per file; nothing here waits, so that one
 * thread may look after many. */
#ifndef OOS_EXPLAIN_FOLLOW_H
#define OOS_EXPLAIN_FOLLOW_H

#include "explain/explain.h"

#include <sys/types.h>

/* Where reading stands: enough to go on after a restart, when the file is still the same one. */
typedef struct oos_follow_place {
    dev_t device;
    ino_t inode;
    uint64_t offset;
} oos_follow_place;

typedef struct oos_follow oos_follow;

/* `path` may not exist yet. `explainer` gets the text and outlives this. */
oomsight_status oos_follow_open(const char *path, oos_explainer *explainer, oos_follow **ret_follow,
                                oomsight_error *reterr);
void oos_follow_close(oos_follow *follow); /* NULL is fine */

/* Read what is there, at most `most_bytes` of it. *ret_bytes 0: nothing new. */
oomsight_status oos_follow_read(oos_follow *follow, uint64_t most_bytes, uint64_t *ret_bytes,
                                oomsight_error *reterr);

#endif

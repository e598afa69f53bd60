/* Hash tables: uthash, which ends the process when memory runs out unless it is told not to. Then HASH_ADD leaves the element out,
 * and whoever adds asks OOS_IN_TABLE whether it went in. */
#ifndef OOS_BASE_TABLE_H
#define OOS_BASE_TABLE_H

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((void)(element))
#include <uthash.h>

#define OOS_IN_TABLE(element) ((element)->hh.tbl != NULL)

#endif

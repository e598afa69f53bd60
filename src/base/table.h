/* Hash tables: uthash, which ends the process when memory runs out unless it is told not to. Then HASH_ADD leaves the element out,
 * and whoever adds asks OOS_IN_TABLE whether it went in. */
#pragma once

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((void)(element))
#include <uthash.h>

#define OOS_IN_TABLE(element) ((element)->hh.tbl != NULL)

/* Files that a log was moved into: which file is which, and in what order they were written. */
#ifndef OOS_EXPLAIN_ROTATED_H
#define OOS_EXPLAIN_ROTATED_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* The same file, also under another name and after a restart. Inodes are used again; a first line that bears a time is not. */
typedef struct oos_file_id {
    uint64_t device, inode;
    uint64_t print; /* of the first line; 0: it is not complete yet */
} oos_file_id;

/* Of an open file: *ret_size is its length. False: it cannot be told, or it is no plain file. */
bool oos_file_identify(int fd, oos_file_id *ret_id, uint64_t *ret_size);
uint64_t oos_file_print(const char *bytes, size_t len); /* of a text that begins like this */
bool oos_file_same(const oos_file_id *a, const oos_file_id *b);

enum { OOS_ROTATED_MAX = 64, OOS_ROTATED_NAME_BYTES = 256 };

typedef struct oos_rotated {
    char name[OOS_ROTATED_NAME_BYTES]; /* in the folder of the log */
    oos_file_id id;
    bool packed;     /* .gz and the like; then the print is not known yet */
    int64_t written; /* when last, in nanoseconds since 1970 */
} oos_rotated;

/* Plain files in `folder` (a descriptor) called `name` and a suffix, oldest first. No link is followed. Returns their
 * number. */
size_t oos_rotated_list(int folder, const char *name, oos_rotated list[OOS_ROTATED_MAX]);

/* Of the text inside a packed one. 0: it cannot be read. */
uint64_t oos_rotated_print(int folder, const oos_rotated *file);

#endif

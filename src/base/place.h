/* Files that a user names to be written: `--output`, `--trace` and the like. The place may be one where others can write.
 *
 *   a link               is followed when it is ours or root's; somebody else's is refused, wherever it lies
 *   a file of another    in a folder where everybody can write is refused: he could read, or keep, what we write
 *   anything else        (a terminal, a pipe, /dev/stdout, a descriptor under /proc) is written to as it is
 *
 * A whole answer is put beside its place and moved there, so that nobody reads half of it and a full disk costs nothing
 * that was there before; permissions stay those of the old file, those of a new one are the umask's. */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* For what is written bit by bit. The file is emptied, or appended to; made when there is none, with `mode` and the umask.
 * *ret_fd is closed at exec. On failure errno says why, too. */
oomsight_status oos_place_open(const char *path, bool append, unsigned mode, int *ret_fd,
                               oomsight_error *reterr);

/* All of it or nothing, where it can be: what is not a plain file of ours alone is written over. */
oomsight_status oos_place_write(const char *path, const char *bytes, size_t len, oomsight_error *reterr);
/* ... in a folder that is made where it is not there. */
oomsight_status oos_place_keep(const char *path, const char *bytes, size_t len, oomsight_error *reterr);

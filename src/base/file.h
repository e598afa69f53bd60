/* Files: whole small ones, read with a limit. */
#pragma once
#include "base/arena.h"
#include "base/error.h"

/* Read at most `limit_bytes`; a larger file is refused. The bytes live in the arena and are zero-terminated. */
oomsight_status oos_file_read(oos_arena *arena, const char *path, size_t limit_bytes, oos_view *ret_bytes,
                              oomsight_error *reterr);

bool oos_file_is_dir(const char *path);
bool oos_file_exists(const char *path);

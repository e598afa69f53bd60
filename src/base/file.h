/* What the system is asked for: whole small files, read with a limit; the last part of a path; the clock. */
#pragma once
#include "base/arena.h"
#include "base/error.h"

/* Read at most `limit_bytes`; a larger file is refused. The bytes live in the arena and are zero-terminated. */
oomsight_status oos_file_read(oos_arena *arena, const char *path, size_t limit_bytes, oos_view *ret_bytes,
                              oomsight_error *reterr);

/* A plain file that only this user, or root, can write; no link. False: it is none, or larger, or there is no memory. */
bool oos_file_read_own(oos_arena *arena, const char *path, size_t limit_bytes, oos_view *ret_bytes);

bool oos_file_is_dir(const char *path);
bool oos_file_exists(const char *path);
bool oos_write_all(int fd, const char *bytes, size_t len); /* false: errno says why */

static inline const char *oos_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int64_t oos_clock_ms(void); /* of CLOCK_MONOTONIC */

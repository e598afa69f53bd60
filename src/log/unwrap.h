/* One wrapper around bytes: gz, zst, xz, bz2, lz4, tar or zip, recognised by its first bytes. The edge to libarchive of
 * log/logstream; a build without it (-Darchive=disabled) opens none and says so. */
#ifndef OOS_LOG_UNWRAP_H
#define OOS_LOG_UNWRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct oos_unwrap oos_unwrap;

/* False in a build that opens no wrapper. */
bool oos_unwrap_is_built(void);

typedef enum oos_unwrap_kind {
    OOS_UNWRAP_NONE,
    OOS_UNWRAP_COMPRESSED, /* gz, zst, xz, bz2, lz4: one file without a name */
    OOS_UNWRAP_TAR,
    OOS_UNWRAP_ZIP
} oos_unwrap_kind;

/* `below` gives wrapped bytes, 0 at their end, less when they are broken; `context` is freed with the wrapper, or at once
 * when there is no memory for one (NULL). A wrapper whose first bytes are damaged has no file. */
oos_unwrap *oos_unwrap_open(oos_unwrap_kind kind, ssize_t (*below)(void *context, const void **ret_bytes),
                            void *context);
void oos_unwrap_close(oos_unwrap *wrapper); /* NULL is fine */

/* Move to the next file: 1; 0: there is none; negative: broken. `name` is left alone for a compressed file, which has none. */
int oos_unwrap_next(oos_unwrap *wrapper, char *name, size_t capacity);

/* Bytes of that file, 0 at its end, and where there is none. Negative: broken. */
ssize_t oos_unwrap_read(oos_unwrap *wrapper, char *bytes, size_t capacity);

#endif

/* Bytes of a log in whatever wrapper it came: a file or standard input, plain, gz/zst/xz/bz2/lz4, tar, zip, and one
 * wrapper inside another. Memory is bounded; so is what a wrapper may expand to. */
#ifndef OOS_INPUT_LOGSTREAM_H
#define OOS_INPUT_LOGSTREAM_H

#include "base/error.h"
#include "base/view.h"

typedef struct oos_logstream oos_logstream;

/* Why a stream ended before its data did. */
typedef enum oos_logstream_cut {
    OOS_LOGSTREAM_WHOLE = 0,
    OOS_LOGSTREAM_TOO_LARGE, /* a wrapper expanded beyond the limit */
    OOS_LOGSTREAM_TOO_DEEP,  /* wrappers inside wrappers: the innermost were not opened */
    OOS_LOGSTREAM_DAMAGED,   /* a wrapper is broken or ends early; what came before it was given out */
    OOS_LOGSTREAM_NOT_OPENED /* this build opens no wrapper: its bytes were given out as they are */
} oos_logstream_cut;

/* `path` "-": standard input. `expand_limit_bytes` bounds what wrappers may expand to, 0: 8 GiB. */
oomsight_status oos_logstream_open(const char *path, uint64_t expand_limit_bytes, oos_logstream **ret_stream,
                                   oomsight_error *reterr);
/* The same over an open file, which is closed with the stream, or at once when this fails. */
oomsight_status oos_logstream_open_fd(int fd, uint64_t expand_limit_bytes, oos_logstream **ret_stream,
                                      oomsight_error *reterr);
/* The same over bytes in memory, which must outlive the stream. */
oomsight_status oos_logstream_open_bytes(oos_view bytes, uint64_t expand_limit_bytes,
                                         oos_logstream **ret_stream, oomsight_error *reterr);
void oos_logstream_close(oos_logstream *stream); /* NULL is fine */

/* Move to the next file; a plain input has one. False: no more. *ret_name is "" for a plain input and lives until the
 * next call. */
bool oos_logstream_next(oos_logstream *stream, const char **ret_name);

/* Up to `capacity` bytes of the current file. *ret_count 0: its end. */
oomsight_status oos_logstream_read(oos_logstream *stream, char *bytes, size_t capacity, size_t *ret_count,
                                   oomsight_error *reterr);

oos_logstream_cut oos_logstream_cut_reason(const oos_logstream *stream);
/* It is damaged, and not one byte was given out. */
bool oos_logstream_is_lost(const oos_logstream *stream);

#endif

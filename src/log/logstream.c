/* Levels of bytes: level 0 is the file, every wrapper found on a level adds one above it. Each level can give back a
 * few peeked bytes, by which the next wrapper is recognised.
 *
 *     fd -> level 0 (zst) -> level 1 (tar) -> level 2: a file of the tar -> the reader
 */
#include "log/log.h"
#include "base/check.h"
#include "base/locale.h"
#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEVELS_MAX = 9, PEEK_BYTES = 512, CHUNK_BYTES = 64 << 10, NAME_BYTES = 256 };
/* A thread pays from here on. */
#define AHEAD_FROM_BYTES ((uint64_t)2 << 20)
#define DEFAULT_LIMIT ((uint64_t)8 << 30)

typedef struct level {
    oos_unwrap *wrapper;  /* NULL on level 0 */
    bool expands;         /* it gives more than it takes */
    size_t peeked, given; /* bytes in `peek`, and how many of them were given out */
    char peek[PEEK_BYTES];
    char chunk[CHUNK_BYTES]; /* what the wrapper above reads from here */
} level;

struct oos_logstream {
    int fd; /* -1: `memory` */
    bool owns_fd;
    oos_view memory;
    level *levels[LEVELS_MAX];
    size_t top; /* the level the reader sees */
    bool started;
    uint64_t expanded_bytes, limit_bytes;
    oos_logstream_cut cut;
    int read_errno;
    uint64_t file_bytes;   /* of the current file, given out */
    bool gave;             /* a byte of any */
    bool wide, big_endian; /* UTF-16, as PowerShell writes it */
    unsigned char odd[4];  /* of it: bytes of a letter that is not whole yet */
    size_t odd_count;
    char *narrow; /* of it, as UTF-8; NULL until it is needed */
    size_t narrow_at, narrow_len;
    bool narrow_end;
    oos_readahead *ahead; /* unpacks a large file; while it runs, the levels are its own */
    char name[NAME_BYTES];
};

static ssize_t read_source(oos_logstream *stream, char *bytes, size_t capacity)
{
    if (stream->fd < 0) {
        oos_view const piece = oos_view_slice(stream->memory, 0, capacity);
        if (piece.len) memcpy(bytes, piece.ptr, piece.len);
        stream->memory = oos_view_slice(stream->memory, piece.len, SIZE_MAX);
        return (ssize_t)piece.len;
    }
    ssize_t count;
    do count = read(stream->fd, bytes, capacity);
    while (count < 0 && errno == EINTR);
    if (count < 0) stream->read_errno = errno;
    return count;
}

/* Bytes of one level, without its peeked ones. Negative: broken. */
static ssize_t read_below(oos_logstream *stream, size_t depth, char *bytes, size_t capacity)
{
    if (depth == 0) return read_source(stream, bytes, capacity);
    ssize_t const count = oos_unwrap_read(stream->levels[depth]->wrapper, bytes, capacity);
    if (count < 0) {
        stream->cut = OOS_LOGSTREAM_DAMAGED;
        return -1;
    }
    if (stream->levels[depth]->expands)
        stream->expanded_bytes = oos_add(stream->expanded_bytes, (uint64_t)count);
    if (stream->expanded_bytes > stream->limit_bytes) {
        stream->cut = OOS_LOGSTREAM_TOO_LARGE;
        return 0;
    }
    return count;
}

static ssize_t read_level(oos_logstream *stream, size_t depth, char *bytes, size_t capacity)
{
    level *from = stream->levels[depth];
    oos_assert(from->given <= from->peeked && from->peeked <= PEEK_BYTES);
    if (from->given == from->peeked) return read_below(stream, depth, bytes, capacity);
    size_t const count = oos_min(capacity, from->peeked - from->given);
    memcpy(bytes, from->peek + from->given, count);
    from->given += count;
    return (ssize_t)count;
}

static void peek(oos_logstream *stream, size_t depth)
{
    level *at = stream->levels[depth];
    at->peeked = at->given = 0;
    while (at->peeked < PEEK_BYTES) {
        ssize_t const count = read_below(stream, depth, at->peek + at->peeked, PEEK_BYTES - at->peeked);
        if (count <= 0) break;
        at->peeked += (size_t)count;
    }
}

/* "BZh", how large its blocks are, and how the first of them or the end begins, as far as it is there: letters alone may be a log. */
static bool is_bzip2(const level *at)
{
    static const char *const behind[] = {"1AY&SY", "\x17rE8P\x90"};
    if (at->peeked < 4 || memcmp(at->peek, "BZh", 3) != 0 || at->peek[3] < '1' || at->peek[3] > '9')
        return false;
    size_t const len = oos_min(at->peeked - 4, 6);
    return memcmp(at->peek + 4, behind[0], len) == 0 || memcmp(at->peek + 4, behind[1], len) == 0;
}

/* A tar from before "ustar": the sum of its first block is in it, taken with blanks in its own place. */
static bool is_old_tar(const level *at)
{
    enum { SUM_AT = 148, SUM_LEN = 8 };
    char field[SUM_LEN + 1] = "";
    unsigned long sum = 0;
    if (at->peeked < PEEK_BYTES || !at->peek[0]) return false;
    for (size_t i = 0; i < PEEK_BYTES; i++)
        sum += i >= SUM_AT && i < SUM_AT + SUM_LEN ? ' ' : (unsigned char)at->peek[i];
    memcpy(field, at->peek + SUM_AT, SUM_LEN);
    return strtoul(field, NULL, 8) == sum;
}

/* Wrappers start with fixed bytes; everything else is a log. */
static oos_unwrap_kind wrapper_of(const level *at)
{
    static const struct {
        oos_unwrap_kind kind;
        size_t at, len;
        const char *bytes;
    } magics[] = {{OOS_UNWRAP_COMPRESSED, 0, 2, "\x1f\x8b"},
                  {OOS_UNWRAP_COMPRESSED, 0, 4, "\x28\xb5\x2f\xfd"},
                  {OOS_UNWRAP_COMPRESSED, 0, 6,
                   "\xfd"
                   "7zXZ\0"},
                  {OOS_UNWRAP_COMPRESSED, 0, 4, "\x04\x22\x4d\x18"},
                  {OOS_UNWRAP_ZIP, 0, 4, "PK\x03\x04"},
                  {OOS_UNWRAP_TAR, 257, 5, "ustar"}};
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (at->peeked >= magics[i].at + magics[i].len &&
            memcmp(at->peek + magics[i].at, magics[i].bytes, magics[i].len) == 0)
            return magics[i].kind;
    return is_bzip2(at) ? OOS_UNWRAP_COMPRESSED : is_old_tar(at) ? OOS_UNWRAP_TAR : OOS_UNWRAP_NONE;
}

typedef struct below {
    oos_logstream *stream;
    size_t depth;
} below;

static ssize_t give_above(void *context, const void **ret_bytes)
{
    below *from = context;
    level *at = from->stream->levels[from->depth];
    *ret_bytes = at->chunk;
    return read_level(from->stream, from->depth, at->chunk, CHUNK_BYTES);
}

/* Put a level on top for the wrapper that lies there. False: there is no memory, or no wrapper is opened by this build. */
static bool push_level(oos_logstream *stream, oos_unwrap_kind kind)
{
    oos_assert(stream->top + 1 < LEVELS_MAX && kind != OOS_UNWRAP_NONE);
    level *above = calloc(1, sizeof *above);
    below *from = calloc(1, sizeof *from);
    if (!above || !from) {
        free(above);
        free(from);
        return false;
    }
    *from = (below){stream, stream->top};
    above->expands = kind != OOS_UNWRAP_TAR;
    above->wrapper = oos_unwrap_open(kind, give_above, from);
    if (!above->wrapper) {
        free(above);
        return false;
    }
    stream->levels[++stream->top] = above;
    return true;
}

static void pop_level(oos_logstream *stream)
{
    oos_assert(stream->top > 0); /* the ground stays */
    oos_unwrap_close(stream->levels[stream->top]->wrapper);
    free(stream->levels[stream->top]);
    stream->levels[stream->top--] = NULL;
}

static oomsight_status open_with(int fd, bool owns_fd, oos_view memory, uint64_t limit_bytes,
                                 oos_logstream **ret_stream, oomsight_error *reterr)
{
    oos_logstream *stream = calloc(1, sizeof *stream);
    level *ground = calloc(1, sizeof *ground);
    if (!stream || !ground) {
        free(stream);
        free(ground);
        if (owns_fd) close(fd);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a stream");
    }
    *stream = (oos_logstream){.fd = fd,
                              .owns_fd = owns_fd,
                              .memory = memory,
                              .levels = {ground},
                              .limit_bytes = limit_bytes ? limit_bytes : DEFAULT_LIMIT};
    *ret_stream = stream;
    return OOMSIGHT_OK;
}

oomsight_status oos_logstream_open(const char *path, uint64_t expand_limit_bytes, oos_logstream **ret_stream,
                                   oomsight_error *reterr)
{
    if (strcmp(path, "-") == 0)
        return open_with(STDIN_FILENO, false, (oos_view){0}, expand_limit_bytes, ret_stream, reterr);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        oomsight_status const status = errno == ENOENT ? OOMSIGHT_NOT_FOUND : OOMSIGHT_IO;
        oos_fail(reterr, status, "%s", oos_errno_text(errno));
        return oos_fail_in(reterr, status, path);
    }
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return open_with(fd, true, (oos_view){0}, expand_limit_bytes, ret_stream, reterr);
}

oomsight_status oos_logstream_open_fd(int fd, uint64_t expand_limit_bytes, oos_logstream **ret_stream,
                                      oomsight_error *reterr)
{
    return open_with(fd, true, (oos_view){0}, expand_limit_bytes, ret_stream, reterr);
}

oomsight_status oos_logstream_open_bytes(oos_view bytes, uint64_t expand_limit_bytes,
                                         oos_logstream **ret_stream, oomsight_error *reterr)
{
    return open_with(-1, false, bytes, expand_limit_bytes, ret_stream, reterr);
}

void oos_logstream_close(oos_logstream *stream)
{
    if (!stream) return;
    oos_readahead_stop(stream->ahead);
    while (stream->top > 0) pop_level(stream);
    free(stream->levels[0]);
    if (stream->owns_fd) close(stream->fd);
    free(stream->narrow);
    free(stream);
}

/* False: there is none, or what is there cannot be read, which is noted. */
static bool next_entry(oos_logstream *stream)
{
    int const found =
        oos_unwrap_next(stream->levels[stream->top]->wrapper, stream->name, sizeof stream->name);
    if (found < 0) stream->cut = OOS_LOGSTREAM_DAMAGED;
    return found > 0;
}

/* Go up as long as the top level is a wrapper. */
static void climb(oos_logstream *stream)
{
    for (;;) {
        peek(stream, stream->top);
        oos_unwrap_kind const kind = wrapper_of(stream->levels[stream->top]);
        if (kind == OOS_UNWRAP_NONE) return;
        if (stream->top + 1 == LEVELS_MAX) {
            stream->cut = OOS_LOGSTREAM_TOO_DEEP;
            return;
        }
        if (!push_level(stream, kind)) {
            stream->cut = oos_unwrap_is_built() ? OOS_LOGSTREAM_DAMAGED : OOS_LOGSTREAM_NOT_OPENED;
            return;
        }
        if (!next_entry(stream)) return;
    }
}

bool oos_logstream_next(oos_logstream *stream, const char **ret_name)
{
    *ret_name = stream->name;
    oos_readahead_stop(stream->ahead);
    stream->ahead = NULL;
    stream->file_bytes = 0;
    if (!stream->started) {
        stream->started = true;
        climb(stream);
        return true;
    }
    while (stream->top > 0 && stream->cut != OOS_LOGSTREAM_TOO_LARGE) {
        if (next_entry(stream)) {
            climb(stream);
            return true;
        }
        pop_level(stream);
    }
    return false;
}

static ssize_t fill_ahead(void *context, char *bytes, size_t capacity)
{
    oos_logstream *stream = context;
    return stream->cut == OOS_LOGSTREAM_TOO_LARGE ? 0 : read_level(stream, stream->top, bytes, capacity);
}

/* From the thread that unpacks; started once the file has shown to be large. */
static bool read_ahead(oos_logstream *stream, char *bytes, size_t capacity, size_t *ret_count)
{
    if (stream->top == 0 || stream->file_bytes < AHEAD_FROM_BYTES) return false;
    if (!stream->ahead && !(stream->ahead = oos_readahead_start(fill_ahead, stream))) return false;
    *ret_count = oos_readahead_take(stream->ahead, bytes, capacity);
    stream->file_bytes += *ret_count;
    return true; /* so some were given before */
}

static oomsight_status read_bytes(oos_logstream *stream, char *bytes, size_t capacity, size_t *ret_count,
                                  oomsight_error *reterr)
{
    size_t filled = 0;
    if (read_ahead(stream, bytes, capacity, ret_count)) return OOMSIGHT_OK;
    while (filled < capacity) {
        if (stream->cut == OOS_LOGSTREAM_TOO_LARGE) break;
        ssize_t const count = read_level(stream, stream->top, bytes + filled, capacity - filled);
        if (count < 0 && stream->top == 0)
            return oos_fail(reterr, OOMSIGHT_IO, "%s", oos_errno_text(stream->read_errno));
        if (count <= 0) break;
        filled += (size_t)count;
        if (stream->fd >= 0 && stream->top == 0) break; /* a pipe gives what it has */
    }
    stream->file_bytes += filled;
    stream->gave |= filled > 0;
    oos_assert(filled <= capacity);
    *ret_count = filled;
    return OOMSIGHT_OK;
}

enum { WIDE_BYTES = 8 << 10 };

static unsigned unit_at(const oos_logstream *stream, const unsigned char *at)
{
    return stream->big_endian ? (unsigned)at[0] << 8 | at[1] : (unsigned)at[1] << 8 | at[0];
}

static size_t put_utf8(uint32_t letter, char *to)
{
    if (letter < 0x80) {
        to[0] = (char)letter;
        return 1;
    }
    oos_assert(letter <= 0x10ffff);
    size_t const len = letter < 0x800 ? 2 : letter < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len - 1; i > 0; i--, letter >>= 6) to[i] = (char)(0x80 | (letter & 0x3f));
    to[0] = (char)(first[len] | letter);
    return len;
}

/* UTF-16 of `from` as UTF-8 into `to`, which has room for half as much again. What is not whole waits. */
static size_t narrow(oos_logstream *stream, const unsigned char *from, size_t count, char *to)
{
    size_t at = 0, len = 0;
    while (at + 2 <= count) {
        uint32_t letter = unit_at(stream, from + at);
        size_t used = 2;
        if (letter >= 0xd800 && letter < 0xdc00) {
            if (at + 4 > count) break;
            uint32_t const low = unit_at(stream, from + at + 2);
            bool const pair = low >= 0xdc00 && low < 0xe000;
            letter = pair ? 0x10000 + ((letter - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
            used = pair ? 4 : 2;
        } else if (letter >= 0xdc00 && letter < 0xe000) {
            letter = 0xfffd;
        }
        if (letter != 0xfeff) len += put_utf8(letter, to + len);
        at += used;
    }
    stream->odd_count = count - at;
    oos_assert(stream->odd_count <= sizeof stream->odd && len <= WIDE_BYTES * 2);
    memcpy(stream->odd, from + at, stream->odd_count);
    return len;
}

/* A byte order mark, and letters of which at least every other has an empty byte, as those of a log have. */
static bool is_wide(const char *bytes, size_t count, bool big_endian)
{
    enum { LOOKED_AT = 256 };
    size_t zeros = 0, units = 0;
    if (count < 4 || memcmp(bytes, big_endian ? "\xfe\xff" : "\xff\xfe", 2) != 0) return false;
    for (size_t at = 2; at + 2 <= oos_min(count, LOOKED_AT); at += 2, units++)
        zeros += bytes[at + !big_endian] == '\0';
    return zeros * 2 >= units;
}

/* The next piece of a wide text, narrowed, into the stream's own buffer. */
static oomsight_status refill(oos_logstream *stream, const unsigned char *first, size_t first_count,
                              oomsight_error *reterr)
{
    unsigned char raw[WIDE_BYTES + sizeof stream->odd];
    size_t const kept = stream->odd_count;
    oos_assert(kept + first_count <= sizeof raw);
    size_t count = first_count;
    memcpy(raw, stream->odd, kept);
    if (first)
        memcpy(raw + kept, first, count);
    else
        OOS_TRY(read_bytes(stream, (char *)raw + kept, WIDE_BYTES, &count, reterr));
    stream->narrow_at = 0;
    stream->narrow_len = narrow(stream, raw, kept + count, stream->narrow);
    stream->narrow_end = count == 0;
    return OOMSIGHT_OK;
}

oomsight_status oos_logstream_read(oos_logstream *stream, char *bytes, size_t capacity, size_t *ret_count,
                                   oomsight_error *reterr)
{
    if (stream->file_bytes == 0) {
        stream->wide = false;
        stream->odd_count = stream->narrow_at = stream->narrow_len = 0;
        OOS_TRY(read_bytes(stream, bytes, oos_min(capacity, WIDE_BYTES), ret_count, reterr));
        stream->big_endian = is_wide(bytes, *ret_count, true);
        if (!stream->big_endian && !is_wide(bytes, *ret_count, false)) return OOMSIGHT_OK;
        if (!stream->narrow) stream->narrow = malloc(WIDE_BYTES * 2);
        if (!stream->narrow) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
        stream->wide = true;
        OOS_TRY(refill(stream, (const unsigned char *)bytes, *ret_count, reterr));
    }
    if (!stream->wide) return read_bytes(stream, bytes, capacity, ret_count, reterr);
    while (stream->narrow_at == stream->narrow_len && !stream->narrow_end)
        OOS_TRY(refill(stream, NULL, 0, reterr));
    *ret_count = oos_min(capacity, stream->narrow_len - stream->narrow_at);
    if (*ret_count) memcpy(bytes, stream->narrow + stream->narrow_at, *ret_count);
    stream->narrow_at += *ret_count;
    return OOMSIGHT_OK;
}

oos_logstream_cut oos_logstream_cut_reason(const oos_logstream *stream)
{
    return stream->cut;
}

bool oos_logstream_is_lost(const oos_logstream *stream)
{
    return stream->cut == OOS_LOGSTREAM_DAMAGED && !stream->gave;
}

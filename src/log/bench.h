/* What scanning needs while it works: a window, a buffer to read into, hits, scratch. One of these serves any number of
 * scans of one thread, one at a time, so that a thousand quiet files cost what they remember and no more. */
#ifndef OOS_EXPLAIN_BENCH_H
#define OOS_EXPLAIN_BENCH_H

#include "base/text.h"
#include "match/literals.h"

enum {
    /* Lines are cut to this many bytes on either side of their first hit; an engine prints 19 KiB of arguments on one. */
    OOS_LINE_MAX_BYTES = 32 << 10,
    OOS_BENCH_READ_BYTES = 512 << 10,
    OOS_BENCH_AFTER_BYTES = 4 << 10,
    OOS_BENCH_KEEP_BYTES = OOS_LINE_MAX_BYTES * 2 + OOS_BENCH_AFTER_BYTES,
    OOS_BENCH_WINDOW_BYTES = OOS_BENCH_READ_BYTES + 2 * OOS_BENCH_KEEP_BYTES,
    OOS_BENCH_HITS_MAX = 64 << 10,
    OOS_BENCH_JOINED_BYTES = 6 << 10
};

/* Where a line starts in its file, and the time it bears. */
typedef struct oos_line_place {
    uint64_t byte;
    int64_t time; /* nanoseconds since 1970, OOS_TIME_NONE */
} oos_line_place;

typedef struct oos_places {
    oos_line_place *list;
    size_t count, room;
} oos_places;

struct oos_linescan;

typedef struct oos_bench {
    oos_literal_scan *literals;
    struct oos_linescan *holder; /* whose text is in the window; NULL: nobody's */
    char *window, *raw;
    oos_hit *hits;
    oos_places places; /* of the holder's lines */
    oos_text clean;
    char *line, *joined; /* the collector's: one line without colour, one message put together */
} oos_bench;

oomsight_status oos_bench_create(const oos_literals *literals, oos_bench **ret_bench, oomsight_error *reterr);
void oos_bench_free(oos_bench *bench); /* NULL is fine; after the scans that used it */

#endif

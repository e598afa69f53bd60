/* HTTP transfers, several at a time. The one edge to libcurl, which is loaded when the first transfer is asked for:
 * linking it costs 5 ms at every start (33 libraries), and most plans never leave the machine. */
#ifndef OOS_INPUT_HUB_FETCH_H
#define OOS_INPUT_HUB_FETCH_H

#include "base/arena.h"
#include "base/error.h"

/* One file, or the first bytes of one. */
typedef struct oos_fetch {
    const char *url;
    size_t
        first_bytes; /* 0: the whole file; else a ranged read of so many bytes, of which there may be fewer */
    size_t limit_bytes; /* a whole file longer than this is refused */
    /* answer */
    long http;            /* 200, 206, 404, ...; 0: no answer came */
    oos_view bytes;       /* the arena's */
    uint64_t total_bytes; /* of the whole file, 0: not told */
} oos_fetch;

typedef struct oos_fetch_options {
    const char *endpoint; /* "https://huggingface.co": the token goes to this host and to no other */
    const char *token;    /* NULL: none */
    long timeout_s;       /* to connect, and with less than a kilobyte a second */
    int64_t deadline_ms;  /* of CLOCK_MONOTONIC: what has not come by then does not come; 0: none */
} oos_fetch_options;

/* Every answer of the server is success here, 404 too: see `http`. Failure is NETWORK (no answer, a body cut short, a
 * redirect without end, too late), MALFORMED (too long), UNSUPPORTED (no libcurl) or NOMEM; then some answers may be empty. */
oomsight_status oos_fetch_all(oos_arena *arena, const oos_fetch_options *options, oos_fetch *list,
                              size_t count, oomsight_error *reterr);

#endif

/* From bytes to the lines that matter: the stream is scanned for literals, and each line that holds at least one is
 * handed on once, with its number and with what follows it. Lines without a hit cost nothing but the scan. */
#ifndef OOS_EXPLAIN_SCAN_H
#define OOS_EXPLAIN_SCAN_H

#include "input/logstream.h"
#include "match/literals.h"

/* Lines are cut to this many bytes on either side of their first hit. */
enum { OOS_LINE_MAX_BYTES = 16 << 10, OOS_LINE_HITS_MAX = 64 };

typedef struct oos_hit_line {
    uint64_t number; /* from 1, as an editor counts */
    oos_view text;   /* without its end; may hold colour codes */
    oos_view after;  /* some bytes that follow the line, at least the next few lines if there are any */
    const uint32_t *literals;
    size_t literal_count;
} oos_hit_line;

typedef struct oos_scan_result {
    uint64_t lines, bytes;
    bool cut_hits, cut_lines; /* more hits in a block, or longer lines, than are looked at */
    unsigned cleaned;         /* OOS_CLEAN_*: what had to be undone */
} oos_scan_result;

/* Scan the current file of `stream` to its end. `keep_going` (may be NULL) is asked at the end of the data and may wait
 * for more of it: a growing file. */
oomsight_status oos_scan_file(oos_logstream *stream, oos_literal_scan *literals,
                              void (*on_line)(void *context, const oos_hit_line *line), void *context,
                              bool (*keep_going)(void *context), oos_scan_result *ret_result,
                              oomsight_error *reterr);

#endif

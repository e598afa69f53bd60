/* From bytes to the lines that matter: the stream is scanned for literals, and each line that holds at least one is
 * handed on once, with its number and with what follows it. Lines without a hit cost nothing but the scan. */
#ifndef OOS_EXPLAIN_SCAN_H
#define OOS_EXPLAIN_SCAN_H

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

typedef struct oos_linescan_result {
    uint64_t lines, bytes;
    bool cut_hits, cut_lines; /* more hits in a block, or longer lines, than are looked at */
    unsigned cleaned;         /* OOS_CLEAN_*: what had to be undone */
} oos_linescan_result;

typedef struct oos_linescan oos_linescan;

/* One file. `literals` serves one scan at a time. */
oomsight_status oos_linescan_open(oos_literal_scan *literals,
                                  void (*on_line)(void *context, const oos_hit_line *line), void *context,
                                  oos_linescan **ret_scan, oomsight_error *reterr);
void oos_linescan_close(oos_linescan *scan); /* NULL is fine */

/* Where to put the next bytes; oos_linescan_took() says how many were put there. */
char *oos_linescan_room(oos_linescan *scan, size_t *ret_capacity);
oomsight_status oos_linescan_took(oos_linescan *scan, size_t count, oomsight_error *reterr);

/* Nothing more for now: hand on what waits for more. */
oomsight_status oos_linescan_settle(oos_linescan *scan, oomsight_error *reterr);

/* The file is over. */
oomsight_status oos_linescan_finish(oos_linescan *scan, oos_linescan_result *ret_result,
                                    oomsight_error *reterr);

#endif

/* From bytes to the lines that matter: the stream is scanned for literals, and each line that holds at least one is
 * handed on once, with its number and with what follows it. Lines without a hit cost nothing but the scan. */
#ifndef OOS_EXPLAIN_SCAN_H
#define OOS_EXPLAIN_SCAN_H

#include "log/bench.h"
#include "log/logtime.h"

enum { OOS_LINE_HITS_MAX = 64 };

typedef struct oos_hit_line {
    uint64_t number; /* from 1, as an editor counts */
    oos_view text;   /* without its end; may hold colour codes */
    bool torn;       /* not from its beginning: the line is longer than what is looked at */
    bool document;   /* of a text that is no log: see sniff.h */
    oos_view after;  /* some bytes that follow the line, at least the next few lines if there are any */
    const uint32_t *literals;
    size_t literal_count;
    /* Of a growing text; else 0 and OOS_TIME_NONE. */
    uint64_t first_byte, end_byte; /* in the file, before anything was undone */
    int64_t time;
} oos_hit_line;

/* Where a scan begins. All zero: a whole text that is read to its end. */
typedef struct oos_scan_origin {
    bool growing;         /* lines come now and then, whole ones as a rule; their places are kept */
    uint64_t byte, lines; /* before what will be read */
} oos_scan_origin;

typedef struct oos_linescan_result {
    uint64_t lines, bytes;
    bool cut_hits, cut_lines; /* more hits in a block, or longer lines, than are looked at */
    bool binary;              /* no text at all: nothing of it was handed on */
    unsigned cleaned;         /* OOS_CLEAN_*: what had to be undone */
} oos_linescan_result;

typedef struct oos_linescan oos_linescan;

/* One file. The bench may serve others in between. */
oomsight_status oos_linescan_open(oos_bench *bench, const oos_scan_origin *origin,
                                  void (*on_line)(void *context, const oos_hit_line *line), void *context,
                                  oos_linescan **ret_scan, oomsight_error *reterr);
void oos_linescan_close(oos_linescan *scan); /* NULL is fine */

/* Where to put the next bytes; oos_linescan_took() says how many were put there. NULL: no memory. */
char *oos_linescan_room(oos_linescan *scan, size_t *ret_capacity);
oomsight_status oos_linescan_took(oos_linescan *scan, size_t count, oomsight_error *reterr);

/* Lines wait for what follows them, or for the decision how to read them. */
bool oos_linescan_waits(const oos_linescan *scan);
/* The first byte that has not been handed on, and the lines before it. */
void oos_linescan_place(const oos_linescan *scan, uint64_t *ret_byte, uint64_t *ret_lines);
uint64_t oos_linescan_lines(const oos_linescan *scan); /* of a growing text: all that were read */

/* Nothing more for now: hand on what waits for more. */
oomsight_status oos_linescan_settle(oos_linescan *scan, oomsight_error *reterr);

/* The file is over. */
oomsight_status oos_linescan_finish(oos_linescan *scan, oos_linescan_result *ret_result,
                                    oomsight_error *reterr);

#endif

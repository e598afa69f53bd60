/* From lines to incidents: groups what belongs to one failure, keeps figures and evidence, bounded in memory however
 * long the log is and however often it fails. */
#ifndef OOS_EXPLAIN_COLLECT_H
#define OOS_EXPLAIN_COLLECT_H

#include "explain/incident.h"
#include "log/scan.h"

typedef struct oos_collector oos_collector;

/* `on_incident` gets each incident when it is over. All of it, strings too, is the collector's and valid during the call
 * only: whoever wants to keep it copies it. */
oomsight_status oos_collector_create(const oos_signals *signals, oos_bench *bench,
                                     void (*on_incident)(void *context, const oos_incident *incident),
                                     void *context, oos_collector **ret_collector, oomsight_error *reterr);

void oos_collector_free(oos_collector *collector); /* NULL is fine */

void oos_collector_file(oos_collector *collector, const char *name); /* a new file begins */
void oos_collector_line(void *collector, const oos_hit_line *line);  /* to be given to oos_scan_file() */
/* Nothing more for now: what is open is told. What still comes of it (somebody passes the failure on) is not told again. */
void oos_collector_settle(oos_collector *collector);
void oos_collector_part(oos_collector *collector); /* the text goes on in another file, with lines from 1 */
/* The file is over. `binary`: it was no text. */
void oos_collector_end(oos_collector *collector, uint64_t lines, bool binary);

/* Where a collector stands, to go on from there: with the lines behind `incident` to come again if one is open. */
typedef struct oos_collector_point {
    const oos_incident *history; /* since the last start of the engine, and before the open incident */
    bool open; /* an incident is open and not told: first_part, first_byte and first_line say where */
    bool told; /* the last one is told, but may go on */
    uint32_t first_part;
    uint64_t first_byte, first_line;
    uint64_t version; /* changes when the history may have changed */
} oos_collector_point;

oos_collector_point oos_collector_at(const oos_collector *collector);
void oos_collector_resume(oos_collector *collector, const oos_incident *history, bool told);
uint64_t oos_collector_touched(const oos_collector *collector);            /* counts signs of failure */
const oos_incident *oos_collector_history(const oos_collector *collector); /* figures since the last start */

#endif

/* From lines to incidents: groups what belongs to one failure, keeps figures and evidence, bounded in memory however
 * long the log is and however often it fails. */
#ifndef OOS_EXPLAIN_COLLECT_H
#define OOS_EXPLAIN_COLLECT_H

#include "explain/incident.h"
#include "explain/scan.h"

typedef struct oos_collector oos_collector;

/* `on_incident` gets each incident when it is over. All of it, strings too, is the collector's and valid during the call
 * only: whoever wants to keep it copies it. */
oomsight_status oos_collector_create(const oos_signals *signals,
                                     void (*on_incident)(void *context, const oos_incident *incident),
                                     void *context, oos_collector **ret_collector, oomsight_error *reterr);

void oos_collector_free(oos_collector *collector); /* NULL is fine */

void oos_collector_file(oos_collector *collector, const char *name); /* a new file begins */
void oos_collector_line(void *collector, const oos_hit_line *line);  /* to be given to oos_scan_file() */
void oos_collector_settle(oos_collector *collector); /* nothing more for now: what is open is over */
void oos_collector_end(oos_collector *collector, uint64_t lines); /* the file is over */

#endif

/* What an agent counts, in the text format of Prometheus (docs/reference/formats/agent.md). Labels are our own words and names that
 * keep the rules of Kubernetes: nothing of a log's text gets here. The number of series is bounded. */
#ifndef OOS_REPORT_METRICS_H
#define OOS_REPORT_METRICS_H

#include "base/text.h"
#include "follow/agent.h"

typedef struct oos_metrics oos_metrics;

oos_metrics *oos_metrics_create(void);       /* NULL: no memory */
void oos_metrics_free(oos_metrics *metrics); /* NULL is fine */

/* One more; `now` in nanoseconds since 1970. */
void oos_metrics_incident(oos_metrics *metrics, const oos_origin *origin, const oos_incident *incident,
                          int64_t now);
void oos_metrics_write_error(oos_metrics *metrics);

/* All of it. Keeps in mind what the engines of the agent's files told last. */
void oos_report_metrics(oos_metrics *metrics, const oos_agent *agent, oos_text *text);

#endif

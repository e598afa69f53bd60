/* Explanations on paper: text for people, JSON per the contract, Markdown, GitHub annotations, SARIF. */
#ifndef OOS_REPORT_EXPLAIN_H
#define OOS_REPORT_EXPLAIN_H

#include "base/text.h"
#include "explain/explain.h"

/* One JSON object per incident, one per line. */
void oos_report_incident_json(const oos_incident *incident, oos_text *text);

#endif

/* A dry run as text and JSON. */
#ifndef OOS_REPORT_DRYRUN_REPORT_H
#define OOS_REPORT_DRYRUN_REPORT_H

#include "base/text.h"
#include "dryrun/dryrun.h"

void oos_report_dryrun_text(oos_text *text, const oos_dryrun *run, const oomsight_render_params *params);
void oos_report_dryrun_json(oos_text *text, const oos_dryrun *run);

#endif

/* A guarded run as text and JSON. */
#ifndef OOS_REPORT_RUN_H
#define OOS_REPORT_RUN_H

#include "base/text.h"
#include "run/growth.h"

void oos_report_run_text(oos_text *text, const oos_run_state *state, const oos_growth *growth,
                         size_t growth_count, const oomsight_render_params *params);
void oos_report_run_json(oos_text *text, const oos_run_state *state, const oos_growth *growth,
                         size_t growth_count);

#endif

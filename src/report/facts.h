/* Tables of what is known. */
#ifndef OOS_REPORT_FACTS_H
#define OOS_REPORT_FACTS_H

#include "base/text.h"
#include "facts/gpu.h"
#include "facts/rules.h"

void oos_report_gpus(oos_text *text, const oos_gpus *gpus, const oomsight_render_params *params);
void oos_report_engines(oos_text *text, const oos_rule_book *book, const oomsight_render_params *params);

#endif

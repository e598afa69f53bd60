/* Tables of what is known. */
#ifndef OOS_REPORT_FACTS_H
#define OOS_REPORT_FACTS_H

#include "base/text.h"
#include "facts/flags.h"
#include "facts/gpu.h"
#include "facts/rules.h"

void oos_report_gpus(oos_text *text, const oos_gpus *gpus, const oomsight_render_params *params);
/* One rule book for each engine of oos_engine_list, in its order. */
void oos_report_engines(oos_text *text, const oos_rule_book *const *books,
                        const oomsight_render_params *params);

/* Words that a shell may offer, one a line: "gpu words", "version words", "flag words" of the newest version, "phase words". False: no such list. */
bool oos_report_words(oos_text *text, const char *what, const oos_gpus *gpus, const oos_rule_book *book,
                      const oos_flag_table *flags);

#endif

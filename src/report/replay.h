/* The analysis of a trace as text, JSON, Markdown and a single HTML page. */
#ifndef OOS_REPORT_REPLAY_H
#define OOS_REPORT_REPLAY_H

#include "base/json_write.h"
#include "base/text.h"
#include "replay/analysis.h"
#include "report/style.h"

void oos_replay_text(const oos_analysis *analysis, const oomsight_render_params *params, oos_text *text);
void oos_replay_markdown(const oos_analysis *analysis, const oomsight_render_params *params, oos_text *text);
void oos_replay_json(const oos_analysis *analysis, oos_text *text);
oomsight_status oos_replay_html(const oos_analysis *analysis, const oomsight_render_params *params,
                                oos_text *text, oomsight_error *reterr);

/* ---- pieces they share ----------------------------------------------------------------------------------------- */

typedef struct oos_size_text {
    char text[32];
} oos_size_text;
oos_size_text oos_size_of(uint64_t bytes);

/* "ok", "OOM at event 12", "refused" */
oos_size_text oos_outcome_word(const oos_outcome *outcome, bool refused);

/* The change of settings that survives and costs least, for a run that ended in OOM; NULL when there is none. */
const oos_what_if *oos_replay_advice(const oos_analysis *analysis);
/* One to five lines: what happened, and what to paste. */
void oos_replay_verdict(const oos_analysis *analysis, const oos_style *style);

/* A list of {name, bytes, blocks}. */
void oos_replay_holders(oos_json_writer *w, const char *key, const oos_block_holder *list, size_t count);

/* The release the run used. */
oos_size_text oos_torch_word(const oos_analysis *analysis);
uint64_t oos_device_total(const oos_analysis *analysis, const oos_scenario *scenario, bool *ret_known);

#endif

/* Reports as one HTML file without network: web/report.html with the JSON of the answer put into it, so that the page
 * shows the very figures of the other formats. Allocator replays have a page of their own (replay_html.c). */
#ifndef OOS_REPORT_HTML_H
#define OOS_REPORT_HTML_H

#include "dryrun/dryrun.h"
#include "plan/plan.h"
#include "report/explain.h"
#include "report/words.h"

void oos_report_plan_html(oos_text *text, const oos_plan *const *plans, size_t count,
                          const oomsight_render_params *params);
void oos_report_explain_html(oos_text *text, const oos_explain_page *page,
                             const oomsight_render_params *params);
void oos_report_dryrun_html(oos_text *text, const oos_dryrun *run, const oomsight_render_params *params);

/* JSON as it may stand inside <script>: there a `<` could end it, and in JSON it only occurs in strings. */
void oos_html_put_json(oos_text *text, oos_view json);

/* The end of a page. In Chinese it holds the catalogue, with the sentences of `pairs` before it, and a script that looks
 * the page's words up in it. */
void oos_html_put_end(oos_text *text, const char *rest, bool chinese, const oos_phrase *pairs,
                      size_t pair_count);

/* Plain text as it may stand between tags. */
void oos_html_put_text(oos_text *text, oos_view plain);

#endif

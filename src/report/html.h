/* Reports as one HTML file without network: web/report.html with the JSON of the answer put into it, so that the page
 * shows the very figures of the other formats. Allocator replays have a page of their own (replay_html.c). */
#ifndef OOS_REPORT_HTML_H
#define OOS_REPORT_HTML_H

#include "dryrun/dryrun.h"
#include "plan/plan.h"
#include "report/explain_report.h"
#include "report/words.h"

void oos_report_plan_html(oos_text *text, const oos_plan *const *plans, size_t count,
                          const oomsight_render_params *params);
void oos_report_explain_html(oos_text *text, const oos_explain_page *page,
                             const oomsight_render_params *params);
void oos_report_dryrun_html(oos_text *text, const oos_dryrun *run, const oomsight_render_params *params);

/* How the text for readers without scripts is printed. */
oomsight_render_params oos_html_plain(const oomsight_render_params *params);

/* What a page of web/ becomes: @DATA@ is the JSON, @TEXT@ (where the page has it) the plain text. In Chinese its end holds the
 * catalogue, with the sentences of `pairs` before it, and a script that looks the page's words up in it. */
typedef struct oos_html_parts {
    const char *page;
    oos_text plain, data; /* given up by oos_html_put_page() */
    bool chinese;
    const oos_phrase *pairs;
    size_t pair_count;
} oos_html_parts;
void oos_html_put_page(oos_text *text, oos_html_parts *parts);

#endif

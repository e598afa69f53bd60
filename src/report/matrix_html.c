/* The heat map: web/matrix.html with the summary put into it. The page computes nothing; without scripts it is the text. */
#include "report/report.h"

extern const char oos_matrix_page[]; /* web/matrix.html, made by tools/embed_text.py */

void oos_report_matrix_html(oos_text *text, const oos_matrix_sum *sum, const oomsight_render_params *params)
{
    oomsight_render_params const render = oos_html_plain(params);
    oos_html_parts parts = {.page = oos_matrix_page, .chinese = oos_words_chinese(params)};
    oos_report_matrix_text(&parts.plain, sum, &render);
    oos_report_matrix_json(&parts.data, sum);
    oos_html_put_page(text, &parts);
}

/* The heat map: web/matrix.html with the summary put into it. The page computes nothing; without scripts it is the text. */
#include "report/html.h"
#include "report/matrix.h"

extern const char oos_matrix_page[]; /* web/matrix.html, made by tools/embed_text.py */
#define TEXT_MARK "@TEXT@"
#define DATA_MARK "@DATA@"

void oos_report_matrix_html(oos_text *text, const oos_matrix_sum *sum, const oomsight_render_params *params)
{
    bool const chinese = oos_words_chinese(params);
    oomsight_render_params render = OOMSIGHT_RENDER_PARAMS_INIT;
    render.language = chinese ? "zh" : "en";
    oos_text plain = {0}, data = {0};
    oos_report_matrix_text(&plain, sum, &render);
    oos_report_matrix_json(&data, sum);
    const char *text_mark = strstr(oos_matrix_page, TEXT_MARK), *data_mark = strstr(text_mark, DATA_MARK);
    oos_text_add(text, (oos_view){oos_matrix_page, (size_t)(text_mark - oos_matrix_page)});
    oos_html_put_text(text, (oos_view){plain.ptr ? plain.ptr : "", plain.len});
    text_mark += strlen(TEXT_MARK);
    oos_text_add(text, (oos_view){text_mark, (size_t)(data_mark - text_mark)});
    oos_html_put_json(text, (oos_view){data.ptr ? data.ptr : "", data.len});
    oos_html_put_end(text, data_mark + strlen(DATA_MARK), chinese, NULL, 0);
    text->failed |= plain.failed || data.failed;
    oos_text_free(&plain);
    oos_text_free(&data);
}

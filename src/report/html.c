/* The page of a plan, an explanation or a dry run. Nothing is computed here: the documents are those of the JSON reports,
 * the text for readers without scripts is the text report. */
#include "report/html.h"
#include "base/json_write.h"
#include "report/dryrun.h"
#include "report/plan.h"

extern const char oos_report_page[]; /* web/report.html, made by tools/embed_text.py */
#define TEXT_MARK "@TEXT@"
#define DATA_MARK "@DATA@"

/* What a page is made of. `documents` is a JSON array, `about` another with one object per document. */
typedef struct parts {
    const char *command;
    oos_text documents, about, plain;
} parts;

void oos_html_put_json(oos_text *text, oos_view json)
{
    while (json.len) {
        const char *less = memchr(json.ptr, '<', json.len);
        size_t const len = less ? (size_t)(less - json.ptr) : json.len;
        oos_text_add(text, (oos_view){json.ptr, len});
        if (less) oos_text_put(text, "\\u003c");
        json = oos_view_slice(json, less ? len + 1 : len, json.len);
    }
}

static void put_escaped(oos_text *text, oos_view plain)
{
    for (size_t i = 0, from = 0; i <= plain.len; i++) {
        bool const end = i == plain.len;
        if (!end && plain.ptr[i] != '<' && plain.ptr[i] != '&') continue;
        oos_text_add(text, (oos_view){plain.ptr + from, i - from});
        if (!end) oos_text_put(text, plain.ptr[i] == '<' ? "&lt;" : "&amp;");
        from = i + 1;
    }
}

static oos_view view_of(const oos_text *text)
{
    return (oos_view){text->ptr ? text->ptr : "", text->len};
}

static void put_page(oos_text *text, parts *p)
{
    const char *text_mark = strstr(oos_report_page, TEXT_MARK), *data_mark = strstr(text_mark, DATA_MARK);
    oos_text_add(text, (oos_view){oos_report_page, (size_t)(text_mark - oos_report_page)});
    put_escaped(text, view_of(&p->plain));
    text_mark += strlen(TEXT_MARK);
    oos_text_add(text, (oos_view){text_mark, (size_t)(data_mark - text_mark)});
    oos_text_printf(text, "{\"command\":\"%s\",\"version\":\"%s\",\"about\":[", p->command, OOMSIGHT_VERSION);
    oos_html_put_json(text, view_of(&p->about));
    oos_text_put(text, "],\"documents\":[");
    oos_html_put_json(text, view_of(&p->documents));
    oos_text_put(text, "]}");
    oos_text_put(text, data_mark + strlen(DATA_MARK));
    text->failed |= p->documents.failed || p->about.failed || p->plain.failed;
    oos_text_free(&p->documents);
    oos_text_free(&p->about);
    oos_text_free(&p->plain);
}

static void put_about(oos_text *about, const char *key, const char *value)
{
    oos_json_writer w = {.text = about};
    if (about->len) oos_text_put(about, ",");
    oos_json_begin_object(&w);
    oos_json_field_str(&w, key, value);
    oos_json_end_object(&w);
}

void oos_report_plan_html(oos_text *text, const oos_plan *const *plans, size_t count)
{
    static const oomsight_render_params render = OOMSIGHT_RENDER_PARAMS_INIT;
    parts p = {.command = "plan"};
    for (size_t i = 0; i < count; i++) {
        const char *path = plans[i]->setup->model->path;
        const char *slash = path ? strrchr(path, '/') : NULL;
        if (i) oos_text_put(&p.documents, ",");
        oos_report_plan_json(&p.documents, plans[i]);
        oos_report_plan_text(&p.plain, plans[i], &render);
        put_about(&p.about, "model", slash && slash[1] ? slash + 1 : path);
    }
    put_page(text, &p);
}

void oos_report_explain_html(oos_text *text, const oos_explain_page *page)
{
    static const oomsight_render_params render = OOMSIGHT_RENDER_PARAMS_INIT;
    parts p = {.command = "explain"};
    oos_report_explain_json(page, &p.documents);
    /* One object per line: a line feed inside a string is written as an escape. */
    while (p.documents.len && p.documents.ptr[p.documents.len - 1] == '\n') p.documents.len--;
    for (size_t i = 0; i < p.documents.len; i++)
        if (p.documents.ptr[i] == '\n') p.documents.ptr[i] = ',';
    oos_style const style = oos_style_of(&p.plain, &render);
    oos_report_explain_text(page, &style);
    for (size_t i = 0; i < page->explanation->count; i++)
        put_about(&p.about, "title", oos_report_incident_title(page, &page->explanation->incidents[i]));
    put_page(text, &p);
}

void oos_report_dryrun_html(oos_text *text, const oos_dryrun *run)
{
    static const oomsight_render_params render = OOMSIGHT_RENDER_PARAMS_INIT;
    parts p = {.command = "dryrun"};
    oos_report_dryrun_json(&p.documents, run);
    oos_report_dryrun_text(&p.plain, run, &render);
    oos_text_put(&p.about, "{}");
    put_page(text, &p);
}

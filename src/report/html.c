/* The page of a plan, an explanation or a dry run. Nothing is computed here: the documents are those of the JSON reports,
 * the text for readers without scripts is the text report. */
#include "report/report.h"
#include "base/json_write.h"

/* web/report.html and web/words.js, made by tools/embed_text.py */
extern const char oos_report_page[], oos_words_script[];
#define TEXT_MARK "@TEXT@"
#define DATA_MARK "@DATA@"
enum { PAIRS_MAX = 256 };

/* What a page is made of. `documents` is a JSON array, `about` another with one object per document. */
typedef struct parts {
    const char *command;
    oos_text documents, about, plain;
    bool chinese;
    oos_phrase pairs[PAIRS_MAX]; /* sentences of the documents that have translations of their own */
    size_t pair_count;
} parts;

/* JSON as it may stand inside <script>: there a `<` could end it, and in JSON it only occurs in strings. */
static void put_json(oos_text *text, oos_view json)
{
    while (json.len) {
        const char *less = memchr(json.ptr, '<', json.len);
        size_t const len = less ? (size_t)(less - json.ptr) : json.len;
        oos_text_add(text, (oos_view){json.ptr, len});
        if (less) oos_text_put(text, "\\u003c");
        json = oos_view_slice(json, less ? len + 1 : len, json.len);
    }
}

void oos_html_put_plain(oos_text *text, oos_view plain)
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

static void put_pair(oos_json_writer *w, const oos_phrase *pair)
{
    oos_json_begin_array(w);
    oos_json_put_str(w, pair->en);
    oos_json_put_str(w, pair->zh);
    oos_json_end_array(w);
}

static void put_end(oos_text *text, const char *rest, const oos_html_parts *p)
{
    const char *end = strstr(rest, "</body>");
    if (!p->chinese) {
        oos_text_put(text, rest);
        return;
    }
    oos_text json = {0};
    oos_json_writer w = {.text = &json};
    oos_json_begin_array(&w);
    for (size_t i = 0; i < p->pair_count; i++) put_pair(&w, &p->pairs[i]);
    for (const oos_phrase *phrase = oos_phrases_zh; phrase->en; phrase++) put_pair(&w, phrase);
    oos_json_end_array(&w);
    oos_text_add(text, (oos_view){rest, (size_t)(end - rest)});
    oos_text_put(text, "<script type=\"application/json\" id=\"words\">");
    put_json(text, view_of(&json));
    oos_text_put(text, "</script>\n<script>\n"); /* the policy has its hash, by tools/embed_text.py */
    oos_text_put(text, oos_words_script);
    oos_text_put(text, "</script>\n");
    oos_text_put(text, end);
    text->failed |= json.failed;
    oos_text_free(&json);
}

void oos_html_put_page(oos_text *text, oos_html_parts *p)
{
    const char *from = p->page, *text_mark = strstr(from, TEXT_MARK);
    if (text_mark) {
        oos_text_add(text, (oos_view){from, (size_t)(text_mark - from)});
        oos_html_put_plain(text, view_of(&p->plain));
        from = text_mark + strlen(TEXT_MARK);
    }
    const char *data_mark = strstr(from, DATA_MARK);
    oos_text_add(text, (oos_view){from, (size_t)(data_mark - from)});
    put_json(text, view_of(&p->data));
    put_end(text, data_mark + strlen(DATA_MARK), p);
    text->failed |= p->plain.failed || p->data.failed;
    oos_text_free(&p->plain);
    oos_text_free(&p->data);
}

/* Phases in words. */
static void put_points(oos_text *text)
{
    oos_json_writer w = {.text = text};
    oos_json_begin_object(&w);
    for (oos_phase phase = 0; phase < OOS_PHASE_COUNT; phase++)
        if (*oos_report_point(phase)) oos_json_field_str(&w, oos_phase_word(phase), oos_report_point(phase));
    oos_json_end_object(&w);
}

static void put_report(oos_text *text, parts *p)
{
    oos_html_parts whole = {.page = oos_report_page,
                            .plain = p->plain,
                            .chinese = p->chinese,
                            .pairs = p->pairs,
                            .pair_count = p->pair_count};
    oos_text_printf(&whole.data, "{\"command\":\"%s\",\"version\":\"%s\",\"points\":", p->command,
                    OOMSIGHT_VERSION);
    put_points(&whole.data);
    oos_text_put(&whole.data, ",\"about\":[");
    oos_text_add(&whole.data, view_of(&p->about));
    oos_text_put(&whole.data, "],\"documents\":[");
    oos_text_add(&whole.data, view_of(&p->documents));
    oos_text_put(&whole.data, "]}");
    whole.data.failed |= p->documents.failed || p->about.failed;
    oos_text_free(&p->documents);
    oos_text_free(&p->about);
    oos_html_put_page(text, &whole);
}

/* What the document has no words for: the reason behind the headline, and the trade-off of each fix. */
static void put_plan_about(oos_text *about, const oos_plan *plan, const char *model)
{
    oos_json_writer w = {.text = about};
    char reason[512], chance[32];
    if (about->len) oos_text_put(about, ",");
    oos_report_reason(plan, reason, sizeof reason);
    oos_report_chance(plan, chance, sizeof chance);
    oos_json_begin_object(&w);
    oos_json_field_str(&w, "model", model);
    oos_json_field_str(&w, "reason", reason);
    oos_json_field_str(&w, "chance", chance);
    oos_json_field_array(&w, "trade_offs");
    for (size_t i = 0; i < plan->help.fix_count; i++) {
        oos_text trade = {0};
        oos_report_trade_off(&trade, plan->help.fixes[i].gives_up);
        oos_json_put_str(&w, trade.ptr);
        about->failed |= trade.failed;
        oos_text_free(&trade);
    }
    oos_json_end_array(&w);
    oos_json_end_object(&w);
}

oomsight_render_params oos_html_plain(const oomsight_render_params *params)
{
    oomsight_render_params render = OOMSIGHT_RENDER_PARAMS_INIT;
    render.language = oos_words_chinese(params) ? "zh" : "en";
    return render;
}

void oos_report_plan_html(oos_text *text, const oos_plan *const *plans, size_t count,
                          const oomsight_render_params *params)
{
    oomsight_render_params render = oos_html_plain(params);
    render.verbose = 1;
    parts p = {.command = "plan", .chinese = oos_words_chinese(params)};
    for (size_t i = 0; i < count; i++) {
        char name[160];
        if (i) oos_text_put(&p.documents, ",");
        oos_report_plan_json(&p.documents, plans[i]);
        oos_report_plan_text(&p.plain, plans[i], &render);
        put_plan_about(&p.about, plans[i], oos_report_model_name(plans[i]->model->path, name, sizeof name));
    }
    put_report(text, &p);
}

static void take_pair(parts *p, oos_sentence words)
{
    if (words.en && words.zh && p->pair_count < PAIRS_MAX)
        p->pairs[p->pair_count++] = (oos_phrase){words.en, words.zh};
}

static void take_pairs(parts *p, const oos_advice *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        take_pair(p, list[i].why);
        take_pair(p, list[i].cost);
    }
}

/* The title, and in words where it happened. */
static void put_incident_about(oos_text *about, const oos_explain_page *page, const oos_incident *incident)
{
    oos_json_writer w = {.text = about};
    bool const refused =
        incident->phase == OOS_PHASE_KV_SIZING || incident->phase == OOS_PHASE_INIT_FREE_MEMORY_CHECK;
    if (about->len) oos_text_put(about, ",");
    oos_json_begin_object(&w);
    oos_json_field_str(&w, "title", oos_report_incident_title(page, incident));
    oos_json_field_str(&w, "where",
                       refused || !incident->is_oom ? ""
                                                    : oos_report_incident_where(incident, incident->phase));
    oos_json_field_str(&w, "engine", incident->engine ? oos_engine_title(incident->engine) : NULL);
    oos_json_field_str(&w, "cause", oos_cause_title(incident->cause));
    oos_json_field_array(&w, "also");
    for (size_t i = 0; i < incident->also_count; i++)
        oos_json_put_str(&w, oos_cause_title(incident->also[i]));
    oos_json_end_array(&w);
    oos_json_end_object(&w);
}

void oos_report_explain_html(oos_text *text, const oos_explain_page *page,
                             const oomsight_render_params *params)
{
    oomsight_render_params const render = oos_html_plain(params);
    parts p = {.command = "explain", .chinese = page->chinese};
    oos_report_explain_json(page, &p.documents);
    /* One object per line: a line feed inside a string is written as an escape. */
    while (p.documents.len && p.documents.ptr[p.documents.len - 1] == '\n') p.documents.len--;
    for (size_t i = 0; i < p.documents.len; i++)
        if (p.documents.ptr[i] == '\n') p.documents.ptr[i] = ',';
    oos_style const style = oos_style_of(&p.plain, &render);
    oos_report_explain_text(page, &style);
    for (size_t i = 0; i < page->explanation->count; i++) {
        const oos_incident *incident = &page->explanation->incidents[i];
        put_incident_about(&p.about, page, incident);
        take_pairs(&p, incident->fixes, incident->fix_count);
        take_pairs(&p, incident->dead_ends, incident->dead_end_count);
    }
    put_report(text, &p);
}

void oos_report_dryrun_html(oos_text *text, const oos_dryrun *run, const oomsight_render_params *params)
{
    oomsight_render_params const render = oos_html_plain(params);
    parts p = {.command = "dryrun", .chinese = oos_words_chinese(params)};
    oos_report_dryrun_json(&p.documents, run);
    oos_report_dryrun_text(&p.plain, run, &render);
    oos_json_writer w = {.text = &p.about};
    char name[160];
    oos_json_begin_object(&w);
    oos_json_field_str(&w, "model", run->model ? oos_report_model_name(run->model, name, sizeof name) : NULL);
    oos_json_field_u64(&w, "seconds", oos_u64_from(run->seconds));
    oos_json_end_object(&w);
    put_report(text, &p);
}

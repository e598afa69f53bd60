/* Explanations where nobody reads a terminal: Markdown for an issue, annotations for a GitHub job, SARIF for scanners. */
#include "report/report.h"

#include <inttypes.h>

static void put_advice(const oos_style *style, const char *heading, const oos_advice *list, size_t count)
{
    oos_text *text = style->text;
    if (!count) return;
    oos_text_put(text, "\n**");
    oos_style_put(style, "%s", heading);
    oos_text_put(text, "**\n\n");
    for (size_t i = 0; i < count; i++) {
        oos_text_put(text, "- `");
        oos_report_advice_change(&list[i], text);
        oos_text_printf(text, "`: %s", style->chinese ? list[i].why.zh : list[i].why.en);
        if (list[i].cost.en)
            oos_text_printf(text, style->chinese ? "（代价：%s）" : " (trade-off: %s)",
                            style->chinese ? list[i].cost.zh : list[i].cost.en);
        oos_text_put(text, "\n");
    }
}

static void put_ledger(const oos_style *style, const oos_incident *incident)
{
    if (!incident->held.peak_bytes) return;
    oos_style_put(style, "\n| memory used by | GiB |\n");
    oos_text_put(style->text, "| --- | ---: |\n");
    oos_report_rows_markdown(style, &incident->held.ledger);
}

static void put_line(const oos_style *style, const oos_evidence *evidence)
{
    oos_text_printf(style->text, "%" PRIu64 ": ", evidence->line);
    oos_style_word(style, evidence->text);
    oos_text_put(style->text, "\n");
}

void oos_report_explain_markdown(const oos_explain_page *page, const oos_style *style)
{
    oos_text *text = style->text;
    for (size_t i = 0; i < page->explanation->count; i++) {
        const oos_incident *incident = &page->explanation->incidents[i];
        const oos_kb_record *record = incident->record;
        oos_text_put(text, i ? "\n### " : "### ");
        oos_style_put(style, "%s\n\n", oos_report_incident_title(page, incident));
        oos_style_put(style, "%s in phase `%s`, cause `%s` (confidence %.0f %%)",
                      incident->is_oom                 ? "Out of memory"
                      : oos_report_is_unread(incident) ? "Nothing recognised"
                                                       : "No out of memory",
                      oos_phase_word(incident->phase), incident->cause, incident->confidence * 100);
        if (record) oos_style_put(style, ", signature `%s`", record->id);
        oos_text_put(text, ".\n\n```\n");
        for (size_t k = 0; k < incident->evidence_count; k++)
            if (incident->evidence[k].decides) put_line(style, &incident->evidence[k]);
        oos_text_put(text, "```\n");
        put_ledger(style, incident);
        if (page->notes[i].plan_flags && *page->notes[i].plan_flags)
            oos_style_put(style, "\nSuggested for this model and GPU: `%s`\n", page->notes[i].plan_flags);
        if (record)
            oos_text_printf(text, "\n%s\n", page->chinese ? record->mechanism.zh : record->mechanism.en);
        put_advice(style, incident->is_oom ? "What to change" : "What to change, if memory is the reason",
                   incident->fixes, incident->fix_count);
        put_advice(style, "No effect on this failure", incident->dead_ends, incident->dead_end_count);
        if (incident->ask) oos_style_put(style, "\nTo be sure, add %s.\n", incident->ask);
    }
    oos_report_cut_notes(page->explanation, style, "\n> ", "\n");
}

void oos_report_explain_github(const oos_explain_page *page, oos_text *text)
{
    for (size_t i = 0; i < page->explanation->count; i++) {
        const oos_incident *incident = &page->explanation->incidents[i];
        if (!incident->is_oom) continue;
        oos_text_put(text, "::error ");
        if (page->path) {
            oos_text_put(text, "file=");
            oos_ci_escaped(text, page->path, true);
            oos_text_put(text, ",");
        }
        oos_text_printf(text, "line=%" PRIu64 ",title=Out of memory %s::", incident->first_line,
                        oos_report_incident_where(incident, incident->phase));
        oos_ci_escaped(text, oos_report_incident_title(page, incident), false);
        if (incident->fix_count) {
            oos_text_put(text, "%0AWhat to change: ");
            oos_text change = {0};
            oos_report_advice_change(&incident->fixes[0], &change);
            oos_ci_escaped(text, change.ptr ? change.ptr : "", false);
            oos_text_free(&change);
        }
        oos_text_put(text, "\n");
    }
}

static void put_sarif_rules(oos_json_writer *w, const oos_explain_page *page)
{
    for (size_t i = 0; i < page->explanation->count; i++) {
        const oos_kb_record *record = page->explanation->incidents[i].record;
        bool repeated = !record;
        for (size_t k = 0; k < i && !repeated; k++)
            repeated = page->explanation->incidents[k].record == record;
        if (repeated) continue;
        oos_json_begin_object(w);
        oos_json_field_str(w, "id", record->id);
        oos_sarif_words(w, "shortDescription", record->title.en);
        oos_sarif_words(w, "fullDescription", record->mechanism.en);
        oos_json_end_object(w);
    }
}

static void put_sarif_result(oos_json_writer *w, const oos_explain_page *page, const oos_incident *incident)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "ruleId", incident->record ? incident->record->id : incident->cause);
    oos_json_field_str(w, "level", "error");
    oos_sarif_words(w, "message", oos_report_incident_title(page, incident));
    oos_sarif_place(w, page->path ? page->path : "stdin", incident->first_line ? incident->first_line : 1,
                    oos_u64_of(incident->last_line ? incident->last_line : 1));
    oos_json_end_object(w);
}

void oos_report_explain_sarif(const oos_explain_page *page, oos_text *text)
{
    oos_json_writer writer = {.text = text}, *w = &writer;
    oos_sarif_open(w);
    put_sarif_rules(w, page);
    oos_sarif_results(w);
    for (size_t i = 0; i < page->explanation->count; i++)
        if (page->explanation->incidents[i].is_oom)
            put_sarif_result(w, page, &page->explanation->incidents[i]);
    oos_sarif_close(w);
}

/* The knowledge base as a table, and one record as a page. */
#include "base/json_write.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 100 };

void oos_report_kb_list(const oos_kb *kb, const oos_style *style, bool json)
{
    oos_json_writer writer = {.text = style->text, .pretty_depth = 1}, *w = &writer;
    if (json) oos_json_begin_array(w);
    for (size_t i = 0; i < kb->count; i++) {
        const oos_kb_record *record = &kb->list[i];
        if (json) {
            oos_json_begin_object(w);
            oos_json_field_str(w, "id", record->id);
            oos_json_field_str(w, "title", style->chinese ? record->title.zh : record->title.en);
            oos_json_end_object(w);
        } else {
            const char *title = style->chinese ? record->title.zh : record->title.en;
            bool const fits = strlen(title) + 43 <= COLUMNS;
            oos_text_printf(style->text, fits ? "%-42s %s\n" : "%s\n      %s\n", record->id, title);
        }
    }
    if (json) oos_json_end_array(w);
    if (json) oos_text_put(style->text, "\n");
}

static void put_list(const oos_style *style, const char *heading, const oos_advice *list, size_t count)
{
    if (count) oos_style_ink(style, OOS_INK_BOLD, "\n%s\n", heading);
    for (size_t i = 0; i < count; i++) {
        oos_text change = {0};
        oos_report_advice_change(&list[i], &change);
        oos_style_paragraph(style, 2, change.ptr ? change.ptr : "");
        style->text->failed |= change.failed;
        oos_text_free(&change);
        oos_style_paragraph(style, 6, style->chinese ? list[i].why.zh : list[i].why.en);
        if (list[i].cost.en)
            oos_style_paragraph(style, 6, style->chinese ? list[i].cost.zh : list[i].cost.en);
        oos_style_ink(style, OOS_INK_DIM, "      [%s]\n", list[i].evidence);
    }
}

/* On a line of its own. */
static void put_names(const oos_style *style, const char *title, const char *const *names, size_t count)
{
    if (!count) return;
    oos_text_put(style->text, "\n");
    oos_style_put(style, "%s", title);
    for (size_t i = 0; i < count; i++) {
        if (i) oos_text_put(style->text, ", ");
        oos_text_put(style->text, names[i]);
    }
}

void oos_report_kb_record(const oos_kb_record *record, const oos_style *style, bool json)
{
    if (json) {
        char *text = oos_json_text(record->json, JSON_INDENT(2));
        oos_text_put(style->text, text ? text : "{}");
        oos_text_put(style->text, "\n");
        free(text);
        return;
    }
    oos_style_ink(style, OOS_INK_BOLD, "%s\n", record->id);
    oos_style_paragraph(style, 2, style->chinese ? record->title.zh : record->title.en);
    oos_text_put(style->text, "\n");
    oos_style_paragraph(style, 2, style->chinese ? record->mechanism.zh : record->mechanism.en);
    if (record->introduced || record->fixed)
        oos_style_put(style, "\n  %s, introduced %s, fixed %s\n", record->engine,
                      record->introduced ? record->introduced : "-", record->fixed ? record->fixed : "-");
    oos_style_put(style, "\n  Seen as:\n");
    oos_style_quote(style, 4, record->signature);
    put_list(style, "What to change", record->fixes, record->fix_count);
    put_list(style, "No effect on this failure", record->dead_ends, record->dead_end_count);
    put_names(style, "Confused with: ", record->confused_with, record->confused_count);
    put_names(style, "Leads to: ", record->leads_to, record->leads_count);
    oos_text_put(style->text, "\n");
}

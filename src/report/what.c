/* What a text is, for people and for programs. */
#include "report/report.h"
#include "base/json_write.h"

static void put_json(const oos_what *what, oos_text *text)
{
    oos_json_writer writer = {.text = text}, *w = &writer;
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.what/1");
    oos_json_field_str(w, "kind", what->kind);
    oos_json_field_str(w, "engine", what->title);
    oos_json_field_str(w, "ask", what->ask);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}

void oos_report_what(const oos_what *what, const char *path, const oos_style *style, bool json)
{
    if (json) {
        put_json(what, style->text);
        return;
    }
    oos_style_put(style, "%s", what->sentence);
    if (what->title) oos_style_put(style, " (%s)", what->title);
    if (what->ask) {
        oos_style_put(style, ": oomsight %s ", what->ask);
        if (what->pasted && strcmp(path, "-") != 0) oos_text_put(style->text, "- <");
        oos_style_word(style, path);
    }
    oos_text_put(style->text, "\n");
}

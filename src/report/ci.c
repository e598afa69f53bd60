/* Escapes of workflow commands, and the frame of a SARIF 2.1.0 log. */
#include "report/report.h"
#include "base/shown.h"

void oos_ci_escaped(oos_text *text, const char *words, bool property)
{
    oos_text shown = {0};
    oos_shown_put(&shown, oos_view_of(words), true);
    for (const char *at = shown.ptr ? shown.ptr : ""; *at; at++) {
        bool const special = *at == '%' || *at == '\n' || (property && (*at == ',' || *at == ':'));
        if (special)
            oos_text_printf(text, "%%%02X", (unsigned char)*at);
        else
            oos_text_add(text, (oos_view){at, 1});
    }
    text->failed |= shown.failed;
    oos_text_free(&shown);
}

void oos_sarif_open(oos_json_writer *w)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    oos_json_field_str(w, "version", "2.1.0");
    oos_json_field_array(w, "runs");
    oos_json_begin_object(w);
    oos_json_field_object(w, "tool");
    oos_json_field_object(w, "driver");
    oos_json_field_str(w, "name", "oomsight");
    oos_json_field_str(w, "version", OOMSIGHT_VERSION);
    oos_json_field_array(w, "rules");
}

void oos_sarif_results(oos_json_writer *w)
{
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_json_end_object(w);
    oos_json_field_array(w, "results");
}

void oos_sarif_close(oos_json_writer *w)
{
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_text_put(w->text, "\n");
}

void oos_sarif_words(oos_json_writer *w, const char *key, const char *words)
{
    oos_json_field_object(w, key);
    oos_json_field_str(w, "text", words);
    oos_json_end_object(w);
}

void oos_sarif_place(oos_json_writer *w, const char *path, uint64_t first_line, oos_u64 last_line)
{
    oos_json_field_array(w, "locations");
    oos_json_begin_object(w);
    oos_json_field_object(w, "physicalLocation");
    oos_json_field_object(w, "artifactLocation");
    oos_json_field_str(w, "uri", path);
    oos_json_end_object(w);
    oos_json_field_object(w, "region");
    oos_json_field_u64(w, "startLine", first_line);
    if (last_line.known) oos_json_field_u64(w, "endLine", last_line.value);
    oos_json_end_object(w);
    oos_json_end_object(w);
    oos_json_end_object(w);
    oos_json_end_array(w);
}

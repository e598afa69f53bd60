/* A check where nobody reads a terminal: annotations for a GitHub job, SARIF for scanners. What starts is not mentioned. */
#include "base/json_write.h"
#include "report/check.h"

/* Workflow commands end at a line break; percent signs and breaks are escaped, in properties commas and colons too. */
static void put_escaped(oos_text *text, const char *words, bool property)
{
    for (; *words; words++) {
        bool const special = *words == '%' || *words == '\n' || *words == '\r' ||
                             (property && (*words == ',' || *words == ':'));
        if (special)
            oos_text_printf(text, "%%%02X", (unsigned char)*words);
        else
            oos_text_add(text, (oos_view){words, 1});
    }
}

static const char *title(const oos_checked *checked)
{
    switch (oos_check_level(checked)) {
    case OOS_LEVEL_ERROR: return "vLLM would not start";
    case OOS_LEVEL_WARNING: return "vLLM starts with little to spare";
    case OOS_LEVEL_NOTE: return "vLLM command could not be planned";
    case OOS_LEVEL_OK: return "vLLM starts";
    }
    return "vLLM";
}

void oos_report_check_github(oos_text *text, const oos_check_page *page)
{
    static const char *const words[] = {"", "notice", "warning", "error"};
    for (size_t i = 0; i < page->count; i++) {
        const oos_checked *checked = &page->list[i];
        oos_level const level = oos_check_level(checked);
        if (level == OOS_LEVEL_OK) continue;
        oos_text_printf(text, "::%s file=", words[level]);
        put_escaped(text, checked->path, true);
        oos_text_printf(text, ",line=%u,title=%s::", (unsigned)checked->found->line, title(checked));
        oos_text sentence = {0};
        oos_check_sentence(&sentence, checked, true);
        put_escaped(text, sentence.ptr ? sentence.ptr : "", false);
        oos_text_free(&sentence);
        oos_text_put(text, "\n");
    }
}

static void put_rule(oos_json_writer *w, const char *id, const char *words)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "id", id);
    oos_json_key(w, "shortDescription");
    oos_json_begin_object(w);
    oos_json_field_str(w, "text", words);
    oos_json_end_object(w);
    oos_json_end_object(w);
}

static void put_result(oos_json_writer *w, const oos_checked *checked)
{
    static const char *const levels[] = {"none", "note", "warning", "error"};
    static const char *const rules[] = {"starts", "not-planned", "tight", "does-not-start"};
    oos_level const level = oos_check_level(checked);
    oos_text sentence = {0};
    oos_check_sentence(&sentence, checked, true);
    oos_json_begin_object(w);
    oos_json_field_str(w, "ruleId", rules[level]);
    oos_json_field_str(w, "level", levels[level]);
    oos_json_key(w, "message");
    oos_json_begin_object(w);
    oos_json_field_str(w, "text", sentence.ptr);
    oos_json_end_object(w);
    oos_json_key(w, "locations");
    oos_json_begin_array(w);
    oos_json_begin_object(w);
    oos_json_key(w, "physicalLocation");
    oos_json_begin_object(w);
    oos_json_key(w, "artifactLocation");
    oos_json_begin_object(w);
    oos_json_field_str(w, "uri", checked->path);
    oos_json_end_object(w);
    oos_json_key(w, "region");
    oos_json_begin_object(w);
    oos_json_field_u64(w, "startLine", checked->found->line);
    oos_json_end_object(w);
    oos_json_end_object(w);
    oos_json_end_object(w);
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_text_free(&sentence);
}

void oos_report_check_sarif(oos_text *text, const oos_check_page *page)
{
    oos_json_writer writer = {.text = text}, *w = &writer;
    oos_json_begin_object(w);
    oos_json_field_str(w, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    oos_json_field_str(w, "version", "2.1.0");
    oos_json_key(w, "runs");
    oos_json_begin_array(w);
    oos_json_begin_object(w);
    oos_json_key(w, "tool");
    oos_json_begin_object(w);
    oos_json_key(w, "driver");
    oos_json_begin_object(w);
    oos_json_field_str(w, "name", "oomsight");
    oos_json_field_str(w, "version", OOMSIGHT_VERSION);
    oos_json_key(w, "rules");
    oos_json_begin_array(w);
    put_rule(w, "does-not-start", "The engine would run out of memory, or refuse to start for lack of it");
    put_rule(w, "tight", "The engine starts, but the limit lies inside the error bar");
    put_rule(w, "not-planned", "The command could not be planned");
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_json_end_object(w);
    oos_json_key(w, "results");
    oos_json_begin_array(w);
    for (size_t i = 0; i < page->count; i++)
        if (oos_check_level(&page->list[i]) != OOS_LEVEL_OK) put_result(w, &page->list[i]);
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}

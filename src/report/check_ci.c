/* A check where nobody reads a terminal: annotations for a GitHub job, SARIF for scanners. What starts is not mentioned. */
#include "report/report.h"

static const char *title(const oos_checked *checked)
{
    if (checked->doubt) return "not looked at";
    switch (oos_check_level(checked)) {
    case OOS_LEVEL_ERROR: return "the engine would not start";
    case OOS_LEVEL_WARNING: return "the engine starts with little to spare";
    case OOS_LEVEL_NOTE: return "a command could not be planned";
    case OOS_LEVEL_OK: return "the engine starts";
    }
    return "";
}

void oos_report_check_github(oos_text *text, const oos_check_page *page)
{
    static const char *const words[] = {"", "notice", "warning", "error"};
    _Static_assert(sizeof words / sizeof *words == OOS_LEVEL_ERROR + 1, "a word for each level");
    for (size_t i = 0; i < page->count; i++) {
        const oos_checked *checked = &page->list[i];
        oos_level const level = oos_check_level(checked);
        if (level == OOS_LEVEL_OK) continue;
        oos_text_printf(text, "::%s file=", words[level]);
        oos_ci_escaped(text, checked->path, true);
        oos_text_printf(text, ",line=%u,title=%s::", (unsigned)checked->found->line, title(checked));
        oos_text sentence = {0};
        oos_check_sentence(&sentence, checked);
        oos_ci_escaped(text, sentence.ptr ? sentence.ptr : "", false);
        oos_text_free(&sentence);
        oos_text_put(text, "\n");
    }
}

static void put_rule(oos_json_writer *w, const char *id, const char *words)
{
    oos_json_begin_object(w);
    oos_json_field_str(w, "id", id);
    oos_sarif_words(w, "shortDescription", words);
    oos_json_end_object(w);
}

static void put_result(oos_json_writer *w, const oos_checked *checked)
{
    static const char *const levels[] = {"none", "note", "warning", "error"};
    static const char *const rules[] = {"starts", "not-planned", "tight", "does-not-start"};
    oos_level const level = oos_check_level(checked);
    oos_text sentence = {0};
    oos_check_sentence(&sentence, checked);
    oos_json_begin_object(w);
    oos_json_field_str(w, "ruleId", checked->doubt ? "not-looked-at" : rules[level]);
    oos_json_field_str(w, "level", levels[level]);
    oos_sarif_words(w, "message", sentence.ptr);
    oos_sarif_place(w, checked->path, checked->found->line, (oos_u64){0});
    oos_json_end_object(w);
    oos_text_free(&sentence);
}

void oos_report_check_sarif(oos_text *text, const oos_check_page *page)
{
    oos_json_writer writer = {.text = text}, *w = &writer;
    oos_sarif_open(w);
    put_rule(w, "does-not-start", "The engine would run out of memory, or refuse to start for lack of it");
    put_rule(w, "tight", "The engine starts, but the limit lies inside the error bar");
    put_rule(w, "not-planned", "The command could not be planned");
    put_rule(w, "not-looked-at", "A part of the file was not looked at");
    oos_sarif_results(w);
    for (size_t i = 0; i < page->count; i++)
        if (oos_check_level(&page->list[i]) != OOS_LEVEL_OK) put_result(w, &page->list[i]);
    oos_sarif_close(w);
}

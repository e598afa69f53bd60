/* A check for people and for programs. */
#include "report/check.h"
#include "base/json_write.h"
#include "report/plan.h"

oos_level oos_check_level(const oos_checked *checked)
{
    if (checked->doubt) return checked->doubt_level;
    if (!checked->plan) return OOS_LEVEL_NOTE;
    switch (checked->plan->verdict) {
    case OOMSIGHT_VERDICT_FITS: return OOS_LEVEL_OK;
    case OOMSIGHT_VERDICT_TIGHT: return oos_plan_likely(checked->plan) ? OOS_LEVEL_WARNING : OOS_LEVEL_ERROR;
    case OOMSIGHT_VERDICT_UNKNOWN: return OOS_LEVEL_NOTE;
    case OOMSIGHT_VERDICT_FAILS:
    case OOMSIGHT_VERDICT_REFUSED: return OOS_LEVEL_ERROR;
    }
    return OOS_LEVEL_NOTE;
}

static void put_sentence(oos_text *text, const oos_checked *checked)
{
    const oos_plan *plan = checked->plan;
    if (checked->doubt) {
        oos_text_put(text, checked->problem);
        return;
    }
    if (!plan) {
        oos_text_printf(text, "cannot be planned: %s", checked->problem);
        return;
    }
    oos_text_put(text, oos_report_answer_word(plan));
    if (plan->phase != OOS_PHASE_COUNT) oos_text_printf(text, " in %s", oos_phase_word(plan->phase));
    if (plan->verdict == OOMSIGHT_VERDICT_FAILS) oos_text_put(text, ": out of memory");
    if (plan->verdict == OOMSIGHT_VERDICT_REFUSED) oos_text_put(text, ": refused by the engine");
    oos_text_printf(
        text, " on %s (%.2f GiB), %s %s", plan->setup->device.name ? plan->setup->device.name : "this GPU",
        (double)plan->setup->device.total_bytes / 0x1p30, plan->engine->title, plan->engine_version);
}

void oos_check_sentence(oos_text *text, const oos_checked *checked)
{
    const oos_plan *plan = checked->plan;
    put_sentence(text, checked);
    if (plan && plan->why) oos_text_printf(text, ". %s", plan->why);
    if (checked->best_flags && *checked->best_flags) oos_text_printf(text, " Helps: %s", checked->best_flags);
}

static void put_command(const oos_style *style, const oos_found *found)
{
    for (size_t i = 0; i < found->count; i++) {
        if (i) oos_text_put(style->text, " ");
        oos_style_word(style, found->shown[i]);
    }
}

static void put_finding(const oos_style *style, const oos_checked *checked, bool explain)
{
    static const struct {
        oos_ink ink;
        const char *word;
    } levels[] = {
        {OOS_INK_GOOD, "ok"}, {OOS_INK_DIM, "note"}, {OOS_INK_WARN, "warning"}, {OOS_INK_BAD, "error"}};
    oos_level const level = oos_check_level(checked);
    const oos_found *found = checked->found;
    oos_style_ink(style, OOS_INK_BOLD, "%s:%u: ", checked->path, (unsigned)found->line);
    oos_style_ink(style, levels[level].ink, "%s", levels[level].word);
    oos_text_put(style->text, ": ");
    oos_text line = {0};
    put_sentence(&line, checked);
    oos_style_put(style, "%s", line.ptr ? line.ptr : "");
    oos_text_free(&line);
    if (checked->doubt) {
        oos_text_put(style->text, "\n");
        return;
    }
    oos_text_put(style->text, "\n    ");
    oos_style_put(style, "%s", found->kind);
    if (found->name) {
        oos_text_put(style->text, " ");
        oos_style_word(style, found->name);
    }
    oos_text_put(style->text, ": ");
    put_command(style, found);
    oos_text_put(style->text, "\n");
    if (checked->plan && checked->plan->why && (level == OOS_LEVEL_ERROR || explain))
        oos_style_paragraph(style, 4, checked->plan->why);
    if (level != OOS_LEVEL_OK && checked->best_command) {
        oos_style_put(style, "    helps: ");
        oos_style_word(style, checked->best_flags && *checked->best_flags ? checked->best_flags
                                                                          : checked->best_command);
        oos_text_put(style->text, "\n");
    }
}

void oos_report_check_text(oos_text *text, const oos_check_page *page, const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    size_t counts[4] = {0}, doubts = 0;
    for (size_t i = 0; i < page->count; i++) {
        if (page->list[i].doubt)
            doubts++;
        else
            counts[oos_check_level(&page->list[i])]++;
        put_finding(&style, &page->list[i], params->explain != 0);
    }
    oos_style_put(&style,
                  "%zu commands in %zu files: %zu start, %zu tight, %zu do not fit, %zu not planned\n",
                  page->count - doubts, page->files, counts[OOS_LEVEL_OK], counts[OOS_LEVEL_WARNING],
                  counts[OOS_LEVEL_ERROR], counts[OOS_LEVEL_NOTE]);
    if (doubts) oos_style_put(&style, "%zu files were not understood or not read\n", doubts);
}

static void put_checked(oos_json_writer *w, const oos_checked *checked)
{
    const oos_found *found = checked->found;
    const oos_plan *plan = checked->plan;
    oos_json_begin_object(w);
    oos_json_field_str(w, "file", checked->path);
    oos_json_field_u64(w, "line", found->line);
    oos_json_field_str(w, "kind", found->kind);
    oos_json_field_str(w, "name", found->name);
    oos_json_key(w, "command");
    oos_json_begin_array(w);
    for (size_t i = 0; i < found->count; i++) oos_json_put_str(w, found->shown[i]);
    oos_json_end_array(w);
    oos_json_field_known(w, "gpus", (oos_u64){found->gpus != 0, found->gpus});
    oos_json_field_str(w, "engine_version", plan ? plan->engine_version : found->engine_version);
    oos_json_field_str(w, "gpu", plan ? plan->setup->device.name : found->gpu);
    oos_json_field_str(w, "verdict", plan ? oos_report_verdict_word(plan->verdict) : NULL);
    oos_json_field_str(w, "likely", !plan ? NULL : oos_plan_likely(plan) ? "starts" : "fails");
    oos_json_field_str(w, "phase",
                       plan && plan->phase != OOS_PHASE_COUNT ? oos_phase_word(plan->phase) : NULL);
    oos_json_field_str(w, "cause", plan ? oos_cause_word(plan->cause) : NULL);
    oos_json_field_known(w, "tried_bytes", plan ? plan->tried_bytes : (oos_u64){0});
    oos_json_field_str(w, "why", plan ? plan->why : NULL);
    oos_json_field_str(w, "best_flags", checked->best_flags);
    oos_json_field_str(w, "best_command", checked->best_command);
    oos_json_field_str(w, "problem", checked->problem);
    oos_json_end_object(w);
}

void oos_report_check_json(oos_text *text, const oos_check_page *page)
{
    oos_json_writer writer = {.text = text, .pretty_depth = 2}, *w = &writer;
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.check/1");
    oos_json_field_u64(w, "files", page->files);
    oos_json_key(w, "commands");
    oos_json_begin_array(w);
    for (size_t i = 0; i < page->count; i++) put_checked(w, &page->list[i]);
    oos_json_end_array(w);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}

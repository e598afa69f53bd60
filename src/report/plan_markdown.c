/* A plan as Markdown, to be pasted into an issue or a pull request. */
#include "report/report.h"

void oos_report_plan_markdown(oos_text *text, const oos_plan *plan, const oomsight_render_params *params)
{
    oos_style const own = oos_style_of(text, params), *style = &own;
    char tokens[40], name[160];
    oos_text_put(text, "**");
    oos_style_put(style, "%s", oos_report_answer_word(plan));
    oos_text_put(text, "**");
    char reason[512];
    oos_report_reason(plan, reason, sizeof reason);
    oos_text_put(text, *reason ? " (" : "");
    oos_style_put(style, "%s", reason);
    oos_text_put(text, *reason ? ")" : "");
    if (plan->answer.phase != OOS_PHASE_COUNT)
        oos_text_printf(text, " `%s`", oos_phase_word(plan->answer.phase));
    oos_style_put(style, ": `%s` on %s (%.2f GiB), %s %s\n\n",
                  oos_report_model_name(plan->model->path, name, sizeof name),
                  plan->device.name ? plan->device.name : "a GPU", oos_gib(plan->device.total_bytes),
                  plan->engine->title, plan->engine_version ? plan->engine_version : "?");
    if (plan->answer.why && !plan->doubt_count && plan->answer.verdict != OOMSIGHT_VERDICT_UNKNOWN) {
        oos_text line = {0};
        oos_report_grouped(&line, plan->answer.why);
        oos_style_put(style, "%s\n\n", line.ptr ? line.ptr : "");
        style->text->failed |= line.failed;
        oos_text_free(&line);
    }
    for (size_t i = 0; i < plan->doubt_count; i++)
        oos_style_put(style, "Not certain: %s\n\n", plan->doubts[i]);
    oos_style_put(style, "| phase | needs GiB | of GiB | |\n");
    oos_text_put(text, "|---|---:|---:|---|\n");
    for (size_t i = 0; i < plan->phase_count; i++) {
        const oos_moment *moment = &plan->phases[i];
        oos_text_printf(text, "| %s | %.2f | %.2f | ", oos_phase_word(moment->phase),
                        oos_gib(moment->peak_bytes), oos_gib(moment->limit_bytes));
        oos_style_put(style, "%s", !moment->ok ? "**no**" : moment->tight ? "tight" : "ok");
        oos_text_put(text, " |\n");
    }
    if (plan->help.fix_count) {
        oos_style_put(style, "\n| change | KV tokens | keeps | trade-off |\n");
        oos_text_put(text, "|---|---:|---|---|\n");
    }
    for (size_t i = 0; i < plan->help.fix_count; i++) {
        oos_style_count(tokens, sizeof tokens, plan->help.fixes[i].kv_tokens);
        oos_text_put(text, "| `");
        oos_report_change(text, &plan->help.fixes[i]);
        oos_text_printf(text, "` | %s | ", tokens);
        oos_style_put(style, "%s", plan->help.fixes[i].keeps);
        oos_text_put(text, " | ");
        oos_report_trade_off_put(style, plan->help.fixes[i].gives_up);
        oos_text_put(text, " |\n");
    }
    const oos_need_checkpoint *need =
        plan->help.needs && plan->help.needs->checkpoint_count ? plan->help.needs->checkpoints : NULL;
    if (need) {
        char line[320];
        oos_style_put(style, need->fix.verdict == OOMSIGHT_VERDICT_UNKNOWN
                                 ? "\nThe weights fit on (whether it starts is unknown)\n"
                                 : "\nIt fits on\n");
        oos_text_put(text, "\n- ");
        oos_style_put(style, "%s\n", oos_report_named(need, line, sizeof line));
        oos_text_printf(text, "\n      %s\n", need->fix.command);
    }
    if (plan->help.inert_count)
        oos_style_put(style, "\nNo effect in %s:", oos_phase_word(plan->answer.phase));
    for (size_t i = 0; i < plan->help.inert_count; i++)
        oos_text_printf(text, " `%s`", plan->help.inert[i].flag);
    if (plan->help.inert_count) oos_text_put(text, "\n");
    for (size_t i = 0; i < plan->assumed_count; i++) {
        oos_text_put(text, i ? "- " : "\n- ");
        oos_style_put(style, "Assumed: %s\n", plan->assumed[i]);
    }
    if (plan->exact) oos_style_put(style, "\n%s\n", plan->exact->said);
    for (size_t i = 0; i < plan->told.note_count; i++) {
        oos_text_put(text, i ? "- " : "\n- ");
        oos_style_put(style, "%s\n", plan->told.notes[i]);
    }
}

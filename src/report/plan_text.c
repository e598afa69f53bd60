/* A plan for a terminal: the verdict, why, the phases as bars, what helps, what does not. */
#include "report/plan.h"
#include "base/locale.h"
#include "report/ledger.h"

#include <stdio.h>

static oos_ink heading_ink(const oos_plan *plan)
{
    switch (plan->verdict) {
    case OOMSIGHT_VERDICT_FITS: return OOS_INK_GOOD;
    case OOMSIGHT_VERDICT_FAILS:
    case OOMSIGHT_VERDICT_REFUSED: return OOS_INK_BAD;
    case OOMSIGHT_VERDICT_TIGHT:
    case OOMSIGHT_VERDICT_UNKNOWN: break;
    }
    return oos_plan_likely(plan) ? OOS_INK_WARN : OOS_INK_BAD;
}

static void put_headline(const oos_style *style, const oos_plan *plan)
{
    const oos_setup *setup = plan->setup;
    oos_style_ink(style, heading_ink(plan), "%s", oos_report_answer_heading(plan));
    if (plan->phase != OOS_PHASE_COUNT)
        oos_style_ink(style, OOS_INK_BOLD, " in %s", oos_phase_word(plan->phase));
    if (plan->verdict == OOMSIGHT_VERDICT_FAILS) oos_style_ink(style, OOS_INK_BOLD, ": out of memory");
    if (plan->verdict == OOMSIGHT_VERDICT_REFUSED)
        oos_style_ink(style, OOS_INK_BOLD, ": refused by the engine");
    if (plan->verdict == OOMSIGHT_VERDICT_TIGHT || plan->verdict == OOMSIGHT_VERDICT_UNKNOWN)
        oos_style_ink(style, OOS_INK_DIM, " (starts about %u times in 10)",
                      (unsigned)(10 * plan->probability + 0.5));
    char line[512], name[160];
    char count[32] = "";
    if (setup->tp * setup->pp > 1)
        snprintf(count, sizeof count, "%llu x ", (unsigned long long)(setup->tp * setup->pp));
    oos_format(line, sizeof line, "%s on %s%s (%.2f GiB), vLLM %s",
               oos_report_model_name(setup->model->path, name, sizeof name), count,
               setup->device.name ? setup->device.name : "a GPU", oos_gib(setup->device.total_bytes),
               plan->engine_version ? plan->engine_version : "?");
    oos_text_put(style->text, "\n");
    oos_style_paragraph(style, 2, line);
}

/* The rows of the phase that decides, or of serving when all is well. */
static const oos_moment *shown_phase(const oos_plan *plan)
{
    for (size_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].phase == plan->phase) return &plan->phases[i];
    return plan->phase_count ? &plan->phases[plan->phase_count - 1] : NULL;
}

/* What the engine would print, so that it can be recognised. */
static void put_message(const oos_style *style, const oos_plan *plan)
{
    char tried[32];
    const oos_moment *moment = shown_phase(plan);
    if (plan->tried_bytes.known && plan->verdict == OOMSIGHT_VERDICT_FAILS) {
        oos_size_print(plan->tried_bytes.value, tried, sizeof tried);
        oos_style_ink(style, OOS_INK_DIM,
                      "  torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s.\n", tried);
    } else if (plan->verdict == OOMSIGHT_VERDICT_REFUSED && moment && moment->message &&
               moment->message != plan->why && !plan->refusal.sentence) {
        if (style->color) oos_text_put(style->text, "\033[2m");
        oos_style_quote(style, 2, moment->message);
        if (style->color) oos_text_put(style->text, "\033[0m");
    }
}

static void put_capacity(const oos_style *style, const oos_plan *plan)
{
    char tokens[40], length[40];
    if (plan->kv.tokens == 0 || plan->verdict == OOMSIGHT_VERDICT_FAILS ||
        plan->verdict == OOMSIGHT_VERDICT_REFUSED)
        return;
    oos_style_count(tokens, sizeof tokens, plan->kv.tokens);
    oos_style_count(length, sizeof length, plan->setup->max_model_len);
    char line[256];
    uint64_t const cache = plan->setup->blocks_override.known
                               ? oos_mul(plan->kv.blocks, plan->kv_shape.block_bytes)
                               : plan->kv.available_bytes;
    oos_format(line, sizeof line, "KV cache %.2f GiB = %s tokens: %.2f requests of %s tokens at once (%s)",
               oos_gib(cache), tokens, plan->kv.max_concurrency, length, plan->backend.name);
    oos_style_paragraph(style, 2, line);
}

/* What no flag tells, where it makes a difference. */
static void put_forks(const oos_style *style, const oos_plan *plan)
{
    for (size_t i = 0; i < plan->fork_count; i++) {
        const oos_fork *fork = &plan->forks[i];
        if (fork->kv_tokens == fork->other_kv_tokens && fork->verdict == fork->other_verdict) continue;
        char tokens[40], other[40], line[320];
        oos_style_count(tokens, sizeof tokens, fork->kv_tokens);
        oos_style_count(other, sizeof other, fork->other_kv_tokens);
        oos_format(line, sizeof line,
                   "no flag tells: %s, as planned, %s tokens; %s, %s tokens. Settled by %s.", fork->meant,
                   tokens, fork->other, other, fork->closed_by);
        oos_style_paragraph(style, 2, line);
    }
}

static void put_phase(const oos_style *style, const oos_plan *plan, const oos_moment *moment)
{
    bool const decides = moment->phase == plan->phase;
    oos_ink const ink = !moment->ok ? OOS_INK_BAD : moment->tight ? OOS_INK_WARN : OOS_INK_GOOD;
    oos_report_moment_bar(style, moment, ink);
    if (decides && !moment->ok && !moment->tight)
        oos_style_ink(style, OOS_INK_BAD, moment->refusal ? " refused" : " dies here");
    else if (moment->tight)
        oos_style_ink(style, OOS_INK_WARN, " tight");
    oos_text_put(style->text, "\n");
}

static void put_rows(const oos_style *style, const oos_moment *moment, bool explain)
{
    oos_style_put(style, "\n  held in %s, GiB\n", oos_phase_word(moment->phase));
    oos_report_rows(style, &moment->ledger, explain);
    oos_text_printf(style->text, "    %8.3f  ", oos_gib(moment->peak_bytes));
    oos_style_put(style, "needed\n");
    oos_text_printf(style->text, "    %8.3f  ", oos_gib(moment->limit_bytes));
    oos_style_put(style, moment->refusal ? "allowed\n" : "on the device\n");
}

/* Phases the engine gets to: none behind the one it dies in. */
static size_t reached(const oos_plan *plan)
{
    for (size_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].phase == plan->phase && !plan->phases[i].ok && !plan->phases[i].tight)
            return i + 1;
    return plan->phase_count;
}

static void put_phases(const oos_style *style, const oos_plan *plan, bool explain)
{
    oos_text_put(style->text, "\n");
    size_t const shown = reached(plan);
    for (size_t i = 0; i < shown; i++) put_phase(style, plan, &plan->phases[i]);
    if (explain) {
        for (size_t i = 0; i < shown; i++) put_rows(style, &plan->phases[i], true);
        return;
    }
    const oos_moment *moment = shown_phase(plan);
    if (moment) put_rows(style, moment, false);
}

static void put_fixes(const oos_style *style, const oos_plan *plan)
{
    char tokens[40];
    if (plan->fix_count) oos_style_ink(style, OOS_INK_BOLD, "\n  what helps (each planned again)\n");
    for (size_t i = 0; i < plan->fix_count; i++) {
        const oos_fix *fix = &plan->fixes[i];
        oos_style_count(tokens, sizeof tokens, fix->kv_tokens);
        oos_text_put(style->text, "    ");
        if (style->color) oos_text_put(style->text, "\033[32m");
        oos_report_change(style->text, fix);
        if (style->color) oos_text_put(style->text, "\033[0m");
        oos_text_put(style->text, "\n");
        char line[512];
        int const used = snprintf(line, sizeof line, "%s KV tokens; keeps %s; gives up %s", tokens,
                                  fix->keeps, fix->gives_up);
        if (fix->verdict == OOMSIGHT_VERDICT_TIGHT && used > 0 && (size_t)used < sizeof line)
            snprintf(line + used, sizeof line - (size_t)used, "; not certain: %s is tight",
                     oos_phase_word(fix->phase));
        oos_style_paragraph(style, 8, line);
    }
    if (plan->fix_count == 0 && plan->verdict != OOMSIGHT_VERDICT_UNKNOWN && plan->phase != OOS_PHASE_COUNT &&
        plan->phase != OOS_PHASE_ENV && !plan->refusal.sentence) {
        oos_text_put(style->text, "\n");
        oos_style_paragraph(
            style, 2, "No flag helps: it takes a smaller or quantised model, more GPUs, or a larger one.");
    }
    if (plan->inert_count) {
        oos_style_ink(style, OOS_INK_BOLD, "\n  what changes nothing here\n");
        oos_text inert = {0};
        for (size_t i = 0; i < plan->inert_count; i++) oos_text_printf(&inert, "%s ", plan->inert[i].flag);
        if (!inert.failed) oos_style_paragraph(style, 4, inert.ptr);
        oos_text_free(&inert);
    }
}

static void put_note(const oos_style *style, const char *note)
{
    oos_text line = {0};
    oos_text_printf(&line, "note: %s", note);
    if (!line.failed) oos_style_paragraph(style, 2, line.ptr);
    oos_text_free(&line);
}

void oos_report_plan_text(oos_text *text, const oos_plan *plan, const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    put_headline(&style, plan);
    put_message(&style, plan);
    put_capacity(&style, plan);
    put_forks(&style, plan);
    if (plan->why) oos_style_paragraph(&style, 2, plan->why);
    if (plan->phase != OOS_PHASE_ENV && !plan->refusal.sentence)
        put_phases(&style, plan, params->explain != 0);
    put_fixes(&style, plan);
    if (plan->note_count) oos_text_put(text, "\n");
    for (size_t i = 0; i < plan->note_count; i++) put_note(&style, plan->notes[i]);
}

/* A plan for a terminal: the verdict, why, the command to paste and what it costs. When asked for, the phases as bars and what
 * they hold. */
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
    oos_style_ink(style, heading_ink(plan), "%s", oos_report_answer_heading(plan));
    if (plan->phase != OOS_PHASE_COUNT)
        oos_style_ink(style, OOS_INK_BOLD, " in %s", oos_phase_word(plan->phase));
    if (plan->verdict == OOMSIGHT_VERDICT_FAILS) oos_style_ink(style, OOS_INK_BOLD, ": out of memory");
    if (plan->verdict == OOMSIGHT_VERDICT_REFUSED)
        oos_style_ink(style, OOS_INK_BOLD, ": refused by the engine");
    unsigned const tenths = (unsigned)(10 * (plan->probability > 0 ? plan->probability : 0) + 0.5);
    bool const told =
        plan->phase != OOS_PHASE_COUNT && (tenths <= 3 || tenths >= 7); /* 5 in 10 tells nothing */
    if (plan->verdict == OOMSIGHT_VERDICT_TIGHT && told)
        oos_style_ink(style, OOS_INK_DIM, " (starts about %u times in 10)", tenths);
    char line[512], name[160];
    char count[32] = "";
    if (plan->tp * plan->pp > 1)
        snprintf(count, sizeof count, "%llu x ", (unsigned long long)(plan->tp * plan->pp));
    oos_format(line, sizeof line, "%s on %s%s (%.2f GiB), %s %s",
               oos_report_model_name(plan->model->path, name, sizeof name), count,
               plan->device.name ? plan->device.name : "a GPU", oos_gib(plan->device.total_bytes),
               plan->engine->title, plan->engine_version ? plan->engine_version : "?");
    oos_text_put(style->text, "\n");
    oos_style_paragraph(style, 2, line);
}

/* What the command did not say, and what was taken instead. */
static void put_assumed(const oos_style *style, const oos_plan *plan)
{
    oos_text line = {0};
    for (size_t i = 0; i < plan->assumed_count; i++)
        oos_text_printf(&line, "%s%s", i ? "; " : "assumed: ", plan->assumed[i]);
    if (line.len && !line.failed) oos_style_paragraph(style, 2, line.ptr);
    oos_text_free(&line);
}

/* Why what fits is not certain, or why no flag helps what fails. */
static void put_doubts(const oos_style *style, const oos_plan *plan)
{
    for (size_t i = 0; i < plan->doubt_count; i++) {
        oos_text line = {0};
        bool const starts = plan->verdict == OOMSIGHT_VERDICT_TIGHT;
        oos_text_printf(&line, "%s%s", starts ? "not certain: " : "", plan->doubts[i]);
        if (!line.failed) oos_style_paragraph(style, 2, line.ptr);
        oos_text_free(&line);
    }
}

/* What was said above already. */
static bool is_doubt(const oos_plan *plan, const char *note)
{
    for (size_t i = 0; i < plan->doubt_count; i++)
        if (strcmp(plan->doubts[i], note) == 0) return true;
    return false;
}

/* The rows of the phase that decides, or of serving when all is well. */
static const oos_moment *shown_phase(const oos_plan *plan)
{
    for (size_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].phase == plan->phase) return &plan->phases[i];
    return plan->phase_count ? &plan->phases[plan->phase_count - 1] : NULL;
}

/* What the engine would print, so that it can be recognised; short, its first sentence. */
static void put_message(const oos_style *style, const oos_plan *plan, bool whole)
{
    char tried[32];
    const oos_moment *moment = shown_phase(plan);
    oos_text line = {0};
    if (plan->tried_bytes.known && plan->verdict == OOMSIGHT_VERDICT_FAILS) {
        oos_size_print(plan->tried_bytes.value, tried, sizeof tried);
        oos_text_printf(
            &line, "The engine will say: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s.",
            tried);
    } else if (plan->verdict == OOMSIGHT_VERDICT_REFUSED && moment && moment->message &&
               moment->message != plan->why && !plan->refusal.sentence) {
        const char *end = strstr(moment->message, ". ");
        int const len = !whole && end ? (int)(end - moment->message) + 1 : (int)strlen(moment->message);
        oos_text_printf(&line, "The engine will say: %.*s", len, moment->message);
    }
    if (line.len && !line.failed) {
        if (style->color) oos_text_put(style->text, "\033[2m");
        oos_style_paragraph(style, 2, line.ptr);
        if (style->color) oos_text_put(style->text, "\033[0m");
    }
    oos_text_free(&line);
}

static void put_capacity(const oos_style *style, const oos_plan *plan)
{
    char tokens[40], length[40];
    if (plan->kv.tokens == 0 || plan->verdict == OOMSIGHT_VERDICT_FAILS ||
        plan->verdict == OOMSIGHT_VERDICT_REFUSED)
        return;
    oos_style_count(tokens, sizeof tokens, plan->kv.tokens);
    oos_style_count(length, sizeof length, plan->length);
    char line[256];
    uint64_t const cache = plan->layout.blocks_given ? oos_mul(plan->kv.blocks, plan->layout.block_bytes)
                                                     : plan->kv.available_bytes;
    oos_format(line, sizeof line, "KV cache %.2f GiB = %s tokens: %.2f requests of %s tokens at once (%s)",
               oos_gib(cache), tokens, plan->kv.max_concurrency, length, plan->attention);
    oos_style_paragraph(style, 2, line);
}

/* What no flag tells, where it makes a difference. */
static void put_forks(const oos_style *style, const oos_plan *plan, bool all)
{
    for (size_t i = 0; i < plan->fork_count; i++) {
        const oos_fork *fork = &plan->forks[i];
        uint64_t const apart = oos_far(fork->kv_bytes, fork->other_kv_bytes);
        bool const far = apart > plan->device.total_bytes / 100;
        if (fork->verdict == fork->other_verdict && !far && (!all || apart == 0)) continue;
        char tokens[40], other[40], line[400];
        oos_style_count(tokens, sizeof tokens, fork->kv_tokens);
        oos_style_count(other, sizeof other, fork->other_kv_tokens);
        oos_format(
            line, sizeof line,
            "no flag tells: %s, as planned, %.2f GiB = %s tokens; %s, %.2f GiB = %s tokens. Settled by %s.",
            fork->meant, oos_gib(fork->kv_bytes), tokens, fork->other, oos_gib(fork->other_kv_bytes), other,
            fork->closed_by);
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
    oos_style_put(style, "\n  Memory at %s (GiB)\n", oos_phase_word(moment->phase));
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

/* ---- what to do ------------------------------------------------------------------------------------------------- */

static const char *answer_title(const oos_fix *fix)
{
    if (strcmp(fix->name, "longest_context") == 0) return "longest context";
    return strcmp(fix->name, "most_requests") == 0 ? "most requests" : "least change";
}

/* How long requests may be then, certainly and likely, and how many run at once. */
static void put_reach(oos_text *line, const oos_fix *fix)
{
    char certain[40], likely[40], requests[40], of[40];
    uint64_t const length = fix->certain_length ? fix->certain_length : fix->likely_length;
    if (!length) return;
    oos_style_count(certain, sizeof certain, length);
    oos_style_count(likely, sizeof likely, fix->likely_length);
    oos_style_count(requests, sizeof requests, fix->requests);
    oos_style_count(of, sizeof of, fix->request_tokens);
    if (fix->requests && strcmp(fix->name, "most_requests") == 0)
        oos_text_printf(line, ": %s requests of %s tokens at once", requests, of);
    else if (fix->likely_length > length)
        oos_text_printf(line, ": requests of up to %s tokens, likely %s", certain, likely);
    else
        oos_text_printf(line, ": requests of up to %s tokens", certain);
}

static void put_flags(const oos_style *style, unsigned indent, const char *before, const oos_fix *fix)
{
    oos_text_printf(style->text, "%*s%s", (int)indent, "", before);
    if (style->color) oos_text_put(style->text, "\033[32m");
    oos_report_change(style->text, fix);
    if (style->color) oos_text_put(style->text, "\033[0m");
    oos_text_put(style->text, "\n");
}

static void put_command(const oos_style *style, const oos_fix *fix)
{
    oos_text_put(style->text, "    ");
    if (style->color) oos_text_put(style->text, "\033[32m");
    oos_text_put(style->text, fix->command ? fix->command : "");
    if (style->color) oos_text_put(style->text, "\033[0m");
    oos_text_put(style->text, "\n");
}

static void put_cost(const oos_style *style, const oos_fix *fix)
{
    oos_text line = {0};
    oos_text_printf(&line, "gives up %s", fix->gives_up);
    if (fix->verdict == OOMSIGHT_VERDICT_TIGHT && fix->phase != OOS_PHASE_COUNT)
        oos_text_printf(&line, "; not certain: %s is tight", oos_phase_word(fix->phase));
    if (!line.failed) oos_style_paragraph(style, 4, line.ptr);
    oos_text_free(&line);
}

/* A value of the first answer that the engine can also choose by itself. */
static void put_auto(const oos_style *style, const oos_plan *plan)
{
    for (size_t i = plan->answer_count; i < plan->fix_count; i++) {
        const oos_fix *fix = &plan->fixes[i];
        if (fix->change_count != 2 || strcmp(fix->change[1], "auto") != 0) continue;
        for (size_t k = 0; k + 1 < plan->fixes[0].change_count; k++) {
            if (strcmp(plan->fixes[0].change[k], fix->change[0]) != 0) continue;
            char line[160];
            snprintf(line, sizeof line, "or %s auto: the engine takes what it finds room for",
                     fix->change[0]);
            oos_style_paragraph(style, 4, line);
        }
    }
}

static void put_answer(const oos_style *style, const oos_fix *fix, bool first)
{
    oos_text line = {0};
    oos_text_put(&line, answer_title(fix));
    put_reach(&line, fix);
    oos_text_put(style->text, first ? "\n" : "");
    if (!line.failed)
        oos_style_ink(style, OOS_INK_BOLD, first ? "  paste this (%s)\n" : "  or %s\n", line.ptr);
    oos_text_free(&line);
    if (first) {
        put_command(style, fix);
        put_cost(style, fix);
    } else if (fix->without) {
        put_command(style, fix);
    } else {
        put_flags(style, 4, "", fix);
    }
}

/* The other fixes, one by one. */
static void put_fixes(const oos_style *style, const oos_plan *plan)
{
    if (plan->fix_count > plan->answer_count)
        oos_style_ink(style, OOS_INK_BOLD, "\n  what else helps (each planned again)\n");
    for (size_t i = plan->answer_count; i < plan->fix_count; i++) {
        const oos_fix *fix = &plan->fixes[i];
        char tokens[40], line[512];
        oos_style_count(tokens, sizeof tokens, fix->kv_tokens);
        if (fix->change_count && !fix->without)
            put_flags(style, 4, "", fix);
        else
            put_command(style, fix);
        int const used = snprintf(line, sizeof line, "%s KV tokens; keeps %s; gives up %s", tokens,
                                  fix->keeps, fix->gives_up);
        if (fix->verdict == OOMSIGHT_VERDICT_TIGHT && fix->phase != OOS_PHASE_COUNT && used > 0 &&
            (size_t)used < sizeof line)
            snprintf(line + used, sizeof line - (size_t)used, "; not certain: %s is tight",
                     oos_phase_word(fix->phase));
        oos_style_paragraph(style, 8, line);
    }
}

static void put_needs(const oos_style *style, const oos_plan *plan)
{
    const oos_needs *needs = plan->needs;
    if (!needs) return;
    oos_style_ink(style, OOS_INK_BOLD,
                  plan->answer_count ? "\n  better than that\n" : "\n  no flag is enough; what is\n");
    if (needs->checkpoint_bytes) {
        char tokens[40], line[160];
        oos_style_count(tokens, sizeof tokens, needs->checkpoint_tokens);
        oos_format(line, sizeof line, "a 4-bit checkpoint takes about %.1f GiB and leaves %s tokens",
                   oos_gib(needs->checkpoint_bytes), tokens);
        oos_style_paragraph(style, 4, line);
    }
    if (needs->no_release)
        oos_style_paragraph(style, 4,
                            "another checkpoint or other arguments: no release known here takes these");
    if (needs->no_device)
        oos_style_paragraph(style, 4,
                            "a smaller model: sixteen of no GPU known here are enough for this one");
    if (needs->release)
        oos_style_put(style, "    %s %s takes this command\n", plan->engine->title, needs->release);
    for (size_t i = 0; i < needs->gpu_count; i++) {
        const oos_need_gpu *need = &needs->gpus[i];
        oos_text_printf(style->text, "    %llu x %s", (unsigned long long)need->count, need->gpu);
        for (size_t k = 0; k < need->flag_count; k++)
            oos_text_printf(style->text, "%s%s", k ? " " : ": ", need->flags[k]);
        oos_text_put(style->text, "\n");
    }
}

/* Flags that do nothing for this phase and are in the command for another one; each phase once. */
static void put_later(const oos_style *style, const oos_plan *plan, size_t first)
{
    oos_phase const phase = plan->inert[first].needed_by;
    oos_text line = {0};
    for (size_t i = 0; i < first; i++)
        if (plan->inert[i].needed_by == phase) return;
    if (phase == OOS_PHASE_COUNT) return;
    oos_text_printf(&line, "in the command for %s, which comes later:", oos_phase_word(phase));
    for (size_t i = first; i < plan->inert_count; i++)
        if (plan->inert[i].needed_by == phase) oos_text_printf(&line, " %s", plan->inert[i].flag);
    if (!line.failed) oos_style_paragraph(style, 2, line.ptr);
    oos_text_free(&line);
}

static void put_inert(const oos_style *style, const oos_plan *plan)
{
    oos_text line = {0};
    if (!plan->inert_count) return;
    oos_text_put(style->text, "\n");
    oos_text_printf(&line, "changes nothing in %s:", oos_phase_word(plan->phase));
    for (size_t i = 0; i < plan->inert_count; i++) oos_text_printf(&line, " %s", plan->inert[i].flag);
    if (!line.failed) oos_style_paragraph(style, 2, line.ptr);
    oos_text_free(&line);
    for (size_t i = 0; i < plan->inert_count; i++) put_later(style, plan, i);
}

static void put_advice(const oos_style *style, const oos_plan *plan, bool verbose)
{
    for (size_t i = 0; i < plan->answer_count; i++) {
        put_answer(style, &plan->fixes[i], i == 0);
        if (i == 0) put_auto(style, plan);
    }
    if (verbose || (!plan->answer_count && !plan->needs)) put_fixes(style, plan);
    put_needs(style, plan);
    if (plan->fix_count == 0 && !plan->needs && plan->verdict != OOMSIGHT_VERDICT_UNKNOWN &&
        plan->phase != OOS_PHASE_COUNT && plan->phase != OOS_PHASE_ENV && !plan->refusal.sentence) {
        oos_text_put(style->text, "\n");
        oos_style_paragraph(
            style, 2, "No flag helps: it takes a smaller or quantised model, more GPUs, or a larger one.");
    }
    put_inert(style, plan);
}

static void put_note(const oos_style *style, const char *note)
{
    oos_text line = {0};
    oos_text_printf(&line, "note: %s", note);
    if (!line.failed) oos_style_paragraph(style, 2, line.ptr);
    oos_text_free(&line);
}

/* What has no effect is not worth a line among twelve. */
static bool is_idle(const char *note)
{
    static const char tail[] = ": no effect on memory";
    size_t const len = strlen(note), end = sizeof tail - 1;
    return len > end && strcmp(note + len - end, tail) == 0;
}

void oos_report_plan_text(oos_text *text, const oos_plan *plan, const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    bool const verbose = params->verbose || params->explain, fails = plan->verdict != OOMSIGHT_VERDICT_FITS;
    put_headline(&style, plan);
    put_assumed(&style, plan);
    put_doubts(&style, plan);
    put_capacity(&style, plan);
    if (plan->why && !is_doubt(plan, plan->why)) oos_style_paragraph(&style, 2, plan->why);
    put_message(&style, plan, verbose);
    put_forks(&style, plan, verbose);
    if (verbose && plan->phase != OOS_PHASE_ENV && !plan->refusal.sentence)
        put_phases(&style, plan, params->explain != 0);
    if (fails || plan->answer_count) put_advice(&style, plan, verbose);
    bool first = true;
    for (size_t i = 0; i < plan->note_count; i++) {
        if ((!verbose && is_idle(plan->notes[i])) || is_doubt(plan, plan->notes[i])) continue;
        if (first) oos_text_put(text, "\n");
        first = false;
        put_note(&style, plan->notes[i]);
    }
}

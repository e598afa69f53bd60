/* A plan for a terminal: will it start, why, the figures with their ranges, the suggested command with its trade-off, at most two others.
 * 24 lines; --explain has the phases as bars, what they hold, and everything that was left out. */
#include "report/report.h"
#include "base/locale.h"

#include <stdarg.h>
#include <stdio.h>

/* What is left out first when a screen is full; 0 stays. */
enum { RANK_OTHER = 1, RANK_NOTE, RANK_FORK, RANK_MESSAGE, RANK_SECOND, RANK_NEEDS, RANK_INERT, RANK_NOTES };

static oos_ink heading_ink(const oos_plan *plan)
{
    switch (plan->answer.verdict) {
    case OOMSIGHT_VERDICT_FITS: return OOS_INK_GOOD;
    case OOMSIGHT_VERDICT_FAILS:
    case OOMSIGHT_VERDICT_REFUSED: return OOS_INK_BAD;
    case OOMSIGHT_VERDICT_TIGHT:
    case OOMSIGHT_VERDICT_UNKNOWN: break;
    }
    return plan->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN || oos_plan_likely(plan) ? OOS_INK_WARN
                                                                                     : OOS_INK_BAD;
}

/* ---- will it start ---- */

/* The headline in one line; where it is wider than the screen, its phase stands on the next, and a long reason goes on there. */
static void put_headline(const oos_style *style, const oos_plan *plan)
{
    bool const placed = plan->answer.phase != OOS_PHASE_COUNT;
    char reason[512], phase[64] = "", chance[32];
    oos_report_reason(plan, reason, sizeof reason);
    oos_text line = {0};
    oos_style const inside = {.text = &line, .chinese = style->chinese};
    oos_style_put(&inside, "%s", oos_report_answer_heading(plan));
    if (oos_report_chance(plan, chance, sizeof chance)) oos_style_put(&inside, " %s", chance);
    size_t const heading = line.len;
    if (*reason) {
        oos_text_put(&line, style->chinese ? "\xef\xbc\x9a" : ": ");
        oos_style_put(&inside, "%s", reason);
    }
    if (placed) snprintf(phase, sizeof phase, "  [%s]", oos_phase_word(plan->answer.phase));
    oos_view const words = {line.ptr ? line.ptr : "", line.len};
    unsigned const width = oos_words_columns(words);
    if (width > style->width) {
        oos_style_quote(style, 0, words.ptr);
    } else {
        oos_ink_begin(style, heading_ink(plan));
        oos_text_add(style->text, oos_view_slice(words, 0, heading));
        oos_ink_end(style, heading_ink(plan));
        oos_ink_begin(style, OOS_INK_BOLD);
        oos_text_add(style->text, oos_view_slice(words, heading, words.len));
        oos_ink_end(style, OOS_INK_BOLD);
        if (width + strlen(phase) > style->width) oos_text_put(style->text, "\n");
    }
    if (placed) oos_style_ink(style, OOS_INK_DIM, "%s", phase);
    if (placed || width <= style->width) oos_text_put(style->text, "\n");
    style->text->failed |= line.failed;
    oos_text_free(&line);
}

static void put_setup(const oos_style *style, const oos_plan *plan)
{
    char line[512], name[160], count[32] = "";
    uint64_t const ranks = oos_min(plan->serving.ranks, plan->device.count);
    if (ranks > 1) snprintf(count, sizeof count, "%llu x ", (unsigned long long)ranks);
    oos_format(line, sizeof line, "%s on %s%s (%.2f GiB), %s %s",
               oos_report_model_name(plan->model->path, name, sizeof name), count,
               plan->device.name ? plan->device.name : "a GPU", oos_gib(plan->device.total_bytes),
               plan->engine->title, plan->engine_version ? plan->engine_version : "?");
    oos_style_paragraph(style, 2, line);
    oos_text assumed = {0};
    for (size_t i = 0; i < plan->assumed_count; i++)
        oos_text_printf(&assumed, "%s%s", i ? "; " : "Assumed: ", plan->assumed[i]);
    if (assumed.len && !assumed.failed) oos_style_paragraph(style, 2, assumed.ptr);
    oos_text_free(&assumed);
    if (plan->exact) oos_style_paragraph(style, 2, plan->exact->said);
}

/* ---- why ---- */

void oos_report_sentence(const oos_style *style, unsigned indent, const char *before, const char *words)
{
    oos_text line = {0};
    oos_text_put(&line, before);
    oos_report_grouped(&line, words);
    if (line.len && !line.failed) oos_style_paragraph(style, indent, line.ptr);
    style->text->failed |= line.failed;
    oos_text_free(&line);
}

/* What stands above already. */
static bool is_doubt(const oos_plan *plan, const char *note)
{
    for (size_t i = 0; i < plan->doubt_count; i++)
        if (strcmp(plan->doubts[i], note) == 0) return true;
    return false;
}

/* Why what fits is not certain, or why no flag helps what fails. */
static void put_doubts(const oos_style *style, const oos_plan *plan)
{
    bool const starts = plan->answer.verdict == OOMSIGHT_VERDICT_TIGHT,
               unknown = plan->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN;
    for (size_t i = 0; i < plan->doubt_count; i++)
        if (!unknown || !plan->answer.why ||
            strcmp(plan->doubts[i], plan->answer.why) != 0) /* the headline */
            oos_report_sentence(style, 2, starts ? "Not certain: " : "", plan->doubts[i]);
}

/* The rows of the phase that decides, or of serving when all is well. */
static const oos_moment *shown_phase(const oos_plan *plan)
{
    for (size_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].phase == plan->answer.phase) return &plan->phases[i];
    return plan->phase_count ? &plan->phases[plan->phase_count - 1] : NULL;
}

/* What the engine would print, so that it can be recognised; short, its first sentence. */
static void put_message(const oos_style *style, const oos_plan *plan, bool whole)
{
    char tried[32];
    const oos_moment *moment = shown_phase(plan);
    oos_text line = {0};
    if (plan->refusal.sentence) {
        oos_text_printf(&line, OOS_EXPECTED_ERROR "%s", plan->refusal.sentence);
    } else if (plan->answer.tried_bytes.known && plan->answer.verdict == OOMSIGHT_VERDICT_FAILS) {
        oos_size_print(plan->answer.tried_bytes.value, tried, sizeof tried);
        oos_text_printf(
            &line, OOS_EXPECTED_ERROR "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %s.",
            tried);
    } else if (plan->answer.verdict == OOMSIGHT_VERDICT_REFUSED && moment && moment->message &&
               plan->answer.phase != OOS_PHASE_ENV) {
        const char *end = strstr(moment->message, ". ");
        int const len = !whole && end ? (int)(end - moment->message) + 1 : (int)strlen(moment->message);
        oos_text_printf(&line, OOS_EXPECTED_ERROR "%.*s", len, moment->message);
    }
    if (line.len && !line.failed) {
        oos_ink_begin(style, OOS_INK_DIM);
        oos_style_hanging(style, 2, line.ptr);
        oos_ink_end(style, OOS_INK_DIM);
    }
    oos_text_free(&line);
}

/* ---- figures ---- */

static void put_figure(const oos_style *style, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put_figure(const oos_style *style, const char *label, const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    oos_vformat(line, sizeof line, format, args);
    va_end(args);
    oos_text_put(style->text, "  ");
    oos_style_cell(style, 24, label);
    oos_style_put(style, "%s", line);
    oos_text_put(style->text, "\n");
}

static void put_cache(const oos_style *style, const oos_plan *plan)
{
    char tokens[40], length[40];
    bool const given = plan->layout.blocks_given || plan->sizes.non_kv.bytes == 0;
    uint64_t const cache = plan->layout.blocks_given ? oos_mul(plan->kv.blocks, plan->layout.block_bytes)
                                                     : plan->kv.available_bytes,
                   low = oos_sub(plan->sizes.budget_bytes, plan->sizes.non_kv.high),
                   high = oos_sub(plan->sizes.budget_bytes, plan->sizes.non_kv.low);
    oos_style_count(tokens, sizeof tokens, plan->kv.tokens);
    oos_style_count(length, sizeof length, plan->serving.length);
    if (!given && low <= cache && cache <= high && high - low >= OOS_MIB * 5)
        put_figure(style, "KV cache", "%.2f GiB (%.2f to %.2f), %s tokens", oos_gib(cache), oos_gib(low),
                   oos_gib(high), tokens);
    else
        put_figure(style, "KV cache", "%.2f GiB, %s tokens", oos_gib(cache), tokens);
    put_figure(style, "Maximum concurrency", "%.2fx for %s tokens per request", plan->kv.max_concurrency,
               length);
}

static void put_figures(const oos_style *style, const oos_plan *plan)
{
    bool const cached = !plan->model->encoder_only || plan->kv.tokens > 0;
    if ((plan->kv.tokens == 0 && cached) || plan->answer.verdict == OOMSIGHT_VERDICT_FAILS ||
        plan->answer.verdict == OOMSIGHT_VERDICT_REFUSED)
        return;
    oos_text_put(style->text, "\n");
    if (plan->sizes.weights.loaded_bytes)
        put_figure(style, "Weights", "%.2f GiB per GPU", oos_gib(plan->sizes.weights.loaded_bytes));
    if (cached)
        put_cache(style, plan);
    else
        put_figure(style, "KV cache", "none: requests are encoded whole");
    const oos_moment *peak = plan->phase_count ? &plan->phases[plan->phase_count - 1] : NULL;
    if (peak && peak->phase > OOS_PHASE_KV_SIZING && peak->limit_bytes)
        put_figure(style, "Peak memory", "%.2f GiB (%.2f to %.2f) of %.2f GiB", oos_gib(peak->peak_bytes),
                   oos_gib(peak->peak_low), oos_gib(peak->peak_high), oos_gib(peak->limit_bytes));
    if (plan->serving.attention && strcmp(plan->serving.attention, "auto") != 0)
        put_figure(style, "Attention backend", "%s", plan->serving.attention);
}

/* What depends on more than flags, where it makes a difference. */
static void put_forks(const oos_style *style, const oos_plan *plan, bool all)
{
    for (size_t i = 0; i < plan->help.fork_count; i++) {
        const oos_fork *fork = &plan->help.forks[i];
        uint64_t const apart = oos_far(fork->kv_bytes, fork->other_kv_bytes);
        bool const far = apart > plan->device.total_bytes / 100;
        if (fork->verdict == fork->other_verdict && !far && (!all || apart == 0)) continue;
        char tokens[40], other[40], line[400];
        oos_style_count(tokens, sizeof tokens, fork->kv_tokens);
        oos_style_count(other, sizeof other, fork->other_kv_tokens);
        oos_format(line, sizeof line, "KV cache with a %s, as planned: %.2f GiB, %s tokens.", fork->meant,
                   oos_gib(fork->kv_bytes), tokens);
        bool const told = plan->answer.why && plan->answer.verdict != OOMSIGHT_VERDICT_UNKNOWN;
        if (style->text->len == 0 && !told && !plan->doubt_count) oos_text_put(style->text, "\n");
        oos_style_paragraph(style, 2, line);
        oos_format(line, sizeof line, "KV cache with a %s: %.2f GiB, %s tokens. To choose, %s.", fork->other,
                   oos_gib(fork->other_kv_bytes), other, fork->closed_by);
        oos_style_paragraph(style, 2, line);
    }
}

static void put_phase(const oos_style *style, const oos_plan *plan, const oos_moment *moment)
{
    bool const decides = moment->phase == plan->answer.phase;
    oos_ink const ink = !moment->ok ? OOS_INK_BAD : moment->tight ? OOS_INK_WARN : OOS_INK_GOOD;
    oos_report_moment_bar(style, moment, ink);
    if (decides && !moment->ok && !moment->tight)
        oos_style_ink(style, OOS_INK_BAD, moment->refusal ? " refused" : " out of memory");
    else if (moment->tight)
        oos_style_ink(style, OOS_INK_WARN, " tight");
    oos_text_put(style->text, "\n");
}

static void put_rows(const oos_style *style, const oos_moment *moment, bool explain)
{
    oos_style_put(style, "\n  Memory %s (GiB)\n", oos_report_where(moment->phase));
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
        if (plan->phases[i].phase == plan->answer.phase && !plan->phases[i].ok && !plan->phases[i].tight)
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

/* What an answer is for, and how long requests may be then, or how many run at once. `after`: the first one takes another checkpoint. */
static void put_title(const oos_style *style, const oos_fix *fix, bool first, bool after)
{
    char length[40], requests[40];
    bool const most = strcmp(fix->name, "most_requests") == 0,
               longest = strcmp(fix->name, "longest_context") == 0;
    uint64_t const reach = fix->certain_length ? fix->certain_length : fix->likely_length;
    oos_style_count(length, sizeof length, most ? fix->request_tokens : reach);
    oos_style_count(requests, sizeof requests, fix->requests);
    oos_text_put(style->text, first ? "\n" : "  ");
    oos_style_ink(style, OOS_INK_BOLD, "%s",
                  first     ? "Suggested command"
                  : most    ? "Highest concurrency"
                  : longest ? "Longest context"
                  : after   ? "Without another checkpoint"
                            : "Smallest change");
    if (most && fix->requests)
        oos_style_put(style, " (%s requests of %s tokens)", requests, length);
    else if (reach)
        oos_style_put(style, " (up to %s tokens per request)", length);
    oos_text_put(style->text, "\n");
}

/* The next word of a command, with what is quoted in it; behind a flag its value as well. */
static size_t word_len(oos_view words)
{
    size_t len = 0;
    char quote = 0;
    for (; len < words.len && (quote || words.ptr[len] != ' '); len++) {
        char const c = words.ptr[len];
        if (!quote && c == '\\' && len + 1 < words.len)
            len++;
        else if (quote ? c == quote : c == '\'' || c == '"')
            quote = quote ? 0 : c;
    }
    return len;
}

static size_t unit_len(oos_view words)
{
    size_t const len = word_len(words);
    oos_view const next = oos_view_slice(words, len + 1, SIZE_MAX);
    bool const valued = words.ptr[0] == '-' && len < words.len && next.len && next.ptr[0] != '-';
    return valued ? len + 1 + word_len(next) : len;
}

/* A command as a shell takes it: too long for a line it goes on in the next, behind a backslash, and never inside a word. */
static void put_wrapped(const oos_style *style, unsigned indent, oos_view words)
{
    unsigned column = 0;
    while (words.len) {
        size_t const len = unit_len(words);
        bool const last = len == words.len,
                   wraps = column && column + 1 + len + (last ? 0 : 2) > style->width;
        unsigned const blanks = wraps ? indent + 4 : column ? 1 : indent;
        if (wraps) oos_text_put(style->text, " \\\n");
        oos_text_repeat(style->text, " ", blanks);
        oos_text_add(style->text, oos_view_slice(words, 0, len));
        column = (wraps ? 0 : column) + blanks + (unsigned)len;
        words = oos_view_slice(words, last ? len : len + 1, SIZE_MAX);
    }
    oos_text_put(style->text, "\n");
}

void oos_report_command(const oos_style *style, unsigned indent, const char *command)
{
    put_wrapped(style, indent, oos_view_of(command));
}

static void put_command(const oos_style *style, const oos_fix *fix)
{
    oos_text flags = {0};
    if (!fix->command) oos_report_change(&flags, fix);
    if (style->color) oos_text_put(style->text, "\033[32m");
    put_wrapped(style, 4,
                fix->command ? oos_view_of(fix->command) : (oos_view){flags.ptr ? flags.ptr : "", flags.len});
    if (style->color) oos_text_put(style->text, "\033[0m");
    oos_text_free(&flags);
}

static void put_cost(const oos_style *style, unsigned indent, const char *before, const oos_fix *fix)
{
    oos_text line = {0};
    oos_text_printf(&line, "%sTrade-off: ", before);
    oos_report_trade_off(&line, fix->gives_up);
    if (fix->verdict == OOMSIGHT_VERDICT_TIGHT && fix->phase != OOS_PHASE_COUNT)
        oos_text_printf(&line, "; not certain: %s is tight", oos_report_point(fix->phase));
    oos_text_put(&line, ".");
    if (!line.failed) oos_style_paragraph(style, indent, line.ptr);
    oos_text_free(&line);
}

/* What it costs to be certain. */
static void put_safety(const oos_style *style, const oos_fix *fix)
{
    char certain[40], middle[40], line[160];
    if (!fix->middle_length || fix->middle_length <= fix->certain_length) return;
    oos_style_count(certain, sizeof certain, fix->certain_length);
    oos_style_count(middle, sizeof middle, fix->middle_length);
    oos_format(line, sizeof line, "Longest request: surely %s tokens, probably %s.", certain, middle);
    oos_style_paragraph(style, 2, line);
}

/* A value of the first answer that the engine can also choose by itself. */
static void put_auto(const oos_style *style, const oos_plan *plan)
{
    for (size_t i = plan->help.answer_count; i < plan->help.fix_count; i++) {
        const oos_fix *fix = &plan->help.fixes[i];
        if (fix->change_count != 2 || strcmp(fix->change[1], "auto") != 0) continue;
        for (size_t k = 0; k + 1 < plan->help.fixes[0].change_count; k++) {
            if (strcmp(plan->help.fixes[0].change[k], fix->change[0]) != 0) continue;
            char line[160];
            snprintf(line, sizeof line, "Or %s auto: the engine chooses the longest context that fits.",
                     fix->change[0]);
            oos_style_paragraph(style, 2, line);
        }
    }
}

/* An answer that is shown takes another share of the GPU than the command does. */
static bool moves_share(const oos_plan *plan)
{
    const char *flag = plan->doubtful.share_flag;
    for (size_t k = 0; flag && k < plan->help.answer_count; k++)
        for (size_t i = 0; i < plan->help.fixes[k].change_count; i++)
            if (strcmp(plan->help.fixes[k].change[i], flag) == 0) return true;
    return false;
}

/* What costs less and was tried before. */
static void put_not_enough(const oos_style *style, const oos_plan *plan, const oos_fix *fix)
{
    static const char *const above[OOS_RUNG_COUNT] = {
        NULL,
        "By themselves not enough: a larger share of the GPU; another release.",
        "By themselves not enough: a larger share of the GPU; another release; smaller defaults.",
        "No change is enough that keeps the flags of the command.",
        "No flag is enough with these weights on these GPUs.",
    };
    static const char *const with_share[OOS_RUNG_COUNT] = {
        [OOS_RUNG_UNASKED] = "By itself not enough: another release.",
        [OOS_RUNG_LITTLE] = "By themselves not enough: another release; smaller defaults.",
    };
    if (fix->rung >= OOS_RUNG_COUNT || fix->model || plan->refusal.sentence) return;
    const char *line = moves_share(plan) ? with_share[fix->rung] : NULL;
    if (line || above[fix->rung]) oos_style_paragraph(style, 2, line ? line : above[fix->rung]);
}

/* The other fixes, one by one. */
static void put_fixes(const oos_style *style, const oos_plan *plan, size_t most)
{
    if (plan->help.fix_count > plan->help.answer_count)
        oos_style_ink(style, OOS_INK_BOLD, "\nOther options (each verified with a new plan)\n");
    for (size_t i = plan->help.answer_count; i < plan->help.fix_count && i < plan->help.answer_count + most;
         i++) {
        const oos_fix *fix = &plan->help.fixes[i];
        char tokens[40], line[80];
        oos_style_count(tokens, sizeof tokens, fix->kv_tokens);
        if (fix->change_count && !fix->without) {
            oos_text flags = {0};
            oos_report_change(&flags, fix);
            put_wrapped(style, 4, (oos_view){flags.ptr ? flags.ptr : "", flags.len});
            oos_text_free(&flags);
        } else {
            put_command(style, fix);
        }
        snprintf(line, sizeof line, "%s KV tokens. ", tokens);
        if (plan->model->encoder_only && !plan->kv.tokens) line[0] = '\0';
        put_cost(style, 8, line, fix);
    }
}

/* The model in the place of the one that is asked for, and its command below. */
static void put_checkpoint(const oos_style *style, const oos_need_checkpoint *need)
{
    char line[320];
    oos_style_paragraph(style, 4, oos_report_named(need, line, sizeof line));
    if (style->color) oos_text_put(style->text, "\033[32m");
    put_wrapped(style, 8, oos_view_of(need->fix.command));
    if (style->color) oos_text_put(style->text, "\033[0m");
}

static void put_needs(const oos_style *style, const oos_plan *plan)
{
    const oos_needs *needs = plan->help.needs;
    if (!needs) return;
    bool const untold =
        (needs->gpu_count && needs->gpus[0].verdict == OOMSIGHT_VERDICT_UNKNOWN) ||
        (needs->checkpoint_count && needs->checkpoints[0].fix.verdict == OOMSIGHT_VERDICT_UNKNOWN);
    bool const led = plan->help.fix_count && plan->help.fixes[0].model;
    if (led && needs->checkpoint_count == 1 && !needs->gpu_count && !needs->release) return;
    oos_text_put(style->text, "\n");
    if (needs->no_release && !needs->checkpoint_count && !needs->checkpoint_bytes) {
        oos_style_paragraph(
            style, 0,
            "No supported release takes this: change what the error names, or use another checkpoint.");
        return;
    }
    oos_style_ink(style, OOS_INK_BOLD,
                  untold ? "No flag is enough. The weights fit on (whether it starts is unknown)\n"
                  : plan->help.answer_count ? "It also fits on\n"
                  : plan->help.fix_count    ? "It fits on\n"
                                            : "No flag is enough. It fits on\n");
    if (led) {
        if (needs->checkpoint_count > 1) put_checkpoint(style, &needs->checkpoints[1]);
    } else if (needs->checkpoint_count) {
        put_checkpoint(style, &needs->checkpoints[0]);
    } else if (needs->checkpoint_bytes) {
        char tokens[40], line[160];
        oos_style_count(tokens, sizeof tokens, needs->checkpoint_tokens);
        oos_format(line, sizeof line, "this GPU with a 4-bit checkpoint (about %.1f GiB, %s KV tokens)",
                   oos_gib(needs->checkpoint_bytes), tokens);
        oos_style_paragraph(style, 4, line);
    }
    if (needs->no_device)
        oos_style_paragraph(style, 4, "no known GPU, not even sixteen: use a smaller model");
    if (needs->release) oos_style_put(style, "    %s %s\n", plan->engine->title, needs->release);
    for (size_t i = 0; i < needs->gpu_count; i++) {
        const oos_need_gpu *need = &needs->gpus[i];
        oos_text line = {0};
        oos_text_printf(&line, "%llu x %s", (unsigned long long)need->count, need->gpu);
        for (size_t k = 0; !need->command && k < need->flag_count; k++)
            oos_text_printf(&line, "%s%s", k ? " " : ": ", need->flags[k]);
        if (!line.failed) oos_style_quote(style, 4, line.ptr);
        style->text->failed |= line.failed;
        oos_text_free(&line);
        if (need->flag_count && need->command) oos_report_command(style, 8, need->command);
    }
}

/* Flags that do nothing for this phase and are in the command for a later one; each phase once. */
static void put_later(const oos_style *style, const oos_plan *plan, size_t first)
{
    oos_phase const phase = plan->help.inert[first].needed_by;
    oos_text flags = {0}, line = {0};
    size_t count = 0;
    for (size_t i = 0; i < first; i++)
        if (plan->help.inert[i].needed_by == phase) return;
    if (phase == OOS_PHASE_COUNT) return;
    for (size_t i = first; i < plan->help.inert_count; i++)
        if (plan->help.inert[i].needed_by == phase)
            oos_text_printf(&flags, "%s%s", count++ ? ", " : "", plan->help.inert[i].flag);
    oos_text_printf(&line, "The suggested command has %s for what comes later: %s.",
                    flags.ptr ? flags.ptr : "", oos_report_point(phase));
    style->text->failed |= flags.failed || line.failed;
    if (!style->text->failed) oos_style_paragraph(style, 2, line.ptr);
    oos_text_free(&flags);
    oos_text_free(&line);
}

static void put_inert(const oos_style *style, const oos_plan *plan)
{
    oos_text line = {0};
    if (!plan->help.inert_count) return;
    oos_text_put(style->text, "\n");
    oos_text_put(&line, "No effect on this failure: ");
    for (size_t i = 0; i < plan->help.inert_count; i++)
        oos_text_printf(&line, "%s%s", i ? ", " : "", plan->help.inert[i].flag);
    if (!line.failed) oos_style_paragraph(style, 2, line.ptr);
    oos_text_free(&line);
    for (size_t i = 0; i < plan->help.inert_count; i++) put_later(style, plan, i);
}

void oos_report_first_answer(const oos_style *style, const oos_plan *plan)
{
    if (!plan->help.answer_count) return;
    put_title(style, &plan->help.fixes[0], true, false);
    put_command(style, &plan->help.fixes[0]);
    put_cost(style, 2, "", &plan->help.fixes[0]);
    put_safety(style, &plan->help.fixes[0]);
}

static void put_advice(oos_screen *screen, const oos_style *style, const oos_plan *plan, bool verbose)
{
    for (size_t i = 0; i < plan->help.answer_count && i < 3; i++) {
        oos_style const part = oos_screen_part(screen, style, i == 0 ? 0 : i == 1 ? RANK_OTHER : RANK_SECOND);
        if (i) {
            put_title(&part, &plan->help.fixes[i], false, plan->help.fixes[0].model);
            put_command(&part, &plan->help.fixes[i]);
            continue;
        }
        oos_report_first_answer(&part, plan);
        put_auto(&part, plan);
        oos_style const tried = oos_screen_part(screen, style, RANK_OTHER);
        put_not_enough(&tried, plan, &plan->help.fixes[0]);
    }
    /* Before single flags: without an answer those lose more than another GPU does. */
    oos_style const needs = oos_screen_part(screen, style, plan->help.answer_count ? RANK_NEEDS : 0);
    put_needs(&needs, plan);
    oos_style const fixes = oos_screen_part(screen, style, RANK_OTHER);
    if (verbose || !plan->help.answer_count) put_fixes(&fixes, plan, verbose ? SIZE_MAX : 3);
    if (plan->help.fix_count == 0 && !plan->help.needs && plan->answer.verdict != OOMSIGHT_VERDICT_UNKNOWN &&
        plan->answer.phase != OOS_PHASE_COUNT && plan->answer.phase != OOS_PHASE_ENV &&
        !plan->refusal.sentence) {
        oos_text_put(needs.text, "\n");
        oos_style_paragraph(&needs, 2,
                            "No flag helps: use a smaller or quantized model, more GPUs, or a larger GPU.");
    }
    oos_style const inert = oos_screen_part(screen, style, RANK_INERT);
    put_inert(&inert, plan);
}

/* What has no effect is not worth a line among 24. */
static bool is_idle(const char *note)
{
    static const char tail[] = ": no effect on memory";
    size_t const len = strlen(note), end = sizeof tail - 1;
    return len > end && strcmp(note + len - end, tail) == 0;
}

/* The reason of an answer that is unknown says it already. */
static bool is_reason(const oos_plan *plan, const char *note)
{
    return plan->answer.verdict == OOMSIGHT_VERDICT_UNKNOWN && plan->model->common &&
           strncmp(note, "architecture ", sizeof "architecture " - 1) == 0;
}

static void put_notes(oos_screen *screen, const oos_style *style, const oos_plan *plan, bool verbose)
{
    size_t shown = 0;
    for (size_t i = 0; i < plan->told.note_count; i++) {
        const char *note = plan->told.notes[i];
        if ((!verbose && is_idle(note)) || is_doubt(plan, note) || is_reason(plan, note)) continue;
        oos_style const part = oos_screen_part(screen, style, shown ? RANK_NOTES : RANK_NOTE);
        if (!shown++) oos_text_put(part.text, "\n");
        oos_report_sentence(&part, 2, "Note: ", note);
    }
}

void oos_report_plan_text(oos_text *text, const oos_plan *plan, const oomsight_render_params *params)
{
    oos_style const style = oos_style_of(text, params);
    bool const verbose = params->verbose || params->explain,
               fails = plan->answer.verdict != OOMSIGHT_VERDICT_FITS;
    oos_screen screen = {.count = 0};
    oos_style part = oos_screen_part(&screen, &style, 0);
    put_headline(&part, plan);
    put_setup(&part, plan);
    put_figures(&part, plan);
    bool const tells = plan->answer.why && !is_doubt(plan, plan->answer.why) && !plan->refusal.sentence &&
                       plan->answer.verdict != OOMSIGHT_VERDICT_UNKNOWN;
    oos_text_put(part.text, plan->doubt_count || tells ? "\n" : "");
    put_doubts(&part, plan);
    if (tells) oos_report_sentence(&part, 2, "", plan->answer.why);
    part = oos_screen_part(&screen, &style, plan->refusal.sentence ? 0 : RANK_MESSAGE);
    put_message(&part, plan, verbose);
    part = oos_screen_part(&screen, &style, RANK_FORK);
    put_forks(&part, plan, verbose);
    part = oos_screen_part(&screen, &style, 0);
    if (verbose && plan->answer.phase != OOS_PHASE_ENV && !plan->refusal.sentence)
        put_phases(&part, plan, params->explain != 0);
    if (fails || plan->help.answer_count) put_advice(&screen, &style, plan, verbose);
    put_notes(&screen, &style, plan, verbose);
    oos_screen_put(&screen, &style, verbose, "More with --explain.");
}

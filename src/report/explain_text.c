/* An explanation for a terminal: what happened, the lines that decide with a caret under the figure, the memory as bars, why, what to
 * change, and how sure all this is. 24 lines; --explain has all of it. */
#include "base/ascii.h"
#include "base/locale.h"
#include "base/shown.h"
#include "log/log.h"
#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>

/* What is left out first when a screen is full; 0 stays. Incidents behind the first follow RANK_NEXT. */
enum {
    RANK_SECOND = 1,
    RANK_MECHANISM,
    RANK_EXCERPT,
    RANK_THIRD,
    RANK_ASK,
    RANK_LEDGER,
    RANK_ENGINE,
    RANK_DEAD_ENDS,
    RANK_FIXES,
    RANK_NEXT
};

/* Below this a stage is a guess, and is called one. */
#define PHASE_GUESSED 0.75

/* What happened, and where: "OUT OF MEMORY during CUDA graph capture". */
static void put_what(const oos_style *style, const oos_incident *incident)
{
    bool const placed = oos_report_incident_where(incident, incident->phase)[0] != '\0';
    if (!incident->is_oom) {
        if (incident->failed)
            oos_style_ink(style, OOS_INK_WARN, "FAILED, but the log does not show a memory error");
        else if (oos_report_is_unfinished(incident))
            oos_style_ink(style, OOS_INK_WARN, "UNFINISHED %s",
                          oos_report_incident_where(incident, incident->phase));
        else if (oos_report_is_unread(incident))
            oos_style_ink(style, OOS_INK_DIM, "NOTHING RECOGNISED");
        else
            oos_style_ink(style, OOS_INK_GOOD, "NO OUT OF MEMORY FOUND");
        return;
    }
    if (incident->phase == OOS_PHASE_KV_SIZING)
        oos_style_ink(style, OOS_INK_BAD, "NOT STARTED: not enough KV cache memory");
    else if (incident->phase == OOS_PHASE_INIT_FREE_MEMORY_CHECK)
        oos_style_ink(style, OOS_INK_BAD, "NOT STARTED: not enough free memory");
    else if (!placed)
        oos_style_ink(style, OOS_INK_BAD, "OUT OF MEMORY, phase unknown");
    else
        oos_style_ink(style, OOS_INK_BAD,
                      incident->phase_sure < PHASE_GUESSED ? "OUT OF MEMORY, perhaps %s" : "OUT OF MEMORY %s",
                      oos_report_incident_where(incident, incident->phase));
}

/* The reason says what the title does: once is enough. */
static bool is_title(const oos_incident *incident)
{
    const char *title = incident->record ? incident->record->title.en : incident->cause_why;
    return *incident->cause_why && oos_same(title, incident->cause_why);
}

/* The record that knows it, or else the phase, in brackets. */
static void put_headline(const oos_explain_page *page, const oos_style *style, const oos_incident *incident)
{
    bool placed = incident->phase != OOS_PHASE_UNKNOWN && incident->phase != OOS_PHASE_NOT_OOM;
    put_what(style, incident);
    if (incident->count > 1) oos_style_put(style, ", %" PRIu64 " times", incident->count);
    placed &= incident->is_oom || (incident->failed && incident->phase_sure >= PHASE_GUESSED);
    if (incident->record || placed)
        oos_style_ink(style, OOS_INK_DIM, "  [%s]",
                      incident->record ? incident->record->id : oos_phase_word(incident->phase));
    oos_text_put(style->text, "\n");
    bool const repeats = incident->failed && !incident->is_oom && !incident->record && !*incident->cause_why;
    char line[1024];
    snprintf(line, sizeof line, "%s", oos_report_incident_title(page, incident));
    if (is_title(incident)) {
        size_t const len = strlen(line);
        oos_format(line + len, sizeof line - len, " (%.0f %%)", incident->cause_sure * 100);
    }
    if (!repeats) oos_style_paragraph(style, 2, line);
}

static void put_setup(const oos_style *style, const oos_incident *incident, const oos_incident_notes *notes)
{
    char line[640];
    size_t len = 0;
    const char *gpu = oos_report_gpu(incident, notes);
    len += (size_t)snprintf(line + len, sizeof line - len, "%s",
                            incident->engine ? oos_engine_title(incident->engine) : "");
    if (incident->setup.version)
        len += (size_t)snprintf(line + len, sizeof line - len, " %.60s", incident->setup.version);
    if (incident->setup.model)
        len += (size_t)snprintf(line + len, sizeof line - len, "%s%.160s", len ? ", " : "",
                                incident->setup.model);
    if (gpu) len += (size_t)snprintf(line + len, sizeof line - len, "%s%.80s", len ? ", " : "", gpu);
    if (oos_known(incident, OOS_NUMBER_total))
        len += (size_t)oos_format(line + len, sizeof line - len, "%s%.2f GiB", len ? ", " : "",
                                  oos_gib(oos_value(incident, OOS_NUMBER_total)));
    if (*incident->file) snprintf(line + len, sizeof line - len, "%s%.200s", len ? ", " : "", incident->file);
    if (line[0]) oos_style_paragraph(style, 2, line);
}

/* The figure that decides: what was asked for, or what the refusal compared. */
static const oos_number *deciding_number(const oos_incident *incident)
{
    static const oos_number_id order[] = {OOS_NUMBER_tried,        OOS_NUMBER_least_fraction,
                                          OOS_NUMBER_kv_available, OOS_NUMBER_startup_free,
                                          OOS_NUMBER_state_blocks, OOS_NUMBER_kv_tokens,
                                          OOS_NUMBER_host_wanted,  OOS_NUMBER_dummy_requests};
    /* In the sleep-mode pool it is the pool, not the small request. */
    if (strcmp(incident->cause, "cumem_pool_strand") == 0 && oos_known(incident, OOS_NUMBER_private_pools))
        return &incident->numbers[OOS_NUMBER_private_pools];
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (oos_known(incident, order[i])) return &incident->numbers[order[i]];
    return NULL;
}

/* A frame of Python: its end tells more than the folders it begins with. */
static bool is_frame(oos_view line)
{
    while (line.len && line.ptr[0] == ' ') line = oos_view_slice(line, 1, SIZE_MAX);
    return oos_view_starts(line, "File \"");
}

/* Of a line that is longer than `room` what shows its bytes up to `mark_end`, in whole words; *ret_start is where it
 * begins. What is left out before and behind it has room for its dots. */
static oos_view shown_part(oos_view line, size_t mark, size_t mark_end, size_t room, size_t *ret_start)
{
    size_t const more = sizeof OOS_SHOWN_MORE - 1;
    bool const frame = !mark_end && is_frame(line);
    size_t start = 0, end = frame ? line.len : mark_end;
    *ret_start = 0;
    if (line.len <= room) return line;
    if (frame) mark = end;
    while (end && end < line.len && line.ptr[end] != ' ' && end < mark_end + 2 * more) end++;
    if (end > room - more) {
        start = oos_min(end - (room - 2 * more), mark);
        size_t word = start;
        while (word < mark && line.ptr[word - 1] != ' ' && !(frame && line.ptr[word - 1] == '/')) word++;
        if (word < mark || line.ptr[mark - 1] == ' ') start = word;
        while (start < line.len && ((unsigned char)line.ptr[start] & 0xc0) == 0x80) start++;
    }
    room -= start ? more : 0;
    oos_view const rest = oos_view_slice(line, start, SIZE_MAX);
    oos_view const shown = rest.len <= room ? rest : oos_shown_beginning(rest, room - more);
    *ret_start = start;
    return shown.len + start < end ? oos_view_slice(rest, 0, end - start) : shown;
}

/* One line of the log behind its number, with carets under `mark`. Who printed it and when is left out; what
 * does not fit loses its beginning as far as the mark allows. */
static void put_excerpt_line(const oos_style *style, const oos_evidence *evidence, const char *mark)
{
    unsigned const gutter = 8, room = style->width > gutter + 20 ? style->width - gutter : 60;
    oos_text whole = {0};
    oos_shown_put(&whole, oos_logline_read(oos_view_of(evidence->text)).message, false);
    oos_view const line = {whole.ptr ? whole.ptr : "", whole.len};
    const char *at = mark && *mark && line.len ? memmem(line.ptr, line.len, mark, strlen(mark)) : NULL;
    size_t const mark_len = at ? strlen(mark) : 0;
    size_t const mark_end = at ? (size_t)(at - line.ptr) + mark_len : 0;
    size_t start;
    oos_view const shown = shown_part(line, mark_end - mark_len, mark_end, room, &start);
    size_t const before = start ? sizeof OOS_SHOWN_MORE - 1 : 0;
    oos_style_ink(style, OOS_INK_DIM, "%6" PRIu64 "| ", evidence->line);
    if (before) oos_text_put(style->text, OOS_SHOWN_MORE);
    oos_text_add(style->text, shown);
    if (start + shown.len < line.len) oos_text_put(style->text, OOS_SHOWN_MORE);
    oos_text_put(style->text, "\n");
    if (at) {
        oos_text_repeat(style->text, " ", gutter + before + mark_end - mark_len - start);
        for (size_t i = 0; i < mark_len; i++) oos_style_ink(style, OOS_INK_BAD, "^");
        oos_text_put(style->text, "\n");
    }
    style->text->failed |= whole.failed;
    oos_text_free(&whole);
}

/* Outer frames and wrappers say little; of the frames the last ones are the most telling. */
static bool is_telling(const oos_incident *incident, size_t index)
{
    static const char *const dull[] = {"frame.file", "frame.traceback", "frame.engine_init", "mark.snapshot"};
    const char *signal = incident->evidence[index].signal;
    for (size_t i = 0; i < sizeof dull / sizeof *dull; i++)
        if (strcmp(signal, dull[i]) == 0) return false;
    if (strncmp(signal, "wrap.", 5) == 0) return false;
    if (strncmp(signal, "frame.", 6) != 0) return true;
    size_t later = 0;
    for (size_t i = index + 1; i < incident->evidence_count; i++)
        later += strncmp(incident->evidence[i].signal, "frame.", 6) == 0;
    return later < 2;
}

static bool is_repeated(const oos_incident *incident, size_t index)
{
    oos_view const own = oos_logline_read(oos_view_of(incident->evidence[index].text)).message;
    for (size_t i = 0; i < index; i++)
        if (oos_view_equal(own, oos_logline_read(oos_view_of(incident->evidence[i].text)).message))
            return true;
    return false;
}

/* What the engine itself advises stands behind the figures, where a line is cut. */
static void put_answer(const oos_style *style, const oos_incident *incident)
{
    for (size_t i = 0; i < incident->evidence_count; i++) {
        if (!incident->evidence[i].whole) continue;
        oos_text whole = {0};
        oos_text_put(&whole, "The engine says: ");
        oos_shown_put(&whole, oos_logline_read(oos_view_of(incident->evidence[i].text)).message, false);
        oos_text_put(style->text, "\n");
        oos_style_hanging(style, 2, whole.ptr ? whole.ptr : "");
        style->text->failed |= whole.failed;
        oos_text_free(&whole);
        return;
    }
}

static void put_excerpt(const oos_style *style, const oos_incident *incident, size_t most)
{
    size_t const deciding_max = most < 8 ? 2 : 3;
    const oos_number *number = deciding_number(incident);
    size_t shown = 0, deciding = 0;
    bool pointed = false;
    for (size_t i = 0; i < incident->evidence_count && shown < most; i++) {
        const oos_evidence *evidence = &incident->evidence[i];
        bool const points = number && evidence->line == number->line && !pointed;
        if (!points && (!is_telling(incident, i) || (evidence->decides && deciding >= deciding_max)))
            continue;
        /* The line that decides has its place in any case; what was printed before is not printed again. */
        if (!points && (shown + (number && !pointed) >= most || is_repeated(incident, i))) continue;
        if (!shown) oos_text_put(style->text, "\n");
        put_excerpt_line(style, evidence, points ? number->text : NULL);
        pointed |= points;
        deciding += evidence->decides;
        shown++;
    }
}

static void put_label(const oos_style *style, const char *label, double gibs)
{
    oos_text_put(style->text, "  ");
    oos_style_cell(style, 34, label);
    oos_text_printf(style->text, " %8.2f GiB", gibs);
}

static void put_ledger(const oos_style *style, const oos_incident *incident)
{
    if (!incident->held.peak_bytes) return;
    oos_text_put(style->text, "\n");
    oos_report_bars(style, &incident->held, 8 * OOS_MIB);
    if (!oos_known(incident, OOS_NUMBER_tried)) return;
    put_label(style, oos_report_owner_title(OOS_OWNER_ASKED), oos_gib(oos_value(incident, OOS_NUMBER_tried)));
    oos_text_put(style->text, "\n");
}

/* One fix: what to change, why, and its trade-off. */
static void put_fix(const oos_style *style, const oos_advice *fix, bool first)
{
    oos_text change = {0}, line = {0};
    const char *why = style->chinese ? fix->why.zh : fix->why.en,
               *cost = style->chinese ? fix->cost.zh : fix->cost.en;
    oos_report_advice_change(fix, &change);
    if (style->color) oos_text_put(style->text, "\033[32m");
    if (first && fix->command)
        oos_report_command(style, 2, fix->command);
    else
        oos_style_paragraph(style, 2, change.ptr ? change.ptr : "");
    if (style->color) oos_text_put(style->text, "\033[0m");
    oos_text_put(&line, why);
    if (cost) oos_text_printf(&line, style->chinese ? "；代价：%s" : ". Trade-off: %s.", cost);
    if (!line.failed) oos_style_paragraph(style, 6, line.ptr);
    style->text->failed |= change.failed || line.failed;
    oos_text_free(&change);
    oos_text_free(&line);
}

static void put_fixes(oos_screen *screen, const oos_style *style, const oos_incident *incident, unsigned base)
{
    size_t shown = 0;
    for (size_t i = 0; i < incident->fix_count; i++) {
        unsigned const rank = shown == 0   ? 0
                              : shown == 1 ? RANK_SECOND
                              : shown == 2 ? RANK_THIRD
                                           : RANK_FIXES;
        oos_style const part = oos_screen_part(screen, style, base + rank);
        if (!shown++)
            oos_style_ink(&part, OOS_INK_BOLD,
                          incident->is_oom ? "\nWhat to change\n"
                                           : "\nWhat to change, if memory is the reason\n");
        put_fix(&part, &incident->fixes[i], shown == 1);
    }
}

/* What people try in vain, in one paragraph. */
static void put_dead_ends(const oos_style *style, const oos_incident *incident)
{
    oos_text line = {0};
    for (size_t i = 0; i < incident->dead_end_count; i++) {
        const oos_advice *advice = &incident->dead_ends[i];
        oos_text_put(&line, !line.len ? "" : style->chinese ? "；" : "; ");
        oos_text change = {0};
        oos_report_advice_change(advice, &change);
        oos_style const inside = {.text = &line, .chinese = style->chinese};
        oos_style_put(&inside, "%s", change.ptr ? change.ptr : "");
        oos_text_free(&change);
        oos_text_printf(&line, style->chinese ? "（%s）" : " (%s)",
                        style->chinese ? advice->why.zh : advice->why.en);
    }
    if (!line.len || line.failed) return;
    oos_style_ink(style, OOS_INK_BOLD, "No effect on this failure\n");
    oos_style_quote(style, 2, line.ptr);
    oos_text_free(&line);
}

static void put_mechanism(const oos_explain_page *page, const oos_style *style, const oos_incident *incident)
{
    if (incident->record)
        oos_style_paragraph(style, 2,
                            page->chinese ? incident->record->mechanism.zh : incident->record->mechanism.en);
}

/* A sentence and how sure it is, one per line. */
static void put_reasons(const oos_style *style, const oos_incident *incident)
{
    char line[1024];
    const char *basis = oos_basis_words(incident->basis),
               *where = oos_report_incident_where(incident, incident->phase);
    const char *why = incident->cause_why, *title = oos_cause_title(incident->cause);
    bool const runs = where != oos_report_where(incident->phase); /* a program: it serves nothing */
    const char *const stage =
        !runs && incident->phase_why && *incident->phase_why ? incident->phase_why : where;
    if (strcmp(incident->cause, "insufficient_info") == 0 && !*why)
        oos_style_paragraph(style, 2, "Cause: the log does not show it.");
    else if (!is_title(incident)) {
        oos_format(line, sizeof line, "Cause (%.0f %%): %s.", incident->cause_sure * 100, *why ? why : title);
        oos_style_paragraph(style, 2, line);
    }
    if (incident->basis == OOS_BASIS_USUAL && incident->phase_count > 1) {
        /* said below, with the question that decides */
    } else if (incident->basis == OOS_BASIS_USUAL && *where) {
        oos_format(line, sizeof line, "Phase (%.0f %%): the log does not show it; most often it is %s.",
                   incident->phase_sure * 100, where);
        oos_style_paragraph(style, 2, line);
    } else if (*stage) {
        oos_format(line, sizeof line, *where ? "Phase (%.0f %%)%s%s: %s." : "Known (%.0f %%)%s%s: %s.",
                   incident->phase_sure * 100, *basis ? ", " : "", basis, stage);
        oos_style_paragraph(style, 2, line);
    }
    oos_text also = {0};
    for (size_t i = 0; i < incident->also_count; i++)
        if (strcmp(incident->also[i], "insufficient_info") != 0)
            oos_text_printf(&also, "%s%s",
                            also.len ? "; " : "Also possible: ", oos_cause_title(incident->also[i]));
    if (also.len) oos_text_put(&also, ".");
    if (also.len && !also.failed) oos_style_paragraph(style, 2, also.ptr);
    style->text->failed |= also.failed;
    oos_text_free(&also);
}

/* Where the text does not decide: what it leaves, and the question that tells them apart. */
static void put_question(const oos_style *style, const oos_incident *incident)
{
    char line[1024];
    const char *where[OOS_STAGES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < incident->phase_count; i++) {
        const char *words = oos_report_incident_where(incident, incident->phases[i]);
        bool said = false;
        for (size_t k = 0; k < count; k++) said |= strcmp(where[k], words) == 0;
        if (!said) where[count++] = words;
    }
    if (count == 3)
        snprintf(line, sizeof line, "The text does not decide; most often it fails %s, %s or %s.", where[0],
                 where[1], where[2]);
    else if (count == 2)
        snprintf(line, sizeof line, "The text does not decide; most often it fails %s or %s.", where[0],
                 where[1]);
    if (count > 1) oos_style_paragraph(style, 2, line);
    if (!incident->question) return;
    snprintf(line, sizeof line, "What would decide it: %s", incident->question);
    oos_style_paragraph(style, 2, line);
}

static void put_ask(const oos_style *style, const oos_incident *incident)
{
    char line[1024];
    if (incident->phase_count > 1) put_question(style, incident);
    if (incident->question) return;
    if (!incident->ask) return;
    snprintf(line, sizeof line, "To be sure, add %s.", incident->ask);
    oos_style_paragraph(style, 2, line);
}

/* What a healthy start shows: how much was left in each phase. */
static void put_headroom(const oos_style *style, const oos_incident *incident)
{
    static const struct {
        const char *label;
        oos_number_id id;
    } rows[] = {{"weights", OOS_NUMBER_weights},
                {"activation peak", OOS_NUMBER_activation_peak},
                {"non-PyTorch memory while profiling", OOS_NUMBER_non_torch},
                {"graphs, estimated", OOS_NUMBER_cudagraph_estimate},
                {"graphs, captured", OOS_NUMBER_cudagraph},
                {"graphs of prefill, captured", OOS_NUMBER_cudagraph_prefill},
                {"KV cache", OOS_NUMBER_kv_available},
                {"memory budget", OOS_NUMBER_requested},
                {"free when ready", OOS_NUMBER_ready_free}};
    oos_text_put(style->text, "\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (oos_known(incident, rows[i].id)) {
            put_label(style, rows[i].label,
                      oos_gib(oos_value(incident, rows[i].id)) *
                          (incident->numbers[rows[i].id].negative ? -1 : 1));
            oos_text_put(style->text, "\n");
        }
    if (oos_known(incident, OOS_NUMBER_kv_tokens)) {
        oos_text_put(style->text, "  ");
        oos_style_cell(style, 34, "KV cache, tokens");
        char tokens[32];
        oos_style_count(tokens, sizeof tokens, oos_value(incident, OOS_NUMBER_kv_tokens));
        oos_text_printf(style->text, " %8s\n", tokens);
    }
    uint64_t const total = oos_value(incident, OOS_NUMBER_total),
                   budget = oos_value(incident, OOS_NUMBER_requested);
    if (!total || !budget || total <= budget) return;
    put_label(style, "headroom while serving", oos_gib(total - budget));
    oos_style_put(style, " for contexts, CUDA graphs and the sampler\n");
}

/* The phase in words, which stands in brackets. */
static void put_check(const oos_style *style, const char *check)
{
    const char *open = strchr(check, '('), *close = open ? strchr(open, ')') : NULL;
    char word[64], line[512];
    size_t const len = close ? (size_t)(close - open) - 1 : 0;
    snprintf(word, sizeof word, "%.*s", (int)len, open ? open + 1 : "");
    const char *where = oos_report_where(oos_phase_find(word));
    if (*where) snprintf(line, sizeof line, "%.*s(%s%s", (int)(open - check), check, where, close);
    oos_style_paragraph(style, 2, *where ? line : check);
}

static void put_plan(const oos_style *style, const oos_incident_notes *notes)
{
    if (notes->plan_flags && *notes->plan_flags) {
        oos_text_put(style->text, "\n");
        oos_style_ink(style, OOS_INK_BOLD, "Suggested for this model and GPU: ");
        oos_style_ink(style, OOS_INK_GOOD, "%s", notes->plan_flags);
        oos_text_put(style->text, "\n");
    }
    if (notes->plan_check) put_check(style, notes->plan_check);
}

static void put_incident(const oos_explain_page *page, oos_screen *screen, const oos_style *style,
                         size_t index)
{
    const oos_incident *incident = &page->explanation->incidents[index];
    unsigned const base = index ? RANK_NEXT : 0;
    oos_style part = oos_screen_part(screen, style, index > 2 ? RANK_NEXT : 0);
    if (index) oos_text_put(part.text, "\n");
    put_headline(page, &part, incident);
    put_setup(&part, incident, &page->notes[index]);
    if (!incident->is_oom && !incident->failed) {
        put_headroom(&part, incident);
        if (oos_report_is_unfinished(incident)) put_ask(&part, incident);
        return;
    }
    part = oos_screen_part(screen, style, base + RANK_EXCERPT);
    put_excerpt(&part, incident, page->whole ? 8 : 3);
    part = oos_screen_part(screen, style, base + RANK_ENGINE);
    put_answer(&part, incident);
    part = oos_screen_part(screen, style, base + RANK_LEDGER);
    put_ledger(&part, incident);
    part = oos_screen_part(screen, style, base);
    oos_text_put(part.text, "\n");
    part = oos_screen_part(screen, style, base + RANK_MECHANISM);
    put_mechanism(page, &part, incident);
    part = oos_screen_part(screen, style, base);
    put_reasons(&part, incident);
    part = oos_screen_part(screen, style, base + RANK_ASK);
    put_ask(&part, incident);
    part = oos_screen_part(screen, style, base);
    put_plan(&part, &page->notes[index]);
    put_fixes(screen, style, incident, base);
    part = oos_screen_part(screen, style, base + RANK_DEAD_ENDS);
    put_dead_ends(&part, incident);
}

void oos_report_explain_text(const oos_explain_page *page, const oos_style *style)
{
    const oos_explanation *e = page->explanation;
    size_t const most = page->whole ? SIZE_MAX : 8;
    oos_screen screen = {.count = 0};
    for (size_t i = 0; i < e->count && i < most; i++) {
        put_incident(page, &screen, style, i);
        if (page->whole) oos_screen_put(&screen, style, true, "");
    }
    oos_screen_put(&screen, style, page->whole, "More with --explain.");
    if (e->count > most) oos_style_put(style, "%zu more incidents with --explain.\n", e->count - most);
    oos_report_cut_notes(e, style, "\nNote: ", "\n");
}

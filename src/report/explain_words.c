/* Sentences that the formats share. */
#include "report/explain_report.h"
#include "explain/advice.h"
#include "log/scan.h"

#include <inttypes.h>
#include <stdio.h>

const char *oos_report_gpu(const oos_incident *incident, const oos_incident_notes *notes)
{
    return incident->setup.gpu ? incident->setup.gpu : notes->gpu_sure ? notes->gpu_guess : NULL;
}

const char *oos_report_incident_state(const oos_incident *incident)
{
    if (incident->is_oom)
        return incident->phase == OOS_PHASE_KV_SIZING || incident->phase == OOS_PHASE_INIT_FREE_MEMORY_CHECK
                   ? "refused"
                   : "out_of_memory";
    if (incident->failed) return "failed";
    if (incident->binary) return "binary";
    if (incident->last_line == 0) return "empty";
    bool const known = strcmp(incident->cause, "healthy_log") == 0 || incident->phase != OOS_PHASE_NOT_OOM;
    return known ? "no_failure" : "nothing_recognised";
}

bool oos_report_is_unread(const oos_incident *incident)
{
    const char *state = oos_report_incident_state(incident);
    return strcmp(state, "nothing_recognised") == 0 || strcmp(state, "binary") == 0 ||
           strcmp(state, "empty") == 0;
}

const char *oos_report_incident_title(const oos_explain_page *page, const oos_incident *incident)
{
    if (incident->record) return page->chinese ? incident->record->title.zh : incident->record->title.en;
    if (incident->is_oom) return incident->cause_why;
    if (incident->failed) return "a failure, but the log does not say that memory is the reason";
    if (incident->binary) return "this is a binary file, not a log";
    if (incident->last_line == 0) return "the file is empty";
    return strcmp(incident->cause, "healthy_log") == 0 ? "no failure in this log"
                                                       : "nothing in this log was recognised";
}

/* The utilisation that the free memory of the start allows, a quarter GiB kept back, in whole hundredths. */
static bool fitting_gmu(const oos_incident *incident, oos_text *text)
{
    uint64_t const total = oos_value(incident, OOS_NUMBER_total),
                   free_bytes = oos_value(incident, OOS_NUMBER_startup_free);
    uint64_t const usable = oos_sub(free_bytes, OOS_GIB / 4);
    if (!total || usable < total / 100 || usable > total) return false;
    oos_text_printf(text, "0.%02u", (unsigned)((double)usable / (double)total * 100));
    return true;
}

/* "{state_blocks|64}": the first of the named figures that the log has, else the last word. */
static void put_value(const char *word, const oos_incident *incident, oos_text *text)
{
    size_t const len = strlen(word);
    if (len < 3 || word[0] != '{' || word[len - 1] != '}' || strchr(word, '"')) {
        oos_text_put(text, word);
        return;
    }
    for (const char *at = word + 1;;) {
        size_t const name = strcspn(at, "|}");
        if (at[name] == '}') {
            oos_text_add(text, (oos_view){at, name});
            return;
        }
        if (incident && oos_view_is((oos_view){at, name}, "fitting_gmu") && fitting_gmu(incident, text))
            return;
        for (oos_number_id id = 0; incident && id < OOS_NUMBER_COUNT; id++)
            if (oos_number_unit(id) == 'N' && oos_view_is((oos_view){at, name}, oos_number_key(id)) &&
                oos_value(incident, id)) {
                oos_text_printf(text, "%" PRIu64, oos_value(incident, id));
                return;
            }
        at += name + 1;
    }
}

/* Of a flag without a value to paste: one, "a lower --flag". */
size_t oos_report_advice_count(const oos_advice *advice, const oos_incident *incident)
{
    return oos_advice_direction(advice, incident) ? 1 : advice->change_count;
}

void oos_report_advice_change(const oos_advice *advice, const oos_incident *incident, oos_text *text)
{
    for (size_t i = 0; i < oos_report_advice_count(advice, incident); i++) {
        const char *word = advice->change[i];
        /* A flag's JSON value needs quotes; an action in words is a sentence and stays one. */
        bool const quote = i > 0 && strpbrk(word, " \"");
        if (i) oos_text_put(text, " ");
        if (quote) oos_text_put(text, "'");
        oos_report_advice_word(advice, i, incident, text);
        if (quote) oos_text_put(text, "'");
    }
}

void oos_report_advice_word(const oos_advice *advice, size_t at, const oos_incident *incident, oos_text *text)
{
    char value[OOS_ADVICE_VALUE_BYTES];
    const char *direction = at == 0 ? oos_advice_direction(advice, incident) : NULL;
    if (direction) oos_text_printf(text, "a %s ", direction);
    if (at == 1 && oos_advice_settle(advice, incident, value) == OOS_ADVICE_FILLED)
        oos_text_put(text, value);
    else
        put_value(advice->change[at], incident, text);
}

static void put_cut_note(const oos_style *style, const char *before, const char *note, const char *after)
{
    oos_text_put(style->text, before);
    oos_style_put(style, "%s", note);
    oos_text_put(style->text, after);
}

void oos_report_cut_notes(const oos_explanation *e, const oos_style *style, const char *before,
                          const char *after)
{
    static const char *const reasons[] = {
        [OOS_LOGSTREAM_TOO_LARGE] = "the archive expands beyond the limit; only its first part was read",
        [OOS_LOGSTREAM_TOO_DEEP] = "archives inside archives: the innermost were not opened",
        [OOS_LOGSTREAM_DAMAGED] = "the archive is damaged; what could be read was",
        [OOS_LOGSTREAM_NOT_OPENED] = "this build of oomsight opens no archives: unpack it first"};
    char line[160];
    if (e->stream_cut != OOS_LOGSTREAM_WHOLE) put_cut_note(style, before, reasons[e->stream_cut], after);
    if (e->cut_lines) {
        snprintf(line, sizeof line, "lines longer than %d KiB were looked at only around their hits",
                 OOS_LINE_MAX_BYTES >> 10);
        put_cut_note(style, before, line, after);
    }
    if (e->cut_hits) put_cut_note(style, before, "some blocks held more hits than are looked at", after);
    if (e->dropped) {
        snprintf(line, sizeof line, "%" PRIu64 " further distinct incidents are not shown", e->dropped);
        put_cut_note(style, before, line, after);
    }
}

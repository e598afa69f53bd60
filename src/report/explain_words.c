/* Sentences that the formats share. */
#include "report/report.h"
#include "log/log.h"

#include <inttypes.h>
#include <stdio.h>

const char *oos_report_gpu(const oos_incident *incident, const oos_incident_notes *notes)
{
    return incident->setup.gpu ? incident->setup.gpu : notes->gpu_sure ? notes->gpu_guess : NULL;
}

bool oos_report_is_unfinished(const oos_incident *incident)
{
    return !incident->is_oom && !incident->failed && incident->phase != OOS_PHASE_NOT_OOM &&
           strcmp(incident->cause, "insufficient_info") == 0;
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
    if (oos_report_is_unfinished(incident)) return "unfinished";
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
    if (incident->failed && *incident->cause_why) return incident->cause_why;
    if (incident->failed) return "a failure, but the log does not say that memory is the reason";
    if (incident->binary) return "this is a binary file, not a log";
    if (incident->last_line == 0) return "the file is empty";
    if (oos_report_is_unfinished(incident)) return "the log ends before the engine is up";
    return strcmp(incident->cause, "healthy_log") == 0 ? "no failure in this log"
                                                       : "nothing in this log was recognised";
}

/* "{state_blocks|64}", of a record that no log has filled in: the last word. */
static void put_word(const char *word, oos_text *text)
{
    size_t const len = strlen(word);
    bool const open = len > 2 && word[0] == '{' && word[len - 1] == '}' && !strchr(word, '"');
    const char *bar = open ? strrchr(word, '|') : NULL, *from = bar ? bar + 1 : word + open;
    oos_text_add(text, (oos_view){from, strlen(from) - open});
}

void oos_report_advice_change(const oos_advice *advice, oos_text *text)
{
    for (size_t i = 0; i < advice->change_count; i++) {
        const char *word = advice->change[i];
        /* A flag's JSON value needs quotes; an action in words is a sentence and stays one. */
        bool const quote = i > 0 && strpbrk(word, " \"");
        if (i) oos_text_put(text, " ");
        if (quote) oos_text_put(text, "'");
        put_word(word, text);
        if (quote) oos_text_put(text, "'");
    }
}

bool oos_report_contradicts(const oos_incident_notes *notes, const oos_advice *advice)
{
    const char *flag = advice->change[0];
    size_t const len = strcspn(flag, " =");
    for (size_t i = 0; i < notes->fix_count; i++)
        for (size_t k = 0; k < notes->fixes[i].change_count; k++)
            if (strncmp(notes->fixes[i].change[k], flag, len) == 0) return true;
    return false;
}

bool oos_report_repeats(const oos_incident_notes *notes, const oos_advice *advice)
{
    const char *flag = advice->change[0], *at = notes->plan_flags;
    if (!notes->fix_count || !at || strncmp(flag, "--", 2) != 0) return false;
    size_t const len = strlen(flag);
    while ((at = strstr(at, flag)) && at[len] != ' ' && at[len] != '\0') at += len;
    return at != NULL;
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

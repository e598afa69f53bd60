/* Incidents of texts that grow. A crash loop fails in the same way every minute: the first of a kind in a log is told in full, those of the next
 * hour as a number. */
#include "api/api.h"
#include "base/hash.h"
#include "base/table.h"

#include <stdlib.h>

enum { KINDS_MAX = 4096 };
#define AGAIN_NS ((int64_t)3600 * 1000000000)

struct oos_told_kind {
    uint64_t key, full, first; /* ids of the one told in full, and of the first not reported yet */
    int64_t told_at;
    uint64_t count; /* since the last report */
    char *fixes;    /* of the one told in full, as a member of JSON */
    oos_text text;  /* the report of them */
    UT_hash_handle hh;
};

static void write_one(oos_teller *t, const oos_incident_source *source, const oos_incident *incident,
                      const oos_incident_notes *notes, oos_text *text)
{
    oos_explanation const explanation = {.incidents = (oos_incident *)incident, .count = 1};
    oos_style const style = oos_style_of(text, &t->render);
    oos_explain_page const page = {.explanation = &explanation,
                                   .notes = notes,
                                   .path = source->path,
                                   .source = source,
                                   .chinese = style.chinese};
    if (t->render.format == OOMSIGHT_FORMAT_TEXT)
        oos_report_explain_text(&page, &style);
    else
        oos_report_explain_json(&page, text);
}

static void forget(oos_teller *t, oos_told_kind *kind)
{
    HASH_DEL(t->kinds, kind);
    oos_text_free(&kind->text);
    free(kind->fixes);
    free(kind);
}

static void report(oos_teller *t, oos_told_kind *kind)
{
    if (!kind->count) return;
    oos_assert(kind->text.len > 0 || kind->text.failed);
    oos_text_add(&t->text, (oos_view){kind->text.ptr, kind->text.len});
    t->text.failed |= kind->text.failed;
    kind->count = 0;
    kind->text.len = 0;
}

/* *ret_again false: it is told in full. NULL: no memory to keep it in mind. */
static oos_told_kind *kind_of(oos_teller *t, const oos_incident_source *source, const oos_incident *incident,
                              bool *ret_again)
{
    uint64_t const key = oos_hash_add(incident->fingerprint, source->path, strlen(source->path));
    oos_told_kind *kind;
    HASH_FIND(hh, t->kinds, &key, sizeof key, kind);
    *ret_again = kind && source->seen - kind->told_at < AGAIN_NS;
    if (*ret_again) return kind;
    if (kind) report(t, kind);
    if (!kind && HASH_COUNT(t->kinds) >= KINDS_MAX) {
        report(t, t->kinds); /* the one that was met first */
        forget(t, t->kinds);
    }
    if (!kind) kind = calloc(1, sizeof *kind);
    if (!kind) return NULL;
    bool const fresh = !kind->key;
    kind->key = key;
    kind->full = source->id;
    kind->told_at = source->seen;
    if (!fresh) return kind;
    HASH_ADD(hh, t->kinds, key, sizeof kind->key, kind);
    if (OOS_IN_TABLE(kind)) return kind;
    free(kind);
    return NULL;
}

/* Who, what, when and how often: what is the same in each stands in the one that was told in full. */
static void count_again(oos_teller *t, oos_told_kind *kind, const oos_incident_source *source,
                        const oos_incident *incident)
{
    oos_incident_notes const none = {0};
    oos_incident_source same = *source;
    oos_incident short_one = *incident;
    if (!kind->count++) kind->first = source->id;
    same.id = kind->first;
    same.repeats = kind->full;
    same.fixes = kind->fixes;
    short_one.count = kind->count;
    short_one.evidence_count = short_one.fix_count = short_one.dead_end_count = short_one.rank_count = 0;
    short_one.held.ledger.first = short_one.held.ledger.last = NULL;
    short_one.question = short_one.ask = NULL;
    short_one.phase_why = short_one.cause_why = NULL;
    kind->text.len = 0;
    write_one(t, &same, &short_one, &none, &kind->text);
}

void oos_api_tell(oos_teller *t, const oos_incident_source *source, const oos_incident *incident)
{
    bool again = false;
    oos_told_kind *kind = t->each ? NULL : kind_of(t, source, incident, &again);
    if (again) {
        count_again(t, kind, source, incident);
    } else {
        oos_incident_notes notes = {0};
        oos_api_note_incident(t->notes, t->data, t->allow_hub, incident, &notes);
        write_one(t, source, incident, &notes, &t->text);
        const char *fixes = kind ? oos_report_explain_fixes(t->notes, incident, &notes) : NULL;
        if (kind) free(kind->fixes), kind->fixes = fixes ? strdup(fixes) : NULL;
        oos_arena_reset(t->notes);
    }
    t->incidents++;
    t->found_oom |= incident->is_oom;
}

oomsight_status oos_api_told(oos_teller *t, const char **ret_text, size_t *ret_bytes, oomsight_error *reterr)
{
    for (oos_told_kind *kind = t->kinds; kind; kind = kind->hh.next) report(t, kind);
    if (t->text.failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for incidents");
    *ret_text = t->text.len ? t->text.ptr : "";
    *ret_bytes = t->text.len;
    return OOMSIGHT_OK;
}

void oos_api_delivered(oos_teller *t)
{
    t->incidents = 0;
    t->text.len = 0;
}

void oos_api_tell_no_more(oos_teller *t)
{
    oos_told_kind *kind, *next;
    HASH_ITER(hh, t->kinds, kind, next) forget(t, kind);
    oos_text_free(&t->text);
    oos_arena_free(t->notes);
}

/* Schema oomsight.incident/1. Unknown is null; bytes are integers. */
#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>

static void put_number(oos_json_writer *w, const oos_number *number, char unit)
{
    if (!number->known)
        oos_json_put_null(w);
    else if (unit == 'R')
        oos_json_put_f64(w, (double)number->value / 1e6);
    else if (number->negative)
        oos_json_put_i64(w, number->value > INT64_MAX ? INT64_MIN : -(int64_t)number->value);
    else
        oos_json_put_u64(w, number->value);
}

static void field_number(oos_json_writer *w, const char *key, const oos_number *number, char unit)
{
    oos_json_key(w, key);
    put_number(w, number, unit);
}

static void put_numbers(oos_json_writer *w, const oos_incident *incident)
{
    /* These are always there, the others only when the log has them. */
    static const bool always[OOS_NUMBER_COUNT] = {[OOS_NUMBER_tried] = true,
                                                  [OOS_NUMBER_total] = true,
                                                  [OOS_NUMBER_free] = true,
                                                  [OOS_NUMBER_process] = true,
                                                  [OOS_NUMBER_torch_allocated] = true,
                                                  [OOS_NUMBER_private_pools] = true,
                                                  [OOS_NUMBER_reserved_unallocated] = true,
                                                  [OOS_NUMBER_kv_available] = true,
                                                  [OOS_NUMBER_kv_tokens] = true,
                                                  [OOS_NUMBER_weights] = true,
                                                  [OOS_NUMBER_activation_peak] = true,
                                                  [OOS_NUMBER_non_torch] = true,
                                                  [OOS_NUMBER_cudagraph] = true};
    oos_json_field_object(w, "numbers");
    for (oos_number_id id = 0; id < OOS_NUMBER_COUNT; id++)
        if (always[id] || incident->numbers[id].known)
            field_number(w, oos_number_key(id), &incident->numbers[id], oos_number_unit(id));
    oos_json_end_object(w);
}

static void put_ledger(oos_json_writer *w, const oos_moment *held)
{
    oos_json_key(w, "ledger");
    oos_report_holds_json(w, held->peak_bytes ? &held->ledger : &(oos_ledger){0});
}

static void put_evidence(oos_json_writer *w, const oos_incident *incident)
{
    oos_json_field_array(w, "evidence");
    for (size_t i = 0; i < incident->evidence_count; i++) {
        oos_json_begin_object(w);
        oos_json_field_u64(w, "line", incident->evidence[i].line);
        oos_json_field_str(w, "text", incident->evidence[i].text);
        oos_json_field_str(w, "signal", incident->evidence[i].signal);
        oos_json_field_bool(w, "decides", incident->evidence[i].decides);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

static void put_ranks(oos_json_writer *w, const oos_incident *incident)
{
    static const oos_number_id shown[] = {OOS_NUMBER_tried,
                                          OOS_NUMBER_free,
                                          OOS_NUMBER_process,
                                          OOS_NUMBER_others,
                                          OOS_NUMBER_torch_allocated,
                                          OOS_NUMBER_private_pools,
                                          OOS_NUMBER_reserved_unallocated};
    oos_json_field_array(w, "ranks");
    for (size_t i = 0; i < incident->rank_count; i++) {
        const oos_rank *rank = &incident->ranks[i];
        oos_json_begin_object(w);
        oos_json_field_str(w, "rank", rank->rank);
        for (size_t k = 0; k < sizeof shown / sizeof *shown; k++)
            field_number(w, oos_number_key(shown[k]), &rank->numbers[shown[k]], 'B');
        put_ledger(w, &rank->held);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

static void put_advice(oos_json_writer *w, const char *key, const oos_advice *list, size_t count,
                       const oos_incident_notes *against)
{
    oos_json_field_array(w, key);
    for (size_t i = 0; i < count; i++) {
        if (against && oos_report_contradicts(against, &list[i])) continue;
        oos_json_begin_object(w);
        oos_json_field_array(w, "change");
        for (size_t c = 0; c < list[i].change_count; c++) oos_json_put_str(w, list[i].change[c]);
        oos_json_end_array(w);
        oos_json_field_str(w, "why", list[i].why.en);
        if (list[i].cost.en) oos_json_field_str(w, "gives_up", list[i].cost.en);
        oos_json_field_str(w, "evidence", list[i].evidence);
        if (list[i].command) oos_json_field_str(w, "command", list[i].command);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

static void put_setup(oos_json_writer *w, const oos_incident *incident, const oos_incident_notes *notes)
{
    oos_json_field_object(w, "engine");
    oos_json_field_str(w, "name", incident->engine);
    oos_json_field_str(w, "version", incident->setup.version);
    oos_json_end_object(w);
    oos_json_field_object(w, "gpu");
    oos_json_field_str(w, "name", oos_report_gpu(incident, notes));
    field_number(w, "total_bytes", &incident->numbers[OOS_NUMBER_total], 'B');
    oos_json_end_object(w);
    oos_json_field_str(w, "model", incident->setup.model);
}

/* What of the input was not looked at; null: nothing. */
static void put_cut(oos_json_writer *w, const oos_explanation *explanation)
{
    oos_text cut = {0};
    oos_style const plain = {.text = &cut};
    oos_report_cut_notes(explanation, &plain, "", "; ");
    if (cut.len > 2) cut.ptr[cut.len - 2] = '\0';
    oos_json_field_str(w, "cut", cut.len > 2 ? cut.ptr : NULL);
    oos_text_free(&cut);
}

static void field_time(oos_json_writer *w, const char *key, int64_t time)
{
    char text[OOS_TIME_TEXT_BYTES];
    oos_json_field_str(w, key, oos_logtime_print(time, text));
}

static void field_part(oos_json_writer *w, const char *key, const char *part)
{
    oos_json_field_str(w, key, *part ? part : NULL);
}

/* docs/reference/formats/agent.md */
static void put_source(oos_json_writer *w, const oos_incident *incident, const oos_incident_source *source)
{
    char id[17];
    snprintf(id, sizeof id, "%016" PRIx64, source->id);
    oos_json_field_str(w, "id", id);
    if (source->repeats) {
        snprintf(id, sizeof id, "%016" PRIx64, source->repeats);
        oos_json_field_str(w, "repeats", id);
    }
    field_time(w, "at", incident->at);
    field_time(w, "started_at", incident->started);
    field_time(w, "seen_at", source->seen);
    oos_json_field_object(w, "source");
    oos_json_field_str(w, "path", source->path);
    field_part(w, "namespace", source->origin->space);
    field_part(w, "pod", source->origin->pod);
    field_part(w, "pod_uid", source->origin->pod_uid);
    field_part(w, "container", source->origin->container);
    oos_json_key(w, "restart");
    if (source->origin->restart >= 0)
        oos_json_put_i64(w, source->origin->restart);
    else
        oos_json_put_null(w);
    oos_json_field_u64(w, "first_byte", incident->first_byte);
    oos_json_field_u64(w, "last_byte", incident->last_byte);
    if (source->cursor) {
        oos_json_key(w, "cursor");
        oos_json_put_json(w, source->cursor);
    }
    if (source->label_count) oos_json_field_object(w, "labels");
    for (size_t i = 0; i < source->label_count; i++)
        oos_json_field_str(w, source->labels[i].key, source->labels[i].value);
    if (source->label_count) oos_json_end_object(w);
    oos_json_end_object(w);
}

/* What decided: names of data/explain, "" where nothing did. */
static void put_rules(oos_json_writer *w, const oos_incident *incident)
{
    oos_json_field_object(w, "rules");
    oos_json_field_str(w, "verdict", incident->verdict_rule);
    oos_json_field_str(w, "phase", incident->phase_rule);
    oos_json_field_str(w, "cause", incident->cause_rule);
    oos_json_end_object(w);
}

/* Computed for this very model and device: better than what is known in general. */
static void put_fixes(oos_json_writer *w, const oos_incident *incident, const oos_incident_notes *notes)
{
    if (notes->fix_count)
        oos_report_fixes_json(w, notes->fixes, notes->fix_count);
    else
        put_advice(w, "fixes", incident->fixes, incident->fix_count, NULL);
}

const char *oos_report_explain_fixes(oos_arena *arena, const oos_incident *incident,
                                     const oos_incident_notes *notes)
{
    oos_text text = {0};
    oos_json_writer writer = {.text = &text};
    oos_json_begin_object(&writer);
    put_fixes(&writer, incident, notes);
    oos_json_end_object(&writer);
    const char *member =
        text.failed ? NULL : oos_arena_copy(arena, (oos_view){text.ptr + 1, text.len - 2}); /* no braces */
    oos_text_free(&text);
    return member;
}

static void put_incident(const oos_explain_page *page, const oos_incident *incident,
                         const oos_incident_notes *notes, oos_text *text)
{
    const oos_explanation *explanation = page->explanation;
    oos_json_writer writer = {.text = text}, *w = &writer;
    char print[17];
    snprintf(print, sizeof print, "%016" PRIx64, incident->fingerprint);
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", "oomsight.incident/1");
    oos_json_field_bool(w, "is_oom", incident->is_oom);
    oos_json_field_str(w, "state", oos_report_incident_state(incident));
    oos_json_field_str(w, "phase", oos_phase_word(incident->phase));
    oos_json_field_str(w, "cause", incident->cause);
    oos_json_field_strs(w, "also", incident->also, incident->also_count);
    oos_json_field_f64(w, "confidence", incident->confidence);
    oos_json_field_f64(w, "phase_sure", incident->phase_sure);
    oos_json_field_f64(w, "cause_sure", incident->cause_sure);
    oos_json_field_str(w, "basis", oos_basis_word(incident->basis));
    oos_json_key(w, "phases");
    oos_json_begin_array(w);
    for (size_t i = 0; i < incident->phase_count; i++)
        oos_json_put_str(w, oos_phase_word(incident->phases[i]));
    oos_json_end_array(w);
    oos_json_field_str(w, "question", incident->question);
    oos_json_field_str(w, "phase_why", incident->phase_why);
    oos_json_field_str(w, "cause_why", incident->cause_why);
    put_rules(w, incident);
    oos_json_field_str(w, "would_decide", incident->ask);
    put_setup(w, incident, notes);
    put_numbers(w, incident);
    put_ledger(w, &incident->held);
    oos_json_field_str(w, "signature", incident->record ? incident->record->id : NULL);
    put_evidence(w, incident);
    if (page->source && page->source->fixes)
        oos_json_put_json(w, page->source->fixes);
    else
        put_fixes(w, incident, notes);
    put_advice(w, "dead_ends", incident->dead_ends, incident->dead_end_count, notes);
    oos_json_field_str(w, "plan_flags", notes->plan_flags);
    oos_json_field_str(w, "plan_check", notes->plan_check);
    put_ranks(w, incident);
    oos_json_field_str(w, "file", incident->file);
    oos_json_field_u64(w, "first_line", incident->first_line);
    oos_json_field_u64(w, "last_line", incident->last_line);
    oos_json_field_u64(w, "count", incident->count);
    put_cut(w, explanation);
    oos_json_field_str(w, "fingerprint", print);
    if (page->source) put_source(w, incident, page->source);
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}

void oos_report_explain_json(const oos_explain_page *page, oos_text *text)
{
    for (size_t i = 0; i < page->explanation->count; i++)
        put_incident(page, &page->explanation->incidents[i], &page->notes[i], text);
}

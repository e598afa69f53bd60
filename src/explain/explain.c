/* Stream in, incidents out. Equal incidents are counted, not kept. */
#include "explain/explain.h"
#include "explain/collect.h"
#include "explain/holdings.h"

#include <stdio.h>

oomsight_status oos_knowledge_load(oos_arena *arena, const char *data_dir, oos_knowledge *ret_knowledge,
                                   oomsight_error *reterr)
{
    OOS_TRY(oos_signals_load(arena, data_dir, &ret_knowledge->signals, reterr));
    OOS_TRY(oos_rules_load(arena, data_dir, &ret_knowledge->signals, &ret_knowledge->rules, reterr));
    return oos_kb_load(arena, data_dir, &ret_knowledge->signals, &ret_knowledge->kb, reterr);
}

typedef struct run {
    oos_arena *arena;
    const oos_knowledge *knowledge;
    const oos_explain_hooks *hooks;
    oos_explanation *explanation;
    oos_collector *collector;
} run;

static uint64_t mix(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++) hash = (hash ^ at[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

/* Equal incidents: same phase and cause, same request on the same kind of device, same engine. Where in the log, on
 * which rank and how much happened to be free does not matter. */
static uint64_t fingerprint(const oos_incident *incident)
{
    uint64_t hash = 0xcbf29ce484222325u;
    uint64_t const figures[] = {
        incident->numbers[OOS_NUMBER_tried].value, incident->numbers[OOS_NUMBER_total].value,
        incident->numbers[OOS_NUMBER_max_seq_len].value, (uint64_t)incident->phase, incident->is_oom};
    hash = mix(hash, figures, sizeof figures);
    hash = mix(hash, incident->cause, strlen(incident->cause));
    return incident->engine ? mix(hash, incident->engine, strlen(incident->engine)) : hash;
}

/* One more incident; most logs have one. What the list outgrew stays in the arena until the end. */
static bool make_room(run *r)
{
    oos_explanation *e = r->explanation;
    if (e->count < e->room) return true;
    size_t const room = e->room ? e->room * 4 : 2;
    oos_incident *list = OOS_NEW_ARRAY(r->arena, oos_incident, room);
    if (!list) return false;
    if (e->count) memcpy(list, e->incidents, e->count * sizeof *list);
    e->incidents = list;
    e->room = room;
    return true;
}

static void keep_ranks(oos_arena *arena, oos_incident *incident)
{
    oos_rank *ranks = incident->rank_count ? OOS_NEW_ARRAY(arena, oos_rank, incident->rank_count) : NULL;
    if (ranks) memcpy(ranks, incident->ranks, incident->rank_count * sizeof *ranks);
    incident->ranks = ranks;
    if (!ranks) incident->rank_count = 0;
}

static void on_incident(void *context, const oos_incident *collected)
{
    run *r = context;
    oos_explanation *e = r->explanation;
    bool const room = e->count < OOS_INCIDENTS_MAX && make_room(r);
    oos_incident spare;
    oos_incident *incident = room ? &e->incidents[e->count] : &spare;
    *incident = *collected;
    oos_reason(&r->knowledge->signals, r->knowledge->rules, incident);
    incident->fingerprint = fingerprint(incident);
    for (size_t i = 0; i < e->count; i++)
        if (e->incidents[i].fingerprint == incident->fingerprint &&
            strcmp(e->incidents[i].file, incident->file) == 0) {
            e->incidents[i].count++;
            e->incidents[i].last_line = incident->last_line;
            return;
        }
    if (!room) {
        e->dropped++;
        return;
    }
    keep_ranks(r->arena, incident);
    oos_holdings_rebuild(r->arena, incident);
    oos_holdings_of_ranks(r->arena, incident);
    incident->record = oos_kb_match(&r->knowledge->kb, incident);
    e->count++;
    if (r->hooks && r->hooks->on_incident) r->hooks->on_incident(r->hooks->context, incident);
}

/* The scan hands lines to the collector; the question whether to wait for more is the caller's. */
static void on_line(void *context, const oos_hit_line *line)
{
    run *r = context;
    oos_collector_line(r->collector, line);
}

static bool keep_going(void *context)
{
    run *r = context;
    return r->hooks && r->hooks->keep_going && r->hooks->keep_going(r->hooks->context);
}

oomsight_status oos_explain_stream(oos_arena *arena, const oos_knowledge *knowledge, oos_logstream *stream,
                                   const oos_explain_hooks *hooks, oos_explanation *explanation,
                                   oomsight_error *reterr)
{
    run r = {.arena = arena, .knowledge = knowledge, .hooks = hooks, .explanation = explanation};
    OOS_TRY(oos_collector_create(arena, &knowledge->signals, on_incident, &r, &r.collector, reterr));
    oos_literal_scan *scan = NULL;
    oomsight_status status = oos_literal_scan_open(knowledge->signals.literals, &scan, reterr);
    for (const char *name; status == OOMSIGHT_OK && oos_logstream_next(stream, &name);) {
        oos_scan_result result;
        oos_collector_file(r.collector, name);
        status = oos_scan_file(stream, scan, on_line, &r, hooks && hooks->keep_going ? keep_going : NULL,
                               &result, reterr);
        if (status != OOMSIGHT_OK) break;
        oos_collector_end(r.collector, result.lines);
        explanation->lines += result.lines;
        explanation->bytes += result.bytes;
        explanation->cut_hits |= result.cut_hits;
        explanation->cut_lines |= result.cut_lines;
        explanation->cleaned |= result.cleaned;
    }
    if (oos_logstream_cut_reason(stream) != OOS_LOGSTREAM_WHOLE)
        explanation->stream_cut = oos_logstream_cut_reason(stream);
    oos_literal_scan_close(scan);
    oos_collector_free(r.collector);
    return status;
}

/* Stream in, incidents out. Equal incidents are counted, not kept. */
#include "explain/explain.h"
#include "base/hash.h"
#include "log/log.h"

#include <stdlib.h>

oomsight_status oos_knowledge_load(oos_arena *arena, const char *data_dir, oos_knowledge *ret_knowledge,
                                   oomsight_error *reterr)
{
    ret_knowledge->is_text_model = NULL;
    ret_knowledge->weights_of = NULL;
    OOS_TRY(oos_signals_load(arena, data_dir, &ret_knowledge->signals, reterr));
    OOS_TRY(oos_cause_rules_load(arena, data_dir, &ret_knowledge->signals, &ret_knowledge->rules, reterr));
    OOS_TRY(oos_kb_load(arena, data_dir, &ret_knowledge->signals, &ret_knowledge->kb, reterr));
    return oos_advisers_load(arena, data_dir, &ret_knowledge->signals, &ret_knowledge->advisers, reterr);
}

struct oos_explainer {
    oos_arena *arena;
    const oos_knowledge *knowledge;
    oos_explanation *explanation;
    oos_on_incident *on_incident;
    void *context;
    oos_collector *collector;
    oos_bench *bench;
    bool owns_bench, each;
    oos_linescan *scan; /* of the file being read */
};

/* Of one kind, wherever: phase, cause, where the stack ends, the engine and its release. Not how much was asked for: each
 * prompt asks for something else. */
static uint64_t fingerprint(const oos_incident *incident)
{
    const char *const words[] = {incident->cause, incident->engine, incident->setup.version};
    const oos_traceback *stack = &incident->stack;
    uint64_t const figures[] = {(uint64_t)incident->phase, incident->is_oom,
                                stack->count ? stack->frames[stack->count - 1] : 0};
    uint64_t hash = oos_hash_add(OOS_HASH_START, figures, sizeof figures);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i]) hash = oos_hash_add(hash, words[i], strlen(words[i]) + 1);
    return hash;
}

/* The same again in one log: also the same request on the same kind of device. On which rank, and how much happened to be
 * free, does not matter. */
static uint64_t exact_print(const oos_incident *incident)
{
    uint64_t const figures[] = {incident->fingerprint, incident->numbers[OOS_NUMBER_tried].value,
                                incident->numbers[OOS_NUMBER_total].value,
                                incident->numbers[OOS_NUMBER_max_seq_len].value};
    return oos_hash_add(OOS_HASH_START, figures, sizeof figures);
}

/* One more incident; most logs have one. What the list outgrew stays in the arena until the end. */
static bool make_room(oos_explainer *r)
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

static void keep_string(oos_arena *arena, const char **text)
{
    if (!*text) return;
    char *copy = oos_arena_copy(arena, oos_view_of(*text));
    *text = copy ? copy : "";
}

/* Everything that is still the collector's, copied. */
static void keep(oos_arena *arena, oos_incident *incident)
{
    oos_rank *ranks = incident->rank_count ? OOS_NEW_ARRAY(arena, oos_rank, incident->rank_count) : NULL;
    if (ranks) memcpy(ranks, incident->ranks, incident->rank_count * sizeof *ranks);
    incident->ranks = ranks;
    if (!ranks) incident->rank_count = 0;
    for (size_t i = 0; i < incident->rank_count; i++) keep_string(arena, &incident->ranks[i].rank);
    for (size_t i = 0; i < incident->evidence_count; i++) keep_string(arena, &incident->evidence[i].text);
    oos_setup_text *setup = &incident->setup;
    const char **fields[] = {&setup->version, &setup->torch,  &setup->model,   &setup->gpu,
                             &setup->args,    &setup->config, &setup->command, &incident->file};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) keep_string(arena, fields[i]);
}

/* An archive of many healthy logs must not hide the one that failed. */
static bool forget_quiet(oos_explanation *e)
{
    size_t at = e->count;
    while (at > 0 && e->incidents[at - 1].is_oom) at--;
    if (at == 0) return false;
    memmove(&e->incidents[at - 1], &e->incidents[at], (e->count - at) * sizeof *e->incidents);
    e->count--;
    return true;
}

static bool names_an_encoder(const oos_incident *incident)
{
    return incident->phase == OOS_PHASE_MM_PROFILE ||
           (incident->cause && strcmp(incident->cause, "mm_encoder_peak") == 0);
}

/* Loading is the answer by figures alone, and they are too large for it: by two fifths and what a step takes. */
static bool holds_more(const oos_knowledge *k, const oos_incident *incident)
{
    if (incident->phase != OOS_PHASE_WEIGHT_LOAD || incident->basis < OOS_BASIS_FIGURES || !k->weights_of ||
        !oos_known(incident, OOS_NUMBER_torch_allocated))
        return false;
    uint64_t const weights = k->weights_of(k->models, incident);
    return weights > 0 && oos_value(incident, OOS_NUMBER_torch_allocated) >
                              oos_add(oos_add(weights, weights / 5 * 2), OOS_GIB);
}

/* Where an encoder or the weights are the answer, the model is looked up: it may have none, or smaller ones. */
static void reason(const oos_knowledge *k, const oos_incident *collected, oos_incident *ret_incident)
{
    *ret_incident = *collected;
    oos_reason(&k->signals, k->rules, ret_incident);
    bool const text = k->is_text_model && names_an_encoder(ret_incident) &&
                      k->is_text_model(k->models, ret_incident),
               more = holds_more(k, ret_incident);
    if (!text && !more) return;
    *ret_incident = *collected;
    ret_incident->text_model = text;
    ret_incident->beyond_weights = more;
    oos_reason(&k->signals, k->rules, ret_incident);
}

static void on_incident(void *context, const oos_incident *collected)
{
    oos_explainer *r = context;
    oos_explanation *e = r->explanation;
    bool const room = e->count < OOS_INCIDENTS_MAX && make_room(r);
    oos_incident spare;
    oos_incident *incident = room ? &e->incidents[e->count] : &spare;
    reason(r->knowledge, collected, incident);
    incident->fingerprint = fingerprint(incident);
    incident->exact_print = exact_print(incident);
    for (size_t i = 0; i < e->count; i++)
        if (e->incidents[i].exact_print == incident->exact_print &&
            strcmp(e->incidents[i].file, incident->file) == 0) {
            e->incidents[i].count++;
            e->incidents[i].last_line = incident->last_line;
            if (r->on_incident) r->on_incident(r->context, &e->incidents[i], true);
            return;
        }
    if (!room) {
        e->dropped++;
        if (!incident->is_oom || !forget_quiet(e)) return;
        incident = &e->incidents[e->count];
        *incident = spare;
    }
    keep(r->arena, incident);
    oos_holdings_rebuild(r->arena, incident);
    oos_holdings_of_ranks(r->arena, incident);
    incident->record = oos_kb_match(&r->knowledge->kb, incident);
    oos_advise(r->arena, &r->knowledge->advisers, &r->knowledge->kb, incident);
    e->count++;
    if (r->on_incident) r->on_incident(r->context, incident, false);
    if (!r->each) return;
    *e = (oos_explanation){0};
    oos_arena_reset(r->arena);
}

static void on_line(void *context, const oos_hit_line *line)
{
    oos_explainer *r = context;
    oos_collector_line(r->collector, line);
}

static oomsight_status begin_file(oos_explainer *r, const char *name, oomsight_error *reterr)
{
    oos_collector_file(r->collector, name);
    return oos_linescan_open(r->bench, &(oos_scan_origin){0}, on_line, r, &r->scan, reterr);
}

static oomsight_status end_file(oos_explainer *r, oomsight_error *reterr)
{
    oos_linescan_result result;
    oomsight_status const status = oos_linescan_finish(r->scan, &result, reterr);
    if (status == OOMSIGHT_OK) {
        oos_collector_end(r->collector, result.lines, result.binary);
        r->explanation->lines += result.lines;
        r->explanation->bytes += result.bytes;
        r->explanation->cut_hits |= result.cut_hits;
        r->explanation->cut_lines |= result.cut_lines;
        r->explanation->cleaned |= result.cleaned;
    }
    oos_linescan_close(r->scan);
    r->scan = NULL;
    return status;
}

static oomsight_status create(const oos_explainer *like, oos_explainer **ret_explainer,
                              oomsight_error *reterr)
{
    oos_explainer *r = calloc(1, sizeof *r);
    if (!r) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
    *r = *like;
    oomsight_status const status =
        oos_collector_create(&r->knowledge->signals, r->bench, on_incident, r, &r->collector, reterr);
    if (status != OOMSIGHT_OK)
        free(r);
    else
        *ret_explainer = r;
    return status;
}

oomsight_status oos_explainer_open(oos_arena *arena, const oos_knowledge *knowledge,
                                   oos_explanation *explanation, oos_on_incident *on_new, void *context,
                                   oos_explainer **ret_explainer, oomsight_error *reterr)
{
    oos_explainer like = {.arena = arena,
                          .knowledge = knowledge,
                          .explanation = explanation,
                          .on_incident = on_new,
                          .context = context,
                          .owns_bench = true};
    oos_explainer *r = NULL;
    OOS_TRY(oos_bench_create(knowledge->signals.literals, &like.bench, reterr));
    oomsight_status status = create(&like, &r, reterr);
    if (status != OOMSIGHT_OK) {
        oos_bench_free(like.bench);
        return status;
    }
    status = begin_file(r, "", reterr);
    if (status != OOMSIGHT_OK)
        oos_explainer_close(r);
    else
        *ret_explainer = r;
    return status;
}

oomsight_status oos_explainer_open_growing(oos_arena *arena, const oos_knowledge *knowledge, oos_bench *bench,
                                           const oos_scan_origin *origin, oos_explanation *explanation,
                                           oos_on_incident *on_new, void *context,
                                           oos_explainer **ret_explainer, oomsight_error *reterr)
{
    oos_explainer const like = {.arena = arena,
                                .knowledge = knowledge,
                                .explanation = explanation,
                                .on_incident = on_new,
                                .context = context,
                                .bench = bench,
                                .each = true};
    oos_explainer *r = NULL;
    OOS_TRY(create(&like, &r, reterr));
    oos_collector_file(r->collector, "");
    oomsight_status const status = oos_linescan_open(bench, origin, on_line, r, &r->scan, reterr);
    if (status != OOMSIGHT_OK)
        oos_explainer_close(r);
    else
        *ret_explainer = r;
    return status;
}

oomsight_status oos_explainer_next_part(oos_explainer *r, const oos_scan_origin *origin,
                                        oomsight_error *reterr)
{
    oos_linescan_result result;
    OOS_TRY(oos_linescan_finish(r->scan, &result, reterr));
    oos_linescan *scan;
    OOS_TRY(oos_linescan_open(r->bench, origin, on_line, r, &scan, reterr));
    oos_linescan_close(r->scan);
    r->scan = scan;
    oos_collector_part(r->collector);
    return OOMSIGHT_OK;
}

bool oos_explainer_waits(const oos_explainer *r)
{
    return oos_linescan_waits(r->scan) || oos_collector_at(r->collector).open;
}

oos_linescan *oos_explainer_scan(const oos_explainer *r)
{
    return r->scan;
}

oos_collector *oos_explainer_collector(oos_explainer *r)
{
    return r->collector;
}

void oos_explainer_close(oos_explainer *r)
{
    if (!r) return;
    oos_linescan_close(r->scan);
    oos_collector_free(r->collector);
    if (r->owns_bench) oos_bench_free(r->bench);
    free(r);
}

oomsight_status oos_explainer_settle(oos_explainer *r, oomsight_error *reterr)
{
    OOS_TRY(oos_linescan_settle(r->scan, reterr));
    oos_collector_settle(r->collector);
    return OOMSIGHT_OK;
}

oomsight_status oos_explainer_finish(oos_explainer *r, oomsight_error *reterr)
{
    OOS_TRY(end_file(r, reterr));
    return begin_file(r, "", reterr);
}

static oomsight_status read_file(oos_explainer *r, oos_logstream *stream, oomsight_error *reterr)
{
    for (size_t count = 1; count;) {
        size_t capacity;
        char *room = oos_linescan_room(r->scan, &capacity);
        if (!room) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a log");
        OOS_TRY(oos_logstream_read(stream, room, capacity, &count, reterr));
        if (count) OOS_TRY(oos_linescan_took(r->scan, count, reterr));
    }
    return OOMSIGHT_OK;
}

oomsight_status oos_explain_stream(oos_arena *arena, const oos_knowledge *knowledge, oos_logstream *stream,
                                   oos_explanation *explanation, oomsight_error *reterr)
{
    oos_explainer *r = NULL;
    OOS_TRY(oos_explainer_open(arena, knowledge, explanation, NULL, NULL, &r, reterr));
    oos_linescan_close(r->scan);
    r->scan = NULL;
    oomsight_status status = OOMSIGHT_OK;
    for (const char *name; status == OOMSIGHT_OK && oos_logstream_next(stream, &name);) {
        status = begin_file(r, name, reterr);
        if (status == OOMSIGHT_OK) status = read_file(r, stream, reterr);
        if (status == OOMSIGHT_OK) status = end_file(r, reterr);
    }
    if (oos_logstream_cut_reason(stream) != OOS_LOGSTREAM_WHOLE)
        explanation->stream_cut = oos_logstream_cut_reason(stream);
    oos_explainer_close(r);
    return status;
}

/* Counters of incidents by namespace, phase and cause; figures of each engine as its log told them last. */
#include "follow/follow.h"
#include "base/size.h"
#include "base/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LATE_MINUTES = 10, COUNTERS_MAX = 2048, ENGINES_MAX = 8192, KEY_BYTES = 256 };

typedef struct counter {
    char key[KEY_BYTES];  /* the labels as they are printed */
    uint64_t count, late; /* late: found long after they happened */
    UT_hash_handle hh;
} counter;

struct oos_metrics {
    counter *counters;
    uint64_t write_errors;
    int64_t last_incident; /* 0: none yet */
};

oos_metrics *oos_metrics_create(void)
{
    return calloc(1, sizeof(oos_metrics));
}

void oos_metrics_free(oos_metrics *metrics)
{
    if (!metrics) return;
    counter *c, *next;
    HASH_ITER(hh, metrics->counters, c, next)
    {
        HASH_DEL(metrics->counters, c);
        free(c);
    }
    free(metrics);
}

/* Our causes are words of a data file, which may be the user's own (--data). */
static void label_word(const char *word, char *to, size_t capacity)
{
    size_t len = 0;
    for (; word[len] && len + 1 < capacity; len++) {
        char const c = word[len];
        bool const plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           c == '_' || c == '-' || c == '.';
        to[len] = plain ? c : '_';
    }
    to[len] = '\0';
}

static void count(oos_metrics *metrics, const char *space, const char *phase, const char *cause, bool late)
{
    char key[KEY_BYTES], word[64];
    counter *c;
    label_word(cause, word, sizeof word);
    snprintf(key, sizeof key, "namespace=\"%s\",phase=\"%s\",cause=\"%s\"", space, phase, word);
    HASH_FIND_STR(metrics->counters, key, c);
    if (!c && HASH_COUNT(metrics->counters) >= COUNTERS_MAX) {
        if (strcmp(cause, "other") != 0) count(metrics, "", "unknown", "other", late);
        return;
    }
    if (!c) {
        c = calloc(1, sizeof *c);
        if (!c) return;
        snprintf(c->key, sizeof c->key, "%s", key);
        HASH_ADD_STR(metrics->counters, key, c);
        if (!OOS_IN_TABLE(c)) {
            free(c);
            return;
        }
    }
    c->count += !late;
    c->late += late;
}

void oos_metrics_incident(oos_metrics *metrics, const oos_origin *origin, const oos_incident *incident,
                          int64_t happened, int64_t now)
{
    bool const late = happened && now - happened > (int64_t)LATE_MINUTES * 60 * 1000000000;
    count(metrics, origin->space, oos_phase_word(incident->phase), incident->cause, late);
    metrics->last_incident = now;
}

void oos_metrics_write_error(oos_metrics *metrics)
{
    metrics->write_errors++;
}

/* ---- engines ---- */

typedef struct engine {
    const oos_origin *origin;
    uint64_t weights, kv, graphs, headroom, tokens;
    bool has_weights, has_kv, has_graphs, has_headroom, has_tokens;
} engine;

typedef struct engines {
    engine *list;
    size_t count;
} engines;

static void take(const oos_incident *history, oos_number_id id, uint64_t *to, bool *has)
{
    const oos_number *number = &history->numbers[id];
    if (!number->known || number->negative) return;
    *to = number->value;
    *has = true;
}

/* What the engine's budget leaves of the memory that was free, or else of the device. */
static void take_headroom(const oos_incident *history, engine *e)
{
    uint64_t from = 0, requested = 0;
    bool has_from = false, has_requested = false;
    take(history, OOS_NUMBER_total, &from, &has_from);
    take(history, OOS_NUMBER_startup_free, &from, &has_from);
    take(history, OOS_NUMBER_requested, &requested, &has_requested);
    if (!has_from || !has_requested || requested > from) return;
    e->headroom = from - requested;
    e->has_headroom = true;
}

static void on_tail(void *context, const oos_tail *tail)
{
    engines *all = context;
    const oos_origin *origin = oos_tail_origin(tail);
    const oos_incident *history = oos_tail_history(tail);
    if (!history || !*origin->container || all->count == ENGINES_MAX) return;
    engine e = {.origin = origin};
    take(history, OOS_NUMBER_weights, &e.weights, &e.has_weights);
    take(history, OOS_NUMBER_kv_available, &e.kv, &e.has_kv);
    take(history, OOS_NUMBER_cudagraph, &e.graphs, &e.has_graphs);
    take(history, OOS_NUMBER_kv_tokens, &e.tokens, &e.has_tokens);
    take_headroom(history, &e);
    if (e.has_weights || e.has_kv || e.has_graphs || e.has_tokens || e.has_headroom)
        all->list[all->count++] = e;
}

/* By name, the newest restart first. */
static int by_name(const void *left, const void *right)
{
    const oos_origin *a = ((const engine *)left)->origin, *b = ((const engine *)right)->origin;
    int order = strcmp(a->space, b->space);
    if (!order) order = strcmp(a->pod, b->pod);
    if (!order) order = strcmp(a->container, b->container);
    return order ? order : a->restart > b->restart ? -1 : a->restart < b->restart;
}

static bool same_engine(const engine *a, const engine *b)
{
    return strcmp(a->origin->space, b->origin->space) == 0 && strcmp(a->origin->pod, b->origin->pod) == 0 &&
           strcmp(a->origin->container, b->origin->container) == 0;
}

static void put_owner(oos_text *text, const engine *e, const char *owner, bool has, uint64_t bytes)
{
    if (has)
        oos_text_printf(
            text,
            "oomsight_engine_bytes{namespace=\"%s\",pod=\"%s\",container=\"%s\",owner=\"%s\"} %" PRIu64 "\n",
            e->origin->space, e->origin->pod, e->origin->container, owner, bytes);
}

static void put_head(oos_text *text, const char *name, const char *kind, const char *help)
{
    oos_text_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void put_engines(const oos_agent *agent, oos_text *text)
{
    engines all = {.list = calloc(ENGINES_MAX, sizeof(engine))};
    if (!all.list) return;
    oos_agent_each(agent, on_tail, &all);
    qsort(all.list, all.count, sizeof *all.list, by_name);
    size_t kept = 0;
    for (size_t i = 0; i < all.count; i++)
        if (!kept || !same_engine(&all.list[kept - 1], &all.list[i])) all.list[kept++] = all.list[i];
    put_head(text, "oomsight_engine_bytes", "gauge",
             "Bytes by component, as last reported in the engine's log.");
    for (size_t i = 0; i < kept; i++) {
        const engine *e = &all.list[i];
        put_owner(text, e, "weights", e->has_weights, e->weights);
        put_owner(text, e, "kv_cache", e->has_kv, e->kv);
        put_owner(text, e, "cuda_graphs", e->has_graphs, e->graphs);
        put_owner(text, e, "headroom", e->has_headroom, e->headroom);
    }
    put_head(text, "oomsight_engine_kv_tokens", "gauge",
             "Tokens that fit the KV cache, as last reported in the log.");
    for (size_t i = 0; i < kept; i++)
        if (all.list[i].has_tokens)
            oos_text_printf(
                text, "oomsight_engine_kv_tokens{namespace=\"%s\",pod=\"%s\",container=\"%s\"} %" PRIu64 "\n",
                all.list[i].origin->space, all.list[i].origin->pod, all.list[i].origin->container,
                all.list[i].tokens);
    free(all.list);
}

static void put_one(oos_text *text, const char *name, const char *kind, const char *help, uint64_t value)
{
    put_head(text, name, kind, help);
    oos_text_printf(text, "%s %" PRIu64 "\n", name, value);
}

static int by_key(const counter *a, const counter *b)
{
    return strcmp(a->key, b->key);
}

void oos_report_metrics(oos_metrics *metrics, const oos_agent *agent, oos_text *text)
{
    oos_agent_figures const figures = oos_agent_look(agent);
    put_head(text, "oomsight_build_info", "gauge", "The version that runs.");
    oos_text_printf(text, "oomsight_build_info{version=\"%s\"} 1\n", OOMSIGHT_VERSION);
    put_head(text, "oomsight_written_timestamp_seconds", "gauge", "When this was written.");
    oos_text_printf(text, "oomsight_written_timestamp_seconds %.3f\n", (double)oos_logtime_now() / 1e9);
    put_head(text, "oomsight_incidents_total", "counter",
             "Incidents of the last minutes when they were found, by phase and cause.");
    HASH_SORT(metrics->counters, by_key);
    for (const counter *c = metrics->counters; c; c = c->hh.next)
        if (c->count) oos_text_printf(text, "oomsight_incidents_total{%s} %" PRIu64 "\n", c->key, c->count);
    put_head(text, "oomsight_incidents_late_total", "counter",
             "Incidents that were found more than ten minutes after they happened.");
    for (const counter *c = metrics->counters; c; c = c->hh.next)
        if (c->late)
            oos_text_printf(text, "oomsight_incidents_late_total{%s} %" PRIu64 "\n", c->key, c->late);
    if (metrics->last_incident) {
        put_head(text, "oomsight_last_incident_timestamp_seconds", "gauge",
                 "When the last incident was reported.");
        oos_text_printf(text, "oomsight_last_incident_timestamp_seconds %.3f\n",
                        (double)metrics->last_incident / 1e9);
    }
    put_engines(agent, text);
    put_one(text, "oomsight_files", "gauge", "Files that are followed.", figures.files);
    put_one(text, "oomsight_files_left_out", "gauge", "Files that grow and for which there is no room.",
            figures.left_out);
    put_one(text, "oomsight_lines_read_total", "counter", "Lines read.", figures.lines);
    put_one(text, "oomsight_bytes_read_total", "counter", "Bytes read.", figures.bytes);
    put_head(text, "oomsight_lag_seconds", "gauge", "Age of the oldest text that was not read yet.");
    oos_text_printf(text, "oomsight_lag_seconds %.3f\n", figures.behind_seconds);
    put_one(text, "oomsight_lag_bytes", "gauge", "Bytes that were not read yet.", figures.behind_bytes);
    put_one(text, "oomsight_write_errors_total", "counter",
            "Incidents, positions or metrics that could not be written.",
            metrics->write_errors + figures.state_errors);
}

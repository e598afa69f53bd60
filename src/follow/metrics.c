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

enum { WEIGHTS, KV, GRAPHS, HEADROOM, TOKENS, FIGURES };

typedef struct engine {
    const oos_origin *origin;
    uint64_t bytes[FIGURES]; /* UINT64_MAX: not told */
} engine;

typedef struct engines {
    engine *list;
    size_t count;
} engines;

static uint64_t figure(const oos_incident *history, oos_number_id id)
{
    const oos_number *number = &history->numbers[id];
    return number->known && !number->negative ? number->value : UINT64_MAX;
}

static void on_tail(void *context, const oos_tail *tail)
{
    engines *all = context;
    oos_tail_look const look = oos_tail_look_at(tail);
    if (!look.history || !*look.origin->container || all->count == ENGINES_MAX) return;
    uint64_t const total = figure(look.history, OOS_NUMBER_total);
    uint64_t const was_free = figure(look.history, OOS_NUMBER_startup_free);
    uint64_t const from = was_free != UINT64_MAX ? was_free : total;
    uint64_t const requested = figure(look.history, OOS_NUMBER_requested);
    /* What the engine's budget leaves of the memory that was free, or else of the device. */
    bool const left = from != UINT64_MAX && requested <= from;
    engine const e = {look.origin,
                      {figure(look.history, OOS_NUMBER_weights),
                       figure(look.history, OOS_NUMBER_kv_available),
                       figure(look.history, OOS_NUMBER_cudagraph), left ? from - requested : UINT64_MAX,
                       figure(look.history, OOS_NUMBER_kv_tokens)}};
    for (size_t i = 0; i < FIGURES; i++) {
        if (e.bytes[i] == UINT64_MAX) continue;
        all->list[all->count++] = e;
        return;
    }
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

static void put_head(oos_text *text, const char *name, const char *kind, const char *help)
{
    oos_text_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void put_figure(oos_text *text, const engine *e, size_t at, const char *owner)
{
    if (e->bytes[at] == UINT64_MAX) return;
    oos_text_printf(text, "oomsight_engine_%s{namespace=\"%s\",pod=\"%s\",container=\"%s\"",
                    owner ? "bytes" : "kv_tokens", e->origin->space, e->origin->pod, e->origin->container);
    if (owner) oos_text_printf(text, ",owner=\"%s\"", owner);
    oos_text_printf(text, "} %" PRIu64 "\n", e->bytes[at]);
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
    static const char *const owners[TOKENS] = {"weights", "kv_cache", "cuda_graphs", "headroom"};
    put_head(text, "oomsight_engine_bytes", "gauge",
             "Bytes by component, as last reported in the engine's log.");
    for (size_t i = 0; i < kept; i++)
        for (size_t k = 0; k < TOKENS; k++) put_figure(text, &all.list[i], k, owners[k]);
    put_head(text, "oomsight_engine_kv_tokens", "gauge",
             "Tokens that fit the KV cache, as last reported in the log.");
    for (size_t i = 0; i < kept; i++) put_figure(text, &all.list[i], TOKENS, NULL);
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

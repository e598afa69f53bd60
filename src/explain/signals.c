/* Reading data/explain/signals.json and compiling its literals into one set. */
#include "explain/explain.h"
#include "base/json.h"
#include "facts/facts.h"
#include "base/table.h"

typedef struct literal {
    const char *text;
    uint32_t index;
    size_t owner_count;
    UT_hash_handle hh;
} literal;

static bool kind_of(const char *word, oos_signal_kind *ret_kind)
{
    static const char *const words[] = {
#define WORD(name, word) [OOS_SIGNAL_##name] = word,
        OOS_SIGNAL_KIND_MAP(WORD)
#undef WORD
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *ret_kind = (oos_signal_kind)i;
            return true;
        }
    return false;
}

static oomsight_status signal_read(oos_arena *arena, const json_t *object, oos_signal *ret_signal,
                                   oomsight_error *reterr)
{
    const char *id, *kind, *phase = NULL;
    oos_signal signal = {0};
    if (!oos_json_str(object, "id", &id) || !oos_json_str(object, "kind", &kind) ||
        !kind_of(kind, &signal.kind))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "a signal needs an id and a known kind");
    signal.id = id;
    oos_json_str(object, "phase", &phase);
    signal.phase = oos_phase_find(phase);
    oos_json_str(object, "cause", &signal.cause);
    oos_json_str(object, "engine", &signal.engine);
    oos_json_str(object, "unless", &signal.unless);
    signal.yields_to = json_object_get(object, "yields_to");
    oos_json_str(object, "why", &signal.why);
    oos_json_str(object, "ask", &signal.ask);
    if (oos_json_str(object, "regex", &signal.regex)) {
        signal.pattern = oos_pattern_create(arena, signal.regex, oos_signal_is_message(signal.kind));
        if (!signal.pattern) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a pattern");
    }
    oos_json_bool(object, "repeat", &signal.repeat);
    oos_json_bool(object, "cheap", &signal.cheap);
    oos_json_bool(object, "quiet", &signal.quiet);
    oos_json_bool(object, "vague", &signal.vague);
    oos_json_bool(object, "hard", &signal.hard);
    oos_json_bool(object, "whole", &signal.whole);
    signal.cuttable = signal.regex && !strstr(signal.regex, ".*") && !strstr(signal.regex, "[^");
    oos_json_bool(object, "piece", &signal.piece);
    signal.piece |= signal.kind == OOS_SIGNAL_PART;
    *ret_signal = signal;
    return OOMSIGHT_OK;
}

/* Distinct literals in order of first use, and for each the signals that own it. */
static oomsight_status index_literals(oos_arena *arena, const json_t *list, const char *common,
                                      oos_signals *signals, oomsight_error *reterr)
{
    literal *table = NULL;
    size_t count = 0, owners = 0, at;
    const json_t *object, *text;
    size_t inner;
    oomsight_status status = OOMSIGHT_OK;
    json_array_foreach(list, at, object)
    {
        json_array_foreach(json_object_get(object, "literals"), inner, text)
        {
            const char *word = json_string_value(text);
            literal *known = NULL;
            if (!word || !*word) {
                status = oos_fail(reterr, OOMSIGHT_MALFORMED, "%s: an empty literal", signals->list[at].id);
                goto out;
            }
            HASH_FIND_STR(table, word, known);
            if (!known) {
                known = OOS_NEW(arena, literal);
                if (!known) {
                    status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the literals");
                    goto out;
                }
                known->text = word;
                known->index = (uint32_t)count++;
                HASH_ADD_KEYPTR(hh, table, known->text, strlen(known->text), known);
                if (!OOS_IN_TABLE(known)) {
                    status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the literals");
                    goto out;
                }
            }
            known->owner_count++;
            owners++;
        }
    }
    const char **words = OOS_NEW_ARRAY(arena, const char *, count);
    uint32_t *first = OOS_NEW_ARRAY(arena, uint32_t, count + 1);
    uint32_t *next = OOS_NEW_ARRAY(arena, uint32_t, count);
    uint16_t *owner = OOS_NEW_ARRAY(arena, uint16_t, owners);
    if (!words || !first || !next || !owner) {
        status = oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the literals");
        goto out;
    }
    uint32_t sum = 0;
    for (literal *l = table; l; l = l->hh.next) { /* uthash keeps the order of insertion */
        words[l->index] = l->text;
        first[l->index] = next[l->index] = sum;
        sum += (uint32_t)l->owner_count;
    }
    first[count] = sum;
    json_array_foreach(list, at, object)
    {
        json_array_foreach(json_object_get(object, "literals"), inner, text)
        {
            literal *known = NULL;
            const char *word = json_string_value(text);
            HASH_FIND_STR(table, word, known);
            if (known) owner[next[known->index]++] = (uint16_t)at;
        }
    }
    signals->first = first;
    signals->owners = owner;
    signals->words = words;
    signals->literal_count = count;
    status = oos_literals_create(arena, words, count, common, &signals->literals, reterr);
out:
    HASH_CLEAR(hh, table);
    return status;
}

/* An engine may bring lines of its own: data/engines/NAME/signals.json. */
static oomsight_status extend_by_engines(oos_arena *arena, const char *data_dir, json_t *list,
                                         oomsight_error *reterr)
{
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++) {
        const char *path = oos_arena_format(arena, "engines/%s/signals.json", oos_engine_list[i]->name);
        oos_view bytes;
        json_t *root;
        if (!path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the signals");
        if (oos_data_read(arena, data_dir, path, &bytes, NULL) != OOMSIGHT_OK) continue;
        OOS_TRY(oos_json_load(arena, bytes, &root, reterr));
        if (json_array_extend(list, json_object_get(root, "signals")))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "no list of signals in %s", path);
    }
    return OOMSIGHT_OK;
}

oomsight_status oos_signals_load(oos_arena *arena, const char *data_dir, oos_signals *ret_signals,
                                 oomsight_error *reterr)
{
    static const char path[] = "explain/signals.json";
    static const char *const more[] = {"explain/templates.json", "explain/programs.json"};
    json_t *root, *others;
    OOS_TRY(oos_data_json(arena, data_dir, path, &root, reterr));
    json_t *list = json_object_get(root, "signals");
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        OOS_TRY(oos_data_json(arena, data_dir, more[i], &others, reterr));
        if (json_array_extend(list, json_object_get(others, "signals")))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "no list of signals in %s", more[i]);
    }
    OOS_TRY(extend_by_engines(arena, data_dir, list, reterr));
    size_t const count = json_array_size(list);
    if (count == 0 || count > OOS_SIGNALS_MAX) {
        oos_fail(reterr, OOMSIGHT_MALFORMED, "%zu signals, between 1 and %d are possible", count,
                 OOS_SIGNALS_MAX);
        return oos_fail_in(reterr, OOMSIGHT_MALFORMED, path);
    }
    oos_signals signals = {.list = OOS_NEW_ARRAY(arena, oos_signal, count), .count = count};
    if (!signals.list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for %zu signals", count);
    for (size_t i = 0; i < count; i++)
        OOS_TRY(signal_read(arena, json_array_get(list, i), &signals.list[i], reterr));
    const char *common = "";
    (void)oos_json_str(root, "common", &common);
    OOS_TRY(index_literals(arena, list, common, &signals, reterr));
    OOS_TRY(oos_frames_load(arena, data_dir, &signals, &signals.frames, reterr));
    OOS_TRY(oos_grammar_load(arena, data_dir, &signals.grammar, reterr));
    static const char *const topics[OOS_TOPIC_COUNT] = {"words.kv",    "words.shared", "words.host",
                                                        "words.load",  "words.graph",  "words.comm",
                                                        "words.serve", "words.prefill"};
    signals.lack_signal = oos_signals_find(&signals, "words.lack");
    signals.serving_signal = oos_signals_find(&signals, "wrap.runtime");
    for (size_t i = 0; i < OOS_TOPIC_COUNT; i++)
        signals.topic_signals[i] = oos_signals_find(&signals, topics[i]);
    *ret_signals = signals;
    return OOMSIGHT_OK;
}

size_t oos_signals_find(const oos_signals *signals, const char *id)
{
    for (size_t i = 0; i < signals->count; i++)
        if (strcmp(signals->list[i].id, id) == 0) return i;
    return SIZE_MAX;
}

bool oos_signals_have(const oos_signals *signals, const oos_signal_set *set, const char *id)
{
    size_t const index = oos_signals_find(signals, id);
    return index != SIZE_MAX && oos_signal_has(set, index);
}

const oos_signal *oos_signals_first(const oos_signals *signals, const oos_signal_set *set,
                                    oos_signal_kind kind)
{
    for (size_t i = 0; i < signals->count; i++)
        if (signals->list[i].kind == kind && oos_signal_has(set, i)) return &signals->list[i];
    return NULL;
}

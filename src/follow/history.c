/* Signals by their names, numbers by their keys: data files of another version may know more or fewer of them. */
#include "follow/follow.h"
#include "base/json.h"
#include "base/json_write.h"

#include <stdio.h>

#define SCHEMA "oomsight.history/1"

static const struct {
    const char *key;
    size_t offset;
} setup_fields[] = {
    {"version", offsetof(oos_setup_text, version)}, {"torch", offsetof(oos_setup_text, torch)},
    {"model", offsetof(oos_setup_text, model)},     {"gpu", offsetof(oos_setup_text, gpu)},
    {"args", offsetof(oos_setup_text, args)},       {"config", offsetof(oos_setup_text, config)},
    {"command", offsetof(oos_setup_text, command)}};
enum { SETUP_COUNT = sizeof setup_fields / sizeof *setup_fields };

static const char **setup_field(oos_setup_text *setup, size_t at)
{
    return (const char **)(void *)((char *)setup + setup_fields[at].offset);
}

static void write_numbers(oos_json_writer *w, const oos_incident *history)
{
    oos_json_field_array(w, "numbers");
    for (oos_number_id id = 0; id < OOS_NUMBER_COUNT; id++) {
        const oos_number *number = &history->numbers[id];
        if (!number->known || number->value > INT64_MAX) continue; /* JSON has no such integer */
        oos_json_begin_object(w);
        oos_json_field_str(w, "key", oos_number_key(id));
        oos_json_field_u64(w, "value", number->value);
        oos_json_field_bool(w, "negative", number->negative);
        oos_json_field_u64(w, "line", number->line);
        oos_json_field_str(w, "text", number->text);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
}

void oos_history_write(const oos_signals *signals, const oos_incident *history, oos_text *text)
{
    oos_json_writer writer = {.text = text}, *w = &writer;
    oos_setup_text setup = history->setup;
    oos_json_begin_object(w);
    oos_json_field_str(w, "schema", SCHEMA);
    oos_json_field_array(w, "signals");
    for (size_t i = 0; i < signals->count; i++)
        if (oos_signal_has(&history->signals, i)) oos_json_put_str(w, signals->list[i].id);
    oos_json_end_array(w);
    write_numbers(w, history);
    oos_json_field_array(w, "evidence");
    for (size_t i = 0; i < history->evidence_count; i++) {
        oos_json_begin_object(w);
        oos_json_field_u64(w, "line", history->evidence[i].line);
        oos_json_field_str(w, "text", history->evidence[i].text);
        oos_json_field_str(w, "signal", history->evidence[i].signal);
        oos_json_end_object(w);
    }
    oos_json_end_array(w);
    oos_json_field_object(w, "setup");
    for (size_t i = 0; i < SETUP_COUNT; i++)
        oos_json_field_str(w, setup_fields[i].key, *setup_field(&setup, i));
    oos_json_end_object(w);
    oos_json_field_str(w, "phase",
                       history->last_marker < OOS_PHASE_COUNT ? oos_phase_word(history->last_marker) : NULL);
    oos_json_field_bool(w, "old_shape", history->old_shape);
    oos_json_field_bool(w, "v1", history->v1);
    if (history->started != OOS_TIME_NONE) {
        oos_json_key(w, "started_ns");
        oos_json_put_i64(w, history->started);
    }
    oos_json_end_object(w);
    oos_text_put(text, "\n");
}

/* Not oos_json_u64(): byte counts of a log may be anything. */
static uint64_t whole(const json_t *object, const char *key)
{
    json_int_t const value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (uint64_t)value : 0;
}

static void read_numbers(const json_t *list, oos_incident *history)
{
    size_t index;
    json_t *item;
    json_array_foreach(list, index, item)
    {
        const char *key = json_string_value(json_object_get(item, "key"));
        const char *written = json_string_value(json_object_get(item, "text"));
        for (oos_number_id id = 0; key && id < OOS_NUMBER_COUNT; id++) {
            if (strcmp(key, oos_number_key(id)) != 0) continue;
            oos_number *number = &history->numbers[id];
            *number = (oos_number){.known = true,
                                   .negative = json_is_true(json_object_get(item, "negative")),
                                   .value = whole(item, "value"),
                                   .line = whole(item, "line")};
            snprintf(number->text, sizeof number->text, "%s", written ? written : "");
        }
    }
}

static void read_evidence(oos_arena *arena, const oos_signals *signals, const json_t *list,
                          oos_incident *history)
{
    size_t index;
    json_t *item;
    json_array_foreach(list, index, item)
    {
        const char *text = json_string_value(json_object_get(item, "text"));
        const char *id = json_string_value(json_object_get(item, "signal"));
        size_t const signal = id ? oos_signals_find(signals, id) : SIZE_MAX;
        char *copy = text && signal != SIZE_MAX ? oos_arena_copy(arena, oos_view_of(text)) : NULL;
        if (!copy || history->evidence_count == OOS_EVIDENCE_MAX) continue;
        history->evidence[history->evidence_count++] = (oos_evidence){
            whole(item, "line"), copy, signals->list[signal].id, false, signals->list[signal].whole};
    }
}

bool oos_history_read(oos_arena *arena, const oos_signals *signals, oos_view text, oos_incident *ret_history)
{
    json_t *root = oos_json_parse(text, 0);
    const char *schema = json_string_value(json_object_get(root, "schema"));
    bool const ours = schema && strcmp(schema, SCHEMA) == 0;
    if (ours) {
        *ret_history = (oos_incident){.last_marker = OOS_PHASE_COUNT,
                                      .furthest = OOS_PHASE_COUNT,
                                      .file = "",
                                      .count = 1,
                                      .started = OOS_TIME_NONE,
                                      .first_time = OOS_TIME_NONE,
                                      .at = OOS_TIME_NONE,
                                      .old_shape = json_is_true(json_object_get(root, "old_shape")),
                                      .v1 = json_is_true(json_object_get(root, "v1"))};
        size_t index;
        json_t *item;
        json_array_foreach(json_object_get(root, "signals"), index, item)
        {
            const char *id = json_string_value(item);
            size_t const signal = id ? oos_signals_find(signals, id) : SIZE_MAX;
            if (signal != SIZE_MAX) oos_signal_add(&ret_history->signals, signal);
        }
        read_numbers(json_object_get(root, "numbers"), ret_history);
        read_evidence(arena, signals, json_object_get(root, "evidence"), ret_history);
        for (size_t i = 0; i < SETUP_COUNT; i++) {
            const char *value =
                json_string_value(json_object_get(json_object_get(root, "setup"), setup_fields[i].key));
            if (value) *setup_field(&ret_history->setup, i) = oos_arena_copy(arena, oos_view_of(value));
        }
        ret_history->last_marker = ret_history->furthest =
            oos_phase_find(json_string_value(json_object_get(root, "phase")));
        const json_t *started = json_object_get(root, "started_ns");
        if (json_is_integer(started)) ret_history->started = json_integer_value(started);
    }
    json_decref(root);
    return ours;
}

/* Reading records and choosing among those that fit: the one with the most conditions says the most. */
#include "facts/facts.h"
#include "explain/explain.h"

static oomsight_status strings_read(oos_arena *arena, const json_t *list, const char *const **ret_list,
                                    size_t *ret_count, oomsight_error *reterr)
{
    size_t const count = json_array_size(list);
    const char **strings = OOS_NEW_ARRAY(arena, const char *, count ? count : 1);
    if (!strings) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a record");
    for (size_t i = 0; i < count; i++) {
        strings[i] = json_string_value(json_array_get(list, i));
        if (!strings[i])
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "a list holds something that is no text");
    }
    *ret_list = strings;
    *ret_count = count;
    return OOMSIGHT_OK;
}

static oos_sentence words_read(const json_t *object, const char *key)
{
    oos_sentence words = {0};
    const json_t *texts = json_object_get(object, key);
    oos_json_str(texts, "en", &words.en);
    oos_json_str(texts, "zh", &words.zh);
    return words;
}

static oomsight_status advice_read(oos_arena *arena, const oos_signals *signals, const json_t *list,
                                   const oos_advice **ret_list, size_t *ret_count, oomsight_error *reterr)
{
    size_t const count = json_array_size(list);
    oos_advice *advice = OOS_NEW_ARRAY(arena, oos_advice, count ? count : 1);
    if (!advice) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a record");
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        OOS_TRY(strings_read(arena, json_object_get(item, "change"), &advice[i].change,
                             &advice[i].change_count, reterr));
        advice[i].why = words_read(item, "why");
        advice[i].cost = words_read(item, "cost");
        oos_json_str(item, "evidence", &advice[i].evidence);
        oos_json_str(item, "since", &advice[i].since);
        oos_json_str(item, "until", &advice[i].until);
        oos_json_bool(item, "only_known", &advice[i].only_known);
        OOS_TRY(oos_condition_read(signals, json_object_get(item, "when"), &advice[i].when, reterr));
        if (!advice[i].change_count || !advice[i].why.en || !advice[i].why.zh || !advice[i].evidence)
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "advice %zu needs change, why (en, zh) and evidence",
                            i + 1);
    }
    *ret_list = advice;
    *ret_count = count;
    return OOMSIGHT_OK;
}

static oomsight_status when_read(oos_arena *arena, const oos_signals *signals, const json_t *when,
                                 oos_kb_record *record, oomsight_error *reterr)
{
    OOS_TRY(oos_stages_read(json_object_get(when, "phase"), &record->phases, reterr));
    OOS_TRY(
        strings_read(arena, json_object_get(when, "cause"), &record->causes, &record->cause_count, reterr));
    return oos_condition_read(signals, when, &record->when, reterr);
}

static oomsight_status record_read(oos_arena *arena, const oos_signals *signals, const oos_data_file *file,
                                   oos_kb_record *ret_record, oomsight_error *reterr)
{
    json_t *root;
    oos_kb_record record = {0};
    OOS_TRY(oos_json_load(arena, (oos_view){file->bytes, file->len}, &root, reterr));
    record.json = root;
    size_t const len = strlen(file->path);
    if (!oos_json_str(root, "id", &record.id) || len < 9 || strlen(record.id) != len - 8 ||
        memcmp(record.id, file->path + 3, len - 8) != 0) /* kb/ID.json */
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "the id of a record is its path");
    record.title = words_read(root, "title");
    record.mechanism = words_read(root, "mechanism");
    const json_t *versions = json_object_get(root, "versions");
    oos_json_str(versions, "engine", &record.engine);
    oos_json_str(versions, "introduced", &record.introduced);
    oos_json_str(versions, "fixed", &record.fixed);
    if (!record.title.en || !record.title.zh || !record.mechanism.en || !record.mechanism.zh ||
        !record.engine || !oos_json_str(root, "signature", &record.signature))
        return oos_fail(reterr, OOMSIGHT_MALFORMED,
                        "a record needs title, mechanism, signature and an engine");
    record.of_one =
        oos_signals_find(signals, oos_arena_format(arena, "engine.%s", record.engine)) != SIZE_MAX;
    OOS_TRY(advice_read(arena, signals, json_object_get(root, "fixes"), &record.fixes, &record.fix_count,
                        reterr));
    OOS_TRY(advice_read(arena, signals, json_object_get(root, "dead_ends"), &record.dead_ends,
                        &record.dead_end_count, reterr));
    OOS_TRY(strings_read(arena, json_object_get(root, "confused_with"), &record.confused_with,
                         &record.confused_count, reterr));
    OOS_TRY(strings_read(arena, json_object_get(root, "leads_to"), &record.leads_to, &record.leads_count,
                         reterr));
    OOS_TRY(when_read(arena, signals, json_object_get(root, "when"), &record, reterr));
    *ret_record = record;
    return OOMSIGHT_OK;
}

oomsight_status oos_kb_load(oos_arena *arena, const char *data_dir, const oos_signals *signals,
                            oos_kb *ret_kb, oomsight_error *reterr)
{
    oos_data_file *files;
    size_t count;
    OOS_TRY(oos_data_list(arena, data_dir, "kb", &files, &count, reterr));
    oos_kb_record *list = OOS_NEW_ARRAY(arena, oos_kb_record, count ? count : 1);
    if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the knowledge base");
    for (size_t i = 0; i < count; i++) {
        oomsight_status const status = record_read(arena, signals, &files[i], &list[i], reterr);
        if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, files[i].path);
    }
    *ret_kb = (oos_kb){list, count};
    return OOMSIGHT_OK;
}

const oos_kb_record *oos_kb_find(const oos_kb *kb, const char *id)
{
    for (size_t i = 0; i < kb->count; i++)
        if (strcmp(kb->list[i].id, id) == 0) return &kb->list[i];
    return NULL;
}

/* What one engine does is no explanation for another. Layers below them (PyTorch, NCCL, the host) hold for all. */
static bool speaks_of(const oos_kb_record *record, const oos_incident *incident)
{
    const char *logged = incident->engine ? incident->engine : "";
    /* What holds for any program on PyTorch is said where no engine is known better. */
    if (strcmp(record->engine, "pytorch") == 0) return !oos_engine_is(oos_engine_default, logged);
    if (!record->of_one) return true;
    return strncmp(logged, record->engine, strlen(record->engine)) == 0; /* vllm-ascend is vLLM too */
}

static bool fits(const oos_kb_record *record, const oos_incident *incident, const oos_signal_set *set)
{
    bool const phase = !record->phases || record->phases & OOS_PHASE_BIT(incident->phase);
    bool cause = record->cause_count == 0;
    for (size_t i = 0; i < record->cause_count; i++) cause |= strcmp(record->causes[i], incident->cause) == 0;
    return phase && cause && speaks_of(record, incident) && oos_condition_holds(&record->when, set);
}

static unsigned weight(const oos_kb_record *record)
{
    /* A signal in the text says more than a conclusion drawn from it. */
    return 3u * record->when.all_count + 3u * (record->when.any_count > 0) + record->when.none_count +
           2u * (record->cause_count > 0) + (record->phases != 0);
}

const oos_kb_record *oos_kb_match(const oos_kb *kb, const oos_incident *incident)
{
    if (!incident->is_oom) return NULL;
    oos_signal_set set = incident->signals;
    oos_facts_find(incident, &set);
    const oos_kb_record *best = NULL;
    for (size_t i = 0; i < kb->count; i++)
        if (fits(&kb->list[i], incident, &set) && (!best || weight(&kb->list[i]) > weight(best)))
            best = &kb->list[i];
    return best;
}

/* Names are resolved once, when the data is read. */
#include "explain/explain.h"

static oomsight_status index_of(const oos_signals *signals, const char *id, uint16_t *ret_index,
                                oomsight_error *reterr)
{
    if (strncmp(id, "fact.", 5) == 0) {
        for (oos_fact fact = 0; fact < OOS_FACT_COUNT; fact++)
            if (strcmp(id + 5, oos_fact_name(fact)) == 0) {
                *ret_index = (uint16_t)(OOS_SIGNALS_MAX + (size_t)fact);
                return OOMSIGHT_OK;
            }
    } else {
        size_t const index = oos_signals_find(signals, id);
        if (index != SIZE_MAX) {
            *ret_index = (uint16_t)index;
            return OOMSIGHT_OK;
        }
    }
    return oos_fail(reterr, OOMSIGHT_MALFORMED, "a rule names '%s', which is no signal", id);
}

static oomsight_status ids_read(const oos_signals *signals, const json_t *rule, const char *key,
                                uint16_t *ret_ids, uint8_t *ret_count, oomsight_error *reterr)
{
    const json_t *list = json_object_get(rule, key);
    size_t const count = json_array_size(list);
    if (count > OOS_CONDITION_MAX)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "%zu conditions in a rule", count);
    for (size_t i = 0; i < count; i++) {
        const char *id = json_string_value(json_array_get(list, i));
        OOS_TRY(index_of(signals, id ? id : "", &ret_ids[i], reterr));
    }
    *ret_count = (uint8_t)count;
    return OOMSIGHT_OK;
}

oomsight_status oos_condition_read(const oos_signals *signals, const json_t *rule, oos_condition *ret_when,
                                   oomsight_error *reterr)
{
    OOS_TRY(ids_read(signals, rule, "all", ret_when->all, &ret_when->all_count, reterr));
    OOS_TRY(ids_read(signals, rule, "any", ret_when->any, &ret_when->any_count, reterr));
    return ids_read(signals, rule, "none", ret_when->none, &ret_when->none_count, reterr);
}

bool oos_condition_holds(const oos_condition *when, const oos_signal_set *set)
{
    for (size_t i = 0; i < when->all_count; i++)
        if (!oos_signal_has(set, when->all[i])) return false;
    for (size_t i = 0; i < when->none_count; i++)
        if (oos_signal_has(set, when->none[i])) return false;
    bool any = when->any_count == 0;
    for (size_t i = 0; i < when->any_count; i++) any |= oos_signal_has(set, when->any[i]);
    return any;
}

bool oos_phase_named(const char *word, oos_phase *ret_phase)
{
    oos_phase const found = oos_phase_find(word);
    if (found == OOS_PHASE_COUNT) return false;
    *ret_phase = found;
    return true;
}

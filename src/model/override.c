/* Laying overrides over a config, the way the engine does (vLLM 0.32, ModelConfig._apply_dict_overrides): a part that is
 * a config of its own is updated field by field, everything else is replaced. */
#include "model/model.h"
#include "base/json.h"

#include <stdlib.h>

static void text_release(void *text)
{
    free(text);
}

/* text_config, vision_config, thinker_config, ...; the quantisation's is a plain dictionary to the engine. */
static bool config_key(const char *key)
{
    size_t const len = strlen(key);
    return len > 7 && strcmp(key + len - 7, "_config") == 0 && strcmp(key, "quantization_config") != 0;
}

/* As deep as the overrides are, which Jansson bounds. */
static int update_deep(json_t *target, json_t *updates) /* NOLINT */
{
    const char *key;
    json_t *value;
    json_object_foreach(updates, key, value)
    {
        json_t *inner = json_object_get(target, key);
        if (json_is_object(value) && json_is_object(inner)) {
            if (update_deep(inner, value) != 0) return -1;
        } else if (json_object_set(target, key, value) != 0) {
            return -1;
        }
    }
    return 0;
}

static int update(json_t *config, json_t *overrides)
{
    const char *key;
    json_t *value;
    json_object_foreach(overrides, key, value)
    {
        json_t *part = json_object_get(config, key);
        int const failed = config_key(key) && json_is_object(part) && json_is_object(value)
                               ? update_deep(part, value)
                               : json_object_set(config, key, value);
        if (failed) return -1;
    }
    return 0;
}

oomsight_status oos_config_override(oos_arena *arena, oos_view config, const char *overrides,
                                    oos_view *ret_config, oomsight_error *reterr)
{
    json_t *root, *changes;
    *ret_config = config;
    if (!overrides) return OOMSIGHT_OK;
    OOS_TRY(oos_json_load(arena, config, &root, reterr));
    OOS_TRY(oos_json_load(arena, oos_view_of(overrides), &changes, reterr));
    if (!json_is_object(root) || !json_is_object(changes))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "not a JSON object");
    char *text = update(root, changes) == 0 ? oos_json_text(root, JSON_COMPACT) : NULL;
    if (!text || !oos_arena_adopt(arena, text_release, text)) {
        free(text);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the config");
    }
    *ret_config = oos_view_of(text);
    return OOMSIGHT_OK;
}

/* Reads what the installed engine answered. Its process is somebody else's program, which may be patched, broken or hostile: what is no
 * usable value is left out, and what is left decides nothing that plan could not. */
#include "plan/plan.h"
#include "base/json.h"
#include "base/shown.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_LEN = 64, SENTENCE_MAX = 1000 };

/* As it may be shown; NULL: it is no text, or is empty. */
static const char *text_of(oos_arena *arena, const json_t *object, const char *key, size_t most)
{
    const char *text = NULL;
    if (!oos_json_str(object, key, &text) || !*text) return NULL;
    oos_view const begun = oos_shown_beginning(oos_view_of(text), most);
    const char *copy = oos_arena_copy(arena, begun);
    return copy ? oos_shown(arena, copy) : NULL;
}

const char *oos_exact_word(oos_exact_verdict verdict)
{
    static const char *const words[] = {
        [OOS_EXACT_UNKNOWN] = "unknown", [OOS_EXACT_TAKEN] = "taken", [OOS_EXACT_REFUSED] = "refused"};
    return words[verdict];
}

const char *oos_exact_told_word(const oos_exact_told *told)
{
    return told ? oos_exact_word(told->problem ? OOS_EXACT_UNKNOWN : told->answer->verdict) : NULL;
}

static bool verdict_of(const json_t *root, oos_exact_verdict *ret_verdict)
{
    const char *word = NULL;
    if (!oos_json_str(root, "verdict", &word)) return false;
    for (oos_exact_verdict i = OOS_EXACT_UNKNOWN; i <= OOS_EXACT_REFUSED; i++)
        if (strcmp(word, oos_exact_word(i)) == 0) {
            *ret_verdict = i;
            return true;
        }
    return false;
}

/* A text, a switch, a size or a fraction that is not negative. */
static bool value_read(oos_arena *arena, const char *name, const json_t *value, oos_setting *ret_setting)
{
    uint64_t whole;
    double real;
    if (json_is_boolean(value))
        *ret_setting = oos_setting_yes(name, json_is_true(value));
    else if (json_is_string(value))
        *ret_setting = oos_setting_text(
            name, oos_shown(arena, oos_arena_copy(arena, oos_shown_beginning(
                                                             oos_view_of(json_string_value(value)), 128))));
    else if (oos_json_value_u64(value, &whole))
        *ret_setting = oos_setting_whole(name, whole);
    else if (json_is_real(value) && oos_json_value_f64(value, &real) && real >= 0 && real < 0x1p53)
        *ret_setting = oos_setting_real(name, real);
    else
        return false;
    return ret_setting->kind != OOS_SETTING_TEXT || ret_setting->text;
}

static void values_read(oos_arena *arena, const json_t *values, oos_exact *exact)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)values, key, value)
    {
        if (exact->value_count == OOS_EXACT_VALUES_MAX || strlen(key) > NAME_MAX_LEN) continue;
        const char *name = oos_arena_copy(arena, oos_view_of(key));
        oos_setting *setting = &exact->values[exact->value_count];
        if (name && value_read(arena, name, value, setting)) exact->value_count++;
    }
}

/* Ascending, none twice; else they are not taken. */
static void sizes_read(const json_t *list, oos_exact *exact)
{
    uint64_t size, last = 0;
    if (!json_is_array(list) || json_array_size(list) > OOS_EXACT_SIZES_MAX) return;
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!oos_json_value_u64(json_array_get(list, i), &size) || size <= last || size > 1 << 20) return;
        exact->sizes[i] = last = size;
    }
    exact->size_count = json_array_size(list);
    exact->sizes_known = true;
}

/* Of every stage, or of none. */
static void weights_read(const json_t *list, oos_exact *exact)
{
    size_t const count = json_is_array(list) ? json_array_size(list) : 0;
    if (count > OOS_EXACT_STAGES_MAX) return;
    for (size_t i = 0; i < count; i++)
        if (!oos_json_value_u64(json_array_get(list, i), &exact->param_bytes[i]) || !exact->param_bytes[i])
            return;
    exact->stage_count = count;
}

/* Layers as --kv-layers has them, which is read like anybody's. */
static void cache_read(oos_arena *arena, const json_t *cache, oos_exact *exact)
{
    enum { LAYERS_MAX = 32, LAYERS_BYTES_MAX = 16 << 10 };
    const json_t *layers = json_object_get(cache, "layers");
    char *text = NULL;
    if (!oos_json_u64(cache, "blocks", &exact->blocks)) exact->blocks = 0;
    if (!oos_json_u64(cache, "tokens", &exact->tokens)) exact->tokens = 0;
    bool const fits = exact->blocks || exact->tokens;
    if (!fits || !oos_json_u64(cache, "budget_bytes", &exact->budget_bytes))
        exact->budget_bytes = exact->blocks = exact->tokens = 0;
    if (!json_is_array(layers) || json_array_size(layers) == 0 || json_array_size(layers) > LAYERS_MAX)
        return;
    text = oos_json_text(layers, JSON_COMPACT);
    if (text && strlen(text) <= LAYERS_BYTES_MAX)
        exact->kv_layers_json = oos_arena_copy(arena, oos_view_of(text));
    free(text);
}

bool oos_exact_read(oos_arena *arena, oos_view line, oos_exact *ret_exact)
{
    json_t *root;
    const char *schema = NULL;
    oos_exact *exact = ret_exact;
    *exact = (oos_exact){.seconds = -1, .import_seconds = -1};
    if (oos_json_load(arena, line, &root, NULL) != OOMSIGHT_OK || !json_is_object(root) ||
        !oos_json_str(root, "schema", &schema) || strcmp(schema, "oomsight.exact/1") != 0 ||
        !verdict_of(root, &exact->verdict))
        return false;
    exact->engine = text_of(arena, root, "engine", NAME_MAX_LEN);
    exact->version = text_of(arena, root, "version", NAME_MAX_LEN);
    exact->stage = text_of(arena, root, "stage", NAME_MAX_LEN);
    exact->sentence = text_of(arena, root, "text", SENTENCE_MAX);
    if (!exact->engine || (!exact->version && exact->verdict != OOS_EXACT_UNKNOWN)) return false;
    if (!oos_json_u64(root, "id", &exact->id)) exact->id = 0;
    if (!oos_json_f64(root, "seconds", &exact->seconds)) exact->seconds = -1;
    if (!oos_json_f64(root, "import_seconds", &exact->import_seconds)) exact->import_seconds = -1;
    if (exact->verdict != OOS_EXACT_TAKEN) return true;
    const json_t *values = json_object_get(root, "values");
    values_read(arena, json_is_object(values) ? values : NULL, exact);
    sizes_read(json_object_get(values, "capture_sizes"), exact);
    weights_read(json_object_get(root, "param_bytes"), exact);
    cache_read(arena, json_object_get(root, "cache"), exact);
    return true;
}

const oos_setting *oos_exact_value(const oos_exact *exact, const char *name)
{
    for (size_t i = 0; i < exact->value_count; i++)
        if (strcmp(exact->values[i].name, name) == 0) return &exact->values[i];
    return NULL;
}

bool oos_exact_whole(const oos_exact *exact, const char *name, uint64_t most, uint64_t *ret_value)
{
    const oos_setting *value = oos_exact_value(exact, name);
    if (!value || value->kind != OOS_SETTING_WHOLE || value->whole == 0 || value->whole > most) return false;
    *ret_value = value->whole;
    return true;
}

/* The model under construction: fields, layers, equal things merged. Knows no family. */
#include "input/arch.h"

#include <stdio.h>

/* ---- fields ---- */

uint64_t oos_arch_u64(const oos_arch *a, const char *key, uint64_t fallback)
{
    uint64_t value;
    return oos_json_u64(a->text, key, &value) ? value : fallback;
}

double oos_arch_f64(const oos_arch *a, const char *key, double fallback)
{
    double value;
    return oos_json_f64(a->text, key, &value) ? value : fallback;
}

bool oos_arch_yes(const oos_arch *a, const char *key, bool fallback)
{
    bool value;
    return oos_json_bool(a->text, key, &value) ? value : fallback;
}

const char *oos_arch_str(const oos_arch *a, const char *key)
{
    const char *value = NULL;
    return oos_json_str(a->text, key, &value) ? value : NULL;
}

const json_t *oos_arch_list(const oos_arch *a, const char *key)
{
    const json_t *list = json_object_get(a->text, key);
    return json_is_array(list) && json_array_size(list) > 0 ? list : NULL;
}

bool oos_arch_has(const oos_arch *a, const char *key)
{
    const json_t *value = json_object_get(a->text, key);
    return value && !json_is_null(value);
}

uint64_t oos_arch_item_u64(const json_t *list, uint64_t i, uint64_t fallback)
{
    uint64_t value;
    return oos_json_value_u64(json_array_get(list, (size_t)i), &value) ? value : fallback;
}

bool oos_arch_item_is(const json_t *list, uint64_t i, const char *word)
{
    const json_t *item = json_array_get(list, (size_t)i);
    return json_is_string(item) && strcmp(json_string_value(item), word) == 0;
}

bool oos_arch_list_holds(const json_t *list, uint64_t number)
{
    uint64_t value;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (oos_json_value_u64(json_array_get(list, i), &value) && value == number) return true;
    return false;
}

/* ---- building ---- */

void oos_arch_fail(oos_arch *a, oomsight_status status, const char *format, ...)
{
    if (a->status != OOMSIGHT_OK) return;
    char text[200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    a->status = oos_fail(a->reterr, status, "%s", text);
}

/* Room for one more item of a growing array; the old copy stays behind in the arena. */
static void *grow(oos_arch *a, void *items, size_t count, size_t *room, size_t item_bytes)
{
    if (count < *room) return items;
    size_t const more = *room ? *room * 2 : 16;
    void *copy = oos_arena_take_array(a->arena, more, item_bytes);
    if (!copy) {
        oos_arch_fail(a, OOMSIGHT_NOMEM, "no memory for the model");
        return NULL;
    }
    if (count > 0) memcpy(copy, items, count * item_bytes);
    *room = more;
    return copy;
}

void oos_arch_note(oos_arch *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = oos_arena_vformat(a->arena, format, args);
    va_end(args);
    const char **notes = grow(a, a->notes, a->note_count, &a->note_room, sizeof *notes);
    if (!notes || !text) return;
    a->notes = notes;
    a->notes[a->note_count++] = text;
}

/* Every field, so that padding never decides whether two records are equal. */
static bool same_attention(const oos_attention *x, const oos_attention *y)
{
#define SAME(field) (x->field == y->field)
    return SAME(mixer) && SAME(heads) && SAME(kv_heads) && SAME(head_dim) && SAME(head_dim_v) &&
           SAME(window) && SAME(sinks) && SAME(shares_kv) && SAME(kv_lora_rank) && SAME(q_lora_rank) &&
           SAME(rope_dim) && SAME(nope_dim) && SAME(value_dim) && SAME(indexer_heads) && SAME(indexer_dim) &&
           SAME(indexer_topk) && SAME(compress_ratio) && SAME(key_heads) && SAME(value_heads) &&
           SAME(key_dim) && SAME(value_dim_state) && SAME(conv_kernel) && SAME(conv_dim) &&
           SAME(state_heads) && SAME(state_head_dim) && SAME(state_size) && SAME(groups) && SAME(state_dtype);
#undef SAME
}

void oos_arch_attention(oos_arch *a, oos_attention attention)
{
    if (a->status != OOMSIGHT_OK) return;
    for (size_t i = 0; i < a->attention_count; i++)
        if (same_attention(&a->attentions[i], &attention)) {
            a->now.attention = (uint32_t)i;
            return;
        }
    oos_attention *grown = grow(a, a->attentions, a->attention_count, &a->attention_room, sizeof *grown);
    if (!grown) return;
    a->attentions = grown;
    a->now.attention = (uint32_t)a->attention_count;
    a->attentions[a->attention_count++] = attention;
}

static const oos_layer *describe(oos_arch *a, uint64_t count, void (*layer)(oos_arch *a, uint64_t i))
{
    if (a->status != OOMSIGHT_OK) return NULL;
    if (count > OOS_LAYERS_MAX) {
        oos_arch_fail(a, OOMSIGHT_MALFORMED, "%llu layers, more than the %d we read",
                      (unsigned long long)count, OOS_LAYERS_MAX);
        return NULL;
    }
    oos_layer *layers = OOS_NEW_ARRAY(a->arena, oos_layer, count ? count : 1);
    if (!layers) oos_arch_fail(a, OOMSIGHT_NOMEM, "no memory for %llu layers", (unsigned long long)count);
    for (uint64_t i = 0; i < count && a->status == OOMSIGHT_OK; i++) {
        a->layer = i;
        a->now = (oos_layer){0};
        a->now_first = a->matrix_count;
        layer(a, i);
        layers[i] = a->now;
    }
    return layers;
}

void oos_arch_layers(oos_arch *a, uint64_t count, void (*layer)(oos_arch *a, uint64_t i))
{
    const oos_layer *layers = describe(a, count, layer);
    if (a->status != OOMSIGHT_OK) return;
    a->model->layers = layers;
    a->model->layer_count = (size_t)count;
}

void oos_arch_mtp_layers(oos_arch *a, uint64_t count, void (*layer)(oos_arch *a, uint64_t i))
{
    const oos_layer *layers = describe(a, count, layer);
    if (a->status != OOMSIGHT_OK) return;
    a->model->mtp_layers = layers;
    a->model->mtp_layer_count = (size_t)count;
}

uint64_t oos_arch_layer_count(oos_arch *a)
{
    static const char *const keys[] = {"num_hidden_layers", "n_layer", "num_layers", "n_layers"};
    uint64_t count = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (oos_json_u64(a->text, keys[i], &count)) return count;
    oos_arch_fail(a, OOMSIGHT_MALFORMED, "num_hidden_layers is missing or is not a size");
    return 0;
}

/* ---- windows ---- */

uint64_t oos_arch_window(const oos_arch *a, uint64_t i, uint64_t pattern, uint64_t default_window)
{
    uint64_t const window = json_is_null(json_object_get(a->text, "sliding_window"))
                                ? 0
                                : oos_arch_u64(a, "sliding_window", default_window);
    if (!oos_arch_yes(a, "use_sliding_window", true)) return 0;
    const json_t *types = oos_arch_list(a, "layer_types");
    if (types) return oos_arch_item_is(types, i, "sliding_attention") ? window : 0;
    if (pattern > 0) return (i + 1) % pattern != 0 ? window : 0;
    return window;
}

oos_attention oos_arch_plain(const oos_arch *a, uint64_t window)
{
    const oos_model *m = a->model;
    return (oos_attention){.mixer = window > 0 ? OOS_MIXER_SLIDING : OOS_MIXER_FULL,
                           .heads = m->heads,
                           .kv_heads = m->kv_heads,
                           .head_dim = m->head_dim,
                           .head_dim_v = m->head_dim,
                           .window = window};
}

/* The model under construction: fields, layers, equal things merged. Knows no family. */
#include "model/arch/arch.h"
#include "base/check.h"
#include "base/locale.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- fields ---- */

void oos_arch_wrong(oos_arch *a, const char *key, const json_t *value)
{
    if (!value || json_is_null(value) || json_is_array(value) || json_is_object(value)) return;
    char *text = oos_json_text(value, JSON_ENCODE_ANY);
    bool const empty = json_is_string(value) && json_string_length(value) == 0; /* what NaN became */
    oos_arch_fail(a, OOMSIGHT_MALFORMED, "cannot be planned: %.60s is %.60s", key,
                  empty  ? "NaN"
                  : text ? text
                         : "no number");
    free(text);
}

bool oos_arch_size(oos_arch *a, const json_t *object, const char *key, uint64_t *ret_value)
{
    const json_t *value = json_object_get(object, key);
    if (oos_json_value_u64(value, ret_value)) return true;
    oos_arch_wrong(a, key, value);
    return false;
}

bool oos_arch_real(oos_arch *a, const json_t *object, const char *key, double *ret_value)
{
    const json_t *value = json_object_get(object, key);
    if (oos_json_value_f64(value, ret_value)) return true;
    oos_arch_wrong(a, key, value);
    return false;
}

uint64_t oos_arch_u64(oos_arch *a, const char *key, uint64_t fallback)
{
    uint64_t value;
    return oos_arch_size(a, a->text, key, &value) ? value : fallback;
}

double oos_arch_f64(oos_arch *a, const char *key, double fallback)
{
    double value;
    return oos_arch_real(a, a->text, key, &value) ? value : fallback;
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

/* A list of numbers, or a text of them, "3,4,5". */
bool oos_arch_list_holds(const json_t *list, uint64_t number)
{
    uint64_t value;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (oos_json_value_u64(json_array_get(list, i), &value) && value == number) return true;
    for (const char *at = json_string_value(list); at && *at;) {
        size_t digits = 0;
        for (value = 0; *at >= '0' && *at <= '9' && digits < 9; at++, digits++)
            value = value * 10 + (uint64_t)(*at - '0');
        if (digits > 0 && value == number) return true;
        while (*at && !(*at >= '0' && *at <= '9')) at++;
    }
    return false;
}

/* ---- building ---- */

void oos_arch_fail(oos_arch *a, oomsight_status status, const char *format, ...)
{
    if (a->status != OOMSIGHT_OK) return;
    char text[200];
    va_list args;
    va_start(args, format);
    (void)oos_vformat(text, sizeof text, format, args);
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

static bool same_matrix(const oos_matrix *x, const oos_matrix *y)
{
#define SAME(field) (x->field == y->field)
    return SAME(name) && SAME(out) && SAME(in) && SAME(count) && SAME(quant) && SAME(module) && SAME(unit) &&
           SAME(kv_out) && SAME(kv_heads) && SAME(split) && SAME(bias) && SAME(linear) && SAME(unfolds) &&
           SAME(expert) && SAME(shards) && SAME(dtype);
#undef SAME
}

/* Give the layer just described the range of an equal one, or a number of its own. `seen` holds one layer of each
 * range. */
static void merge_layer(oos_arch *a, oos_layer *seen, size_t *seen_count)
{
    oos_assert(a->now_first <= a->matrix_count);
    size_t const count = a->matrix_count - a->now_first;
    for (size_t i = *seen_count; i-- > 0;) {
        if (seen[i].matrix_count != count) continue;
        size_t same = 0;
        while (same < count &&
               same_matrix(&a->matrices[seen[i].first_matrix + same], &a->matrices[a->now_first + same]))
            same++;
        if (same < count) continue;
        a->matrix_count = a->now_first;
        a->now.first_matrix = seen[i].first_matrix;
        a->now.matrix_count = (uint32_t)count;
        a->now.shape = seen[i].shape;
        return;
    }
    a->now.first_matrix = (uint32_t)a->now_first;
    a->now.matrix_count = (uint32_t)count;
    a->now.shape = (uint32_t)a->model->shape_count++;
    oos_assert(*seen_count <= a->layer); /* at most one before this layer for each of them */
    seen[(*seen_count)++] = a->now;
}

static const oos_layer *describe(oos_arch *a, uint64_t count, void (*layer)(oos_arch *a, uint64_t i),
                                 const char *prefix, uint64_t first)
{
    if (a->status != OOMSIGHT_OK) return NULL;
    if (count > OOS_LAYERS_MAX) {
        oos_arch_fail(a, OOMSIGHT_MALFORMED, "%llu layers, more than the %d we read",
                      (unsigned long long)count, OOS_LAYERS_MAX);
        return NULL;
    }
    oos_layer *layers = OOS_NEW_ARRAY(a->arena, oos_layer, count ? count : 1);
    oos_layer *seen = OOS_NEW_ARRAY(a->arena, oos_layer, count ? count : 1);
    size_t seen_count = 0;
    if (!layers || !seen)
        oos_arch_fail(a, OOMSIGHT_NOMEM, "no memory for %llu layers", (unsigned long long)count);
    for (uint64_t i = 0; i < count && a->status == OOMSIGHT_OK; i++) {
        a->layer = i;
        a->now = (oos_layer){0};
        a->now_first = a->matrix_count;
        a->now_prefix = prefix;
        a->now_layer = oos_add(first, i);
        layer(a, i);
        merge_layer(a, seen, &seen_count);
        layers[i] = a->now;
    }
    return layers;
}

void oos_arch_layers(oos_arch *a, uint64_t count, void (*layer)(oos_arch *a, uint64_t i))
{
    const oos_layer *layers = describe(a, count, layer, a->layer_prefix, 0);
    if (a->status != OOMSIGHT_OK) return;
    a->model->layers = layers;
    a->model->layer_count = (size_t)count;
}

void oos_arch_mtp_layers(oos_arch *a, uint64_t count, const char *prefix, uint64_t first,
                         void (*layer)(oos_arch *a, uint64_t i))
{
    const oos_layer *layers = describe(a, count, layer, prefix, first);
    if (a->status != OOMSIGHT_OK) return;
    a->model->mtp_layers = layers;
    a->model->mtp_layer_count = (size_t)count;
}

uint64_t oos_arch_layer_count(oos_arch *a)
{
    static const char *const keys[] = {"num_hidden_layers", "n_layer", "num_layers", "n_layers"};
    uint64_t count = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (oos_arch_size(a, a->text, keys[i], &count) && count > 0) return count;
    oos_arch_fail(a, OOMSIGHT_MALFORMED, "cannot be planned: %s is %s", keys[0],
                  !json_object_get(a->text, keys[0])                  ? "missing"
                  : json_is_number(json_object_get(a->text, keys[0])) ? "0"
                                                                      : "no number");
    return 0;
}

/* ---- matrices ---- */

static bool same_quant(const oos_quant *x, const oos_quant *y)
{
#define SAME(field) (x->field == y->field)
    return SAME(kind) && SAME(bits) && SAME(group) && SAME(block_out) && SAME(block_in) && SAME(symmetric) &&
           SAME(act_order) && SAME(dynamic_activation) && SAME(double_quant) && SAME(weight_only) &&
           SAME(spare_scale) && SAME(byte_scales);
#undef SAME
}

/* The number of a scheme among the model's; 0 is "not quantised". */
static uint16_t quant_number(oos_arch *a, const oos_quant *quant)
{
    for (size_t i = 0; i < a->quant_count; i++)
        if (same_quant(&a->quants[i], quant)) return (uint16_t)i;
    oos_quant *grown = a->quant_count < UINT16_MAX
                           ? grow(a, a->quants, a->quant_count, &a->quant_room, sizeof *grown)
                           : NULL;
    if (!grown) return 0;
    a->quants = grown;
    a->quants[a->quant_count] = *quant;
    return (uint16_t)a->quant_count++;
}

const char *const oos_module_words[OOS_MODULE_COUNT] = {
    "embed",         "lm_head", "norm",  "attn",   "mlp",   "experts",
    "shared_expert", "router",  "mixer", "vision", "audio", "other",
};

void oos_put(oos_arch *a, oos_module module, oos_matrix matrix)
{
    oos_assert((unsigned)module < OOS_MODULE_COUNT);
    if (a->status != OOMSIGHT_OK || matrix.out == 0 || matrix.in == 0) return;
    matrix.module = oos_module_words[module];
    if (matrix.count == 0) matrix.count = 1;
    if (matrix.unit == 0) matrix.unit = 1;
    if (matrix.linear) {
        oos_quant_role const role = matrix.expert                  ? OOS_QUANT_EXPERTS
                                    : module == OOS_MODULE_LM_HEAD ? OOS_QUANT_LM_HEAD
                                                                   : OOS_QUANT_LINEAR;
        oos_quant const quant =
            oos_quantizer_scheme(a->quantizer, a->now_prefix, matrix.name, a->now_layer, role);
        matrix.quant = quant_number(a, &quant);
    }
    oos_matrix *grown = grow(a, a->matrices, a->matrix_count, &a->matrix_room, sizeof *grown);
    if (!grown) return;
    a->matrices = grown;
    a->matrices[a->matrix_count++] = matrix;
}

void oos_range_open(oos_arch *a, const char *prefix)
{
    a->now_first = a->matrix_count;
    a->now_prefix = prefix;
    a->now_layer = UINT64_MAX;
}

void oos_range_close(oos_arch *a, uint32_t range[2])
{
    oos_assert(a->now_first <= a->matrix_count);
    range[0] = (uint32_t)a->now_first;
    range[1] = (uint32_t)(a->matrix_count - a->now_first);
}

/* ---- windows ---- */

uint64_t oos_arch_window(oos_arch *a, uint64_t i, uint64_t pattern, uint64_t default_window)
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

oos_attention oos_arch_plain(oos_arch *a, uint64_t window)
{
    const oos_model *m = a->model;
    return (oos_attention){.mixer = window > 0 ? OOS_MIXER_SLIDING : OOS_MIXER_FULL,
                           .heads = m->heads,
                           .kv_heads = m->kv_heads,
                           .head_dim = m->head_dim,
                           .head_dim_v = m->head_dim,
                           .window = window};
}

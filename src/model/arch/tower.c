/* Vision and audio towers as their records describe them. One matrix stands for all blocks: `count` is the depth, and block 0 speaks
 * for all to the quantiser. */
#include "model/arch/arch.h"

#define AT(field) offsetof(oos_model, vision.field)
static const oos_quantity quantities[] = {
    {"depth", AT(depth)},
    {"hidden", AT(hidden)},
    {"intermediate", AT(intermediate)},
    {"heads", AT(heads)},
    {"patch", AT(patch)},
    {"temporal_patch", AT(temporal_patch)},
    {"merge", AT(merge)},
    {"out_hidden", AT(out_hidden)},
    {"image_size", AT(image_size)},
    {"channels", AT(channels)},
    {"deepstack", AT(deepstack)},
    {"decoder", offsetof(oos_model, hidden)},
    {NULL, 0},
};
static const char *const tower_keys[] = {"source", "code",     "like", "at",  "decoder",  "names", "always",
                                         "set",    "defaults", "used", "let", "matrices", NULL};
static const char *const used_keys[] = {"layer", "default", "more", NULL};

void oos_vision_fill(oos_vision *vision, const oos_vision *defaults)
{
    if (!vision->present) return;
#define FILL(field)                                                                                          \
    if (vision->field == 0) vision->field = defaults->field
    FILL(depth);
    FILL(hidden);
    FILL(intermediate);
    FILL(heads);
    FILL(patch);
    FILL(temporal_patch);
    FILL(merge);
    FILL(out_hidden);
    FILL(image_size);
    FILL(channels);
#undef FILL
}

/* Patches are put together two by two where the config says so in either of its ways. */
static uint64_t pixel_merge(oos_arch *a)
{
    double ratio = 1;    /* InternVL */
    uint64_t factor = 1; /* Idefics 3 */
    (void)oos_arch_real(a, a->root, "downsample_ratio", &ratio);
    if (ratio > 0.1 && ratio < 1) return (uint64_t)(1 / ratio + 0.5);
    (void)oos_arch_size(a, a->root, "scale_factor", &factor);
    return factor;
}

/* How many layers are built when the output of one of them is used: negative ones count from the end. A positive one is the number
 * of layers, or (`more`) one less. */
static uint64_t depth_used(const oos_scope *s)
{
    const json_t *used = json_object_get(s->record->body, "used"),
                 *given = oos_record_field(s, used, "layer");
    const json_t *usual = json_object_get(used, "default");
    uint64_t const depth = s->arch->model->vision.depth, more = oos_record_size(s, used, "more", 0);
    oos_record_keys(s, used, "used", used_keys);
    if (!used) return depth;
    if (!json_is_integer(usual)) oos_record_fail(s, "used", "its default is not a whole number");
    json_int_t const layer = json_integer_value(json_is_integer(given) ? given : usual);
    if (layer < 0 && layer > -OOS_LAYERS_MAX && (uint64_t)-layer <= depth)
        return depth - ((uint64_t)-layer - 1);
    if (layer >= 0 && layer < OOS_LAYERS_MAX && oos_add((uint64_t)layer, more) <= depth)
        return oos_add((uint64_t)layer, more);
    return depth;
}

/* Sizes of the tower that the record sets, all of them or those that the config leaves out. */
static void assign(const oos_scope *s, const char *section, bool only_missing)
{
    const char *key;
    json_t *value;
    json_t *object = json_object_get(s->record->body, section);
    if (object && !json_is_object(object)) oos_record_fail(s, section, "is not an object");
    json_object_foreach(object, key, value)
    {
        const oos_quantity *q = quantities;
        (void)value;
        while (q->name && strcmp(q->name, key) != 0) q++;
        if (!q->name || strcmp(key, "decoder") == 0) {
            oos_record_fail(s, section, "'%.40s' is not a size of a tower", key);
            return;
        }
        uint64_t now;
        uint64_t const size = oos_record_size(s, object, key, 0);
        char *place = (char *)s->arch->model + q->offset;
        memcpy(&now, place, sizeof now);
        if (!only_missing || now == 0) memcpy(place, &size, sizeof size);
    }
}

void oos_tower_record(oos_arch *a, const oos_record *record)
{
    oos_vision *v = &a->model->vision;
    oos_scope scope = {.arch = a, .record = record, .quantities = quantities};
    oos_record_keys(&scope, record->body, "record", tower_keys);
    if (oos_record_yes(&scope, record->body, "always", false)) v->present = a->model->multimodal = true;
    if (!v->present && !a->audio) return;
    oos_record_let(&scope, "pixel_merge", pixel_merge(a));
    if (v->present) {
        assign(&scope, "set", false);
        assign(&scope, "defaults", true);
        if (v->depth == 0 || v->hidden == 0 || v->depth > OOS_LAYERS_MAX) return;
    }
    oos_record_let(&scope, "used", depth_used(&scope));
    oos_record_lets(&scope, "let");
    oos_range_open(a, oos_record_word(&scope, record->body, "at", ""));
    oos_record_matrices(&scope, record->body, "matrices", OOS_MODULE_VISION, NULL);
    oos_range_close(a, a->model->vision_matrices);
}

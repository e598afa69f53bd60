/* Reading data/catalogue.json: the file is scanned forward for one id, what stands there is read as a config.json is. */
#include "model/model.h"
#include "base/ascii.h"
#include "base/edits.h"
#include "base/scan.h"
#include "base/text.h"
#include "facts/facts.h"

#include <string.h>

static const char file[] = "catalogue.json";

/* What stands behind an id. Empty: not there. */
typedef struct entry {
    oos_view name;          /* the same checkpoint is listed there */
    oos_view like;          /* another model with the config of that one */
    oos_view of;            /* a quantised checkpoint of that one */
    oos_view config, quant; /* objects: config.json and hf_quant_config.json */
    oos_view change;        /* keys of config.json that differ from those of what it refers to */
    oos_view from;          /* where and when it was read; not looked at */
} entry;

static oomsight_status refuse(oomsight_error *reterr, const char *id, const char *why)
{
    oos_fail(reterr, OOMSIGHT_MALFORMED, "%.120s %s", id, why);
    return oos_fail_in(reterr, OOMSIGHT_MALFORMED, file);
}

static bool read_part(oos_scan *scan, oos_view key, entry *ret_entry)
{
    const struct {
        const char *key;
        oos_scan_kind kind;
        oos_view *value;
    } parts[] = {
        {"like", OOS_SCAN_STRING, &ret_entry->like},     {"of", OOS_SCAN_STRING, &ret_entry->of},
        {"config", OOS_SCAN_OBJECT, &ret_entry->config}, {"quant", OOS_SCAN_OBJECT, &ret_entry->quant},
        {"change", OOS_SCAN_OBJECT, &ret_entry->change}, {"from", OOS_SCAN_OBJECT, &ret_entry->from}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!oos_view_is(key, parts[i].key)) continue;
        if (oos_scan_peek(scan) != parts[i].kind || parts[i].value->len) return false;
        return parts[i].kind == OOS_SCAN_STRING ? oos_scan_string(scan, parts[i].value)
                                                : oos_scan_skip(scan, parts[i].value);
    }
    return false;
}

/* The next of the file. False: what stands there is no entry. */
static bool read_entry(oos_scan *scan, entry *ret_entry)
{
    oos_view key = {0}, text = {0};
    *ret_entry = (entry){0};
    if (oos_scan_peek(scan) == OOS_SCAN_STRING)
        return oos_scan_string(scan, &ret_entry->name) && ret_entry->name.len;
    if (oos_scan_peek(scan) != OOS_SCAN_OBJECT || !oos_scan_skip(scan, &text)) return false;
    oos_scan inside = oos_scan_begin(text);
    if (!oos_scan_open(&inside, '{')) return false;
    while (oos_scan_key(&inside, &key))
        if (!read_part(&inside, key, ret_entry)) return false;
    if (inside.failed) return false;
    if (ret_entry->config.len) return !ret_entry->like.len && !ret_entry->change.len;
    if (ret_entry->like.len) return !ret_entry->of.len && !ret_entry->quant.len;
    return ret_entry->of.len && (ret_entry->change.len || ret_entry->quant.len);
}

/* NOT_FOUND: `id` is not listed. */
static oomsight_status entry_of(oos_view text, const char *id, entry *ret_entry, oomsight_error *reterr)
{
    oos_scan scan = oos_scan_begin(text);
    oos_view key = {0};
    *ret_entry = (entry){0};
    if (!oos_scan_open(&scan, '{')) return refuse(reterr, "the file", "is no object");
    while (oos_scan_key(&scan, &key)) {
        bool const found = oos_view_is(key, id);
        if (found && !read_entry(&scan, ret_entry))
            return refuse(reterr, id, "is not a model as one is listed");
        if (found) return OOMSIGHT_OK;
        if (!oos_scan_skip(&scan, NULL)) break;
    }
    if (scan.failed) return refuse(reterr, "the file", "is not JSON");
    return oos_fail(reterr, OOMSIGHT_NOT_FOUND, "%.120s is not a built-in model", id);
}

/* ... or listed by another name, which is returned. */
static oomsight_status listed(oos_arena *arena, oos_view text, const char *id, const char **ret_id,
                              entry *ret_entry, oomsight_error *reterr)
{
    OOS_TRY(entry_of(text, id, ret_entry, reterr));
    *ret_id = id;
    if (!ret_entry->name.len) return OOMSIGHT_OK;
    const char *other = oos_scan_text(arena, ret_entry->name);
    if (!other) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a name");
    if (entry_of(text, other, ret_entry, NULL) != OOMSIGHT_OK || ret_entry->name.len)
        return refuse(reterr, id, "is another name of what is not a built-in model");
    *ret_id = other;
    return OOMSIGHT_OK;
}

static bool has_key(oos_view object, oos_view wanted)
{
    oos_scan scan = oos_scan_begin(object);
    oos_view key = {0};
    if (!object.len || !oos_scan_open(&scan, '{')) return false;
    while (oos_scan_key(&scan, &key) && oos_scan_skip(&scan, NULL))
        if (oos_view_equal(key, wanted)) return true;
    return false;
}

/* The keys of `object` without those of `less`, and without a quantisation where that is another one. */
static void put_keys(oos_text *text, oos_view object, oos_view less, bool quantised)
{
    oos_scan scan = oos_scan_begin(object);
    oos_view key = {0}, value = {0};
    if (!object.len || !oos_scan_open(&scan, '{')) return;
    while (oos_scan_key(&scan, &key) && oos_scan_skip(&scan, &value)) {
        if (has_key(less, key) || (quantised && oos_view_is(key, "quantization_config"))) continue;
        oos_text_put(text, text->len ? ",\"" : "{\"");
        oos_text_add(text, key);
        oos_text_put(text, "\":");
        oos_text_add(text, value);
    }
}

/* The config of what the entry refers to, with its changes. */
static oomsight_status merge(oos_arena *arena, oos_view base, const entry *found, oos_view *ret_config,
                             oomsight_error *reterr)
{
    oos_text text = {0};
    put_keys(&text, base, found->change, found->of.len != 0);
    put_keys(&text, found->change, (oos_view){0}, false);
    oos_text_put(&text, text.len ? "}" : "{}");
    const char *copy = text.failed ? NULL : oos_arena_copy(arena, (oos_view){text.ptr, text.len});
    *ret_config = (oos_view){copy, text.len};
    oos_text_free(&text);
    return copy ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the config");
}

/* The config of an entry; of what it refers to, which has its own or that of another model. */
static oomsight_status config_of(oos_arena *arena, oos_view text, const char *id, const entry *found,
                                 bool like_too, oos_view *ret_config, oos_view *ret_quant,
                                 oomsight_error *reterr)
{
    entry base;
    *ret_config = found->config;
    *ret_quant = found->quant;
    if (found->config.len) return OOMSIGHT_OK;
    const char *other = oos_scan_text(arena, found->of.len ? found->of : found->like), *ignored;
    oos_view config, quant;
    if (!other) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a name");
    if (listed(arena, text, other, &ignored, &base, NULL) != OOMSIGHT_OK)
        return refuse(reterr, id, "refers to what is not a built-in model");
    if (!base.config.len && !(like_too && base.like.len))
        return refuse(reterr, id, "refers to a model without a config");
    OOS_TRY(config_of(arena, text, id, &base, false, &config, &quant, reterr));
    if (!found->of.len) *ret_quant = quant;
    return merge(arena, config, found, ret_config, reterr);
}

oomsight_status oos_catalogue_find(oos_arena *arena, const char *data_dir, const char *id,
                                   oos_view *ret_config, oos_view *ret_quant, oomsight_error *reterr)
{
    oos_view text;
    entry found;
    const char *name;
    OOS_TRY(oos_data_read(arena, data_dir, file, &text, reterr));
    OOS_TRY(listed(arena, text, id, &name, &found, reterr));
    return config_of(arena, text, name, &found, found.of.len != 0, ret_config, ret_quant, reterr);
}

static bool same_owner(const char *id, const char *other)
{
    size_t const len = strcspn(id, "/") + 1;
    return strncmp(id, other, len) == 0;
}

/* Those of the model's own owner go before the others. */
static void add_checkpoint(oos_checkpoint *list, size_t count, const char *base, const oos_checkpoint *one)
{
    size_t at = count;
    if (same_owner(base, one->id))
        for (; at > 0 && !same_owner(base, list[at - 1].id); at--) list[at] = list[at - 1];
    list[at] = *one;
}

oomsight_status oos_catalogue_checkpoints(oos_arena *arena, const char *data_dir, const char *id,
                                          const oos_checkpoint **ret_list, size_t *ret_count,
                                          oomsight_error *reterr)
{
    oos_view text, key = {0}, config, quant;
    entry one;
    const char *base;
    oos_checkpoint *list = OOS_NEW_ARRAY(arena, oos_checkpoint, OOS_CHECKPOINTS_MAX);
    if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for names");
    OOS_TRY(oos_data_read(arena, data_dir, file, &text, reterr));
    OOS_TRY(listed(arena, text, id, &base, &one, reterr));
    const char *self = base;
    if (one.of.len) {
        base = oos_scan_text(arena, one.of);
        if (!base) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for names");
        if (entry_of(text, base, &one, NULL) != OOMSIGHT_OK || one.name.len)
            return refuse(reterr, self, "refers to what is not a built-in model");
    }
    OOS_TRY(config_of(arena, text, base, &one, false, &config, &quant, reterr));
    size_t count = 0;
    oos_scan scan = oos_scan_begin(text);
    if (!oos_scan_open(&scan, '{')) return refuse(reterr, "the file", "is no object");
    while (count < OOS_CHECKPOINTS_MAX && oos_scan_key(&scan, &key)) {
        const char *name = oos_scan_text(arena, key);
        if (!name) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for names");
        if (!read_entry(&scan, &one)) return refuse(reterr, name, "is not a model as one is listed");
        if (!one.of.len || !oos_view_is(one.of, base) || strcmp(name, self) == 0) continue;
        oos_checkpoint found = {name, one.config, one.quant};
        if (!one.config.len) OOS_TRY(merge(arena, config, &one, &found.config, reterr));
        add_checkpoint(list, count++, base, &found);
    }
    *ret_list = list;
    *ret_count = count;
    return OOMSIGHT_OK;
}

const char *oos_catalogue_nearest(oos_arena *arena, const char *data_dir, const char *name)
{
    enum { SLIPS = 2 };
    oos_view text, id = {0}, best = {0};
    size_t const len = strlen(name);
    size_t least = SLIPS + 1;
    if (oos_data_read(arena, data_dir, file, &text, NULL) != OOMSIGHT_OK) return NULL;
    oos_scan scan = oos_scan_begin(text);
    if (!oos_scan_open(&scan, '{')) return NULL;
    while (oos_scan_key(&scan, &id)) {
        size_t const slips = strchr(name, '/') && oos_far(id.len, len) <= SLIPS
                                 ? oos_edits((oos_view){name, len}, id)
                                 : SLIPS + 1;
        if (slips < least) {
            least = slips;
            best = id;
        }
        if (id.len > len && id.ptr[id.len - len - 1] == '/' &&
            oos_same_start(id.ptr + id.len - len, name, len))
            return oos_scan_text(arena, id);
        if (!oos_scan_skip(&scan, NULL)) return NULL;
    }
    return best.len && least ? oos_scan_text(arena, best) : NULL;
}

oomsight_status oos_catalogue_open(oos_arena *arena, const char *data_dir, const char *id, oos_view config,
                                   oos_view quant, const char *overrides, oos_model *ret_model,
                                   oomsight_error *reterr)
{
    oos_model model;
    oos_tensor_table *tensors = OOS_NEW(arena, oos_tensor_table);
    if (!tensors) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the model");
    OOS_TRY(oos_config_override(arena, config, overrides, &config, reterr));
    OOS_TRY(oos_model_read(arena, data_dir, config, quant, &model, reterr));
    model.path = oos_arena_copy(arena, oos_view_of(id));
    if (!model.path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a name");
    model.from_catalogue = true;
    OOS_TRY(oos_tensors_attach(arena, tensors, &model, reterr));
    *ret_model = model;
    return OOMSIGHT_OK;
}

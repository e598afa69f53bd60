/* Reading data/catalogue.json: one id is looked up, and what stands there is read as a config.json is. */
#include "model/model.h"
#include "base/ascii.h"
#include "base/edits.h"
#include "base/text.h"

#include <string.h>

enum { NEAR_EDITS = 2 };

/* What stands behind an id. Empty: not there. */
typedef struct entry {
    oos_view name;          /* the same checkpoint is listed there */
    oos_view like;          /* another model with the config of that one */
    oos_view of;            /* a quantised checkpoint of that one */
    oos_view config, quant; /* objects: config.json and hf_quant_config.json */
    oos_view change;        /* keys of config.json that differ from those of what it refers to */
    oos_view level;         /* how its sizes are known; empty: its whole config is */
    uint64_t wide;          /* thousandths by which its weights may differ */
    oos_view from;          /* where and when it was read; not looked at */
} entry;

static oomsight_status refuse(oomsight_error *reterr, const char *id, const char *why)
{
    oos_fail(reterr, OOMSIGHT_MALFORMED, "%.120s %s", id, why);
    return oos_fail_in(reterr, OOMSIGHT_MALFORMED, OOS_CATALOGUE_FILE);
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
        {"change", OOS_SCAN_OBJECT, &ret_entry->change}, {"from", OOS_SCAN_OBJECT, &ret_entry->from},
        {"level", OOS_SCAN_STRING, &ret_entry->level}};
    if (oos_view_is(key, "wide")) return oos_scan_u64(scan, &ret_entry->wide) && ret_entry->wide < 1000;
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

static bool read_value(oos_view value, entry *ret_entry)
{
    oos_scan scan = oos_scan_begin(value);
    return read_entry(&scan, ret_entry) && oos_scan_done(&scan);
}

/* NOT_FOUND: `id` is not listed. */
static oomsight_status entry_of(oos_view text, const char *id, entry *ret_entry, oomsight_error *reterr)
{
    oos_scan scan = oos_scan_begin(text);
    oos_view key = {0}, value;
    *ret_entry = (entry){0};
    if (oos_catalogue_is_lined(text)) {
        if (!oos_catalogue_halve(text, id, &value))
            return oos_fail(reterr, OOMSIGHT_NOT_FOUND, "%.120s is not a built-in model", id);
        return read_value(value, ret_entry) ? OOMSIGHT_OK
                                            : refuse(reterr, id, "is not a model as one is listed");
    }
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

/* What an entry says, behind its config: with the words and the id that it rests on. */
static oomsight_status describe(oos_arena *arena, const entry *found, oos_listed *ret_listed,
                                oomsight_error *reterr)
{
    oos_view const rests = found->of.len ? found->of : found->like;
    ret_listed->wide = found->wide;
    ret_listed->level = found->level.len ? oos_scan_text(arena, found->level) : "whole";
    ret_listed->rests_on = rests.len ? oos_scan_text(arena, rests) : NULL;
    if (!ret_listed->level || (rests.len && !ret_listed->rests_on))
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a name");
    return OOMSIGHT_OK;
}

/* Without its config. */
static oomsight_status entry_and_name(oos_arena *arena, oos_view text, const char *id, entry *ret_entry,
                                      oos_listed *ret_listed, const char **ret_name, oomsight_error *reterr)
{
    *ret_listed = (oos_listed){.id = id};
    OOS_TRY(listed(arena, text, id, ret_name, ret_entry, reterr));
    OOS_TRY(describe(arena, ret_entry, ret_listed, reterr));
    if (strcmp(*ret_name, id) != 0) ret_listed->rests_on = *ret_name;
    return OOMSIGHT_OK;
}

oomsight_status oos_catalogue_entry(oos_arena *arena, oos_view text, const char *id, oos_listed *ret_listed,
                                    oomsight_error *reterr)
{
    entry found;
    const char *name;
    return entry_and_name(arena, text, id, &found, ret_listed, &name, reterr);
}

oomsight_status oos_catalogue_find(oos_arena *arena, const char *data_dir, const char *id,
                                   oos_listed *ret_listed, oomsight_error *reterr)
{
    oos_view text;
    OOS_TRY(oos_catalogue_text(arena, data_dir, &text, reterr));
    return oos_catalogue_find_in(arena, text, id, ret_listed, reterr);
}

oomsight_status oos_catalogue_find_in(oos_arena *arena, oos_view text, const char *id, oos_listed *ret_listed,
                                      oomsight_error *reterr)
{
    entry found;
    const char *name;
    OOS_TRY(entry_and_name(arena, text, id, &found, ret_listed, &name, reterr));
    return config_of(arena, text, name, &found, found.of.len != 0, &ret_listed->config, &ret_listed->quant,
                     reterr);
}

static bool same_owner(const char *id, const char *other)
{
    size_t const len = strcspn(id, "/") + 1;
    return strncmp(id, other, len) == 0;
}

/* Those of the model's own owner go before the others. */
static void add_checkpoint(oos_listed *list, size_t count, const char *base, const oos_listed *one)
{
    size_t at = count;
    if (same_owner(base, one->id))
        for (; at > 0 && !same_owner(base, list[at - 1].id); at--) list[at] = list[at - 1];
    list[at] = *one;
}

/* In a text of lines `of` is the first key: the other lines are not read. */
static bool may_rest_on(const oos_walk *walk, oos_view value, const char *base)
{
    static const char of[] = "{\"of\":\"";
    size_t const len = strlen(base);
    return !walk->at || (value.len > sizeof of + len && memcmp(value.ptr, of, sizeof of - 1) == 0 &&
                         memcmp(value.ptr + sizeof of - 1, base, len) == 0);
}

oomsight_status oos_catalogue_checkpoints(oos_arena *arena, const char *data_dir, const char *id,
                                          const oos_listed **ret_list, size_t *ret_count,
                                          oomsight_error *reterr)
{
    oos_view text, key = {0}, value, config, quant;
    entry one;
    const char *base;
    oos_listed *list = OOS_NEW_ARRAY(arena, oos_listed, OOS_CHECKPOINTS_MAX);
    if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for names");
    OOS_TRY(oos_catalogue_text(arena, data_dir, &text, reterr));
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
    oos_walk walk = oos_walk_begin(text);
    while (count < OOS_CHECKPOINTS_MAX && oos_walk_next(&walk, &key, &value)) {
        if (!may_rest_on(&walk, value, base)) continue;
        const char *name = oos_scan_text(arena, key);
        if (!name) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for names");
        if (!read_value(value, &one)) return refuse(reterr, name, "is not a model as one is listed");
        if (!one.of.len || !oos_view_is(one.of, base) || strcmp(name, self) == 0) continue;
        oos_listed found = {.id = name, .config = one.config, .quant = one.quant};
        OOS_TRY(describe(arena, &one, &found, reterr));
        if (!one.config.len) OOS_TRY(merge(arena, config, &one, &found.config, reterr));
        add_checkpoint(list, count++, base, &found);
    }
    *ret_list = list;
    *ret_count = count;
    return OOMSIGHT_OK;
}

static bool same_letters(oos_view a, oos_view b)
{
    return a.len == b.len && oos_same_start(a.ptr, b.ptr, a.len);
}

static oos_view without_owner(oos_view id)
{
    const char *slash = memchr(id.ptr, '/', id.len);
    return slash ? (oos_view){slash + 1, (size_t)(id.ptr + id.len - slash - 1)} : id;
}

/* How far an id is from what was asked for: a name without its owner by its own name; only another owner is near. */
static size_t far_from(oos_view id, oos_view name, bool owned)
{
    if (!owned) id = without_owner(id);
    if (same_letters(id, name)) return 0;
    if (owned && same_letters(without_owner(id), without_owner(name))) return 1;
    size_t const apart = id.len > name.len ? id.len - name.len : name.len - id.len;
    return apart > NEAR_EDITS ? SIZE_MAX : oos_edits(name, id);
}

const char *oos_catalogue_nearest(oos_arena *arena, const char *data_dir, const char *name)
{
    oos_view text, id = {0}, value, nearest = {0};
    bool const owned = strchr(name, '/') != NULL;
    size_t const len = strlen(name);
    size_t least = oos_min(NEAR_EDITS, len / 4) + 1; /* a quarter of the letters: more is another name */
    if (len > OOS_EDITS_MAX || oos_catalogue_text(arena, data_dir, &text, NULL) != OOMSIGHT_OK) return NULL;
    oos_walk walk = oos_walk_begin(text);
    while (least && oos_walk_next(&walk, &id, &value)) {
        size_t const far = far_from(id, oos_view_of(name), owned);
        if (far >= least) continue;
        least = far;
        nearest = id;
    }
    return nearest.len ? oos_scan_text(arena, nearest) : NULL;
}

oomsight_status oos_catalogue_open(oos_arena *arena, const char *data_dir, const oos_listed *listed,
                                   const char *overrides, oos_model *ret_model, oomsight_error *reterr)
{
    oos_model model;
    oos_tensor_table *tensors = OOS_NEW(arena, oos_tensor_table);
    if (!tensors) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the model");
    oos_view config;
    OOS_TRY(oos_config_override(arena, listed->config, overrides, &config, reterr));
    OOS_TRY(oos_model_read(arena, data_dir, config, listed->quant, &model, reterr));
    model.path = oos_arena_copy(arena, oos_view_of(listed->id));
    if (!model.path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a name");
    model.from_catalogue = true;
    model.level = listed->level;
    model.rests_on = listed->rests_on;
    model.wide = listed->wide;
    OOS_TRY(oos_tensors_attach(arena, tensors, &model, reterr));
    *ret_model = model;
    return OOMSIGHT_OK;
}

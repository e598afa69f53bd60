/* Reading data/engines/<engine>/architectures.json and arguments.json, and looking things up in them by release. */
#include "facts/arguments.h"
#include "base/json.h"
#include "facts/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Releases in which something is. */
typedef struct stretch {
    oos_version first, last; /* UINT64_MAX: still there */
} stretch;

typedef struct step {
    oos_version since;
    bool gone;
    oos_bounds bounds;
    oos_quant_method method;
} step;

typedef struct entry {
    const char *name;
    const stretch *stretches; /* architectures */
    const step *steps;        /* everything else */
    size_t count;
} entry;

typedef struct table {
    entry *list; /* by name */
    size_t count;
} table;

struct oos_argument_facts {
    table architectures, bounds, methods, backends;
    const oos_version *versions; /* whose registry was read */
    size_t version_count;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static const entry *entry_find(const table *t, const char *name)
{
    entry const key = {.name = name};
    return t->count && name ? bsearch(&key, t->list, t->count, sizeof key, by_name) : NULL;
}

static bool version_read(const json_t *value, oos_version *ret_version)
{
    return json_is_string(value) && oos_version_parse(oos_view_of(json_string_value(value)), ret_version);
}

static oomsight_status table_make(oos_arena *arena, const json_t *object, table *ret_table,
                                  oomsight_error *reterr)
{
    size_t const count = json_object_size(object);
    ret_table->list = OOS_NEW_ARRAY(arena, entry, count);
    ret_table->count = 0;
    return ret_table->list ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the arguments");
}

static oomsight_status stretches_read(oos_arena *arena, const json_t *list, entry *e, oomsight_error *reterr)
{
    size_t const count = json_array_size(list);
    stretch *stretches = OOS_NEW_ARRAY(arena, stretch, count);
    if (!stretches) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the architectures");
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(list, i), *last = json_array_get(pair, 1);
        stretches[i].last = UINT64_MAX;
        if (!version_read(json_array_get(pair, 0), &stretches[i].first) ||
            (!json_is_null(last) && !version_read(last, &stretches[i].last)))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "%s: a stretch is [first, last or null]", e->name);
    }
    e->stretches = stretches;
    e->count = count;
    return OOMSIGHT_OK;
}

static oomsight_status architectures_read(oos_arena *arena, const json_t *root, oos_argument_facts *facts,
                                          oomsight_error *reterr)
{
    const json_t *versions = json_object_get(root, "versions"),
                 *list = json_object_get(root, "architectures");
    oos_version *read = OOS_NEW_ARRAY(arena, oos_version, json_array_size(versions));
    if (!read) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the architectures");
    for (size_t i = 0; i < json_array_size(versions); i++)
        if (!version_read(json_array_get(versions, i), &read[i]))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "a version is text such as 0.19.1");
    facts->versions = read;
    facts->version_count = json_array_size(versions);
    table *t = &facts->architectures;
    OOS_TRY(table_make(arena, list, t, reterr));
    const char *name;
    json_t *stretches;
    json_object_foreach((json_t *)list, name, stretches)
    {
        entry *e = &t->list[t->count++];
        e->name = oos_arena_copy(arena, oos_view_of(name));
        if (!e->name) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the architectures");
        OOS_TRY(stretches_read(arena, stretches, e, reterr));
    }
    qsort(t->list, t->count, sizeof *t->list, by_name);
    return OOMSIGHT_OK;
}

static double number_or(const json_t *object, const char *key, double fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

static oos_bounds bounds_read(const json_t *object, const json_t *parts)
{
    oos_bounds b = {.above = number_or(object, "gt", -INFINITY),
                    .least = number_or(object, "ge", -INFINITY),
                    .below = number_or(object, "lt", INFINITY),
                    .most = number_or(object, "le", INFINITY)};
    const char *part = json_string_value(json_object_get(object, "part"));
    for (size_t i = 0; part && i < json_array_size(parts); i++)
        if (strcmp(part, json_string_value(json_array_get(parts, i))) == 0) {
            b.part = (unsigned)i;
            b.part_name = json_string_value(json_array_get(parts, i)); /* the document is the arena's */
        }
    return b;
}

static oos_quant_method method_read(const json_t *object)
{
    const json_t *types = json_object_get(object, "dtypes");
    double const capability = number_or(object, "capability", 0); /* some classes say -1: any */
    oos_quant_method m = {.capability = capability > 0 ? (unsigned)capability : 0,
                          .deprecated = json_is_true(json_object_get(object, "deprecated"))};
    m.float16 = m.bfloat16 = m.float32 = !json_is_array(types);
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *word = json_string_value(json_array_get(types, i));
        if (!word) continue;
        m.float16 |= strcmp(word, "float16") == 0;
        m.bfloat16 |= strcmp(word, "bfloat16") == 0;
        m.float32 |= strcmp(word, "float32") == 0;
    }
    return m;
}

/* {"name": [{"since": ..., ...}, ...]}; `flags`: the name is a keyword, and is kept as a flag. */
static oomsight_status steps_read(oos_arena *arena, const json_t *object, const json_t *parts, bool flags,
                                  table *t, oomsight_error *reterr)
{
    const char *name;
    json_t *list;
    OOS_TRY(table_make(arena, object, t, reterr));
    json_object_foreach((json_t *)object, name, list)
    {
        entry *e = &t->list[t->count++];
        size_t const count = json_array_size(list);
        step *steps = OOS_NEW_ARRAY(arena, step, count);
        char *copy = oos_arena_format(arena, flags ? "--%s" : "%s", name);
        if (!steps || !copy) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the arguments");
        for (char *at = copy; flags && *at; at++)
            if (*at == '_') *at = '-';
        for (size_t i = 0; i < count; i++) {
            const json_t *item = json_array_get(list, i);
            if (!version_read(json_object_get(item, "since"), &steps[i].since))
                return oos_fail(reterr, OOMSIGHT_MALFORMED, "%s: a step needs `since`", name);
            steps[i].gone = json_is_true(json_object_get(item, "gone"));
            steps[i].bounds = bounds_read(item, parts);
            steps[i].method = method_read(item);
            steps[i].method.name = copy;
        }
        *e = (entry){.name = copy, .steps = steps, .count = count};
    }
    qsort(t->list, t->count, sizeof *t->list, by_name);
    return OOMSIGHT_OK;
}

static oomsight_status file_load(oos_arena *arena, const char *data_dir, const char *engine, const char *name,
                                 json_t **ret_root, oomsight_error *reterr)
{
    oos_view bytes;
    char *path = oos_arena_format(arena, "engines/%s/%s", engine, name);
    if (!path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");
    OOS_TRY(oos_data_read(arena, data_dir, path, &bytes, reterr));
    oomsight_status const status = oos_json_load(arena, bytes, ret_root, reterr);
    return status == OOMSIGHT_OK ? OOMSIGHT_OK : oos_fail_in(reterr, status, path);
}

oomsight_status oos_argument_facts_load(oos_arena *arena, const char *data_dir, const char *engine,
                                        oos_argument_facts **ret_facts, oomsight_error *reterr)
{
    oos_argument_facts *facts = OOS_NEW(arena, oos_argument_facts);
    json_t *root;
    if (!facts) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the arguments");
    OOS_TRY(file_load(arena, data_dir, engine, "architectures.json", &root, reterr));
    OOS_TRY(architectures_read(arena, root, facts, reterr));
    OOS_TRY(file_load(arena, data_dir, engine, "arguments.json", &root, reterr));
    const json_t *parts = json_object_get(root, "parts");
    OOS_TRY(steps_read(arena, json_object_get(root, "bounds"), parts, true, &facts->bounds, reterr));
    OOS_TRY(steps_read(arena, json_object_get(root, "quantization"), parts, false, &facts->methods, reterr));
    OOS_TRY(steps_read(arena, json_object_get(root, "backends"), parts, false, &facts->backends, reterr));
    *ret_facts = facts;
    return OOMSIGHT_OK;
}

static bool in_stretch(const entry *e, oos_version version)
{
    for (size_t i = 0; i < e->count; i++)
        if (version >= e->stretches[i].first && version <= e->stretches[i].last) return true;
    return false;
}

/* A release that was not read is sure only of what its neighbours agree about. */
oos_architecture_known oos_architecture_known_at(const oos_argument_facts *facts, const char *name,
                                                 oos_version version, oos_version *ret_other)
{
    const entry *e = facts ? entry_find(&facts->architectures, name) : NULL;
    if (!e || e->count == 0) return OOS_ARCHITECTURE_UNHEARD;
    oos_version before = 0, after = UINT64_MAX;
    for (size_t i = 0; i < facts->version_count; i++) {
        if (facts->versions[i] <= version) before = facts->versions[i];
        if (facts->versions[i] >= version && after == UINT64_MAX) after = facts->versions[i];
    }
    bool const was = before && in_stretch(e, before), will = after == UINT64_MAX ? was : in_stretch(e, after);
    if (was && will) return OOS_ARCHITECTURE_HERE;
    if (was != will) return OOS_ARCHITECTURE_UNSURE;
    *ret_other = e->stretches[0].first;
    if (version < *ret_other) return OOS_ARCHITECTURE_LATER;
    for (size_t i = 0; i < e->count; i++)
        if (e->stretches[i].last < version) *ret_other = e->stretches[i].last;
    return OOS_ARCHITECTURE_GONE;
}

/* The last step not after the version; before the first one that was read, the first. */
static const step *step_at(const table *t, const char *name, oos_version version)
{
    const entry *e = entry_find(t, name);
    if (!e || e->count == 0) return NULL;
    const step *found = &e->steps[0];
    for (size_t i = 1; i < e->count && e->steps[i].since <= version; i++) found = &e->steps[i];
    return found->gone ? NULL : found;
}

bool oos_bounds_find(const oos_argument_facts *facts, const char *flag, oos_version version,
                     oos_bounds *ret_bounds)
{
    const step *found = facts ? step_at(&facts->bounds, flag, version) : NULL;
    if (!found || version < found->since) return false;
    *ret_bounds = found->bounds;
    return true;
}

bool oos_quant_method_find(const oos_argument_facts *facts, const char *name, oos_version version,
                           oos_quant_method *ret_method)
{
    const step *found = facts ? step_at(&facts->methods, name, version) : NULL;
    if (found) *ret_method = found->method;
    return found != NULL;
}

bool oos_quant_method_gone(const oos_argument_facts *facts, const char *name, oos_version version)
{
    const entry *e = facts ? entry_find(&facts->methods, name) : NULL;
    bool gone = false;
    for (size_t i = 0; e && i < e->count && e->steps[i].since <= version; i++) gone = e->steps[i].gone;
    return gone;
}

bool oos_backend_name_known(const oos_argument_facts *facts, const char *name, oos_version version)
{
    return !facts || step_at(&facts->backends, name, version);
}

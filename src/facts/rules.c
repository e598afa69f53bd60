/* Reading data/engines/<engine>/rules.json. The file is an array, one object per rule:
 *   {"rule": "default_gpu_memory_utilization", "meaning": "...", "steps": [{"since": "0.8.0", "value": 0.9}, ...]}
 * and one object {"versions": [...]} that lists the releases. */
#include "facts/facts.h"
#include "base/check.h"
#include "base/json.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct rule_step {
    oos_version since;
    double value;
} rule_step;

typedef struct rule {
    rule_step *steps; /* oldest first */
    size_t count;
} rule;

struct oos_rule_book {
    const oos_rule_place *places;
    rule *rules; /* one for each place */
    size_t rule_count;
    oos_version *versions;
    size_t version_count;
    oos_version *measured;
    size_t measured_count;
    oos_argument_facts *facts;
    const oos_refusals *refusals;
    size_t size;
    _Atomic(void *) *filled; /* of each release, when it was first asked for; NULL: nothing is kept */
};

static oomsight_status version_of(const json_t *value, oos_version *ret_version, oomsight_error *reterr)
{
    const char *text = json_string_value(value);
    if (text && oos_version_parse(oos_view_of(text), ret_version)) return OOMSIGHT_OK;
    return oos_fail(reterr, OOMSIGHT_MALFORMED, "a version such as \"0.19.1\" is missing");
}

static bool step_value(const json_t *value, double *ret_value)
{
    if (json_is_boolean(value)) {
        *ret_value = json_is_true(value);
        return true;
    }
    return oos_json_value_f64(value, ret_value);
}

static oomsight_status steps_read(oos_arena *arena, const json_t *list, rule_step **ret_steps,
                                  size_t *ret_count, oomsight_error *reterr)
{
    size_t const count = json_array_size(list);
    rule_step *steps = OOS_NEW_ARRAY(arena, rule_step, count);
    if (!steps) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for rules");
    for (size_t i = 0; i < count; i++) {
        const json_t *step = json_array_get(list, i);
        OOS_TRY(version_of(json_object_get(step, "since"), &steps[i].since, reterr));
        if (!step_value(json_object_get(step, "value"), &steps[i].value))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "a step needs a value");
        if (i && steps[i].since <= steps[i - 1].since)
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "steps are not in the order of versions");
    }
    *ret_steps = steps;
    *ret_count = count;
    return OOMSIGHT_OK;
}

static oomsight_status versions_read(oos_arena *arena, const json_t *list, oos_version **ret_versions,
                                     size_t *ret_count, oomsight_error *reterr)
{
    size_t const count = json_array_size(list);
    oos_version *versions = OOS_NEW_ARRAY(arena, oos_version, count);
    if (!versions) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for rules");
    for (size_t i = 0; i < count; i++) OOS_TRY(version_of(json_array_get(list, i), &versions[i], reterr));
    *ret_versions = versions;
    *ret_count = count;
    return OOMSIGHT_OK;
}

static oomsight_status rule_read(oos_arena *arena, const json_t *object, oos_rule_book *book,
                                 oomsight_error *reterr)
{
    const json_t *versions = json_object_get(object, "versions"),
                 *measured = json_object_get(object, "measured");
    if (versions) return versions_read(arena, versions, &book->versions, &book->version_count, reterr);
    if (measured) return versions_read(arena, measured, &book->measured, &book->measured_count, reterr);
    const char *name = "";
    oos_json_str(object, "rule", &name);
    for (size_t i = 0; i < book->rule_count; i++)
        if (strcmp(name, book->places[i].name) == 0)
            return steps_read(arena, json_object_get(object, "steps"), &book->rules[i].steps,
                              &book->rules[i].count, reterr);
    return oos_fail(reterr, OOMSIGHT_MALFORMED, "no rule is called '%s'", name);
}

static void filled_free(void *thing)
{
    oos_rule_book *book = thing;
    for (size_t i = 0; i < book->version_count; i++) free(atomic_load(&book->filled[i]));
}

oomsight_status oos_rule_book_load(oos_arena *arena, const char *data_dir, const char *engine,
                                   const oos_rule_place *of, size_t count, size_t size,
                                   oos_rule_book **ret_book, oomsight_error *reterr)
{
    char *path = oos_arena_format(arena, "engines/%s/rules.json", engine);
    oos_rule_book *book = OOS_NEW(arena, oos_rule_book);
    rule *rules = OOS_NEW_ARRAY(arena, rule, count);
    if (!path || !book || !rules) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for rules");
    *book = (oos_rule_book){.places = of, .rules = rules, .rule_count = count, .size = size};
    oos_view bytes;
    json_t *root;
    OOS_TRY(oos_data_read(arena, data_dir, path, &bytes, reterr));
    oomsight_status status = oos_json_load(arena, bytes, &root, reterr);
    for (size_t i = 0; status == OOMSIGHT_OK && i < json_array_size(root); i++)
        status = rule_read(arena, json_array_get(root, i), book, reterr);
    for (size_t i = 0; status == OOMSIGHT_OK && i < count; i++)
        if (rules[i].count == 0)
            status = oos_fail(reterr, OOMSIGHT_MALFORMED, "the rule '%s' is missing", of[i].name);
    if (status == OOMSIGHT_OK && book->version_count == 0)
        status = oos_fail(reterr, OOMSIGHT_MALFORMED, "the list of versions is missing");
    if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, path);
    if (size) {
        book->filled = oos_arena_take_array(arena, book->version_count, sizeof *book->filled);
        if (!book->filled || !oos_arena_adopt(arena, filled_free, book))
            return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for rules");
    }
    *ret_book = book;
    return OOMSIGHT_OK;
}

oomsight_status oos_rule_book_arguments(oos_arena *arena, const char *data_dir, const char *engine,
                                        oos_rule_book *book, oomsight_error *reterr)
{
    return oos_argument_facts_load(arena, data_dir, engine, &book->facts, reterr);
}

oomsight_status oos_rule_book_reaches(const oos_rule_book *book, oos_version version, oomsight_error *reterr)
{
    if (version >= book->versions[0]) return OOMSIGHT_OK;
    char asked[32], first[32];
    oos_version_print(version, asked, sizeof asked);
    oos_version_print(book->versions[0], first, sizeof first);
    return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "version %s is older than %s, the first one known", asked,
                    first);
}

/* Where the rules of a release are kept; NULL: none of the list, or nothing is kept. */
static _Atomic(void *) *place_of(const oos_rule_book *book, oos_version version)
{
    size_t low = 0, high = book->filled ? book->version_count : 0;
    while (low < high) {
        size_t const middle = (low + high) / 2;
        if (book->versions[middle] == version) return &book->filled[middle];
        if (book->versions[middle] < version)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Any thread may be the first to ask: whoever comes second throws its own away. */
static void keep(_Atomic(void *) *place, const void *rules, size_t size)
{
    void *copy = malloc(size), *none = NULL;
    if (!copy) return;
    memcpy(copy, rules, size);
    if (!atomic_compare_exchange_strong(place, &none, copy)) free(copy);
}

void oos_rule_put(const oos_rule_book *book, const oos_rule_trial *trial, void *rules)
{
    oos_assert(trial->rule < book->rule_count);
    const oos_rule_place *place = &book->places[trial->rule];
    char *field = (char *)rules + place->offset;
    switch (place->kind) {
    case OOS_RULE_REAL: *(double *)(void *)field = trial->value; break;
    case OOS_RULE_WHOLE: *(uint64_t *)(void *)field = (uint64_t)trial->value; break;
    case OOS_RULE_YES: *(bool *)field = trial->value != 0; break;
    }
}

static bool is_tried(const oos_rule_trial *list, size_t count, double value)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].value == value) return true;
    return false;
}

size_t oos_rule_trials(const oos_rule_book *book, oos_view name, oos_rule_trial ret_list[OOS_RULE_TRIALS_MAX])
{
    size_t count = 0, at = 0;
    while (at < book->rule_count && !oos_view_is(name, book->places[at].name)) at++;
    if (at == book->rule_count) return 0;
    const rule *of = &book->rules[at];
    double const is = of->steps[of->count - 1].value;
    for (size_t i = of->count - 1; i-- > 0 && count < OOS_RULE_TRIALS_MAX;)
        if (of->steps[i].value != is && !is_tried(ret_list, count, of->steps[i].value))
            ret_list[count++] = (oos_rule_trial){at, of->steps[i].value};
    if (!count)
        ret_list[count++] = (oos_rule_trial){at, book->places[at].kind == OOS_RULE_YES ? is == 0 : is + 1};
    return count;
}

oomsight_status oos_rules_fill(const oos_rule_book *book, oos_version version, void *rules, bool *ret_beyond,
                               oomsight_error *reterr)
{
    _Atomic(void *) *place = place_of(book, version);
    const void *known = place ? atomic_load(place) : NULL;
    *ret_beyond = false; /* what is kept is of a release of the list */
    if (known) {
        memcpy(rules, known, book->size);
        return OOMSIGHT_OK;
    }
    OOS_TRY(oos_rule_book_reaches(book, version, reterr));
    for (size_t i = 0; i < book->rule_count; i++) {
        oos_assert(book->rules[i].count > 0);
        double value = book->rules[i].steps[0].value;
        for (size_t k = 1; k < book->rules[i].count && book->rules[i].steps[k].since <= version; k++)
            value = book->rules[i].steps[k].value;
        oos_rule_put(book, &(oos_rule_trial){i, value}, rules);
    }
    *ret_beyond = version > book->versions[book->version_count - 1];
    if (place) keep(place, rules, book->size);
    return OOMSIGHT_OK;
}

bool oos_rule_book_early(const oos_rule_book *book, oos_version version)
{
    return book->measured_count > 0 && version < book->measured[0];
}

bool oos_rule_book_measured(const oos_rule_book *book, oos_version version)
{
    for (size_t i = 0; i < book->measured_count; i++)
        if (book->measured[i] == version) return true;
    return false;
}

unsigned oos_rule_book_beyond(const oos_rule_book *book, oos_version version)
{
    oos_version const newest = book->versions[book->version_count - 1];
    if (version <= newest) return 0;
    if ((version & 0xffff) == 0xffff) version++; /* a development build is no further than its release */
    uint64_t const lines = (version >> 16) - (newest >> 16), patches = newest & 0xffff;
    return (unsigned)oos_min(lines ? lines + patches : oos_min(version - newest, 1 + patches), 1000);
}

oomsight_status oos_rule_book_architectures(oos_arena *arena, const char *data_dir, const char *engine,
                                            oos_rule_book *book, oomsight_error *reterr)
{
    return oos_architectures_load(arena, data_dir, engine, &book->facts, reterr);
}

const oos_argument_facts *oos_rule_book_facts(const oos_rule_book *book)
{
    return book->facts;
}

/* Steps that rest on a rule with a history. */
static void changes_mark(oos_rule_book *book)
{
    for (size_t i = 0; i < book->refusals->count; i++) {
        oos_refusal_step *step = book->refusals->steps[i];
        for (size_t k = 0; k < step->when_count; k++)
            step->changes |=
                step->when[k].left.kind == OOS_TERM_RULE && book->rules[step->when[k].left.id].count > 1;
    }
}

oomsight_status oos_rule_book_refuse(oos_arena *arena, const char *data_dir, const char *engine,
                                     const oos_refusal_names *names, oos_rule_book *book,
                                     oomsight_error *reterr)
{
    char *path = oos_arena_format(arena, "engines/%s/refusals.json", engine);
    oos_view bytes;
    if (!path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");
    OOS_TRY(oos_data_read(arena, data_dir, path, &bytes, reterr));
    oomsight_status const status =
        oos_refusals_read(arena, bytes, names, book->places, book->rule_count, &book->refusals, reterr);
    if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, path);
    changes_mark(book);
    return OOMSIGHT_OK;
}

const oos_refusals *oos_rule_book_refusals(const oos_rule_book *book)
{
    return book->refusals;
}

size_t oos_rule_book_versions(const oos_rule_book *book, const oos_version **ret_versions)
{
    *ret_versions = book->versions;
    return book->version_count;
}

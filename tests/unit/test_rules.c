/* The rules of each release beside tests/rules/ENGINE.tsv, which is made from the engines' sources (tools/rule_table.py). A step that is
 * moved or taken out is a difference. A row that changes with reason: change its probe or, where the source was read by hand, the row. */
#include "unit.h"

#include "folder.h"

#include "base/json.h"
#include "engines/sglang/sglang.h"
#include "engines/vllm/setup/setup.h"

#include <sys/stat.h>

static const oos_rule_place vllm_places[] = {
#define REAL(name) {#name, offsetof(vllm_rules, name), OOS_RULE_REAL},
#define WHOLE(name) {#name, offsetof(vllm_rules, name), OOS_RULE_WHOLE},
#define YES(name) {#name, offsetof(vllm_rules, name), OOS_RULE_YES},
#include "engines/vllm/rules.def"
#undef REAL
#undef WHOLE
#undef YES
};

typedef struct row {
    char rule[64];
    oos_version first, last;
    double value;
} row;

typedef struct engine {
    const char *name;
    const oos_rule_place *places;
    size_t place_count;
    row rows[1024];
    size_t row_count;
} engine;

static engine engines[2];

static oos_version version_of(const char *text)
{
    oos_version version;
    assert_true(oos_version_parse(oos_view_of(text), &version));
    return version;
}

static void table_read(engine *e)
{
    char path[512], line[1024], first[32], last[32];
    snprintf(path, sizeof path, "%s/../rules/%s.tsv", getenv("OOMSIGHT_FIXTURES"), e->name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        assert_true(e->row_count < sizeof e->rows / sizeof *e->rows);
        row *r = &e->rows[e->row_count++];
        assert_int_equal(sscanf(line, "%63s %31s %31s %lf", r->rule, first, last, &r->value), 4);
        r->first = version_of(first);
        r->last = version_of(last);
    }
    fclose(file);
}

static int tables_read(void **state)
{
    engines[0] = (engine){
        .name = "vllm", .places = vllm_places, .place_count = sizeof vllm_places / sizeof *vllm_places};
    engines[1] = (engine){
        .name = "sglang", .places = oos_sglang_rule_places, .place_count = oos_sglang_rule_place_count};
    for (size_t i = 0; i < 2; i++) table_read(&engines[i]);
    return folder_make(state);
}

static double value_in(const oos_rule_place *place, const void *rules)
{
    const char *field = (const char *)rules + place->offset;
    switch (place->kind) {
    case OOS_RULE_REAL: return *(const double *)(const void *)field;
    case OOS_RULE_WHOLE: return (double)*(const uint64_t *)(const void *)field;
    case OOS_RULE_YES: return *(const bool *)field;
    }
    return -1;
}

/* How many answers of the book are not those of the table; a rule and release that the table lacks is one, too. `say`: all of them, on
 * stderr; else the first is enough. */
static size_t differences(const engine *e, const oos_rule_book *book, const oos_rule_place *places,
                          size_t place_count, bool say)
{
    static union {
        vllm_rules vllm;
        sglang_rules sglang;
    } rules;
    const oos_version *versions;
    size_t const count = oos_rule_book_versions(book, &versions);
    size_t differ = 0;
    for (size_t v = 0; v < count; v++) {
        bool beyond;
        oomsight_error error;
        if (oos_rules_fill(book, versions[v], &rules, &beyond, &error) != OOMSIGHT_OK) return SIZE_MAX;
        for (size_t p = 0, at = 0; p < place_count; p++) {
            double const value = value_in(&places[p], &rules);
            size_t found = e->row_count;
            for (size_t n = 0; n < e->row_count && found == e->row_count; n++, at = (at + 1) % e->row_count) {
                const row *r = &e->rows[at];
                if (r->first <= versions[v] && versions[v] <= r->last && strcmp(r->rule, places[p].name) == 0)
                    found = at;
            }
            if (found < e->row_count && e->rows[found].value == value) continue;
            differ++;
            if (!say) return differ;
            char version[32];
            oos_version_print(versions[v], version, sizeof version);
            fprintf(stderr, "%s %s: %s is %g, the table says %g\n", e->name, version, places[p].name, value,
                    found < e->row_count ? e->rows[found].value : -1);
        }
    }
    return differ;
}

/* Of the book with these places alone. */
static size_t differences_in(const engine *e, const char *data_dir, const oos_rule_place *places,
                             size_t count, bool say)
{
    oos_arena *arena = oos_arena_create(1 << 16);
    oos_rule_book *book;
    oomsight_error error = {0};
    size_t differ = SIZE_MAX; /* a file that is refused was noticed as well */
    if (oos_rule_book_load(arena, data_dir, e->name, places, count, 0, &book, &error) == OOMSIGHT_OK)
        differ = differences(e, book, places, count, say);
    else if (say)
        fprintf(stderr, "%s\n", error.text);
    oos_arena_free(arena);
    return differ;
}

static void every_release_has_the_rules_that_its_source_shows(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(differences_in(&engines[i], NULL, engines[i].places, engines[i].place_count, true),
                         0);
}

static json_t *book_json(const engine *e)
{
    char path[512];
    snprintf(path, sizeof path, "%s/../../data/engines/%s/rules.json", getenv("OOMSIGHT_FIXTURES"), e->name);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    return root;
}

/* Whether the table notices one rule of a book, as it is now. */
static bool noticed(const engine *e, json_t *versions, json_t *rule)
{
    const char *name = json_string_value(json_object_get(rule, "rule"));
    const oos_rule_place *place = e->places;
    while (strcmp(place->name, name) != 0) place++;
    char path[256];
    snprintf(path, sizeof path, "%s/engines/%s/rules.json", folder, e->name);
    json_t *root = json_pack("[{s:O},O]", "versions", versions, rule);
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
    return differences_in(e, folder, place, 1, false) != 0;
}

/* The release after, or before, `since`; NULL: none. */
static const char *neighbour(const json_t *versions, const char *since, int step)
{
    for (size_t i = 0; i < json_array_size(versions); i++)
        if (strcmp(json_string_value(json_array_get(versions, i)), since) == 0)
            return json_string_value(json_array_get(versions, i + (size_t)step));
    fail_msg("%s is no release", since);
    return NULL;
}

static void a_step_that_is_moved_changed_or_taken_out_is_noticed(void **state)
{
    (void)state;
    size_t tried = 0;
    for (size_t i = 0; i < 2; i++) {
        const engine *e = &engines[i];
        char path[256];
        snprintf(path, sizeof path, "%s/engines", folder);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/engines/%s", folder, e->name);
        mkdir(path, 0700);
        json_t *root = book_json(e);
        json_t *versions = json_object_get(json_array_get(root, 0), "versions");
        for (size_t r = 1; r < json_array_size(root); r++) {
            json_t *rule = json_array_get(root, r);
            json_t *steps = json_object_get(rule, "steps");
            const char *name = json_string_value(json_object_get(rule, "rule"));
            if (!name) continue; /* the releases that were measured */
            assert_false(noticed(e, versions, rule));
            for (size_t s = 0; s < json_array_size(steps); s++) {
                json_t *step = json_array_get(steps, s);
                json_t *whole = json_deep_copy(step);
                const json_t *value = json_object_get(whole, "value");
                json_object_set_new(step, "value",
                                    json_is_boolean(value) ? json_boolean(!json_is_true(value))
                                                           : json_real(json_number_value(value) + 1));
                if (!noticed(e, versions, rule))
                    fail_msg("%s: another value of step %zu is not noticed", name, s);
                json_object_update(step, whole);
                for (int way = -1; s && way <= 1; way += 2) {
                    const char *moved =
                        neighbour(versions, json_string_value(json_object_get(whole, "since")), way);
                    if (!moved) continue;
                    json_object_set_new(step, "since", json_string(moved));
                    if (!noticed(e, versions, rule))
                        fail_msg("%s: step %zu moved to %s is not noticed", name, s, moved);
                    json_object_update(step, whole);
                    tried++;
                }
                json_array_remove(steps, s);
                if (!noticed(e, versions, rule)) fail_msg("%s: step %zu taken out is not noticed", name, s);
                json_array_insert_new(steps, s, whole);
                tried += 2;
            }
        }
        json_decref(root);
    }
    assert_true(tried > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_release_has_the_rules_that_its_source_shows),
        cmocka_unit_test(a_step_that_is_moved_changed_or_taken_out_is_noticed),
    };
    return cmocka_run_group_tests_name("rules", tests, tables_read, folder_remove);
}

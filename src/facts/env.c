/* The table of variables is read where it is asked, row by row: most commands have few variables or none. */
#include "facts/facts.h"

#include "base/ascii.h"
#include "base/scan.h"

#include <stdio.h>

typedef struct row {
    oos_view preset, why, memory; /* the default as it stands in the table */
    oos_version since, until;
    bool listed;
} row;

static void field_read(oos_scan *scan, oos_view key, row *r)
{
    oos_view word;
    if (oos_view_is(key, "since")) {
        r->since = oos_version_scan(scan);
    } else if (oos_view_is(key, "until")) {
        r->until = oos_version_scan(scan);
    } else if (oos_view_is(key, "why")) {
        r->why = oos_scan_string_or_none(scan);
    } else if (oos_view_is(key, "memory")) {
        r->memory = oos_scan_string_or_none(scan);
    } else if (oos_view_is(key, "default")) {
        oos_scan_skip(scan, &r->preset);
    } else if (oos_view_is(key, "listed")) {
        oos_scan_skip(scan, &word);
        r->listed = !oos_view_is(word, "false");
    } else {
        oos_scan_skip(scan, NULL);
    }
}

/* What changed up to the version. */
static void changes_read(oos_scan *scan, oos_version version, row *r)
{
    oos_view key;
    if (!oos_scan_open(scan, '[')) return;
    while (oos_scan_item(scan) && oos_scan_open(scan, '{')) {
        row changed = {.preset = r->preset, .listed = r->listed};
        while (oos_scan_key(scan, &key)) field_read(scan, key, &changed);
        if (changed.since <= version) r->preset = changed.preset, r->listed = changed.listed;
    }
}

static row row_at(oos_view table, const char *at, oos_version version)
{
    oos_scan scan = oos_scan_begin((oos_view){at, (size_t)(table.ptr + table.len - at)});
    row r = {.until = UINT64_MAX, .preset = {"", 0}, .why = {"", 0}, .memory = {"", 0}, .listed = true};
    oos_view key;
    if (!oos_scan_open(&scan, '{')) return r;
    while (oos_scan_key(&scan, &key))
        if (oos_view_is(key, "changes"))
            changes_read(&scan, version, &r);
        else
            field_read(&scan, key, &r);
    return r;
}

/* The next row of that name from `at` on; NULL: none. Each row begins with its name. */
static const char *row_find(oos_view table, const char *at, oos_view name)
{
    char head[160];
    if (name.len > 120) return NULL;
    int const len = snprintf(head, sizeof head, "{\"name\":\"%.*s\"", (int)name.len, name.ptr);
    return len > 0 ? memmem(at, (size_t)(table.ptr + table.len - at), head, (size_t)len) : NULL;
}

/* The row with the longest beginning of the name, such as "NCCL_*"; NULL: none. */
static const char *row_of_start(oos_view table, oos_view name)
{
    static const char head[] = "{\"name\":\"";
    const char *best = NULL, *end = table.ptr + table.len;
    size_t best_len = 0;
    for (const char *at = table.ptr; (at = memmem(at, (size_t)(end - at), "*\"", 2)); at++) {
        const char *start = at;
        while (start > table.ptr && start[-1] != '"' && start[-1] != '\n') start--;
        size_t const len = (size_t)(at - start), skip = sizeof head - 1;
        if ((size_t)(start - table.ptr) < skip || memcmp(start - skip, head, skip) != 0) continue;
        if (len <= best_len || len > name.len || memcmp(start, name.ptr, len) != 0) continue;
        best = start - skip;
        best_len = len;
    }
    return best;
}

/* Is the text the default? `1` and `true` are the same switch. */
static bool is_preset(oos_view preset, const char *value)
{
    oos_view const text = oos_view_of(value);
    if (preset.len == 0 || !value) return false;
    if (oos_view_is(preset, "true")) return oos_view_is(text, "1") || oos_same(value, "true");
    if (oos_view_is(preset, "false")) return oos_view_is(text, "0") || oos_same(value, "false");
    if (preset.ptr[0] == '"') preset = oos_view_slice(preset, 1, preset.len - 2);
    return oos_view_equal(preset, text);
}

static oos_env_hit hit_of(const row *r, const char *value)
{
    bool const none = oos_view_is(r->memory, "none") || is_preset(r->preset, value);
    return (oos_env_hit){
        .effect = none ? OOS_ENV_NO_MEMORY : OOS_ENV_UNMODELLED, .listed = r->listed, .why = r->why};
}

/* Has the name one of the beginnings that the engine's own variables have? And is one that it does not know logged? */
static bool is_own(oos_view table, oos_view name, oos_version version, bool *ret_logged)
{
    oos_scan scan = oos_scan_begin(table);
    oos_view key, prefix;
    bool own = false;
    *ret_logged = false;
    if (!oos_scan_open(&scan, '{')) return false;
    while (oos_scan_key(&scan, &key) && !oos_view_is(key, "versions")) {
        if (oos_view_is(key, "unknown_logged_since")) {
            *ret_logged = oos_version_scan(&scan) <= version;
        } else if (oos_view_is(key, "prefixes") && oos_scan_open(&scan, '[')) {
            while (oos_scan_item(&scan) && oos_scan_string(&scan, &prefix))
                own |= prefix.len <= name.len && memcmp(prefix.ptr, name.ptr, prefix.len) == 0;
        } else {
            oos_scan_skip(&scan, NULL);
        }
    }
    return own;
}

oos_env_hit oos_env_find(const oos_flag_table *table, oos_view name, const char *value, oos_version version)
{
    oos_view const rows = table->variables;
    oos_version below, above;
    oos_env_hit hit = {.effect = OOS_ENV_UNMODELLED, .why = {"", 0}};
    bool logged;
    if (rows.len == 0) return hit;
    bool const own = is_own(rows, name, version, &logged);
    oos_flags_neighbours(table, version, &below, &above);
    for (const char *at = rows.ptr; (at = row_find(rows, at, name)); at++) {
        row const r = row_at(rows, at, version);
        if (r.since > above || r.until < below) continue;
        hit = hit_of(&r, value);
        hit.own = own;
        return hit;
    }
    hit.own = own;
    if (own) {
        if (version <= table->versions[table->version_count - 1] && version != table->learned)
            hit.effect = OOS_ENV_ABSENT;
        hit.logged = logged;
        return hit;
    }
    const char *at = row_of_start(rows, name);
    if (!at) return (oos_env_hit){.effect = OOS_ENV_NO_MEMORY, .why = {"", 0}}; /* nobody's */
    row const r = row_at(rows, at, version);
    return hit_of(&r, value);
}

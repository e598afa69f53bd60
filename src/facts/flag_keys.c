/* Keys of a flag whose value is JSON, by release. They are read when such a flag is given and not before: few commands have
 * one, and the keys are half of the table. */
#include "base/scan.h"
#include "facts/facts.h"

typedef struct draft {
    oos_version since, until;
    oos_view kind, choices;
} draft;

static bool field_read(oos_scan *scan, oos_view key, draft *d)
{
    if (oos_view_is(key, "kind")) {
        d->kind = oos_scan_string_or_none(scan);
    } else if (oos_view_is(key, "choices")) {
        bool const list = oos_scan_peek(scan) == OOS_SCAN_ARRAY;
        oos_scan_skip(scan, &d->choices);
        if (!list) d->choices = (oos_view){"", 0};
    } else {
        return false;
    }
    return true;
}

/* Each change up to the version is laid over what was there. */
static void changes_read(oos_scan scan, oos_version version, draft *d)
{
    oos_view key;
    if (!oos_scan_open(&scan, '[')) return;
    while (oos_scan_item(&scan) && oos_scan_open(&scan, '{')) {
        draft changed = *d;
        oos_version since = 0;
        while (oos_scan_key(&scan, &key)) {
            if (oos_view_is(key, "since"))
                since = oos_version_scan(&scan);
            else if (!field_read(&scan, key, &changed))
                oos_scan_skip(&scan, NULL);
        }
        if (since <= version) *d = changed;
    }
}

static unsigned kinds_of(oos_view words)
{
    static const struct {
        const char *word;
        unsigned kind;
    } kinds[] = {
        {"int", OOS_KEY_INT},   {"float", OOS_KEY_FLOAT}, {"bool", OOS_KEY_BOOL},  {"str", OOS_KEY_STR},
        {"list", OOS_KEY_LIST}, {"dict", OOS_KEY_DICT},   {"choice", OOS_KEY_ANY},
    };
    unsigned found = 0;
    for (size_t at = 0; at < words.len;) {
        size_t end = at, known = sizeof kinds / sizeof *kinds;
        while (end < words.len && words.ptr[end] != '|') end++;
        oos_view const word = oos_view_slice(words, at, end - at);
        while (known > 0 && !oos_view_is(word, kinds[known - 1].word)) known--;
        if (known == 0) return OOS_KEY_ANY;
        found |= kinds[known - 1].kind;
        at = end + 1;
    }
    return found;
}

/* One record; true: it is the key, or a key inside it, and the releases around the version have it. */
static bool key_read(oos_scan *scan, oos_view name, bool nested, oos_version below, oos_version above,
                     oos_flag_key *ret_key)
{
    draft d = {.until = UINT64_MAX, .kind = {"", 0}, .choices = {"", 0}};
    oos_scan changes = {0};
    oos_view key, own = {"", 0};
    if (!oos_scan_open(scan, '{')) return false;
    while (oos_scan_key(scan, &key)) {
        if (oos_view_is(key, "name")) {
            own = oos_scan_string_or_none(scan);
        } else if (oos_view_is(key, "since")) {
            d.since = oos_version_scan(scan);
        } else if (oos_view_is(key, "until")) {
            d.until = oos_version_scan(scan);
        } else if (oos_view_is(key, "changes")) {
            oos_scan_peek(scan);
            changes = *scan;
            oos_scan_skip(scan, NULL);
        } else if (!field_read(scan, key, &d)) {
            oos_scan_skip(scan, NULL);
        }
    }
    bool const inside = nested && own.len > name.len + 1 && memcmp(own.ptr, name.ptr, name.len) == 0 &&
                        own.ptr[name.len] == '.';
    if ((nested ? !inside : !oos_view_equal(own, name)) || d.since > above || d.until < below) return false;
    if (changes.at) changes_read(changes, below, &d);
    *ret_key = (oos_flag_key){.kinds = kinds_of(d.kind), .choices = d.choices};
    return true;
}

static bool find(const oos_flag_table *table, const oos_flag_record *record, oos_view name, bool nested,
                 oos_version version, oos_flag_key *ret_key)
{
    oos_scan scan = oos_scan_begin(record->json_keys);
    oos_version below, above;
    if (record->json_keys.len == 0 || !oos_scan_open(&scan, '[')) return false;
    oos_flags_neighbours(table, version, &below, &above);
    while (oos_scan_item(&scan))
        if (key_read(&scan, name, nested, below, above, ret_key)) return true;
    return false;
}

bool oos_flag_key_find(const oos_flag_table *table, const oos_flag_record *record, oos_view name,
                       oos_version version, oos_flag_key *ret_key)
{
    return find(table, record, name, false, version, ret_key);
}

bool oos_flag_key_nests(const oos_flag_table *table, const oos_flag_record *record, oos_view name,
                        oos_version version)
{
    oos_flag_key ignored;
    return find(table, record, name, true, version, &ignored);
}

bool oos_flag_key_takes(const oos_flag_key *key, oos_view word)
{
    oos_scan scan = oos_scan_begin(key->choices);
    oos_view choice;
    if (key->choices.len == 0 || !oos_scan_open(&scan, '[')) return true;
    while (oos_scan_item(&scan) && oos_scan_string(&scan, &choice))
        if (oos_view_equal(choice, word)) return true;
    return false;
}

/* Reading data/engines/<engine>/flags.json and finding flags in it. The file is read forward and only for the fields
 * we use: it is read at every start, and half of it describes what stands inside JSON values. */
#include "facts/facts.h"
#include "base/check.h"
#include "base/edits.h"
#include "base/scan.h"

#include <stdlib.h>

enum { FORMS_MAX = 64, CHOICES_MAX = 512, NAMES_MAX = 16, SPELLING_MAX = OOS_EDITS_MAX };

/* One spelling of one record, over the versions in which it is that record's. Spellings of equal text are chained. */
typedef struct spelling {
    const char *text;
    uint32_t len, hash;
    uint32_t record;
    uint32_t next; /* 1 + index of the next one with the same slot; 0: the last */
    bool negated;
    oos_version since, until;
} spelling;

typedef struct spelling_index {
    uint32_t *slots; /* 1 + index of a spelling; 0: empty */
    uint32_t mask;
    spelling *list;
    size_t count, capacity;
} spelling_index;

/* A record on its way in: the fields of one form, names included. */
typedef struct draft {
    oos_flag_form form;
    const char *names[NAMES_MAX];
    size_t name_count;
    oos_view kind, item, nargs;
} draft;

typedef struct loader {
    oos_arena *arena;
    oos_scan scan;
    oos_flag_record *records;
    size_t count, capacity;
    spelling_index *index;
    size_t learned_count;
    bool nomem;
    const char *bad; /* what was wrong with the data, NULL */
} loader;

static inline uint32_t hash_step(uint32_t hash, char c) /* FNV-1a; an underscore is a dash */
{
    return (hash ^ (unsigned char)(c == '_' ? '-' : c)) * 16777619u;
}

static uint32_t hash_of(oos_view text)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text.len; i++) hash = hash_step(hash, text.ptr[i]);
    return hash;
}

static inline bool same_spelling(const char *known, oos_view given)
{
    for (size_t i = 0; i < given.len; i++)
        if (known[i] != given.ptr[i] && !(known[i] == '-' && given.ptr[i] == '_')) return false;
    return true;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static const char *keep(loader *in, oos_view raw)
{
    const char *text = oos_scan_text(in->arena, raw);
    if (!text) in->nomem = true;
    return text ? text : "";
}

static oos_version version_of(loader *in, oos_view raw)
{
    oos_version version = 0;
    if (!oos_version_parse(raw, &version)) in->bad = "a version is not a version";
    return version;
}

static bool is_null(oos_scan *scan)
{
    return oos_scan_peek(scan) == OOS_SCAN_WORD && *scan->at == 'n';
}

static const char *const *words_read(loader *in, size_t *ret_count)
{
    const char *words[CHOICES_MAX];
    size_t count = 0;
    *ret_count = 0;
    if (is_null(&in->scan)) {
        oos_scan_skip(&in->scan, NULL);
        return NULL;
    }
    if (!oos_scan_open(&in->scan, '[')) return NULL;
    while (oos_scan_item(&in->scan)) {
        oos_view raw;
        bool const quoted = oos_scan_peek(&in->scan) == OOS_SCAN_STRING;
        if (!(quoted ? oos_scan_string(&in->scan, &raw) : oos_scan_skip(&in->scan, &raw))) return NULL;
        if (count < CHOICES_MAX) words[count++] = keep(in, raw);
    }
    const char **list = OOS_NEW_ARRAY(in->arena, const char *, count);
    if (!list) {
        in->nomem = true;
        return NULL;
    }
    if (count) memcpy(list, words, count * sizeof *words);
    *ret_count = count;
    return list;
}

static bool truth_read(loader *in)
{
    oos_view raw;
    return oos_scan_skip(&in->scan, &raw) && oos_view_is(raw, "true");
}

/* A string field; empty when it is null. */
static oos_view string_read(loader *in)
{
    oos_view raw = {"", 0};
    if (is_null(&in->scan))
        oos_scan_skip(&in->scan, NULL);
    else
        oos_scan_string(&in->scan, &raw);
    return raw;
}

static const char *preset_read(loader *in)
{
    oos_view raw;
    oos_scan_kind const kind = oos_scan_peek(&in->scan);
    if (kind == OOS_SCAN_STRING) return oos_scan_string(&in->scan, &raw) ? keep(in, raw) : NULL;
    if (!oos_scan_skip(&in->scan, &raw) || kind == OOS_SCAN_OBJECT || kind == OOS_SCAN_ARRAY) return NULL;
    return oos_view_is(raw, "null") ? NULL : keep(in, raw);
}

/* A field that a form may have. False: not one of them, and nothing was read. */
static bool form_field(loader *in, oos_view key, draft *d)
{
    oos_flag_form *form = &d->form;
    if (oos_view_is(key, "names")) {
        size_t count;
        const char *const *names = words_read(in, &count);
        d->name_count = count < NAMES_MAX ? count : NAMES_MAX;
        if (names) memcpy(d->names, names, d->name_count * sizeof *names);
    } else if (oos_view_is(key, "kind")) {
        d->kind = string_read(in);
    } else if (oos_view_is(key, "item")) {
        d->item = string_read(in);
    } else if (oos_view_is(key, "nargs")) {
        d->nargs = string_read(in);
    } else if (oos_view_is(key, "negative")) {
        form->negatives = words_read(in, &form->negative_count);
    } else if (oos_view_is(key, "choices")) {
        form->choices = words_read(in, &form->choice_count);
    } else if (oos_view_is(key, "default")) {
        form->preset = preset_read(in);
    } else if (oos_view_is(key, "nullable")) {
        form->nullable = truth_read(in);
    } else if (oos_view_is(key, "pairs")) {
        form->pairs = truth_read(in);
    } else if (oos_view_is(key, "strict")) {
        form->strict = truth_read(in);
    } else if (oos_view_is(key, "auto")) {
        form->takes_auto = !is_null(&in->scan);
        oos_scan_skip(&in->scan, NULL);
    } else if (oos_view_is(key, "folds")) {
        form->folds = string_read(in).len > 0;
    } else if (oos_view_is(key, "suffixes")) {
        form->suffixes = keep(in, string_read(in));
    } else {
        return false;
    }
    return true;
}

static oos_flag_kind kind_of(oos_view word, oos_view item)
{
    static const struct {
        const char *word;
        oos_flag_kind kind;
    } kinds[] = {
        {"flag", OOS_FLAG_KIND_SWITCH}, {"bool-optional", OOS_FLAG_KIND_SWITCH},
        {"bool", OOS_FLAG_KIND_SWITCH}, {"help", OOS_FLAG_KIND_SWITCH},
        {"int", OOS_FLAG_KIND_INT},     {"float", OOS_FLAG_KIND_FLOAT},
        {"json", OOS_FLAG_KIND_JSON},   {"json-or-str", OOS_FLAG_KIND_JSON},
        {"list", OOS_FLAG_KIND_LIST},
    };
    if (oos_view_is(word, "choice"))
        return oos_view_is(item, "int") ? OOS_FLAG_KIND_INT : OOS_FLAG_KIND_CHOICE;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (oos_view_is(word, kinds[i].word)) return kinds[i].kind;
    return OOS_FLAG_KIND_STR;
}

/* kind and nargs as a count of words */
static void values_set(draft *d)
{
    oos_flag_form *form = &d->form;
    form->kind = kind_of(d->kind, d->item);
    form->item = kind_of(d->item, d->item);
    form->takes_word = oos_view_is(d->kind, "json-or-str");
    form->least_values = form->most_values = 1;
    if (form->kind == OOS_FLAG_KIND_SWITCH) {
        form->least_values = 0;
        form->most_values = oos_view_is(d->kind, "bool") ? 1 : 0;
    }
    if (d->nargs.len == 0) return;
    char const first = d->nargs.ptr[0];
    if (first >= '0' && first <= '9') {
        form->least_values = form->most_values = (uint8_t)(first - '0');
    } else {
        form->least_values = first == '+';
        form->most_values = first == '?' ? 1 : OOS_FLAG_VALUES_MANY;
    }
}

static void spelling_add(loader *in, size_t of, const char *text, bool negated, oos_version since,
                         oos_version until)
{
    spelling_index *index = in->index;
    oos_view const view = oos_view_of(text);
    uint32_t const hash = hash_of(view), record = (uint32_t)of;
    if (view.len >= SPELLING_MAX) {
        in->bad = "a flag's name is too long";
        return;
    }
    uint32_t *slot = &index->slots[hash & index->mask];
    for (uint32_t at = *slot; at; at = index->list[at - 1].next) {
        spelling *s = &index->list[at - 1];
        if (s->record == record && s->hash == hash && s->len == view.len && s->negated == negated &&
            same_spelling(s->text, view)) {
            s->until = until; /* the next form of the same record */
            return;
        }
    }
    if (index->count == index->capacity) {
        in->bad = "too many flags";
        return;
    }
    index->list[index->count++] = (spelling){.text = text,
                                             .len = (uint32_t)view.len,
                                             .hash = hash,
                                             .record = record,
                                             .next = *slot,
                                             .negated = negated,
                                             .since = since,
                                             .until = until};
    *slot = (uint32_t)index->count;
}

static void form_close(loader *in, draft *drafts, size_t *count)
{
    if (*count == FORMS_MAX) {
        in->bad = "a flag has changed too often";
        return;
    }
    values_set(&drafts[*count]);
    (*count)++;
}

static void changes_read(loader *in, draft *drafts, size_t *count)
{
    oos_view key;
    if (!oos_scan_open(&in->scan, '[')) return;
    while (oos_scan_item(&in->scan)) {
        if (*count == FORMS_MAX || !oos_scan_open(&in->scan, '{')) return;
        draft *d = &drafts[*count];
        *d = drafts[*count - 1];
        while (oos_scan_key(&in->scan, &key)) {
            if (oos_view_is(key, "since"))
                d->form.since = version_of(in, string_read(in));
            else if (!form_field(in, key, d))
                oos_scan_skip(&in->scan, NULL);
        }
        form_close(in, drafts, count);
    }
}

static void record_read(loader *in, draft *drafts)
{
    oos_flag_record record = {.until = UINT64_MAX};
    oos_scan changes = {0};
    oos_view key;
    size_t count = 0;
    drafts[0] = (draft){.form = {.suffixes = ""}};
    if (!oos_scan_open(&in->scan, '{')) return;
    while (oos_scan_key(&in->scan, &key)) {
        if (oos_view_is(key, "dest")) {
            record.dest = keep(in, string_read(in));
        } else if (oos_view_is(key, "memory")) {
            record.memory = !is_null(&in->scan) ? truth_read(in) : oos_scan_skip(&in->scan, NULL);
        } else if (oos_view_is(key, "since")) {
            record.since = version_of(in, string_read(in));
        } else if (oos_view_is(key, "until")) {
            record.until = version_of(in, string_read(in));
        } else if (oos_view_is(key, "changes")) { /* read again when the fields they change are known */
            oos_scan_peek(&in->scan);
            changes = in->scan;
            oos_scan_skip(&in->scan, NULL);
        } else if (oos_view_is(key, "json_keys")) {
            oos_scan_skip(&in->scan, &record.json_keys);
        } else if (!form_field(in, key, &drafts[0])) {
            oos_scan_skip(&in->scan, NULL);
        }
    }
    if (in->scan.failed || drafts[0].name_count == 0 || !record.dest || record.since == 0) {
        in->bad = "a flag needs names, dest and since";
        return;
    }
    drafts[0].form.since = record.since;
    form_close(in, drafts, &count);
    if (changes.at) {
        oos_scan const behind = in->scan;
        in->scan = changes;
        changes_read(in, drafts, &count);
        in->scan = behind;
    }

    oos_flag_form *forms = OOS_NEW_ARRAY(in->arena, oos_flag_form, count);
    const draft *last = &drafts[count - 1];
    const char **aliases = OOS_NEW_ARRAY(in->arena, const char *, last->name_count);
    if (!forms || !aliases) {
        in->nomem = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        oos_version const until = i + 1 < count ? drafts[i + 1].form.since - 1 : record.until;
        forms[i] = drafts[i].form;
        for (size_t k = 0; k < drafts[i].name_count; k++)
            spelling_add(in, in->count, drafts[i].names[k], false, forms[i].since, until);
        for (size_t k = 0; k < forms[i].negative_count; k++)
            spelling_add(in, in->count, forms[i].negatives[k], true, forms[i].since, until);
    }
    for (size_t k = 1; k < last->name_count; k++) aliases[k - 1] = last->names[k];
    record.name = drafts[0].names[0];
    record.name_len = strlen(record.name);
    record.aliases = aliases;
    record.alias_count = last->name_count ? last->name_count - 1 : 0;
    record.forms = forms;
    record.form_count = count;
    oos_assert(in->count < in->capacity && record.form_count > 0);
    in->records[in->count++] = record;
}

/* How many records the array holds, so that everything is taken once. */
static size_t items_count(oos_scan scan)
{
    size_t count = 0;
    if (!oos_scan_open(&scan, '[')) return 0;
    while (oos_scan_item(&scan) && oos_scan_skip(&scan, NULL)) count++;
    return count;
}

static void flags_read(loader *in)
{
    if (in->records) {
        in->bad = "two lists of flags";
        return;
    }
    size_t const count = items_count(in->scan) + in->learned_count;
    uint32_t slots = 64;
    while (slots < count * 8 && slots < 1u << 20) slots *= 2;
    in->capacity = count;
    in->records = OOS_NEW_ARRAY(in->arena, oos_flag_record, count);
    in->index->list = OOS_NEW_ARRAY(in->arena, spelling, count * 6);
    in->index->slots = OOS_NEW_ARRAY(in->arena, uint32_t, slots);
    draft *drafts = OOS_NEW_ARRAY(in->arena, draft, FORMS_MAX);
    if (!in->records || !in->index->list || !in->index->slots || !drafts) {
        in->nomem = true;
        return;
    }
    in->index->capacity = count * 6;
    in->index->mask = slots - 1;
    if (!oos_scan_open(&in->scan, '[')) return;
    while (!in->bad && !in->nomem && oos_scan_item(&in->scan)) record_read(in, drafts);
}

static void versions_read(loader *in, oos_flag_table *table)
{
    oos_version *versions = OOS_NEW_ARRAY(in->arena, oos_version, items_count(in->scan));
    size_t count = 0;
    oos_view raw;
    if (!versions) {
        in->nomem = true;
        return;
    }
    if (!oos_scan_open(&in->scan, '[')) return;
    while (oos_scan_item(&in->scan) && oos_scan_string(&in->scan, &raw))
        versions[count++] = version_of(in, raw);
    table->versions = versions;
    table->version_count = count;
}

/* Since when one of the parser's rules holds, 0: never. {"name":"dotted","result":"error","changes":[{"since":...}]}. A result
 * that is an object is a command line that was understood. */
static oos_version
rule_since(loader *in) /* NOLINT: one level deep by the form of the file, and 256 at most */
{
    oos_version since = 0, taken = 0;
    bool understood = false;
    oos_view key;
    while (oos_scan_key(&in->scan, &key)) {
        if (oos_view_is(key, "since")) {
            since = version_of(in, string_read(in));
        } else if (oos_view_is(key, "result")) {
            understood = oos_scan_peek(&in->scan) == OOS_SCAN_OBJECT;
            oos_scan_skip(&in->scan, NULL);
        } else if (oos_view_is(key, "changes")) {
            oos_scan_open(&in->scan, '[');
            while (oos_scan_item(&in->scan) && oos_scan_open(&in->scan, '{')) {
                oos_version const later = rule_since(in);
                if (later && !taken) taken = later;
            }
        } else {
            oos_scan_skip(&in->scan, NULL);
        }
    }
    return understood ? since : taken;
}

static void rules_read(loader *in, oos_flag_table *table)
{
    oos_view key, name;
    if (!oos_scan_open(&in->scan, '[')) return;
    while (oos_scan_item(&in->scan)) {
        oos_scan rule = in->scan;
        oos_scan_skip(&in->scan, NULL);
        if (!oos_scan_open(&rule, '{') || !oos_scan_key(&rule, &key) || !oos_view_is(key, "name") ||
            !oos_scan_string(&rule, &name))
            continue;
        oos_version *since = oos_view_is(name, "dotted")             ? &table->dotted_since
                             : oos_view_is(name, "underscore_names") ? &table->underscores_since
                                                                     : NULL;
        if (!since) continue;
        oos_scan const behind = in->scan;
        in->scan = rule;
        *since = rule_since(in);
        in->scan = behind;
    }
}

/* ---- a release whose flags were learned from its own parser --------------------------------------------------------- */

/* One that it has, and the record of the newest release that it goes on; NONE: nobody knows it here. */
typedef struct learned_flag {
    draft is;
    const char *dest;
    size_t record;
    oos_view keys; /* of its JSON value; empty: it did not tell */
} learned_flag;
enum { NONE = UINT32_MAX };

static bool is_plain(const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (const char *at = words[i]; at && *at; at++)
            if ((unsigned char)*at < ' ' || *at == 0x7f) return false;
    return true;
}

static void learned_read_one(loader *in, learned_flag *flag)
{
    oos_view key;
    *flag = (learned_flag){.is.form.suffixes = "", .record = NONE, .keys = {"", 0}};
    if (!oos_scan_open(&in->scan, '{')) return;
    while (oos_scan_key(&in->scan, &key))
        if (oos_view_is(key, "dest"))
            flag->dest = keep(in, string_read(in));
        else if (oos_view_is(key, "json_keys"))
            oos_scan_skip(&in->scan, &flag->keys);
        else if (!form_field(in, key, &flag->is))
            oos_scan_skip(&in->scan, NULL);
    const oos_flag_form *form = &flag->is.form;
    if (in->scan.failed || flag->is.name_count == 0 || !flag->dest) in->bad = "a flag needs names and dest";
    if (!is_plain(flag->is.names, flag->is.name_count) || !is_plain(form->choices, form->choice_count) ||
        !is_plain(form->negatives, form->negative_count) || !is_plain(&form->preset, 1))
        in->bad = "control characters in a word";
    values_set(&flag->is);
    for (size_t i = 0; i < flag->is.name_count && flag->record == NONE && !in->bad; i++) {
        oos_view const name = oos_view_of(flag->is.names[i]);
        uint32_t at = in->index->slots[hash_of(name) & in->index->mask];
        for (; at && flag->record == NONE; at = in->index->list[at - 1].next) {
            const spelling *s = &in->index->list[at - 1];
            if (s->until == UINT64_MAX && s->len == name.len && same_spelling(s->text, name))
                flag->record = s->record;
        }
    }
}

/* What it says is taken; how a value is read, and what it does, is what is known of the flag. */
static oos_flag_form learned_form(const oos_flag_record *before, const oos_flag_form *is, oos_version version)
{
    oos_flag_form form = *is;
    const oos_flag_form *last = before ? &before->forms[before->form_count - 1] : is;
    if ((last->kind == OOS_FLAG_KIND_SWITCH) == (is->kind == OOS_FLAG_KIND_SWITCH)) {
        form = *last;
        form.least_values = is->least_values, form.most_values = is->most_values;
        form.nullable |= is->nullable;
        form.preset = is->preset;
        form.choices = is->choices, form.choice_count = is->choice_count;
        form.negatives = is->negatives, form.negative_count = is->negative_count;
    }
    form.since = version;
    return form;
}

static void learned_add(loader *in, const learned_flag *flag, oos_version version)
{
    bool const known = flag->record != NONE;
    size_t const of = known ? flag->record : in->count;
    oos_flag_record *record = &in->records[of];
    size_t const before = known ? record->form_count : 0, names = flag->is.name_count;
    oos_flag_form *forms = OOS_NEW_ARRAY(in->arena, oos_flag_form, before + 1);
    const char **aliases = OOS_NEW_ARRAY(in->arena, const char *, names);
    if (!forms || !aliases || of == in->capacity) {
        in->nomem = true;
        return;
    }
    if (before) memcpy(forms, record->forms, before * sizeof *forms);
    forms[before] = learned_form(known ? record : NULL, &flag->is.form, version);
    if (!known) { /* nobody has judged it yet */
        *record = (oos_flag_record){
            .name = flag->is.names[0], .dest = flag->dest, .since = version, .memory = true};
        record->name_len = strlen(record->name);
        in->count++;
    }
    oos_assert(of < in->count && names > 0);
    record->keys_open = flag->keys.len == 0;
    if (flag->keys.len) record->json_keys = flag->keys;
    record->until = UINT64_MAX;
    record->forms = forms;
    record->form_count = before + 1;
    record->aliases = aliases;
    record->alias_count = 0;
    for (size_t i = 0; i < names; i++) {
        spelling_add(in, of, flag->is.names[i], false, version, UINT64_MAX);
        if (strcmp(flag->is.names[i], record->name) != 0) aliases[record->alias_count++] = flag->is.names[i];
    }
    for (size_t i = 0; i < forms[before].negative_count; i++)
        spelling_add(in, of, forms[before].negatives[i], true, version, UINT64_MAX);
}

/* What the newest release has and this one has not, ends there. */
static void learned_take(loader *in, oos_view flags, oos_version version, oos_flag_table *table)
{
    oos_version *versions = OOS_NEW_ARRAY(in->arena, oos_version, table->version_count + 1);
    learned_flag *list = OOS_NEW_ARRAY(in->arena, learned_flag, in->learned_count);
    size_t count = 0;
    if (!versions || !list || !table->version_count || !in->records) {
        in->nomem = true;
        return;
    }
    in->scan = oos_scan_begin(flags);
    if (oos_scan_open(&in->scan, '['))
        while (!in->bad && !in->nomem && oos_scan_item(&in->scan)) learned_read_one(in, &list[count++]);
    if (in->bad || in->nomem || !oos_scan_done(&in->scan) || !count) return;
    oos_version const newest = table->versions[table->version_count - 1];
    if (version < newest) in->bad = "an older release was learned";
    if (in->bad) return;
    for (size_t i = 0; i < in->index->count; i++)
        if (in->index->list[i].until == UINT64_MAX) in->index->list[i].until = version - 1;
    for (size_t i = 0; i < in->count; i++)
        if (in->records[i].until == UINT64_MAX) in->records[i].until = newest;
    for (size_t i = 0; i < count && !in->bad && !in->nomem; i++) learned_add(in, &list[i], version);
    memcpy(versions, table->versions, table->version_count * sizeof *versions);
    if (version > newest) versions[table->version_count++] = version;
    table->versions = versions;
    oos_assert(table->versions[table->version_count - 1] == version);
    table->learned = version;
}

oomsight_status oos_flags_load(oos_arena *arena, const char *data_dir, const char *engine,
                               oos_flag_table *ret_table, oomsight_error *reterr)
{
    return oos_flags_load_learned(arena, data_dir, engine, NULL, ret_table, reterr);
}

oomsight_status oos_flags_load_learned(oos_arena *arena, const char *data_dir, const char *engine,
                                       const oos_learned *learned, oos_flag_table *ret_table,
                                       oomsight_error *reterr)
{
    oos_view bytes, key;
    char *path = oos_arena_format(arena, "engines/%s/flags.json", engine);
    char *beside = oos_arena_format(arena, "engines/%s/env.json", engine);
    spelling_index *index = OOS_NEW(arena, spelling_index);
    if (!path || !beside || !index) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for flags");
    OOS_TRY(oos_data_read(arena, data_dir, path, &bytes, reterr));

    oos_flag_table table = {.index = index, .variables = {"", 0}};
    (void)oos_data_read(arena, data_dir, beside, &table.variables,
                        NULL); /* without it no variable is known */
    loader in = {.arena = arena, .scan = oos_scan_begin(bytes), .index = index};
    if (learned) in.learned_count = items_count(oos_scan_begin(learned->flags));
    if (oos_scan_open(&in.scan, '{'))
        while (!in.bad && !in.nomem && oos_scan_key(&in.scan, &key)) {
            if (oos_view_is(key, "versions"))
                versions_read(&in, &table);
            else if (oos_view_is(key, "flags"))
                flags_read(&in);
            else if (oos_view_is(key, "parser"))
                rules_read(&in, &table);
            else
                oos_scan_skip(&in.scan, NULL);
        }
    if (learned && !in.bad && !in.nomem && oos_scan_done(&in.scan))
        learned_take(&in, learned->flags, learned->version, &table);
    if (in.nomem) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for flags");
    if (in.bad || !oos_scan_done(&in.scan) || !index->slots || table.version_count == 0) {
        oos_fail(reterr, OOMSIGHT_MALFORMED, "%s, at byte %zu", in.bad ? in.bad : "not a table of flags",
                 (size_t)(in.scan.at - in.scan.start));
        return oos_fail_in(reterr, OOMSIGHT_MALFORMED, path);
    }
    table.list = in.records;
    table.count = in.count;
    *ret_table = table;
    return OOMSIGHT_OK;
}

/* ---- finding --------------------------------------------------------------------------------------------------- */

void oos_flags_neighbours(const oos_flag_table *table, oos_version version, oos_version *ret_below,
                          oos_version *ret_above)
{
    size_t at = 0;
    while (at + 1 < table->version_count && table->versions[at + 1] <= version) at++;
    *ret_below = table->versions[at];
    *ret_above =
        version > table->versions[at] && at + 1 < table->version_count ? table->versions[at + 1] : *ret_below;
    oos_assert(at < table->version_count);
}

/* 0: there; else how far away in versions, so that the nearest record can be chosen */
static oos_version distance(const spelling *s, oos_version below, oos_version above)
{
    if (s->since <= above && s->until >= below) return 0;
    return s->since > above ? s->since - above : below - s->until;
}

static oos_flag_hit hit_of(const oos_flag_table *table, const spelling *s, oos_version below,
                           oos_version above)
{
    oos_assert(s->record < table->count);
    const oos_flag_record *record = &table->list[s->record];
    size_t at = 0;
    while (at + 1 < record->form_count && record->forms[at + 1].since <= below) at++;
    return (oos_flag_hit){record, &record->forms[at], s->negated, distance(s, below, above) == 0};
}

oos_flag_hit oos_flags_find(const oos_flag_table *table, oos_view word, oos_version version)
{
    const spelling_index *index = table->index;
    const spelling *best = NULL;
    oos_version below, above;
    if (!index || word.len >= SPELLING_MAX) return (oos_flag_hit){0};
    uint32_t const hash = hash_of(word);
    uint32_t at = index->slots[hash & index->mask];
    if (!at) return (oos_flag_hit){0};
    oos_flags_neighbours(table, version, &below, &above);
    for (; at; at = index->list[at - 1].next) {
        const spelling *s = &index->list[at - 1];
        if (s->hash != hash || s->len != word.len || !same_spelling(s->text, word)) continue;
        oos_version const away = distance(s, below, above);
        /* between two dumps, the older one's reading comes first */
        bool const older = best && away == 0 && s->since < best->since && s->until >= below;
        if (!best || away < distance(best, below, above) || older) best = s;
    }
    return best ? hit_of(table, best, below, above) : (oos_flag_hit){0};
}

oos_flag_hit oos_flags_find_start(const oos_flag_table *table, oos_view word, oos_version version,
                                  bool *ret_several)
{
    const spelling_index *index = table->index;
    const spelling *best = NULL;
    oos_version below, above;
    *ret_several = false;
    oos_flag_hit const exact = oos_flags_find(table, word, version);
    if ((exact.record && exact.here) || !index || word.len < 3 || word.ptr[1] != '-') return exact;
    oos_flags_neighbours(table, version, &below, &above);
    for (size_t i = 0; i < index->count; i++) {
        const spelling *s = &index->list[i];
        if (s->len < word.len || !same_spelling(s->text, word) || distance(s, below, above) != 0) continue;
        if (best && (best->record != s->record || best->len != s->len)) { /* two spellings of one flag, too */
            *ret_several = true;
            return (oos_flag_hit){0};
        }
        best = s;
    }
    return best ? hit_of(table, best, below, above) : exact; /* exact: a flag of another release */
}

/* Letters that one word has and the other lacks: no number of edits below half of it will do. */
static size_t edits_least(const int8_t counts[32], oos_view b)
{
    int8_t left[32];
    size_t missing = 0, spare = 0;
    memcpy(left, counts, sizeof left);
    for (size_t i = 0; i < b.len; i++) left[b.ptr[i] & 31]--;
    for (size_t i = 0; i < sizeof left; i++) {
        if (left[i] > 0) spare += (size_t)left[i];
        if (left[i] < 0) missing += (size_t)-left[i];
    }
    return missing > spare ? missing : spare;
}

/* "--gpu-mem-util" is "--gpu-memory-utilization" with its parts cut short. */
static bool shortened(oos_view given, const char *known)
{
    for (size_t i = 0; i < given.len; i++) {
        char const c = given.ptr[i] == '_' ? '-' : given.ptr[i];
        if (c == '-')
            while (*known && *known != '-') known++;
        if (c != *known) return false;
        known++;
    }
    while (*known && *known != '-') known++;
    return *known == '\0';
}

const char *oos_flags_nearest(const oos_flag_table *table, oos_view word, oos_version version)
{
    const spelling_index *index = table->index;
    const char *best = NULL;
    oos_version below, above;
    if (!index || word.len < 3 || word.len >= SPELLING_MAX) return NULL;
    oos_flags_neighbours(table, version, &below, &above);
    size_t least = word.len / 4 + 2; /* further away it is another word */
    if (least > word.len / 2) least = word.len / 2;
    int8_t counts[32] = {0};
    for (size_t i = 0; i < word.len; i++) counts[(word.ptr[i] == '_' ? '-' : word.ptr[i]) & 31]++;
    for (size_t i = 0; i < index->count; i++) {
        const spelling *s = &index->list[i];
        if (distance(s, below, above) != 0) continue;
        if (word.len > 5 && shortened(word, s->text)) return s->text;
        size_t const gap = s->len > word.len ? s->len - word.len : word.len - s->len;
        if (gap >= least || edits_least(counts, (oos_view){s->text, s->len}) >= least) continue;
        size_t const count = oos_edits(word, (oos_view){s->text, s->len});
        if (count < least) {
            least = count;
            best = s->text;
        }
    }
    return best;
}

/* Reading data/engines/<engine>/architectures.json and arguments.json, and looking things up in them by release. */
#include "facts/facts.h"
#include "base/locale.h"
#include "base/scan.h"

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
    oos_quant_limits method;
} step;

typedef struct entry {
    oos_view name;
    oos_view raw;      /* architectures: its stretches, read when they are asked for */
    const step *steps; /* everything else */
    size_t count;
} entry;

typedef struct table {
    entry *list; /* by name */
    size_t count;
} table;

/* {"name": {"word": number}}: a name that ends in * stands for all that begin so. */
typedef struct saying {
    oos_view pattern, word;
    uint64_t value;
    uint8_t before; /* of the same first letter, as in sayings.last */
} saying;
enum { SAYINGS_MAX = 128 };
typedef struct sayings {
    saying list[SAYINGS_MAX + 1]; /* from 1 on */
    uint8_t count, last[256];     /* of each first letter; 0: none */
} sayings;

struct oos_argument_facts {
    table architectures, bounds, methods, backends, drafts, reasoning, cache_types;
    const oos_version *versions; /* whose registry was read */
    size_t version_count;
    oos_view
        served; /* a list of names: architectures that went and that the Transformers library serves instead */
    sayings behaviour, model_types;
};

/* A file while it is read. */
typedef struct loader {
    oos_arena *arena;
    oos_scan scan;
    const char *const *parts;
    size_t part_count;
    const char *bad; /* NULL: nothing was wrong so far */
    bool nomem;
} loader;

static int view_compare(oos_view a, oos_view b)
{
    int const order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_name(const void *a, const void *b)
{
    return view_compare(((const entry *)a)->name, ((const entry *)b)->name);
}

static const entry *entry_find(const table *t, oos_view name)
{
    entry const key = {.name = name};
    return t->count && name.ptr ? bsearch(&key, t->list, t->count, sizeof key, by_name) : NULL;
}

static size_t items_count(oos_scan scan, bool object)
{
    size_t count = 0;
    oos_view key;
    if (!oos_scan_open(&scan, object ? '{' : '[')) return 0;
    while ((object ? oos_scan_key(&scan, &key) : oos_scan_item(&scan)) && oos_scan_skip(&scan, NULL)) count++;
    return count;
}

static oos_version version_read(loader *in)
{
    oos_view raw;
    oos_version version = 0;
    if (!oos_scan_string(&in->scan, &raw) || !oos_version_parse(raw, &version))
        in->bad = "a version is text such as 0.19.1";
    return version;
}

static bool table_make(loader *in, table *ret_table)
{
    ret_table->list = OOS_NEW_ARRAY(in->arena, entry, items_count(in->scan, true));
    ret_table->count = 0;
    in->nomem = !ret_table->list;
    return !in->nomem && oos_scan_open(&in->scan, '{');
}

/* The files are written in order; one that was made by hand may not be. */
static void table_sort(table *t)
{
    for (size_t i = 1; i < t->count; i++)
        if (by_name(&t->list[i - 1], &t->list[i]) > 0) {
            qsort(t->list, t->count, sizeof *t->list, by_name);
            return;
        }
}

static void versions_read(loader *in, oos_argument_facts *facts)
{
    size_t const count = items_count(in->scan, false);
    oos_version *versions = OOS_NEW_ARRAY(in->arena, oos_version, count);
    in->nomem = !versions;
    if (in->nomem || !oos_scan_open(&in->scan, '[')) return;
    while (!in->bad && oos_scan_item(&in->scan)) versions[facts->version_count++] = version_read(in);
    facts->versions = versions;
}

static void architectures_read(loader *in, table *t)
{
    oos_view key;
    if (!table_make(in, t)) return;
    while (oos_scan_key(&in->scan, &key)) {
        entry *e = &t->list[t->count++];
        *e = (entry){.name = key};
        oos_scan_skip(&in->scan, &e->raw);
    }
    table_sort(t);
}

static double number_read(loader *in)
{
    oos_view raw = {"", 0};
    char text[32];
    oos_scan_skip(&in->scan, &raw);
    size_t const len = raw.len < sizeof text - 1 ? raw.len : sizeof text - 1;
    memcpy(text, raw.ptr, len);
    text[len] = '\0';
    return oos_real_read(text, NULL);
}

static void types_read(loader *in, oos_quant_limits *m)
{
    oos_view word;
    m->float16 = m->bfloat16 = m->float32 = false;
    if (!oos_scan_open(&in->scan, '[')) return;
    while (oos_scan_item(&in->scan) && oos_scan_string(&in->scan, &word)) {
        m->float16 |= oos_view_is(word, "float16");
        m->bfloat16 |= oos_view_is(word, "bfloat16");
        m->float32 |= oos_view_is(word, "float32");
    }
}

static bool true_read(loader *in)
{
    oos_view raw;
    return oos_scan_skip(&in->scan, &raw) && oos_view_is(raw, "true");
}

static void part_read(loader *in, oos_bounds *b)
{
    oos_view raw;
    if (!oos_scan_string(&in->scan, &raw)) return;
    for (size_t i = 0; i < in->part_count; i++)
        if (oos_view_is(raw, in->parts[i])) b->part = (unsigned)i, b->part_name = in->parts[i];
}

static step step_read(loader *in)
{
    step s = {.bounds = {.above = -INFINITY, .least = -INFINITY, .below = INFINITY, .most = INFINITY},
              .method = {.float16 = true, .bfloat16 = true, .float32 = true}};
    oos_view key;
    if (!oos_scan_open(&in->scan, '{')) return s;
    while (oos_scan_key(&in->scan, &key)) {
        if (oos_view_is(key, "since"))
            s.since = version_read(in);
        else if (oos_view_is(key, "gone"))
            s.gone = true_read(in);
        else if (oos_view_is(key, "deprecated"))
            s.method.deprecated = true_read(in);
        else if (oos_view_is(key, "file"))
            s.method.file = true_read(in);
        else if (oos_view_is(key, "settings"))
            s.method.settings = true_read(in);
        else if (oos_view_is(key, "online"))
            s.method.online = true_read(in);
        else if (oos_view_is(key, "dtypes"))
            types_read(in, &s.method);
        else if (oos_view_is(key, "part"))
            part_read(in, &s.bounds);
        else if (oos_view_is(key, "gt"))
            s.bounds.above = number_read(in);
        else if (oos_view_is(key, "ge"))
            s.bounds.least = number_read(in);
        else if (oos_view_is(key, "lt"))
            s.bounds.below = number_read(in);
        else if (oos_view_is(key, "le"))
            s.bounds.most = number_read(in);
        else if (oos_view_is(key, "capability")) {
            double const capability = number_read(in); /* some classes say -1: any */
            s.method.capability = capability > 0 && capability < 1000 ? (unsigned)capability : 0;
        } else {
            oos_scan_skip(&in->scan, NULL);
        }
    }
    if (s.since == 0) in->bad = "a step needs `since`";
    return s;
}

/* {"name": [{"since": ..., ...}, ...]} */
static void steps_read(loader *in, table *t)
{
    oos_view key;
    if (!table_make(in, t)) return;
    while (!in->bad && !in->nomem && oos_scan_key(&in->scan, &key)) {
        step *steps = OOS_NEW_ARRAY(in->arena, step, items_count(in->scan, false));
        entry *e = &t->list[t->count++];
        *e = (entry){.name = key, .steps = steps};
        in->nomem = !steps;
        if (in->nomem || !oos_scan_open(&in->scan, '[')) return;
        while (!in->bad && oos_scan_item(&in->scan)) steps[e->count++] = step_read(in);
    }
    table_sort(t);
}

static void parts_read(loader *in)
{
    const char **parts = OOS_NEW_ARRAY(in->arena, const char *, items_count(in->scan, false));
    oos_view raw;
    in->nomem = !parts;
    if (in->nomem || !oos_scan_open(&in->scan, '[')) return;
    while (!in->nomem && oos_scan_item(&in->scan) && oos_scan_string(&in->scan, &raw)) {
        parts[in->part_count] = oos_scan_text(in->arena, raw);
        in->nomem = !parts[in->part_count++];
    }
    in->parts = parts;
}

static void sayings_read(loader *in, sayings *ret_all)
{
    saying one;
    if (!oos_scan_open(&in->scan, '{')) return;
    while (!in->bad && oos_scan_key(&in->scan, &one.pattern)) {
        if (!oos_scan_open(&in->scan, '{')) return;
        while (!in->bad && oos_scan_key(&in->scan, &one.word)) {
            if (!one.pattern.len || !oos_scan_u64(&in->scan, &one.value))
                in->bad = "a word of a class is a number";
            else if (ret_all->count == SAYINGS_MAX)
                in->bad = "too many words of classes";
            else {
                uint8_t *last = &ret_all->last[(unsigned char)*one.pattern.ptr];
                one.before = *last;
                *last = ++ret_all->count;
                ret_all->list[*last] = one;
            }
        }
    }
}

static void member_read(loader *in, oos_view key, oos_argument_facts *facts)
{
    if (oos_view_is(key, "architectures"))
        architectures_read(in, &facts->architectures);
    else if (oos_view_is(key, "served"))
        oos_scan_skip(&in->scan, &facts->served);
    else if (oos_view_is(key, "behaviour"))
        sayings_read(in, &facts->behaviour);
    else if (oos_view_is(key, "model_types"))
        sayings_read(in, &facts->model_types);
    else if (oos_view_is(key, "parts"))
        parts_read(in);
    else if (oos_view_is(key, "bounds"))
        steps_read(in, &facts->bounds);
    else if (oos_view_is(key, "quantization"))
        steps_read(in, &facts->methods);
    else if (oos_view_is(key, "backends"))
        steps_read(in, &facts->backends);
    else if (oos_view_is(key, "drafts"))
        steps_read(in, &facts->drafts);
    else if (oos_view_is(key, "reasoning"))
        steps_read(in, &facts->reasoning);
    else if (oos_view_is(key, "cache_types"))
        steps_read(in, &facts->cache_types);
    else
        oos_scan_skip(&in->scan, NULL);
}

static oomsight_status file_load(oos_arena *arena, const char *data_dir, const char *engine, const char *name,
                                 oos_argument_facts *facts, oomsight_error *reterr)
{
    oos_view bytes, key;
    char *path = oos_arena_format(arena, "engines/%s/%s", engine, name);
    if (!path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");
    OOS_TRY(oos_data_read(arena, data_dir, path, &bytes, reterr));
    loader in = {.arena = arena, .scan = oos_scan_begin(bytes)};
    bool const architectures = strcmp(name, "architectures.json") == 0;
    if (oos_scan_open(&in.scan, '{'))
        while (!in.bad && !in.nomem && oos_scan_key(&in.scan, &key)) {
            if (architectures && oos_view_is(key, "versions"))
                versions_read(&in, facts);
            else
                member_read(&in, key, facts);
        }
    if (in.nomem) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the arguments");
    if (!in.bad && oos_scan_done(&in.scan)) return OOMSIGHT_OK;
    oos_fail(reterr, OOMSIGHT_MALFORMED, "%s", in.bad ? in.bad : "not facts about arguments");
    return oos_fail_in(reterr, OOMSIGHT_MALFORMED, path);
}

oomsight_status oos_argument_facts_load(oos_arena *arena, const char *data_dir, const char *engine,
                                        oos_argument_facts **ret_facts, oomsight_error *reterr)
{
    oos_argument_facts *facts = OOS_NEW(arena, oos_argument_facts);
    if (!facts) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the arguments");
    OOS_TRY(file_load(arena, data_dir, engine, "architectures.json", facts, reterr));
    OOS_TRY(file_load(arena, data_dir, engine, "arguments.json", facts, reterr));
    *ret_facts = facts;
    return OOMSIGHT_OK;
}

oomsight_status oos_architectures_load(oos_arena *arena, const char *data_dir, const char *engine,
                                       oos_argument_facts **ret_facts, oomsight_error *reterr)
{
    oos_argument_facts *facts = OOS_NEW(arena, oos_argument_facts);
    if (!facts) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the architectures");
    OOS_TRY(file_load(arena, data_dir, engine, "architectures.json", facts, reterr));
    *ret_facts = facts;
    return OOMSIGHT_OK;
}

/* "Gemma4*" is every name that begins so. */
static bool name_fits(oos_view pattern, oos_view name)
{
    bool const begins = pattern.len && pattern.ptr[pattern.len - 1] == '*';
    size_t const len = begins ? pattern.len - 1 : pattern.len;
    return name.len >= len && (begins || name.len == len) && memcmp(pattern.ptr, name.ptr, len) == 0;
}

static uint64_t said(const sayings *all, const char *name, const char *word)
{
    uint64_t result = 0;
    if (!name) return 0;
    oos_view const whole = oos_view_of(name), wanted = oos_view_of(word);
    for (size_t i = all->last[(unsigned char)*name]; i; i = all->list[i].before) {
        const saying *one = &all->list[i];
        if (one->value > result && oos_view_equal(one->word, wanted) && name_fits(one->pattern, whole))
            result = one->value;
    }
    return result;
}

uint64_t oos_architecture_says(const oos_argument_facts *facts, const char *architecture, const char *word)
{
    return facts ? said(&facts->behaviour, architecture, word) : 0;
}

uint64_t oos_model_type_says(const oos_argument_facts *facts, const char *type, const char *word)
{
    return facts ? said(&facts->model_types, type, word) : 0;
}

enum { STRETCHES_MAX = 8 };

/* [["0.8.0", "0.24.0"], ["0.28.0", null]]; what is not that is as if it were not there. */
static size_t stretches_read(const entry *e, stretch stretches[STRETCHES_MAX])
{
    loader in = {.scan = oos_scan_begin(e->raw)};
    size_t count = 0;
    if (!oos_scan_open(&in.scan, '[')) return 0;
    while (count < STRETCHES_MAX && oos_scan_item(&in.scan) && oos_scan_open(&in.scan, '[')) {
        stretch s = {.last = UINT64_MAX};
        if (oos_scan_item(&in.scan)) s.first = version_read(&in);
        if (oos_scan_item(&in.scan)) {
            if (oos_scan_peek(&in.scan) == OOS_SCAN_STRING)
                s.last = version_read(&in);
            else
                oos_scan_skip(&in.scan, NULL);
        }
        if (in.bad || oos_scan_item(&in.scan)) return 0;
        stretches[count++] = s;
    }
    return count;
}

static bool in_stretch(const stretch *stretches, size_t count, oos_version version)
{
    for (size_t i = 0; i < count; i++)
        if (version >= stretches[i].first && version <= stretches[i].last) return true;
    return false;
}

static bool is_served(const oos_argument_facts *facts, const char *name)
{
    oos_scan scan = oos_scan_begin(facts->served);
    oos_view item;
    if (!oos_scan_open(&scan, '[')) return false;
    while (oos_scan_item(&scan) && oos_scan_string(&scan, &item))
        if (oos_view_is(item, name)) return true;
    return false;
}

/* A release that was not read is sure only of what its neighbours agree about. */
oos_architecture_known oos_architecture_known_at(const oos_argument_facts *facts, const char *name,
                                                 oos_version version, oos_version *ret_other)
{
    const entry *e = facts && name ? entry_find(&facts->architectures, oos_view_of(name)) : NULL;
    stretch stretches[STRETCHES_MAX];
    size_t const count = e ? stretches_read(e, stretches) : 0;
    if (count == 0) return OOS_ARCHITECTURE_UNHEARD;
    oos_version before = 0, after = UINT64_MAX;
    for (size_t i = 0; i < facts->version_count && after == UINT64_MAX; i++) { /* oldest first */
        if (facts->versions[i] <= version) before = facts->versions[i];
        if (facts->versions[i] >= version) after = facts->versions[i];
    }
    bool const was = before && in_stretch(stretches, count, before);
    bool const will = after == UINT64_MAX ? was : in_stretch(stretches, count, after);
    if (was && will) return OOS_ARCHITECTURE_HERE;
    if (was != will) return OOS_ARCHITECTURE_UNSURE;
    *ret_other = stretches[0].first;
    if (version < *ret_other) return OOS_ARCHITECTURE_LATER;
    for (size_t i = 0; i < count; i++)
        if (stretches[i].last < version) *ret_other = stretches[i].last;
    return is_served(facts, name) ? OOS_ARCHITECTURE_UNSURE : OOS_ARCHITECTURE_GONE;
}

/* The oldest release that was read: what it has may be older, what came later was not there before. */
#define OLDEST_READ OOS_VERSION(0, 8, 0)

/* The last step not after the version; NULL: not there. */
static const step *step_at(const table *t, oos_view name, oos_version version)
{
    const entry *e = entry_find(t, name);
    if (!e || e->count == 0) return NULL;
    const step *found = &e->steps[0];
    if (found->since > OLDEST_READ && version < found->since) return NULL;
    for (size_t i = 1; i < e->count && e->steps[i].since <= version; i++) found = &e->steps[i];
    return found->gone ? NULL : found;
}

const oos_bounds *oos_bounds_find(const oos_argument_facts *facts, const char *flag, oos_version version)
{
    char name[64]; /* "--max-num-seqs" is kept as max_num_seqs */
    size_t len = 0;
    if (strncmp(flag, "--", 2) != 0) return NULL;
    for (const char *at = flag + 2; *at && len < sizeof name; at++) name[len++] = *at == '-' ? '_' : *at;
    const step *found = facts ? step_at(&facts->bounds, (oos_view){name, len}, version) : NULL;
    return found && version >= found->since ? &found->bounds : NULL;
}

bool oos_quant_method_find(const oos_argument_facts *facts, const char *name, oos_version version,
                           oos_quant_limits *ret_method)
{
    const step *found = facts ? step_at(&facts->methods, oos_view_of(name), version) : NULL;
    if (found) *ret_method = found->method;
    return found != NULL;
}

bool oos_quant_method_gone(const oos_argument_facts *facts, const char *name, oos_version version)
{
    const entry *e = facts ? entry_find(&facts->methods, oos_view_of(name)) : NULL;
    bool gone = false;
    for (size_t i = 0; e && i < e->count && e->steps[i].since <= version; i++) gone = e->steps[i].gone;
    return gone;
}

bool oos_arguments_reach(const oos_argument_facts *facts, oos_version version)
{
    return facts && facts->version_count && version <= facts->versions[facts->version_count - 1];
}

bool oos_backend_name_known(const oos_argument_facts *facts, const char *name, oos_version version)
{
    return !oos_arguments_reach(facts, version) || step_at(&facts->backends, oos_view_of(name), version);
}

bool oos_drafts_for_itself(const oos_argument_facts *facts, const char *type, const char *architecture,
                           oos_version version)
{
    if (!oos_arguments_reach(facts, version)) return true;
    return (type && step_at(&facts->drafts, oos_view_of(type), version)) ||
           (architecture && step_at(&facts->drafts, oos_view_of(architecture), version));
}

/* Where the configuration of the release looks for such a name at all. */
static bool name_known(const oos_argument_facts *facts, const table *t, const char *name, oos_version version)
{
    if (!oos_arguments_reach(facts, version) || step_at(t, oos_view_of(name), version)) return true;
    for (size_t i = 0; i < t->count; i++)
        if (step_at(t, t->list[i].name, version)) return false;
    return true;
}

bool oos_reasoning_parser_known(const oos_argument_facts *facts, const char *name, oos_version version)
{
    return name_known(facts, &facts->reasoning, name, version);
}

bool oos_cache_type_known(const oos_argument_facts *facts, const char *name, oos_version version)
{
    return name_known(facts, &facts->cache_types, name, version);
}

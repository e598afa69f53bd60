/* Reading data/engines/<engine>/levers.json. Strict: a word that nobody knows, a lever twice or a rung out of order is an error, so that
 * a slip of the pen in the data is found by its first reader. */
#include "facts/facts.h"
#include "ledger/ledger.h"

#include <string.h>

enum { WORD_MAX = 64, SENTENCE_MAX = 256 };

static const char *const rung_words[] = {"a", "b", "c", "d", "e"};
static const char *const move_words[] = {"raise", "lower", "set", "drop", "do"};

const char *const oos_role_words[OOS_ROLE_COUNT] = {NULL,
#define OOS_ROLE_WORD(name) #name,
                                                    OOS_ROLE_MAP(OOS_ROLE_WORD)
#undef OOS_ROLE_WORD
};

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))
_Static_assert(OOS_PHASE_COUNT <= 64 && OOS_OWNER_COUNT <= 64 && OOS_CAUSE_COUNT <= 64,
               "a set of them is a number of 64 bits");

typedef struct reading {
    oos_arena *arena;
    oos_scan scan;
    const char *problem; /* NULL: none yet */
    bool no_memory;
} reading;

static void object_to(reading *r, const char *problem)
{
    if (!r->problem) r->problem = problem;
    r->scan.failed = true;
}

static const char *text(reading *r, size_t most)
{
    oos_view raw;
    if (!oos_scan_string(&r->scan, &raw)) return NULL;
    if (raw.len == 0 || raw.len > most) {
        object_to(r, "a text is empty or too long");
        return NULL;
    }
    const char *copy = oos_scan_text(r->arena, raw);
    if (!copy) r->no_memory = r->scan.failed = true;
    return copy;
}

static size_t one_of(reading *r, const char *const *words, size_t count)
{
    oos_view raw;
    if (!oos_scan_string(&r->scan, &raw)) return 0;
    for (size_t i = 0; i < count; i++)
        if (words[i] && oos_view_is(raw, words[i])) return i;
    object_to(r, "a word is none of those that are known");
    return 0;
}

static uint64_t set_of(reading *r, const char *const *words, size_t count)
{
    uint64_t set = 0;
    if (!oos_scan_open(&r->scan, '[')) return 0;
    while (oos_scan_item(&r->scan)) {
        uint64_t const bit = (uint64_t)1 << one_of(r, words, count);
        if (set & bit) object_to(r, "a word stands in a list twice");
        set |= bit;
    }
    return r->scan.failed ? 0 : set;
}

static oos_said said(reading *r)
{
    oos_said both = {0};
    oos_view key;
    if (!oos_scan_open(&r->scan, '{')) return both;
    while (oos_scan_key(&r->scan, &key)) {
        const char **place = oos_view_is(key, "en") ? &both.en : oos_view_is(key, "zh") ? &both.zh : NULL;
        if (!place || *place)
            object_to(r, "a sentence has en and zh, once each");
        else
            *place = text(r, SENTENCE_MAX);
    }
    if (!both.en || !both.zh) object_to(r, "a sentence has en and zh, once each");
    return both;
}

static oos_version version(reading *r)
{
    oos_version const found = oos_version_scan(&r->scan);
    if (!found) object_to(r, "a release is written as 0.19.1");
    return found;
}

static void useless_read(reading *r, oos_lever_record *lever)
{
    oos_view key;
    if (!oos_scan_open(&r->scan, '{')) return;
    while (oos_scan_key(&r->scan, &key)) {
        if (oos_view_is(key, "phases"))
            lever->useless_phases = set_of(r, oos_phase_words, OOS_PHASE_COUNT);
        else if (oos_view_is(key, "causes"))
            lever->useless_causes = set_of(r, oos_cause_words, OOS_CAUSE_COUNT);
        else if (oos_view_is(key, "unless"))
            lever->unless = set_of(r, oos_cause_words, OOS_CAUSE_COUNT);
        else if (oos_view_is(key, "why"))
            lever->useless_why = said(r);
        else
            object_to(r, "'useless' has phases, causes, unless and why");
    }
    if (!lever->useless_why.en) object_to(r, "'useless' says why");
}

/* One field; each stands once. */
enum {
    SEEN_ID = 1,
    SEEN_RUNG = 2,
    SEEN_MOVE = 4,
    SEEN_COST = 8,
    SEEN_FREES = 16,
    SEEN_PHASES = 32,
    SEEN_NEEDED = 63,
    SEEN_FLAG = 64,
    SEEN_VARIABLE = 128,
    SEEN_ACTION = 256,
    SEEN_GIVEN = 512,
    SEEN_VALUE = 1024,
    SEEN_SINCE = 2048,
    SEEN_UNTIL = 4096,
    SEEN_USELESS = 8192,
    SEEN_BEGIN = 16384,
    SEEN_WHY = 32768,
    SEEN_STEP = 65536,
    SEEN_ROLE = 131072,
    SEEN_BEFORE = 262144
};
static const struct {
    const char *key;
    unsigned bit;
} fields[] = {
    {"id", SEEN_ID},         {"rung", SEEN_RUNG},       {"move", SEEN_MOVE},    {"cost", SEEN_COST},
    {"frees", SEEN_FREES},   {"phases", SEEN_PHASES},   {"flag", SEEN_FLAG},    {"variable", SEEN_VARIABLE},
    {"action", SEEN_ACTION}, {"given", SEEN_GIVEN},     {"value", SEEN_VALUE},  {"since", SEEN_SINCE},
    {"until", SEEN_UNTIL},   {"useless", SEEN_USELESS}, {"begin", SEEN_BEGIN},  {"why", SEEN_WHY},
    {"step", SEEN_STEP},     {"role", SEEN_ROLE},       {"before", SEEN_BEFORE}};

static unsigned field_of(oos_view key)
{
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        if (oos_view_is(key, fields[i].key)) return fields[i].bit;
    return 0;
}

static void field_read(reading *r, unsigned field, oos_lever_record *lever)
{
    switch (field) {
    case SEEN_ID: lever->id = text(r, WORD_MAX); break;
    case SEEN_RUNG: lever->rung = (oos_rung)one_of(r, rung_words, COUNT_OF(rung_words)); break;
    case SEEN_GIVEN: lever->given = (oos_rung)one_of(r, rung_words, COUNT_OF(rung_words)); break;
    case SEEN_BEFORE: lever->before = (oos_rung)one_of(r, rung_words, COUNT_OF(rung_words)); break;
    case SEEN_MOVE: lever->move = (oos_move)one_of(r, move_words, COUNT_OF(move_words)); break;
    case SEEN_COST: lever->cost = said(r); break;
    case SEEN_FREES: lever->owners = set_of(r, oos_owner_words, OOS_OWNER_COUNT); break;
    case SEEN_PHASES: lever->phases = set_of(r, oos_phase_words, OOS_PHASE_COUNT); break;
    case SEEN_FLAG: lever->flag = text(r, WORD_MAX); break;
    case SEEN_VARIABLE: lever->variable = text(r, WORD_MAX); break;
    case SEEN_ACTION: lever->action = said(r); break;
    case SEEN_VALUE: lever->value = text(r, WORD_MAX); break;
    case SEEN_BEGIN: lever->begin = text(r, WORD_MAX); break;
    case SEEN_STEP:
        if (oos_scan_u64(&r->scan, &lever->step) && lever->step == 0)
            object_to(r, "a lever has a step of nothing");
        break;
    case SEEN_ROLE: lever->role = (oos_role)one_of(r, oos_role_words, OOS_ROLE_COUNT); break;
    case SEEN_WHY: lever->why = said(r); break;
    case SEEN_SINCE: lever->since = version(r); break;
    case SEEN_UNTIL: lever->until = version(r); break;
    case SEEN_USELESS: useless_read(r, lever); break;
    default: object_to(r, "a lever has an unknown field"); break;
    }
}

static void lever_check(reading *r, const oos_lever_record *lever, unsigned seen)
{
    int const places = !!(seen & SEEN_FLAG) + !!(seen & SEEN_VARIABLE) + !!(seen & SEEN_ACTION);
    if ((seen & SEEN_NEEDED) != SEEN_NEEDED)
        object_to(r, "a lever has an id, a rung, a move, what it frees, phases and a cost");
    else if (places != 1 || (lever->move == OOS_MOVE_DO) != !!(seen & SEEN_ACTION))
        object_to(r, "a lever is a flag, a variable, or something to do");
    else if (lever->phases & lever->useless_phases)
        object_to(r, "a lever helps in a phase in which it is useless");
    else if (lever->since > lever->until)
        object_to(r, "a lever ends before it begins");
    else if (lever->given < lever->rung)
        object_to(r, "a requested setting is lost more easily than one that is not requested");
}

static void lever_read(reading *r, oos_lever_record *lever)
{
    unsigned seen = 0;
    oos_view key;
    *lever = (oos_lever_record){.until = UINT64_MAX, .before = OOS_RUNG_COUNT};
    if (!oos_scan_open(&r->scan, '{')) return;
    while (oos_scan_key(&r->scan, &key)) {
        unsigned const field = field_of(key);
        if (seen & field) object_to(r, "a field stands in a lever twice");
        seen |= field;
        if (!r->scan.failed) field_read(r, field, lever);
    }
    if (!(seen & SEEN_GIVEN)) lever->given = lever->rung;
    if (!r->scan.failed) lever_check(r, lever, seen);
}

static void levers_read(reading *r, oos_ladder *ladder)
{
    if (!oos_scan_open(&r->scan, '[')) return;
    while (oos_scan_item(&r->scan)) {
        if (ladder->count == OOS_LADDER_MAX) {
            object_to(r, "there are too many levers");
            return;
        }
        oos_lever_record *lever = &ladder->list[ladder->count];
        lever_read(r, lever);
        if (r->scan.failed) return;
        if (ladder->count && lever->rung < lever[-1].rung)
            object_to(r, "levers are not in the order of rungs");
        if (oos_ladder_find(ladder, lever->id)) object_to(r, "a lever is there twice");
        ladder->count++;
    }
}

static void ladder_read(reading *r, const char *engine, oos_ladder *ladder)
{
    oos_view key, word;
    bool schema = false, named = false;
    if (!oos_scan_open(&r->scan, '{')) return;
    while (oos_scan_key(&r->scan, &key)) {
        if (oos_view_is(key, "schema") && oos_scan_string(&r->scan, &word))
            schema = oos_view_is(word, "oomsight.levers/1");
        else if (oos_view_is(key, "engine") && oos_scan_string(&r->scan, &word))
            named = oos_view_is(word, engine);
        else if (oos_view_is(key, "levers") && ladder->count == 0)
            levers_read(r, ladder);
        else
            object_to(r, "a ladder has a schema, an engine and levers");
    }
    if (!r->scan.failed && (!schema || !named || ladder->count == 0))
        object_to(r, "a ladder has a schema, an engine and levers");
}

oomsight_status oos_ladder_read(oos_arena *arena, oos_view bytes, const char *engine,
                                const oos_ladder **ret_ladder, oomsight_error *reterr)
{
    oos_ladder *ladder = OOS_NEW(arena, oos_ladder);
    reading r = {.arena = arena, .scan = oos_scan_begin(bytes), .no_memory = !ladder};
    if (ladder) ladder_read(&r, engine, ladder);
    if (r.no_memory) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the levers");
    if (!oos_scan_done(&r.scan))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "levers.json of %s: %s (byte %zu)", engine,
                        r.problem ? r.problem : "not the JSON that is expected",
                        (size_t)(r.scan.at - r.scan.start));
    *ret_ladder = ladder;
    return OOMSIGHT_OK;
}

oomsight_status oos_ladder_load(oos_arena *arena, const char *data_dir, const char *engine,
                                const oos_ladder **ret_ladder, oomsight_error *reterr)
{
    const char *path = oos_arena_format(arena, "engines/%s/levers.json", engine);
    oos_view bytes;
    if (!path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the levers");
    OOS_TRY(oos_data_read(arena, data_dir, path, &bytes, reterr));
    return oos_ladder_read(arena, bytes, engine, ret_ladder, reterr);
}

const oos_lever_record *oos_ladder_find(const oos_ladder *ladder, const char *id)
{
    for (size_t i = 0; i < ladder->count; i++)
        if (strcmp(ladder->list[i].id, id) == 0) return &ladder->list[i];
    return NULL;
}

bool oos_lever_here(const oos_lever_record *lever, oos_version version)
{
    return lever->since <= version && version <= lever->until;
}

unsigned oos_lever_loss(const oos_ladder *ladder, const oos_lever_record *lever, bool given)
{
    unsigned const at = (unsigned)(lever - ladder->list) + 1;
    if (lever->before < OOS_RUNG_COUNT) return lever->before * (OOS_LADDER_MAX + 1);
    return (given ? lever->given : lever->rung) * (OOS_LADDER_MAX + 1) + at;
}

char oos_rung_letter(oos_rung rung)
{
    return rung < OOS_RUNG_COUNT ? *rung_words[rung] : '?';
}

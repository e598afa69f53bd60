/* The order is that of trust: what is known of this signature, then of the other causes that the text allows, then what the ladder says
 * of the phase, rung by rung. What helps is never also said not to. */
#include "explain/explain.h"
#include "base/ascii.h"
#include "base/json.h"
#include "base/locale.h"
#include "facts/facts.h"

#include <string.h>

enum { LIST_MAX = OOS_FIXES_MAX > OOS_DEAD_ENDS_MAX ? OOS_FIXES_MAX : OOS_DEAD_ENDS_MAX };

typedef struct advice_list {
    oos_advice shown[LIST_MAX], meant[LIST_MAX]; /* as it is told, and as it stands in the data */
    size_t count, most;
} advice_list;

typedef struct adviser {
    oos_arena *arena;
    const oos_advisers *of;
    const oos_incident *incident;
    const oos_engine_words *engine; /* NULL: one without a ladder */
    const oos_ladder *ladder;       /* of that engine */
    bool guessed;                   /* nothing names the engine */
    oos_version low, high;          /* its release lies between them */
    oos_signal_set shown;           /* what the text and its figures show */
    advice_list fixes, dead_ends;
} adviser;

/* ---- counts */

static oomsight_status tried_read(oos_arena *arena, const json_t *rows, oos_advisers *advisers,
                                  oomsight_error *reterr)
{
    size_t count = 0;
    json_t *pair;
    const char *lever;
    for (size_t i = 0; i < json_array_size(rows); i++)
        count += json_object_size(json_object_get(json_array_get(rows, i), "levers"));
    oos_tried *list = OOS_NEW_ARRAY(arena, oos_tried, count ? count : 1);
    if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the counts of advice");
    advisers->tried = list;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        oos_phase_set phases;
        OOS_TRY(oos_stages_read(json_object_get(row, "phases"), &phases, reterr));
        json_object_foreach(json_object_get(row, "levers"), lever, pair)
        {
            json_int_t const worked = json_integer_value(json_array_get(pair, 0)),
                             in_vain = json_integer_value(json_array_get(pair, 1));
            if (json_array_size(pair) != 2 || worked < 0 || in_vain < 0)
                return oos_fail(reterr, OOMSIGHT_MALFORMED, "counts of '%s': worked and in vain", lever);
            list[advisers->tried_count++] = (oos_tried){lever, phases, (uint64_t)worked, (uint64_t)in_vain};
        }
    }
    return OOMSIGHT_OK;
}

static oomsight_status spent_read(oos_arena *arena, const json_t *rows, const oos_signals *signals,
                                  oos_advisers *advisers, oomsight_error *reterr)
{
    size_t const count = json_array_size(rows);
    oos_spent *list = OOS_NEW_ARRAY(arena, oos_spent, count ? count : 1);
    if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the counts of advice");
    for (size_t i = 0; i < count; i++) {
        const json_t *row = json_array_get(rows, i), *why = json_object_get(row, "why");
        const char *until;
        OOS_TRY(oos_stages_read(json_object_get(row, "phases"), &list[i].phases, reterr));
        OOS_TRY(oos_condition_read(signals, row, &list[i].when, reterr));
        if (!oos_json_str(row, "engine", &list[i].engine) || !oos_json_str(row, "lever", &list[i].lever) ||
            !oos_json_str(row, "until", &until) || !oos_version_parse(oos_view_of(until), &list[i].until) ||
            !oos_json_str(why, "en", &list[i].why.en) || !oos_json_str(why, "zh", &list[i].why.zh))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "advice: a lever is spent until a release, and why");
    }
    advisers->spent = list;
    advisers->spent_count = count;
    return OOMSIGHT_OK;
}

static oomsight_status named_read(oos_arena *arena, const json_t *rows, oos_advisers *advisers,
                                  oomsight_error *reterr)
{
    const char *role;
    for (size_t i = 0; i < json_array_size(rows) && i < OOS_NAMED_MAX; i++) {
        const json_t *row = json_array_get(rows, i), *values = json_object_get(row, "values");
        const char **list = OOS_NEW_ARRAY(arena, const char *, json_array_size(values) + 1);
        oos_named *named = &advisers->named[advisers->named_count++];
        *named = (oos_named){.values = list, .value_count = json_array_size(values)};
        if (!list) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the words of advice");
        if (!oos_json_str(row, "change", &named->change) || !oos_json_str(row, "role", &role))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "advice: words and what they are");
        for (size_t k = 1; k < OOS_ROLE_COUNT; k++)
            if (strcmp(role, oos_role_words[k]) == 0) named->role = (oos_role)k;
        oos_json_str(row, "flag", &named->flag);
        const char *counted = "", *part = "";
        oos_json_str(row, "counts", &counted);
        oos_json_str(row, "part", &part);
        oos_json_str(row, "cause", &named->cause);
        oos_json_bool(row, "rises", &named->rises);
        oos_json_bool(row, "each", &named->each);
        named->count = oos_number_find(counted, strlen(counted));
        named->part = oos_number_find(part, strlen(part));
        named->step = (uint64_t)json_integer_value(json_object_get(row, "step"));
        if (named->role == OOS_ROLE_part &&
            (named->count == OOS_NUMBER_COUNT || named->part == OOS_NUMBER_COUNT || !named->step ||
             !named->cause))
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "advice: '%s' counts what, and is part of what",
                            named->change);
        for (size_t k = 0; k < named->value_count; k++)
            if (!(list[k] = json_string_value(json_array_get(values, k))))
                return oos_fail(reterr, OOMSIGHT_MALFORMED, "advice: a value is a word");
    }
    const oos_named *checkpoint = oos_advice_named(advisers, OOS_ROLE_checkpoint),
                    *segments = oos_advice_named(advisers, OOS_ROLE_segments);
    if (!checkpoint || !checkpoint->flag || !segments || !segments->flag)
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "advice: a checkpoint and segments, with their flags");
    return OOMSIGHT_OK;
}

oomsight_status oos_advisers_load(oos_arena *arena, const char *data_dir, const oos_signals *signals,
                                  oos_advisers *ret_advisers, oomsight_error *reterr)
{
    json_t *root;
    *ret_advisers = (oos_advisers){0};
    for (size_t i = 0; i < OOS_ENGINE_COUNT; i++)
        OOS_TRY(
            oos_ladder_load(arena, data_dir, oos_engine_list[i]->name, &ret_advisers->ladders[i], reterr));
    OOS_TRY(oos_data_json(arena, data_dir, "explain/advice.json", &root, reterr));
    OOS_TRY(named_read(arena, json_object_get(root, "named"), ret_advisers, reterr));
    OOS_TRY(tried_read(arena, json_object_get(root, "tried"), ret_advisers, reterr));
    return spent_read(arena, json_object_get(root, "spent"), signals, ret_advisers, reterr);
}

/* Of one phase, or with OOS_PHASE_COUNT of all. */
static oos_tried tried(const oos_advisers *of, const char *lever, oos_phase phase)
{
    oos_tried sum = {0};
    for (size_t i = 0; i < of->tried_count; i++) {
        const oos_tried *row = &of->tried[i];
        if (strcmp(row->lever, lever) != 0 || (phase != OOS_PHASE_COUNT && !(row->phases >> phase & 1)))
            continue;
        sum.worked += row->worked;
        sum.in_vain += row->in_vain;
    }
    return sum;
}

/* ---- whether two speak of the same */

enum { UP = 1, DOWN = 2 };

/* Where a share of the device is moved. */
static unsigned way_of(const oos_advice *advice)
{
    const char *first = advice->change[0], *second = advice->change_count > 1 ? advice->change[1] : "";
    if (strstr(first, "higher") || strstr(second, OOS_ADVICE_HIGHER) || strcmp(second, "0.95") == 0 ||
        strcmp(second, OOS_ADVICE_LEAST) == 0)
        return UP;
    if (strstr(first, "lower") || *second) return DOWN;
    return UP | DOWN;
}

/* Up to what is set: of an action its first words. */
static size_t name_length(const char *word)
{
    size_t const len = strcspn(word, "= ");
    return word[0] == '-' || word[len] == '=' ? len : strlen(word);
}

const oos_named *oos_advice_named(const oos_advisers *advisers, oos_role role)
{
    for (size_t i = 0; i < advisers->named_count; i++)
        if (advisers->named[i].role == role) return &advisers->named[i];
    return NULL;
}

const oos_named *oos_advice_change(const oos_advisers *advisers, const char *change)
{
    for (size_t i = 0; i < advisers->named_count; i++)
        if (strcmp(advisers->named[i].change, change) == 0) return &advisers->named[i];
    return NULL;
}

oos_role oos_advice_role(const oos_advisers *advisers, const oos_ladder *ladder, const char *change)
{
    size_t const len = name_length(change);
    for (size_t i = 0; ladder && i < ladder->count; i++) {
        const char *flag = ladder->list[i].flag;
        if (ladder->list[i].role && flag && strlen(flag) == len && memcmp(flag, change, len) == 0)
            return ladder->list[i].role;
    }
    const oos_named *named = oos_advice_change(advisers, change);
    return named ? named->role : OOS_ROLE_NONE;
}

static oos_role role_of(const adviser *a, const char *change)
{
    return oos_advice_role(a->of, a->ladder, change);
}

static bool is_share(oos_role role)
{
    return role == OOS_ROLE_share || role == OOS_ROLE_static_share;
}

/* Both as they stand in the data, before a value is filled in. */
static bool same(const adviser *a, const oos_advice *one, const oos_advice *other)
{
    const char *first = one->change[0], *second = other->change[0];
    size_t const len = name_length(first);
    if (len != name_length(second) || memcmp(first, second, len) != 0) return false;
    oos_role const role = role_of(a, first);
    if (is_share(role)) return way_of(one) & way_of(other);
    if (one->change_count < 2 || other->change_count < 2) return true;
    /* One flag that holds many settings, and one that the engine may fill in. */
    bool const many = role == OOS_ROLE_settings || strcmp(one->change[1], "auto") == 0 ||
                      strcmp(other->change[1], "auto") == 0;
    return !many || strcmp(one->change[1], other->change[1]) == 0;
}

static bool holds(const adviser *a, const advice_list *list, const oos_advice *advice)
{
    for (size_t i = 0; i < list->count; i++)
        if (same(a, &list->meant[i], advice)) return true;
    return false;
}

/* ---- one more */

/* By the version that the log names, or by the shape of its lines. */
static void find_release(adviser *a)
{
    enum { LAST_OLD, FIRST_V1, EARLY, SHAPES };
    static const char *const releases[SHAPES] = {"0.7.3", "0.8.0", "0.10.0"};
    oos_version known[SHAPES] = {0};
    const oos_incident *incident = a->incident;
    a->low = 0;
    a->high = UINT64_MAX;
    if (incident->setup.version && oos_version_parse(oos_view_of(incident->setup.version), &a->low)) {
        a->high = a->low;
        return;
    }
    for (size_t i = 0; i < SHAPES; i++) oos_version_parse(oos_view_of(releases[i]), &known[i]);
    if (incident->old_shape) a->high = known[LAST_OLD];
    if (incident->v1 || incident->v1_early) a->low = known[FIRST_V1];
    if (incident->v1_early) a->high = known[EARLY];
}

/* The engine of this log has what the advice names, or may have it. */
static bool is_there(const adviser *a, const oos_advice *advice)
{
    oos_version bound;
    if (!oos_condition_holds(&advice->when, &a->shown)) return false;
    if (advice->since && oos_version_parse(oos_view_of(advice->since), &bound) && a->high < bound)
        return false;
    if (!advice->until || !oos_version_parse(oos_view_of(advice->until), &bound)) return true;
    return advice->only_known ? a->high < bound : a->low < bound;
}

/* A flag, and none of the container's. */
static bool is_engine_flag(const char *change)
{
    return strncmp(change, "--", 2) == 0 && strncmp(change, "--shm-size", 10) != 0 &&
           strncmp(change, "--ipc", 5) != 0;
}

/* A record of a layer below the engines may name the default engine's flags: they are nothing to another program. */
static bool is_foreign(const adviser *a, const oos_advice *advice, const char *of)
{
    const char *engine = a->incident->engine;
    if (a->guessed || !is_engine_flag(advice->change[0])) return false;
    return a->engine != oos_engine_default && (!engine || strncmp(of, engine, strlen(engine)) != 0);
}

static void put(const adviser *a, advice_list *list, const oos_advice *meant, const oos_advice *shown)
{
    const char **words = OOS_NEW_ARRAY(a->arena, const char *, meant->change_count);
    if (!words || list->count == list->most) return;
    oos_advice told = *shown;
    for (size_t i = 0; i < told.change_count; i++) words[i] = told.change[i];
    if (a->guessed &&
        is_engine_flag(meant->change[0])) { /* to be pasted by who knows that it is this engine */
        words[0] = oos_arena_format(a->arena, "in %s: %s%s%s", oos_engine_default->title, words[0],
                                    told.change_count > 1 ? " " : "", told.change_count > 1 ? words[1] : "");
        if (!words[0]) return;
        told.change_count = 1;
    }
    told.change = words;
    list->meant[list->count] = *meant;
    list->shown[list->count++] = told;
}

/* What is of no use; `why` NULL: as the advice itself says. */
static void add_dead_end(adviser *a, const oos_advice *advice, const char *of, const oos_sentence *why)
{
    if (!is_there(a, advice) || is_foreign(a, advice, of) || holds(a, &a->fixes, advice) ||
        holds(a, &a->dead_ends, advice))
        return;
    oos_advice shown = *advice;
    if (why) shown.why = *why;
    shown.cost = (oos_sentence){0};
    put(a, &a->dead_ends, advice, &shown);
}

/* The flag alone: what the figures refute is not a value of it. */
static void refute(adviser *a, const oos_advice *advice, const char *of, const oos_settled *settled)
{
    oos_sentence const why = {oos_arena_format(a->arena, "%s", settled->why),
                              oos_arena_format(a->arena, "%s", settled->why_zh)};
    const char *flag = advice->change[0];
    if (is_share(role_of(a, flag)))
        flag = oos_arena_format(a->arena, "%s (%s)", flag, way_of(advice) == UP ? "higher" : "lower");
    const char **words = OOS_NEW_ARRAY(a->arena, const char *, 1);
    if (!why.en || !why.zh || !flag || !words) return;
    words[0] = flag;
    oos_advice bare = *advice;
    bare.change = words;
    bare.change_count = 1;
    bare.evidence = "the figures of this log";
    add_dead_end(a, &bare, of, &why);
}

/* The one that everybody tries: named as useless wherever the figures say so. */
static void refute_segments(adviser *a)
{
    oos_advice const advice = {.change = &oos_advice_named(a->of, OOS_ROLE_segments)->change,
                               .change_count = 1};
    oos_settled const settled = oos_advice_settle(a->of, a->ladder, &advice, a->incident);
    if (settled.fate == OOS_ADVICE_DROPPED && *settled.why) refute(a, &advice, "pytorch", &settled);
}

/* The log shows it in use already, or a value that is further on the way. */
static bool is_in_use(const adviser *a, const oos_advice *advice, const char *const *words)
{
    const oos_setup_text *setup = &a->incident->setup;
    const char *flag = words[0], *value = words[1];
    unsigned ways = is_share(role_of(a, flag)) ? way_of(advice) : 0;
    double now;
    char *end;
    if (flag[0] != '-') return strchr(flag, '=') && oos_holds(setup->command, flag);
    if (!value) return oos_setup_on(setup, flag);
    double const then = oos_real_read(value, &end);
    if (end == value || *end) return oos_setup_has(setup, flag, value);
    if (!oos_setup_value(setup, flag, &now)) return false;
    for (size_t i = 0; !ways && a->ladder && i < a->ladder->count; i++) {
        const oos_lever_record *lever = &a->ladder->list[i];
        if (lever->flag && strcmp(lever->flag, flag) == 0)
            ways = lever->move == OOS_MOVE_RAISE ? UP : lever->move == OOS_MOVE_LOWER ? DOWN : 0;
    }
    return !(then < now || then > now) || (then < now && ways == UP) || (then > now && ways == DOWN);
}

static void add_fix(adviser *a, const oos_advice *advice, const char *of)
{
    if (!is_there(a, advice) || is_foreign(a, advice, of) || holds(a, &a->fixes, advice) ||
        holds(a, &a->dead_ends, advice))
        return;
    oos_settled const settled = oos_advice_settle(a->of, a->ladder, advice, a->incident);
    if (settled.fate == OOS_ADVICE_DROPPED) {
        if (*settled.why) refute(a, advice, of, &settled);
        return;
    }
    oos_advice shown = *advice;
    const char *words[2] = {advice->change[0], advice->change_count > 1 ? advice->change[1] : NULL};
    if (settled.fate == OOS_ADVICE_FILLED) words[1] = oos_arena_format(a->arena, "%s", settled.value);
    if (words[0] && advice->change_count <= 2 && is_in_use(a, advice, words)) return;
    size_t const way = words[1] ? strcspn(words[1], ",") : 0; /* "lower", or "lower, by 0.05" */
    bool const vague = (way == strlen(OOS_ADVICE_LOWER) && memcmp(words[1], OOS_ADVICE_LOWER, way) == 0) ||
                       (way == strlen(OOS_ADVICE_HIGHER) && memcmp(words[1], OOS_ADVICE_HIGHER, way) == 0);
    if (vague)
        words[0] = oos_arena_format(a->arena, "a %.*s %s%s", (int)way, words[1], words[0], words[1] + way);
    bool const variable = words[0] && words[0][0] >= 'A' && words[0][0] <= 'Z' && strchr(words[0], '_');
    if (variable && words[1] && !vague) words[0] = oos_arena_format(a->arena, "%s=%s", words[0], words[1]);
    if (advice->change_count <= 2) {
        shown.change = words;
        if (vague || variable) shown.change_count = 1;
    }
    if (words[0] && (shown.change_count < 2 || words[1])) put(a, &a->fixes, advice, &shown);
}

/* ---- the ladder */

static uint64_t cause_bit(const char *word)
{
    for (oos_cause cause = OOS_CAUSE_NONE + 1; cause < OOS_CAUSE_COUNT; cause++)
        if (strcmp(oos_cause_word(cause), word) == 0) return (uint64_t)1 << cause;
    return 0;
}

static bool is_possible(const oos_incident *incident, const char *cause)
{
    bool found = strcmp(incident->cause, cause) == 0;
    for (size_t i = 0; i < incident->also_count; i++) found |= strcmp(incident->also[i], cause) == 0;
    return found;
}

/* A value to begin with, where the log has none to compute one from: else a direction. */
static const char *first_value(const oos_lever_record *lever)
{
    if (lever->begin) return lever->begin;
    if (lever->move == OOS_MOVE_RAISE) return OOS_ADVICE_HIGHER;
    return lever->move == OOS_MOVE_LOWER ? OOS_ADVICE_LOWER : lever->value;
}

/* Only where the log has what it changes; images only where they are in question. */
static bool is_relevant(const adviser *a, const oos_lever_record *lever)
{
    oos_advice const checkpoint = {.change = &oos_advice_named(a->of, OOS_ROLE_checkpoint)->change,
                                   .change_count = 1};
    if (lever->move == OOS_MOVE_DO) return strcmp(lever->id, "checkpoint") == 0;
    if (lever->variable) return true;
    bool const named = oos_setup_names(&a->incident->setup, lever->flag);
    if (lever->role == OOS_ROLE_asked) return named;
    if (lever->role == OOS_ROLE_images)
        return a->incident->phase == OOS_PHASE_MM_PROFILE || is_possible(a->incident, "mm_encoder_peak");
    if (lever->role == OOS_ROLE_weights)
        return !named &&
               oos_advice_settle(a->of, a->ladder, &checkpoint, a->incident).fate != OOS_ADVICE_DROPPED;
    return lever->move != OOS_MOVE_DROP || named;
}

/* A lever in the form of the knowledge base; false: without memory. */
static bool advice_of(const adviser *a, const oos_lever_record *lever, oos_advice *ret_advice)
{
    const char **words = OOS_NEW_ARRAY(a->arena, const char *, 2);
    if (!words) return false;
    *ret_advice = (oos_advice){.change = words,
                               .change_count = 1,
                               .why = {lever->why.en, lever->why.zh},
                               .cost = {lever->cost.en, lever->cost.zh},
                               .evidence = "the ladder of levers"};
    if (lever->move == OOS_MOVE_DO)
        words[0] = oos_advice_named(a->of, OOS_ROLE_checkpoint)->change;
    else if (lever->variable)
        words[0] = oos_arena_format(a->arena, "%s=%s", lever->variable, lever->value ? lever->value : "");
    else if (lever->move == OOS_MOVE_DROP)
        words[0] = oos_arena_format(a->arena, "drop %s", lever->flag);
    else if (lever->move == OOS_MOVE_SET && lever->value && strncmp(lever->value, "--", 2) == 0)
        words[0] = lever->value;
    else {
        words[0] = lever->flag;
        words[1] = first_value(lever);
        ret_advice->change_count = words[1] ? 2 : 1;
    }
    return words[0] && ret_advice->why.en;
}

static const oos_spent *spent(const adviser *a, const oos_lever_record *lever)
{
    for (size_t i = 0; i < a->of->spent_count; i++) {
        const oos_spent *one = &a->of->spent[i];
        if (strcmp(one->lever, lever->id) == 0 && strcmp(one->engine, a->engine->name) == 0 &&
            one->phases >> a->incident->phase & 1 && a->high <= one->until &&
            oos_condition_holds(&one->when, &a->shown))
            return one;
    }
    return NULL;
}

/* Where the memory is not the engine's to share out, none of its levers is one. */
static bool is_engines(const char *cause)
{
    static const char *const others[] = {"other_process_holds_memory",
                                         "stale_process_or_leftover",
                                         "host_ram",
                                         "shm_too_small",
                                         "nccl_buffers",
                                         "unified_memory_accounting",
                                         "profiling_accounting_bug",
                                         "driver_or_env_mismatch",
                                         "device_unavailable",
                                         "sleep_wake_competitor"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(cause, others[i]) == 0) return false;
    return true;
}

typedef struct choice {
    const oos_lever_record *lever;
    unsigned rung;
    uint64_t votes;
} choice;

static void insert(choice *list, size_t *count, choice one)
{
    size_t at = (*count)++;
    for (; at && (list[at - 1].rung > one.rung ||
                  (list[at - 1].rung == one.rung && list[at - 1].votes < one.votes));
         at--)
        list[at] = list[at - 1];
    list[at] = one;
}

#define SURE 0.5
#define DOUBTED 0.8

/* `own`: of the record of the cause itself, which knows better where the cause is as doubtful as not. */
static bool is_useless(const oos_lever_record *lever, const oos_incident *incident, bool own)
{
    bool const here =
        lever->useless_phases >> incident->phase & 1 && !(lever->unless & cause_bit(incident->cause));
    return (incident->phase_sure >= SURE && here) ||
           (incident->cause_sure >= SURE && !(own && incident->cause_sure <= SURE) &&
            lever->useless_causes & cause_bit(incident->cause));
}

static unsigned rung_of(const adviser *a, const oos_lever_record *lever)
{
    return lever->flag && oos_setup_names(&a->incident->setup, lever->flag) ? lever->given : lever->rung;
}

/* Where the weights themselves are too large, nothing else helps. */
static bool are_weights(const char *cause)
{
    return strcmp(cause, "weights_exceed_gpu") == 0 || strcmp(cause, "tp_needed") == 0;
}

/* Another checkpoint, more devices, much speed: after everything else that helps. */
static bool is_last_resort(const adviser *a, const oos_advice *advice)
{
    const char *first = advice->change[0];
    if (are_weights(a->incident->cause)) return false;
    for (size_t i = 0; a->ladder && i < a->ladder->count; i++) {
        const oos_lever_record *lever = &a->ladder->list[i];
        if (lever->flag && strcmp(first, lever->flag) == 0) return lever->rung == OOS_RUNG_ELSEWHERE;
    }
    return role_of(a, first) == OOS_ROLE_checkpoint;
}

/* Refuted for the cause that was found, by every lever of that name: no other cause that is possible brings it back. Variables are
 * PyTorch's: the usual ladder speaks for who has none. */
static bool is_refuted(const adviser *a, const oos_advice *advice, bool own)
{
    const oos_ladder *ladder = a->ladder ? a->ladder : a->of->ladders[OOS_ENGINE_DEFAULT];
    const char *first = advice->change[0];
    bool refuted = false;
    for (size_t i = 0; i < ladder->count; i++) {
        const oos_lever_record *lever = &ladder->list[i];
        const char *name = lever->flag ? lever->flag : lever->variable;
        if (!name || strlen(name) != name_length(first) || strncmp(first, name, strlen(name)) != 0) continue;
        if (is_share(lever->role) && way_of(advice) != (lever->move == OOS_MOVE_RAISE ? UP : DOWN)) continue;
        if (lever->since > a->high || lever->until < a->high || lever->move == OOS_MOVE_DROP) continue;
        if (!is_useless(lever, a->incident, own)) return false;
        refuted = true;
    }
    return refuted;
}

/* Rung by rung; in a rung what more people report as the cure. */
static void climb(adviser *a, bool last_resort)
{
    const oos_incident *incident = a->incident;
    choice list[OOS_LADDER_MAX];
    size_t count = 0;
    for (size_t i = 0; i < a->ladder->count; i++) {
        const oos_lever_record *lever = &a->ladder->list[i];
        if (lever->since > a->high || lever->until < a->high || !(lever->phases >> incident->phase & 1) ||
            lever->useless_causes & cause_bit(incident->cause) || !is_relevant(a, lever) || spent(a, lever))
            continue;
        unsigned const rung = rung_of(a, lever);
        oos_tried const by = tried(a->of, lever->id, incident->phase);
        if ((rung == OOS_RUNG_ELSEWHERE) == last_resort)
            insert(list, &count, (choice){lever, rung, oos_sub(by.worked, by.in_vain)});
    }
    oos_advice advice;
    /* The last resort is for who has little else to try. */
    enum { ENOUGH = 6 };
    for (size_t i = 0; i < count && !(last_resort && a->fixes.count >= ENOUGH); i++)
        if (advice_of(a, list[i].lever, &advice)) add_fix(a, &advice, a->engine->name);
}

/* What people try most in vain comes first. */
static void warn(adviser *a)
{
    choice list[OOS_LADDER_MAX];
    size_t count = 0;
    for (size_t i = 0; i < a->ladder->count; i++) {
        const oos_lever_record *lever = &a->ladder->list[i];
        if (lever->flag && lever->move != OOS_MOVE_DROP && is_relevant(a, lever) &&
            (is_useless(lever, a->incident, false) || spent(a, lever)))
            insert(list, &count, (choice){lever, 0, tried(a->of, lever->id, OOS_PHASE_COUNT).in_vain});
    }
    for (size_t i = 0; i < count; i++) {
        const oos_lever_record *lever = list[i].lever;
        const oos_spent *before = spent(a, lever);
        oos_sentence const why =
            before ? before->why : (oos_sentence){lever->useless_why.en, lever->useless_why.zh};
        const char **words = OOS_NEW_ARRAY(a->arena, const char *, 1);
        if (!words) return;
        words[0] = !is_share(lever->role)
                       ? lever->flag
                       : oos_arena_format(a->arena, "%s (%s)", lever->flag,
                                          lever->move == OOS_MOVE_RAISE ? "higher" : "lower");
        if (words[0])
            add_dead_end(
                a, &(oos_advice){.change = words, .change_count = 1, .evidence = "the ladder of levers"},
                a->engine->name, &why);
    }
}

/* ---- all of it */

typedef struct turn {
    bool first;       /* the record of the cause itself: what does not help is that of this one alone */
    bool last_resort; /* what the first round left out */
    bool free;        /* only what costs nothing */
} turn;

static void take_record(adviser *a, const oos_kb_record *record, turn now)
{
    enum { OF_ANOTHER = 2 };
    size_t const most = now.first ? record->fix_count : oos_min(record->fix_count, OF_ANOTHER);
    for (size_t i = 0; i < most; i++)
        if (is_last_resort(a, &record->fixes[i]) == now.last_resort &&
            !(now.free && record->fixes[i].cost.en) && !is_refuted(a, &record->fixes[i], now.first))
            add_fix(a, &record->fixes[i], record->engine);
    for (size_t i = 0; now.first && i < record->dead_end_count; i++)
        add_dead_end(a, &record->dead_ends[i], record->engine, NULL);
}

static const oos_advice *keep(oos_arena *arena, const advice_list *list, size_t *ret_count)
{
    oos_advice *copy = list->count ? OOS_NEW_ARRAY(arena, oos_advice, list->count) : NULL;
    if (copy) memcpy(copy, list->shown, list->count * sizeof *copy);
    *ret_count = copy ? list->count : 0;
    return copy;
}

/* A failure whose last line is missing: what would help if it were memory. */
static bool may_be_memory(const oos_incident *incident)
{
    return incident->failed && incident->phase != OOS_PHASE_NOT_OOM && incident->phase != OOS_PHASE_UNKNOWN;
}

/* The record that speaks of `cause`; of an unknown engine first what vLLM's say. */
static void take_records(adviser *a, const oos_kb *kb, const char *cause, turn now)
{
    oos_incident other = *a->incident;
    other.cause = cause;
    other.is_oom = true;
    if (a->guessed) {
        other.engine = oos_engine_default->name;
        const oos_kb_record *record = oos_kb_match(kb, &other);
        if (record && strcmp(record->engine, other.engine) == 0) take_record(a, record, now);
        other.engine = a->incident->engine;
    }
    const oos_kb_record *record = oos_kb_match(kb, &other);
    if (record) take_record(a, record, now);
}

/* Whose ladder it is: vllm-ascend is vLLM too. */
static const oos_engine_words *engine_of(const char *name, bool guessed)
{
    for (size_t i = 0; name && !guessed && i < OOS_ENGINE_COUNT; i++)
        if (oos_engine_is(oos_engine_list[i], name)) return oos_engine_list[i];
    return guessed ? oos_engine_default : NULL;
}

void oos_advise(oos_arena *arena, const oos_advisers *advisers, const oos_kb *kb, oos_incident *incident)
{
    adviser a = {.arena = arena,
                 .of = advisers,
                 .incident = incident,
                 .fixes.most = OOS_FIXES_MAX,
                 .dead_ends.most = OOS_DEAD_ENDS_MAX};
    if (!incident->is_oom && !may_be_memory(incident)) return;
    a.guessed = !incident->program && (!incident->engine || strcmp(incident->engine, "pytorch") == 0);
    a.engine = engine_of(incident->engine, a.guessed);
    a.ladder = a.engine ? advisers->ladders[oos_engine_place(a.engine)] : NULL;
    a.shown = incident->signals;
    oos_facts_find(incident, &a.shown);
    find_release(&a);
    /* What the text shows beside the cause and what costs nothing to mend goes before a price. */
    for (size_t i = 0; i < incident->also_shown && incident->is_oom && !a.guessed; i++)
        take_records(&a, kb, incident->also[i], (turn){.free = true});
    for (int round = 0; round < 2; round++) {
        bool const last = round == 1;
        if (incident->is_oom)
            take_records(&a, kb, incident->cause, (turn){.first = true, .last_resort = last});
        /* A cause that is sure needs no others but those that the text shows; of an engine that is a guess, further ones are no advice. */
        size_t const also = incident->cause_sure < DOUBTED ? incident->also_count : incident->also_shown;
        for (size_t i = 0; i < also && !a.guessed; i++)
            take_records(&a, kb, incident->also[i],
                         (turn){.first = !incident->is_oom && i == 0, .last_resort = last});
        if (a.ladder && is_engines(incident->cause)) climb(&a, last);
    }
    refute_segments(&a);
    if (a.ladder && incident->phase != OOS_PHASE_HOST_MEMORY) warn(&a);
    incident->fixes = keep(arena, &a.fixes, &incident->fix_count);
    incident->dead_ends = keep(arena, &a.dead_ends, &incident->dead_end_count);
}

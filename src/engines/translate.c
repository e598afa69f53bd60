/* A command of one engine, said to another: data/engines/meanings.json has the flags that mean the same, what the other engine must be told
 * beside them, and the keys of a flag in JSON that are flags of their own there. */
#include "engines/engines.h"
#include "base/check.h"
#include "base/json.h"
#include "facts/facts.h"

#include <stdlib.h>
#include <string.h>

enum { MORE_MAX = 16 }; /* words that one flag can bring */

typedef struct work {
    oos_arena *arena;
    const json_t *table;
    const oos_engine *from, *to;
    const oos_serve *serve;
    const char **words, **left_out,
        **also; /* `also`: pairs that are said unless the command says otherwise */
    size_t count, left, also_count;
    bool full; /* of memory */
} work;

static const char *text_of(const json_t *of, const char *key)
{
    return json_string_value(json_object_get(of, key));
}

static void say(work *w, const char *word)
{
    const char *copy = word ? oos_arena_copy(w->arena, oos_view_of(word)) : NULL;
    w->full |= !copy;
    w->words[w->count++] = copy;
}

static void leave(work *w, const char *sentence)
{
    w->full |= !sentence;
    w->left_out[w->left++] = sentence;
}

static bool is_said(const work *w, const char *flag)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->words[i] && strcmp(w->words[i], flag) == 0) return true;
    return false;
}

/* The record that is about a flag of the engine whose command it is. */
static const json_t *record_of(const work *w, const char *flag)
{
    size_t i;
    json_t *record;
    json_array_foreach((json_t *)w->table, i, record)
    {
        const char *ours = text_of(record, w->from->words->name);
        if (ours && strcmp(ours, flag) == 0) return record;
    }
    return NULL;
}

/* The word of the pair that says there what `value` says here. NULL: there is none. */
static const char *value_there(const json_t *pairs, const char *value, bool second_is_ours)
{
    size_t i;
    json_t *pair;
    json_array_foreach((json_t *)pairs, i, pair)
    {
        const char *ours = json_string_value(json_array_get(pair, second_is_ours));
        if (ours && value && strcmp(ours, value) == 0)
            return json_string_value(json_array_get(pair, !second_is_ours));
    }
    return NULL;
}

/* Which of both engines of a record is named first in its pairs. */
static bool is_second(const work *w, const json_t *record)
{
    const char *first = json_object_iter_key(json_object_iter((json_t *)record));
    return first && strcmp(first, w->from->words->name) != 0;
}

/* Whether the value has a word there, by the kind that the record says. */
static bool is_said_alike(const char *kind, const char *value)
{
    if (!kind) return true;
    if (!value || !*value) return false;
    if (strcmp(kind, "count") == 0) return !value[strspn(value, "0123456789")];
    if (strcmp(kind, "pairs") == 0) return !strchr(value, '{');
    if (strcmp(kind, "word") == 0) return !strchr(value, ' ');
    return true; /* "list" */
}

/* Several values stand behind one another. */
static void say_values(work *w, const char *kind, const char *value)
{
    if (!kind || (strcmp(kind, "list") != 0 && strcmp(kind, "pairs") != 0)) {
        say(w, value);
        return;
    }
    while (*value) {
        size_t const len = strcspn(value, " ");
        say(w, oos_arena_copy(w->arena, (oos_view){value, len}));
        value += len + strspn(value + len, " ");
    }
}

static void also(work *w, const json_t *record)
{
    size_t i;
    json_t *pair;
    json_array_foreach(json_object_get(json_object_get(record, "also"), w->to->words->name), i, pair)
    {
        if (w->also_count + 2 > 2 * MORE_MAX) return;
        for (size_t part = 0; part < 2; part++) {
            const char *word = json_string_value(json_array_get(pair, part));
            const char *copy = word ? oos_arena_copy(w->arena, oos_view_of(word)) : NULL;
            w->full |= !copy;
            w->also[w->also_count++] = copy;
        }
    }
}

static const char *sentence(const work *w, const oos_given_flag *given, const json_t *record)
{
    const char *value = given->value ? given->value : "", *gap = given->value ? " " : "";
    const json_t *targets = json_object_iter_value(json_object_iter(json_object_get(record, "keys")));
    const char *first = json_string_value(json_array_get(json_array_get(targets, 0), 0));
    const char *there = first ? first : text_of(record, w->to->words->name),
               *apart = text_of(record, "apart");
    const char *from = w->from->words->title, *to = w->to->words->title;
    if (apart)
        return oos_arena_format(w->arena, "`%s%s%s` is not carried over to %s of %s: %s", given->name, gap,
                                value, there ? there : given->name, to, apart);
    if (there)
        return oos_arena_format(w->arena, "`%s%s%s` of %s is not carried over: say the value for %s of %s",
                                given->name, gap, value, from, there, to);
    return oos_arena_format(w->arena, "`%s%s%s` of %s is not carried over: %s has no word for it",
                            given->name, gap, value, from, to);
}

/* ---- one flag in JSON there, several here, and the other way round ---- */

/* A flag of a key: [flag], [flag, more] (a number, so much larger), or [flag, pairs of words]. */
static bool key_say(work *w, const json_t *target, const json_t *value)
{
    const json_t *how = json_array_get(target, 1);
    const char *text = json_string_value(value);
    const char *word = json_is_array(how) ? value_there(how, text, false) : text;
    if (json_is_integer(value) && !json_is_array(how)) {
        json_int_t const more = json_is_integer(how) ? json_integer_value(how) : 0;
        json_int_t const number = json_integer_value(value);
        if (number < 0 || number > 1 << 20) return false;
        word = oos_arena_format(w->arena, "%lld", (long long)(number + more));
    }
    if (!word) return false;
    say(w, json_string_value(json_array_get(target, 0)));
    say(w, word);
    return true;
}

static void keys_take_apart(work *w, const oos_given_flag *given, const json_t *record)
{
    const json_t *keys = json_object_get(record, "keys");
    json_t *parsed = oos_json_parse(oos_view_of(given->value), 0), *value, *target;
    size_t const before = w->count;
    bool said = parsed && json_object_size(parsed) > 0;
    const char *key;
    size_t i;
    json_object_foreach(parsed, key, value)
    {
        const json_t *targets = json_object_get(keys, key);
        said = said && targets && w->count - before + 4 <= MORE_MAX;
        if (!said) break;
        json_array_foreach((json_t *)targets, i, target) said = said && key_say(w, target, value);
    }
    if (said)
        also(w, record);
    else
        w->count = before;
    if (!said) leave(w, sentence(w, given, record));
    json_decref(parsed);
}

static const oos_given_flag *given_of(const work *w, const char *flag)
{
    return flag ? oos_serve_given(w->serve, flag) : NULL;
}

/* Whether a flag of the command is one of those that are keys there. */
static bool is_key_of(const json_t *record, const char *engine, const oos_given_flag *given)
{
    const char *flag = given->name;
    const char *key;
    json_t *targets, *target;
    size_t i;
    json_object_foreach(json_object_get((json_t *)record, "keys"), key, targets) json_array_foreach(
        targets, i, target) if (strcmp(json_string_value(json_array_get(target, 0)), flag) == 0) return true;
    json_array_foreach(json_object_get(json_object_get(record, "also"), engine), i,
                       target) if (strcmp(json_string_value(json_array_get(target, 0)), flag) ==
                                   0) return given->value &&
        strcmp(json_string_value(json_array_get(target, 1)), given->value) == 0;
    return false;
}

static const json_t *keyed_of(const work *w, const oos_given_flag *given)
{
    size_t i;
    json_t *record;
    json_array_foreach((json_t *)w->table, i,
                       record) if (json_object_get(record, "keys") && text_of(record, w->to->words->name) &&
                                   is_key_of(record, w->from->words->name, given)) return record;
    return NULL;
}

/* False: a value that has no word in it. */
static bool keys_gather(const work *w, const json_t *record, json_t *into)
{
    const char *key;
    json_t *targets;
    json_object_foreach(json_object_get((json_t *)record, "keys"), key, targets)
    {
        const json_t *target = json_array_get(targets, 0), *how = json_array_get(target, 1);
        const oos_given_flag *given = given_of(w, json_string_value(json_array_get(target, 0)));
        if (!given || !given->value) continue;
        const char *word = json_is_array(how) ? value_there(how, given->value, true) : given->value;
        if (!word) return false;
        size_t const digits = strspn(word, "0123456789");
        bool const number = !json_is_array(how) && digits && digits < 10 && !word[digits];
        if (json_object_set_new(into, key, number ? json_integer(atoll(word)) : json_string(word)) != 0)
            return false; /* not UTF-8 */
    }
    return true;
}

/* All flags that are keys of one flag there, when the first of them is met. */
static void keys_put_together(work *w, const oos_given_flag *given, const json_t *record)
{
    const char *there = text_of(record, w->to->words->name);
    if (!there) return;
    json_t *into = json_object();
    if (is_said(w, there)) {
        json_decref(into);
        return;
    }
    char *text = keys_gather(w, record, into) ? oos_json_text(into, JSON_COMPACT) : NULL;
    if (text) {
        say(w, there);
        say(w, text);
    } else {
        leave(w, sentence(w, given, record));
    }
    free(text);
    json_decref(into);
}

static void flag_translate(work *w, const oos_given_flag *given)
{
    const json_t *record = record_of(w, given->name);
    const json_t *keyed = record ? NULL : keyed_of(w, given);
    const char *there = text_of(record, w->to->words->name), *kind = text_of(record, "value");
    const json_t *pairs = json_object_get(record, "values");
    const char *value = pairs ? value_there(pairs, given->value, is_second(w, record)) : given->value;
    bool const alike = (!pairs || value) && is_said_alike(kind, given->value);
    if (keyed) {
        keys_put_together(w, given, keyed);
    } else if (json_object_get(record, "keys") && given->value) {
        keys_take_apart(w, given, record);
    } else if (there && !json_object_get(record, "apart") && alike) {
        say(w, there);
        if (value) say_values(w, kind, value);
        also(w, record);
    } else if (record || given->effect != OOS_FLAG_NO_MEMORY) {
        leave(w, sentence(w, given, record));
    }
}

static void translate(work *w)
{
    say(w, w->to->words->name);
    say(w, "serve");
    if (w->serve->model) say(w, w->serve->model);
    for (size_t i = 0; i < w->serve->flag_count; i++) {
        const oos_given_flag *given = &w->serve->flags[i];
        bool const off = given->value && strcmp(given->value, "false") == 0; /* a switch */
        if (strcmp(given->name, w->from->dialect->model_flag) != 0 && !off) flag_translate(w, given);
    }
    for (size_t i = 0; i + 1 < w->also_count; i += 2) {
        if (!w->also[i] || is_said(w, w->also[i])) continue;
        say(w, w->also[i]);
        say_values(w, "list", w->also[i + 1] ? w->also[i + 1] : "");
    }
}

oomsight_status oos_translate(oos_arena *arena, const char *data_dir, const oos_engine *from,
                              const oos_serve *serve, const oos_engine *to, oos_translation *ret_translation,
                              oomsight_error *reterr)
{
    oos_view text;
    OOS_TRY(oos_data_read(arena, data_dir, "engines/meanings.json", &text, reterr));
    json_t *table = oos_json_parse(text, 0);
    size_t most = 4 * MORE_MAX;
    for (size_t i = 0; i < serve->flag_count; i++)
        most += MORE_MAX + (serve->flags[i].value ? strlen(serve->flags[i].value) : 0);
    work w = {.arena = arena,
              .table = table,
              .from = from,
              .to = to,
              .serve = serve,
              .words = OOS_NEW_ARRAY(arena, const char *, most),
              .left_out = OOS_NEW_ARRAY(arena, const char *, serve->flag_count + 1),
              .also = OOS_NEW_ARRAY(arena, const char *, 2 * MORE_MAX)};
    w.full = !w.words || !w.left_out || !w.also;
    if (!w.full) translate(&w);
    json_decref(table);
    if (w.full) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
    oos_assert(w.count <= most && w.left <= serve->flag_count);
    *ret_translation = (oos_translation){w.words, w.count, w.left_out, w.left};
    return OOMSIGHT_OK;
}

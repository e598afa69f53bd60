/* A command of one engine, said to another. */
#include "engines/engines.h"
#include "base/check.h"
#include "base/scan.h"
#include "facts/facts.h"

#include <string.h>

/* A line of the table, for one flag. */
typedef struct meaning {
    oos_view flag;     /* there; empty: none */
    oos_view apart;    /* why it is none, though one looks alike */
    const char *value; /* as it is said there; NULL: a switch, or it can't be said */
    bool said;         /* the value has a word there */
} meaning;

/* The pair whose word on our side is `value`. */
static const char *value_there(oos_arena *arena, oos_scan *scan, const char *value, bool second_is_ours)
{
    const char *found = NULL;
    if (!oos_scan_open(scan, '[')) return NULL;
    while (oos_scan_item(scan)) {
        oos_view pair[2] = {{0}, {0}};
        if (!oos_scan_open(scan, '[')) return NULL;
        for (size_t i = 0; oos_scan_item(scan); i++) oos_scan_string(scan, &pair[i < 1 ? 0 : 1]);
        if (!found && value && oos_view_is(pair[second_is_ours], value))
            found = oos_scan_text(arena, pair[!second_is_ours]);
    }
    return found;
}

/* One record of the table, if it is about that flag. */
static bool record_read(oos_arena *arena, oos_scan *scan, const oos_given_flag *given, const char *from,
                        const char *to, meaning *ret_meaning)
{
    meaning m = {.value = given->value, .said = true};
    oos_view key, ours = {0};
    bool from_first = false;
    if (!oos_scan_open(scan, '{')) return false;
    while (oos_scan_key(scan, &key)) {
        if (oos_view_is(key, from)) {
            oos_scan_string(scan, &ours);
            from_first = m.flag.len == 0;
        } else if (oos_view_is(key, to)) {
            oos_scan_string(scan, &m.flag);
        } else if (oos_view_is(key, "apart")) {
            oos_scan_string(scan, &m.apart);
        } else if (oos_view_is(key, "values")) {
            m.value = value_there(arena, scan, given->value, !from_first);
            m.said = m.value != NULL;
        } else if (oos_view_is(key, "value")) {
            oos_scan_skip(scan, NULL);
            m.said = given->value && *given->value && !given->value[strspn(given->value, "0123456789")];
        } else {
            oos_scan_skip(scan, NULL);
        }
    }
    *ret_meaning = m;
    return oos_view_is(ours, given->name);
}

static meaning meaning_find(oos_arena *arena, oos_view table, const oos_given_flag *given, const char *from,
                            const char *to)
{
    meaning m = {0};
    oos_scan scan = oos_scan_begin(table);
    if (oos_scan_open(&scan, '['))
        while (oos_scan_item(&scan))
            if (record_read(arena, &scan, given, from, to, &m)) return m;
    return (meaning){0};
}

static const char *sentence(oos_arena *arena, const oos_given_flag *given, const meaning *m,
                            const oos_engine *from, const oos_engine *to)
{
    const char *value = given->value ? given->value : "", *gap = given->value ? " " : "";
    if (m->apart.len)
        return oos_arena_format(arena, "`%s%s%s` is not carried over to %.*s of %s: %.*s", given->name, gap,
                                value, (int)m->flag.len, m->flag.ptr, to->words->title, (int)m->apart.len,
                                m->apart.ptr);
    if (m->flag.len)
        return oos_arena_format(arena, "`%s%s%s` of %s is not carried over: say the value for %.*s of %s",
                                given->name, gap, value, from->words->title, (int)m->flag.len, m->flag.ptr,
                                to->words->title);
    return oos_arena_format(arena, "`%s%s%s` of %s is not carried over: %s has no word for it", given->name,
                            gap, value, from->words->title, to->words->title);
}

oomsight_status oos_translate(oos_arena *arena, const char *data_dir, const oos_engine *from,
                              const oos_serve *serve, const oos_engine *to, oos_translation *ret_translation,
                              oomsight_error *reterr)
{
    oos_view table;
    OOS_TRY(oos_data_read(arena, data_dir, "engines/meanings.json", &table, reterr));
    const char **words = OOS_NEW_ARRAY(arena, const char *, 2 * serve->flag_count + 4);
    const char **left_out = OOS_NEW_ARRAY(arena, const char *, serve->flag_count + 1);
    if (!words || !left_out) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
    size_t count = 0, left = 0;
    words[count++] = to->words->name;
    words[count++] = "serve";
    if (serve->model) words[count++] = serve->model;
    for (size_t i = 0; i < serve->flag_count; i++) {
        const oos_given_flag *given = &serve->flags[i];
        if (strcmp(given->name, from->dialect->model_flag) == 0) continue;
        if (given->value && strcmp(given->value, "false") == 0) continue; /* a switch that is off */
        meaning const m = meaning_find(arena, table, given, from->words->name, to->words->name);
        if (m.flag.len && !m.apart.len && m.said) {
            words[count++] = oos_arena_copy(arena, m.flag);
            if (m.value) words[count++] = m.value;
            if (!words[count - 1] || !words[count - 2])
                return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
        } else if (given->effect != OOS_FLAG_NO_MEMORY) {
            left_out[left] = sentence(arena, given, &m, from, to);
            if (!left_out[left++]) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the command");
        }
    }
    oos_assert(count <= 2 * serve->flag_count + 4 && left <= serve->flag_count);
    *ret_translation = (oos_translation){words, count, left_out, left};
    return OOMSIGHT_OK;
}

/* Flags whose value is JSON, or a set of dotted keys that means the same. */
#include "command/command.h"
#include "base/ascii.h"

#include <stdlib.h>

static void json_release(void *json)
{
    json_decref(json);
}

static oomsight_status nomem(oos_serve_reader *in)
{
    return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a JSON flag");
}

oos_serve_pending *oos_serve_pend(oos_serve_reader *in, const oos_flag_record *record)
{
    for (oos_serve_pending *p = in->pending; p; p = p->next)
        if (p->record == record) return p;
    oos_serve_pending *pending = OOS_NEW(in->arena, oos_serve_pending);
    if (!pending) return NULL;
    *pending = (oos_serve_pending){.next = in->pending, .record = record};
    in->pending = pending;
    return pending;
}

/* ---- dotted keys ----------------------------------------------------------------------------------------------- */

/* JSON if it is JSON, else text; `list`: words between commas. A new reference, NULL: out of memory. */
static json_t *dotted_value(const char *text, bool list)
{
    if (list) {
        json_t *array = json_array();
        for (const char *at = text; array; at++) {
            size_t const len = strcspn(at, ",");
            if (json_array_append_new(array, json_stringn(at, len)) != 0 && !json_array_size(array)) break;
            at += len;
            if (!*at) break;
        }
        return array;
    }
    json_t *value = oos_json_parse(oos_view_of(text), JSON_DECODE_ANY);
    if (value) return value;
    oos_flag_form const human = {.suffixes = "kKmMgGtT"};
    bool negative;
    uint64_t number;
    if (oos_serve_int(&human, text, &negative, &number) && !negative && number <= OOS_JSON_MAX)
        return json_integer((json_int_t)number);
    value = json_string(text);
    return value ? value : json_null(); /* not UTF-8 */
}

/* Values under the same key: objects are joined, lists are appended, anything else is replaced. Takes `value`. */
static void dotted_put(json_t *object, const char *key, json_t *value)
{
    json_t *old = json_object_get(object, key);
    if (json_is_array(old) && json_is_array(value)) {
        json_array_extend(old, value);
        json_decref(value);
    } else {
        json_object_set_new(object, key, value);
    }
}

oomsight_status oos_serve_take_dotted(oos_serve_reader *in, oos_flag_hit hit, const char *keys,
                                      const char *value)
{
    oos_serve_pending *pending = oos_serve_pend(in, hit.record);
    if (!pending) return nomem(in);
    if (!pending->dotted) {
        pending->dotted = json_object();
        if (!pending->dotted) return nomem(in);
        if (!oos_arena_adopt(in->arena, json_release, pending->dotted)) {
            json_decref(pending->dotted);
            pending->dotted = NULL;
            return nomem(in);
        }
    }

    char *path = oos_arena_copy(in->arena, oos_view_of(keys));
    char *name = oos_arena_format(in->arena, "%s.%s", hit.record->name, keys);
    if (!path || !name) return nomem(in);
    size_t const len = strlen(path);
    bool const list = len && path[len - 1] == '+';
    if (list) path[len - 1] = '\0';
    json_t *object = pending->dotted;
    unsigned depth = 0;
    for (char *dot; (dot = strchr(path, '.')) && depth < 16; path = dot + 1, depth++) {
        *dot = '\0';
        json_t *inner = json_object_get(object, path);
        if (!json_is_object(inner)) {
            inner = json_object();
            if (!inner || json_object_set_new(object, path, inner) != 0) break; /* a key that is not UTF-8 */
        }
        object = inner;
    }
    json_t *item = dotted_value(value, list);
    if (!item) return nomem(in);
    dotted_put(object, path, item);

    oos_flag_effect const effect =
        oos_serve_effect(in, hit, oos_serve_field(in->dialect, oos_view_of(hit.record->name)), value);
    const char *note =
        in->version < in->table->dotted_since ? "this version takes JSON only, no dotted keys" : NULL;
    oos_serve_note(in, (oos_given_flag){.name = name, .value = value, .effect = effect, .note = note});
    return OOMSIGHT_OK;
}

/* ---- when all words are read ----------------------------------------------------------------------------------- */

/* `image=4,video=0` as an object; NULL: not that. The caller's. */
static json_t *pairs_read(const char *text)
{
    json_t *object = json_object();
    while (object && *text) {
        size_t const len = strcspn(text, "=,");
        if (!len || text[len] != '=') break;
        char key[64];
        if (len >= sizeof key) break;
        memcpy(key, text, len);
        key[len] = '\0';
        text += len + 1;
        size_t const rest = strcspn(text, ",");
        uint64_t number = 0;
        bool digits = rest > 0 && rest < 16;
        for (size_t i = 0; digits && i < rest; i++) {
            digits = text[i] >= '0' && text[i] <= '9';
            number = number * 10 + (uint64_t)(text[i] - '0');
        }
        if (!digits) break;
        json_object_set_new(object, key, json_integer((json_int_t)number));
        text += rest;
        if (*text == '\0') return object;
        text++;
    }
    json_decref(object);
    return NULL;
}

static oomsight_status pending_json(oos_serve_reader *in, oos_serve_pending *pending, const oos_flag_field *f,
                                    json_t **ret_value)
{
    if (pending->dotted) {
        *ret_value = pending->dotted;
        return OOMSIGHT_OK;
    }
    const char *name = pending->record->name;
    const oos_flag_form *form = oos_flags_find(in->table, oos_view_of(name), in->version).form;
    if (*pending->text != '{' && f->pairs && form && (form->pairs || form->kind == OOS_FLAG_KIND_STR)) {
        json_t *pairs = pairs_read(pending->text);
        if (pairs && oos_arena_adopt(in->arena, json_release, pairs)) {
            *ret_value = pairs;
            return OOMSIGHT_OK;
        }
        json_decref(pairs);
    }
    oomsight_error why;
    oomsight_status const status = oos_json_load(in->arena, oos_view_of(pending->text), ret_value, &why);
    if (status == OOMSIGHT_NOMEM) return nomem(in);
    if (status != OOMSIGHT_OK)
        return oos_serve_refuse(in, name, pending->text,
                                "argument %s: Value %.80s cannot be converted to JSON (%.200s)", name,
                                pending->text, why.text);
    return OOMSIGHT_OK;
}

oomsight_status oos_serve_check_json(oos_serve_reader *in, oos_flag_hit hit, const char *text)
{
    bool const word = hit.form->takes_word || hit.form->pairs || hit.form->kind != OOS_FLAG_KIND_JSON;
    if (*text != '{' && *text != '[' && (word || !hit.here)) return OOMSIGHT_OK; /* a name, or pairs */
    json_t *value;
    oomsight_error why;
    oomsight_status const status = oos_json_load(in->arena, oos_view_of(text), &value, &why);
    if (status == OOMSIGHT_NOMEM) return nomem(in);
    if (status == OOMSIGHT_OK) return oos_serve_check_keys(in, hit, value);
    if (oos_serve_has_class(in, hit))
        return oos_serve_refuse(in, hit.record->name, text,
                                "argument %s: Invalid JSON: %s at line 1 column %d", hit.record->name,
                                *text == '\0'  ? "EOF while parsing a value"
                                : *text == '{' ? "key must be a string"
                                               : "expected value",
                                *text ? 2 : 0);
    return oos_serve_refuse(in, hit.record->name, text,
                            "argument %s: Value %.80s cannot be converted to <function loads>",
                            hit.record->name, text);
}

oomsight_status oos_serve_finish_json(oos_serve_reader *in)
{
    for (oos_serve_pending *p = in->pending; p; p = p->next) {
        const char *flag = p->record->name;
        const oos_flag_field *f = oos_serve_field(in->dialect, oos_view_of(flag));
        json_t *value = NULL;
        if (!f || !f->read || (!p->text && !p->dotted)) continue;
        if (f->braced && p->text && !p->dotted && *p->text != '{') continue;
        OOS_TRY(pending_json(in, p, f, &value));
        if (!value) continue; /* refused */
        OOS_TRY(oos_serve_check_keys(in, oos_flags_find(in->table, oos_view_of(flag), in->version), value));
        if (f->any || json_is_object(value))
            OOS_TRY(f->read(in, value));
        else
            OOS_TRY(oos_serve_refuse(in, flag, p->text, "argument %s: Value %.80s cannot be converted", flag,
                                     p->text ? p->text : ""));
    }
    return OOMSIGHT_OK;
}

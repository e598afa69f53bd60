/* Inside a JSON value: keys the release does not have, and values of another kind than it takes. The engine turns the text into
 * a class of its own while it parses the command, and stops at either. */
#include "command/command.h"
#include "base/ascii.h"

/* A number that an integer of 64 bits holds: 1e300 is whole, and no such integer. */
static bool whole_real(double number)
{
    return number >= -0x1p63 && number < 0x1p63 && number == (double)(int64_t)number;
}

/* pydantic turns "4" into 4, 1 into true, 2.0 into 2; what it cannot turn is wrong. NULL: fine. */
static const char *wrong_kind(const oos_flag_key *key, const json_t *value)
{
    bool negative;
    uint64_t whole;
    double number;
    unsigned const kinds = key->kinds;
    const char *text = json_string_value(value);
    if (kinds == OOS_KEY_ANY || json_is_null(value)) return NULL; /* null: the table is not sure enough */
    if (json_is_array(value)) {
        if (kinds & OOS_KEY_LIST) return NULL;
    } else if (json_is_object(value)) {
        if (kinds & OOS_KEY_DICT) return NULL;
    } else if (text) {
        if (kinds & OOS_KEY_STR) return NULL;
        if ((kinds & OOS_KEY_INT) && oos_serve_int(NULL, text, &negative, &whole)) return NULL;
        if ((kinds & OOS_KEY_FLOAT) && oos_serve_float(text, &number)) return NULL;
        if (kinds & OOS_KEY_BOOL) return NULL; /* "yes", "on", "t" and more */
    } else if (json_is_boolean(value)) {
        if (kinds & (OOS_KEY_BOOL | OOS_KEY_INT | OOS_KEY_FLOAT)) return NULL;
    } else {
        bool const is_whole = json_is_integer(value) || whole_real(json_real_value(value));
        if (kinds & OOS_KEY_FLOAT || ((kinds & OOS_KEY_INT) && is_whole)) return NULL;
        if ((kinds & OOS_KEY_BOOL) && (json_number_value(value) == 0 || json_number_value(value) == 1))
            return NULL;
    }
    return kinds & OOS_KEY_INT     ? "Input should be a valid integer"
           : kinds & OOS_KEY_FLOAT ? "Input should be a valid number"
           : kinds & OOS_KEY_BOOL  ? "Input should be a valid boolean"
           : kinds & OOS_KEY_LIST  ? "Input should be a valid list"
           : kinds & OOS_KEY_DICT  ? "Input should be an object"
                                   : "Input should be a valid string";
}

/* A word that is none of those that the key takes. Classes with a reading of their own are left to it. */
static oomsight_status check_word(oos_serve_reader *in, const char *flag, const oos_flag_key *key,
                                  const char *name, const json_t *value)
{
    const char *word = json_string_value(value);
    if (!word || oos_serve_field(in->dialect, oos_view_of(flag)) || oos_serve_newer(in) ||
        oos_flag_key_takes(key, oos_view_of(word)))
        return OOMSIGHT_OK;
    return oos_serve_refuse(in, flag, NULL, "argument %s: %s: Input should be one of %.*s", flag, name,
                            (int)(key->choices.len < 200 ? key->choices.len : 200), key->choices.ptr);
}

/* The release may have keys that nobody has read. */
static bool keys_open(const oos_serve_reader *in, oos_flag_hit hit)
{
    return oos_serve_newer(in) || (in->version == in->table->learned && hit.record->keys_open);
}

/* Keys one level down, where the table has any of them. */
static oomsight_status check_nested(oos_serve_reader *in, oos_flag_hit hit, const char *outer,
                                    const json_t *value)
{
    const char *name;
    json_t *item;
    oos_flag_key key;
    if (keys_open(in, hit) || !oos_flag_key_nests(in->table, hit.record, oos_view_of(outer), in->version))
        return OOMSIGHT_OK;
    json_object_foreach((json_t *)value, name, item)
    {
        char *whole = oos_arena_format(in->arena, "%s.%s", outer, name);
        if (!whole) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a key");
        if (!oos_flag_key_find(in->table, hit.record, oos_view_of(whole), in->version, &key))
            return oos_serve_refuse(in, hit.record->name, NULL,
                                    "argument %s: %.80s: Unexpected keyword argument", hit.record->name,
                                    whole);
    }
    return OOMSIGHT_OK;
}

/* A flag that has a class is given to it as text by the releases that came after the first with dotted keys (before, it took a
 * number too); that it knows all its keys came later. */
bool oos_serve_has_class(const oos_serve_reader *in, oos_flag_hit hit)
{
    if (hit.form->strict) return true;
    return hit.record->forms[hit.record->form_count - 1].strict && in->version > in->table->dotted_since;
}

oomsight_status oos_serve_check_keys(oos_serve_reader *in, oos_flag_hit hit, const json_t *value)
{
    const char *flag = hit.record->name, *name, *wrong;
    json_t *item;
    oos_flag_key key;
    bool const every = hit.form->strict || oos_serve_listed(in->dialect->made_later, flag);
    if (in->dialect->look) OOS_TRY(in->dialect->look(in, hit, value));
    if ((!every && !oos_serve_has_class(in, hit)) || !hit.here || in->python) return OOMSIGHT_OK;
    if (!json_is_object(value))
        return oos_serve_refuse(in, flag, NULL, "argument %s: Input should be an object", flag);
    json_object_foreach((json_t *)value, name, item)
    {
        bool const known = oos_flag_key_find(in->table, hit.record, oos_view_of(name), in->version, &key);
        if (!known && (!every || keys_open(in, hit))) continue; /* passed over, or perhaps known */
        if (!known)
            return oos_serve_refuse(in, flag, NULL, "argument %s: %.80s: Unexpected keyword argument", flag,
                                    name);
        wrong = wrong_kind(&key, item);
        if (wrong) return oos_serve_refuse(in, flag, NULL, "argument %s: %s: %s", flag, name, wrong);
        OOS_TRY(check_word(in, flag, &key, name, item));
        if (every && json_is_object(item)) OOS_TRY(check_nested(in, hit, name, item));
    }
    return OOMSIGHT_OK;
}

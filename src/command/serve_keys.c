/* Inside a JSON value: keys the release does not have, and values of another kind than it takes. The engine turns the text into
 * a class of its own while it parses the command, and stops at either. */
#include "command/serve_parts.h"
#include "base/ascii.h"

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
        bool const is_whole =
            json_is_integer(value) || json_real_value(value) == (double)(int64_t)json_real_value(value);
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

/* Read as a plain object and turned into a class later: what is in it stops the start all the same. */
static bool made_later(const char *flag)
{
    return strcmp(flag, "--diffusion-config") == 0 || strcmp(flag, "--watermark-config") == 0;
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
    bool const every = hit.form->strict || made_later(flag);
    if ((!every && !oos_serve_has_class(in, hit)) || !hit.here || in->python) return OOMSIGHT_OK;
    if (!json_is_object(value))
        return oos_serve_refuse(in, flag, NULL, "argument %s: Input should be an object", flag);
    json_object_foreach((json_t *)value, name, item)
    {
        bool const known = oos_flag_key_find(in->table, hit.record, oos_view_of(name), in->version, &key);
        if (!known && !every) continue; /* passed over */
        if (!known)
            return oos_serve_refuse(in, flag, NULL, "argument %s: %.80s: Unexpected keyword argument", flag,
                                    name);
        wrong = wrong_kind(&key, item);
        if (wrong) return oos_serve_refuse(in, flag, NULL, "argument %s: %s: %s", flag, name, wrong);
    }
    return OOMSIGHT_OK;
}

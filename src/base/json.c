/* Jansson, kept in one place. */
#include "base/json.h"
#include "base/locale.h"

#include <math.h>

static void root_release(void *root)
{
    json_decref(root);
}

/* Jansson exchanges one byte for the locale's decimal point, which may have none, or two. */
static json_t *parse(oos_view bytes, size_t flags, json_error_t *ret_why)
{
    locale_t const before = oos_locale_enter();
    json_t *root = json_loadb(bytes.ptr, bytes.len, flags, ret_why);
    oos_locale_leave(before);
    return root;
}

json_t *oos_json_parse(oos_view bytes, size_t flags)
{
    return parse(bytes, flags, NULL);
}

char *oos_json_text(const json_t *value, size_t flags)
{
    locale_t const before = oos_locale_enter();
    char *text = json_dumps(value, flags);
    oos_locale_leave(before);
    return text;
}

oomsight_status oos_json_load(oos_arena *arena, oos_view bytes, json_t **ret_root, oomsight_error *reterr)
{
    json_error_t why;
    json_t *root = oos_json_parse_plain(bytes);
    if (!root) root = parse(bytes, JSON_DECODE_ANY, &why);
    if (!root) {
        oomsight_status const status = oos_fail(reterr, OOMSIGHT_MALFORMED, "not JSON: %s", why.text);
        if (reterr && why.line > 0) reterr->line = (uint32_t)why.line;
        return status;
    }
    if (!oos_arena_adopt(arena, root_release, root)) {
        json_decref(root);
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for JSON");
    }
    *ret_root = root;
    return OOMSIGHT_OK;
}

bool oos_json_value_u64(const json_t *value, uint64_t *ret_value)
{
    if (json_is_integer(value)) {
        json_int_t const number = json_integer_value(value);
        if (number < 0 || (uint64_t)number > OOS_JSON_MAX) return false;
        *ret_value = (uint64_t)number;
        return true;
    }
    if (json_is_real(value)) { /* some exporters write 4096.0 */
        double const number = json_real_value(value);
        if (!(number >= 0) || number > (double)OOS_JSON_MAX || floor(number) != number) return false;
        *ret_value = (uint64_t)number;
        return true;
    }
    return false;
}

bool oos_json_value_f64(const json_t *value, double *ret_value)
{
    if (!json_is_number(value)) return false;
    double const number = json_number_value(value);
    if (!isfinite(number)) return false;
    *ret_value = number;
    return true;
}

bool oos_json_u64(const json_t *object, const char *key, uint64_t *ret_value)
{
    return oos_json_value_u64(json_object_get(object, key), ret_value);
}

bool oos_json_f64(const json_t *object, const char *key, double *ret_value)
{
    return oos_json_value_f64(json_object_get(object, key), ret_value);
}

bool oos_json_bool(const json_t *object, const char *key, bool *ret_value)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_boolean(value)) return false;
    *ret_value = json_is_true(value);
    return true;
}

bool oos_json_str(const json_t *object, const char *key, const char **ret_value)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value)) return false;
    *ret_value = json_string_value(value);
    return true;
}

/* What stands in a record of data/models: sizes and conditions over the fields of a config. A size is a sum of products of whole
 * numbers, names and fields; a field, `text.num_experts|8`, may say what counts where it is missing. Nothing loops, and
 * nothing is deeper than the record itself, which the parser limits. */
#include "model/arch/arch.h"

#include "base/ascii.h"

enum { WORD_MAX = 96, DEPTH_MAX = 4 };

/* One thing that may be missing. */
typedef struct found {
    bool known;
    uint64_t whole;
    double part; /* of a number that is not whole: what `whole` is multiplied with; 0: it is whole */
} found;

typedef struct reader {
    const oos_scope *scope;
    const char *at;
    const char *wrong; /* NULL: all is well so far */
} reader;

static bool in_word(char c)
{
    return oos_is_alpha(c) || oos_is_digit(c) || c == '_' || c == '.';
}

static void blanks(reader *r)
{
    while (*r->at == ' ') r->at++;
}

static bool take(reader *r, char c)
{
    blanks(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}

static bool word(reader *r, char ret_word[WORD_MAX])
{
    size_t len = 0;
    blanks(r);
    while (in_word(*r->at) && len + 1 < WORD_MAX) ret_word[len++] = *r->at++;
    ret_word[len] = '\0';
    if (len == 0 || in_word(*r->at)) r->wrong = "a number, a name or a field is expected";
    return !r->wrong;
}

static const json_t *member(const json_t *object, const char *key)
{
    if (!json_is_array(object)) return json_object_get(object, key);
    size_t index = 0;
    for (; oos_is_digit(*key) && index < OOS_LAYERS_MAX; key++) index = index * 10 + (size_t)(*key - '0');
    return *key ? NULL : json_array_get(object, index);
}

/* "vision.rope.0": the part of the config, then a key, then a key or a number inside. False: no such part. */
static bool field(const oos_scope *scope, const char *path, const json_t **ret_value)
{
    static const char *const parts[] = {"root", "text", "vision", "audio"};
    const oos_arch *a = scope->arch;
    const json_t *const roots[] = {a->root, a->text, a->vision, a->audio};
    const char *dot = strchr(path, '.');
    size_t const len = dot ? (size_t)(dot - path) : 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (len == 0 || strncmp(parts[i], path, len) != 0 || parts[i][len]) continue;
        const json_t *value = roots[i];
        for (; dot; dot = strchr(path, '.')) {
            char key[WORD_MAX];
            path = dot + 1;
            size_t const key_len = strcspn(path, ".");
            memcpy(key, path, key_len);
            key[key_len] = '\0';
            value = member(value, key);
        }
        *ret_value = value;
        return true;
    }
    return false;
}

static found number_of(const json_t *value)
{
    found f = {0};
    double real;
    if (oos_json_value_u64(value, &f.whole))
        f.known = true;
    else if (oos_json_value_f64(value, &real) && real > 0 && real < 1e9)
        f = (found){.known = true, .whole = 1, .part = real};
    return f;
}

static found name_of(reader *r, const char *text)
{
    const oos_scope *s = r->scope;
    for (size_t i = 0; i < s->let_count; i++)
        if (strcmp(s->lets[i].name, text) == 0)
            return (found){.known = s->lets[i].value > 0, .whole = s->lets[i].value};
    for (const oos_quantity *q = s->quantities; q && q->name; q++) {
        if (strcmp(q->name, text) != 0) continue;
        uint64_t value;
        memcpy(&value, (const char *)s->arch->model + q->offset, sizeof value);
        return (found){.known = value > 0, .whole = value};
    }
    r->wrong = "is not a name of the vocabulary";
    return (found){0};
}

static found alternative(reader *r)
{
    char text[WORD_MAX];
    const json_t *value = NULL;
    if (!word(r, text)) return (found){0};
    if (oos_is_digit(text[0])) {
        found f = {.known = true};
        for (const char *c = text; *c && !r->wrong; c++) {
            if (!oos_is_digit(*c) || f.whole > OOS_JSON_MAX / 10) r->wrong = "is not a whole number";
            f.whole = f.whole * 10 + (uint64_t)(*c - '0');
        }
        return f;
    }
    return field(r->scope, text, &value) ? number_of(value) : name_of(r, text);
}

static found factor(reader *r)
{
    found f = alternative(r);
    while (!r->wrong && take(r, '|')) {
        found const next = alternative(r);
        if (!f.known) f = next;
    }
    return f;
}

/* A number that is not whole multiplies what stands before it; what is divided by nothing is nothing. */
static uint64_t times(uint64_t product, found f)
{
    if (f.part == 0) return oos_mul(product, f.known ? f.whole : 0);
    double const exact = (double)product * f.part;
    return exact < (double)OOS_JSON_MAX ? (uint64_t)exact : UINT64_MAX;
}

static uint64_t product(reader *r)
{
    uint64_t value = times(1, factor(r));
    while (!r->wrong) {
        if (take(r, '*')) {
            value = times(value, factor(r));
        } else if (take(r, '/')) {
            found const f = factor(r);
            value = f.known && f.whole > 0 ? value / f.whole : 0;
        } else {
            break;
        }
    }
    return value;
}

static uint64_t sum(reader *r)
{
    uint64_t value = product(r);
    while (!r->wrong && take(r, '+')) value = oos_add(value, product(r));
    blanks(r);
    if (!r->wrong && *r->at) r->wrong = "has something behind its end";
    return value;
}

/* ---- conditions ---- */

typedef enum truth { UNSAID, NO, YES } truth;

static truth of_bool(bool value)
{
    return value ? YES : NO;
}

static truth present(const json_t *value)
{
    return of_bool(value && !json_is_null(value) && !(json_is_array(value) && json_array_size(value) == 0));
}

/* `text.key`, `text.key?` (is it there), `text.key=word`, a name (is it more than nothing), `name=name`, true, false. */
static truth statement(reader *r)
{
    char text[WORD_MAX], expected[WORD_MAX];
    const json_t *value = NULL;
    if (!word(r, text)) return UNSAID;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) return of_bool(text[0] == 't');
    if (strcmp(text, "tied") == 0) return of_bool(r->scope->arch->model->tied);
    if (!field(r->scope, text, &value)) {
        found const f = name_of(r, text);
        if (r->wrong || !take(r, '=')) return of_bool(f.known);
        return word(r, expected) ? of_bool(name_of(r, expected).whole == f.whole) : UNSAID;
    }
    if (take(r, '?')) return present(value);
    if (take(r, '=')) {
        if (!word(r, expected) || !json_is_string(value)) return UNSAID;
        return of_bool(strcmp(json_string_value(value), expected) == 0);
    }
    if (json_is_integer(value)) return of_bool(json_integer_value(value) != 0);
    return json_is_boolean(value) ? of_bool(json_is_true(value)) : UNSAID;
}

static bool condition(reader *r)
{
    bool const not = take(r, '!');
    truth t = statement(r);
    while (!r->wrong && take(r, '|')) {
        truth const next = statement(r);
        if (t == UNSAID) t = next;
    }
    blanks(r);
    if (!r->wrong && *r->at) r->wrong = "has something behind its end";
    return (t == YES) != not ;
}

/* ---- values of a record ---- */

static void judge(const oos_scope *scope, const char *key, const char *text, const char *wrong)
{
    if (wrong) oos_record_fail(scope, key, "'%.60s' %s", text, wrong);
}

static bool truth_of(const oos_scope *scope, const char *key, const json_t *value, int depth)
{
    if (json_is_boolean(value)) return json_is_true(value);
    if (json_is_string(value)) {
        reader r = {.scope = scope, .at = json_string_value(value)};
        bool const yes = condition(&r);
        judge(scope, key, json_string_value(value), r.wrong);
        return yes && !r.wrong;
    }
    bool const all = json_is_object(value) && json_object_size(value) == 1;
    const json_t *list = all ? json_object_get(value, "all") : value;
    if (!json_is_array(list) || depth >= DEPTH_MAX) {
        oos_record_fail(scope, key, "is not a condition");
        return false;
    }
    size_t yes = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        yes += truth_of(scope, key, json_array_get(list, i), depth + 1);
    return all ? yes == json_array_size(list) : yes > 0;
}

static uint64_t size_of(const oos_scope *scope, const char *key, const json_t *value, int depth)
{
    uint64_t size = 0;
    if (json_is_string(value)) {
        reader r = {.scope = scope, .at = json_string_value(value)};
        size = sum(&r);
        judge(scope, key, json_string_value(value), r.wrong);
        return size;
    }
    const json_t *when = json_object_get(value, "if"), *then = json_object_get(value, "then"),
                 *other = json_object_get(value, "else");
    if (json_object_size(value) == 3 && when && then && other && depth < DEPTH_MAX) {
        bool const yes = truth_of(scope, key, when, depth + 1);
        uint64_t const one = size_of(scope, key, then, depth + 1),
                       two = size_of(scope, key, other, depth + 1);
        return yes ? one : two;
    }
    if (!oos_json_value_u64(value, &size)) oos_record_fail(scope, key, "is not a size");
    return size;
}

uint64_t oos_record_size(const oos_scope *scope, const json_t *object, const char *key, uint64_t fallback)
{
    const json_t *value = json_object_get(object, key);
    return value ? size_of(scope, key, value, 0) : fallback;
}

bool oos_record_yes(const oos_scope *scope, const json_t *object, const char *key, bool fallback)
{
    const json_t *value = json_object_get(object, key);
    return value ? truth_of(scope, key, value, 0) : fallback;
}

const char *oos_record_word(const oos_scope *scope, const json_t *object, const char *key,
                            const char *fallback)
{
    const json_t *value = json_object_get(object, key);
    if (!value) return fallback;
    if (json_is_string(value) && json_string_length(value) > 0) return json_string_value(value);
    oos_record_fail(scope, key, "is not a word");
    return fallback;
}

const json_t *oos_record_field(const oos_scope *scope, const json_t *object, const char *key)
{
    const json_t *value = NULL;
    const char *path = oos_record_word(scope, object, key, NULL);
    if (path && (strlen(path) >= WORD_MAX || !field(scope, path, &value)))
        oos_record_fail(scope, key, "'%.60s' is not a field of root, text, vision or audio", path);
    return value;
}

/* What stands in a record of data/models: sizes and conditions over the fields of a config. A size is a sum of products of whole
 * numbers, names and fields; a field, `text.num_experts|8`, may say what counts where it is missing. Nothing loops but
 * over the numbers of one list, and nothing is deeper than the record itself, which the parser limits. */
#include "model/arch/arch.h"

#include "base/ascii.h"

enum { WORD_MAX = 96, DEPTH_MAX = 6 };

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

/* What a path leads to: a value, a letter of a text, or how many a list or a text has. */
typedef struct place {
    const json_t *value;
    char letter;
    bool counted;
    uint64_t count;
} place;

static bool named(const oos_scope *s, const char *name, uint64_t *ret_value)
{
    for (size_t i = 0; i < s->let_count; i++)
        if (s->lets[i].name[0] == name[0] && strcmp(s->lets[i].name, name) == 0)
            return *ret_value = s->lets[i].value, true;
    for (const oos_quantity *q = s->quantities; q && q->name; q++) {
        if (q->name[0] != name[0] || strcmp(q->name, name) != 0) continue;
        memcpy(ret_value, (const char *)s->arch->model + q->offset, sizeof *ret_value);
        return true;
    }
    return false;
}

/* Into an object by a key, into a list or a text by a number, a name or `count`. */
static place step(const oos_scope *s, const json_t *from, const char *key)
{
    if (!json_is_array(from) && !json_is_string(from)) return (place){.value = json_object_get(from, key)};
    uint64_t const count = json_is_array(from) ? json_array_size(from) : json_string_length(from);
    uint64_t index = 0;
    if (strcmp(key, "count") == 0) return (place){.counted = true, .count = count};
    if (oos_is_digit(*key))
        for (; oos_is_digit(*key) && index < OOS_LAYERS_MAX; key++)
            index = index * 10 + (uint64_t)(*key - '0');
    else if (named(s, key, &index))
        key = "";
    if (*key || index >= count) return (place){0};
    if (json_is_array(from)) return (place){.value = json_array_get(from, (size_t)index)};
    return (place){.letter = json_string_value(from)[index]};
}

/* "vision.rope.0": the part of the config, then a key, then a key or a number inside. False: no such part. */
static bool field(const oos_scope *scope, const char *path, place *ret_place)
{
    static const char *const parts[] = {"root", "text", "vision", "audio"};
    const oos_arch *a = scope->arch;
    const json_t *const roots[] = {a->root, a->text, a->vision, a->audio};
    const char *dot = strchr(path, '.');
    size_t const len = dot ? (size_t)(dot - path) : 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (len == 0 || strncmp(parts[i], path, len) != 0 || parts[i][len]) continue;
        place at = {.value = roots[i]};
        for (; dot; dot = strchr(path, '.')) {
            char key[WORD_MAX];
            path = dot + 1;
            size_t const key_len = strcspn(path, ".");
            memcpy(key, path, key_len);
            key[key_len] = '\0';
            at = step(scope, at.value, key);
        }
        *ret_place = at;
        return true;
    }
    return false;
}

static found number_of(const oos_scope *scope, const char *path, place at)
{
    found f = {.known = at.counted, .whole = at.count};
    double real;
    if (oos_json_value_u64(at.value, &f.whole))
        f.known = true;
    else if (oos_json_value_f64(at.value, &real) && real > 0 && real < 1e9)
        f = (found){.known = true, .whole = 1, .part = real};
    else
        oos_arch_wrong(scope->arch, strchr(path, '.') + 1, at.value);
    return f;
}

static found name_of(reader *r, const char *text)
{
    uint64_t value = 0;
    if (!named(r->scope, text, &value)) r->wrong = "is not a name of the vocabulary";
    return (found){.known = value > 0, .whole = value};
}

static found alternative(reader *r)
{
    char text[WORD_MAX];
    place at;
    if (!word(r, text)) return (found){0};
    if (oos_is_digit(text[0])) {
        found f = {.known = true};
        for (const char *c = text; *c && !r->wrong; c++) {
            if (!oos_is_digit(*c) || f.whole > OOS_JSON_MAX / 10) r->wrong = "is not a whole number";
            f.whole = f.whole * 10 + (uint64_t)(*c - '0');
        }
        return f;
    }
    return field(r->scope, text, &at) ? number_of(r->scope, text, at) : name_of(r, text);
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
        } else if (take(r, '%')) {
            found const f = factor(r);
            value = f.known && f.whole > 0 ? value % f.whole : 0;
        } else {
            break;
        }
    }
    return value;
}

static uint64_t sum(reader *r)
{
    uint64_t value = product(r);
    while (!r->wrong) {
        if (take(r, '+'))
            value = oos_add(value, product(r));
        else if (take(r, '-'))
            value = oos_sub(value, product(r));
        else
            break;
    }
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

/* A text of the config against a word, or against another text of it. */
static truth says(const oos_scope *s, place at, const char *expected)
{
    place other;
    const char letter[2] = {at.letter}, *text = at.letter ? letter : json_string_value(at.value);
    if (field(s, expected, &other)) expected = json_string_value(other.value);
    return text && expected ? of_bool(strcmp(text, expected) == 0) : UNSAID;
}

/* `text.key`, `text.key?` (is it there), `text.key=word`, a name (is it more than nothing), `name=name`, true, false. */
static truth statement(reader *r)
{
    char text[WORD_MAX], expected[WORD_MAX] = "*";
    place at;
    if (!word(r, text)) return UNSAID;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) return of_bool(text[0] == 't');
    if (strcmp(text, "tied") == 0) return of_bool(r->scope->arch->model->tied);
    if (!field(r->scope, text, &at)) {
        found const f = name_of(r, text);
        if (r->wrong || !take(r, '=')) return of_bool(f.known);
        return word(r, expected) ? of_bool(name_of(r, expected).whole == f.whole) : UNSAID;
    }
    if (take(r, '?')) return present(at.value);
    if (take(r, '=')) return take(r, '*') || word(r, expected) ? says(r->scope, at, expected) : UNSAID;
    if (json_is_integer(at.value)) return of_bool(json_integer_value(at.value) != 0);
    return json_is_boolean(at.value) ? of_bool(json_is_true(at.value)) : UNSAID;
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

static const json_t *field_of(const oos_scope *scope, const char *key, const json_t *path)
{
    place at = {0};
    const char *text = json_string_value(path);
    if (!text || strlen(text) >= WORD_MAX || !field(scope, text, &at))
        oos_record_fail(scope, key, "'%.60s' is not a field of root, text, vision or audio",
                        text ? text : "");
    return at.value;
}

static uint64_t size_of(const oos_scope *scope, const char *key, const json_t *value, int depth);

/* {"equal": [SIZE, SIZE]}, {"below": [SIZE, SIZE]}, {"holds": [FIELD, SIZE]} */
static bool compares(const oos_scope *scope, const char *key, const char *how, const json_t *pair, int depth)
{
    const json_t *first = json_array_get(pair, 0);
    bool const holds = strcmp(how, "holds") == 0, equal = strcmp(how, "equal") == 0;
    if (json_array_size(pair) != 2 || !(holds || equal || strcmp(how, "below") == 0)) {
        oos_record_fail(scope, key, "is not a condition");
        return false;
    }
    uint64_t const right = size_of(scope, key, json_array_get(pair, 1), depth);
    if (holds) return oos_arch_list_holds(field_of(scope, key, first), right);
    uint64_t const left = size_of(scope, key, first, depth);
    return equal ? left == right : left < right;
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
    const char *how =
        json_object_size(value) == 1 ? json_object_iter_key(json_object_iter((json_t *)value)) : NULL;
    bool const all = how && strcmp(how, "all") == 0;
    const json_t *list = how ? json_object_get(value, how) : value;
    if (!json_is_array(list) || depth >= DEPTH_MAX) {
        oos_record_fail(scope, key, "is not a condition");
        return false;
    }
    if (how && !all) return compares(scope, key, how, list, depth + 1);
    size_t yes = 0, seen = 0;
    while (seen < json_array_size(list) && !(scope->understood && (all ? yes < seen : yes > 0)))
        yes += truth_of(scope, key, json_array_get(list, seen++), depth + 1);
    return all ? yes == seen : yes > 0;
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
        if (scope->understood) return size_of(scope, key, yes ? then : other, depth + 1);
        uint64_t const one = size_of(scope, key, then, depth + 1),
                       two = size_of(scope, key, other, depth + 1);
        return yes ? one : two;
    }
    if (!oos_json_value_u64(value, &size)) oos_record_fail(scope, key, "is not a size");
    return size;
}

uint64_t oos_record_size_of(const oos_scope *scope, const char *key, const json_t *value)
{
    return size_of(scope, key, value, 0);
}

bool oos_record_yes_of(const oos_scope *scope, const char *key, const json_t *value)
{
    return truth_of(scope, key, value, 0);
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
    const json_t *path = json_object_get(object, key);
    return path ? field_of(scope, key, path) : NULL;
}

/* Records of data/models: found by the class they describe, laid over the record they are like, read key by key. */
#include "model/arch/arch.h"

#include "base/locale.h"
#include "facts/facts.h"

enum { RECORD_BYTES_MAX = 64 << 10, LIKES_MAX = 4 };

/* ---- failing ---- */

void oos_record_fail(const oos_scope *scope, const char *key, const char *format, ...)
{
    oos_arch *a = scope->arch;
    if (a->status != OOMSIGHT_OK) return;
    char text[160];
    va_list args;
    va_start(args, format);
    (void)oos_vformat(text, sizeof text, format, args);
    va_end(args);
    oos_arch_fail(a, OOMSIGHT_MALFORMED, "%.60s: %s", key, text);
    (void)oos_fail_in(a->reterr, a->status, scope->record->file);
}

void oos_record_keys(const oos_scope *scope, const json_t *object, const char *where, const char *const *keys)
{
    const char *key;
    json_t *value;
    if (object && !json_is_object(object)) oos_record_fail(scope, where, "is not an object");
    json_object_foreach((json_t *)object, key, value)
    {
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0) i++;
        if (!keys[i]) oos_record_fail(scope, where, "'%.40s' is not a key of the vocabulary", key);
    }
}

size_t oos_record_choice(const oos_scope *scope, const json_t *object, const char *key,
                         const char *const *words, size_t fallback)
{
    const char *word = oos_record_word(scope, object, key, NULL);
    if (!word) return fallback;
    for (size_t i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0) return i;
    oos_record_fail(scope, key, "'%.40s' is not a word of the vocabulary", word);
    return fallback;
}

/* ---- names of a record's own ---- */

void oos_record_let(oos_scope *scope, const char *name, uint64_t value)
{
    size_t i = 0;
    while (i < scope->let_count && scope->lets[i].name != name && strcmp(scope->lets[i].name, name) != 0) i++;
    if (i == OOS_LETS_MAX) {
        oos_record_fail(scope, "let", "has more than %d names", OOS_LETS_MAX);
        return;
    }
    scope->lets[i].name = name;
    scope->lets[i].value = value;
    if (i == scope->let_count) scope->let_count++;
}

void oos_record_lets(oos_scope *scope, const char *key)
{
    const char *name;
    json_t *value;
    json_t *let = json_object_get(scope->record->body, key);
    if (let && !json_is_object(let)) oos_record_fail(scope, key, "is not an object");
    json_object_foreach(let, name, value)
    {
        oos_record_let(scope, name, oos_record_size_of(scope, name, value));
    }
}

/* ---- matrices ---- */

/* What the engine's layer classes do to a matrix. */
static const struct {
    const char *word;
    oos_split split;
    bool linear;
} ways[] = {
    {"plain", OOS_SPLIT_NONE, false},    {"divided", OOS_SPLIT_OUT, false},
    {"divided_in", OOS_SPLIT_IN, false}, {"column", OOS_SPLIT_OUT, true},
    {"row", OOS_SPLIT_IN, true},         {"copy", OOS_SPLIT_NONE, true},
    {"kv", OOS_SPLIT_KV, true},          {"divided_kv", OOS_SPLIT_KV, false},
    {"vocab", OOS_SPLIT_VOCAB, false},   {"head", OOS_SPLIT_VOCAB, true},
};

static void read_way(const oos_scope *scope, const char *word, oos_matrix *m)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(ways[i].word, word) != 0) continue;
        m->split = ways[i].split;
        m->linear = ways[i].linear;
        return;
    }
    oos_record_fail(scope, "as", "'%.40s' is not a word of the vocabulary", word);
}

static oos_module read_module(const oos_scope *scope, const char *word)
{
    for (size_t i = 0; i < OOS_MODULE_COUNT; i++)
        if (strcmp(oos_module_words[i], word) == 0) return (oos_module)i;
    oos_record_fail(scope, "module", "'%.40s' is not a word of the vocabulary", word);
    return OOS_MODULE_OTHER;
}

static oos_dtype read_dtype(const oos_scope *scope, const char *word)
{
    oos_dtype const dtype = oos_dtype_find(word);
    if (dtype == OOS_DTYPE_UNKNOWN && strcmp(word, "model") != 0)
        oos_record_fail(scope, "dtype", "'%.40s' is not a word of the vocabulary", word);
    return dtype;
}

/* A matrix has few of the keys: those it has are gone through, for every layer. */
static const struct {
    const char *key;
    enum { WORD, SIZE, YES } kind;
    size_t offset; /* of a size or a condition in oos_matrix */
} matrix_keys[] = {
    {"name", WORD, offsetof(oos_matrix, name)},
    {"as", WORD, 0},
    {"module", WORD, 0},
    {"dtype", WORD, 0},
    {"stage", WORD, 0},
    {"part", WORD, 0},
    {"out", SIZE, offsetof(oos_matrix, out)},
    {"in", SIZE, offsetof(oos_matrix, in)},
    {"count", SIZE, offsetof(oos_matrix, count)},
    {"unit", SIZE, offsetof(oos_matrix, unit)},
    {"kv_out", SIZE, offsetof(oos_matrix, kv_out)},
    {"kv_heads", SIZE, offsetof(oos_matrix, kv_heads)},
    {"shards", SIZE, 0},
    {"bias", YES, offsetof(oos_matrix, bias)},
    {"unfolds", YES, offsetof(oos_matrix, unfolds)},
    {"when", YES, 0},
};
enum { MATRIX_KEYS = sizeof matrix_keys / sizeof *matrix_keys };

static void read_word(const oos_scope *scope, const char *key, const char *word, oos_matrix *m,
                      oos_module *module)
{
    switch (key[0]) {
    case 'n': m->name = word; break;
    case 'a': read_way(scope, word, m); break;
    case 'm': *module = read_module(scope, word); break;
    case 'd': m->dtype = read_dtype(scope, word); break;
    default: break; /* the list looked at it */
    }
}

void oos_record_matrix(const oos_scope *scope, const json_t *object, const oos_matrix *usual,
                       oos_module module)
{
    oos_matrix m = *usual;
    bool wanted = true;
    const char *key;
    json_t *value;
    m.count = m.unit = 1;
    if (object && !json_is_object(object)) oos_record_fail(scope, "matrix", "is not an object");
    json_object_foreach((json_t *)object, key, value)
    {
        size_t k = 0;
        while (k < MATRIX_KEYS && (matrix_keys[k].key[0] != key[0] || strcmp(matrix_keys[k].key, key) != 0))
            k++;
        if (k == MATRIX_KEYS) {
            oos_record_fail(scope, "matrix", "'%.40s' is not a key of the vocabulary", key);
        } else if (matrix_keys[k].kind == SIZE) {
            uint64_t const size = oos_record_size_of(scope, key, value);
            if (matrix_keys[k].offset)
                memcpy((char *)&m + matrix_keys[k].offset, &size, sizeof size);
            else
                m.shards = (uint8_t)oos_min(size, 8);
        } else if (matrix_keys[k].kind == YES) {
            bool const yes = oos_record_yes_of(scope, key, value);
            memcpy(matrix_keys[k].offset ? (char *)&m + matrix_keys[k].offset : (char *)&wanted, &yes,
                   sizeof yes);
        } else if (json_is_string(value) && json_string_length(value) > 0) {
            read_word(scope, key, json_string_value(value), &m, &module);
        } else {
            oos_record_fail(scope, key, "is not a word");
        }
    }
    if (!m.name) oos_record_fail(scope, "name", "is missing");
    if (wanted && m.count > 0 && scope->arch->status == OOMSIGHT_OK) oos_put(scope->arch, module, m);
}

void oos_record_matrices(const oos_scope *scope, const json_t *object, const char *key, oos_module module,
                         const char *stage)
{
    static const char *const stages[] = {"every", "last", NULL};
    const json_t *list = json_object_get(object, key);
    if (!list) return;
    if (!json_is_array(list) || json_array_size(list) > OOS_MATRICES_MAX) {
        oos_record_fail(scope, key, "is not a list of up to %d matrices", OOS_MATRICES_MAX);
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *matrix = json_array_get(list, i);
        bool const tower = module == OOS_MODULE_VISION;
        const char *part = tower ? oos_record_word(scope, matrix, "part", "vision") : "";
        bool const hears = strcmp(part, "audio") == 0;
        if (tower && !hears && strcmp(part, "vision") != 0)
            oos_record_fail(scope, "part", "is vision or audio");
        if (stage && strcmp(stages[oos_record_choice(scope, matrix, "stage", stages, 0)], stage) != 0)
            continue;
        bool const there = hears ? scope->arch->audio != NULL : scope->arch->model->vision.present;
        if (tower && !there) continue;
        oos_record_matrix(scope, matrix, &(oos_matrix){.in = 1}, hears ? OOS_MODULE_AUDIO : module);
    }
}

/* ---- files ---- */

static bool is_name(const char *name)
{
    size_t const len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_./-");
    return len > 0 && len < 64 && name[len] == '\0' && !strstr(name, "..") && name[0] != '/';
}

static oomsight_status read_file(oos_arena *arena, const char *data_dir, const char *name, json_t **ret_body,
                                 const char **ret_file, oomsight_error *reterr)
{
    if (!is_name(name))
        return oos_fail(reterr, OOMSIGHT_MALFORMED, "'%.40s' is not the name of a record", name);
    oos_view bytes = {NULL, 0};
    *ret_file = oos_arena_format(arena, "models/%s.json", name);
    if (!*ret_file) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");
    OOS_TRY(oos_data_read(arena, data_dir, *ret_file, &bytes, reterr));
    return oos_record_parse(arena, bytes, *ret_file, ret_body, reterr);
}

oomsight_status oos_record_parse(oos_arena *arena, oos_view bytes, const char *file, json_t **ret_body,
                                 oomsight_error *reterr)
{
    oomsight_status status = OOMSIGHT_OK;
    if (bytes.len > RECORD_BYTES_MAX)
        status = oos_fail(reterr, OOMSIGHT_MALFORMED, "is larger than %d bytes", RECORD_BYTES_MAX);
    if (status == OOMSIGHT_OK) status = oos_json_load(arena, bytes, ret_body, reterr);
    if (status == OOMSIGHT_OK && !json_is_object(*ret_body))
        status = oos_fail(reterr, OOMSIGHT_MALFORMED, "not a JSON object");
    return status == OOMSIGHT_OK ? status : oos_fail_in(reterr, status, file);
}

/* The record over what it is like, and that over what it is like. */
static oomsight_status lay_over(oos_arena *arena, const char *data_dir, json_t **body, oomsight_error *reterr)
{
    const char *like = NULL;
    for (size_t depth = 0; oos_json_str(*body, "like", &like); depth++) {
        json_t *below = NULL;
        const char *file = NULL;
        if (depth == LIKES_MAX)
            return oos_fail(reterr, OOMSIGHT_MALFORMED, "like: more than %d records", LIKES_MAX);
        OOS_TRY(read_file(arena, data_dir, like, &below, &file, reterr));
        (void)json_object_del(*body, "like");
        (void)json_object_del(below, "classes");
        (void)json_object_del(below, "by_type");
        if (json_object_update_recursive(below, *body) != 0)
            return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a record");
        *body = below;
    }
    return OOMSIGHT_OK;
}

oomsight_status oos_record_finish(oos_arena *arena, const char *data_dir, const char *file, json_t *body,
                                  json_t *over, oos_record *ret_record, oomsight_error *reterr)
{
    oomsight_status const status = lay_over(arena, data_dir, &body, reterr);
    if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, file);
    json_t *held = json_incref(over); /* it may be inside what it changes */
    int const laid = json_is_object(held) ? json_object_update_recursive(body, held) : 0;
    (void)json_object_del(body, "classes");
    json_decref(held);
    if (laid != 0) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a record");
    *ret_record = (oos_record){.file = file, .body = body};
    return OOMSIGHT_OK;
}

oomsight_status oos_record_open(oos_arena *arena, const char *data_dir, const char *name,
                                oos_record *ret_record, oomsight_error *reterr)
{
    json_t *body = NULL;
    const char *file = NULL;
    OOS_TRY(read_file(arena, data_dir, name, &body, &file, reterr));
    return oos_record_finish(arena, data_dir, file, body, NULL, ret_record, reterr);
}

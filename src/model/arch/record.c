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
    while (i < scope->let_count && strcmp(scope->lets[i].name, name) != 0) i++;
    if (i == OOS_LETS_MAX) {
        oos_record_fail(scope, "let", "has more than %d names", OOS_LETS_MAX);
        return;
    }
    scope->lets[i].name = name;
    scope->lets[i].value = value;
    if (i == scope->let_count) scope->let_count++;
}

void oos_record_lets(oos_scope *scope)
{
    const char *name;
    json_t *value;
    json_t *let = json_object_get(scope->record->body, "let");
    if (let && !json_is_object(let)) oos_record_fail(scope, "let", "is not an object");
    json_object_foreach(let, name, value)
    {
        (void)value;
        oos_record_let(scope, name, oos_record_size(scope, let, name, 0));
    }
}

/* ---- matrices ---- */

static const char *const matrix_keys[] = {"name",   "out",   "in",     "count",  "as",       "bias",
                                          "module", "dtype", "shards", "kv_out", "kv_heads", "unit",
                                          "when",   "stage", "part",   NULL};

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

static void read_way(const oos_scope *scope, const json_t *object, oos_matrix *m)
{
    const char *word = oos_record_word(scope, object, "as", NULL);
    for (size_t i = 0; word && i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(ways[i].word, word) != 0) continue;
        m->split = ways[i].split;
        m->linear = ways[i].linear;
        return;
    }
    if (word) oos_record_fail(scope, "as", "'%.40s' is not a word of the vocabulary", word);
}

static oos_module read_module(const oos_scope *scope, const json_t *object, oos_module usual)
{
    const char *word = oos_record_word(scope, object, "module", NULL);
    for (size_t i = 0; word && i < OOS_MODULE_COUNT; i++)
        if (strcmp(oos_module_words[i], word) == 0) return (oos_module)i;
    if (word) oos_record_fail(scope, "module", "'%.40s' is not a word of the vocabulary", word);
    return usual;
}

static oos_dtype read_dtype(const oos_scope *scope, const json_t *object, oos_dtype usual)
{
    const char *word = oos_record_word(scope, object, "dtype", NULL);
    oos_dtype const dtype = word ? oos_dtype_find(word) : usual;
    if (word && dtype == OOS_DTYPE_UNKNOWN && strcmp(word, "model") != 0)
        oos_record_fail(scope, "dtype", "'%.40s' is not a word of the vocabulary", word);
    return dtype;
}

void oos_record_matrix(const oos_scope *scope, const json_t *object, const oos_matrix *usual,
                       oos_module module)
{
    oos_matrix m = *usual;
    oos_record_keys(scope, object, "matrix", matrix_keys);
    m.name = oos_record_word(scope, object, "name", m.name);
    if (!m.name) oos_record_fail(scope, "name", "is missing");
    m.out = oos_record_size(scope, object, "out", m.out);
    m.in = oos_record_size(scope, object, "in", m.in);
    m.count = oos_record_size(scope, object, "count", 1);
    m.unit = oos_record_size(scope, object, "unit", 1);
    m.kv_out = oos_record_size(scope, object, "kv_out", 0);
    m.kv_heads = oos_record_size(scope, object, "kv_heads", 0);
    m.bias = oos_record_yes(scope, object, "bias", m.bias);
    m.dtype = read_dtype(scope, object, m.dtype);
    m.shards = (uint8_t)oos_min(oos_record_size(scope, object, "shards", m.shards), 8);
    read_way(scope, object, &m);
    module = read_module(scope, object, module);
    bool const wanted = oos_record_yes(scope, object, "when", true);
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
        const char *part = oos_record_word(scope, matrix, "part", "vision");
        bool const hears = strcmp(part, "audio") == 0;
        if (!hears && strcmp(part, "vision") != 0) oos_record_fail(scope, "part", "is vision or audio");
        if (stage && strcmp(stages[oos_record_choice(scope, matrix, "stage", stages, 0)], stage) != 0)
            continue;
        bool const there = hears ? scope->arch->audio != NULL : scope->arch->model->vision.present;
        if (module == OOS_MODULE_VISION && !there) continue;
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

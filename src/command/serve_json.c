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

json_t *oos_serve_rope(oos_serve_reader *in)
{
    if (in->rope) return in->rope;
    json_t *rope = json_object();
    if (rope && !oos_arena_adopt(in->arena, json_release, rope)) {
        json_decref(rope);
        rope = NULL;
    }
    in->rope = rope;
    return rope;
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

    oos_flag_effect const effect = hit.record->memory ? OOS_FLAG_MODELLED : OOS_FLAG_NO_MEMORY;
    const char *note =
        in->version < in->table->dotted_since ? "this version takes JSON only, no dotted keys" : NULL;
    oos_serve_note(in, (oos_given_flag){.name = name, .value = value, .effect = effect, .note = note});
    return OOMSIGHT_OK;
}

/* ---- what is inside -------------------------------------------------------------------------------------------- */

static const char *keep(oos_serve_reader *in, const char *text)
{
    return oos_arena_copy(in->arena, oos_view_of(text));
}

/* Graph modes by name, in any case, or by the numbers of the engine's enumeration (vLLM 0.11, CUDAGraphMode). */
static const char *graph_mode(const json_t *value)
{
    static const char *const modes[] = {"NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY",
                                        "FULL_AND_PIECEWISE"};
    const char *text = json_string_value(value);
    uint64_t number;
    if (oos_json_value_u64(value, &number) && number <= 2) return modes[number];
    for (size_t i = 0; text && i < sizeof modes / sizeof *modes; i++)
        if (oos_same(text, modes[i])) return modes[i];
    return NULL;
}

/* vLLM 0.12, CompilationMode: the numbers are those of `level` before it. */
static bool mode_number(const json_t *value, uint64_t *ret_number)
{
    static const char *const modes[] = {"NONE", "STOCK_TORCH_COMPILE", "DYNAMO_TRACE_ONCE", "VLLM_COMPILE"};
    const char *text = json_string_value(value);
    if (oos_json_value_u64(value, ret_number)) return true;
    for (size_t i = 0; text && i < sizeof modes / sizeof *modes; i++)
        if (oos_same(text, modes[i])) {
            *ret_number = i;
            return true;
        }
    return false;
}

static oomsight_status sizes_read(oos_serve_reader *in, const json_t *list, const char *key)
{
    oos_compilation *c = &in->serve->compilation;
    size_t const count = json_array_size(list);
    uint64_t *sizes = OOS_NEW_ARRAY(in->arena, uint64_t, count);
    if (!sizes) return nomem(in);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        bool negative = false;
        /* `key+ 1,2` makes texts, which the engine's types turn into numbers */
        bool const known = json_is_string(item)
                               ? oos_serve_int(NULL, json_string_value(item), &negative, &sizes[i])
                               : oos_json_value_u64(item, &sizes[i]);
        if (!known || negative)
            return oos_serve_refuse(in, "--compilation-config", NULL, "%s: Input should be a valid integer",
                                    key);
    }
    c->capture_sizes = sizes;
    c->capture_size_count = count;
    c->capture_sizes_given = true;
    return OOMSIGHT_OK;
}

/* A key that the release does not have is passed over, where it is not refused. */
static bool key_here(const oos_serve_reader *in, const char *name)
{
    oos_flag_hit const hit = oos_flags_find(in->table, oos_view_of("--compilation-config"), in->version);
    oos_flag_key key;
    return !hit.record || oos_flag_key_find(in->table, hit.record, oos_view_of(name), in->version, &key);
}

static oomsight_status compilation_read(oos_serve_reader *in, const json_t *value)
{
    oos_compilation *c = &in->serve->compilation;
    uint64_t number;
    bool yes;
    if (oos_json_value_u64(value, &number)) { /* --compilation-config 3, vLLM before 0.11 */
        c->level = oos_u64_of(number);
        return OOMSIGHT_OK;
    }
    if (!json_is_object(value))
        return oos_serve_refuse(
            in, "--compilation-config", NULL,
            "argument --compilation-config: Input should be a dictionary (dataclass_type)");
    if (key_here(in, "max_cudagraph_capture_size") &&
        oos_json_u64(value, "max_cudagraph_capture_size", &number))
        c->max_capture_size = oos_u64_of(number);
    c->max_in_json = json_object_get(value, "max_cudagraph_capture_size") != NULL;
    c->sizes_in_json = json_object_get(value, "cudagraph_capture_sizes") != NULL;
    bool const modes = key_here(in, "mode");
    if (mode_number(json_object_get(value, "level"), &number)) c->level = oos_u64_of(number);
    if (modes && mode_number(json_object_get(value, "mode"), &number)) {
        if (number > 3)
            return oos_serve_refuse(in, "--compilation-config", NULL,
                                    "argument --compilation-config: mode: Input should be 0, 1, 2 or 3");
        c->level = oos_u64_of(number);
    }
    /* vLLM before 0.11: two switches say what the mode says later */
    if (oos_json_bool(value, "use_cudagraph", &yes) && !yes) c->cudagraph_mode = "NONE";
    if (oos_json_bool(value, "full_cuda_graph", &yes) && yes) c->cudagraph_mode = "FULL";
    const json_t *mode = json_object_get(value, "cudagraph_mode");
    if (mode && !json_is_null(mode)) {
        const char *word = graph_mode(mode);
        if (!word)
            return oos_serve_refuse(
                in, "--compilation-config", NULL,
                "argument --compilation-config: invalid cudagraph_mode: '%.40s' (choose from 'NONE', "
                "'PIECEWISE', 'FULL', 'FULL_DECODE_ONLY', 'FULL_AND_PIECEWISE')",
                json_is_string(mode) ? json_string_value(mode) : "");
        c->cudagraph_mode = word;
    }
    const json_t *sizes = json_object_get(value, "cudagraph_capture_sizes");
    if (json_is_array(sizes)) return sizes_read(in, sizes, "cudagraph_capture_sizes");
    return OOMSIGHT_OK;
}

/* What the class behind it would stop at: a method or a key that is not there. It is made after the parser, so that other
 * refusals come first. */
static void speculative_check(oos_serve_reader *in, const json_t *value)
{
    oos_speculative *s = &in->serve->speculative;
    oos_flag_hit const hit = oos_flags_find(in->table, oos_view_of("--speculative-config"), in->version);
    /* classes of the configuration forbid keys they do not have from one release on */
    oos_flag_hit const other = oos_flags_find(in->table, oos_view_of("--kv-transfer-config"), in->version);
    oos_flag_key key;
    const char *name;
    json_t *item;
    if (!hit.record || !hit.here || oos_serve_newer(in)) return;
    if (s->method && oos_flag_key_find(in->table, hit.record, oos_view_of("method"), in->version, &key))
        s->method_wrong = !oos_flag_key_takes(&key, oos_view_of(s->method));
    if (!other.record || !other.form->strict) return;
    json_object_foreach((json_t *)value, name, item)
    {
        if (oos_flag_key_find(in->table, hit.record, oos_view_of(name), in->version, &key)) continue;
        s->unexpected_key = keep(in, name);
        return;
    }
}

static oomsight_status speculative_read(oos_serve_reader *in, const json_t *value)
{
    oos_speculative *s = &in->serve->speculative;
    const char *text;
    uint64_t number;
    s->present = true;
    if (oos_json_str(value, "method", &text)) s->method = keep(in, text);
    if (oos_json_str(value, "model", &text)) {
        if (strcmp(text, "ngram") == 0 || strcmp(text, "[ngram]") == 0)
            s->method = "ngram";
        else
            s->model = keep(in, text);
    }
    const json_t *tokens = json_object_get(value, "num_speculative_tokens");
    if (json_is_integer(tokens) && json_integer_value(tokens) <= 0)
        s->tokens_wrong = true;
    else if (oos_json_u64(value, "num_speculative_tokens", &number))
        s->tokens = oos_u64_of(number);
    if (oos_json_u64(value, "draft_tensor_parallel_size", &number) ||
        oos_json_u64(value, "tensor_parallel_size", &number))
        s->draft_tensor_parallel_size = oos_u64_of(number);
    speculative_check(in, value);
    return OOMSIGHT_OK;
}

/* {"image": 2} or {"image": {"count": 2, "width": ...}} */
static oomsight_status mm_limits_read(oos_serve_reader *in, const json_t *value)
{
    oos_serve *serve = in->serve;
    const char *key;
    json_t *item;
    bool all_zero = json_object_size(value) > 0;
    json_object_foreach((json_t *)value, key, item)
    {
        uint64_t count;
        bool const counted =
            json_is_object(item) ? oos_json_u64(item, "count", &count) : oos_json_value_u64(item, &count);
        const json_t *number = json_is_object(item) ? json_object_get(item, "count") : item;
        if (json_is_integer(number) && json_integer_value(number) < 0) serve->mm_limit_negative = true;
        if (!counted || count != 0) all_zero = false;
        if (!counted) continue;
        if (strcmp(key, "image") == 0) serve->mm_images = oos_u64_of(count);
        if (strcmp(key, "video") == 0) serve->mm_videos = oos_u64_of(count);
        if (strcmp(key, "audio") == 0) serve->mm_audios = oos_u64_of(count);
    }
    serve->mm_limits_given = true;
    serve->mm_all_zero = all_zero;
    return OOMSIGHT_OK;
}

/* {"max_pixels": N} or {"size": {"longest_edge": N}}, as Qwen's processors take it; also under "images_kwargs". */
static oomsight_status mm_processor_read(oos_serve_reader *in, const json_t *value)
{
    uint64_t pixels;
    const json_t *images = json_object_get(value, "images_kwargs");
    const json_t *const from[] = {value, images, json_object_get(value, "size"),
                                  json_object_get(images, "size")};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        if (oos_json_u64(from[i], i < 2 ? "max_pixels" : "longest_edge", &pixels) && pixels > 0)
            in->serve->mm_max_pixels = oos_u64_of(pixels);
    return OOMSIGHT_OK;
}

static oomsight_status attention_read(oos_serve_reader *in, const json_t *value)
{
    const char *backend;
    /* the engine refuses both at once */
    if (oos_json_str(value, "backend", &backend) && !in->serve->attention_backend)
        in->serve->attention_backend = keep(in, backend);
    return OOMSIGHT_OK;
}

/* Text of a JSON value, the arena's. */
static oomsight_status overrides_keep(oos_serve_reader *in, const json_t *value)
{
    char *text = oos_json_text(value, JSON_COMPACT | JSON_ENCODE_ANY);
    in->serve->hf_overrides_json = text ? keep(in, text) : NULL;
    free(text);
    return in->serve->hf_overrides_json ? OOMSIGHT_OK : nomem(in);
}

static oomsight_status overrides_read(oos_serve_reader *in, const json_t *value)
{
    return json_is_object(value) ? overrides_keep(in, value) : OOMSIGHT_OK; /* a Python function's name */
}

/* vLLM before 0.12: --rope-scaling X is --hf-overrides '{"rope_scaling": X}'. */
static oomsight_status rope_read(oos_serve_reader *in, const json_t *value)
{
    json_t *rope = oos_serve_rope(in);
    if (!rope) return nomem(in);
    json_object_set(rope, "rope_scaling", (json_t *)value);
    return OOMSIGHT_OK;
}

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

static oomsight_status pending_json(oos_serve_reader *in, oos_serve_pending *pending, json_t **ret_value)
{
    if (pending->dotted) {
        *ret_value = pending->dotted;
        return OOMSIGHT_OK;
    }
    const char *name = pending->record->name;
    const oos_flag_form *form = oos_flags_find(in->table, oos_view_of(name), in->version).form;
    bool const pairs_taken = form && (form->pairs || form->kind == OOS_FLAG_KIND_STR);
    if (*pending->text != '{' && strcmp(name, "--limit-mm-per-prompt") == 0 && pairs_taken) {
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

/* One object for each kind of media; told when the model's configuration is made. */
static void media_check(oos_serve_reader *in, const json_t *value)
{
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)value, key, item)
    {
        if (!json_is_object(item) && !in->serve->media_wrong) in->serve->media_wrong = keep(in, key);
    }
}

oomsight_status oos_serve_check_json(oos_serve_reader *in, oos_flag_hit hit, const char *text)
{
    bool const word = hit.form->takes_word || hit.form->pairs || hit.form->kind != OOS_FLAG_KIND_JSON;
    if (*text != '{' && *text != '[' && (word || !hit.here)) return OOMSIGHT_OK; /* a name, or pairs */
    json_t *value;
    oomsight_error why;
    oomsight_status const status = oos_json_load(in->arena, oos_view_of(text), &value, &why);
    if (status == OOMSIGHT_NOMEM) return nomem(in);
    if (status == OOMSIGHT_OK && strcmp(hit.record->name, "--media-io-kwargs") == 0) media_check(in, value);
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
    static const struct {
        const char *name;
        oomsight_status (*read)(oos_serve_reader *, const json_t *);
        bool any; /* not only objects */
    } readers[] = {
        {"--compilation-config", compilation_read, true},   {"--speculative-config", speculative_read, false},
        {"--limit-mm-per-prompt", mm_limits_read, false},   {"--hf-overrides", overrides_read, true},
        {"--attention-config", attention_read, false},      {"--rope-scaling", rope_read, false},
        {"--mm-processor-kwargs", mm_processor_read, true},
    };
    for (oos_serve_pending *p = in->pending; p; p = p->next)
        for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
            json_t *value;
            if (strcmp(p->record->name, readers[i].name) != 0 || (!p->text && !p->dotted)) continue;
            if (readers[i].read == overrides_read && p->text && !p->dotted && *p->text != '{') continue;
            value = NULL;
            OOS_TRY(pending_json(in, p, &value));
            if (!value) continue; /* refused */
            OOS_TRY(oos_serve_check_keys(
                in, oos_flags_find(in->table, oos_view_of(p->record->name), in->version), value));
            if (!readers[i].any && !json_is_object(value)) {
                OOS_TRY(oos_serve_refuse(in, readers[i].name, p->text,
                                         "argument %s: Value %.80s cannot be converted", readers[i].name,
                                         p->text ? p->text : ""));
                continue;
            }
            OOS_TRY(readers[i].read(in, value));
        }
    if (in->rope) {
        json_t *all = in->rope, *given;
        if (in->serve->hf_overrides_json) {
            OOS_TRY(oos_json_load(in->arena, oos_view_of(in->serve->hf_overrides_json), &given, in->reterr));
            json_object_update_missing(all, given);
        }
        OOS_TRY(overrides_keep(in, all));
    }
    return OOMSIGHT_OK;
}

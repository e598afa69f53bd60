/* What vLLM's flags mean: the field that each fills, those with a reader of their own, JSON, and -O. */
#include "base/ascii.h"
#include "engines/vllm/vllm.h"

#include <stdlib.h>

static oomsight_status nomem(oos_serve_reader *in)
{
    return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a flag");
}

static void json_release(void *json)
{
    json_decref(json);
}

/* --rope-scaling and --rope-theta, made when one is first asked for; NULL: out of memory. */
static json_t *rope_of(oos_serve_reader *in)
{
    if (in->overrides) return in->overrides;
    json_t *rope = json_object();
    if (rope && !oos_arena_adopt(in->arena, json_release, rope)) {
        json_decref(rope);
        rope = NULL;
    }
    in->overrides = rope;
    return rope;
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static oomsight_status max_model_len_read(oos_serve_reader *in, oos_flag_hit hit, const char *text)
{
    bool negative = false;
    uint64_t value = 0;
    oos_serve *serve = in->serve;
    bool const is_auto = strcmp(text, "auto") == 0;
    if (is_auto && hit.here && !hit.form->takes_auto && !in->python)
        return oos_serve_refuse(in, hit.record->name, text,
                                "argument %s: invalid human_readable_int value: '%s'", hit.record->name,
                                text);
    if (!is_auto && !oos_serve_int(hit.form, text, &negative, &value))
        return oos_serve_wrong(in, hit.record, hit.form, "int", text);
    serve->max_model_len_auto = is_auto || (negative && value == 1);
    serve->max_model_len = (oos_u64){0};
    if (serve->max_model_len_auto) return OOMSIGHT_OK;
    if (!negative) serve->max_model_len = oos_u64_of(value);
    return OOMSIGHT_OK;
}

static oomsight_status graph_sizes_read(oos_serve_reader *in, const oos_flag_record *record, const char *text)
{
    oos_compilation *compilation = &in->serve->compilation;
    const uint64_t *list;
    size_t count;
    if (!oos_serve_ints(in->arena, text, &list, &count))
        return oos_serve_wrong(in, record, NULL, "int", text);
    /* vLLM 0.9 to 0.11, --cuda-graph-sizes: one number is the largest size, several are the sizes */
    if (count == 1 && strcmp(record->name, "--cuda-graph-sizes") == 0) {
        compilation->max_capture_size = oos_u64_of(list[0]);
        return OOMSIGHT_OK;
    }
    compilation->capture_sizes = list;
    compilation->capture_size_count = count;
    compilation->capture_sizes_given = true;
    return OOMSIGHT_OK;
}

/* --task of the versions before --runner: everything but text comes from a pooling model. */
static const char *runner_of_task(const char *task)
{
    static const char *const pooling[] = {"embed", "embedding", "classify", "reward", "score"};
    for (size_t i = 0; i < sizeof pooling / sizeof *pooling; i++)
        if (strcmp(task, pooling[i]) == 0) return "pooling";
    return strcmp(task, "auto") == 0 ? NULL : "generate";
}

static oomsight_status take(oos_serve_reader *in, oos_flag_hit hit, const char *text)
{
    const char *name = hit.record->name;
    oos_serve *serve = in->serve;
    oos_speculative *draft = &serve->speculative;
    if (strcmp(name, "--max-model-len") == 0) {
        return max_model_len_read(in, hit, text);
    } else if (strcmp(name, "--task") == 0) {
        serve->runner = runner_of_task(text);
    } else if (strcmp(name, "--optimization-level") == 0) {
        bool negative;
        uint64_t level;
        bool const number = oos_serve_int(NULL, *text == 'O' ? text + 1 : text, &negative, &level);
        serve->compilation.optimization_level = oos_u64_of(number && !negative ? level : UINT64_MAX);
    } else if (strcmp(name, "--max-cudagraph-capture-size") == 0) {
        return oos_serve_u64(in, hit, text, &serve->compilation.max_capture_size);
    } else if (strstr(name, "-sizes")) {
        return graph_sizes_read(in, hit.record, text);
    } else if (strcmp(name, "--spec-method") == 0) {
        draft->present = true;
        draft->method = text;
    } else if (strcmp(name, "--num-speculative-tokens") == 0 || strcmp(name, "--spec-tokens") == 0) {
        draft->present = true;
        return oos_serve_u64(in, hit, text, &draft->tokens);
    } else if (strcmp(name, "--speculative-draft-tensor-parallel-size") == 0) {
        return oos_serve_u64(in, hit, text, &draft->draft_tensor_parallel_size);
    } else if (strstr(name, "-model")) { /* --speculative-model, --spec-model */
        draft->present = true;
        if (strcmp(text, "[ngram]") == 0)
            draft->method = "ngram";
        else
            draft->model = text;
    } else if (strcmp(name, "--rope-theta") == 0) {
        double theta;
        if (!oos_serve_float(text, &theta)) return oos_serve_wrong(in, hit.record, hit.form, "float", text);
        json_t *rope = rope_of(in);
        if (!rope) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for --rope-theta");
        json_object_set_new(rope, "rope_theta", json_real(theta));
    }
    return OOMSIGHT_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

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
    } else if (modes && json_is_string(json_object_get(value, "mode"))) {
        return oos_serve_refuse(in, "--compilation-config", NULL,
                                "argument --compilation-config: Invalid compilation mode: %.40s",
                                json_string_value(json_object_get(value, "mode")));
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
    if (!hit.record || !hit.here || oos_serve_newer(in) ||
        (in->version == in->table->learned && hit.record->keys_open))
        return;
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
    if (oos_json_u64(value, "max_model_len", &number)) s->max_model_len = oos_u64_of(number);
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
    json_t *rope = rope_of(in);
    if (!rope) return nomem(in);
    json_object_set(rope, "rope_scaling", (json_t *)value);
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

/* KVTransferConfig, when it is made: the same in every release */
static oomsight_status check_roles(oos_serve_reader *in, const char *flag, const json_t *value)
{
    static const char roles[] = "'kv_producer', 'kv_both', 'kv_consumer'";
    const json_t *connector = json_object_get(value, "kv_connector"),
                 *role = json_object_get(value, "kv_role");
    const char *word = json_string_value(role);
    if (word && strcmp(word, "kv_producer") != 0 && strcmp(word, "kv_both") != 0 &&
        strcmp(word, "kv_consumer") != 0)
        return oos_serve_refuse(in, flag, NULL, "argument %s: kv_role: Input should be %s", flag, roles);
    if (!connector || json_is_null(connector) || (role && !json_is_null(role))) return OOMSIGHT_OK;
    return oos_serve_refuse(
        in, flag, NULL,
        "argument %s: Value error, Please specify kv_role when kv_connector is set, supported roles are %s",
        flag, roles);
}

/* What is looked at in any JSON. */
static oomsight_status look(oos_serve_reader *in, oos_flag_hit hit, const json_t *value)
{
    const char *flag = hit.record->name;
    const json_t *spare = json_object_get(value, "num_redundant_experts");
    if (strcmp(flag, "--media-io-kwargs") == 0) media_check(in, value);
    if (hit.here && strcmp(flag, "--eplb-config") == 0 && json_is_integer(spare) &&
        json_integer_value(spare) >= 0)
        in->serve->redundant_experts = oos_u64_of((uint64_t)json_integer_value(spare));
    if (hit.here && !in->python && strcmp(flag, "--kv-transfer-config") == 0)
        return check_roles(in, flag, value);
    return OOMSIGHT_OK;
}

static oomsight_status finish(oos_serve_reader *in, bool latency)
{
    if (in->overrides) {
        json_t *all = in->overrides, *given;
        if (in->serve->hf_overrides_json) {
            OOS_TRY(oos_json_load(in->arena, oos_view_of(in->serve->hf_overrides_json), &given, in->reterr));
            json_object_update_missing(all, given);
        }
        OOS_TRY(overrides_keep(in, all));
    }
    /* the latency benchmark turns prefix caching off unless it is asked for (0.8 to 0.32, benchmarks/latency.py) */
    if (latency && !in->serve->enable_prefix_caching.known)
        in->serve->enable_prefix_caching = (oos_flag){true, false};
    if (in->positional && *in->positional && in->model_option &&
        !in->bench) /* --model is moved to its place */
        return oos_serve_refuse(in, in->positional, NULL, "unrecognized arguments: %.80s", in->positional);
    return OOMSIGHT_OK;
}

/* ---- -O --------------------------------------------------------------------------------------------------------- */

/* Releases with --optimization-level: whatever is glued to -O is the level, and a number from 0 to 3 behind it; else nobody knows -O. */
static oomsight_status level_of(oos_serve_reader *in, oos_serve_cursor *c, const char *word,
                                oos_flag_hit level)
{
    const char *rest = word + 2;
    oos_compilation *graphs = &in->serve->compilation;
    if (*rest == '.' && strchr(rest, '=')) { /* taken for a level, and meant otherwise */
        size_t const len = strcspn(rest, "=");
        graphs->optimization_level = oos_u64_of(UINT64_MAX);
        graphs->level_flag = oos_arena_format(in->arena, "--compilation-config%.*s", (int)len, rest);
        graphs->level_value = rest + len + 1;
        if (!graphs->level_flag) return nomem(in);
        oos_serve_note(in, (oos_given_flag){.name = graphs->level_flag, .value = graphs->level_value});
        return OOMSIGHT_OK;
    }
    if (*rest) return oos_serve_take(in, level, *rest == '=' ? rest + 1 : rest);
    const char *next = c->at < c->count ? c->words[c->at] : "";
    if (*next < '0' || *next > '3' || next[1]) return oos_serve_unknown(in, c, oos_view_of(word), NULL);
    c->at++;
    return oos_serve_take(in, level, next);
}

/* -O3, -O=3, -O 3, -O.level=3: the level of compilation, or from the version that has --optimization-level, that. */
static oomsight_status level_take(oos_serve_reader *in, oos_serve_cursor *c, const char *word)
{
    oos_flag_hit const config = oos_flags_find(in->table, oos_view_of("--compilation-config"), in->version);
    oos_flag_hit const level = oos_flags_find(in->table, oos_view_of("--optimization-level"), in->version);
    oos_flag_hit const alias = oos_flags_find(in->table, oos_view_of("-O"), in->version);
    const char *rest = word + 2;
    if (!config.record) return oos_serve_unknown(in, c, (oos_view){word, 2}, *rest ? rest : NULL);
    if (!(alias.record && alias.here) && level.record && level.here) return level_of(in, c, word, level);
    if (*rest == '.') {
        const char *equals = strchr(rest, '=');
        char *keys = oos_arena_copy(in->arena, (oos_view){rest + 1, strcspn(rest + 1, "=")});
        if (!keys) return nomem(in);
        if (!equals && c->at == c->count)
            return oos_serve_refuse(in, word, NULL, "argument %s: expected one argument", word);
        return oos_serve_take_dotted(in, config, keys, equals ? equals + 1 : c->words[c->at++]);
    }
    if (*rest == '=') rest++;
    if (!*rest) {
        if (c->at == c->count) return oos_serve_refuse(in, "-O", NULL, "argument -O: expected one argument");
        rest = c->words[c->at++];
    }
    if (*rest == '{') return oos_serve_take(in, config, rest);
    return oos_serve_take_dotted(in, config, "level", rest);
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define FIELD(kind_, name, flag_) {.flag = flag_, .kind = OOS_FIELD_##kind_, .offset = offsetof(oos_serve, name), .size = sizeof((oos_serve *)0)->name
#define U64(name, flag) FIELD(U64, name, flag), .number = true},
#define F64(name, flag) FIELD(F64, name, flag)},
#define YES(name, flag) FIELD(YES, name, flag)},
#define STR(name, flag) FIELD(STR, name, flag)},
#define JSON(flag_, ...) {.flag = flag_, .kind = OOS_FIELD_JSON, __VA_ARGS__}
#define OWN(flag_) {.flag = flag_, .kind = OOS_FIELD_OWN}
static const oos_flag_field fields[] = {
#include "engines/vllm/flags.def"
    {.flag = "--max-model-len", .kind = OOS_FIELD_OWN, .offset = offsetof(oos_serve, max_model_len), .number = true,
     .size = offsetof(oos_serve, max_model_len_auto) + sizeof(bool) - offsetof(oos_serve, max_model_len)},
    FIELD(JSON, compilation, "--compilation-config"), .any = true, .read = compilation_read},
    FIELD(JSON, speculative, "--speculative-config"), .read = speculative_read},
    FIELD(JSON, hf_overrides_json, "--hf-overrides"), .any = true, .braced = true, .read = overrides_read},
    JSON("--limit-mm-per-prompt", .pairs = true, .read = mm_limits_read),
    JSON("--mm-processor-kwargs", .any = true, .read = mm_processor_read),
    JSON("--attention-config", .read = attention_read),
    JSON("--rope-scaling", .read = rope_read),
    OWN("--rope-theta"),
    OWN("--task"),
    OWN("--optimization-level"),
    OWN("--cuda-graph-sizes"),
    OWN("--cudagraph-capture-sizes"),
    OWN("--max-cudagraph-capture-size"),
    OWN("--speculative-model"),
    OWN("--num-speculative-tokens"),
    OWN("--speculative-draft-tensor-parallel-size"),
    OWN("--spec-method"),
    OWN("--spec-model"),
    OWN("--spec-tokens"),
};
/* clang-format on */

/* They can decide whether a model is built at all, or where processes live. */
static const char *const harmless[] = {"--trust-remote-code", "--distributed-executor-backend",
                                       "--code-revision",     "--api-server-count",
                                       "--config-format",     NULL};
static const char *const made_later[] = {"--diffusion-config", "--watermark-config", NULL};

const oos_dialect oos_vllm_dialect = {
    .entry_at = oos_vllm_entry_at,
    .expected = "vLLM: expected `vllm serve MODEL ...`, `vllm bench ...`, "
                "`python -m vllm.entrypoints.openai.api_server ...` or `LLM(model=...)`",
    .start = "vllm serve MODEL ...",
    .client = "`vllm bench serve` is a client and starts no engine: plan the `vllm serve` that it talks to",
    .image = "vllm-openai",
    .variable_set = oos_vllm_variable_set,
    .model_flag = "--model",
    .share_flag = "--gpu-memory-utilization",
    .config_flag = "--config",
    .keywords = true,
    .fields = fields,
    .field_count = sizeof fields / sizeof *fields,
    .take = take,
    .look = look,
    .finish = finish,
    .first_letter = 'O',
    .first_take = level_take,
    .harmless = harmless,
    .made_later = made_later,
};

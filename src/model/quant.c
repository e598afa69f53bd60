/* Reading quantisation configs: one function per method, as the engine reads them (vLLM 0.32, from_config() and
 * override_quantization_method() of model_executor/layers/quantization). Names are looked up in quant_match.c. */
#include "model/model.h"
#include "base/ascii.h"

static const oos_quant unquantised = {.kind = OOS_QUANT_NONE};

typedef struct reader {
    oos_quantizer *q;
    const json_t *config;
    const json_t *text;
    const oos_rename *renames;
    const char *last_experts; /* the module whose experts were just named */
    bool v4, v4_named;        /* DeepSeek V4, and its model_type says so */
    bool failed;              /* out of memory */
} reader;

static void add_name(reader *r, oos_names *names, const char *text, bool regular, uint32_t value)
{
    const char *name = regular ? text : oos_rename_apply(r->q->arena, r->renames, text);
    if (name && !oos_names_add(r->q->arena, names, name, regular, value)) r->failed = true;
    if (regular && name && !r->failed && !names->list[names->count - 1].pattern)
        r->q->note =
            oos_arena_format(r->q->arena, "quantisation names a pattern that is not understood: %s", text);
}

/* `re:` only where the method knows it. */
static void add_list(reader *r, oos_names *names, const json_t *list, bool regular_words)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_string(item)) continue;
        const char *text = json_string_value(item);
        bool const regular = regular_words && strncmp(text, "re:", 3) == 0;
        add_name(r, names, regular ? text + 3 : text, regular, 0);
    }
}

static uint32_t add_scheme(reader *r, oos_quant scheme)
{
    oos_quantizer *q = r->q;
    for (size_t i = 0; i < q->scheme_count; i++) {
        const oos_quant *s = &q->schemes[i];
        if (s->kind == scheme.kind && s->bits == scheme.bits && s->group == scheme.group &&
            s->symmetric == scheme.symmetric && s->weight_only == scheme.weight_only &&
            s->spare_scale == scheme.spare_scale && s->dynamic_activation == scheme.dynamic_activation &&
            s->block_in == scheme.block_in)
            return (uint32_t)i;
    }
    if (q->scheme_count == OOS_SCHEMES_MAX) {
        q->note = "more quantisation schemes than are kept apart: the last stands for the rest";
        return OOS_SCHEMES_MAX - 1;
    }
    q->schemes[q->scheme_count] = scheme;
    return (uint32_t)q->scheme_count++;
}

static uint64_t number(const json_t *object, const char *key, uint64_t fallback)
{
    uint64_t value;
    return oos_json_u64(object, key, &value) ? value : fallback;
}

static bool yes(const json_t *object, const char *key, bool fallback)
{
    bool value;
    return oos_json_bool(object, key, &value) ? value : fallback;
}

static const char *word(const json_t *object, const char *key, const char *fallback)
{
    const char *value;
    return oos_json_str(object, key, &value) ? value : fallback;
}

/* -1 and absent mean one group per row. */
static uint64_t group_of(const json_t *object, const char *key)
{
    return number(object, key, 0);
}

static void read_awq(reader *r)
{
    oos_quantizer *q = r->q;
    q->method = OOS_METHOD_AWQ;
    q->base =
        (oos_quant){.kind = OOS_QUANT_AWQ,
                    .bits = (unsigned)number(r->config, "bits", number(r->config, "w_bit", 4)),
                    .group = json_object_get(r->config, "group_size") ? group_of(r->config, "group_size")
                                                                      : group_of(r->config, "q_group_size"),
                    .symmetric = !yes(r->config, "zero_point", true),
                    .weight_only = true};
    q->lm_head = yes(r->config, "lm_head", false);
    add_list(r, &q->ignore, json_object_get(r->config, "modules_to_not_convert"), false);
}

static void read_gptq(reader *r)
{
    oos_quantizer *q = r->q;
    q->method = OOS_METHOD_GPTQ;
    q->base = (oos_quant){.kind = OOS_QUANT_GPTQ,
                          .bits = (unsigned)number(r->config, "bits", 4),
                          .group = group_of(r->config, "group_size"),
                          .symmetric = yes(r->config, "sym", true),
                          .act_order = yes(r->config, "desc_act", false),
                          .weight_only = true};
    q->lm_head = yes(r->config, "lm_head", false);
    const char *key;
    json_t *rule;
    json_object_foreach((json_t *)json_object_get(r->config, "dynamic"), key, rule)
    {
        oos_quant scheme = q->base;
        if (strncmp(key, "-:", 2) == 0)
            scheme = unquantised;
        else {
            scheme.bits = (unsigned)number(rule, "bits", scheme.bits);
            scheme.group = number(rule, "group_size", scheme.group);
            scheme.symmetric = yes(rule, "sym", scheme.symmetric);
        }
        bool const signed_key = strncmp(key, "-:", 2) == 0 || strncmp(key, "+:", 2) == 0;
        add_name(r, &q->targets, key + (signed_key ? 2 : 0), true, add_scheme(r, scheme));
    }
}

static void read_fp8(reader *r)
{
    oos_quantizer *q = r->q;
    const json_t *blocks = json_object_get(r->config, "weight_block_size");
    bool const dynamic = strcmp(word(r->config, "activation_scheme", "dynamic"), "static") != 0;
    q->method = OOS_METHOD_FP8;
    q->base = (oos_quant){
        .kind = OOS_QUANT_FP8_TENSOR, .bits = 8, .symmetric = true, .dynamic_activation = dynamic};
    if (json_is_array(blocks)) {
        q->base.kind = OOS_QUANT_FP8_BLOCK;
        if (!oos_json_value_u64(json_array_get(blocks, 0), &q->base.block_out)) q->base.block_out = 128;
        if (!oos_json_value_u64(json_array_get(blocks, 1), &q->base.block_in)) q->base.block_in = 128;
    }
    if (r->v4) { /* DeepseekV4FP8Config: the experts have a dtype of their own */
        const char *experts = word(r->text, "expert_dtype", r->v4_named ? "fp4" : "fp8");
        q->method = OOS_METHOD_EXPERTS_ONLY;
        q->experts = q->base;
        q->base.byte_scales = strcmp(experts, "fp4") == 0;
        if (strcmp(experts, "fp4") == 0)
            q->experts = (oos_quant){.kind = OOS_QUANT_MXFP4, .bits = 4, .group = 32, .symmetric = true};
        if (oos_same(word(r->config, "moe_quant_algo", ""), "NVFP4"))
            q->experts = (oos_quant){.kind = OOS_QUANT_NVFP4, .bits = 4, .group = 16, .symmetric = true};
        return;
    }
    const json_t *list = json_object_get(r->config, "ignored_layers");
    if (json_array_size(list) == 0) list = json_object_get(r->config, "modules_to_not_convert");
    add_list(r, &q->ignore, list, false);
    /* of built-in models: no engine has it */
    add_list(r, &q->ignore, json_object_get(r->config, "modules_to_not_convert_re"), true);
}

/* One group of compressed-tensors: weights and what happens to activations. */
static oos_quant compressed_group(reader *r, const json_t *group, const char *format)
{
    const json_t *weights = json_object_get(group, "weights"),
                 *input = json_object_get(group, "input_activations");
    const char *type = word(weights, "type", "int"), *strategy = word(weights, "strategy", NULL);
    uint64_t const bits = number(weights, "num_bits", 8), size = group_of(weights, "group_size");
    if (!strategy) strategy = size ? "group" : "tensor";
    bool const weight_only = !json_is_object(input);
    bool const dynamic = !weight_only && !json_is_false(json_object_get(input, "dynamic"));
    oos_quant scheme = {.bits = (unsigned)bits,
                        .group =
                            strcmp(strategy, "channel") == 0 || strcmp(strategy, "tensor") == 0 ? 0 : size,
                        .symmetric = yes(weights, "symmetric", true),
                        .dynamic_activation = dynamic,
                        .weight_only = weight_only};
    if (strcmp(type, "float") == 0 && bits == 4) {
        scheme.kind = size == 32 ? OOS_QUANT_MXFP4 : OOS_QUANT_NVFP4;
    } else if (strcmp(type, "float") == 0 && size == 32) {
        scheme.kind = OOS_QUANT_MXFP8;
    } else if (strcmp(type, "float") == 0 && strcmp(strategy, "block") == 0) {
        const json_t *blocks = json_object_get(weights, "block_structure");
        scheme.kind = OOS_QUANT_FP8_BLOCK;
        scheme.block_out = scheme.block_in = 128;
        (void)oos_json_value_u64(json_array_get(blocks, 0), &scheme.block_out);
        (void)oos_json_value_u64(json_array_get(blocks, 1), &scheme.block_in);
        scheme.group = 0;
    } else if (strcmp(type, "float") == 0) {
        scheme.kind = strcmp(strategy, "channel") == 0 ? OOS_QUANT_FP8_CHANNEL : OOS_QUANT_FP8_TENSOR;
    } else if (weight_only || strcmp(format, "pack-quantized") == 0) {
        scheme.kind = OOS_QUANT_PACKED_INT;
    } else {
        scheme.kind = OOS_QUANT_INT8;
    }
    (void)r;
    return scheme;
}

static void read_compressed(reader *r)
{
    oos_quantizer *q = r->q;
    const char *format = word(r->config, "format", "");
    const json_t *kv = json_object_get(r->config, "kv_cache_scheme");
    q->method = OOS_METHOD_COMPRESSED;
    if (json_is_object(kv)) q->kv_dtype = OOS_DTYPE_F8;
    add_list(r, &q->ignore, json_object_get(r->config, "ignore"), true);
    const char *key;
    json_t *group;
    json_object_foreach((json_t *)json_object_get(r->config, "config_groups"), key, group)
    {
        const json_t *targets = json_object_get(group, "targets");
        oos_quant const scheme = compressed_group(r, group, word(group, "format", format));
        uint32_t const value = add_scheme(r, scheme);
        for (size_t i = 0; i < json_array_size(targets); i++) {
            const json_t *target = json_array_get(targets, i);
            if (!json_is_string(target)) continue;
            const char *text = json_string_value(target);
            if (strcmp(text, "Linear") == 0) {
                q->has_linear = true;
                q->linear = scheme;
                continue;
            }
            bool const regular = strncmp(text, "re:", 3) == 0;
            add_name(r, &q->targets, regular ? text + 3 : text, regular, value);
        }
    }
}

/* A ModelOpt algorithm by name; UNKNOWN when we do not know it. */
static oos_quant modelopt_scheme(const char *algo, uint64_t group)
{
    static const struct {
        const char *algo;
        oos_quant scheme;
    } known[] = {
        {"FP8", {.kind = OOS_QUANT_FP8_TENSOR, .bits = 8, .symmetric = true}},
        {"FP8_PER_CHANNEL_PER_TOKEN",
         {.kind = OOS_QUANT_FP8_CHANNEL, .bits = 8, .symmetric = true, .dynamic_activation = true}},
        {"FP8_PB_WO",
         {.kind = OOS_QUANT_FP8_BLOCK,
          .bits = 8,
          .block_out = 128,
          .block_in = 128,
          .symmetric = true,
          .dynamic_activation = true}},
        {"NVFP4", {.kind = OOS_QUANT_NVFP4, .bits = 4, .symmetric = true}},
        {"W4A16_NVFP4",
         {.kind = OOS_QUANT_NVFP4, .bits = 4, .symmetric = true, .weight_only = true, .spare_scale = true}},
        {"MXFP8",
         {.kind = OOS_QUANT_MXFP8, .bits = 8, .group = 32, .symmetric = true, .dynamic_activation = true}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (oos_same(known[i].algo, algo)) {
            oos_quant scheme = known[i].scheme;
            if (scheme.kind == OOS_QUANT_NVFP4) scheme.group = group ? group : 16;
            return scheme;
        }
    return (oos_quant){.kind = OOS_QUANT_UNKNOWN};
}

/* "path*" means the module and everything below it; the engine writes it as two entries before renaming. */
static void add_excludes(reader *r, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_string(item)) continue;
        const char *text = json_string_value(item);
        size_t const len = strlen(text);
        if (r->renames && len >= 2 && text[len - 1] == '*' && text[len - 2] != '.') {
            char *bare = oos_arena_copy(r->q->arena, (oos_view){text, len - 1});
            char *below = oos_arena_format(r->q->arena, "%.*s.*", (int)(len - 1), text);
            if (!bare || !below) {
                r->failed = true;
                return;
            }
            add_name(r, &r->q->ignore, bare, false, 0);
            add_name(r, &r->q->ignore, below, false, 0);
            continue;
        }
        add_name(r, &r->q->ignore, text, false, 0);
    }
}

static oos_dtype modelopt_kv(const json_t *config, const json_t *inner)
{
    const json_t *scheme = json_object_get(inner, "kv_cache_scheme");
    if (!scheme || json_is_null(scheme)) scheme = json_object_get(config, "kv_cache_scheme");
    if (json_is_object(scheme))
        return number(scheme, "num_bits", 0) == 8 && json_is_false(json_object_get(scheme, "dynamic"))
                   ? OOS_DTYPE_F8
                   : OOS_DTYPE_UNKNOWN;
    const char *algo = json_is_string(scheme) ? json_string_value(scheme) : NULL;
    if (!algo) algo = word(inner, "kv_cache_quant_algo", word(config, "kv_cache_quant_algo", NULL));
    return algo && oos_same(algo, "FP8") ? OOS_DTYPE_F8 : OOS_DTYPE_UNKNOWN;
}

/* Experts are named one by one, and the engine takes the scheme of the first: one entry stands for all of them. */
static void add_module(reader *r, const char *key, uint32_t scheme)
{
    oos_names *names = &r->q->targets;
    const char *experts = strstr(key, ".experts.");
    if (!experts) {
        add_name(r, names, key, false, scheme);
        return;
    }
    size_t const len = (size_t)(experts - key) + strlen(".experts");
    if (r->last_experts && strlen(r->last_experts) == len && strncmp(r->last_experts, key, len) == 0) return;
    r->last_experts = oos_arena_copy(r->q->arena, (oos_view){key, len});
    if (!r->last_experts)
        r->failed = true;
    else
        add_name(r, names, r->last_experts, false, scheme);
}

static void read_modelopt(reader *r)
{
    oos_quantizer *q = r->q;
    const json_t *inner = json_object_get(r->config, "quantization");
    bool const legacy = json_is_object(inner);
    if (!legacy) inner = r->config;
    const char *algo = word(inner, "quant_algo", "");
    q->kv_dtype = modelopt_kv(r->config, inner);
    add_excludes(r, json_object_get(inner, legacy ? "exclude_modules" : "ignore"));
    uint64_t const group = group_of(inner, "group_size");
    if (!oos_same(algo, "MIXED_PRECISION")) {
        q->method = OOS_METHOD_MODELOPT;
        q->base = modelopt_scheme(algo, group);
        if (q->base.kind == OOS_QUANT_UNKNOWN) q->note = "a ModelOpt algorithm that is not known";
        return;
    }
    q->method = OOS_METHOD_MIXED;
    const char *key;
    json_t *layer;
    json_object_foreach((json_t *)json_object_get(inner, "quantized_layers"), key, layer)
    {
        oos_quant const scheme =
            modelopt_scheme(word(layer, "quant_algo", ""), number(layer, "group_size", group));
        add_module(r, key, add_scheme(r, scheme));
    }
}

static void read_autoround(reader *r)
{
    oos_quantizer *q = r->q;
    bool const awq = strstr(word(r->config, "packing_format", "auto_round:auto_gptq"), "awq") != NULL;
    q->method = OOS_METHOD_AUTOROUND;
    q->base = (oos_quant){.kind = awq ? OOS_QUANT_AWQ : OOS_QUANT_GPTQ,
                          .bits = (unsigned)number(r->config, "bits", 4),
                          .group = group_of(r->config, "group_size"),
                          .symmetric = yes(r->config, "sym", true),
                          .weight_only = true};
    const char *names =
        word(r->config, "block_name_to_quantize", word(r->config, "to_quant_block_names", NULL));
    if (names) {
        q->blocks = OOS_NEW_ARRAY(q->arena, const char *, 16);
        for (const char *at = names; q->blocks && *at && q->block_count < 16;) {
            size_t const len = strcspn(at, ",");
            char *block = oos_arena_copy(q->arena, (oos_view){at, len});
            if (block) block = (char *)(uintptr_t)oos_rename_apply(q->arena, r->renames, block);
            if (block) q->blocks[q->block_count++] = block;
            at += len + (at[len] == ',');
        }
    }
    const char *key;
    json_t *extra;
    json_object_foreach((json_t *)json_object_get(r->config, "extra_config"), key, extra)
    {
        oos_quant scheme = q->base;
        scheme.bits = (unsigned)number(extra, "bits", scheme.bits);
        scheme.group = number(extra, "group_size", scheme.group);
        scheme.symmetric = yes(extra, "sym", scheme.symmetric);
        if (scheme.bits >= 16) scheme = unquantised;
        add_name(r, &q->targets, key, strpbrk(key, "*+?^$()[]{}|\\") != NULL, add_scheme(r, scheme));
    }
}

static void read_bnb(reader *r)
{
    oos_quantizer *q = r->q;
    q->method = OOS_METHOD_BNB;
    q->base = (oos_quant){.kind = OOS_QUANT_BNB,
                          .bits = yes(r->config, "load_in_8bit", false) ? 8 : 4,
                          .group = 64,
                          .double_quant = yes(r->config, "bnb_4bit_use_double_quant", false),
                          .weight_only = true};
    add_list(r, &q->ignore, json_object_get(r->config, "llm_int8_skip_modules"), false);
}

static void read_other(reader *r)
{
    oos_quantizer *q = r->q;
    if (strcmp(q->word, "mxfp4") == 0 || strcmp(q->word, "gpt_oss_mxfp4") == 0) {
        q->method = OOS_METHOD_MXFP4;
        q->base = (oos_quant){
            .kind = OOS_QUANT_MXFP4, .bits = 4, .group = 32, .symmetric = true, .weight_only = true};
    } else if (strcmp(q->word, "fbgemm_fp8") == 0) {
        q->method = OOS_METHOD_FBGEMM;
        q->base = (oos_quant){
            .kind = OOS_QUANT_FP8_CHANNEL, .bits = 8, .symmetric = true, .dynamic_activation = true};
        add_list(r, &q->ignore, json_object_get(r->config, "modules_to_not_convert"), false);
    } else {
        q->method = OOS_METHOD_UNKNOWN;
        q->note = oos_arena_format(
            q->arena, "quantisation method %s is not known: weights are taken as not quantised", q->word);
    }
}

/* The config that the engine goes by: config.json's, else hf_quant_config.json, else the text part's. */
static const json_t *config_of(const json_t *root, const json_t *text, const json_t *legacy)
{
    const json_t *config = json_object_get(root, "quantization_config");
    if (json_is_object(config)) return config;
    if (json_is_object(legacy)) return legacy;
    config = json_object_get(text, "quantization_config");
    if (!json_is_object(config)) config = json_object_get(root, "compression_config");
    return json_is_object(config) ? config : NULL;
}

/* vLLM _normalize_quantization_config(): a ModelOpt file says so by its producer, and then only in its own form. */
static const char *method_word(const json_t *config)
{
    const json_t *inner = json_object_get(config, "quantization");
    const char *producer = word(json_object_get(config, "producer"), "name", "");
    if (json_is_object(inner) && strcmp(producer, "modelopt") == 0 && word(inner, "quant_algo", NULL))
        return "modelopt";
    return word(config, "quant_method", "");
}

oomsight_status oos_quantizer_read(oos_arena *arena, const json_t *root, const json_t *text,
                                   const json_t *legacy, const oos_rename *renames,
                                   oos_quantizer **ret_quantizer, oomsight_error *reterr)
{
    *ret_quantizer = NULL;
    const json_t *config = config_of(root, text, legacy);
    if (!config) return OOMSIGHT_OK;
    bool const named = method_word(config)[0] != '\0';
    const json_t *inner = json_object_get(config, "quantization");
    if (!named && !word(json_is_object(inner) ? inner : config, "quant_algo", NULL)) return OOMSIGHT_OK;
    oos_quantizer *q = OOS_NEW(arena, oos_quantizer);
    if (!q) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the quantisation");
    q->arena = arena;
    q->word = named ? method_word(config) : "modelopt";
    q->by_flag = !named;
    q->produced = json_is_object(inner) &&
                  strcmp(word(json_object_get(config, "producer"), "name", ""), "modelopt") == 0;
    q->algo = word(json_is_object(inner) ? inner : config, "quant_algo", NULL);

    reader r = {.q = q, .config = config, .text = text, .renames = renames};
    const json_t *first = json_array_get(json_object_get(root, "architectures"), 0);
    r.v4 = json_is_string(first) && strncmp(json_string_value(first), "DeepseekV4", 10) == 0;
    r.v4_named = strncmp(word(root, "model_type", ""), "deepseek_v4", 11) == 0;
    if (oos_same(q->word, "awq") || strcmp(q->word, "awq_marlin") == 0)
        read_awq(&r);
    else if (oos_same(q->word, "gptq") || strcmp(q->word, "gptq_marlin") == 0)
        read_gptq(&r);
    else if (strcmp(q->word, "fp8") == 0)
        read_fp8(&r);
    else if (strcmp(q->word, "compressed-tensors") == 0 || strcmp(q->word, "compressed_tensors") == 0)
        read_compressed(&r);
    else if (strncmp(q->word, "modelopt", 8) == 0)
        read_modelopt(&r);
    else if (strcmp(q->word, "auto-round") == 0 || strcmp(q->word, "inc") == 0)
        read_autoround(&r);
    else if (strcmp(q->word, "bitsandbytes") == 0)
        read_bnb(&r);
    else
        read_other(&r);
    if (r.failed) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the quantisation's names");
    oos_names_sort(&q->ignore);
    oos_names_sort(&q->targets);
    q->layerless = oos_names_layerless(&q->ignore) && oos_names_layerless(&q->targets);
    *ret_quantizer = q;
    return OOMSIGHT_OK;
}

bool oos_quantizer_unknown(const oos_quantizer *q)
{
    return q && (q->method == OOS_METHOD_UNKNOWN || q->base.kind == OOS_QUANT_UNKNOWN);
}

bool oos_quantizer_by_flag(const oos_quantizer *q)
{
    return q && q->by_flag;
}

const char *oos_quantizer_algo(const oos_quantizer *q, bool *ret_produced)
{
    *ret_produced = q && q->produced;
    return q ? q->algo : NULL;
}

const char *oos_quantizer_method(const oos_quantizer *q)
{
    return q ? q->word : NULL;
}

oos_dtype oos_quantizer_kv_dtype(const oos_quantizer *q)
{
    return q ? q->kv_dtype : OOS_DTYPE_UNKNOWN;
}

const char *oos_quantizer_note(const oos_quantizer *q)
{
    return q ? q->note : NULL;
}

uint64_t oos_ranks_that_divide(const oos_model *model, uint64_t most)
{
    uint64_t const kv_heads = model->mla ? 0 : model->kv_heads;
    uint64_t const heads = model->heads ? model->heads : most; /* unknown */
    for (uint64_t n = oos_min(oos_min(most, heads), OOS_PARALLEL_MAX); n > 1; n--)
        if (heads % n == 0 && (kv_heads == 0 || kv_heads % n == 0 || n % kv_heads == 0)) return n;
    return 1;
}

bool oos_model_in_four_bits(const oos_model *model)
{
    double all = 0, packed = 0;
    for (size_t i = 0; i < model->matrix_count; i++) {
        const oos_matrix *matrix = &model->matrices[i];
        const oos_quant *quant = &model->quants[matrix->quant];
        /* a layer stands for all that are like it, the head for one */
        if (!matrix->linear || (matrix->module && strcmp(matrix->module, "lm_head") == 0)) continue;
        double const size = (double)matrix->in * (double)matrix->out * (double)oos_max(1, matrix->count);
        bool const four = quant->kind == OOS_QUANT_NVFP4 || quant->kind == OOS_QUANT_MXFP4 ||
                          (quant->kind != OOS_QUANT_NONE && quant->bits > 0 && quant->bits <= 4);
        all += size;
        if (four) packed += size;
    }
    return packed * 2 >= all && packed > 0;
}

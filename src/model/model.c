/* Reading config.json into a model: which part of it describes the decoder, the fields all families share, and what
 * the engine derives from them. The families are in arch/, quantisation in quant.c. */
#include "model/model.h"

#include "base/check.h"
#include "base/file.h"
#include "model/arch/arch.h"

#include <stdio.h>

enum { CONFIG_BYTES_MAX = 16 << 20 };

/* The end of the string that opens at `at`: behind its closing quote. */
static size_t string_end(const char *text, size_t len, size_t at)
{
    for (at++; at < len && text[at] != '"'; at++)
        if (text[at] == '\\') at++;
    return oos_min(at + 1, len);
}

static size_t value_end(const char *text, size_t len, size_t at)
{
    oos_assert(at < len && text[at] == '{'); /* or a bracket would close what was never opened */
    unsigned depth = 0;
    while (at < len) {
        if (text[at] == '"') {
            at = string_end(text, len, at);
            continue;
        }
        if (text[at] == '{' || text[at] == '[') depth++;
        if ((text[at] == '}' || text[at] == ']') && --depth == 0) return at + 1;
        at++;
    }
    return len;
}

static size_t skip_blanks(const char *text, size_t len, size_t at)
{
    while (at < len && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) at++;
    return at;
}

/* "...experts.N..." with N > 0, as a key. */
static bool names_a_later_expert(const char *text, size_t from, size_t to)
{
    static const char mark[] = ".experts.";
    const char *found = memmem(text + from, to - from, mark, sizeof mark - 1);
    if (!found || found + sizeof mark >= text + to) return false;
    const char *number = found + sizeof mark - 1;
    return (number[0] >= '1' && number[0] <= '9') ||
           (number[0] == '0' && number[1] >= '0' && number[1] <= '9');
}

/* Quantisers write an object for every projection of every expert, megabytes that all say the same: those of the
 * experts after the first are blanked before the tree is built. */
static void forget_later_experts(char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        if (text[at] != '"') {
            at++;
            continue;
        }
        size_t const end = string_end(text, len, at), colon = skip_blanks(text, len, end);
        size_t const value = colon < len && text[colon] == ':' ? skip_blanks(text, len, colon + 1) : len;
        if (value >= len || text[value] != '{' || !names_a_later_expert(text, at, end)) {
            at = end;
            continue;
        }
        size_t const after = value_end(text, len, value), comma = skip_blanks(text, len, after);
        if (comma >= len || text[comma] != ',') { /* the last member: nothing may be left before its comma */
            at = after;
            continue;
        }
        memset(text + at, ' ', comma + 1 - at);
        at = comma + 1;
    }
}

/* Python writes NaN and Infinity into JSON (Nemotron's time_step_limit has one), Jansson refuses them. No number we
 * read may be either, so they become a text (NaN, too short for one that has it, an empty text). */
static void forget_infinities(char *text, size_t len)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    for (size_t at = 0; at < len; at++) {
        if (text[at] == '"') {
            at = string_end(text, len, at) - 1;
            continue;
        }
        if (text[at] != '-' && text[at] != 'I' && text[at] != 'N') continue;
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            size_t const word = strlen(words[w]);
            if (len - at < word || memcmp(text + at, words[w], word) != 0) continue;
            memset(text + at, ' ', word);
            memcpy(text + at, word > 3 ? "\"inf\"" : "\"\"", word > 3 ? 5 : 2);
            at += word - 1;
            break;
        }
    }
}

enum { LARGE_CONFIG_BYTES = 256 << 10 };

static oomsight_status load(oos_arena *arena, oos_view bytes, json_t **ret_root, oomsight_error *reterr)
{
    char *copy = oos_arena_copy(arena, bytes);
    if (!copy) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for %zu bytes of config", bytes.len);
    forget_infinities(copy, bytes.len);
    if (bytes.len > LARGE_CONFIG_BYTES) forget_later_experts(copy, bytes.len);
    OOS_TRY(oos_json_load(arena, (oos_view){copy, bytes.len}, ret_root, reterr));
    if (!json_is_object(*ret_root)) return oos_fail(reterr, OOMSIGHT_MALFORMED, "not a JSON object");
    return OOMSIGHT_OK;
}

/* vLLM get_hf_text_config(): the part of a composite config that describes the decoder. */
static const json_t *text_of(const json_t *root)
{
    static const char *const keys[] = {"text_config", "llm_config", "language_config", "thinker_config"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *part = json_object_get(root, keys[i]);
        if (json_is_object(part) && json_object_size(part) > 0)
            return i == sizeof keys / sizeof *keys - 1 ? text_of(part) : part;
    }
    return root;
}

/* The first of several spellings; a value that is there and is no size is an error, not an absence. */
static bool first_u64(oos_arch *a, const json_t *object, const char *const *keys, uint64_t *ret_value)
{
    for (; *keys; keys++)
        if (oos_arch_size(a, object, *keys, ret_value)) return true;
    return false;
}

static uint64_t size_field(oos_arch *a, const char *const *keys, uint64_t fallback)
{
    uint64_t value;
    return first_u64(a, a->text, keys, &value) ? value : fallback;
}
#define SIZE_FIELD(a, fallback, ...) size_field((a), (const char *const[]){__VA_ARGS__, NULL}, (fallback))

static oos_dtype dtype_in(const json_t *object)
{
    const char *word = NULL;
    if (!oos_json_str(object, "torch_dtype", &word) && !oos_json_str(object, "dtype", &word))
        return OOS_DTYPE_UNKNOWN;
    return oos_dtype_find(word);
}

/* vLLM get_torch_dtype(): the root says, else the text part, else the vision part. */
static oos_dtype dtype_of(const oos_arch *a)
{
    oos_dtype dtype = dtype_in(a->root);
    if (dtype == OOS_DTYPE_UNKNOWN) dtype = dtype_in(a->text);
    if (dtype == OOS_DTYPE_UNKNOWN) dtype = dtype_in(a->vision);
    return dtype;
}

static const char *architecture_of(const json_t *root)
{
    const json_t *first = json_array_get(json_object_get(root, "architectures"), 0);
    return json_is_string(first) ? json_string_value(first) : NULL;
}

static const json_t *part_of(const json_t *root, const char *key)
{
    const json_t *part = json_object_get(root, key);
    if (!json_is_object(part)) part = json_object_get(json_object_get(root, "thinker_config"), key);
    return json_is_object(part) && json_object_size(part) > 0 ? part : NULL;
}

static void common_fields(oos_arch *a)
{
    oos_model *m = a->model;
    m->dtype = dtype_of(a);
    m->hidden = SIZE_FIELD(a, 0, "hidden_size", "n_embd", "d_model", "hidden_dim");
    m->heads = SIZE_FIELD(a, 0, "num_attention_heads", "n_head", "n_heads", "num_heads");
    m->kv_heads = SIZE_FIELD(a, m->heads, "n_head_kv", "num_kv_heads", "num_key_value_heads",
                             "multi_query_group_num", "num_attention_groups");
    m->head_dim = SIZE_FIELD(a, 0, "head_dim", "hidden_size_per_head", "attention_head_dim");
    if (m->head_dim == 0 && m->heads > 0) m->head_dim = m->hidden / m->heads;
    m->intermediate =
        SIZE_FIELD(a, 0, "intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "inner_dim");
    m->vocab = SIZE_FIELD(a, 0, "vocab_size", "padded_vocab_size", "n_vocab");
    /* since transformers 5 the wrapper's word counts, where there is a wrapper */
    m->tied = oos_arch_yes(a, "tie_word_embeddings", false);
    if (a->text != a->root) (void)oos_json_bool(a->root, "tie_word_embeddings", &m->tied);
    m->moe.experts =
        SIZE_FIELD(a, 0, "num_experts", "moe_num_experts", "n_routed_experts", "num_local_experts");
    m->moe.per_token = SIZE_FIELD(a, 0, "num_experts_per_tok", "num_experts_per_token", "top_k_experts",
                                  "moe_topk", "moe_top_k", "experts_per_token");
    m->moe.intermediate = SIZE_FIELD(a, m->intermediate, "moe_intermediate_size", "expert_intermediate_size");
    m->moe.shared = SIZE_FIELD(a, 0, "n_shared_experts", "num_shared_experts");
}

static void without(oos_arch *a, const char *key)
{
    const json_t *given = json_object_get(a->text, key);
    const char *is = !given                  ? "missing"
                     : json_is_null(given)   ? "null"
                     : json_is_number(given) ? "0"
                                             : "no number";
    oos_arch_fail(a, OOMSIGHT_MALFORMED, "cannot be planned: %s is %s", key, is);
}

/* Sizes that no model is without (null stands for the default of a class, which is not read here), and sizes that are not 0 where
 * they are there: lists have one for each layer, which the families read. */
static void needed_fields(oos_arch *a)
{
    static const char *const never_zero[] = {"num_attention_heads", "num_key_value_heads", "head_dim",
                                             "intermediate_size", "max_position_embeddings"};
    if (a->model->hidden == 0) without(a, "hidden_size");
    if (a->model->vocab == 0 && json_object_get(a->text, "vocab_size")) without(a, "vocab_size");
    for (size_t i = 0; i < sizeof never_zero / sizeof *never_zero; i++) {
        const json_t *given = json_object_get(a->text, never_zero[i]);
        bool const zero = json_is_number(given) && !(json_number_value(given) > 0);
        if (zero || json_is_object(given) || (json_is_array(given) && json_array_size(given) == 0))
            without(a, never_zero[i]);
    }
    if (a->model->heads == 0 && json_object_get(a->text, "num_attention_heads"))
        without(a, "num_attention_heads");
}

/* vLLM 0.32, derive_max_model_len_and_key(): the smallest of these keys, unless model_max_length is there. */
static uint64_t derived_length(oos_arch *a)
{
    static const char *const keys[] = {
        "max_position_embeddings", "n_positions",         "max_seq_len",    "seq_length", "model_max_length",
        "max_target_positions",    "max_sequence_length", "max_seq_length", "seq_len"};
    uint64_t least = UINT64_MAX, length;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (oos_arch_size(a, a->text, keys[i], &length)) least = oos_min(least, length);
    if (oos_arch_size(a, a->text, "model_max_length", &length) && length > 0) least = length;
    return least == UINT64_MAX ? 0 : least;
}

uint64_t oos_arch_scaled(uint64_t length, double factor)
{
    double const product = (double)length * factor;
    if (!(product >= 1)) return length;
    return product > (double)OOS_JSON_MAX ? OOS_JSON_MAX : (uint64_t)product;
}

/* What a rope setting does to the longest length (vLLM _get_and_verify_max_len). */
static void length_with_rope(oos_arch *a, const json_t *rope)
{
    oos_model *m = a->model;
    const char *type = oos_rope_type(rope);
    double factor = 1;
    uint64_t original = 0;
    (void)oos_arch_real(a, rope, "factor", &factor);
    bool const has_original = oos_arch_size(a, rope, "original_max_position_embeddings", &original) ||
                              oos_arch_size(a, a->text, "original_max_position_embeddings", &original);
    if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0) {
        if (oos_arch_size(a, a->text, "original_max_position_embeddings", &original))
            m->max_position_default = original;
        return;
    }
    if (strcmp(type, "yarn") == 0 || strncmp(type, "deepseek_", 9) == 0) {
        if (has_original && oos_arch_scaled(original, factor) != m->max_position)
            m->max_position_yarn = oos_arch_scaled(original, factor);
        return;
    }
    if (strcmp(type, "llama3") == 0 || strcmp(type, "mrope") == 0 || strcmp(type, "default") == 0) return;
    m->max_position = oos_arch_scaled(m->max_position, factor);
}

/* SGLang 0.5.23, get_context_length(): the first of these keys, times a factor that is not already in it. */
static uint64_t stated_length(oos_arch *a)
{
    static const char *const keys[] = {"max_sequence_length", "seq_length", "max_seq_len", "model_max_length",
                                       "max_position_embeddings"};
    const json_t *rope = oos_rope_config(a);
    const char *type = rope ? oos_rope_type(rope) : "";
    double factor = 1;
    uint64_t length = 0, original;
    bool const counted = rope && (oos_arch_size(a, rope, "original_max_position_embeddings", &original) ||
                                  strcmp(type, "llama3") == 0);
    if (rope && !counted) (void)oos_arch_real(a, rope, "factor", &factor);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (oos_arch_size(a, a->text, keys[i], &length)) return oos_arch_scaled(length, factor);
    return 2048;
}

/* vLLM config/speculative.py _CACHE_ONLY_ROPE_TYPES */
static bool rope_only_sizes(const char *type)
{
    static const char *const types[] = {"default", "linear", "llama3", "mrope", "ntk", "proportional"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0) return true;
    return false;
}

static void longest_length(oos_arch *a)
{
    oos_model *m = a->model;
    m->stated_length = stated_length(a);
    m->max_position = derived_length(a);
    if (m->max_position == 0) {
        m->max_position = 2048; /* the engine's own fallback */
        m->max_position_assumed = true;
        oos_arch_note(a, "no maximum length in the config: the engine assumes %d", 2048);
    }
    const json_t *rope = oos_rope_config(a);
    m->rope_fixed = rope && !rope_only_sizes(oos_rope_type(rope));
    /* Gemma 3 states its length with the scaling already in it. */
    if (m->model_type && strstr(m->model_type, "gemma3")) return;
    if (rope) length_with_rope(a, rope);
}

static void vision_fields(oos_arch *a)
{
    oos_vision *v = &a->model->vision;
    const json_t *c = a->vision;
    if (!c) return;
    v->present = true;
    static const char *const depth[] = {"depth", "num_hidden_layers", "vt_num_hidden_layers", "num_layers",
                                        NULL};
    static const char *const hidden[] = {"embed_dim", "hidden_size", "vt_hidden_size", "d_model", NULL};
    static const char *const wide[] = {"intermediate_size", "vt_intermediate_size", NULL};
    static const char *const heads[] = {"num_heads", "num_attention_heads", "vt_num_attention_heads",
                                        "attention_heads", NULL};
    static const char *const channels[] = {"in_channels", "in_chans", "num_channels", NULL};
    static const char *const merge[] = {"spatial_merge_size", "pooling_kernel_size", NULL};
    (void)first_u64(a, c, depth, &v->depth);
    (void)first_u64(a, c, hidden, &v->hidden);
    (void)first_u64(a, c, wide, &v->intermediate);
    (void)first_u64(a, c, heads, &v->heads);
    (void)first_u64(a, c, channels, &v->channels);
    (void)first_u64(a, c, merge, &v->merge);
    (void)oos_arch_size(a, c, "num_hidden_layers", &v->stated_layers);
    (void)oos_arch_size(a, c, "hidden_size", &v->stated_hidden);
    (void)oos_arch_size(a, c, "patch_size", &v->patch);
    (void)oos_arch_size(a, c, "position_embedding_size", &v->one_hot_rows);
    (void)oos_arch_size(a, c, "temporal_patch_size", &v->temporal_patch);
    (void)oos_arch_size(a, c, "image_size", &v->image_size);
    (void)oos_arch_size(a, c, "out_hidden_size", &v->out_hidden);
    (void)oos_arch_size(a, a->root, "spatial_merge_size", &v->merge);
    const json_t *kernel = json_object_get(c, "merge_kernel_size");
    if (json_is_array(kernel)) (void)oos_json_value_u64(json_array_get(kernel, 0), &v->merge);
    v->deepstack = json_array_size(json_object_get(c, "deepstack_visual_indexes"));
    v->max_image_tokens = 0;
    if (!oos_arch_size(a, a->root, "mm_tokens_per_image", &v->max_image_tokens))
        (void)oos_arch_size(a, a->root, "vision_soft_tokens_per_image", &v->max_image_tokens);
}

/* What follows from the layers. */
static void summarise(oos_model *m)
{
    bool attends = false, recurs = false, encodes = m->attention_count > 0;
    for (size_t i = 0; i < m->attention_count; i++) {
        const oos_attention *t = &m->attentions[i];
        bool const state = t->mixer >= OOS_MIXER_MAMBA1;
        recurs |= state;
        attends |= !state && t->mixer != OOS_MIXER_NONE;
        encodes &= t->mixer == OOS_MIXER_ENCODER;
        m->mla |= t->mixer == OOS_MIXER_MLA;
        m->sparse |= t->indexer_dim > 0;
        m->encoder_decoder |= t->mixer == OOS_MIXER_CROSS && !m->vision.present;
    }
    m->hybrid = attends && recurs;
    m->attention_free = recurs && !attends;
    m->encoder_only = encodes;
}

/* A wrapper that is not known around a decoder that is: that decoder, and a tower by the common fields. NULL: neither. */
static const oos_family *family_inside(oos_arch *a, oos_family *ret_family)
{
    const oos_family *found = a->text == a->root ? NULL : oos_family_inside(a);
    if (!found) return NULL;
    *ret_family = (oos_family){.architecture = found->architecture,
                               .record = found->record,
                               .build = found->build,
                               .tower = oos_tower_common(a),
                               .prefix = "language_model.model.",
                               .rope = found->rope};
    oos_arch_note(a,
                  "architecture %s is not known: its decoder is read as %s, its tower from the common fields",
                  a->model->architecture, found->architecture);
    return ret_family;
}

/* Layers and ranges name what is there. */
static bool is_sound(const oos_model *m)
{
    const uint32_t *const ranges[] = {m->first_stage, m->last_stage, m->every_stage, m->vision_matrices,
                                      m->mtp_matrices};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if ((size_t)ranges[i][0] + ranges[i][1] > m->matrix_count) return false;
    for (size_t i = 0; i < m->layer_count + m->mtp_layer_count; i++) {
        const oos_layer *layer = i < m->layer_count ? &m->layers[i] : &m->mtp_layers[i - m->layer_count];
        if ((size_t)layer->first_matrix + layer->matrix_count > m->matrix_count) return false;
        if (layer->shape >= m->shape_count || layer->attention >= m->attention_count) return false;
    }
    for (size_t i = 0; i < m->matrix_count; i++)
        if (m->matrices[i].quant >= m->quant_count) return false;
    return true;
}

/* `legacy` is hf_quant_config.json, NULL: none. */
static oomsight_status build(oos_arch *a, const json_t *legacy)
{
    oos_model *m = a->model;
    m->architecture = architecture_of(a->root);
    if (!m->architecture) m->architecture = architecture_of(a->text);
    if (!m->architecture) m->architecture = "unknown";
    if (!oos_json_str(a->root, "model_type", &m->model_type)) m->model_type = "unknown";
    a->vision = part_of(a->root, "vision_config");
    a->audio = part_of(a->root, "audio_config");
    m->multimodal = a->vision || a->audio;

    common_fields(a);
    longest_length(a);
    vision_fields(a);
    needed_fields(a);
    if (a->status != OOMSIGHT_OK) return a->status;

    const oos_family *family = oos_family_find(a, m->architecture);
    oos_family inside;
    m->known = family != NULL;
    if (!family) family = family_inside(a, &inside);
    if (a->status != OOMSIGHT_OK) return a->status;
    a->family = family;
    if (!family)
        oos_arch_note(a, "architecture %s is not known: it is read by the fields most configs share",
                      m->architecture);
    OOS_TRY(oos_quantizer_read(a->arena, a->root, a->text, legacy, family ? family->renames : NULL,
                               &a->quantizer, a->reterr));
    m->quant_method = oos_quantizer_method(a->quantizer);
    m->quant_by_flag = oos_quantizer_by_flag(a->quantizer);
    m->modelopt_algo = oos_quantizer_algo(a->quantizer, &m->modelopt_produced);
    if (m->quant_by_flag)
        oos_arch_note(
            a, "the config names the quantization %s and no method: the weights are planned unquantized",
            m->modelopt_algo);
    if (!m->quant_by_flag) m->kv_cache_dtype = oos_quantizer_kv_dtype(a->quantizer);
    if (oos_quantizer_note(a->quantizer)) oos_arch_note(a, "%s", oos_quantizer_note(a->quantizer));

    m->lora_embeddings = family && family->lora_embeddings;
    if (m->known)
        m->code = family->code;
    else
        oos_code_by_type(a);
    if (a->status != OOMSIGHT_OK) return a->status;
    a->prefix = family && family->prefix ? family->prefix : "model.";
    a->layer_prefix = oos_arena_format(a->arena, "%slayers.", a->prefix);
    if (!a->layer_prefix) return oos_fail(a->reterr, OOMSIGHT_NOMEM, "no memory for the model");
    (family ? family->build : oos_build_unknown)(a);
    (family && family->rope ? family->rope : oos_rope_usual)(a);
    const oos_record *tower = family ? family->tower : oos_tower_common(a);
    if (tower) oos_tower_record(a, tower);
    oos_vision_fill(&m->vision,
                    &(oos_vision){.channels = 3, .temporal_patch = 1, .merge = 1, .out_hidden = m->hidden});
    if (a->status != OOMSIGHT_OK) return a->status;

    m->attentions = a->attentions;
    m->attention_count = a->attention_count;
    m->matrices = a->matrices;
    m->matrix_count = a->matrix_count;
    m->quants = a->quants;
    m->quant_count = a->quant_count;
    m->quant_unknown = oos_quantizer_unknown(a->quantizer);
    for (size_t i = 0; i < m->quant_count; i++)
        m->quant_unknown = m->quant_unknown || m->quants[i].kind == OOS_QUANT_UNKNOWN;
    bool feeds = m->intermediate > 0;
    for (size_t i = 0; i < m->matrix_count && !feeds; i++)
        feeds = strcmp(m->matrices[i].module, "mlp") == 0 || m->matrices[i].expert;
    if (!feeds && json_object_get(a->text, "intermediate_size")) without(a, "intermediate_size");
    if (a->status != OOMSIGHT_OK) return a->status;
    m->notes = a->notes;
    m->note_count = a->note_count;
    summarise(m);
    oos_assert(is_sound(m));
    return OOMSIGHT_OK;
}

oomsight_status oos_model_read(oos_arena *arena, const char *data_dir, oos_view config, oos_view quant,
                               oos_model *ret_model, oomsight_error *reterr)
{
    json_t *root = NULL, *quant_root = NULL;
    OOS_TRY(load(arena, config, &root, reterr));
    /* hf_quant_config.json counts only where config.json says nothing */
    bool const said = json_is_object(json_object_get(root, "quantization_config"));
    if (quant.len > 0 && !said) OOS_TRY(load(arena, quant, &quant_root, reterr));

    oos_model model = {.path = ""};
    oos_arch a = {.arena = arena,
                  .data_dir = data_dir,
                  .root = root,
                  .text = text_of(root),
                  .model = &model,
                  .reterr = reterr};
    a.quants = OOS_NEW_ARRAY(arena, oos_quant, 8); /* number 0: not quantised */
    if (!a.quants) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the model");
    a.quant_room = 8;
    a.quant_count = 1;
    OOS_TRY(build(&a, quant_root));
    *ret_model = model;
    return OOMSIGHT_OK;
}

bool oos_modules_pool(oos_view text)
{
    /* vLLM transformers_utils/config.py _ST_POOLING_MODULE_TYPES */
    static const char *const types[] = {"sentence_transformers.models.Pooling",
                                        "sentence_transformers.sentence_transformer.modules.pooling.Pooling"};
    json_t *list = oos_json_parse(text, 0);
    const char *type;
    bool pools = false;
    for (size_t i = 0; i < json_array_size(list); i++)
        pools |= oos_json_str(json_array_get(list, i), "type", &type) &&
                 (strcmp(type, types[0]) == 0 || strcmp(type, types[1]) == 0);
    json_decref(list);
    return pools;
}

static oomsight_status modules_open_dir(oos_arena *arena, const char *dir, oos_model *model,
                                        oomsight_error *reterr)
{
    oos_view text;
    const char *path = oos_arena_format(arena, "%s/modules.json", dir);
    if (!path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");
    if (!oos_file_exists(path)) return OOMSIGHT_OK;
    OOS_TRY(oos_file_read(arena, path, CONFIG_BYTES_MAX, &text, reterr));
    model->pooling_modules = oos_modules_pool(text);
    return OOMSIGHT_OK;
}

static oomsight_status processors_open_dir(oos_arena *arena, const char *dir, oos_model *model,
                                           oomsight_error *reterr)
{
    const char *paths[OOS_PROCESSOR_FILES];
    oos_view texts[OOS_PROCESSOR_FILES] = {{NULL, 0}};
    for (size_t i = 0; i < OOS_PROCESSOR_FILES; i++) {
        paths[i] = oos_arena_format(arena, "%s/%s", dir, oos_processor_files[i]);
        if (!paths[i]) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");
        if (oos_file_exists(paths[i]))
            OOS_TRY(oos_file_read(arena, paths[i], CONFIG_BYTES_MAX, &texts[i], reterr));
    }
    return oos_processors_read(arena, paths, texts, model, reterr);
}

oomsight_status oos_model_open_dir(oos_arena *arena, const char *data_dir, const char *dir,
                                   const char *overrides, oos_model *ret_model, oomsight_error *reterr)
{
    const char *config_path = oos_arena_format(arena, "%s/config.json", dir);
    const char *quant_path = oos_arena_format(arena, "%s/hf_quant_config.json", dir);
    oos_tensor_table *tensors = OOS_NEW(arena, oos_tensor_table);
    if (!config_path || !quant_path || !tensors)
        return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");

    oos_view config, quant = {NULL, 0};
    OOS_TRY(oos_file_read(arena, config_path, CONFIG_BYTES_MAX, &config, reterr));
    if (oos_file_exists(quant_path))
        OOS_TRY(oos_file_read(arena, quant_path, CONFIG_BYTES_MAX, &quant, reterr));

    oos_model model;
    oomsight_status status = oos_config_override(arena, config, overrides, &config, reterr);
    if (status == OOMSIGHT_OK) status = oos_model_read(arena, data_dir, config, quant, &model, reterr);
    if (status != OOMSIGHT_OK) return oos_fail_in(reterr, status, config_path);
    model.path = oos_arena_copy(arena, oos_view_of(dir));
    if (!model.path) return oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for a path");

    OOS_TRY(modules_open_dir(arena, dir, &model, reterr));
    if (model.vision.present) OOS_TRY(processors_open_dir(arena, dir, &model, reterr));
    OOS_TRY(oos_safetensors_open_dir(arena, dir, tensors, reterr));
    OOS_TRY(oos_tensors_attach(arena, tensors, &model, reterr));
    *ret_model = model;
    return OOMSIGHT_OK;
}

const oos_matrix *oos_layer_matrix(const oos_model *model, const oos_layer *layer, const char *name)
{
    for (uint32_t i = 0; i < layer->matrix_count; i++) {
        const oos_matrix *matrix = &model->matrices[layer->first_matrix + i];
        if (matrix->name && strcmp(matrix->name, name) == 0) return matrix;
    }
    return NULL;
}

bool oos_layer_norms_heads(const oos_model *model, const oos_layer *layer)
{
    for (uint32_t i = 0; i < layer->matrix_count; i++) {
        const char *name = model->matrices[layer->first_matrix + i].name;
        const char *last = name ? strrchr(name, '.') : NULL;
        if (last && (strcmp(last, ".q_norm") == 0 || strcmp(last, ".q_layernorm") == 0)) return true;
    }
    return false;
}

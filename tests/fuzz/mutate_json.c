/* JSON by its values: numbers, words and keys are changed, pairs dropped, copied and put in, values wrapped. Works on text, so that
 * it goes on with what another mutator broke. */
#include "mutate.h"

#include <ctype.h>
#include <string.h>

enum { VALUES_MAX = 4096, COPY_MAX = 8 << 10 };

/* A value, or a key with its colon before the value. */
typedef struct value {
    size_t begin, end;
    size_t key, key_end; /* equal: no key */
} value;
static value values[VALUES_MAX];
static size_t value_count;

static const char *const keys[] = {"architectures",
                                   "model_type",
                                   "hidden_size",
                                   "num_hidden_layers",
                                   "num_attention_heads",
                                   "num_key_value_heads",
                                   "head_dim",
                                   "intermediate_size",
                                   "vocab_size",
                                   "max_position_embeddings",
                                   "torch_dtype",
                                   "dtype",
                                   "quantization_config",
                                   "quant_method",
                                   "bits",
                                   "group_size",
                                   "weight_block_size",
                                   "modules_to_not_convert",
                                   "ignore",
                                   "config_groups",
                                   "targets",
                                   "weights",
                                   "num_bits",
                                   "strategy",
                                   "type",
                                   "symmetric",
                                   "dynamic",
                                   "activation_scheme",
                                   "kv_cache_scheme",
                                   "text_config",
                                   "vision_config",
                                   "audio_config",
                                   "llm_config",
                                   "num_experts",
                                   "num_local_experts",
                                   "n_routed_experts",
                                   "num_experts_per_tok",
                                   "moe_intermediate_size",
                                   "n_shared_experts",
                                   "shared_expert_intermediate_size",
                                   "first_k_dense_replace",
                                   "decoder_sparse_step",
                                   "mlp_only_layers",
                                   "kv_lora_rank",
                                   "q_lora_rank",
                                   "qk_rope_head_dim",
                                   "qk_nope_head_dim",
                                   "v_head_dim",
                                   "index_topk",
                                   "index_head_dim",
                                   "sliding_window",
                                   "layer_types",
                                   "sliding_window_pattern",
                                   "use_sliding_window",
                                   "attention_chunk_size",
                                   "rope_scaling",
                                   "rope_parameters",
                                   "rope_type",
                                   "factor",
                                   "original_max_position_embeddings",
                                   "tie_word_embeddings",
                                   "num_nextn_predict_layers",
                                   "linear_num_key_heads",
                                   "linear_num_value_heads",
                                   "linear_key_head_dim",
                                   "linear_value_head_dim",
                                   "linear_conv_kernel_dim",
                                   "full_attention_interval",
                                   "mamba_n_heads",
                                   "mamba_d_state",
                                   "mamba_d_conv",
                                   "mamba_expand",
                                   "ssm_state_size",
                                   "hybrid_override_pattern",
                                   "layers_block_type",
                                   "patch_size",
                                   "image_size",
                                   "depth",
                                   "num_heads",
                                   "spatial_merge_size",
                                   "out_hidden_size",
                                   "mm_tokens_per_image",
                                   "weight_map",
                                   "metadata",
                                   "total_size",
                                   "shape",
                                   "data_offsets",
                                   "global_head_dim",
                                   "num_kv_shared_layers",
                                   "hidden_size_per_layer_input",
                                   "attention_bias",
                                   "is_encoder_decoder"};
static const char *const words[] = {"\"LlamaForCausalLM\"",
                                    "\"Qwen3ForCausalLM\"",
                                    "\"Qwen3MoeForCausalLM\"",
                                    "\"Qwen3NextForCausalLM\"",
                                    "\"Qwen2_5_VLForConditionalGeneration\"",
                                    "\"DeepseekV3ForCausalLM\"",
                                    "\"DeepseekV32ForCausalLM\"",
                                    "\"GptOssForCausalLM\"",
                                    "\"Gemma3ForConditionalGeneration\"",
                                    "\"Gemma4ForConditionalGeneration\"",
                                    "\"MixtralForCausalLM\"",
                                    "\"JambaForCausalLM\"",
                                    "\"BambaForCausalLM\"",
                                    "\"NemotronHForCausalLM\"",
                                    "\"OPTForCausalLM\"",
                                    "\"Glm4MoeForCausalLM\"",
                                    "\"KimiLinearForCausalLM\"",
                                    "\"Llama4ForConditionalGeneration\"",
                                    "\"WhisperForConditionalGeneration\"",
                                    "\"MiniMaxM2ForCausalLM\"",
                                    "\"FalconH1ForCausalLM\"",
                                    "\"qwen3\"",
                                    "\"llama\"",
                                    "\"gemma3\"",
                                    "\"opt\"",
                                    "\"gpt_oss\"",
                                    "\"deepseek_v3\"",
                                    "\"awq\"",
                                    "\"gptq\"",
                                    "\"fp8\"",
                                    "\"mxfp4\"",
                                    "\"modelopt\"",
                                    "\"compressed-tensors\"",
                                    "\"bitsandbytes\"",
                                    "\"auto-round\"",
                                    "\"fancy2bit\"",
                                    "\"pack-quantized\"",
                                    "\"float-quantized\"",
                                    "\"nvfp4-pack-quantized\"",
                                    "\"NVFP4\"",
                                    "\"bfloat16\"",
                                    "\"float16\"",
                                    "\"float32\"",
                                    "\"float8_e4m3fn\"",
                                    "\"BF16\"",
                                    "\"F8_E4M3\"",
                                    "\"U8\"",
                                    "\"I32\"",
                                    "\"yarn\"",
                                    "\"llama3\"",
                                    "\"dynamic\"",
                                    "\"mrope\"",
                                    "\"full_attention\"",
                                    "\"sliding_attention\"",
                                    "\"linear_attention\"",
                                    "\"mamba\"",
                                    "\"attention\"",
                                    "\"M*M-ME\"",
                                    "\"group\"",
                                    "\"tensor\"",
                                    "\"channel\"",
                                    "\"block\"",
                                    "\"Linear\"",
                                    "\"re:.*lm_head\"",
                                    "\"\\u0000\"",
                                    "\"\\u001b[2J\"",
                                    "true",
                                    "false",
                                    "null",
                                    "[]",
                                    "{}",
                                    "[[]]",
                                    "[128, 128]",
                                    "[\"full_attention\", \"sliding_attention\"]",
                                    "{\"rope_type\": \"yarn\", \"factor\": 4.0}",
                                    "{\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]}",
                                    "{\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 128}"};

static size_t string_end(const char *text, size_t at, size_t end)
{
    for (at++; at < end && text[at] != '"'; at++)
        if (text[at] == '\\') at++;
    return at < end ? at + 1 : end;
}

static size_t value_end(const char *text, size_t at, size_t end)
{
    if (at >= end) return end;
    if (text[at] == '"') return string_end(text, at, end);
    if (text[at] == '{' || text[at] == '[') {
        size_t depth = 0;
        while (at < end) {
            if (text[at] == '"') {
                at = string_end(text, at, end);
                continue;
            }
            depth += text[at] == '{' || text[at] == '[';
            if ((text[at] == '}' || text[at] == ']') && --depth == 0) return at + 1;
            at++;
        }
        return end;
    }
    while (at < end && !strchr(",]} \t\r\n:", text[at])) at++;
    return at;
}

static size_t blank_end(const char *text, size_t at, size_t end)
{
    while (at < end && isspace((unsigned char)text[at])) at++;
    return at;
}

static void look(const char *text, const fuzz_part *part)
{
    value_count = 0;
    for (size_t at = part->begin; at < part->end && value_count < VALUES_MAX;) {
        if (strchr(",]}: \t\r\n", text[at])) {
            at++;
            continue;
        }
        value v = {.begin = at, .end = value_end(text, at, part->end)};
        size_t const colon = text[at] == '"' ? blank_end(text, v.end, part->end) : part->end;
        if (colon < part->end && text[colon] == ':') {
            v.key = v.begin, v.key_end = v.end;
            v.begin = blank_end(text, colon + 1, part->end);
            v.end = value_end(text, v.begin, part->end);
        }
        values[value_count++] = v;
        bool const nested = v.begin < part->end && (text[v.begin] == '{' || text[v.begin] == '[');
        size_t const next = nested ? v.begin + 1 : v.end;
        at = next > at ? next : at + 1;
    }
}

static const char *some_word(void)
{
    return fuzz_pick(2) ? fuzz_number() : words[fuzz_pick(sizeof words / sizeof *words)];
}

static void put_pair(fuzz_input *input, fuzz_part *part, size_t at, bool first)
{
    char pair[256] = "";
    const char *key = keys[fuzz_pick(sizeof keys / sizeof *keys)], *word = some_word();
    size_t len = 0;
    const char *const pieces[] = {first ? "" : ", ", "\"", key, "\": ", word, first ? ", " : ""};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        size_t const more = strlen(pieces[i]);
        if (len + more >= sizeof pair) return;
        memcpy(pair + len, pieces[i], more);
        len += more;
    }
    fuzz_replace(input, part, at, 0, pair, len);
}

/* A pair or an element, and one comma with it. */
static void drop(fuzz_input *input, fuzz_part *part, const value *v)
{
    size_t begin = v->key_end > v->key ? v->key : v->begin, end = blank_end(input->bytes, v->end, part->end);
    if (end < part->end && input->bytes[end] == ',') {
        end++;
    } else {
        end = v->end;
        while (begin > part->begin && isspace((unsigned char)input->bytes[begin - 1])) begin--;
        if (begin > part->begin && input->bytes[begin - 1] == ',') begin--;
    }
    fuzz_replace(input, part, begin, end - begin, "", 0);
}

static void wrap(fuzz_input *input, fuzz_part *part, const value *v)
{
    static const char *const before[] = {"[", "{\"text_config\": ", "[[", "{\"default\": "},
                             *const after[] = {"]", "}", "]]", "}"};
    size_t const kind = fuzz_pick(4);
    if (fuzz_replace(input, part, v->end, 0, after[kind], strlen(after[kind])))
        fuzz_replace(input, part, v->begin, 0, before[kind], strlen(before[kind]));
}

/* The value of one place at another. */
static void copy(fuzz_input *input, fuzz_part *part, const value *from, const value *to)
{
    static char piece[COPY_MAX];
    size_t const len = from->end - from->begin;
    if (len > sizeof piece || to->end > part->end) return;
    memcpy(piece, input->bytes + from->begin, len);
    fuzz_replace(input, part, to->begin, to->end - to->begin, piece, len);
}

void fuzz_mutate_json(fuzz_input *input, fuzz_part *part)
{
    look(input->bytes, part);
    if (value_count == 0) {
        fuzz_replace(input, part, part->begin, 0, "{\"architectures\": [\"LlamaForCausalLM\"]}", 39);
        return;
    }
    const value *v = &values[fuzz_pick(value_count)];
    const char *word = some_word();
    bool const is_object = v->begin < part->end && input->bytes[v->begin] == '{';
    switch (fuzz_pick(9)) {
    case 0:
    case 1: fuzz_mutate_number(input, part); break;
    case 2: fuzz_replace(input, part, v->begin, v->end - v->begin, word, strlen(word)); break;
    case 3: drop(input, part, v); break;
    case 4: copy(input, part, &values[fuzz_pick(value_count)], v); break;
    case 5: wrap(input, part, v); break;
    case 6:
        if (v->key_end > v->key) {
            const char *key = keys[fuzz_pick(sizeof keys / sizeof *keys)];
            fuzz_replace(input, part, v->key + 1, v->key_end - v->key - 2, key, strlen(key));
        }
        break;
    default: put_pair(input, part, is_object ? v->begin + 1 : v->end, is_object); break;
    }
}

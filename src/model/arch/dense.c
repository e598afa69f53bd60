/* Decoders of one attention and one MLP per layer: Llama and its many relatives, and DeciLM, whose layers differ. Also
 * the common reading of an architecture we do not know. */
#include "model/arch/arch.h"

#include <math.h>

/* What tells the relatives apart. */
typedef struct traits {
    bool qkv_bias, o_bias, mlp_bias;
    enum { NORM_NONE, NORM_HEAD, NORM_ALL } head_norm; /* of queries and keys: per head, or over all heads */
    bool qwen_window;
    uint64_t default_window;
} traits;

static void dense_matrices(oos_arch *a, const traits *t, const oos_attention *attention)
{
    const oos_model *m = a->model;
    uint64_t const width = oos_mul(attention->heads, attention->head_dim_v);
    oos_put_norm(a, "input_layernorm", m->hidden);
    oos_put_qkv(a, "self_attn.qkv_proj", attention, 1, t->qkv_bias);
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", m->hidden, width, t->o_bias);
    if (t->head_norm == NORM_HEAD) {
        oos_put_norm(a, "self_attn.q_norm", attention->head_dim);
        oos_put_norm(a, "self_attn.k_norm", attention->head_dim);
    }
    oos_put_kv_scales(a);
    oos_put_norm(a, "post_attention_layernorm", m->hidden);
    oos_put_gated_mlp(a, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", m->hidden, m->intermediate,
                      t->mlp_bias);
}

static void common_layer(oos_arch *a, uint64_t i)
{
    oos_attention const plain = oos_arch_plain(a, oos_arch_window(a, i, 0, 0));
    oos_arch_attention(a, plain);
    bool const bias = oos_arch_yes(a, "attention_bias", oos_arch_yes(a, "bias", false));
    traits const t = {.qkv_bias = oos_arch_yes(a, "qkv_bias", bias),
                      .o_bias = oos_arch_yes(a, "attention_out_bias", bias),
                      .mlp_bias = oos_arch_yes(a, "mlp_bias", false)};
    dense_matrices(a, &t, &plain);
}

void oos_build_common(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), common_layer);
    oos_put_ends(a);
}

void oos_build_llama(oos_arch *a)
{
    oos_build_common(a);
}

/* The transformers class of Mistral slides unless the file says null. */
static void mistral_layer(oos_arch *a, uint64_t i)
{
    oos_attention const plain = oos_arch_plain(a, oos_arch_window(a, i, 0, 4096));
    oos_arch_attention(a, plain);
    dense_matrices(a, &(traits){0}, &plain);
}

void oos_build_mistral(oos_arch *a)
{
    bool const said =
        oos_arch_has(a, "tie_word_embeddings") || json_object_get(a->root, "tie_word_embeddings");
    if (a->text != a->root && !said) a->model->tied = a->model->tied_by_wrapper = true;
    oos_arch_layers(a, oos_arch_layer_count(a), mistral_layer);
    oos_put_ends(a);
}

/* Qwen 2 and 3: without layer_types, layers from max_window_layers on slide, if use_sliding_window says so at all. */
static uint64_t qwen_window(const oos_arch *a, uint64_t i)
{
    if (!oos_arch_yes(a, "use_sliding_window", false)) return 0;
    if (!oos_arch_list(a, "layer_types") && i < oos_arch_u64(a, "max_window_layers", 28)) return 0;
    return oos_arch_window(a, i, 0, 4096);
}

static void qwen2_layer(oos_arch *a, uint64_t i)
{
    oos_attention const plain = oos_arch_plain(a, qwen_window(a, i));
    oos_arch_attention(a, plain);
    dense_matrices(a, &(traits){.qkv_bias = true}, &plain);
}

void oos_build_qwen2(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), qwen2_layer);
    oos_put_ends(a);
}

static void qwen3_layer(oos_arch *a, uint64_t i)
{
    oos_attention const plain = oos_arch_plain(a, qwen_window(a, i));
    oos_arch_attention(a, plain);
    traits const t = {.qkv_bias = oos_arch_yes(a, "attention_bias", false), .head_norm = NORM_HEAD};
    dense_matrices(a, &t, &plain);
}

void oos_build_qwen3(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), qwen3_layer);
    oos_put_ends(a);
}

/* OLMo 3 normalises queries and keys over all heads, and after attention and MLP instead of before. */
static void olmo3_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    oos_attention const plain = oos_arch_plain(a, oos_arch_window(a, i, 4, 4096));
    oos_arch_attention(a, plain);
    dense_matrices(a, &(traits){0}, &plain);
    oos_put_norm(a, "self_attn.q_norm", oos_mul(m->heads, m->head_dim));
    oos_put_norm(a, "self_attn.k_norm", oos_mul(m->kv_heads, m->head_dim));
}

void oos_build_olmo3(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), olmo3_layer);
    oos_put_ends(a);
}

/* DeciLM (nemotron-nas): block_configs names for each layer the group size of its attention, or that there is none,
 * and the width of its MLP as a multiple of the hidden size. */
static uint64_t deci_inner(const oos_arch *a, const json_t *ffn)
{
    uint64_t inner = 0;
    double multiple = 0;
    if (oos_json_u64(ffn, "intermediate_size", &inner)) return inner;
    if (!oos_json_f64(ffn, "ffn_mult", &multiple)) return 0;
    double const exact = floor(2 * multiple * (double)a->model->hidden / 3); /* nemotron_nas.py */
    if (!(exact >= 0) || exact > (double)OOS_JSON_MAX) return 0;
    return oos_round_up((uint64_t)exact, 256);
}

static void deci_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    const json_t *block = json_array_get(oos_arch_list(a, "block_configs"), (size_t)i);
    const json_t *attention = json_object_get(block, "attention"), *ffn = json_object_get(block, "ffn");
    bool skip = false, skip_ffn = false;
    uint64_t group = 0;
    (void)oos_json_bool(attention, "no_op", &skip);
    (void)oos_json_bool(ffn, "no_op", &skip_ffn);
    oos_attention plain = oos_arch_plain(a, 0);
    if (oos_json_u64(attention, "n_heads_in_group", &group) && group > 0)
        plain.kv_heads = plain.heads / group;
    oos_arch_attention(a, skip ? (oos_attention){.mixer = OOS_MIXER_NONE} : plain);
    if (!skip) {
        oos_put_norm(a, "input_layernorm", m->hidden);
        oos_put_qkv(a, "self_attn.qkv_proj", &plain, 1, false);
        oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", m->hidden, oos_mul(plain.heads, plain.head_dim),
                    false);
        oos_put_kv_scales(a);
    }
    if (!skip_ffn) {
        oos_put_norm(a, "post_attention_layernorm", m->hidden);
        oos_put_gated_mlp(a, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", m->hidden,
                          deci_inner(a, ffn), false);
    }
}

void oos_build_deci(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), deci_layer);
    for (size_t i = 0; i < a->attention_count; i++)
        if (a->attentions[i].mixer == OOS_MIXER_FULL) {
            a->model->kv_heads = a->attentions[i].kv_heads;
            break;
        }
    oos_put_ends(a);
}

/* ---- older shapes: layer norms and biases everywhere ---- */

static void layer_norm(oos_arch *a, const char *name, uint64_t size)
{
    oos_put_norm(a, name, oos_mul(2, size)); /* weight and bias */
}

static void opt_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    const oos_model *m = a->model;
    oos_attention const plain = oos_arch_plain(a, 0);
    bool const bias = oos_arch_yes(a, "enable_bias", true);
    oos_arch_attention(a, plain);
    oos_put_qkv(a, "self_attn.qkv_proj", &plain, 1, bias);
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.out_proj", m->hidden, m->hidden, bias);
    oos_put_kv_scales(a);
    layer_norm(a, "self_attn_layer_norm", m->hidden);
    oos_put_column(a, OOS_MODULE_MLP, "fc1", m->intermediate, m->hidden, bias, 1);
    oos_put_row(a, OOS_MODULE_MLP, "fc2", m->hidden, m->intermediate, bias);
    layer_norm(a, "final_layer_norm", m->hidden);
}

/* Embedding and learned positions are on every stage; small models project a narrower embedding (350m). */
void oos_build_opt(oos_arch *a)
{
    oos_model *m = a->model;
    uint64_t const word = oos_arch_u64(a, "word_embed_proj_dim", m->hidden);
    m->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    oos_arch_layers(a, oos_arch_layer_count(a), opt_layer);
    oos_range_open(a, a->prefix);
    oos_put(
        a, OOS_MODULE_EMBED,
        (oos_matrix){.name = "decoder.embed_tokens", .out = m->vocab, .in = word, .split = OOS_SPLIT_VOCAB});
    oos_put_plain(a, OOS_MODULE_EMBED, "decoder.embed_positions",
                  oos_add(oos_arch_u64(a, "max_position_embeddings", 2048), 2), m->hidden, OOS_DTYPE_UNKNOWN);
    if (word != m->hidden) {
        oos_put_copy(a, OOS_MODULE_OTHER, "decoder.project_out", word, m->hidden, false);
        oos_put_copy(a, OOS_MODULE_OTHER, "decoder.project_in", m->hidden, word, false);
    }
    if (oos_arch_yes(a, "do_layer_norm_before", true) && !oos_arch_yes(a, "_remove_final_layer_norm", false))
        layer_norm(a, "decoder.final_layer_norm", m->hidden);
    oos_range_close(a, m->every_stage);
    if (m->tied) return;
    oos_range_open(a, a->prefix);
    oos_put(a, OOS_MODULE_LM_HEAD,
            (oos_matrix){
                .name = "lm_head", .out = m->vocab, .in = word, .split = OOS_SPLIT_VOCAB, .linear = true});
    oos_range_close(a, m->last_stage);
}

static void phi_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    const oos_model *m = a->model;
    oos_attention const plain = oos_arch_plain(a, 0);
    oos_arch_attention(a, plain);
    layer_norm(a, "input_layernorm", m->hidden);
    oos_put_qkv(a, "self_attn.qkv_proj", &plain, 1, true);
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.dense", m->hidden, oos_mul(plain.heads, plain.head_dim), true);
    oos_put_kv_scales(a);
    oos_put_column(a, OOS_MODULE_MLP, "mlp.fc1", m->intermediate, m->hidden, true, 1);
    oos_put_row(a, OOS_MODULE_MLP, "mlp.fc2", m->hidden, m->intermediate, true);
}

void oos_build_phi(oos_arch *a)
{
    oos_model *m = a->model;
    oos_arch_layers(a, oos_arch_layer_count(a), phi_layer);
    oos_put_ends(a);
    oos_range_open(a, a->prefix);
    layer_norm(a, "final_layernorm", m->hidden);
    oos_put(
        a, OOS_MODULE_LM_HEAD,
        (oos_matrix){
            .name = "lm_head", .out = m->vocab, .in = m->hidden, .split = OOS_SPLIT_VOCAB, .linear = true});
    oos_range_close(a, m->last_stage);
}

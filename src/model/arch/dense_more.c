/* More dense decoders: GLM-4, Gemma, Cohere, StarCoder2, GPT-NeoX, StableLM, Exaone 4, Nemotron, GPT-2, Falcon. */
#include "model/arch/arch.h"

static void put_attention(oos_arch *a, const oos_attention *t, const char *out, bool bias, bool out_bias)
{
    oos_put_qkv(a, "self_attn.qkv_proj", t, 1, bias);
    oos_put_row(a, OOS_MODULE_ATTN, out, a->model->hidden, oos_mul(t->heads, t->head_dim), out_bias);
    oos_put_kv_scales(a);
}

/* Attention over everything. */
static void put_full(oos_arch *a, const char *out, bool bias, bool out_bias)
{
    oos_attention const plain = oos_arch_plain(a, 0);
    oos_arch_attention(a, plain);
    put_attention(a, &plain, out, bias, out_bias);
}

static void put_gated(oos_arch *a, bool bias)
{
    oos_put_gated_mlp(a, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", a->model->hidden,
                      a->model->intermediate, bias);
}

static void put_plain_mlp(oos_arch *a, const char *up, const char *down, bool bias)
{
    oos_put_column(a, OOS_MODULE_MLP, up, a->model->intermediate, a->model->hidden, bias, 1);
    oos_put_row(a, OOS_MODULE_MLP, down, a->model->hidden, a->model->intermediate, bias);
}

/* `norms` vectors of the hidden size; layer norms have a weight and a bias. */
static void put_norms(oos_arch *a, uint64_t norms)
{
    oos_put_norm(a, "norms", oos_mul(norms, a->model->hidden));
}

static void ends_with_bias_norm(oos_arch *a)
{
    oos_put_ends(a);
    oos_range_open(a, a->prefix);
    oos_put_norm(a, "norm.bias", a->model->hidden);
    oos_range_close(a, a->model->every_stage);
}

/* ---- GLM-4 (four norms), GLM (two) ---- */

static void glm4_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    put_full(a, "self_attn.o_proj", oos_arch_yes(a, "attention_bias", false), false);
    put_gated(a, false);
    put_norms(a, strcmp(a->model->architecture, "GlmForCausalLM") == 0 ? 2 : 4);
}

void oos_build_glm4(oos_arch *a)
{
    a->model->head_dim = oos_arch_u64(a, "head_dim", 128);
    oos_arch_layers(a, oos_arch_layer_count(a), glm4_layer);
    oos_put_ends(a);
}

/* ---- Gemma ---- */

static void gemma_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    put_full(a, "self_attn.o_proj", false, false);
    put_gated(a, false);
    put_norms(a, 2);
}

void oos_build_gemma(oos_arch *a)
{
    a->model->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    a->model->head_dim = oos_arch_u64(a, "head_dim", 256);
    oos_arch_layers(a, oos_arch_layer_count(a), gemma_layer);
    oos_put_ends(a);
}

/* ---- Cohere: one norm feeds attention and MLP ---- */

static void cohere_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    bool const second = strcmp(m->architecture, "Cohere2ForCausalLM") == 0;
    uint64_t const window =
        second ? oos_arch_window(a, i, oos_arch_u64(a, "sliding_window_pattern", 4), 4096) : 0;
    oos_attention const plain = oos_arch_plain(a, window);
    oos_arch_attention(a, plain);
    put_attention(a, &plain, "self_attn.o_proj", oos_arch_yes(a, "attention_bias", false), false);
    if (oos_arch_yes(a, "use_qk_norm", false)) {
        oos_put_divided(a, OOS_MODULE_NORM, "self_attn.q_norm", oos_mul(m->heads, m->head_dim), 1,
                        OOS_DTYPE_UNKNOWN);
        oos_put_divided(a, OOS_MODULE_NORM, "self_attn.k_norm", oos_mul(m->kv_heads, m->head_dim), 1,
                        OOS_DTYPE_UNKNOWN);
    }
    put_gated(a, false);
    put_norms(a, 1);
}

void oos_build_cohere(oos_arch *a)
{
    a->model->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    oos_arch_layers(a, oos_arch_layer_count(a), cohere_layer);
    oos_put_ends(a);
}

/* ---- StarCoder2, GPT-NeoX, StableLM, Nemotron, Arcee: layer norms or plain MLPs ---- */

static void starcoder2_layer(oos_arch *a, uint64_t i)
{
    bool const bias = oos_arch_yes(a, "use_bias", true);
    oos_attention const plain = oos_arch_plain(a, oos_arch_window(a, i, 0, 0));
    oos_arch_attention(a, plain);
    put_attention(a, &plain, "self_attn.o_proj", bias, bias);
    put_plain_mlp(a, "mlp.c_fc", "mlp.c_proj", bias);
    put_norms(a, 4);
}

void oos_build_starcoder2(oos_arch *a)
{
    a->model->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    oos_arch_layers(a, oos_arch_layer_count(a), starcoder2_layer);
    ends_with_bias_norm(a);
}

static void neox_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    bool const bias = oos_arch_yes(a, "attention_bias", true);
    put_full(a, "attention.dense", bias, bias);
    put_plain_mlp(a, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", true);
    put_norms(a, 4);
}

void oos_build_neox(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), neox_layer);
    ends_with_bias_norm(a);
}

static void stablelm_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    put_full(a, "self_attn.o_proj", oos_arch_yes(a, "use_qkv_bias", false), false);
    put_gated(a, false);
    put_norms(a, 4);
}

void oos_build_stablelm(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), stablelm_layer);
    ends_with_bias_norm(a);
}

/* Nemotron has layer norms, Arcee norms without a bias. */
static void put_up_down(oos_arch *a, uint64_t norms)
{
    bool const bias = oos_arch_yes(a, "attention_bias", false);
    put_full(a, "self_attn.o_proj", bias, bias);
    put_plain_mlp(a, "mlp.up_proj", "mlp.down_proj", oos_arch_yes(a, "mlp_bias", false));
    put_norms(a, norms);
}

static void nemotron_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    put_up_down(a, 4);
}

void oos_build_nemotron(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), nemotron_layer);
    ends_with_bias_norm(a);
}

static void arcee_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    put_up_down(a, 2);
}

void oos_build_arcee(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), arcee_layer);
    oos_put_ends(a);
}

/* ---- Exaone 4: norms of queries and keys, and after the sublayers; "LLLG": every fourth layer is full ---- */

static void exaone4_layer(oos_arch *a, uint64_t i)
{
    const char *pattern = oos_arch_str(a, "sliding_window_pattern");
    size_t const len = pattern ? strlen(pattern) : 0;
    bool const slides = len > 0 && pattern[i % len] == 'L' && !oos_arch_has(a, "layer_types");
    uint64_t const window = slides || oos_arch_has(a, "layer_types") ? oos_arch_window(a, i, 0, 4096) : 0;
    oos_attention const plain = oos_arch_plain(a, window);
    oos_arch_attention(a, plain);
    put_attention(a, &plain, "self_attn.o_proj", oos_arch_yes(a, "attention_bias", false), false);
    oos_put_norm(a, "self_attn.q_norm", plain.head_dim);
    oos_put_norm(a, "self_attn.k_norm", plain.head_dim);
    put_gated(a, false);
    put_norms(a, 2);
}

void oos_build_exaone4(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), exaone4_layer);
    oos_put_ends(a);
}

/* ---- GPT-2: learned positions, tied head ---- */

static void gpt2_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    put_full(a, "attn.c_proj", true, true);
    put_plain_mlp(a, "mlp.c_fc", "mlp.c_proj", true);
    put_norms(a, 4);
}

void oos_build_gpt2(oos_arch *a)
{
    oos_model *m = a->model;
    m->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    if (m->intermediate == 0) m->intermediate = oos_mul(4, m->hidden);
    oos_arch_layers(a, oos_arch_layer_count(a), gpt2_layer);
    oos_put_ends(a);
    oos_range_open(a, a->prefix);
    oos_put_plain(a, OOS_MODULE_EMBED, "wpe", oos_arch_u64(a, "n_positions", 1024), m->hidden,
                  OOS_DTYPE_UNKNOWN);
    oos_put_norm(a, "ln_f.bias", m->hidden);
    oos_range_close(a, m->every_stage);
}

/* ---- Falcon ---- */

static void falcon_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    bool const bias = oos_arch_yes(a, "bias", false),
               newer = oos_arch_yes(a, "new_decoder_architecture", false);
    put_full(a, "self_attention.dense", bias, bias);
    put_plain_mlp(a, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h", bias);
    put_norms(a, newer || !oos_arch_yes(a, "parallel_attn", true) ? 4 : 2);
}

void oos_build_falcon(oos_arch *a)
{
    oos_model *m = a->model;
    bool const newer = oos_arch_yes(a, "new_decoder_architecture", false);
    if (!newer && oos_arch_yes(a, "multi_query", true)) m->kv_heads = 1;
    if (m->intermediate == 0) m->intermediate = oos_mul(4, m->hidden);
    m->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    oos_arch_layers(a, oos_arch_layer_count(a), falcon_layer);
    ends_with_bias_norm(a);
}

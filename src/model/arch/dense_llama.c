/* Relatives of Llama that differ in a bias, a norm or the MLP: ERNIE 4.5, TeleChat 2, Orion, HyperCLOVA X, Apertus. vLLM 0.32,
 * the model files of these names. */
#include "model/arch/arch.h"

typedef struct traits {
    bool qkv_bias, o_bias, up_bias, down_bias;
    bool head_norms;       /* of queries and keys */
    bool plain_mlp;        /* up and down, no gate */
    uint64_t norm_vectors; /* of the hidden size */
} traits;

static void put_layer(oos_arch *a, uint64_t window, const traits *t)
{
    const oos_model *m = a->model;
    oos_attention const plain = oos_arch_plain(a, window);
    oos_arch_attention(a, plain);
    oos_put_qkv(a, "self_attn.qkv_proj", &plain, 1, t->qkv_bias);
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", m->hidden, oos_mul(plain.heads, plain.head_dim),
                t->o_bias);
    if (t->head_norms) {
        oos_put_norm(a, "self_attn.q_norm", plain.head_dim);
        oos_put_norm(a, "self_attn.k_norm", plain.head_dim);
    }
    oos_put_kv_scales(a);
    if (t->plain_mlp)
        oos_put_column(a, OOS_MODULE_MLP, "mlp.up_proj", m->intermediate, m->hidden, t->up_bias, 1);
    else
        oos_put_column(a, OOS_MODULE_MLP, "mlp.gate_up_proj", oos_mul(2, m->intermediate), m->hidden,
                       t->up_bias, 2);
    oos_put_row(a, OOS_MODULE_MLP, "mlp.down_proj", m->hidden, m->intermediate, t->down_bias);
    oos_put_norm(a, "norms", oos_mul(t->norm_vectors, m->hidden));
}

static bool llama_bias(const oos_arch *a)
{
    return oos_arch_yes(a, "attention_bias", false) || oos_arch_yes(a, "bias", false);
}

/* No bias behind attention, whatever the config says. */
static void ernie_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    bool const mlp = oos_arch_yes(a, "mlp_bias", false);
    put_layer(a, 0,
              &(traits){.qkv_bias = oos_arch_yes(a, "qkv_bias", llama_bias(a)),
                        .up_bias = mlp,
                        .down_bias = mlp,
                        .norm_vectors = 2});
}

void oos_build_ernie(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), ernie_layer);
    oos_put_ends(a);
}

/* Biases behind attention and MLP only. */
static void telechat2_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    put_layer(a, 0, &(traits){.o_bias = true, .down_bias = true, .norm_vectors = 2});
}

void oos_build_telechat2(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), telechat2_layer);
    oos_put_ends(a);
}

/* Layer norms: a weight and a bias each. */
static void orion_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    put_layer(a, 0, &(traits){.norm_vectors = 4});
}

void oos_build_orion(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), orion_layer);
    oos_put_ends(a);
    oos_range_open(a, a->prefix);
    oos_put_norm(a, "norm.bias", a->model->hidden);
    oos_range_close(a, a->model->every_stage);
}

static void hyperclovax_layer(oos_arch *a, uint64_t i)
{
    (void)i;
    bool const bias = oos_arch_yes(a, "attention_bias", false), mlp = oos_arch_yes(a, "mlp_bias", false);
    put_layer(a, 0,
              &(traits){.qkv_bias = bias,
                        .o_bias = bias,
                        .up_bias = mlp,
                        .down_bias = mlp,
                        .norm_vectors = oos_arch_yes(a, "use_post_norm", false) ? 4 : 2});
}

void oos_build_hyperclovax(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), hyperclovax_layer);
    oos_put_ends(a);
}

/* An activation with two learned numbers. */
static void apertus_layer(oos_arch *a, uint64_t i)
{
    bool const bias = llama_bias(a), mlp = oos_arch_yes(a, "mlp_bias", false);
    uint64_t const window = oos_arch_list(a, "layer_types") ? oos_arch_window(a, i, 0, 0) : 0;
    put_layer(a, window,
              &(traits){.qkv_bias = oos_arch_yes(a, "qkv_bias", bias),
                        .o_bias = bias,
                        .up_bias = mlp,
                        .down_bias = mlp,
                        .head_norms = true,
                        .plain_mlp = true,
                        .norm_vectors = 2});
    oos_put_plain(a, OOS_MODULE_MLP, "mlp.act_fn", 2, 1, OOS_DTYPE_UNKNOWN);
}

void oos_build_apertus(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), apertus_layer);
    oos_put_ends(a);
}

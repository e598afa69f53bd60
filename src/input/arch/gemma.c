/* Gemma 2, 3, 3n and 4: sliding and full layers alternate; the E-models share the cache of earlier layers. */
#include "input/arch.h"

static void gemma2_layer(oos_arch *a, uint64_t i)
{
    oos_arch_attention(a, oos_arch_plain(a, oos_arch_window(a, i, 2, 4096)));
}

void oos_build_gemma2(oos_arch *a)
{
    oos_model *m = a->model;
    m->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    m->head_dim = oos_arch_u64(a, "head_dim", 256);
    oos_arch_layers(a, oos_arch_layer_count(a), gemma2_layer);
}

static void gemma3_layer(oos_arch *a, uint64_t i)
{
    uint64_t const pattern = oos_arch_u64(a, "sliding_window_pattern", 6);
    oos_arch_attention(a, oos_arch_plain(a, oos_arch_window(a, i, pattern, 4096)));
}

/* The defaults are those of the transformers config class: the published files leave out what equals them. */
void oos_build_gemma3(oos_arch *a)
{
    oos_model *m = a->model;
    m->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    if (m->hidden == 0) m->hidden = 2304;
    if (m->heads == 0) m->heads = 8;
    m->kv_heads = oos_arch_u64(a, "num_key_value_heads", 4);
    m->head_dim = oos_arch_u64(a, "head_dim", 256);
    if (m->intermediate == 0) m->intermediate = 9216;
    if (m->vocab == 0) m->vocab = 262208;
    if (!oos_arch_has(a, "max_position_embeddings")) m->max_position = 131072;
    m->bidirectional_images = a->vision != NULL;
    oos_arch_layers(a, oos_arch_has(a, "num_hidden_layers") ? oos_arch_layer_count(a) : 26, gemma3_layer);
}

/* The last num_kv_shared_layers layers read the cache of the last layer of their kind before them. */
static bool shares_kv(const oos_arch *a, uint64_t i, uint64_t shared)
{
    uint64_t const layers = oos_arch_u64(a, "num_hidden_layers", 0);
    return shared > 0 && i >= oos_sub(layers, shared);
}

static void gemma3n_layer(oos_arch *a, uint64_t i)
{
    oos_attention plain = oos_arch_plain(a, oos_arch_window(a, i, 5, 512));
    plain.shares_kv = shares_kv(a, i, oos_arch_u64(a, "num_kv_shared_layers", 15));
    oos_arch_attention(a, plain);
}

void oos_build_gemma3n(oos_arch *a)
{
    a->model->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    a->model->head_dim = oos_arch_u64(a, "head_dim", 256);
    oos_arch_layers(a, oos_arch_layer_count(a), gemma3n_layer);
}

/* Full layers of Gemma 4 have heads of their own size and, where keys serve as values, their own number of them. The
 * last layer is always full. */
static void gemma4_layer(oos_arch *a, uint64_t i)
{
    uint64_t const layers = oos_arch_u64(a, "num_hidden_layers", 0);
    uint64_t const window = i + 1 == layers ? 0 : oos_arch_window(a, i, 6, 512);
    oos_attention plain = oos_arch_plain(a, window);
    if (window == 0) {
        plain.head_dim = plain.head_dim_v = oos_arch_u64(a, "global_head_dim", plain.head_dim);
        if (oos_arch_yes(a, "attention_k_eq_v", false))
            plain.kv_heads = oos_arch_u64(a, "num_global_key_value_heads", plain.kv_heads);
    }
    plain.shares_kv = shares_kv(a, i, oos_arch_u64(a, "num_kv_shared_layers", 0));
    a->now.moe = oos_arch_yes(a, "enable_moe_block", false);
    oos_arch_attention(a, plain);
}

void oos_build_gemma4(oos_arch *a)
{
    const char *both = oos_arch_str(a, "use_bidirectional_attention");
    a->model->tied = oos_arch_yes(a, "tie_word_embeddings", true);
    a->model->head_dim = oos_arch_u64(a, "head_dim", 256);
    a->model->bidirectional_images = a->vision && both && strcmp(both, "vision") == 0;
    oos_arch_layers(a, oos_arch_layer_count(a), gemma4_layer);
}

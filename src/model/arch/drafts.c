/* Speculative heads that come as models of their own: EAGLE 3 over Llama-like layers. What they share with the model
 * they draft for is subtracted by who plans them. */
#include "model/arch/arch.h"

/* The first layer reads the embedding beside the hidden state; every layer has a norm more (llama_eagle3.py). */
static void eagle3_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    oos_attention const plain = oos_arch_plain(a, oos_arch_window(a, i, 0, 0));
    uint64_t const keys = oos_mul(plain.kv_heads, oos_mul(2, plain.head_dim));
    oos_arch_attention(a, plain);
    oos_put(a, OOS_MODULE_ATTN,
            (oos_matrix){.name = "self_attn.qkv_proj",
                         .out = oos_add(oos_mul(plain.heads, plain.head_dim), keys),
                         .in = oos_mul(i == 0 ? 2 : 1, m->hidden),
                         .kv_out = keys,
                         .kv_heads = plain.kv_heads,
                         .split = OOS_SPLIT_KV,
                         .bias = oos_arch_yes(a, "attention_bias", false),
                         .linear = true,
                         .shards = 3});
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", m->hidden, oos_mul(plain.heads, plain.head_dim),
                oos_arch_yes(a, "attention_bias", false));
    oos_put_gated_mlp(a, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", m->hidden, m->intermediate,
                      oos_arch_yes(a, "mlp_bias", false));
    oos_put_norm(a, "norms", oos_mul(3, m->hidden));
    oos_put_kv_scales(a);
}

void oos_build_eagle3(oos_arch *a)
{
    oos_model *m = a->model;
    uint64_t const vocab = m->vocab;
    m->tied = false;
    oos_arch_layers(a, oos_arch_layer_count(a), eagle3_layer);
    m->vocab = oos_arch_u64(a, "draft_vocab_size", vocab);
    oos_put_ends(a, 1);
    m->vocab = vocab;
    oos_range_open(a, a->prefix); /* the embedding has the whole vocabulary, the head only the drafted part */
    oos_put(a, OOS_MODULE_EMBED,
            (oos_matrix){.name = "embed_tokens", .out = vocab, .in = m->hidden, .split = OOS_SPLIT_VOCAB});
    oos_range_close(a, m->first_stage);
    oos_range_open(a, a->prefix);
    oos_put_plain(a, OOS_MODULE_OTHER, "fc", m->hidden,
                  oos_mul(3, oos_arch_u64(a, "target_hidden_size", m->hidden)), OOS_DTYPE_UNKNOWN);
    oos_put_plain(a, OOS_MODULE_OTHER, "draft_id_to_target_id", oos_arch_u64(a, "draft_vocab_size", vocab), 1,
                  OOS_DTYPE_I64);
    oos_range_close(a, m->every_stage);
}

/* DeciLM: decoders whose layers differ. */
#include "model/arch/arch.h"

#include <math.h>

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
    oos_put_ends(a, 1);
}

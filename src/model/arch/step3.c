/* Step 3.5 and 3.7: layers with other head counts. */
#include "model/arch/arch.h"

static void put_attention(oos_arch *a, const oos_attention *t, bool bias, bool o_bias, bool head_norms)
{
    const oos_model *m = a->model;
    oos_put_norm(a, "input_layernorm", m->hidden);
    oos_put_qkv(a, "self_attn.qkv_proj", t, 1, bias);
    oos_put_row(a, OOS_MODULE_ATTN, "self_attn.o_proj", m->hidden, oos_mul(t->heads, t->head_dim_v), o_bias);
    if (head_norms) {
        oos_put_norm(a, "self_attn.q_norm", t->head_dim);
        oos_put_norm(a, "self_attn.k_norm", t->head_dim);
    }
    oos_put_kv_scales(a);
    oos_put_norm(a, "post_attention_layernorm", m->hidden);
}

static void put_dense(oos_arch *a)
{
    oos_put_gated_mlp(a, OOS_MODULE_MLP, "mlp.gate_up_proj", "mlp.down_proj", a->model->hidden,
                      a->model->intermediate, false);
}

/* moe_layers_enum is a text, "3,4,5"; without it every layer but the first has experts. */
static bool step3_is_moe(const oos_arch *a, uint64_t i)
{
    const char *list = oos_arch_str(a, "moe_layers_enum");
    if (oos_arch_has(a, "first_k_dense_replace")) return i >= oos_arch_u64(a, "first_k_dense_replace", 0);
    if (!list) return i >= 1;
    for (const char *at = list; *at;) {
        uint64_t number = 0;
        size_t digits = 0;
        for (; *at >= '0' && *at <= '9' && digits < 9; at++, digits++)
            number = number * 10 + (uint64_t)(*at - '0');
        if (digits > 0 && number == i) return true;
        while (*at && !(*at >= '0' && *at <= '9')) at++;
    }
    return false;
}

/* layer_types, with other head counts in the layers that attention_other_setting names. */
static void step3_layer(oos_arch *a, uint64_t i)
{
    const oos_model *m = a->model;
    const json_t *types = oos_arch_list(a, "layer_types");
    const json_t *other = json_object_get(a->text, "attention_other_setting");
    const char *other_type = NULL;
    bool const slides = types ? oos_arch_item_is(types, i, "sliding_attention") : i % 2 == 0;
    oos_attention plain = oos_arch_plain(a, slides ? oos_arch_u64(a, "sliding_window", 0) : 0);
    if (oos_json_str(other, "attention_type", &other_type) && oos_arch_item_is(types, i, other_type)) {
        (void)oos_json_u64(other, "num_attention_heads", &plain.heads);
        (void)oos_json_u64(other, "num_attention_groups", &plain.kv_heads);
        if (oos_json_u64(other, "head_dim", &plain.head_dim)) plain.head_dim_v = plain.head_dim;
    }
    a->now.moe = m->moe.experts > 0 && step3_is_moe(a, i);
    oos_arch_attention(a, plain);
    put_attention(a, &plain, false, false, true);
    if (oos_arch_yes(a, "use_head_wise_attn_gate", false))
        oos_put_column(a, OOS_MODULE_ATTN, "self_attn.g_proj", plain.heads, m->hidden, false, 1);
    if (!a->now.moe) {
        put_dense(a);
        return;
    }
    oos_put_plain(a, OOS_MODULE_ROUTER, "moe.gate", m->moe.experts, m->hidden, OOS_DTYPE_F32);
    oos_put_plain(a, OOS_MODULE_ROUTER, "moe.router_bias", m->moe.experts, 1, OOS_DTYPE_F32);
    oos_put_gated_mlp(a, OOS_MODULE_SHARED_EXPERT, "moe.share_expert.gate_up_proj",
                      "moe.share_expert.down_proj", m->hidden, m->moe.shared_intermediate, false);
    oos_put_experts(a, "moe.experts", m->moe.experts, m->hidden, m->moe.intermediate, true, false);
}

void oos_build_step3(oos_arch *a)
{
    a->model->moe.shared_intermediate = oos_arch_u64(a, "share_expert_dim", 0);
    oos_arch_layers(a, oos_arch_layer_count(a), step3_layer);
    oos_put_ends(a, 1);
}

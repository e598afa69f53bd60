/* Decoders of one attention and one MLP per layer: Llama and its many relatives, and DeciLM, whose layers differ. Also
 * the common reading of an architecture we do not know. */
#include "input/arch.h"

static void common_layer(oos_arch *a, uint64_t i)
{
    oos_arch_attention(a, oos_arch_plain(a, oos_arch_window(a, i, 0, 0)));
}

void oos_build_common(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), common_layer);
}

void oos_build_llama(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), common_layer);
}

/* The transformers class of Mistral slides unless the file says null. */
static void mistral_layer(oos_arch *a, uint64_t i)
{
    oos_arch_attention(a, oos_arch_plain(a, oos_arch_window(a, i, 0, 4096)));
}

void oos_build_mistral(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), mistral_layer);
}

/* Qwen 2 and 3: without layer_types, layers from max_window_layers on slide, if use_sliding_window says so at all. */
static void qwen2_layer(oos_arch *a, uint64_t i)
{
    uint64_t window = 0;
    if (oos_arch_yes(a, "use_sliding_window", false)) {
        window = oos_arch_window(a, i, 0, 4096);
        if (!oos_arch_list(a, "layer_types") && i < oos_arch_u64(a, "max_window_layers", 28)) window = 0;
    }
    oos_arch_attention(a, oos_arch_plain(a, window));
}

void oos_build_qwen2(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), qwen2_layer);
}

/* DeciLM (nemotron-nas): block_configs names for each layer the group size of its attention, or that there is none. */
static void deci_layer(oos_arch *a, uint64_t i)
{
    const json_t *block = json_array_get(oos_arch_list(a, "block_configs"), (size_t)i);
    const json_t *attention = json_object_get(block, "attention");
    bool skip = false, linear = false;
    uint64_t group = 0;
    (void)oos_json_bool(attention, "no_op", &skip);
    (void)oos_json_bool(attention, "replace_with_linear", &linear);
    oos_attention plain = oos_arch_plain(a, 0);
    if (oos_json_u64(attention, "n_heads_in_group", &group) && group > 0)
        plain.kv_heads = plain.heads / group;
    if (skip || linear) plain = (oos_attention){.mixer = OOS_MIXER_NONE};
    oos_arch_attention(a, plain);
}

void oos_build_deci(oos_arch *a)
{
    oos_arch_layers(a, oos_arch_layer_count(a), deci_layer);
    for (size_t i = 0; i < a->attention_count; i++)
        if (a->attentions[i].mixer == OOS_MIXER_FULL) {
            a->model->kv_heads = a->attentions[i].kv_heads;
            break;
        }
}

/* Who asks for workspace beside the experts (their share is in activation_experts.c): sparse attention, gated delta nets. */
#include "engines/vllm/kv/kv.h"
#include "engines/vllm/vllm.h"

static const oos_attention *sparse_attention(const oos_model *model)
{
    for (size_t i = 0; i < model->attention_count; i++)
        if (model->attentions[i].mixer == OOS_MIXER_MLA && model->attentions[i].indexer_dim > 0)
            return &model->attentions[i];
    return NULL;
}

/* fp8 keys and a scale of 4 bytes, and 1 MiB for choosing the best of them; a compressed stream has fewer. */
static uint64_t indexer_bytes(const oos_setup *setup, const oos_attention *attention)
{
    uint64_t const lengths = oos_mul(setup->rules->indexer_lengths, setup->max_model_len);
    if (lengths == 0) return 0;
    uint64_t const keys = lengths / oos_max(1, attention->compress_ratio);
    return oos_add(oos_mul(keys, oos_add(attention->indexer_dim, 4)), OOS_MIB);
}

/* The joined queries of a batch, and room for five requests of the longest length out of an fp8_ds_mla cache. */
static uint64_t flashmla_bytes(const oos_setup *setup, const oos_backend_choice *backend,
                               const oos_attention *attention)
{
    uint64_t const rule = setup->rules->flashmla_sparse_reserves;
    if (rule == 0 || !backend->name || strcmp(backend->name, "FLASHMLA_SPARSE") != 0) return 0;
    uint64_t const width = oos_mul(oos_add(attention->kv_lora_rank, attention->rope_dim), 2);
    uint64_t const heads = oos_cdiv(attention->heads, oos_max(1, setup->tp));
    uint64_t const queries = rule >= 2 ? oos_mul(oos_mul(setup->max_num_batched_tokens, heads), width) : 0;
    bool const packed = backend->kv_dtype == OOS_KV_FP8_DS_MLA || setup->kv_dtype == OOS_KV_FP8_DS_MLA;
    uint64_t const context = packed ? oos_mul(oos_mul(5, setup->max_model_len), width) : 0;
    return oos_add(queries, context);
}

/* In fp32 as many states as a batch has block boundaries (qwen_gdn_linear_attn.py _checkpoint_buffer_spec). */
static uint64_t checkpoint_bytes(const oos_setup *setup)
{
    if (!oos_setup_delta_checkpoints(setup)) return 0;
    uint64_t const states = oos_cdiv(setup->max_num_batched_tokens, oos_max(1, oos_kv_block_tokens(setup)));
    for (size_t i = 0; i < setup->model->attention_count; i++) {
        const oos_attention *a = &setup->model->attentions[i];
        if (a->mixer == OOS_MIXER_GDN)
            return oos_mul(oos_mul(states, a->value_heads / setup->tp),
                           oos_mul(oos_mul(a->value_dim_state, a->key_dim), 4));
    }
    return 0;
}

oos_workspace oos_workspace_of(const oos_setup *setup, const oos_backend_choice *backend)
{
    const oos_attention *attention = sparse_attention(setup->model);
    if (!attention) return (oos_workspace){.indexer = checkpoint_bytes(setup)};
    return (oos_workspace){.built = flashmla_bytes(setup, backend, attention),
                           .indexer = indexer_bytes(setup, attention),
                           .logits = setup->rules->indexer_logits_mib * OOS_MIB};
}

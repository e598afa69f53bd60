/* Workspaces: device memory that an attention backend holds beside weights and KV cache. Allocated when its metadata
 * builder is made or at the first step, so the engine's memory profile sees none of it. */
#include "engines/vllm/backend/backend.h"

static uint64_t local_heads(const oos_backend_question *q)
{
    return oos_max(1, q->attention->heads / q->setup->tp);
}

static uint64_t local_kv_heads(const oos_backend_question *q)
{
    return oos_max(1, q->attention->kv_heads / q->setup->tp);
}

static uint64_t pow2_up(uint64_t value)
{
    uint64_t power = 1;
    while (power < value && power < (uint64_t)1 << 62) power <<= 1;
    return power;
}

/* vllm/v1/attention/backends/flashinfer.py, _get_workspace_buffer(): a fixed size, since 0.26 at least what prefill
 * takes per token and query head (four 4-byte partials of the head size); a second one for TensorRT-LLM's kernels. */
static uint64_t flashinfer(const oos_backend_question *q)
{
    const oos_setup *setup = q->setup;
    uint64_t const fixed =
        oos_u64_or(setup->env->flashinfer_workspace_bytes, setup->rules->flashinfer_workspace_mib * OOS_MIB);
    uint64_t bytes = fixed;
    if (setup->rules->flashinfer_workspace_scales)
        bytes = oos_max(bytes, oos_mul(oos_mul(setup->max_num_batched_tokens, local_heads(q)), q->head * 16));
    if (q->major == 10 && setup->rules->flashinfer_trtllm_buffer) bytes = oos_add(bytes, fixed);
    return bytes;
}

enum { MAX_3D_QUERY_LEN = 8 };

/* Tokens of a request that is verified, where they are worked on like single ones (MAX_3D_QUERY_LEN; not with a cache in int4). */
static uint64_t verified_tokens(const oos_setup *setup)
{
    if (setup->rules->triton_segments < 3 || setup->kv_dtype == OOS_KV_INT4_PER_TOKEN_HEAD) return 1;
    return oos_min(oos_add(1, setup->speculative_tokens), MAX_3D_QUERY_LEN);
}

/* triton_attn.py since 0.13: partial softmax of the batches that are too small to fill the device. */
static uint64_t triton(const oos_backend_question *q)
{
    const oos_setup *setup = q->setup;
    if (!setup->rules->triton_segments) return 0;
    uint64_t const wanted = 128 / local_kv_heads(q);
    uint64_t tokens = wanted;
    bool const full = setup->graph_mode != OOS_GRAPH_NONE && setup->graph_mode != OOS_GRAPH_PIECEWISE;
    for (size_t i = 0; full && i < setup->capture_count; i++) {
        uint64_t const size = setup->capture_sizes[i];
        uint64_t const off = size > wanted ? size - wanted : wanted - size;
        uint64_t const best = tokens > wanted ? tokens - wanted : wanted - tokens;
        if (i == 0 || off < best) tokens = size;
    }
    if (setup->rules->triton_segments >= 3) tokens = oos_min(tokens, setup->max_num_seqs);
    uint64_t const query = verified_tokens(setup);
    uint64_t segments = 16, rows = oos_mul(tokens, query);
    if (setup->device.capability == 120 && setup->rules->triton_segments >= 2) {
        uint64_t const few = oos_sub(setup->device.sms, 1) / (16 * local_kv_heads(q));
        if (few > 0) {
            segments = 64;
            rows = oos_max(oos_mul(oos_min(few, tokens), query), oos_cdiv(rows, 4));
        }
    }
    return oos_mul(oos_mul(rows, local_heads(q)), oos_mul(segments, (pow2_up(q->head) + 2) * 4));
}

/* flex_attention.py since 0.20: block lists that keep their address under graphs. */
static uint64_t flex(const oos_backend_question *q, uint64_t block_tokens)
{
    const oos_setup *setup = q->setup;
    if (!setup->rules->flex_full_graphs) return 0;
    uint64_t const groups = oos_cdiv(setup->max_num_batched_tokens, 16);
    uint64_t const pages = oos_cdiv(setup->max_model_len, block_tokens);
    return oos_mul(groups, oos_mul(16 * pages + 1, 4));
}

/* MLACommonMetadataBuilder.determine_chunked_prefill_workspace_size(): room to gather a cached context. */
static uint64_t mla_context(const oos_backend_question *q, uint64_t block_tokens)
{
    const oos_setup *setup = q->setup;
    uint64_t const pages = oos_mul(setup->max_num_seqs, block_tokens);
    uint64_t tokens = oos_max(oos_mul(8, setup->max_model_len), oos_mul(4, pages));
    tokens = oos_min(tokens, setup->rules->mla_context_tokens);
    tokens = oos_max(tokens, pages);
    if (setup->dcp > 1) tokens = oos_add(tokens, tokens / setup->dcp);
    return oos_mul(oos_mul(tokens, q->head), oos_dtype_bytes(setup->dtype));
}

/* triton_mla.py since 0.25: split partials of a full decode batch, reserved at the start. */
static uint64_t triton_mla(const oos_backend_question *q)
{
    const oos_setup *setup = q->setup;
    if (!setup->rules->triton_mla_reserves) return 0;
    uint64_t const sms = setup->device.sms ? setup->device.sms : 108;
    uint64_t const splits = oos_min(pow2_up(oos_max(1, setup->max_model_len / 512)), 2 * sms);
    uint64_t const rows = oos_mul(oos_mul(setup->max_num_seqs, local_heads(q)), setup->dcp);
    return oos_mul(oos_mul(rows, splits), (q->attention->kv_lora_rank + 1) * 4);
}

/* 0.11.1 to 0.25: asking the list imports FLASHINFER_MLA, whose module takes its workspace at once, chosen or not. */
static uint64_t imported(const oos_backend_question *q)
{
    bool const listed = q->major != 12 || !q->setup->rules->mla_sm120;
    return q->setup->rules->flashinfer_mla_on_import && listed ? 128 * OOS_MIB : 0;
}

uint64_t oos_backend_workspace(const oos_backend_question *q, oos_attention_backend backend,
                               uint64_t block_tokens)
{
    uint64_t const block = block_tokens ? block_tokens : 16;
    switch (backend) {
    case OOS_BACKEND_FLASHINFER: return flashinfer(q);
    case OOS_BACKEND_TRITON_ATTN:
    case OOS_BACKEND_TRITON_ATTN_DIFFKV: return triton(q);
    case OOS_BACKEND_TRITON_FLASH_ATTN: return triton(q);
    case OOS_BACKEND_TRITON_FLASHINFER: return oos_add(triton(q), flashinfer(q));
    case OOS_BACKEND_FLEX_ATTENTION: return flex(q, block);
    case OOS_BACKEND_FLASH_ATTN:
    case OOS_BACKEND_FLASH_ATTN_DIFFKV:
        /* FA3 under full graphs keeps its schedule: a few kilobytes (flash_attn.py, scheduler_metadata) */
        if (q->major != 9 || q->setup->graph_mode == OOS_GRAPH_NONE) return 0;
        return (1 + 4 * oos_round_up(q->setup->max_num_seqs, 4)) * 4;
    case OOS_BACKEND_FLASH_ATTN_MLA:
    case OOS_BACKEND_FLASHMLA: return oos_add(mla_context(q, block), imported(q));
    case OOS_BACKEND_FLASHINFER_MLA:
    case OOS_BACKEND_TOKENSPEED_MLA:
    case OOS_BACKEND_CUTLASS_MLA: return oos_add(mla_context(q, block), 128 * OOS_MIB);
    case OOS_BACKEND_TRITON_MLA: return oos_add(mla_context(q, block), oos_add(triton_mla(q), imported(q)));
    case OOS_BACKEND_FLASHINFER_MLA_SPARSE_DSV4: return 128 * OOS_MIB;
    case OOS_BACKEND_FLASHINFER_MLA_SPARSE:
    case OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM90:
    case OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM120:
        return oos_u64_or(q->setup->env->flashinfer_workspace_bytes,
                          q->setup->rules->flashinfer_workspace_mib * OOS_MIB);
    case OOS_BACKEND_FLASHMLA_SPARSE:
    case OOS_BACKEND_FLASH_ATTN_MLA_SPARSE:
    case OOS_BACKEND_TURBOQUANT:
    case OOS_BACKEND_FLASHMLA_SPARSE_DSV4:
    case OOS_BACKEND_XFORMERS:
    case OOS_BACKEND_COUNT: break;
    }
    return 0;
}

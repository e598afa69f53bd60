/* What each attention backend can serve: the rows of data/engines/vllm/backends.json, asked in the order of the engine's own checks
 * (AttentionBackend.validate_configuration). Dimensions of latent attention, and the generation of FlashAttention that runs, are
 * rules here. The order in which the engine tries backends is backend.c's. */
#include "engines/vllm/backend/backend.h"

static bool kv_plain(const oos_backend_question *q)
{
    return q->kv == OOS_KV_MODEL_DTYPE || q->kv == OOS_KV_F16 || q->kv == OOS_KV_BF16;
}

static bool fa4_on(const oos_backend_question *q)
{
    return q->setup->rules->fa4 && (q->major == 9 || q->major == 10 || q->major == 11);
}

/* Gemma 4 with two head sizes sets FA4 for all of its layers, but where SM90 reads an fp8 cache (Gemma4Config). */
static bool fa4_is_set(const oos_backend_question *q)
{
    const vllm_rules *rules = q->setup->rules;
    return q->gemma4_mixed && rules->gemma4_backend >= 2 && fa4_on(q) &&
           !(rules->fa_fp8_kv >= 3 && q->major == 9 && q->kv == OOS_KV_FP8);
}

/* vLLM fa_utils.py, get_flash_attn_version(). FA3 is Hopper's; FA4 is Blackwell's, within what its tensor memory holds,
 * and on Hopper takes heads FA3 has no kernel for. */
unsigned oos_backend_flash_version(const oos_backend_question *q, uint64_t head)
{
    const vllm_rules *rules = q->setup->rules;
    if (q->major < 8) return 0;
    unsigned version = q->major == 9 ? 3 : q->major == 10 && rules->fa4 ? 4 : 2;
    if (fa4_is_set(q)) version = 4;
    if (version == 3 && rules->fa4_for_wide_heads && fa4_on(q) && head > 256) version = 4;
    if (version == 4 && q->major >= 10 && head > 128) {
        bool const wide = head == 256 && rules->fa4_blackwell_head_256;
        bool const plain_256 = !q->sinks && kv_plain(q) && !q->mm_prefix && q->setup->dcp == 1;
        if (!wide || (rules->fa4_blackwell_head_256 == 2 && !plain_256)) version = 2;
    }
    return version;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static bool in_spans(uint64_t value, uint16_t first, uint16_t count)
{
    for (const oos_backend_span *span = oos_backend_spans + first; count > 0; span++, count--)
        if (value >= span->first && (value <= span->last || span->last == UINT16_MAX) &&
            (value - span->first) % span->step == 0)
            return true;
    return false;
}

/* The capability of the table that is nearest below. */
static uint32_t capability_bit(unsigned capability)
{
    size_t i = 0;
    while (oos_backend_capabilities[i + 1] && oos_backend_capabilities[i + 1] <= capability) i++;
    return capability >= oos_backend_capabilities[0] ? 1u << i : 0;
}

static uint32_t kv_bit(const char *word)
{
    for (size_t i = 0; oos_backend_kv_words[i]; i++)
        if (strcmp(word, oos_backend_kv_words[i]) == 0) return 1u << i;
    return 0;
}

/* Releases before the first of the table are taken as that one. NULL: it does not run there; `*ret_known`: nor anywhere else. */
static const oos_backend_row *row_of(const oos_backend_question *q, oos_attention_backend backend,
                                     bool *ret_absent)
{
    const oos_backend_part *part = &oos_backend_parts[backend];
    const oos_backend_row *first = &oos_backend_rows[part->first], *row = first + part->count;
    uint32_t const bit = capability_bit(q->setup->device.capability);
    oos_version const newest = oos_max(q->setup->rules->version, oos_backend_rows[0].since);
    *ret_absent = part->count == 0 || first->since > newest;
    while (row-- > first)
        if (row->since <= newest && row->capabilities & bit) return row->kv ? row : NULL;
    return NULL;
}

static bool refuses(const oos_backend_question *q, const oos_backend_refusal *r)
{
    if (!(r->kv & kv_bit(q->kv_word)) || !in_spans(q->head, r->heads, r->head_count)) return false;
    if (r->block_count && (!q->block || in_spans(q->block, r->blocks, r->block_count))) return false;
    if (r->sinks >= 0 && r->sinks != (int8_t)q->sinks) return false;
    return r->mm_prefix < 0 || r->mm_prefix == (int8_t)q->mm_prefix;
}

static const oos_backend_refusal *refusal_of(const oos_backend_question *q, const oos_backend_row *row,
                                             bool built)
{
    for (size_t i = 0; row && i < row->refusal_count; i++) {
        const oos_backend_refusal *r = &oos_backend_refusals[row->refusals + i];
        /* Asked with FA3, where this model sets FA4. */
        if (r->mm_prefix == 1 && q->major == 9 && fa4_is_set(q)) continue;
        if ((r->by != OOS_REFUSED_BY_CHECK) == built && refuses(q, r)) return r;
    }
    return NULL;
}

const oos_backend_refusal *oos_backend_refuses(const oos_backend_question *q, oos_attention_backend backend,
                                               bool built)
{
    bool absent;
    return refusal_of(q, row_of(q, backend, &absent), built);
}

uint64_t oos_backend_least_block(const oos_backend_question *q, oos_attention_backend backend)
{
    bool absent;
    const oos_backend_row *row = row_of(q, backend, &absent);
    return row && row->block_count ? oos_backend_spans[row->blocks].first : 1;
}

static bool is_sparse(oos_attention_backend backend)
{
    return backend >= OOS_BACKEND_FLASHMLA_SPARSE && backend <= OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM120;
}

static bool is_latent(oos_attention_backend backend)
{
    return backend >= OOS_BACKEND_FLASH_ATTN_MLA && backend <= OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM120;
}

/* supports_combination() of kernels that know some dimensions only. */
static bool knows_shape(const oos_backend_question *q, oos_attention_backend backend)
{
    const vllm_rules *rules = q->setup->rules;
    const oos_attention *a = q->attention;
    uint64_t const nope = a->nope_dim;
    if (backend == OOS_BACKEND_FLASHINFER_MLA)
        return rules->flashinfer_mla_dims == 0 || nope == 128 ||
               (rules->flashinfer_mla_dims >= 2 && nope == 64) ||
               (rules->flashinfer_mla_dims >= 3 && nope == 192);
    if (backend == OOS_BACKEND_TOKENSPEED_MLA) return nope == 128 && a->rope_dim == 64 && a->value_dim == 128;
    if (backend == OOS_BACKEND_FLASHMLA_SPARSE)
        return q->head != 512 || (rules->flashmla_sparse_512 && q->major == 9 && a->rope_dim == 0);
    if (backend == OOS_BACKEND_FLASHINFER_MLA_SPARSE)
        return nope == 128 || (rules->flashinfer_mla_sparse >= 3 && nope == 192) ||
               (a->rope_dim == 0 && nope == 256 && a->kv_lora_rank == 512);
    if (backend == OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM90)
        return a->kv_lora_rank == 512 && (a->rope_dim == 0 || a->rope_dim == 64);
    if (backend == OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM120)
        return a->indexer_topk == 2048 || a->indexer_topk == 0;
    return true;
}

static bool without_dcp(oos_attention_backend backend)
{
    return backend == OOS_BACKEND_TRITON_FLASH_ATTN || backend == OOS_BACKEND_TRITON_FLASHINFER ||
           backend == OOS_BACKEND_FLASH_ATTN_MLA_SPARSE;
}

oos_objection oos_backend_objection(const oos_backend_question *q, oos_attention_backend backend)
{
    bool absent;
    if (q->mla != is_latent(backend)) return OOS_OBJECTION_MLA;
    const oos_backend_row *row = row_of(q, backend, &absent);
    if (!row) return absent ? OOS_OBJECTION_ABSENT : OOS_OBJECTION_CAPABILITY;
    if (q->sparse != is_sparse(backend)) return OOS_OBJECTION_SPARSE;
    if (!in_spans(q->head, row->heads, row->head_count)) return OOS_OBJECTION_HEAD_SIZE;
    if (!(row->dtypes & 1u << q->setup->dtype)) return OOS_OBJECTION_DTYPE;
    if (!(row->kv & kv_bit(q->kv_word))) return OOS_OBJECTION_KV_DTYPE;
    if (q->block && !in_spans(q->block, row->blocks, row->block_count)) return OOS_OBJECTION_BLOCK_SIZE;
    if (q->mm_prefix && !(row->does & OOS_BACKEND_DOES_MM_PREFIX)) return OOS_OBJECTION_MM_PREFIX;
    if (q->sinks && !(row->does & OOS_BACKEND_DOES_SINKS)) return OOS_OBJECTION_SINKS;
    if (q->sliding && !(row->does & OOS_BACKEND_DOES_SLIDING)) return OOS_OBJECTION_SLIDING_WINDOW;
    if (q->setup->dcp > 1 && without_dcp(backend)) return OOS_OBJECTION_DCP;
    if (!knows_shape(q, backend)) return OOS_OBJECTION_LATENT_SHAPE;
    const oos_backend_refusal *refusal = refusal_of(q, row, false);
    if (!refusal) return OOS_OBJECTION_NONE;
    return refusal->block_count ? OOS_OBJECTION_BLOCK_SIZE : OOS_OBJECTION_COMBINATION;
}

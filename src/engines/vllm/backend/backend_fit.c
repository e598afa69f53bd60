/* What each attention backend can serve, by engine version. Sources: vllm/v1/attention/backends (and mla/) of every release
 * since 0.11.1, class methods supports_*; fa_utils.py for the generations of FlashAttention. The order in which the
 * engine tries them is backend.c's. */
#include "engines/vllm/backend/backend.h"

static bool is_16_bit(oos_dtype dtype)
{
    return dtype == OOS_DTYPE_F16 || dtype == OOS_DTYPE_BF16;
}

/* A type the kernels store as it is. */
static bool kv_plain(const oos_backend_question *q)
{
    return q->kv == OOS_KV_MODEL_DTYPE || q->kv == OOS_KV_F16 || q->kv == OOS_KV_BF16;
}

static bool kv_fp8(const oos_backend_question *q)
{
    return q->kv == OOS_KV_FP8;
}

static bool fa4_on(const oos_backend_question *q)
{
    return q->setup->rules->fa4 && (q->major == 9 || q->major == 10 || q->major == 11);
}

/* vLLM fa_utils.py, get_flash_attn_version(). FA3 is Hopper's; FA4 is Blackwell's, within what its tensor memory holds,
 * and on Hopper takes heads FA3 has no kernel for. */
unsigned oos_backend_flash_version(const oos_backend_question *q, uint64_t head)
{
    const vllm_rules *rules = q->setup->rules;
    if (q->major < 8) return 0;
    unsigned version = q->major == 9 ? 3 : q->major == 10 && rules->fa4 ? 4 : 2;
    if (q->gemma4_mixed && rules->gemma4_backend >= 2 && fa4_on(q) &&
        !(rules->fa_fp8_kv >= 3 && q->major == 9 && kv_fp8(q)))
        version = 4;
    if (version == 3 && rules->fa4_for_wide_heads && fa4_on(q) && head > 256) version = 4;
    if (version == 4 && q->major >= 10 && head > 128) {
        bool const wide = head == 256 && rules->fa4_blackwell_head_256;
        bool const plain_256 = !q->sinks && kv_plain(q) && !q->mm_prefix && q->setup->dcp == 1;
        if (!wide || (rules->fa4_blackwell_head_256 == 2 && !plain_256)) version = 2;
    }
    return version;
}

static bool fa_takes_head(const oos_backend_question *q)
{
    switch (q->setup->rules->fa_head_sizes) {
    case 0: return q->head % 32 == 0 && q->head >= 32 && q->head <= 256;
    case 1: return q->head % 8 == 0 && q->head <= 256;
    default: return q->head % 8 == 0 && (q->head <= 256 || (fa4_on(q) && q->head <= 512));
    }
}

static bool fa_takes_fp8(const oos_backend_question *q)
{
    unsigned const version = oos_backend_flash_version(q, q->head);
    switch (q->setup->rules->fa_fp8_kv) {
    case 0: return q->major == 9;
    case 1: return q->major == 9 && !q->e5m2;
    case 2: return !q->e5m2 && ((q->major == 9 && version == 3) || (q->major == 10 && version == 4));
    default:
        if (q->e5m2) return false;
        if (q->major == 9) return version == 3 || (version == 4 && q->head == 512);
        return q->major == 10 && version == 4;
    }
}

static oos_objection flash_attn(const oos_backend_question *q)
{
    const vllm_rules *rules = q->setup->rules;
    if (q->major < 8) return OOS_OBJECTION_CAPABILITY;
    if (!fa_takes_head(q)) return OOS_OBJECTION_HEAD_SIZE;
    if (!is_16_bit(q->setup->dtype)) return OOS_OBJECTION_DTYPE;
    if (!kv_plain(q) && !(kv_fp8(q) && fa_takes_fp8(q))) return OOS_OBJECTION_KV_DTYPE;
    if (q->sinks) {
        unsigned const version = oos_backend_flash_version(q, 0);
        if (q->major < 9 || !(version == 3 || (version == 4 && rules->fa4_sinks))) return OOS_OBJECTION_SINKS;
    }
    if (q->mm_prefix) {
        if (!rules->fa_mm_prefix || !fa4_on(q)) return OOS_OBJECTION_MM_PREFIX;
        if (rules->fa_fp8_kv >= 3 && q->major == 9 && kv_fp8(q)) return OOS_OBJECTION_MM_PREFIX;
        if (oos_backend_flash_version(q, q->head) != 4) return OOS_OBJECTION_MM_PREFIX;
    }
    return OOS_OBJECTION_NONE;
}

/* Sinks and NVFP4 on SM100 run on TensorRT-LLM's kernels, which FlashInfer downloads or finds in its cubin package.
 * Neither is part of `pip install vllm`, so sinks are taken as not served; whoever asks for NVFP4 has them. */
static bool flashinfer_takes_nvfp4(const oos_backend_question *q)
{
    switch (q->setup->rules->flashinfer_nvfp4) {
    case 0: return false;
    case 1: return true;
    case 2: return q->major == 10;
    default: return q->major == 10 || ((q->major == 8 || q->major == 9 || q->major == 12) && q->head != 64);
    }
}

static oos_objection flashinfer(const oos_backend_question *q)
{
    const vllm_rules *rules = q->setup->rules;
    unsigned const capability = q->setup->device.capability;
    bool const wide = q->head == 512 && rules->flashinfer_head_512;
    if (q->head != 64 && q->head != 128 && q->head != 256 && !wide) return OOS_OBJECTION_HEAD_SIZE;
    if (!is_16_bit(q->setup->dtype)) return OOS_OBJECTION_DTYPE;
    if (capability < rules->flashinfer_min_capability || capability > 121) return OOS_OBJECTION_CAPABILITY;
    if (!kv_plain(q) && !kv_fp8(q) && !(q->kv == OOS_KV_NVFP4 && flashinfer_takes_nvfp4(q)))
        return OOS_OBJECTION_KV_DTYPE;
    if (q->mm_prefix) return OOS_OBJECTION_MM_PREFIX;
    return q->sinks ? OOS_OBJECTION_SINKS : OOS_OBJECTION_NONE;
}

static oos_objection triton_attn(const oos_backend_question *q)
{
    uint64_t const quant = q->setup->rules->triton_kv_quant;
    bool const per_head =
        (quant >= 1 && (q->kv == OOS_KV_INT8_PER_TOKEN_HEAD || q->kv == OOS_KV_FP8_PER_TOKEN_HEAD)) ||
        (quant >= 2 && q->kv == OOS_KV_INT4_PER_TOKEN_HEAD);
    if (q->head < 32) return OOS_OBJECTION_HEAD_SIZE;
    return kv_plain(q) || kv_fp8(q) || q->kv == OOS_KV_F32 || per_head ? OOS_OBJECTION_NONE
                                                                       : OOS_OBJECTION_KV_DTYPE;
}

static oos_objection flex_attention(const oos_backend_question *q)
{
    if (!kv_plain(q) && q->kv != OOS_KV_F32) return OOS_OBJECTION_KV_DTYPE;
    return q->sinks ? OOS_OBJECTION_SINKS : OOS_OBJECTION_NONE;
}

static oos_objection turboquant(const oos_backend_question *q)
{
    if (!q->setup->rules->turboquant) return OOS_OBJECTION_ABSENT;
    if (q->kv != OOS_KV_TURBOQUANT) return OOS_OBJECTION_KV_DTYPE;
    if (!is_16_bit(q->setup->dtype)) return OOS_OBJECTION_DTYPE;
    if (q->sinks) return OOS_OBJECTION_SINKS;
    if (q->mm_prefix) return OOS_OBJECTION_MM_PREFIX;
    return q->sliding && q->setup->rules->sliding_window_checked ? OOS_OBJECTION_SLIDING_WINDOW
                                                                 : OOS_OBJECTION_NONE;
}

/* The pairs of 0.30: both halves must fit; only the Triton half sees the image mask. */
static oos_objection composite(const oos_backend_question *q, unsigned major, oos_attention_backend causal)
{
    if (!q->setup->rules->composite_backends) return OOS_OBJECTION_ABSENT;
    if (q->major != major) return OOS_OBJECTION_CAPABILITY;
    if (q->head != 256 && q->head != 512) return OOS_OBJECTION_HEAD_SIZE;
    if (q->setup->dcp > 1) return OOS_OBJECTION_DCP;
    oos_objection const general = triton_attn(q);
    if (general != OOS_OBJECTION_NONE) return general;
    oos_backend_question plain = *q;
    plain.mm_prefix = false;
    if (causal == OOS_BACKEND_FLASHINFER) return flashinfer(&plain);
    if (oos_backend_flash_version(&plain, plain.head) < 3) return OOS_OBJECTION_HEAD_SIZE;
    return flash_attn(&plain);
}

/* ---- latent attention ------------------------------------------------------------------------------------------ */

static bool mla_takes_head(const oos_backend_question *q)
{
    if (q->head == 576) return true;
    if (q->head == 320) return q->setup->rules->mla_head_sizes >= 1;
    return q->head == 512 && q->setup->rules->mla_head_sizes >= 2;
}

static oos_objection dense_mla(const oos_backend_question *q, unsigned major, bool fp8)
{
    if (q->sparse) return OOS_OBJECTION_SPARSE;
    if (!mla_takes_head(q)) return OOS_OBJECTION_HEAD_SIZE;
    if (!is_16_bit(q->setup->dtype)) return OOS_OBJECTION_DTYPE;
    if (!kv_plain(q) && !(fp8 && kv_fp8(q) && !q->e5m2)) return OOS_OBJECTION_KV_DTYPE;
    if (q->sinks) return OOS_OBJECTION_SINKS;
    return q->major == major ? OOS_OBJECTION_NONE : OOS_OBJECTION_CAPABILITY;
}

static oos_objection flashinfer_mla(const oos_backend_question *q)
{
    oos_objection const base = dense_mla(q, 10, true);
    if (base != OOS_OBJECTION_NONE) return base;
    uint64_t const nope = q->attention->nope_dim, rule = q->setup->rules->flashinfer_mla_dims;
    bool const fits = rule == 0 || nope == 128 || (rule >= 2 && nope == 64) || (rule >= 3 && nope == 192);
    return fits ? OOS_OBJECTION_NONE : OOS_OBJECTION_LATENT_SHAPE;
}

static oos_objection tokenspeed_mla(const oos_backend_question *q)
{
    const oos_attention *a = q->attention;
    if (!q->setup->rules->tokenspeed_mla) return OOS_OBJECTION_ABSENT;
    oos_objection const base = dense_mla(q, 10, true);
    if (base != OOS_OBJECTION_NONE) return base;
    if (!kv_fp8(q)) return OOS_OBJECTION_KV_DTYPE;
    return a->nope_dim == 128 && a->rope_dim == 64 && a->value_dim == 128 ? OOS_OBJECTION_NONE
                                                                          : OOS_OBJECTION_LATENT_SHAPE;
}

static oos_objection triton_mla(const oos_backend_question *q)
{
    bool const any = q->setup->rules->triton_mla_any;
    if (q->sparse) return OOS_OBJECTION_SPARSE;
    if (!any && !mla_takes_head(q)) return OOS_OBJECTION_HEAD_SIZE;
    if (!is_16_bit(q->setup->dtype)) return OOS_OBJECTION_DTYPE;
    if (!kv_plain(q) && !(any && kv_fp8(q) && !q->e5m2)) return OOS_OBJECTION_KV_DTYPE;
    return q->sinks ? OOS_OBJECTION_SINKS : OOS_OBJECTION_NONE;
}

static oos_objection flashmla_sparse(const oos_backend_question *q)
{
    const vllm_rules *rules = q->setup->rules;
    if (!q->sparse) return OOS_OBJECTION_SPARSE;
    if (q->setup->dtype != OOS_DTYPE_BF16) return OOS_OBJECTION_DTYPE;
    if (q->major != 9 && q->major != 10) return OOS_OBJECTION_CAPABILITY;
    bool const nope_only =
        q->head == 512 && rules->flashmla_sparse_512 && q->major == 9 && q->attention->rope_dim == 0;
    if (q->head != 576 && !nope_only) return OOS_OBJECTION_HEAD_SIZE;
    if (q->kv == OOS_KV_NVFP4_DS_MLA) return q->major == 10 ? OOS_OBJECTION_NONE : OOS_OBJECTION_KV_DTYPE;
    bool const fp8 = q->kv == OOS_KV_FP8_DS_MLA ||
                     (rules->flashmla_sparse_fp8 && kv_fp8(q) && strcmp(q->setup->kv_dtype_word, "fp8") == 0);
    return kv_plain(q) || fp8 ? OOS_OBJECTION_NONE : OOS_OBJECTION_KV_DTYPE;
}

static oos_objection flashinfer_mla_sparse(const oos_backend_question *q)
{
    uint64_t const rule = q->setup->rules->flashinfer_mla_sparse;
    uint64_t const nope = q->attention->nope_dim;
    if (rule == 0) return OOS_OBJECTION_ABSENT;
    if (!q->sparse) return OOS_OBJECTION_SPARSE;
    if (q->head != 576 && !(q->head == 512 && q->setup->rules->mla_head_sizes >= 2))
        return OOS_OBJECTION_HEAD_SIZE;
    if (!is_16_bit(q->setup->dtype)) return OOS_OBJECTION_DTYPE;
    if (!kv_plain(q) && !(rule >= 2 && kv_fp8(q) && !q->e5m2)) return OOS_OBJECTION_KV_DTYPE;
    if (q->major != 10) return OOS_OBJECTION_CAPABILITY;
    bool const fits = nope == 128 || (rule >= 3 && nope == 192) ||
                      (q->attention->rope_dim == 0 && nope == 256 && q->attention->kv_lora_rank == 512);
    return fits ? OOS_OBJECTION_NONE : OOS_OBJECTION_LATENT_SHAPE;
}

static oos_objection flash_attn_mla_sparse(const oos_backend_question *q)
{
    if (!q->setup->rules->flash_attn_mla_sparse) return OOS_OBJECTION_ABSENT;
    if (!q->sparse) return OOS_OBJECTION_SPARSE;
    if (!is_16_bit(q->setup->dtype)) return OOS_OBJECTION_DTYPE;
    if (!kv_plain(q)) return OOS_OBJECTION_KV_DTYPE;
    if (q->setup->dcp > 1) return OOS_OBJECTION_DCP;
    return q->major == 9 ? OOS_OBJECTION_NONE : OOS_OBJECTION_CAPABILITY;
}

static oos_objection flashinfer_sparse_sm90(const oos_backend_question *q)
{
    if (!q->setup->rules->flashinfer_mla_sparse_sm90) return OOS_OBJECTION_ABSENT;
    if (!q->sparse) return OOS_OBJECTION_SPARSE;
    if (q->setup->dtype != OOS_DTYPE_BF16) return OOS_OBJECTION_DTYPE;
    if (!(kv_plain(q) && q->kv != OOS_KV_F16) && !(kv_fp8(q) && !q->e5m2)) return OOS_OBJECTION_KV_DTYPE;
    if (q->major != 9) return OOS_OBJECTION_CAPABILITY;
    bool const fits =
        q->attention->kv_lora_rank == 512 && (q->attention->rope_dim == 0 || q->attention->rope_dim == 64);
    return fits ? OOS_OBJECTION_NONE : OOS_OBJECTION_LATENT_SHAPE;
}

static oos_objection flashinfer_sparse_sm120(const oos_backend_question *q)
{
    if (!q->setup->rules->mla_sm120) return OOS_OBJECTION_ABSENT;
    if (!q->sparse) return OOS_OBJECTION_SPARSE;
    if (q->head != 576 && !(q->head == 512 && q->setup->rules->mla_head_sizes >= 2))
        return OOS_OBJECTION_HEAD_SIZE;
    if (q->setup->dtype != OOS_DTYPE_BF16) return OOS_OBJECTION_DTYPE;
    bool const kv = q->kv == OOS_KV_MODEL_DTYPE || (kv_fp8(q) && !q->e5m2) || q->kv == OOS_KV_FP8_DS_MLA;
    if (!kv) return OOS_OBJECTION_KV_DTYPE;
    if (q->major != 12) return OOS_OBJECTION_CAPABILITY;
    return q->attention->indexer_topk == 2048 || q->attention->indexer_topk == 0 ? OOS_OBJECTION_NONE
                                                                                 : OOS_OBJECTION_LATENT_SHAPE;
}

static oos_objection mla_objection(const oos_backend_question *q, oos_attention_backend backend)
{
    switch (backend) {
    case OOS_BACKEND_FLASH_ATTN_MLA: return dense_mla(q, 9, false);
    case OOS_BACKEND_FLASHMLA: return dense_mla(q, 9, true);
    case OOS_BACKEND_CUTLASS_MLA: return dense_mla(q, 10, true);
    case OOS_BACKEND_FLASHINFER_MLA: return flashinfer_mla(q);
    case OOS_BACKEND_TOKENSPEED_MLA: return tokenspeed_mla(q);
    case OOS_BACKEND_TRITON_MLA: return triton_mla(q);
    case OOS_BACKEND_FLASHMLA_SPARSE: return flashmla_sparse(q);
    case OOS_BACKEND_FLASHINFER_MLA_SPARSE: return flashinfer_mla_sparse(q);
    case OOS_BACKEND_FLASH_ATTN_MLA_SPARSE: return flash_attn_mla_sparse(q);
    case OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM90: return flashinfer_sparse_sm90(q);
    case OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM120: return flashinfer_sparse_sm120(q);
    case OOS_BACKEND_FLASH_ATTN:
    case OOS_BACKEND_FLASHINFER:
    case OOS_BACKEND_TRITON_ATTN:
    case OOS_BACKEND_FLEX_ATTENTION:
    case OOS_BACKEND_TURBOQUANT:
    case OOS_BACKEND_TRITON_FLASH_ATTN:
    case OOS_BACKEND_TRITON_FLASHINFER:
    case OOS_BACKEND_FLASH_ATTN_DIFFKV:
    case OOS_BACKEND_TRITON_ATTN_DIFFKV:
    case OOS_BACKEND_FLASHMLA_SPARSE_DSV4:
    case OOS_BACKEND_FLASHINFER_MLA_SPARSE_DSV4:
    case OOS_BACKEND_XFORMERS:
    case OOS_BACKEND_COUNT: break;
    }
    return OOS_OBJECTION_MLA;
}

oos_objection oos_backend_objection(const oos_backend_question *q, oos_attention_backend backend)
{
    if (q->mla) return mla_objection(q, backend);
    switch (backend) {
    case OOS_BACKEND_FLASH_ATTN:
    case OOS_BACKEND_FLASH_ATTN_DIFFKV: return flash_attn(q);
    case OOS_BACKEND_FLASHINFER: return flashinfer(q);
    case OOS_BACKEND_TRITON_ATTN:
    case OOS_BACKEND_TRITON_ATTN_DIFFKV: return triton_attn(q);
    case OOS_BACKEND_FLEX_ATTENTION: return flex_attention(q);
    case OOS_BACKEND_TURBOQUANT: return turboquant(q);
    case OOS_BACKEND_TRITON_FLASH_ATTN: return composite(q, 9, OOS_BACKEND_FLASH_ATTN);
    case OOS_BACKEND_TRITON_FLASHINFER: return composite(q, 10, OOS_BACKEND_FLASHINFER);
    case OOS_BACKEND_XFORMERS: return OOS_OBJECTION_ABSENT;
    case OOS_BACKEND_FLASH_ATTN_MLA:
    case OOS_BACKEND_FLASHMLA:
    case OOS_BACKEND_FLASHINFER_MLA:
    case OOS_BACKEND_TOKENSPEED_MLA:
    case OOS_BACKEND_CUTLASS_MLA:
    case OOS_BACKEND_TRITON_MLA:
    case OOS_BACKEND_FLASHMLA_SPARSE:
    case OOS_BACKEND_FLASHINFER_MLA_SPARSE:
    case OOS_BACKEND_FLASH_ATTN_MLA_SPARSE:
    case OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM90:
    case OOS_BACKEND_FLASHINFER_MLA_SPARSE_SM120:
    case OOS_BACKEND_FLASHMLA_SPARSE_DSV4:
    case OOS_BACKEND_FLASHINFER_MLA_SPARSE_DSV4:
    case OOS_BACKEND_COUNT: break;
    }
    return OOS_OBJECTION_MLA;
}

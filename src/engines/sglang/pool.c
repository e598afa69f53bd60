/* The KV pool: bytes of a token (0.5.23, srt/model_executor/pool_configurator.py). */
#include "engines/sglang/sglang.h"

#include <string.h>

/* Sparse latent attention (DSA): keys of an indexer in fp8, a scale for every 128, beside a row that has scales of its own where it is in
 * fp8, and its rotary part in 16 bits (mem_cache/memory_pool.py, DSATokenToKVPool). */
enum { SPARSE_BLOCK = 128, SPARSE_SCALE = 4, SPARSE_ROTARY = 2, SPARSE_PAGE = 64 };

static uint64_t indexer_of(const oos_model *model)
{
    uint64_t dim = 0;
    for (uint64_t i = 0; i < model->layer_count; i++)
        dim = oos_max(dim, model->attentions[model->layers[i].attention].indexer_dim);
    return dim;
}

static bool is_sparse(const oos_model *model)
{
    return model->mla && model->sparse && indexer_of(model) > 0 && !oos_sglang_is_compressed(model);
}

/* Kernels of TensorRT-LLM read rows without scales: those of Blackwell, unless others are named. */
static bool rows_raw(const sglang_request *r, const sglang_start *setup)
{
    bool const named = r->sparse_prefill && r->sparse_decode;
    if (named && strcmp(r->sparse_prefill, "tilelang") == 0 && strcmp(r->sparse_decode, "tilelang") == 0)
        return true;
    bool const scaled =
        setup->rules->sparse_scaled_sm12 && setup->device.capability / 10 == 12 &&
        oos_architecture_says(setup->rules->facts, setup->model->architecture, "sparse_scaled");
    bool const usual = setup->rules->sparse_rows_raw && setup->device.capability >= 100 && !scaled;
    bool const prefill = r->sparse_prefill ? strcmp(r->sparse_prefill, "trtllm") == 0 : usual,
               decode = r->sparse_decode ? strcmp(r->sparse_decode, "trtllm") == 0 : usual;
    return prefill || decode;
}

/* Of a token over its layers: rows, and keys of the indexer; both as they are counted when the pool is sized. */
static void sparse_fill(const sglang_request *r, const sglang_start *setup, sglang_pool *pool)
{
    const oos_model *model = setup->model;
    uint64_t const dim = indexer_of(model), counts = setup->rules->sparse_index;
    uint64_t const keys = oos_add(dim, oos_mul(dim / SPARSE_BLOCK, SPARSE_SCALE));
    bool const scaled = setup->kv_fp8 && !rows_raw(r, setup);
    uint64_t counted = 0;
    for (uint64_t i = setup->first_layer; i < setup->last_layer; i++) {
        const oos_attention *a = &model->attentions[model->layers[i].attention];
        uint64_t const rank = a->kv_lora_rank, plain = oos_add(rank, a->rope_dim);
        uint64_t const with_scales = oos_add(oos_add(rank, oos_mul(rank / SPARSE_BLOCK, SPARSE_SCALE)),
                                             oos_mul(a->rope_dim, SPARSE_ROTARY));
        bool const own = counts < SPARSE_WITH_INDEXER || a->indexer_dim;
        uint64_t const item = setup->kv_fp8 ? 1 : oos_dtype_bytes(setup->dtype);
        uint64_t const row = scaled ? with_scales : oos_mul(plain, item);
        pool->index_bytes = own ? keys : pool->index_bytes;
        pool->full_bytes = oos_add(pool->full_bytes, oos_add(row, own ? keys : 0));
        counted = oos_add(counted, scaled && !setup->rules->sparse_rows_counted ? plain : row);
        counted = oos_add(counted, own && counts ? keys : 0);
        pool->layers++;
    }
    pool->cell = (double)counted;
}

uint64_t oos_sglang_page_of(const sglang_request *request, const oos_model *model)
{
    if (oos_sglang_is_compressed(model)) return oos_sglang_compressed_page();
    return is_sparse(model) ? SPARSE_PAGE : request->page;
}

/* One layer, one token. False: not a pool that was read. */
bool oos_sglang_layer_bytes(const sglang_start *setup, const oos_attention *a, uint64_t *ret_bytes,
                            bool *ret_sliding)
{
    uint64_t const item = setup->kv_fp8 ? 1 : oos_dtype_bytes(setup->dtype);
    uint64_t const kv_heads = oos_max(1, a->kv_heads / setup->attention_tp);
    *ret_sliding = a->mixer == OOS_MIXER_SLIDING || a->mixer == OOS_MIXER_CHUNKED;
    switch (a->mixer) {
    case OOS_MIXER_FULL:
    case OOS_MIXER_SLIDING:
    case OOS_MIXER_CHUNKED:
    case OOS_MIXER_ENCODER: /* has a cache like any other, though nothing is read from it (models/bert.py) */
        *ret_bytes = oos_mul(oos_mul(kv_heads, oos_add(a->head_dim, a->head_dim_v)), item);
        return !a->indexer_dim; /* a layer that reads the cache of another has its own all the same */
    case OOS_MIXER_MLA:
        *ret_bytes = oos_mul(oos_add(a->kv_lora_rank, a->rope_dim), item);
        return !a->compress_ratio;
    case OOS_MIXER_MAMBA1:
    case OOS_MIXER_MAMBA2:
    case OOS_MIXER_GDN:
    case OOS_MIXER_KDA:
    case OOS_MIXER_LINEAR:
    case OOS_MIXER_CONV: /* the pool of states has them; with heads of its own it attends beside */
        *ret_bytes = a->kv_heads && a->head_dim_v
                         ? oos_mul(oos_mul(kv_heads, oos_add(a->head_dim, a->head_dim_v)), item)
                         : 0;
        return true;
    case OOS_MIXER_NONE: *ret_bytes = 0; return true;
    case OOS_MIXER_CROSS: break;
    }
    return false;
}

static const char *unread_of(const oos_model *model)
{
    if (model->multimodal && !model->vision.present)
        return "what SGLang keeps free for sound is not modelled";
    if (model->sparse && !is_sparse(model)) return "SGLang's pool for sparse attention is not modelled";
    if (model->encoder_decoder) return "SGLang's pool for encoders is not modelled";
    return NULL;
}

sglang_pool oos_sglang_pool_of(const sglang_request *request, const sglang_start *setup)
{
    const oos_model *model = setup->model;
    if (setup->rules && oos_sglang_is_compressed(model)) return oos_sglang_compressed_of(request, setup);
    sglang_pool pool = {.unread = unread_of(model)};
    if (!pool.unread && setup->rules && is_sparse(model)) {
        sparse_fill(request, setup, &pool);
        return pool;
    }
    /* Sliding layers have a pool of their own in the architectures that the engine lists (configs/model_config.py, is_hybrid_swa_model);
     * in all others they keep every token, as the full ones do. */
    bool const listed =
        setup->rules && oos_architecture_says(setup->rules->facts, model->architecture, "sliding_pool");
    bool const apart = listed && !request->swa_off && setup->rules->sliding_pools;
    if (apart && request->sliding_by_requests && !pool.unread)
        pool.unread = "a sliding pool that is sized by requests is not modelled for SGLang";
    for (uint64_t i = setup->first_layer; i < setup->last_layer; i++) {
        const oos_attention *a = &model->attentions[model->layers[i].attention];
        uint64_t bytes = 0;
        bool sliding = false;
        if (!oos_sglang_layer_bytes(setup, a, &bytes, &sliding) && !pool.unread)
            pool.unread = "the cache of some layers of this model is not modelled for SGLang";
        if (sliding && apart) {
            pool.sliding_bytes = oos_add(pool.sliding_bytes, bytes);
            pool.window = oos_max(pool.window, a->window);
        } else {
            pool.full_bytes = oos_add(pool.full_bytes, bytes);
        }
        pool.layers += bytes > 0;
    }
    if (!pool.full_bytes && !pool.sliding_bytes && !pool.unread)
        pool.unread = "a model without attention is not modelled for SGLang";
    /* a pool of sliding layers alone is not shared */
    double const share = pool.full_bytes ? request->swa_ratio : 1;
    pool.cell = (double)pool.full_bytes + share * (double)pool.sliding_bytes;
    return pool;
}

/* The KV pool: bytes of a token (0.5.23, srt/model_executor/pool_configurator.py). */
#include "engines/sglang/sglang.h"

/* One layer, one token. False: not a pool that was read. */
bool oos_sglang_layer_bytes(const sglang_start *setup, const oos_attention *a, uint64_t *ret_bytes,
                            bool *ret_sliding)
{
    uint64_t const item = setup->kv_fp8 ? 1 : oos_dtype_bytes(setup->dtype);
    uint64_t const kv_heads = oos_max(1, a->kv_heads / setup->attention_tp);
    *ret_sliding = a->mixer == OOS_MIXER_SLIDING;
    switch (a->mixer) {
    case OOS_MIXER_FULL:
    case OOS_MIXER_SLIDING:
        *ret_bytes = oos_mul(oos_mul(kv_heads, oos_add(a->head_dim, a->head_dim_v)), item);
        return !a->indexer_dim; /* a layer that reads the cache of another has its own all the same */
    case OOS_MIXER_MLA:
        *ret_bytes = oos_mul(oos_add(a->kv_lora_rank, a->rope_dim), item);
        return !a->indexer_dim && !a->compress_ratio;
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
    case OOS_MIXER_CHUNKED:
    case OOS_MIXER_ENCODER:
    case OOS_MIXER_CROSS: break;
    }
    return false;
}

static const char *unread_of(const oos_model *model)
{
    if (model->multimodal && !model->vision.present)
        return "what SGLang keeps free for sound is not modelled";
    if (model->sparse) return "SGLang's pool for sparse attention is not modelled";
    if (model->encoder_decoder) return "SGLang's pool for encoders is not modelled";
    return NULL;
}

sglang_pool oos_sglang_pool_of(const sglang_request *request, const sglang_start *setup)
{
    const oos_model *model = setup->model;
    sglang_pool pool = {.unread = unread_of(model)};
    /* Sliding layers have a pool of their own in the architectures that the engine lists (configs/model_config.py, is_hybrid_swa_model);
     * in all others they keep every token, as the full ones do. */
    bool const listed =
        setup->rules && oos_architecture_says(setup->rules->facts, model->architecture, "sliding_pool");
    bool const apart = listed && !request->swa_off && setup->rules->sliding_pools;
    if (apart && request->sliding_by_requests && !pool.unread)
        pool.unread = "a sliding pool that is sized by requests is not modelled for SGLang";
    for (uint64_t i = 0; i < model->layer_count; i++) {
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

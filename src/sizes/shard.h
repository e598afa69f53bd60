/* One rank of a model: how the model is cut over devices, and what an engine does with its tensors. An engine fills it; what is counted
 * from it is the same for every engine. */
#ifndef OOS_SIZES_SHARD_H
#define OOS_SIZES_SHARD_H

#include "model/model.h"

/* What an engine and its release do with tensors. All zero is a plain PyTorch program of the oldest release. */
typedef struct oos_weight_ways {
    const char *quantization, *load_format; /* asked for; NULL: the checkpoint's own */
    double offload_gib;                     /* of weights that stay in host memory */
    bool expandable_segments;               /* of PyTorch's allocator */
    uint64_t torch_minor;                   /* UINT64_MAX: the newest */
    uint64_t split_limit_bytes; /* the allocator does not split blocks of this size on; 0: no limit */
    bool mxfp4_by_triton, mxfp4_keeps_scales;
    bool bnb_nests_constants; /* bitsandbytes: constants that are quantised again stay so */
    uint64_t
        online_quantisation;    /* 0: beside what stays, the rest of the model; 1: all of it; 2: one layer */
    bool head_untied;           /* a head that only the class of a wrapper ties is a tensor of its own */
    bool shared_layers_keep_kv; /* layers that read the cache of another have keys and values all the same */
    bool mrope_fourfold;        /* tables of sectioned rotary embeddings are four times as long */
    uint64_t attention_scales;  /* fp32 scales of each attention layer, a tensor each */
    bool qkv_ranges;            /* three constants of each attention layer are on the device */
    bool lora_on_experts, lora_sharded;
    const char *draft_method; /* "eagle", "eagle3", ...; NULL: by the model */
} oos_weight_ways;

typedef struct oos_shard {
    const oos_model *model;
    const oos_model *draft;    /* NULL: none, or layers of the model's own */
    uint64_t tp, pp, dp, ep;   /* ep: 1 without expert parallelism */
    uint64_t draft_tp;         /* 0: as the model */
    const char *layers_given;  /* of each stage: "20,22,22"; NULL: even shares */
    unsigned capability;       /* of the device: 90 */
    oos_dtype dtype;           /* activations and unquantised weights */
    bool multimodal;           /* the encoder is built */
    uint64_t mtp_layers;       /* layers of the model's own drafter */
    uint64_t loras, lora_rank; /* slots for adapters */
    uint64_t batch_tokens;
    oos_weight_ways ways;
} oos_shard;

/* Layers of pipeline stage `stage`: [*ret_first, *ret_first + count). */
uint64_t oos_shard_layers(const oos_shard *shard, uint64_t stage, uint64_t *ret_first);

#endif

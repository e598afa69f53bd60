#pragma once
#include "engines/vllm/backend/backend.h"
#include "engines/vllm/setup/setup.h"
#include "plan/plan.h"

/* KV cache geometry: pages, groups, blocks, tokens, and the engine's own refusals. */

typedef enum oos_kv_kind {
    OOS_KV_KIND_FULL,
    OOS_KV_KIND_SLIDING,
    OOS_KV_KIND_CHUNKED,
    OOS_KV_KIND_MLA,
    OOS_KV_KIND_SLIDING_MLA, /* DeepSeek V4's local cache */
    OOS_KV_KIND_INDEXER,     /* keys of a sparse indexer beside MLA */
    OOS_KV_KIND_STATE,       /* Mamba, GDN, KDA, linear, short convolution */
    OOS_KV_KIND_CROSS
} oos_kv_kind;

const char *oos_kv_kind_word(oos_kv_kind kind); /* "full_attention", "sliding_window", "mamba", ... */

/* Layers with one and the same cache spec. */
typedef struct oos_kv_spec {
    oos_kv_kind kind;
    uint64_t layers; /* on the rank */
    uint64_t block_tokens;
    uint64_t page_bytes;   /* of one block of one layer, padded */
    uint64_t window;       /* sliding window or chunk; CROSS: encoder tokens */
    uint64_t state_blocks; /* STATE: pages one request holds, beside those that grow with its length */
    bool state_by_length;  /* STATE: one page more for every block of tokens */
} oos_kv_spec;

typedef struct oos_kv_group {
    oos_kv_kind kind;
    uint64_t layers, block_tokens;
    uint64_t page_bytes; /* of one layer; of all together when they differ in size (`several`) */
    bool several;
    uint64_t request_blocks; /* blocks one request of max_model_len claims in this group */
    oos_kv_spec spec;        /* of its layers: for other lengths */
} oos_kv_group;

/* One pipeline stage: its layers as they declare themselves, and the bytes of a block there. */
typedef struct oos_kv_stage {
    const oos_kv_spec *specs;
    size_t spec_count;
    uint64_t block_bytes;
    uint64_t check_bytes; /* what the length check takes a block for */
} oos_kv_stage;

/* The shape of the cache: what does not depend on how much memory there is. */
typedef struct oos_kv_shape {
    const oos_kv_stage *stages;
    size_t stage_count;
    const oos_kv_group *groups; /* on the stage with the largest blocks */
    size_t group_count;
    uint64_t block_tokens;   /* cache_config.block_size after every adjustment */
    uint64_t page_bytes;     /* of the unified page; of the largest when one group holds several sizes */
    uint64_t tensor_count;   /* layers of the largest group: tensors of page_bytes * blocks each */
    uint64_t block_bytes;    /* one block over all tensors, on that stage */
    uint64_t padding_layers; /* "Add N padding layers", 0: none */
    double bytes_per_token;  /* of full attention on one GPU: for people */
    bool estimated;          /* an architecture we do not know: from the common fields */
    const char *error;       /* the engine refuses this shape: its sentence, NULL otherwise */
} oos_kv_shape;

/* `layers_json` (may be NULL) replaces the model's own layer specs: [{"type":"FullAttentionSpec","layers":16,
 * "block_size":16,"page_size_bytes":65536,"window":1024,"mamba_cache_mode":"align","num_speculative_blocks":0,
 * "num_prefill_checkpoint_blocks":0}, ...] for the types Full-, MLA-, SlidingWindow-, ChunkedLocal- and
 * CrossAttentionSpec and MambaSpec. */
oomsight_status oos_kv_shape_of(oos_arena *arena, const oos_setup *setup, const char *layers_json,
                                oos_kv_shape *ret_shape, oomsight_error *reterr);

/* `available_bytes` may be negative: then the engine refuses. A length of "auto" is fitted here. */
oomsight_status oos_kv_fill_in(oos_arena *arena, const oos_setup *setup, const oos_kv_shape *shape,
                               int64_t available_bytes, oos_kv_fill *ret_fill, oomsight_error *reterr);

/* Whether it would be refused, without the words: quicker. */
bool oos_kv_refused(const oos_setup *setup, const oos_kv_shape *shape, int64_t available_bytes);

/* Between the files of the KV geometry. */

enum { OOS_KV_SPECS_MAX = 32 };

/* The layers of the whole model by spec, in the order in which the engine meets them. `layers` of a spec counts all
 * pipeline stages; `stage_layers[stage * OOS_KV_SPECS_MAX + spec]` those of one. */
typedef struct oos_kv_layers {
    oos_kv_spec specs[OOS_KV_SPECS_MAX];
    size_t count;
    uint64_t stages;
    uint32_t *stage_layers;
    uint64_t block_tokens;
    bool hybrid_off; /* the configuration itself switches the hybrid manager off */
    bool estimated;
} oos_kv_layers;

/* From the model and the configuration. */
/* cache_config.block_size after every adjustment, which the layers' pages have too. */
uint64_t oos_kv_block_tokens(const oos_setup *setup);

oomsight_status oos_kv_layers_of(oos_arena *arena, const oos_setup *setup, oos_kv_layers *ret_layers,
                                 oomsight_error *reterr);

/* One layer more of this spec on a stage. */
oomsight_status oos_kv_layers_add(oos_kv_layers *layers, const oos_kv_spec *spec, uint64_t stage,
                                  uint64_t count, oomsight_error *reterr);

/* Pages of recurrent state one request holds, by version and caching mode. */
void oos_kv_state_pages(const oos_setup *setup, oos_mamba_mode mode, uint64_t speculative,
                        uint64_t checkpoints, oos_kv_spec *spec);

/* Groups, padding and the size of a block. */
oomsight_status oos_kv_group_up(oos_arena *arena, const oos_setup *setup, const oos_kv_layers *layers,
                                oos_kv_shape *ret_shape, oomsight_error *reterr);

/* DeepSeek V4: pages of many sizes side by side in one block. */
bool oos_kv_is_packed(const oos_kv_layers *layers);
oomsight_status oos_kv_pack(oos_arena *arena, const oos_setup *setup, const oos_kv_layers *layers,
                            oos_kv_shape *shape, oomsight_error *reterr);

/* Fills in what depends on the groups: request_blocks, depth, bytes for a token. */
void oos_kv_finish_groups(const oos_setup *setup, oos_kv_group *groups, size_t count, oos_kv_shape *shape);

/* The layers of a stage as they declare themselves. */
oomsight_status oos_kv_write_stage(oos_arena *arena, const oos_kv_layers *layers, uint64_t stage,
                                   oos_kv_stage *ret_stage, oomsight_error *reterr);

/* Blocks one request of `tokens` claims from layers of this spec. */
uint64_t oos_kv_request_blocks(const oos_setup *setup, const oos_kv_spec *spec, uint64_t tokens);

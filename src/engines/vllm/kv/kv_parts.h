/* Between the files of the KV geometry. */
#ifndef OOS_PLAN_KV_PARTS_H
#define OOS_PLAN_KV_PARTS_H

#include "engines/vllm/kv/kv.h"

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

#endif

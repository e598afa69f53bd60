#include "plan/plan.h"

oomsight_status oos_parts_tell(oos_arena *arena, const oos_activation *activation, const oos_outside *outside,
                               const oos_graphs *graphs, oos_plan *plan, oomsight_error *reterr)
{
    oos_part const list[] = {
        {"activation_peak", activation->peak},
        {"forward", activation->forward},
        {"sampler", activation->sampler},
        {"encoder", activation->encoder},
        {"encoder_cache", activation->encoder_cache},
        {"retained", activation->retained},
        {"persistent", activation->persistent},
        {"context", outside->context},
        {"nccl", outside->nccl},
        {"profile_growth", outside->profile_growth},
        {"graph_estimate", graphs->estimate},
        {"graphs", graphs->taken},
        {"graphs_not_printed", graphs->not_printed},
        {"runtime_growth", outside->runtime_growth},
        {"non_kv", plan->sizes.non_kv},
    };
    plan->sizes.parts = oos_arena_keep(arena, list, sizeof list);
    plan->sizes.part_count = sizeof list / sizeof *list;
    return plan->sizes.parts ? OOMSIGHT_OK : oos_fail(reterr, OOMSIGHT_NOMEM, "no memory for the setup");
}

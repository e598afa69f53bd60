/* Which attention backend the engine chooses, and why the ones before it were not. */
#ifndef OOS_PLAN_BACKEND_H
#define OOS_PLAN_BACKEND_H

#include "engines/vllm/setup/setup.h"

typedef struct oos_backend_choice {
    const char *name; /* "FLASH_ATTN", "FLEX_ATTENTION", ... as the engine prints it; NULL when it refuses */
    const char
        *reason;  /* why a preferred one was passed over ("head size 80 is not ..."), NULL when it was first;
                           the engine's sentence when it refuses */
    bool refused; /* the engine raises instead of choosing */
    bool forced;  /* the user chose it */
    uint64_t
        preferred_block;   /* block size the backend asks for when none was given, 0: the engine's default */
    uint64_t kernel_block; /* smallest block its kernels take */
    oos_kv_dtype kv_dtype; /* what it stores: sparse kernels replace the type that was asked for */
    uint64_t workspace_bytes; /* held outside weights and KV once it runs */
    bool full_graphs;         /* can be captured in FULL decode graphs */
} oos_backend_choice;

/* For one attention of the model. */
oomsight_status oos_backend_choose(oos_arena *arena, const oos_setup *setup, const oos_attention *attention,
                                   oos_backend_choice *ret_choice, oomsight_error *reterr);

/* The same without words and workspace: name, block sizes and stored type only. For use inside loops. */
void oos_backend_pick(const oos_setup *setup, const oos_attention *attention, oos_backend_choice *ret_choice);

#endif

/* KV cache geometry. */
#include "plan/kv.h"

const char *oos_kv_kind_word(oos_kv_kind kind)
{
    (void)kind;
    return "full_attention";
}

oomsight_status oos_kv_shape_of(oos_arena *arena, const oos_setup *setup, const char *layers_json,
                                oos_kv_shape *ret_shape, oomsight_error *reterr)
{
    (void)arena, (void)setup, (void)layers_json, (void)reterr;
    *ret_shape = (oos_kv_shape){0};
    return OOMSIGHT_OK;
}

oomsight_status oos_kv_fill_in(oos_arena *arena, const oos_setup *setup, const oos_kv_shape *shape,
                               int64_t available_bytes, oos_kv_fill *ret_fill, oomsight_error *reterr)
{
    (void)arena, (void)setup, (void)shape, (void)available_bytes, (void)reterr;
    *ret_fill = (oos_kv_fill){0};
    return OOMSIGHT_OK;
}

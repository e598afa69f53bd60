/* Shapes of recurrent states: heads and channels are divided among ranks. */
#include "sizes/sizes.h"
#include "base/check.h"

oos_layer_state oos_layer_state_of(const oos_attention *a, uint64_t tp)
{
    oos_assert(tp > 0);
    oos_layer_state state = {.rows = oos_sub(a->conv_kernel, 1), .channels = a->conv_dim / tp};
    switch (a->mixer) {
    case OOS_MIXER_GDN:
        state.elements = oos_mul(a->value_heads / tp, oos_mul(a->value_dim_state, a->key_dim));
        break;
    case OOS_MIXER_KDA:
        state.elements = oos_mul(a->value_heads / tp, oos_mul(a->value_dim_state, a->value_dim_state));
        break;
    case OOS_MIXER_MAMBA1: state.elements = oos_mul(state.channels, a->state_size); break;
    case OOS_MIXER_MAMBA2: {
        /* groups are repeated until every rank has one */
        uint64_t const groups = a->groups % tp == 0 ? a->groups : oos_max(tp, a->groups);
        state.channels = oos_add(a->conv_dim, oos_mul(2 * (groups - a->groups), a->state_size)) / tp;
        state.elements = oos_mul(a->state_heads / tp, oos_mul(a->state_head_dim, a->state_size));
        break;
    }
    case OOS_MIXER_LINEAR:
        return (oos_layer_state){.elements = oos_mul(a->heads / tp, oos_mul(a->head_dim, a->head_dim))};
    case OOS_MIXER_CONV: break;
    case OOS_MIXER_NONE:
    case OOS_MIXER_FULL:
    case OOS_MIXER_SLIDING:
    case OOS_MIXER_CHUNKED:
    case OOS_MIXER_MLA:
    case OOS_MIXER_ENCODER:
    case OOS_MIXER_CROSS: return (oos_layer_state){0};
    }
    return state;
}

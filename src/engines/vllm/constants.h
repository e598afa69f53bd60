/* Fitted constants of this engine, data/engines/vllm/constants.json. */
#ifndef OOS_VLLM_CONSTANTS_H
#define OOS_VLLM_CONSTANTS_H

#include "engines/vllm/setup/setup.h"
#include "facts/constants.h"

typedef enum vllm_constant {
#define CONSTANT(name) VLLM_##name,
#include "engines/vllm/constants.def"
#undef CONSTANT
    VLLM_CONSTANT_COUNT
} vllm_constant;
extern const oos_constants vllm_constants;

/* Of this start. */
static inline oos_constant vllm_constant_of(const oos_setup *setup, vllm_constant id)
{
    oos_constant_where const where = {.capability = setup->device.capability,
                                      .torch_minor = setup->rules->torch_minor,
                                      .ranks = setup->tp,
                                      .version = setup->rules->version,
                                      .unified = setup->device.unified};
    return oos_constant_at(&vllm_constants, id, &where);
}

static inline uint64_t vllm_end(const oos_setup *setup, vllm_constant id, oos_constant_end end)
{
    return oos_constant_end_of(vllm_constant_of(setup, id), end);
}

static inline uint64_t vllm_value(const oos_setup *setup, vllm_constant id)
{
    return vllm_constant_of(setup, id).value;
}

#endif

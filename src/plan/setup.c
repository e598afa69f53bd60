/* Resolving the engine's configuration. */
#include "plan/setup.h"

oomsight_status oos_setup_resolve(oos_arena *arena, const oos_model *model, const oos_model *draft,
                                  const oos_serve *serve, const oos_engine_env *env,
                                  const oos_device_facts *device, const oos_rules *rules,
                                  oos_setup *ret_setup, oomsight_error *reterr)
{
    (void)arena, (void)reterr;
    *ret_setup = (oos_setup){.model = model, .draft = draft, .serve = serve, .env = env, .rules = rules};
    ret_setup->device = *device;
    return OOMSIGHT_OK;
}

uint64_t oos_setup_stage_layers(const oos_setup *setup, uint64_t stage, uint64_t *ret_first)
{
    (void)stage;
    *ret_first = 0;
    return setup->model->layer_count;
}

/* Reading config.json. */
#include "input/model.h"

oomsight_status oos_model_read(oos_arena *arena, oos_view config, oos_view quant, oos_model *ret_model,
                               oomsight_error *reterr)
{
    (void)arena, (void)config, (void)quant, (void)ret_model;
    return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "models are not read yet");
}

oomsight_status oos_model_open_dir(oos_arena *arena, const char *dir, oos_model *ret_model,
                                   oomsight_error *reterr)
{
    (void)arena, (void)dir, (void)ret_model;
    return oos_fail(reterr, OOMSIGHT_UNSUPPORTED, "models are not read yet");
}

/* --hf-overrides: fields of config.json that the command sets otherwise. */
#ifndef OOS_INPUT_OVERRIDE_H
#define OOS_INPUT_OVERRIDE_H

#include "base/arena.h"
#include "base/error.h"

/* The config as the engine would see it, as text in the arena. `overrides` NULL: the config itself. */
oomsight_status oos_config_override(oos_arena *arena, oos_view config, const char *overrides,
                                    oos_view *ret_config, oomsight_error *reterr);

#endif

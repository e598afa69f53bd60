/* From the MODEL word of a command to a model: a directory, a model in the local cache, or one on the hub. */
#ifndef OOS_INPUT_LOCATE_H
#define OOS_INPUT_LOCATE_H

#include "model/model.h"

/* `data_dir` has the families, NULL: the embedded ones. `overrides` is the JSON of --hf-overrides, NULL for none. Failure says what was tried and what to do. */
oomsight_status oos_locate(oos_arena *arena, const char *data_dir, const char *word, bool allow_hub,
                           const char *overrides, oos_model *ret_model, oomsight_error *reterr);

#endif

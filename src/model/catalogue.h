/* Models in common use, known by their id: data/catalogue.json. For when neither the cache nor the hub has an answer. */
#ifndef OOS_MODEL_CATALOGUE_H
#define OOS_MODEL_CATALOGUE_H

#include "model/model.h"

/* NOT_FOUND: it is not listed; MALFORMED: what stands there is no model. The texts of its config.json and hf_quant_config.json
 * (empty: none) live in the arena or in the binary. */
oomsight_status oos_catalogue_find(oos_arena *arena, const char *data_dir, const char *id,
                                   oos_view *ret_config, oos_view *ret_quant, oomsight_error *reterr);

/* Quantised checkpoints of the model that `id` is, or is a checkpoint of; not `id` itself. In the order of the file; the first have
 * the owner of the model. */
enum { OOS_CHECKPOINTS_MAX = 32 };
typedef struct oos_checkpoint {
    const char *id;
    oos_view config, quant; /* as of oos_catalogue_find() */
} oos_checkpoint;
oomsight_status oos_catalogue_checkpoints(oos_arena *arena, const char *data_dir, const char *id,
                                          const oos_checkpoint **ret_list, size_t *ret_count,
                                          oomsight_error *reterr);

/* The id that is listed and ends like `name`, a model without its owner; NULL: none. Capitals do not matter. */
const char *oos_catalogue_nearest(oos_arena *arena, const char *data_dir, const char *name);

/* The model of an id that is listed; its `from_catalogue` is set. */
oomsight_status oos_catalogue_open(oos_arena *arena, const char *data_dir, const char *id, oos_view config,
                                   oos_view quant, const char *overrides, oos_model *ret_model,
                                   oomsight_error *reterr);

#endif

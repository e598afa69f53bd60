/* A YAML file given with --config, as the options it stands for. The document itself is loaded by
 * yaml_load.h. */
#ifndef OOS_INPUT_YAML_H
#define OOS_INPUT_YAML_H

#include "base/arena.h"
#include "base/error.h"

typedef enum oos_yaml_kind {
    OOS_YAML_TRUE,
    OOS_YAML_FALSE,
    OOS_YAML_NULL,
    OOS_YAML_SCALAR, /* one value, as text */
    OOS_YAML_LIST,   /* its items as text */
    OOS_YAML_MAP     /* one value, as JSON text */
} oos_yaml_kind;

typedef struct oos_yaml_option {
    const char *key; /* as written: "max-model-len", "max_model_len" */
    oos_yaml_kind kind;
    const char *const *values;
    size_t value_count;
    uint32_t line;
} oos_yaml_option;

/* The top of the file must be a mapping with text keys; an empty file has no options. Plain words are typed as YAML
 * 1.1 does it (`yes` is true), which is what the engine's own reader does. */
oomsight_status oos_yaml_read(oos_arena *arena, oos_view bytes, const oos_yaml_option **ret_options,
                              size_t *ret_count, oomsight_error *reterr);

#endif

/* Quantisation configs: which scheme each module of a model gets. Follows the engine's own reading of quantization_config
 * (config.json) and hf_quant_config.json: method, groups, ignore lists, per-module rules. */
#ifndef OOS_INPUT_QUANT_H
#define OOS_INPUT_QUANT_H

#include "base/json.h"
#include "model/model.h"

/* What a module is to the quantiser. */
typedef enum oos_quant_role { OOS_QUANT_LINEAR, OOS_QUANT_EXPERTS, OOS_QUANT_LM_HEAD } oos_quant_role;

/* Checkpoint names that the engine's classes call differently; applied to the lists of the config. A NULL `to` drops
 * the name. */
typedef struct oos_rename {
    enum { OOS_RENAME_END, OOS_RENAME_PREFIX, OOS_RENAME_INSIDE } where;
    const char *from, *to;
} oos_rename;

typedef struct oos_quantizer oos_quantizer;

/* *ret_quantizer is NULL when nothing is quantised. `root` is config.json, `text` its text part, `legacy` is
 * hf_quant_config.json or NULL. `renames` may be NULL. */
oomsight_status oos_quantizer_read(oos_arena *arena, const json_t *root, const json_t *text,
                                   const json_t *legacy, const oos_rename *renames,
                                   oos_quantizer **ret_quantizer, oomsight_error *reterr);

/* The config names an algorithm, but no method that the engine would recognise by itself. */
bool oos_quantizer_unknown(const oos_quantizer *q); /* its method is not known here */
bool oos_quantizer_by_flag(const oos_quantizer *quantizer);
const char *oos_quantizer_method(const oos_quantizer *quantizer);

/* ModelOpt's own word for the scheme, NULL: none; and whether the file says so by its producer. */
const char *oos_quantizer_algo(const oos_quantizer *quantizer, bool *ret_produced);
oos_dtype oos_quantizer_kv_dtype(const oos_quantizer *quantizer); /* UNKNOWN: as the model */
const char *oos_quantizer_note(const oos_quantizer *quantizer);   /* what was not understood, or NULL */

/* Parameters the method adds to each attention layer: fp32 scales, and zero points in the model's dtype. */
void oos_quantizer_kv_parameters(const oos_quantizer *quantizer, bool latent, uint64_t *ret_floats,
                                 uint64_t *ret_zeros);

/* The scheme of the module `prefix` + `name` ("model.layers.3." + "self_attn.qkv_proj"). `layer` is the number inside
 * the prefix, UINT64_MAX when there is none. */
oos_quant oos_quantizer_scheme(oos_quantizer *quantizer, const char *prefix, const char *name, uint64_t layer,
                               oos_quant_role role);

/* The text the engine's own name has after the renames, in the arena; NULL: dropped. */
const char *oos_rename_apply(oos_arena *arena, const oos_rename *renames, const char *name);

#endif

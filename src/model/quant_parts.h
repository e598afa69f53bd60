/* A quantiser from the inside: what quant.c reads and quant_match.c looks names up in. */
#ifndef OOS_INPUT_QUANT_PARTS_H
#define OOS_INPUT_QUANT_PARTS_H

#include "model/quant.h"
#include "model/quant_names.h"

typedef enum oos_quant_method {
    OOS_METHOD_AWQ,
    OOS_METHOD_GPTQ,
    OOS_METHOD_FP8,
    OOS_METHOD_COMPRESSED,
    OOS_METHOD_MODELOPT,
    OOS_METHOD_MIXED,
    OOS_METHOD_MXFP4,
    OOS_METHOD_AUTOROUND,
    OOS_METHOD_BNB,
    OOS_METHOD_FBGEMM,
    OOS_METHOD_EXPERTS_ONLY, /* DeepSeek V4: experts in FP4 beside FP8 blocks */
    OOS_METHOD_UNKNOWN
} oos_quant_method;

enum { OOS_SCHEMES_MAX = 64, OOS_MEMORY_MAX = 256, OOS_NAME_BYTES = 512 };

/* What was found for a name, where it is the same in all layers. */
typedef struct oos_quant_memory {
    const char *prefix, *name;
    oos_quant_role role;
    oos_quant scheme;
} oos_quant_memory;

struct oos_quantizer {
    oos_arena *arena;
    oos_quant_method method;
    const char *word;
    oos_quant base, experts;
    oos_names ignore;  /* modules left alone */
    oos_names targets; /* modules with a scheme of their own: value is its number */
    oos_quant schemes[OOS_SCHEMES_MAX];
    size_t scheme_count;
    bool by_flag;
    const char *algo;         /* ModelOpt: "NVFP4"; NULL: none said */
    bool produced;            /* ... in the form that names its producer */
    bool lm_head, has_linear; /* compressed-tensors: a group targets every Linear */
    oos_quant linear;         /* its scheme */
    const char **blocks;      /* AutoRound: only modules under these; NULL: all */
    size_t block_count;
    oos_dtype kv_dtype;
    const char *note;
    bool layerless;
    oos_quant_memory memories[OOS_MEMORY_MAX];
    size_t memory_count;
};

#endif

/* A model under construction: what the readers of model families (arch/) share. A family reads the fields it knows from
 * the text part of config.json and says, layer by layer, how tokens are mixed and which matrices the engine creates.
 * Failures are remembered in `status`, so that a family reads as a description. */
#ifndef OOS_INPUT_ARCH_H
#define OOS_INPUT_ARCH_H

#include "base/json.h"
#include "input/model.h"

enum { OOS_LAYERS_MAX = 4096 };

typedef struct oos_arch {
    oos_arena *arena;
    const json_t *root, *text, *vision; /* vision: NULL when there is none */
    oos_model *model;
    const struct oos_quantizer *quantizer;
    const char
        *prefix; /* of the decoder's modules as the engine names them: "model.", "language_model.model." */
    oomsight_status status;
    oomsight_error *reterr;

    oos_attention *attentions;
    size_t attention_count, attention_room;
    oos_matrix *matrices;
    size_t matrix_count, matrix_room;
    oos_quant *quants;
    size_t quant_count, quant_room;
    const char **notes;
    size_t note_count, note_room;

    uint64_t layer; /* the one being described */
    oos_layer now;
    size_t now_first; /* its matrices: [now_first, matrix_count) until they are merged with an equal range */
} oos_arch;

/* ---- fields of the text config ---- */
uint64_t oos_arch_u64(const oos_arch *a, const char *key, uint64_t fallback);
double oos_arch_f64(const oos_arch *a, const char *key, double fallback);
bool oos_arch_yes(const oos_arch *a, const char *key, bool fallback);
const char *oos_arch_str(const oos_arch *a, const char *key);    /* NULL when absent */
const json_t *oos_arch_list(const oos_arch *a, const char *key); /* NULL unless a list that is not empty */
bool oos_arch_has(const oos_arch *a, const char *key);           /* present and not null */

/* Entry i of a list of numbers or words. */
uint64_t oos_arch_item_u64(const json_t *list, uint64_t i, uint64_t fallback);
bool oos_arch_item_is(const json_t *list, uint64_t i, const char *word);
bool oos_arch_list_holds(const json_t *list, uint64_t number);

/* ---- building ---- */
void oos_arch_fail(oos_arch *a, oomsight_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void oos_arch_note(oos_arch *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `layer` is called for each of `count` layers and describes it with the functions below. */
void oos_arch_layers(oos_arch *a, uint64_t count, void (*layer)(oos_arch *a, uint64_t i));
void oos_arch_mtp_layers(oos_arch *a, uint64_t count, void (*layer)(oos_arch *a, uint64_t i));
void oos_arch_attention(oos_arch *a, oos_attention attention);
uint64_t oos_arch_layer_count(oos_arch *a);

/* Rows of the cos/sin table for a rope setting; `rope` is rope_parameters / rope_scaling, may be NULL. */
void oos_arch_rope(oos_arch *a, uint64_t head_dim);

/* ---- how the engine decides about windows ---- */
/* The window of layer i by `layer_types` and `sliding_window`; 0: none. `pattern` > 0: without layer_types every
 * pattern-th layer is full and the others slide. */
uint64_t oos_arch_window(const oos_arch *a, uint64_t i, uint64_t pattern, uint64_t default_window);

/* Full or sliding attention of the model's own heads. */
oos_attention oos_arch_plain(const oos_arch *a, uint64_t window);

/* ---- families ---- */
typedef struct oos_family {
    const char *architecture; /* the engine's class name */
    void (*build)(oos_arch *a);
    const char *vision; /* kind of tower, NULL */
} oos_family;

const oos_family *oos_family_find(const char *architecture);

/* arch/dense.c, ... */
void oos_build_common(oos_arch *a); /* also for architectures we do not know */
void oos_build_llama(oos_arch *a);
void oos_build_mistral(oos_arch *a);
void oos_build_qwen2(oos_arch *a);
void oos_build_gemma2(oos_arch *a);
void oos_build_gemma3(oos_arch *a);
void oos_build_gemma3n(oos_arch *a);
void oos_build_gemma4(oos_arch *a);
void oos_build_gpt_oss(oos_arch *a);
void oos_build_deci(oos_arch *a);
void oos_build_deepseek(oos_arch *a);
void oos_build_deepseek_v4(oos_arch *a);
void oos_build_kimi_linear(oos_arch *a);
void oos_build_qwen3_next(oos_arch *a);
void oos_build_nemotron_h(oos_arch *a);
void oos_build_mamba(oos_arch *a);
void oos_build_mamba2(oos_arch *a);
void oos_build_jamba(oos_arch *a);
void oos_build_lfm2(oos_arch *a);
void oos_build_llama4(oos_arch *a);
void oos_build_mllama(oos_arch *a);
void oos_build_mimo_v2(oos_arch *a);
void oos_build_moe(oos_arch *a);
void oos_build_glm4_moe(oos_arch *a);
void oos_build_mixtral(oos_arch *a);
void oos_build_minimax_m3(oos_arch *a);
void oos_build_step3(oos_arch *a);

#endif

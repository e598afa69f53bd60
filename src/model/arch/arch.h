#pragma once
#include "base/json.h"
#include "model/model.h"
#include <stddef.h>

/* A model under construction: what the readers of model families (arch/) share. A family reads the fields it knows from
 * the text part of config.json and says, layer by layer, how tokens are mixed and which matrices the engine creates.
 * Failures are remembered in `status`, so that a family reads as a description. */

enum { OOS_LAYERS_MAX = 4096 };

typedef struct oos_arch {
    oos_arena *arena;
    const char *data_dir;                       /* of the records; NULL: the embedded ones */
    const json_t *root, *text, *vision, *audio; /* vision, audio: NULL when there is none */
    const struct oos_family *family;            /* NULL: not known */
    const struct oos_family *inside;            /* the decoder in a wrapper that takes any */
    struct oos_scope *scope;                    /* of the record that is being read */
    oos_model *model;
    oos_quantizer *quantizer;
    const char
        *prefix; /* of the decoder's modules as the engine names them: "model.", "language_model.model." */
    const char *layer_prefix; /* of its layers: "model.layers." */
    const char *now_prefix;   /* of what is being described */
    uint64_t now_layer;       /* its number, UINT64_MAX outside layers */
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
uint64_t oos_arch_scaled(uint64_t length, double factor); /* by a rope setting */
/* A size, or a number, of any part of the config. Where the field has something else than null that is none, the model cannot be
 * planned: false, and a->status says so. */
bool oos_arch_size(oos_arch *a, const json_t *object, const char *key, uint64_t *ret_value);
bool oos_arch_real(oos_arch *a, const json_t *object, const char *key, double *ret_value);
void oos_arch_wrong(oos_arch *a, const char *key, const json_t *value);
uint64_t oos_arch_u64(oos_arch *a, const char *key, uint64_t fallback);
double oos_arch_f64(oos_arch *a, const char *key, double fallback);
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
/* The drafter's layers are named `prefix` and a number from `first` on. */
void oos_arch_mtp_layers(oos_arch *a, uint64_t count, const char *prefix, uint64_t first,
                         void (*layer)(oos_arch *a, uint64_t i));
void oos_arch_attention(oos_arch *a, oos_attention attention);
uint64_t oos_arch_layer_count(oos_arch *a);

/* ---- rotary tables ---- */
const json_t *
oos_rope_config(const oos_arch *a); /* rope_parameters, or rope_scaling before transformers 5; NULL */
const char *oos_rope_type(const json_t *rope);
oos_rope oos_rope_of(oos_arch *a, const json_t *rope, uint64_t head_dim);
void oos_rope_add(oos_arch *a, oos_rope table); /* unless there is an equal one */
void oos_rope_usual(oos_arch *a);               /* one table for all attention layers */

/* ---- how the engine decides about windows ---- */
/* The window of layer i by `layer_types` and `sliding_window`; 0: none. `pattern` > 0: without layer_types every
 * pattern-th layer is full and the others slide. */
uint64_t oos_arch_window(oos_arch *a, uint64_t i, uint64_t pattern, uint64_t default_window);

/* Full or sliding attention of the model's own heads. */
oos_attention oos_arch_plain(oos_arch *a, uint64_t window);

/* ---- matrices ---- */

/* One pointer per module, so that sums by module compare pointers. */
typedef enum oos_module {
    OOS_MODULE_EMBED,
    OOS_MODULE_LM_HEAD,
    OOS_MODULE_NORM,
    OOS_MODULE_ATTN,
    OOS_MODULE_MLP,
    OOS_MODULE_EXPERTS,
    OOS_MODULE_SHARED_EXPERT,
    OOS_MODULE_ROUTER,
    OOS_MODULE_MIXER, /* recurrent token mixing */
    OOS_MODULE_VISION,
    OOS_MODULE_AUDIO,
    OOS_MODULE_OTHER,
    OOS_MODULE_COUNT
} oos_module;

extern const char *const oos_module_words[OOS_MODULE_COUNT];

/* Any matrix. `linear` ones are given to the quantiser by their name below the current prefix. */
void oos_put(oos_arch *a, oos_module module, oos_matrix matrix);

/* Linear layers: rows divided, or input divided. `shards`: matrices fused into this one. */
void oos_put_column(oos_arch *a, oos_module module, const char *name, uint64_t out, uint64_t in, bool bias,
                    uint8_t shards);
void oos_put_row(oos_arch *a, oos_module module, const char *name, uint64_t out, uint64_t in, bool bias);

/* Parameters that are never quantised: a copy on every rank, or divided. */
void oos_put_plain(oos_arch *a, oos_module module, const char *name, uint64_t out, uint64_t in,
                   oos_dtype dtype);
void oos_put_divided(oos_arch *a, oos_module module, const char *name, uint64_t out, uint64_t in,
                     oos_dtype dtype);
void oos_put_norm(oos_arch *a, const char *name, uint64_t size);

/* Fused queries, keys and values of an attention; `query_factor` 2: an output gate rides along with the queries. */
void oos_put_qkv(oos_arch *a, const char *name, const oos_attention *t, uint64_t query_factor, bool bias);
void oos_put_experts(oos_arch *a, const char *name, uint64_t experts, uint64_t hidden, uint64_t inner,
                     bool gated, bool bias);

/* The scales and zero points that quantisation methods attach to an attention layer's cache. */
void oos_put_kv_scales(oos_arch *a);

/* Embedding on the first stage; final norm (of `norm_vectors`: 2 with a bias) and head on the last; nothing for the head when it is
 * tied. */
void oos_put_ends(oos_arch *a, uint64_t norm_vectors, uint64_t head_rows);
/* A drafter of num_nextn_predict_layers layers. */
void oos_put_nextn(oos_arch *a, void (*layer)(oos_arch *a, uint64_t i));

/* Matrices outside layers: everything added between the two calls is the range. */
void oos_range_open(oos_arch *a, const char *prefix);
void oos_range_close(oos_arch *a, uint32_t range[2]);

/* What the config of a tower leaves out. */
void oos_vision_fill(oos_vision *vision, const oos_vision *defaults);

void oos_rope_none(oos_arch *a);
void oos_rope_gemma3(oos_arch *a);
void oos_rope_gemma4(oos_arch *a);
void oos_rope_mrope4(oos_arch *a);
void oos_rope_fp32(oos_arch *a);
void oos_rope_indexer(oos_arch *a);
void oos_rope_mimo_v2(oos_arch *a);

/* ---- families ---- */

typedef struct oos_record oos_record;

typedef struct oos_family {
    const char *architecture; /* the engine's class name */
    const oos_record *record; /* of data/models */
    const oos_record *tower;  /* vision and audio, NULL */
    void (*build)(oos_arch *a);
    void (*rope)(oos_arch *a);
    const char *prefix;        /* of the decoder, "model." when NULL */
    const oos_rename *renames; /* NULL: none */
    bool lora_embeddings;      /* its class names embedding_modules */
    oos_code code;
} oos_family;

/* NULL: no record names it, or (a->status) one that does is not understood. */
const oos_family *oos_family_find(oos_arch *a, const char *architecture);
/* ... as the record of these bytes describes it; `by_type`: the word is a model_type. */
const oos_family *oos_family_of(oos_arch *a, oos_view bytes, const char *file, const char *word,
                                bool by_type);
/* The decoder inside a wrapper, by the class or the model_type of the text part; NULL: not known either. */
const oos_family *oos_family_inside(oos_arch *a);
/* What common.json says of the model_type, for a class that no record names. */
void oos_code_by_type(oos_arch *a);
/* A tower by the fields that most configs share. */
const oos_record *oos_tower_common(oos_arch *a);
void oos_tower_record(oos_arch *a, const oos_record *record);

void oos_build_unknown(oos_arch *a); /* common fields, experts too */
void oos_build_inside(oos_arch *a);  /* the decoder that the wrapper's text part names */
void oos_rope_inside(oos_arch *a);

/* A record of data/models: one model family or one tower, in words of a closed vocabulary (docs/reference/formats/models.md). Records come
 * from strangers as configs do: what is not understood is an error that names the file and the key. */

struct oos_record {
    const char *file; /* "models/llama.json", for errors */
    const json_t *body;
};

/* A name that sizes may use, and where it is in the model. */
typedef struct oos_quantity {
    const char *name;
    size_t offset; /* of a uint64_t in oos_model */
} oos_quantity;

enum { OOS_LETS_MAX = 32, OOS_MATRICES_MAX = 64 };

/* Where names are looked up while a record is read. */
typedef struct oos_scope {
    oos_arch *arch;
    const oos_record *record;
    const oos_quantity *quantities;
    struct {
        const char *name;
        uint64_t value;
    } lets[OOS_LETS_MAX];
    size_t let_count;
    bool understood; /* a layer was read: what does not decide is passed over in those behind it */
    const json_t *attention, *mixer, *mlp, *experts; /* sections of a decoder, looked up once */
} oos_scope;

void oos_record_fail(const oos_scope *scope, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Values of `object`; a key that is not there is its fallback, one that is not understood a failure of the model. */
uint64_t oos_record_size(const oos_scope *scope, const json_t *object, const char *key, uint64_t fallback);
bool oos_record_yes(const oos_scope *scope, const json_t *object, const char *key, bool fallback);
uint64_t oos_record_size_of(const oos_scope *scope, const char *key, const json_t *value);
bool oos_record_yes_of(const oos_scope *scope, const char *key, const json_t *value);
const char *oos_record_word(const oos_scope *scope, const json_t *object, const char *key,
                            const char *fallback);
/* The place in the config that the key names, "text.mlp_only_layers"; NULL: nothing is there. */
const json_t *oos_record_field(const oos_scope *scope, const json_t *object, const char *key);
/* One of several words, given by its number. */
size_t oos_record_choice(const oos_scope *scope, const json_t *object, const char *key,
                         const char *const *words, size_t fallback);
/* Every key of the object is one of `keys`, which end with NULL. NULL object is fine. */
void oos_record_keys(const oos_scope *scope, const json_t *object, const char *where,
                     const char *const *keys);
void oos_record_let(oos_scope *scope, const char *name, uint64_t value);
void oos_record_lets(oos_scope *scope, const char *key); /* the record's own names, in their order */

/* One matrix, or a list of them; `stage` NULL: all, else those of that stage. */
void oos_record_matrix(const oos_scope *scope, const json_t *matrix, const oos_matrix *usual,
                       oos_module module);
void oos_record_matrices(const oos_scope *scope, const json_t *object, const char *key, oos_module module,
                         const char *stage);

/* "llama" is models/llama.json, with what it is like below it. */
oomsight_status oos_record_open(oos_arena *arena, const char *data_dir, const char *name,
                                oos_record *ret_record, oomsight_error *reterr);

/* The bytes of one file; then the record it makes, over what it is like and below what a class says otherwise. */
oomsight_status oos_record_parse(oos_arena *arena, oos_view bytes, const char *file, json_t **ret_body,
                                 oomsight_error *reterr);
oomsight_status oos_record_finish(oos_arena *arena, const char *data_dir, const char *file, json_t *body,
                                  json_t *over, oos_record *ret_record, oomsight_error *reterr);

void oos_record_code(const oos_scope *scope, oos_code *code); /* what it says, over what was there */
void oos_build_record(oos_arch *a);                           /* a decoder that its record describes */

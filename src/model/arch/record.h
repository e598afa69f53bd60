/* A record of data/models: one model family or one tower, in words of a closed vocabulary (docs/reference/formats/models.md). Records come
 * from strangers as configs do: what is not understood is an error that names the file and the key. */
#ifndef OOS_MODEL_RECORD_H
#define OOS_MODEL_RECORD_H

#include "model/arch/arch.h"

#include <stddef.h>

struct oos_record {
    const char *file; /* "models/llama.json", for errors */
    const json_t *body;
};

/* A name that sizes may use, and where it is in the model. */
typedef struct oos_quantity {
    const char *name;
    size_t offset; /* of a uint64_t in oos_model */
} oos_quantity;

enum { OOS_LETS_MAX = 24, OOS_MATRICES_MAX = 64 };

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
} oos_scope;

void oos_record_fail(const oos_scope *scope, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Values of `object`; a key that is not there is its fallback, one that is not understood a failure of the model. */
uint64_t oos_record_size(const oos_scope *scope, const json_t *object, const char *key, uint64_t fallback);
bool oos_record_yes(const oos_scope *scope, const json_t *object, const char *key, bool fallback);
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
void oos_record_lets(oos_scope *scope); /* the record's own names, in their order */

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

#endif

/* Headers of safetensors files: names, dtypes, shapes. The weights behind them are never touched. */
#ifndef OOS_INPUT_SAFETENSORS_H
#define OOS_INPUT_SAFETENSORS_H

#include "model/model.h"

typedef struct oos_tensor {
    const char *name;
    oos_dtype dtype;
    uint8_t rank;
    uint64_t shape[8];
    uint64_t bytes;
} oos_tensor;

typedef struct oos_tensor_table {
    const oos_tensor *list;
    size_t count;
    uint64_t total_bytes;
    uint64_t
        largest_file_bytes; /* largest single weight file, for loaders that stage whole files; 0: unknown */
    const char *note;       /* why there are no headers although there should be; NULL */
} oos_tensor_table;

/* `file` begins with the header; what follows it may be missing (ranged reads). */
oomsight_status oos_safetensors_read(oos_arena *arena, oos_view file, oos_tensor_table *ret_table,
                                     oomsight_error *reterr);

/* All weight files of a directory, by model.safetensors.index.json or by name. *ret_table->count is 0 when it has none,
 * or not all that the index names: half a model would be planned as a smaller one. */
oomsight_status oos_safetensors_open_dir(oos_arena *arena, const char *dir, oos_tensor_table *ret_table,
                                         oomsight_error *reterr);

/* Headers to the model they belong to; the note, if there is one, to its notes. `table` must live as long. */
oomsight_status oos_tensors_attach(oos_arena *arena, const oos_tensor_table *table, oos_model *model,
                                   oomsight_error *reterr);

/* Sums of a table by part of the model, into model->headers. Called by oos_tensors_attach(). */
void oos_headers_weigh(const oos_tensor_table *table, oos_model *model);

/* ---- for those who fetch the bytes themselves ------------------------------------------------------------------ */

/* The length that the first 8 bytes give; refused when no honest file has it. */
oomsight_status oos_safetensors_length(const char first[8], uint64_t *ret_header_bytes,
                                       oomsight_error *reterr);

/* A table that grows file by file. It belongs to the arena. */
typedef struct oos_tensor_builder oos_tensor_builder;
oos_tensor_builder *oos_tensor_builder_create(oos_arena *arena); /* NULL: out of memory */
/* `header` is the JSON behind the length; `file_bytes` 0: unknown. Failure leaves the table as it was. */
oomsight_status oos_tensor_builder_add(oos_tensor_builder *builder, oos_view header, uint64_t file_bytes,
                                       oomsight_error *reterr);
oos_tensor_table oos_tensor_builder_table(const oos_tensor_builder *builder);

/* The distinct files of an index, in the order they are first named. A name that leaves the directory is refused. */
oomsight_status oos_safetensors_index_read(oos_arena *arena, oos_view index, const char *const **ret_files,
                                           size_t *ret_count, oomsight_error *reterr);

#endif

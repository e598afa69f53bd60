/* Headers of safetensors files: names, dtypes, shapes. The weights behind them are never touched. */
#ifndef OOS_INPUT_SAFETENSORS_H
#define OOS_INPUT_SAFETENSORS_H

#include "input/model.h"

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
} oos_tensor_table;

/* `file` begins with the header; what follows it may be missing (ranged reads). */
oomsight_status oos_safetensors_read(oos_arena *arena, oos_view file, oos_tensor_table *ret_table,
                                     oomsight_error *reterr);

/* All weight files of a directory, by model.safetensors.index.json or by name. *ret_table->count is 0 when it has none. */
oomsight_status oos_safetensors_open_dir(oos_arena *arena, const char *dir, oos_tensor_table *ret_table,
                                         oomsight_error *reterr);

#endif

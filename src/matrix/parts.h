/* What the readers of matrix*.c share: one YAML document, walked to a fixed depth, and the labels met so far. */
#ifndef OOS_INPUT_MATRIX_PARTS_H
#define OOS_INPUT_MATRIX_PARTS_H

#include "matrix/matrix.h"
#include "command/yaml_load.h"
#include "base/table.h"

/* Labels in the order they were first seen. */
typedef struct oos_matrix_label {
    const char *text;
    const char *of; /* of a model: its name */
    uint32_t id;
    UT_hash_handle hh;
} oos_matrix_label;

typedef struct oos_matrix_reader {
    oos_arena *arena;
    yaml_document_t *document;
    const char *newest;
    oomsight_error *reterr;
    oos_matrix_label *models, *gpus, *versions, *sets;
    size_t entries; /* of all lists of all blocks: aliases could unfold to any number */
} oos_matrix_reader;

oomsight_status oos_matrix_wrong(oos_matrix_reader *in, const yaml_node_t *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An item of a list, or the thing itself when it is no list. */
size_t oos_matrix_item_count(const yaml_node_t *node);
const yaml_node_t *oos_matrix_item(const oos_matrix_reader *in, const yaml_node_t *node, size_t at);
const yaml_node_t *oos_matrix_get(const oos_matrix_reader *in, const yaml_node_t *map, const char *key);
oomsight_status oos_matrix_text(oos_matrix_reader *in, const yaml_node_t *node, const char *what,
                                const char **ret_text);
oomsight_status oos_matrix_room(oos_matrix_reader *in, const yaml_node_t *node, size_t count);
uint32_t oos_matrix_line(const yaml_node_t *node);
oomsight_status oos_matrix_label_id(oos_matrix_reader *in, oos_matrix_label **table, const char *text,
                                    uint32_t *ret_id);

/* matrix_flags.c: words as a shell takes them apart, the axes of `flags`, and what `exclude` names of a block. */
oomsight_status oos_matrix_split(oos_matrix_reader *in, const yaml_node_t *node, oos_matrix_words *ret_words);
oomsight_status oos_matrix_read_flags(oos_matrix_reader *in, const yaml_node_t *node,
                                      oos_matrix_block *block);
oomsight_status oos_matrix_read_excludes(oos_matrix_reader *in, const yaml_node_t *node,
                                         oos_matrix_block *block);

#endif

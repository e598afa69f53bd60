#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/table.h"
#include "command/command.h"

/* A matrix file (docs/reference/formats/matrix.md): models x GPUs x flags x engine versions, as YAML. Read into axes, never into points: a
 * point is made when it is asked for, by its number. Running them is api_matrix*.c's, printing them report/'s. */

enum { OOS_MATRIX_AXES = 16, OOS_MATRIX_BLOCKS = 4096 };
/* Points are numbers, so this bounds time, not memory. */
#define OOS_MATRIX_POINTS ((uint64_t)1000000000)

/* A list of words of a command. */
typedef struct oos_matrix_words {
    const char *const *list;
    size_t count;
} oos_matrix_words;

typedef struct oos_matrix_model {
    const char *label, *name; /* name: a directory or an id; labels are fit to be shown */
    uint32_t id;              /* place of the label in oos_matrix_file.model_labels */
    uint32_t line;
} oos_matrix_model;

typedef struct oos_matrix_gpu {
    const char *label;
    const char *gpu;                  /* "A30x4"; NULL: known by its size alone */
    const char *capability;           /* "9.0"; NULL: from data */
    uint64_t total_bytes, used_bytes; /* 0: from data, none */
    bool used_known;                  /* it was said, if only as 0 */
    uint32_t id, line;
} oos_matrix_gpu;

typedef struct oos_matrix_version {
    const char *text;
    uint32_t id, line;
} oos_matrix_version;

/* One of the ways an axis can go. */
typedef struct oos_matrix_choice {
    const char *label; /* of a set: its name or its words; of a flag: its value */
    oos_matrix_words words;
    const char *const *shown; /* the same words, fit to be shown */
    uint32_t id;              /* of a set: place of the label in oos_matrix_file.set_labels */
} oos_matrix_choice;

/* `flags` as a list is one axis of whole sets (flag NULL); as a map, an axis per flag, whose product is taken. */
typedef struct oos_matrix_axis {
    const char *flag;
    const oos_matrix_choice *choices;
    size_t count;
} oos_matrix_axis;

/* Which entries of each axis an exclusion names; NULL: all of them. */
typedef struct oos_matrix_exclude {
    const bool *models, *gpus, *versions, *axes[OOS_MATRIX_AXES];
} oos_matrix_exclude;

typedef struct oos_matrix_block {
    const oos_matrix_model *models;
    size_t model_count;
    const oos_matrix_gpu *gpus;
    size_t gpu_count;
    const oos_matrix_version *versions;
    size_t version_count;
    const oos_matrix_axis *axes;
    size_t axis_count;
    uint64_t flag_count; /* combinations of all axes, at least 1 */
    const oos_matrix_exclude *excludes;
    size_t exclude_count;
    oos_matrix_words always; /* words that every point of the block gets */
    uint64_t first, points;  /* numbers of its points */
    uint64_t first_set;      /* of a product: the place of its first combination among all sets */
} oos_matrix_block;

typedef struct oos_matrix_engine {
    const char *version, *path;
} oos_matrix_engine;

typedef struct oos_matrix_file {
    bool dryrun;
    const oos_matrix_block *blocks;
    size_t block_count;
    uint64_t points;
    const char *const *model_labels, *const *gpu_labels, *const *version_labels, *const *set_labels;
    size_t model_count, gpu_count, version_count;
    size_t set_label_count;
    uint64_t set_count; /* labelled sets, then the combinations of products */
    const oos_matrix_engine *engines;
    size_t engine_count;
    oos_matrix_words environment; /* NAME=value */
} oos_matrix_file;

/* `versions` (count 0: none) stands in for the versions of the file, `newest` where a file has none. */
oomsight_status oos_matrix_read(oos_arena *arena, oos_view bytes, const char *newest,
                                const char *const *versions, size_t version_count,
                                oos_matrix_file *ret_matrix, oomsight_error *reterr);

/* One point: places on the axes of its block. Version runs fastest, then flags, GPU, model. */
typedef struct oos_matrix_place {
    const oos_matrix_block *block;
    size_t model, gpu, version;
    uint64_t flags;                    /* combination */
    uint32_t choices[OOS_MATRIX_AXES]; /* taken apart */
} oos_matrix_place;

/* `number` < points. False: the point is excluded. */
bool oos_matrix_place_of(const oos_matrix_file *matrix, uint64_t number, oos_matrix_place *ret_place);

/* The words behind `vllm serve MODEL`. `ret_words` holds OOS_MATRIX_WORDS. */
enum { OOS_MATRIX_WORDS = 1024 };
size_t oos_matrix_flag_words(const oos_matrix_place *place, const char **ret_words);

/* "--max-num-seqs 64 --enforce-eager", the name of a set, "-" for no flags. Written into `ret_text` as far as it fits. */
void oos_matrix_flag_label(const oos_matrix_place *place, char *ret_text, size_t capacity);

/* The place of a point's flags among all sets of the file. */
uint64_t oos_matrix_set_of(const oos_matrix_place *place);

/* What the readers of matrix*.c share: one YAML document, walked to a fixed depth, and the labels met so far. */

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

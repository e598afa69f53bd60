/* The matrix file as a whole: blocks and their axes. What a file leaves out at a block is taken from its top. Anything
 * may be written in it, so that lists are counted before they are kept: an alias can stand for a list any number of times. */
#include "base/locale.h"
#include "base/shown.h"
#include "base/size.h"
#include "matrix/matrix.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    FILE_MAX = 512 << 10,
    BRACKETS_MAX = 8000, /* libyaml's time grows with the square: 8000 take 0.2 s */
    ENTRIES_MAX = 200000
};

uint32_t oos_matrix_line(const yaml_node_t *node)
{
    return node ? (uint32_t)node->start_mark.line + 1 : 0;
}

oomsight_status oos_matrix_wrong(oos_matrix_reader *in, const yaml_node_t *node, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    oos_vformat(text, sizeof text, format, args);
    va_end(args);
    oomsight_status const status = oos_fail(in->reterr, OOMSIGHT_MALFORMED, "%s", text);
    if (in->reterr) in->reterr->line = oos_matrix_line(node);
    return status;
}

size_t oos_matrix_item_count(const yaml_node_t *node)
{
    if (node->type != YAML_SEQUENCE_NODE) return 1;
    return (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
}

const yaml_node_t *oos_matrix_item(const oos_matrix_reader *in, const yaml_node_t *node, size_t at)
{
    if (node->type != YAML_SEQUENCE_NODE) return node;
    return yaml_document_get_node(in->document, node->data.sequence.items.start[at]);
}

const yaml_node_t *oos_matrix_get(const oos_matrix_reader *in, const yaml_node_t *map, const char *key)
{
    if (!map || map->type != YAML_MAPPING_NODE) return NULL;
    for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top;
         pair++) {
        const yaml_node_t *name = yaml_document_get_node(in->document, pair->key);
        if (name && name->type == YAML_SCALAR_NODE && strcmp((const char *)name->data.scalar.value, key) == 0)
            return yaml_document_get_node(in->document, pair->value);
    }
    return NULL;
}

oomsight_status oos_matrix_text(oos_matrix_reader *in, const yaml_node_t *node, const char *what,
                                const char **ret_text)
{
    if (!node || node->type != YAML_SCALAR_NODE)
        return oos_matrix_wrong(in, node, "%s must be a plain word or text", what);
    const char *text = (const char *)node->data.scalar.value;
    if (strlen(text) != node->data.scalar.length || node->data.scalar.length > 65536)
        return oos_matrix_wrong(in, node, "%s is too long or holds a zero byte", what);
    OOS_TRY(oos_matrix_room(in, node, node->data.scalar.length / 256));
    *ret_text = oos_arena_copy(in->arena, oos_view_of(text));
    return *ret_text ? OOMSIGHT_OK : oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
}

oomsight_status oos_matrix_room(oos_matrix_reader *in, const yaml_node_t *node, size_t count)
{
    in->entries += count;
    if (count <= ENTRIES_MAX && in->entries <= ENTRIES_MAX) return OOMSIGHT_OK;
    return oos_matrix_wrong(in, node, "more than %d entries in all lists", ENTRIES_MAX);
}

oomsight_status oos_matrix_label_id(oos_matrix_reader *in, oos_matrix_label **table, const char *text,
                                    uint32_t *ret_id)
{
    oos_matrix_label *label = NULL;
    HASH_FIND_STR(*table, text, label);
    if (!label) {
        label = OOS_NEW(in->arena, oos_matrix_label);
        if (!label) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
        label->text = oos_shown(in->arena, text);
        if (!label->text) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
        label->id = (uint32_t)HASH_COUNT(*table);
        HASH_ADD_KEYPTR(hh, *table, text, strlen(text), label);
        if (!OOS_IN_TABLE(label)) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    }
    *ret_id = label->id;
    return OOMSIGHT_OK;
}

/* A field of a mapping as text; NULL when it is not there. */
static oomsight_status field(oos_matrix_reader *in, const yaml_node_t *map, const char *key,
                             const char **ret_text)
{
    const yaml_node_t *node = oos_matrix_get(in, map, key);
    *ret_text = NULL;
    return node ? oos_matrix_text(in, node, key, ret_text) : OOMSIGHT_OK;
}

static oomsight_status known_keys(oos_matrix_reader *in, const yaml_node_t *map, const char *const *keys)
{
    for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top;
         pair++) {
        const yaml_node_t *key = yaml_document_get_node(in->document, pair->key);
        const char *name = NULL;
        OOS_TRY(oos_matrix_text(in, key, "a key", &name));
        const char *const *at = keys;
        while (*at && strcmp(*at, name) != 0) at++;
        if (!*at) return oos_matrix_wrong(in, key, "'%.60s' means nothing here", name);
    }
    return OOMSIGHT_OK;
}

static oomsight_status model_read(oos_matrix_reader *in, const yaml_node_t *node, oos_matrix_model *model)
{
    static const char *const keys[] = {"model", "name", NULL};
    model->line = oos_matrix_line(node);
    if (node->type == YAML_MAPPING_NODE) {
        OOS_TRY(known_keys(in, node, keys));
        OOS_TRY(field(in, node, "model", &model->name));
        OOS_TRY(field(in, node, "name", &model->label));
        if (!model->name) return oos_matrix_wrong(in, node, "an entry of models needs 'model'");
    } else {
        OOS_TRY(oos_matrix_text(in, node, "a model", &model->name));
    }
    if (!*model->name) return oos_matrix_wrong(in, node, "a model without a name");
    if (!model->label) { /* a directory is called by its last name, an id by all of it */
        const char *slash = strrchr(model->name, '/');
        bool const path = *model->name == '/' || *model->name == '.';
        model->label = path && slash && slash[1] ? slash + 1 : model->name;
        const oos_matrix_label *taken = NULL; /* by another folder of that name? */
        HASH_FIND_STR(in->models, model->label, taken);
        if (taken && taken->of && strcmp(taken->of, model->name) != 0) model->label = model->name;
    }
    OOS_TRY(oos_matrix_label_id(in, &in->models, model->label, &model->id));
    oos_matrix_label *mine = NULL;
    HASH_FIND_STR(in->models, model->label, mine);
    if (mine && !mine->of) mine->of = model->name;
    if (mine) model->label = mine->text;
    return OOMSIGHT_OK;
}

static oomsight_status size_field(oos_matrix_reader *in, const yaml_node_t *map, const char *key,
                                  uint64_t *ret_bytes)
{
    const char *word = NULL;
    OOS_TRY(field(in, map, key, &word));
    if (!word || oos_size_given(oos_view_of(word), ret_bytes)) return OOMSIGHT_OK;
    return oos_matrix_wrong(in, oos_matrix_get(in, map, key),
                            "'%.60s' is no size with its unit, such as 23.5GiB", word);
}

static oomsight_status gpu_read(oos_matrix_reader *in, const yaml_node_t *node, oos_matrix_gpu *gpu)
{
    static const char *const keys[] = {"gpu", "name", "total", "used", "cc", NULL};
    gpu->line = oos_matrix_line(node);
    if (node->type == YAML_MAPPING_NODE) {
        OOS_TRY(known_keys(in, node, keys));
        OOS_TRY(field(in, node, "gpu", &gpu->gpu));
        OOS_TRY(field(in, node, "name", &gpu->label));
        OOS_TRY(field(in, node, "cc", &gpu->capability));
        OOS_TRY(size_field(in, node, "total", &gpu->total_bytes));
        OOS_TRY(size_field(in, node, "used", &gpu->used_bytes));
        gpu->used_known = oos_matrix_get(in, node, "used") != NULL;
        if (!gpu->gpu && !gpu->total_bytes)
            return oos_matrix_wrong(in, node, "an entry of gpus needs 'gpu' or 'total'");
    } else {
        OOS_TRY(oos_matrix_text(in, node, "a GPU", &gpu->gpu));
    }
    if (!gpu->label) { /* entries that differ are called differently */
        const char *total = NULL, *used = NULL;
        OOS_TRY(field(in, node, "total", &total));
        OOS_TRY(field(in, node, "used", &used));
        gpu->label =
            oos_arena_format(in->arena, "%s%s%s%s%s", gpu->gpu ? gpu->gpu : "", gpu->gpu && total ? " " : "",
                             total ? total : "", used ? " less " : "", used ? used : "");
    }
    if (!gpu->label) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    OOS_TRY(oos_matrix_label_id(in, &in->gpus, gpu->label, &gpu->id));
    gpu->label = oos_shown(in->arena, gpu->label);
    return gpu->label ? OOMSIGHT_OK : oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
}

static oomsight_status version_keep(oos_matrix_reader *in, const char *text, oos_matrix_version *version)
{
    version->text = text;
    return oos_matrix_label_id(in, &in->versions, version->text, &version->id);
}

static oomsight_status versions_read(oos_matrix_reader *in, const yaml_node_t *node,
                                     const char *const *instead, size_t instead_count,
                                     oos_matrix_block *block)
{
    size_t const count = instead_count ? instead_count : node ? oos_matrix_item_count(node) : 1;
    OOS_TRY(oos_matrix_room(in, node, count));
    oos_matrix_version *list = OOS_NEW_ARRAY(in->arena, oos_matrix_version, count);
    if (!list) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    for (size_t i = 0; i < count; i++) {
        const char *text = instead_count ? instead[i] : in->newest;
        if (!instead_count && node) {
            const yaml_node_t *item = oos_matrix_item(in, node, i);
            OOS_TRY(oos_matrix_text(in, item, "a version", &text));
            list[i].line = oos_matrix_line(item);
        }
        OOS_TRY(version_keep(in, text, &list[i]));
    }
    block->versions = list;
    block->version_count = count;
    return OOMSIGHT_OK;
}

static oomsight_status models_and_gpus(oos_matrix_reader *in, const yaml_node_t *place,
                                       const yaml_node_t *models, const yaml_node_t *gpus,
                                       oos_matrix_block *block)
{
    if (!models || !gpus) return oos_matrix_wrong(in, place, "'%s' is missing", models ? "gpus" : "models");
    size_t const model_count = oos_matrix_item_count(models), gpu_count = oos_matrix_item_count(gpus);
    OOS_TRY(oos_matrix_room(in, models, model_count));
    OOS_TRY(oos_matrix_room(in, gpus, gpu_count));
    oos_matrix_model *model_list = OOS_NEW_ARRAY(in->arena, oos_matrix_model, model_count);
    oos_matrix_gpu *gpu_list = OOS_NEW_ARRAY(in->arena, oos_matrix_gpu, gpu_count);
    if (!model_list || !gpu_list) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    for (size_t i = 0; i < model_count; i++) {
        const yaml_node_t *item = oos_matrix_item(in, models, i);
        if (!item) return oos_matrix_wrong(in, models, "a list with nothing in it");
        OOS_TRY(model_read(in, item, &model_list[i]));
    }
    for (size_t i = 0; i < gpu_count; i++) {
        const yaml_node_t *item = oos_matrix_item(in, gpus, i);
        if (!item) return oos_matrix_wrong(in, gpus, "a list with nothing in it");
        OOS_TRY(gpu_read(in, item, &gpu_list[i]));
    }
    block->models = model_list;
    block->model_count = model_count;
    block->gpus = gpu_list;
    block->gpu_count = gpu_count;
    return OOMSIGHT_OK;
}

static oomsight_status block_read(oos_matrix_reader *in, const yaml_node_t *top, const yaml_node_t *node,
                                  const char *const *versions, size_t version_count, oos_matrix_block *block)
{
    static const char *const keys[] = {"models", "gpus", "flags", "versions", "exclude", "always", NULL};
    const yaml_node_t *found[6];
    if (node->type != YAML_MAPPING_NODE) return oos_matrix_wrong(in, node, "a block is a mapping");
    if (node != top) OOS_TRY(known_keys(in, node, keys));
    for (size_t i = 0; i < 6; i++) {
        found[i] = oos_matrix_get(in, node, keys[i]);
        if (!found[i]) found[i] = oos_matrix_get(in, top, keys[i]);
    }
    OOS_TRY(models_and_gpus(in, node, found[0], found[1], block));
    OOS_TRY(versions_read(in, found[3], versions, version_count, block));
    OOS_TRY(oos_matrix_read_flags(in, found[2], block));
    OOS_TRY(oos_matrix_split(in, found[5], &block->always));
    uint64_t points = block->flag_count;
    if (__builtin_mul_overflow(points, block->model_count, &points) ||
        __builtin_mul_overflow(points, block->gpu_count, &points) ||
        __builtin_mul_overflow(points, block->version_count, &points) || points > OOS_MATRIX_POINTS)
        return oos_matrix_wrong(in, node, "more than %llu points", (unsigned long long)OOS_MATRIX_POINTS);
    if (points == 0) return oos_matrix_wrong(in, node, "an axis is empty");
    block->points = points;
    return oos_matrix_read_excludes(in, found[4], block);
}

static oomsight_status pairs_read(oos_matrix_reader *in, const yaml_node_t *node, const char *what,
                                  const char *(*ret_pairs)[2], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
        OOS_TRY(oos_matrix_text(in, yaml_document_get_node(in->document, pair->key), what, &ret_pairs[i][0]));
        OOS_TRY(
            oos_matrix_text(in, yaml_document_get_node(in->document, pair->value), what, &ret_pairs[i][1]));
    }
    return OOMSIGHT_OK;
}

static oomsight_status map_read(oos_matrix_reader *in, const yaml_node_t *top, const char *key,
                                const char *(**ret_pairs)[2], size_t *ret_count)
{
    const yaml_node_t *node = oos_matrix_get(in, top, key);
    *ret_count = 0;
    *ret_pairs = NULL;
    if (!node) return OOMSIGHT_OK;
    if (node->type != YAML_MAPPING_NODE) return oos_matrix_wrong(in, node, "'%s' is a mapping", key);
    size_t const count = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
    OOS_TRY(oos_matrix_room(in, node, count));
    *ret_pairs = oos_arena_take_array(in->arena, count, sizeof **ret_pairs);
    if (!*ret_pairs) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    *ret_count = count;
    return pairs_read(in, node, key, *ret_pairs, count);
}

static oomsight_status rest_read(oos_matrix_reader *in, const yaml_node_t *top, oos_matrix_file *matrix)
{
    const char *mode = NULL;
    const char *(*pairs)[2] = NULL;
    size_t count = 0;
    OOS_TRY(field(in, top, "mode", &mode));
    if (mode && strcmp(mode, "plan") != 0 && strcmp(mode, "dryrun") != 0)
        return oos_matrix_wrong(in, oos_matrix_get(in, top, "mode"), "mode is plan or dryrun, not '%.40s'",
                                mode);
    matrix->dryrun = mode && strcmp(mode, "dryrun") == 0;

    OOS_TRY(map_read(in, top, "engines", &pairs, &count));
    oos_matrix_engine *engines = OOS_NEW_ARRAY(in->arena, oos_matrix_engine, count);
    if (!engines) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    for (size_t i = 0; i < count; i++) engines[i] = (oos_matrix_engine){pairs[i][0], pairs[i][1]};
    matrix->engines = engines;
    matrix->engine_count = count;

    OOS_TRY(map_read(in, top, "environment", &pairs, &count));
    const char **words = OOS_NEW_ARRAY(in->arena, const char *, count);
    if (!words) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    for (size_t i = 0; i < count; i++) {
        words[i] = oos_arena_format(in->arena, "%s=%s", pairs[i][0], pairs[i][1]);
        if (!words[i]) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    }
    matrix->environment = (oos_matrix_words){words, count};
    return OOMSIGHT_OK;
}

static const char *const *labels_of(oos_arena *arena, const oos_matrix_label *table, size_t *ret_count)
{
    size_t const count = HASH_COUNT(table);
    const char **list = OOS_NEW_ARRAY(arena, const char *, count);
    for (const oos_matrix_label *l = table; list && l; l = l->hh.next) list[l->id] = l->text;
    *ret_count = count;
    return list;
}

/* Numbers of points and of sets run through all blocks. */
static oomsight_status numbers_give(oos_matrix_reader *in, oos_matrix_block *blocks, oos_matrix_file *matrix)
{
    matrix->model_labels = labels_of(in->arena, in->models, &matrix->model_count);
    matrix->gpu_labels = labels_of(in->arena, in->gpus, &matrix->gpu_count);
    matrix->version_labels = labels_of(in->arena, in->versions, &matrix->version_count);
    matrix->set_labels = labels_of(in->arena, in->sets, &matrix->set_label_count);
    if (!matrix->model_labels || !matrix->gpu_labels || !matrix->version_labels || !matrix->set_labels)
        return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    matrix->set_count = matrix->set_label_count;
    for (size_t i = 0; i < matrix->block_count; i++) {
        blocks[i].first = matrix->points;
        matrix->points += blocks[i].points; /* at most 4096 x 10^9 */
        blocks[i].first_set = matrix->set_count;
        if (blocks[i].axes[0].flag) matrix->set_count += blocks[i].flag_count;
    }
    if (matrix->points > OOS_MATRIX_POINTS)
        return oos_matrix_wrong(in, NULL, "more than %llu points", (unsigned long long)OOS_MATRIX_POINTS);
    return OOMSIGHT_OK;
}

static oomsight_status document_read(oos_matrix_reader *in, const char *const *versions, size_t version_count,
                                     oos_matrix_file *matrix)
{
    static const char *const keys[] = {"models", "gpus", "flags",   "versions",    "exclude", "always",
                                       "blocks", "mode", "engines", "environment", NULL};
    const yaml_node_t *top = yaml_document_get_root_node(in->document);
    if (!top || top->type != YAML_MAPPING_NODE)
        return oos_matrix_wrong(in, top, "a matrix file is a mapping with 'models' and 'gpus'");
    OOS_TRY(known_keys(in, top, keys));
    OOS_TRY(rest_read(in, top, matrix));
    const yaml_node_t *list = oos_matrix_get(in, top, "blocks");
    size_t const count = list ? oos_matrix_item_count(list) : 1;
    if (count == 0 || count > OOS_MATRIX_BLOCKS)
        return oos_matrix_wrong(in, list, "between 1 and %d blocks", OOS_MATRIX_BLOCKS);
    OOS_TRY(oos_matrix_room(in, list, count));
    oos_matrix_block *blocks = OOS_NEW_ARRAY(in->arena, oos_matrix_block, count);
    if (!blocks) return oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for a matrix");
    for (size_t i = 0; i < count; i++) {
        const yaml_node_t *node = list ? oos_matrix_item(in, list, i) : top;
        if (!node) return oos_matrix_wrong(in, list, "a list with nothing in it");
        OOS_TRY(block_read(in, top, node, versions, version_count, &blocks[i]));
    }
    matrix->blocks = blocks;
    matrix->block_count = count;
    return numbers_give(in, blocks, matrix);
}

oomsight_status oos_matrix_read(oos_arena *arena, oos_view bytes, const char *newest,
                                const char *const *versions, size_t version_count,
                                oos_matrix_file *ret_matrix, oomsight_error *reterr)
{
    yaml_document_t document;
    OOS_TRY(oos_yaml_load(bytes, FILE_MAX, BRACKETS_MAX, "matrix", &document, reterr));
    oos_matrix_reader in = {.arena = arena, .document = &document, .newest = newest, .reterr = reterr};
    oos_matrix_file matrix = {0};
    oomsight_status const status = document_read(&in, versions, version_count, &matrix);
    HASH_CLEAR(hh, in.models);
    HASH_CLEAR(hh, in.gpus);
    HASH_CLEAR(hh, in.versions);
    HASH_CLEAR(hh, in.sets);
    yaml_document_delete(&document);
    if (status == OOMSIGHT_OK) *ret_matrix = matrix;
    return status;
}

/* A kustomization: the resources it names, with its patches and images over them. Kustomize merges mappings key by key and lists of
 * named things (containers, variables) by their name; other lists are replaced. A patch that is a list holds the steps of RFC 6902.
 * What is not understood here (selectors by label, steps that move or test) leaves the whole kustomization unread: a command that
 * has half of its patches is nobody's command. */
#include "command/found_yaml.h"
#include "base/ascii.h"
#include "base/file.h"

#include <stdlib.h>

enum {
    BYTES_MAX = 256 << 10,
    DOCUMENTS_MAX = 1024,
    BASES_MAX = 4, /* a base of a base */
    DEPTH_MAX = 24,
    NODES_MAX = 20000,
    PATH_TOKENS_MAX = 24,
    FILES_MAX = 256,
    STEPS_MAX = 200000 /* nodes looked at in all: by aliases a small file is a large tree */
};

typedef struct resource {
    yaml_document_t *document;
    oos_view text; /* of the document, for what selectors say */
    const char *path;
    const char *gpu;
    const char *machine; /* by a patch; NULL */
    bool changed;
} resource;

typedef struct layers {
    oos_finder *finder;
    resource *list;
    size_t count;
    unsigned files, steps;
    bool doubtful; /* something was named that was not found or not understood */
} layers;

typedef struct patch_target {
    const char *kind, *name;
} patch_target;

static void document_release(void *document)
{
    yaml_document_delete(document);
    free(document);
}

/* The next document of a text, the arena's to release; NULL: there is none, or it is broken. */
static yaml_document_t *document_next(layers *all, yaml_parser_t *parser)
{
    yaml_document_t *document = calloc(1, sizeof *document);
    if (!document) {
        all->finder->failed = true;
        return NULL;
    }
    if (!yaml_parser_load(parser, document)) {
        all->doubtful = true;
        free(document);
        return NULL;
    }
    if (!oos_arena_adopt(all->finder->arena, document_release, document)) {
        all->finder->failed = true;
        document_release(document);
        return NULL;
    }
    return yaml_document_get_root_node(document) ? document : NULL;
}

static bool parser_open(layers *all, yaml_parser_t *parser, oos_view text)
{
    if (text.len > BYTES_MAX || !oos_yaml_is_linear(text, NODES_MAX)) {
        all->doubtful = true;
        return false;
    }
    if (!yaml_parser_initialize(parser)) {
        all->finder->failed = true;
        return false;
    }
    yaml_parser_set_input_string(parser, (const unsigned char *)text.ptr, text.len);
    return true;
}

static yaml_document_t *document_first(layers *all, oos_view text)
{
    yaml_parser_t parser;
    if (!parser_open(all, &parser, text)) return NULL;
    yaml_document_t *document = document_next(all, &parser);
    yaml_parser_delete(&parser);
    return document;
}

static bool file_beside(layers *all, const char *folder, const char *name, const char **ret_path,
                        oos_view *ret_bytes)
{
    const char *path =
        name && all->files++ < FILES_MAX ? oos_arena_format(all->finder->arena, "%s%s", folder, name) : NULL;
    *ret_path = path;
    return path && !oos_file_is_dir(path) &&
           oos_file_read(all->finder->arena, path, BYTES_MAX, ret_bytes, NULL) == OOMSIGHT_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

/* A node of one document in another: its index there, 0: it could not be copied. Adding moves nodes, so that they are named by index. */
static int node_copy(yaml_document_t *to, yaml_document_t *from, const yaml_node_t *node, unsigned depth)
{
    if (!node || depth > DEPTH_MAX || to->nodes.top - to->nodes.start > NODES_MAX) return 0;
    if (node->type == YAML_SCALAR_NODE)
        return yaml_document_add_scalar(to, NULL, node->data.scalar.value, (int)node->data.scalar.length,
                                        node->data.scalar.style);
    if (node->type == YAML_SEQUENCE_NODE) {
        int const list = yaml_document_add_sequence(to, NULL, YAML_ANY_SEQUENCE_STYLE);
        for (yaml_node_item_t *item = node->data.sequence.items.start;
             list && item < node->data.sequence.items.top; item++) {
            int const copy = node_copy(to, from, yaml_document_get_node(from, *item), depth + 1);
            if (!copy || !yaml_document_append_sequence_item(to, list, copy)) return 0;
        }
        return list;
    }
    int const map = yaml_document_add_mapping(to, NULL, YAML_ANY_MAPPING_STYLE);
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         map && node->type == YAML_MAPPING_NODE && pair < node->data.mapping.pairs.top; pair++) {
        int const key = node_copy(to, from, yaml_document_get_node(from, pair->key), depth + 1),
                  value = node_copy(to, from, yaml_document_get_node(from, pair->value), depth + 1);
        if (!key || !value || !yaml_document_append_mapping_pair(to, map, key, value)) return 0;
    }
    return map;
}

static yaml_node_pair_t *pair_of(yaml_document_t *document, int map, const char *key)
{
    const yaml_node_t *node = yaml_document_get_node(document, map);
    if (!node || node->type != YAML_MAPPING_NODE) return NULL;
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
         pair++) {
        const yaml_node_t *name = yaml_document_get_node(document, pair->key);
        if (name && name->type == YAML_SCALAR_NODE && strcmp((const char *)name->data.scalar.value, key) == 0)
            return pair;
    }
    return NULL;
}

static void pair_remove(yaml_document_t *document, int map, yaml_node_pair_t *pair)
{
    yaml_node_t *node = yaml_document_get_node(document, map);
    for (; pair + 1 < node->data.mapping.pairs.top; pair++) *pair = pair[1];
    node->data.mapping.pairs.top--;
}

static bool pair_set(yaml_document_t *document, int map, const char *key, int value)
{
    yaml_node_pair_t *pair = pair_of(document, map, key);
    if (!value) return false;
    if (pair) {
        pair->value = value;
        return true;
    }
    int const name =
        yaml_document_add_scalar(document, NULL, (const yaml_char_t *)key, -1, YAML_ANY_SCALAR_STYLE);
    return name && yaml_document_append_mapping_pair(document, map, name, value);
}

static bool is_kind(yaml_document_t *document, int index, yaml_node_type_t type)
{
    const yaml_node_t *node = index ? yaml_document_get_node(document, index) : NULL;
    return node && node->type == type;
}

static bool is_null(const yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (node->data.scalar.length == 0 || strcmp((const char *)node->data.scalar.value, "null") == 0 ||
            strcmp((const char *)node->data.scalar.value, "~") == 0);
}

/* ---- patches --------------------------------------------------------------------------------------------------- */

static bool merge(layers *all, yaml_document_t *to, int map, yaml_document_t *from, const yaml_node_t *patch,
                  unsigned depth);

/* The entry of a list that has the name of a patch's entry; 0: none has. */
static int entry_named(const oos_tree *list_tree, int list, const char *name)
{
    const yaml_node_t *node = yaml_document_get_node(list_tree->document, list);
    for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
         item++) {
        const yaml_node_t *own =
            oos_tree_get(list_tree, yaml_document_get_node(list_tree->document, *item), "name");
        if (own && own->type == YAML_SCALAR_NODE && strcmp((const char *)own->data.scalar.value, name) == 0)
            return *item;
    }
    return 0;
}

/* A list of named things over another: false when the patch's has an entry without a name. */
static bool merge_list(layers *all, yaml_document_t *to, int list, yaml_document_t *from,
                       const yaml_node_t *patch, unsigned depth)
{
    oos_tree const into = {.document = to}, out = {.document = from};
    for (yaml_node_item_t *item = patch->data.sequence.items.start; item < patch->data.sequence.items.top;
         item++) {
        const yaml_node_t *entry = yaml_document_get_node(from, *item),
                          *name = oos_tree_get(&out, entry, "name");
        if (!name || name->type != YAML_SCALAR_NODE) return false;
        int const own = entry_named(&into, list, (const char *)name->data.scalar.value);
        if (own) {
            if (!merge(all, to, own, from, entry, depth + 1)) return false;
        } else {
            int const copy = node_copy(to, from, entry, depth + 1);
            if (!copy || !yaml_document_append_sequence_item(to, list, copy)) return false;
        }
    }
    return true;
}

static bool is_named_list(yaml_document_t *from, const yaml_node_t *patch)
{
    oos_tree const tree = {.document = from};
    return patch->type == YAML_SEQUENCE_NODE &&
           patch->data.sequence.items.start < patch->data.sequence.items.top &&
           oos_tree_get(&tree, yaml_document_get_node(from, *patch->data.sequence.items.start), "name");
}

static bool merge(layers *all, yaml_document_t *to, int map, yaml_document_t *from, const yaml_node_t *patch,
                  unsigned depth)
{
    if (depth > DEPTH_MAX || all->steps++ > STEPS_MAX || !is_kind(to, map, YAML_MAPPING_NODE) ||
        patch->type != YAML_MAPPING_NODE)
        return false;
    for (yaml_node_pair_t *pair = patch->data.mapping.pairs.start; pair < patch->data.mapping.pairs.top;
         pair++) {
        const yaml_node_t *key = yaml_document_get_node(from, pair->key),
                          *value = yaml_document_get_node(from, pair->value);
        if (!key || key->type != YAML_SCALAR_NODE || !value) return false;
        const char *name = (const char *)key->data.scalar.value;
        if (name[0] == '$') return false; /* $patch: replace and its like */
        yaml_node_pair_t *own = pair_of(to, map, name);
        if (is_null(value)) {
            if (own) pair_remove(to, map, own);
        } else if (own && value->type == YAML_MAPPING_NODE && is_kind(to, own->value, YAML_MAPPING_NODE)) {
            if (!merge(all, to, own->value, from, value, depth + 1)) return false;
        } else if (own && is_named_list(from, value) && is_kind(to, own->value, YAML_SEQUENCE_NODE)) {
            if (!merge_list(all, to, own->value, from, value, depth + 1)) return false;
        } else if (!pair_set(to, map, name, node_copy(to, from, value, depth + 1))) {
            return false;
        }
    }
    return true;
}

/* "/spec/a~1b/0" -> "spec", "a/b", "0" */
static size_t pointer_split(oos_arena *arena, const char *pointer, char **tokens)
{
    size_t count = 0;
    while (pointer && *pointer == '/' && count < PATH_TOKENS_MAX) {
        const char *end = strchr(++pointer, '/');
        char *token =
            oos_arena_copy(arena, (oos_view){pointer, end ? (size_t)(end - pointer) : strlen(pointer)});
        if (!token) return 0;
        char *put = token;
        for (const char *take = token; *take; take++) {
            bool const escaped = *take == '~' && (take[1] == '0' || take[1] == '1');
            *put++ = !escaped ? *take : *++take == '0' ? '~' : '/';
        }
        *put = '\0';
        tokens[count++] = token;
        pointer = end;
    }
    return pointer ? 0 : count;
}

/* Which entry of a list a token means; `at_end` is where "-" points. False: none. */
static bool entry_index_read(const char *token, size_t entries, size_t *ret)
{
    *ret = entries;
    if (strcmp(token, "-") == 0) return true;
    if (!*token || strspn(token, "0123456789") != strlen(token) || strlen(token) > 6) return false;
    *ret = (size_t)strtoul(token, NULL, 10);
    return *ret <= entries;
}

static size_t entries_of(yaml_document_t *document, int list)
{
    const yaml_node_t *node = yaml_document_get_node(document, list);
    return (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
}

/* The node one token further down; 0: there is none. */
static int node_below(yaml_document_t *document, int node, const char *token)
{
    size_t at;
    if (is_kind(document, node, YAML_SEQUENCE_NODE) &&
        entry_index_read(token, entries_of(document, node), &at) && at < entries_of(document, node))
        return yaml_document_get_node(document, node)->data.sequence.items.start[at];
    const yaml_node_pair_t *pair = pair_of(document, node, token);
    return pair ? pair->value : 0;
}

static bool list_add(yaml_document_t *document, int list, size_t at, int value)
{
    if (!value || !yaml_document_append_sequence_item(document, list, value)) return false;
    yaml_node_item_t *items = yaml_document_get_node(document, list)->data.sequence.items.start;
    for (size_t i = entries_of(document, list) - 1; i > at; i--) items[i] = items[i - 1];
    items[at] = value;
    return true;
}

static void list_remove(yaml_document_t *document, int list, size_t at)
{
    yaml_node_t *node = yaml_document_get_node(document, list);
    yaml_node_item_t *items = node->data.sequence.items.start;
    for (size_t i = at; i + 1 < entries_of(document, list); i++) items[i] = items[i + 1];
    node->data.sequence.items.top--;
}

/* `value` is an index in the resource's document, 0 for a step that removes. */
static bool step_end(yaml_document_t *document, int node, const char *op, const char *token, int value)
{
    bool const adds = strcmp(op, "add") == 0, removes = strcmp(op, "remove") == 0;
    if (is_kind(document, node, YAML_SEQUENCE_NODE)) {
        size_t at;
        if (!entry_index_read(token, entries_of(document, node), &at)) return false;
        if (adds) return list_add(document, node, at, value);
        if (at >= entries_of(document, node)) return false;
        if (removes)
            list_remove(document, node, at);
        else
            yaml_document_get_node(document, node)->data.sequence.items.start[at] = value;
        return removes || value;
    }
    if (!is_kind(document, node, YAML_MAPPING_NODE)) return false;
    yaml_node_pair_t *pair = pair_of(document, node, token);
    if (!adds && !pair) return false;
    if (removes) {
        pair_remove(document, node, pair);
        return true;
    }
    return pair_set(document, node, token, value);
}

/* One step of RFC 6902. */
static bool step_apply(oos_finder *finder, yaml_document_t *to, yaml_document_t *from,
                       const yaml_node_t *step)
{
    oos_tree const tree = {.finder = finder, .document = from};
    const char *op = oos_tree_text(&tree, oos_tree_get(&tree, step, "op"));
    char *tokens[PATH_TOKENS_MAX];
    size_t const count =
        pointer_split(finder->arena, oos_tree_text(&tree, oos_tree_get(&tree, step, "path")), tokens);
    if (!op || !count || (strcmp(op, "add") != 0 && strcmp(op, "replace") != 0 && strcmp(op, "remove") != 0))
        return false;
    int node = 1; /* the root */
    for (size_t i = 0; i + 1 < count && node; i++) node = node_below(to, node, tokens[i]);
    if (!node) return false;
    int const value =
        strcmp(op, "remove") == 0 ? 0 : node_copy(to, from, oos_tree_get(&tree, step, "value"), 0);
    return step_end(to, node, op, tokens[count - 1], value);
}

static bool matches(const char *wanted, const char *own)
{
    return !wanted || strcmp(wanted, ".*") == 0 || (own && strcmp(wanted, own) == 0);
}

static bool is_target(oos_finder *finder, const resource *one, patch_target target)
{
    oos_tree const tree = {.finder = finder, .document = one->document};
    const yaml_node_t *root = yaml_document_get_root_node(one->document);
    return matches(target.kind, oos_tree_text(&tree, oos_tree_get(&tree, root, "kind"))) &&
           matches(target.name,
                   oos_tree_text(&tree, oos_tree_get(&tree, oos_tree_get(&tree, root, "metadata"), "name")));
}

static void patch_apply(layers *all, oos_view text, const patch_target *named)
{
    yaml_document_t *patch = document_first(all, text);
    const yaml_node_t *root = patch ? yaml_document_get_root_node(patch) : NULL;
    if (!root || root->type == YAML_SCALAR_NODE) {
        all->doubtful = true;
        return;
    }
    oos_finder *finder = all->finder;
    oos_tree const tree = {.finder = finder, .document = patch};
    patch_target target = {0};
    if (named)
        target = *named;
    else if (root->type == YAML_MAPPING_NODE)
        target = (patch_target){
            oos_tree_text(&tree, oos_tree_get(&tree, root, "kind")),
            oos_tree_text(&tree, oos_tree_get(&tree, oos_tree_get(&tree, root, "metadata"), "name"))};
    bool sure;
    const char *gpu = oos_finder_gpu(finder->arena, text, &sure),
               *machine = oos_finder_machine(finder->arena, text);
    for (size_t i = 0; i < all->count; i++) {
        resource *one = &all->list[i];
        if (!is_target(finder, one, target)) continue;
        bool whole = true;
        if (root->type == YAML_MAPPING_NODE)
            whole = merge(all, one->document, 1, patch, root, 0);
        else
            for (yaml_node_item_t *item = root->data.sequence.items.start;
                 whole && item < root->data.sequence.items.top; item++)
                whole = step_apply(finder, one->document, patch, yaml_document_get_node(patch, *item));
        one->changed = true;
        if (gpu) one->gpu = gpu;
        if (machine) one->machine = machine;
        if (!whole) all->doubtful = true;
    }
}

/* An entry of `patches` and of its two older spellings: a text, the path of a file, or a mapping with either and a target. */
static void patch_read(layers *all, const oos_tree *tree, const yaml_node_t *entry, const char *folder)
{
    const yaml_node_t *node = oos_tree_get(tree, entry, "target");
    patch_target const target = {oos_tree_text(tree, oos_tree_get(tree, node, "kind")),
                                 oos_tree_text(tree, oos_tree_get(tree, node, "name"))};
    const char *plain = oos_tree_text(tree, entry),
               *text = oos_tree_text(tree, oos_tree_get(tree, entry, "patch")),
               *name = oos_tree_text(tree, oos_tree_get(tree, entry, "path")), *path;
    if (plain && strchr(plain, '\n')) text = plain;
    if (plain && !text) name = plain;
    oos_view bytes = oos_view_of(text ? text : "");
    if (oos_tree_get(tree, node, "labelSelector") || oos_tree_get(tree, node, "annotationSelector") ||
        (!text && !file_beside(all, folder, name, &path, &bytes))) {
        all->doubtful = true;
        return;
    }
    if (!text) oos_words_add(all->finder->arena, &all->finder->applied, path, 0);
    patch_apply(all, bytes, node ? &target : NULL);
}

/* ---- images ---------------------------------------------------------------------------------------------------- */

/* Every `image` below a node that has the name gets the new name and tag. */
static void image_set(layers *all, resource *one, int index, const oos_tree *tree, const yaml_node_t *entry,
                      unsigned depth)
{
    const yaml_node_t *node = yaml_document_get_node(one->document, index);
    if (!node || depth > DEPTH_MAX || all->steps++ > STEPS_MAX) return;
    if (node->type == YAML_SEQUENCE_NODE) {
        for (size_t i = 0; i < entries_of(one->document, index); i++)
            image_set(all, one, yaml_document_get_node(one->document, index)->data.sequence.items.start[i],
                      tree, entry, depth + 1);
        return; /* nodes have moved */
    }
    if (node->type != YAML_MAPPING_NODE) return;
    oos_tree const own = {.finder = all->finder, .document = one->document};
    const char *image = oos_tree_text(&own, oos_tree_get(&own, node, "image")),
               *name = oos_tree_text(tree, oos_tree_get(tree, entry, "name")),
               *new_name = oos_tree_text(tree, oos_tree_get(tree, entry, "newName")),
               *tag = oos_tree_text(tree, oos_tree_get(tree, entry, "newTag"));
    size_t const len = name ? strlen(name) : 0;
    size_t const pairs = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
    for (size_t i = 0; i < pairs; i++)
        image_set(all, one, yaml_document_get_node(one->document, index)->data.mapping.pairs.start[i].value,
                  tree, entry, depth + 1);
    if (!image || !len || strncmp(image, name, len) != 0 ||
        (image[len] && image[len] != ':' && image[len] != '@'))
        return;
    const char *whole = oos_arena_format(all->finder->arena, "%s%s%s", new_name ? new_name : name,
                                         tag ? ":" : "", tag ? tag : image + len);
    one->changed = true;
    if (!whole || !pair_set(one->document, index, "image",
                            yaml_document_add_scalar(one->document, NULL, (const yaml_char_t *)whole, -1,
                                                     YAML_ANY_SCALAR_STYLE)))
        all->finder->failed = true;
}

/* ---- the kustomization ----------------------------------------------------------------------------------------- */

static const char *folder_of(oos_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    return oos_arena_copy(arena, (oos_view){path, slash ? (size_t)(slash + 1 - path) : 0});
}

static uint32_t layer_read(layers *all, const char *path, oos_view bytes, unsigned depth);

static void resource_read(layers *all, const char *folder, const char *name, unsigned depth)
{
    static const char *const names[] = {"kustomization.yaml", "kustomization.yml", "Kustomization"};
    oos_arena *arena = all->finder->arena;
    const char *path;
    oos_view bytes;
    yaml_parser_t parser;
    if (file_beside(all, folder, name, &path, &bytes)) {
        if (!parser_open(all, &parser, bytes)) return;
        for (yaml_document_t *document;
             all->count < DOCUMENTS_MAX && (document = document_next(all, &parser));)
            all->list[all->count++] = (resource){
                .document = document,
                .path = path,
                .text = oos_lines_between(bytes, document->start_mark.line, document->end_mark.line)};
        yaml_parser_delete(&parser);
        if (all->count == DOCUMENTS_MAX) all->doubtful = true;
        return;
    }
    for (size_t i = 0;
         path && i < sizeof names / sizeof *names && depth < BASES_MAX && all->files++ < FILES_MAX; i++) {
        const char *inner = oos_arena_format(arena, "%s/%s", path, names[i]);
        if (inner && oos_file_read(arena, inner, BYTES_MAX, &bytes, NULL) == OOMSIGHT_OK) {
            (void)layer_read(all, inner, bytes, depth + 1);
            return;
        }
    }
    all->doubtful = true;
}

static const yaml_node_t *entry_at(const oos_tree *tree, const yaml_node_t *list, size_t at)
{
    if (!list || list->type != YAML_SEQUENCE_NODE ||
        at >= (size_t)(list->data.sequence.items.top - list->data.sequence.items.start))
        return NULL;
    return yaml_document_get_node(tree->document, list->data.sequence.items.start[at]);
}

/* The line of the first thing that changes resources, 0: none does. */
static uint32_t layer_read(layers *all, const char *path, oos_view bytes, unsigned depth)
{
    static const char *const bases[] = {"resources", "bases"}, *const patches[] = {"patches",
                                                                                   "patchesStrategicMerge",
                                                                                   "patchesJson6902"};
    yaml_document_t *document = document_first(all, bytes);
    const char *folder = folder_of(all->finder->arena, path);
    if (!document || !folder) return 0;
    oos_tree const tree = {.finder = all->finder, .document = document};
    const yaml_node_t *root = yaml_document_get_root_node(document), *entry;
    uint32_t line = 0;
    for (size_t k = 0; k < sizeof bases / sizeof *bases; k++)
        for (size_t i = 0; (entry = entry_at(&tree, oos_tree_get(&tree, root, bases[k]), i)); i++)
            resource_read(all, folder, oos_tree_text(&tree, entry), depth);
    for (size_t k = 0; k < sizeof patches / sizeof *patches; k++)
        for (size_t i = 0; (entry = entry_at(&tree, oos_tree_get(&tree, root, patches[k]), i)); i++) {
            if (!line) line = oos_tree_line(&tree, entry);
            patch_read(all, &tree, entry, folder);
        }
    for (size_t i = 0; (entry = entry_at(&tree, oos_tree_get(&tree, root, "images"), i)); i++) {
        if (!line) line = oos_tree_line(&tree, entry);
        for (size_t r = 0; r < all->count; r++) image_set(all, &all->list[r], 1, &tree, entry, 0);
    }
    return line;
}

/* Whether another document of its file was changed: then the file is not read as it lies there. */
static bool is_mixed(const layers *all, const resource *one)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].changed && strcmp(all->list[i].path, one->path) == 0) return true;
    return false;
}

void oos_finder_kustomization(oos_finder *finder, oos_view text)
{
    layers all = {.finder = finder, .list = OOS_NEW_ARRAY(finder->arena, resource, DOCUMENTS_MAX)};
    if (!all.list) {
        finder->failed = true;
        return;
    }
    uint32_t const line = finder->path ? layer_read(&all, finder->path, text, 0) : 0;
    size_t const before = finder->count;
    for (size_t i = 0; line && i < all.count; i++) {
        const resource *one = &all.list[i];
        size_t const first = finder->count;
        if (!one->changed && !is_mixed(&all, one)) continue;
        oos_finder_document(finder, one->document);
        bool sure = true;
        const char *gpu = one->gpu ? one->gpu : oos_finder_gpu(finder->arena, one->text, &sure),
                   *machine = one->machine ? one->machine : oos_finder_machine(finder->arena, one->text);
        for (size_t k = first; k < finder->count; k++) {
            finder->list[k].gpu_hint = gpu;
            finder->list[k].gpu_is_sure = sure;
            finder->list[k].machine = machine;
            finder->list[k].line = line;
        }
    }
    bool const found = finder->count > before, whole = !all.doubtful && all.steps <= STEPS_MAX;
    finder->by_document = found;
    finder->doubted = found && !whole ? line : 0;
    if (!whole) finder->count = before;
    if (!whole || !found) finder->applied.count = 0;
    for (size_t i = 0; i < all.count; i++)
        if (!all.list[i].changed && !is_mixed(&all, &all.list[i]))
            oos_words_add(finder->arena, &finder->named, all.list[i].path, 0);
    if (!found && all.doubtful)
        oos_finder_skip(finder, line ? line : 1, "what this kustomization names could not be read whole");
    if (found) return;
    finder->kind = "container"; /* a whole container may stand in a patch */
    oos_finder_yaml(finder, text);
}

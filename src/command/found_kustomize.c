/* A kustomization: the plain files that it takes are named, for check to read them as any other YAML. Patches, images, bases and whatever
 * else may change a container are Kustomize's to render: such a file is not looked at, and the command that renders it is told. */
#include "command/command.h"

/* Keys that leave the commands of what is named as they are. Any other changes them, or is not known here. */
static bool is_harmless(const char *key)
{
    static const char *const keys[] = {"apiVersion",
                                       "kind",
                                       "metadata",
                                       "namespace",
                                       "namePrefix",
                                       "nameSuffix",
                                       "labels",
                                       "commonLabels",
                                       "commonAnnotations",
                                       "replicas",
                                       "configMapGenerator",
                                       "secretGenerator",
                                       "generatorOptions",
                                       "buildMetadata",
                                       "sortOptions",
                                       "resources"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

static bool is_empty(const yaml_node_t *node)
{
    return !node || (node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0) ||
           (node->type == YAML_SEQUENCE_NODE &&
            node->data.sequence.items.start == node->data.sequence.items.top);
}

/* A manifest beside it; not the folder of another kustomization, and nothing to be fetched. */
static bool is_plain_file(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && !strstr(name, "://") &&
           (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0);
}

static void refuse(oos_tree *t, const yaml_node_t *node, const char *what)
{
    oos_finder *finder = t->finder;
    const char *slash = strrchr(finder->path, '/'), *folder = ".";
    if (slash)
        folder = oos_arena_copy(
            finder->arena,
            (oos_view){finder->path, slash > finder->path ? (size_t)(slash - finder->path) : 1});
    oos_text quoted = {0};
    if (folder) oos_serve_quote(&quoted, folder);
    if (!quoted.ptr || quoted.failed)
        finder->failed = true;
    else
        oos_finder_skip(finder, oos_tree_line(t, node),
                        "a kustomization with '%.60s' was not looked at: give what it is rendered to "
                        "(kubectl kustomize %s | oomsight check -)",
                        what, quoted.ptr);
    oos_text_free(&quoted);
}

/* False: it is told that the kustomization was not looked at. */
static bool resource_add(oos_tree *t, const yaml_node_t *node)
{
    oos_finder *finder = t->finder;
    const char *name = oos_tree_text(t, node);
    if (!name || !is_plain_file(name) ||
        !oos_finder_take_in(finder, oos_tree_line(t, node), name, &finder->named)) {
        refuse(t, node, name && !is_plain_file(name) ? name : "resources");
        return false;
    }
    return !finder->failed;
}

static bool resources_add(oos_tree *t, const yaml_node_t *list)
{
    if (list->type != YAML_SEQUENCE_NODE) {
        refuse(t, list, "resources");
        return false;
    }
    for (yaml_node_item_t *item = list->data.sequence.items.start; item < list->data.sequence.items.top;
         item++) {
        const yaml_node_t *entry = yaml_document_get_node(t->document, *item);
        if (!entry || !resource_add(t, entry)) return false;
    }
    return true;
}

static bool entry_read(oos_tree *t, const yaml_node_t *name, const yaml_node_t *value)
{
    if (is_empty(value)) return true;
    const char *key = name ? oos_tree_text(t, name) : NULL;
    if (!key || !is_harmless(key)) {
        refuse(t, value, key ? key : "?");
        return false;
    }
    return strcmp(key, "resources") != 0 || resources_add(t, value);
}

void oos_finder_kustomized(oos_tree *t, const yaml_node_t *root)
{
    if (root->type != YAML_MAPPING_NODE) return;
    for (yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top; pair++)
        if (!entry_read(t, yaml_document_get_node(t->document, pair->key),
                        yaml_document_get_node(t->document, pair->value))) {
            t->finder->named.count = 0; /* what is deployed is not what lies there */
            return;
        }
}

void oos_finder_kustomization(oos_finder *finder, oos_view text)
{
    finder->kustomized = true;
    oos_finder_yaml(finder, text);
    finder->kustomized = false;
}

/* A YAML document on the way to commands. Used by found_yaml.c, found_values.c and found_kustomize.c. */
#ifndef OOS_COMMAND_FOUND_YAML_H
#define OOS_COMMAND_FOUND_YAML_H

#include "command/found_parts.h"
#include "command/yaml_load.h"

typedef struct oos_tree {
    oos_finder *finder;
    yaml_document_t *document;
    unsigned visited;
    bool too_deep;
    uint64_t nodes; /* of the group that a LeaderWorkerSet starts as one; 0: one */
} oos_tree;

yaml_node_t *oos_tree_get(const oos_tree *t, const yaml_node_t *map, const char *key); /* NULL: no such key */
const char *oos_tree_text(const oos_tree *t, const yaml_node_t *node);                 /* NULL: no scalar */
uint32_t oos_tree_line(const oos_tree *t, const yaml_node_t *node);
uint64_t oos_tree_number(const char *word); /* 0: none */
bool oos_tree_is_true(const char *word);

/* A list of words, or text that a shell would take apart. */
void oos_tree_words(oos_tree *t, const yaml_node_t *node, oos_word_list *words);

/* {A: b}, [A=b], [{name: A, value: b}] */
void oos_tree_environment(oos_tree *t, const yaml_node_t *node, oos_word_list *environment);

/* How many GPUs a container may use. 0: not said. */
uint64_t oos_tree_gpus(const oos_tree *t, const yaml_node_t *container);

/* The root of a kustomization. */
void oos_finder_kustomized(oos_tree *t, const yaml_node_t *root);

/* A mapping that is a model in the words of a tool: Ray Serve, llm-d, KServe, SkyPilot, values of a chart, the file of --config. */
void oos_finder_values(oos_tree *t, const yaml_node_t *node, bool is_root);

#endif

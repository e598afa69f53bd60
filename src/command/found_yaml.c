/* Containers in YAML: compose services, pods of any Kubernetes object, and models in the values of vLLM's production-stack chart.
 * A container is a mapping with an image and a command, wherever it stands. Templates are no YAML and hold none. */
#include "command/found_parts.h"
#include "base/ascii.h"
#include "command/yaml_load.h"

#include <stdlib.h>

/* libyaml's time grows with the square of both, see yaml.c. */
enum {
    YAML_MAX_BYTES = 256 << 10,
    BRACKETS_MAX = 1000,
    DEPTH_MAX = 48,
    NODES_MAX = 20000,
    DOCUMENTS_MAX = 64
};

typedef struct tree {
    oos_finder *finder;
    yaml_document_t *document;
    unsigned visited;
} tree;

static yaml_node_t *get(const tree *t, const yaml_node_t *map, const char *key)
{
    if (!map || map->type != YAML_MAPPING_NODE) return NULL;
    for (yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++) {
        yaml_node_t *name = yaml_document_get_node(t->document, pair->key);
        if (name && name->type == YAML_SCALAR_NODE && strcmp((const char *)name->data.scalar.value, key) == 0)
            return yaml_document_get_node(t->document, pair->value);
    }
    return NULL;
}

static const char *text_of(const tree *t, const yaml_node_t *node)
{
    if (!node || node->type != YAML_SCALAR_NODE) return NULL;
    const char *copy = oos_arena_copy(t->finder->arena, oos_view_of((const char *)node->data.scalar.value));
    if (!copy) t->finder->failed = true;
    return copy;
}

static uint32_t line_of(const yaml_node_t *node)
{
    return (uint32_t)node->start_mark.line + 1;
}

static bool is_true(const char *word)
{
    return word && (oos_same(word, "true") || oos_same(word, "yes") || oos_same(word, "on"));
}

static uint64_t number_of(const char *word)
{
    return word && oos_is_digit(*word) ? strtoull(word, NULL, 10) : 0;
}

/* A list of words, or text that a shell would take apart. */
static void put_words(tree *t, const yaml_node_t *node, oos_words *words)
{
    if (!node) return;
    if (node->type == YAML_SCALAR_NODE) {
        const char *text = text_of(t, node);
        if (text) oos_finder_split(t->finder, oos_view_of(text), line_of(node), words);
        return;
    }
    if (node->type != YAML_SEQUENCE_NODE) return;
    for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
         item++) {
        const yaml_node_t *word = yaml_document_get_node(t->document, *item);
        const char *text = text_of(t, word);
        if (text) oos_words_add(t->finder->arena, words, text, line_of(word));
    }
}

static void put_variable(tree *t, oos_words *environment, const char *name, const char *value, uint32_t line)
{
    if (!name || !value) return;
    const char *assignment = oos_arena_format(t->finder->arena, "%s=%s", name, value);
    if (!assignment) return;
    oos_words_add(t->finder->arena, environment, assignment, line);
    oos_finder_set_assignment(t->finder, assignment);
}

/* {A: b}, [A=b], [{name: A, value: b}] */
static void put_environment(tree *t, const yaml_node_t *node, oos_words *environment)
{
    if (node && node->type == YAML_MAPPING_NODE)
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
             pair++) {
            const yaml_node_t *key = yaml_document_get_node(t->document, pair->key);
            put_variable(t, environment, text_of(t, key),
                         text_of(t, yaml_document_get_node(t->document, pair->value)), line_of(node));
        }
    if (!node || node->type != YAML_SEQUENCE_NODE) return;
    for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
         item++) {
        const yaml_node_t *entry = yaml_document_get_node(t->document, *item);
        const char *text = text_of(t, entry), *equals = text ? strchr(text, '=') : NULL;
        if (equals) {
            oos_words_add(t->finder->arena, environment, text, line_of(entry));
            oos_finder_set_assignment(t->finder, text);
        } else {
            put_variable(t, environment, text_of(t, get(t, entry, "name")),
                         text_of(t, get(t, entry, "value")), entry ? line_of(entry) : 0);
        }
    }
}

static uint64_t gpus_of(const tree *t, const yaml_node_t *container)
{
    const yaml_node_t *resources = get(t, container, "resources");
    uint64_t const limit = number_of(text_of(t, get(t, get(t, resources, "limits"), "nvidia.com/gpu")));
    if (limit) return limit;
    const yaml_node_t *devices =
        get(t, get(t, get(t, get(t, container, "deploy"), "resources"), "reservations"), "devices");
    if (!devices || devices->type != YAML_SEQUENCE_NODE ||
        devices->data.sequence.items.start == devices->data.sequence.items.top)
        return 0;
    const yaml_node_t *first = yaml_document_get_node(t->document, *devices->data.sequence.items.start);
    return number_of(text_of(t, get(t, first, "count")));
}

/* A container: entrypoint and command in compose, command and args in Kubernetes. */
static void offer_container(tree *t, const yaml_node_t *node, const char *key)
{
    oos_words words = {0}, environment = {0};
    const yaml_node_t *entrypoint = get(t, node, "entrypoint"), *command = get(t, node, "command"),
                      *args = get(t, node, "args");
    if (!entrypoint && !command && !args) return;
    oos_finder *finder = t->finder;
    size_t const outer = finder->variable_count;
    finder->unknown = NULL;
    put_environment(t, get(t, node, "environment"), &environment);
    put_environment(t, get(t, node, "env"), &environment);
    const char *name = text_of(t, get(t, node, "name")), *image = text_of(t, get(t, node, "image"));
    oos_words image_words = {0}; /* an image may have variables too: repo/vllm-openai:${TAG:-v0.19.1} */
    if (image) oos_finder_split(finder, oos_view_of(image), 1, &image_words);
    finder->unknown = NULL;
    put_words(t, entrypoint, &words);
    put_words(t, command, &words);
    put_words(t, args, &words);
    oos_place const place = {.name = name ? name : key,
                             .image = image_words.count == 1 ? image_words.list[0] : image,
                             .arguments = true,
                             .environment = &environment,
                             .gpus = gpus_of(t, node)};
    oos_words expanded = {0}; /* Kubernetes puts $(NAME) into words of a list */
    bool const script = words.count >= 3 && strstr(words.list[0], "sh") && words.list[1][0] == '-' &&
                        strchr(words.list[1], 'c');
    if (script) {
        oos_finder_shell(finder, oos_view_of(words.list[2]), words.lines[2], 1, &place);
    } else {
        for (size_t i = 0; i < words.count; i++) {
            oos_words one = {0};
            if (strstr(words.list[i], "$("))
                oos_finder_split(finder, oos_view_of(words.list[i]), words.lines[i], &one);
            oos_words_add(finder->arena, &expanded, one.count == 1 ? one.list[0] : words.list[i],
                          words.lines[i]);
        }
        oos_finder_offer(finder, &expanded, &place);
    }
    finder->variable_count = outer;
}

/* One entry of servingEngineSpec.modelSpec: the chart's template makes flags of its keys. */
static void offer_model_spec(tree *t, const yaml_node_t *spec)
{
    static const struct {
        const char *key, *flag, *no_flag; /* no_flag: a switch, and what "false" means */
        bool off_if_absent;               /* the chart writes no_flag also where the key is missing */
    } keys[] = {{"maxModelLen", "--max-model-len", NULL, false},
                {"dtype", "--dtype", NULL, false},
                {"tensorParallelSize", "--tensor-parallel-size", NULL, false},
                {"maxNumSeqs", "--max-num-seqs", NULL, false},
                {"gpuMemoryUtilization", "--gpu-memory-utilization", NULL, false},
                {"maxLoras", "--max-loras", NULL, false},
                {"runner", "--runner", NULL, false},
                {"convert", "--convert", NULL, false},
                {"enableChunkedPrefill", "--enable-chunked-prefill", "--no-enable-chunked-prefill", false},
                {"enablePrefixCaching", "--enable-prefix-caching", "--no-enable-prefix-caching", true}};
    oos_arena *arena = t->finder->arena;
    const yaml_node_t *url = get(t, spec, "modelURL"), *config = get(t, spec, "vllmConfig");
    const char *model = text_of(t, url), *repository = text_of(t, get(t, spec, "repository")),
               *tag = text_of(t, get(t, spec, "tag"));
    if (!model) return;
    oos_words words = {0}, environment = {0};
    uint32_t const line = line_of(url);
    put_environment(t, get(t, spec, "env"), &environment);
    oos_words_add(arena, &words, "vllm", line);
    oos_words_add(arena, &words, "serve", line);
    oos_words_add(arena, &words, model, line);
    if (is_true(text_of(t, get(t, spec, "enableLoRA")))) oos_words_add(arena, &words, "--enable-lora", line);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const yaml_node_t *node = get(t, config, keys[i].key);
        const char *value = text_of(t, node);
        if (!value && !(config && keys[i].off_if_absent)) continue;
        if (keys[i].no_flag) {
            oos_words_add(arena, &words, value && is_true(value) ? keys[i].flag : keys[i].no_flag,
                          node ? line_of(node) : line);
        } else {
            oos_words_add(arena, &words, keys[i].flag, line_of(node));
            oos_words_add(arena, &words, value, line_of(node));
        }
    }
    const yaml_node_t *extra = get(t, config, "extraArgs");
    if (extra && extra->type == YAML_SEQUENCE_NODE) put_words(t, extra, &words);
    const yaml_node_t *revision = get(t, spec, "modelRevision");
    if (text_of(t, revision)) {
        oos_words_add(arena, &words, "--revision", line_of(revision));
        oos_words_add(arena, &words, text_of(t, revision), line_of(revision));
    }
    oos_place const place = {.name = text_of(t, get(t, spec, "name")),
                             .image =
                                 repository && tag ? oos_arena_format(arena, "%s:%s", repository, tag) : NULL,
                             .environment = &environment,
                             .gpus = number_of(text_of(t, get(t, spec, "requestGPU")))};
    const char *kind = t->finder->kind;
    t->finder->kind = "Helm values";
    t->finder->unknown = NULL;
    oos_finder_offer(t->finder, &words, &place);
    t->finder->kind = kind;
}

static void walk(tree *t, const yaml_node_t *node, const char *key, unsigned depth)
{
    if (!node || depth > DEPTH_MAX || t->visited++ > NODES_MAX || t->finder->failed) return;
    if (node->type == YAML_SEQUENCE_NODE) {
        for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
             item++) {
            const yaml_node_t *entry = yaml_document_get_node(t->document, *item);
            if (strcmp(key, "modelSpec") == 0 && get(t, entry, "modelURL")) offer_model_spec(t, entry);
            walk(t, entry, "", depth + 1);
        }
    } else if (node->type == YAML_MAPPING_NODE) {
        if (get(t, node, "image") || get(t, node, "build")) offer_container(t, node, *key ? key : NULL);
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
             pair++) {
            const char *name = text_of(t, yaml_document_get_node(t->document, pair->key));
            walk(t, yaml_document_get_node(t->document, pair->value), name ? name : "", depth + 1);
        }
    }
}

void oos_finder_yaml(oos_finder *finder, oos_view text)
{
    yaml_parser_t parser;
    bool const named = memmem(text.ptr ? text.ptr : "", text.len, "vllm", 4) != NULL;
    bool const is_template = memmem(text.ptr ? text.ptr : "", text.len, "{{", 2) != NULL;
    if (!oos_yaml_is_bounded(text, YAML_MAX_BYTES, BRACKETS_MAX) || (!named && is_template)) return;
    if (!yaml_parser_initialize(&parser)) {
        finder->failed = true;
        return;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.ptr, text.len);
    for (unsigned i = 0; i < DOCUMENTS_MAX; i++) {
        yaml_document_t document;
        if (!yaml_parser_load(&parser, &document)) {
            if (is_template) break;
            finder->broken = oos_arena_format(finder->arena, "broken YAML: %s",
                                              parser.problem ? parser.problem : "it cannot be read");
            finder->broken_line = (uint32_t)parser.problem_mark.line + 1;
            break;
        }
        const yaml_node_t *root = yaml_document_get_root_node(&document);
        tree t = {.finder = finder, .document = &document};
        if (root) walk(&t, root, "", 0);
        yaml_document_delete(&document);
        if (!root) break;
    }
    yaml_parser_delete(&parser);
}

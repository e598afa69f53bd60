/* Containers in YAML: compose services, pods of any Kubernetes object, and models in the values of vLLM's production-stack chart.
 * A container is a mapping with an image and a command, wherever it stands. Templates are no YAML and hold none. */
#include "command/found_yaml.h"
#include "base/ascii.h"
#include "base/size.h"

#include <stdlib.h>

/* libyaml's time grows with the square of both, see yaml.c. */
enum {
    YAML_MAX_BYTES = 256 << 10,
    BRACKETS_MAX = 1000,
    DEPTH_MAX = 48,
    NODES_MAX = 20000,
    DOCUMENTS_MAX = 64
};

yaml_node_t *oos_tree_get(const oos_tree *t, const yaml_node_t *map, const char *key)
{
    if (!map || map->type != YAML_MAPPING_NODE) return NULL;
    for (yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++) {
        yaml_node_t *name = yaml_document_get_node(t->document, pair->key);
        if (name && name->type == YAML_SCALAR_NODE && strcmp((const char *)name->data.scalar.value, key) == 0)
            return yaml_document_get_node(t->document, pair->value);
    }
    return NULL;
}

const char *oos_tree_text(const oos_tree *t, const yaml_node_t *node)
{
    if (!node || node->type != YAML_SCALAR_NODE) return NULL;
    const char *copy = oos_arena_copy(t->finder->arena, oos_view_of((const char *)node->data.scalar.value));
    if (!copy) t->finder->failed = true;
    return copy;
}

uint32_t oos_tree_line(const oos_tree *t, const yaml_node_t *node)
{
    return t->finder->first_line + (uint32_t)node->start_mark.line + 1;
}

bool oos_tree_is_true(const char *word)
{
    return word && (oos_same(word, "true") || oos_same(word, "yes") || oos_same(word, "on"));
}

uint64_t oos_tree_number(const char *word)
{
    return word && oos_is_digit(*word) ? strtoull(word, NULL, 10) : 0;
}

/* A list of words, or text that a shell would take apart. */
void oos_tree_words(oos_tree *t, const yaml_node_t *node, oos_words *words)
{
    if (!node) return;
    if (node->type == YAML_SCALAR_NODE) {
        const char *text = oos_tree_text(t, node);
        if (text) oos_finder_split(t->finder, oos_view_of(text), oos_tree_line(t, node), words);
        return;
    }
    if (node->type != YAML_SEQUENCE_NODE) return;
    for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
         item++) {
        const yaml_node_t *word = yaml_document_get_node(t->document, *item);
        const char *text = oos_tree_text(t, word);
        oos_words one = {0}; /* compose puts ${NAME:-default} into words of a list */
        if (text && strstr(text, "${"))
            oos_finder_split(t->finder, oos_view_of(text), oos_tree_line(t, word), &one);
        if (text)
            oos_words_add(t->finder->arena, words, one.count == 1 ? one.list[0] : text,
                          oos_tree_line(t, word));
    }
}

static void put_variable(oos_tree *t, oos_words *environment, const char *name, const char *value,
                         uint32_t line)
{
    if (!name || !value) return;
    const char *assignment = oos_arena_format(t->finder->arena, "%s=%s", name, value);
    if (!assignment) return;
    oos_words_add(t->finder->arena, environment, assignment, line);
    oos_finder_set_assignment(t->finder, assignment);
}

/* {A: b}, [A=b], [{name: A, value: b}] */
void oos_tree_environment(oos_tree *t, const yaml_node_t *node, oos_words *environment)
{
    if (node && node->type == YAML_MAPPING_NODE)
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
             pair++) {
            const yaml_node_t *key = yaml_document_get_node(t->document, pair->key);
            put_variable(t, environment, oos_tree_text(t, key),
                         oos_tree_text(t, yaml_document_get_node(t->document, pair->value)),
                         oos_tree_line(t, node));
        }
    if (!node || node->type != YAML_SEQUENCE_NODE) return;
    for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
         item++) {
        const yaml_node_t *entry = yaml_document_get_node(t->document, *item);
        const char *text = oos_tree_text(t, entry), *equals = text ? strchr(text, '=') : NULL;
        if (equals) {
            oos_words_add(t->finder->arena, environment, text, oos_tree_line(t, entry));
            oos_finder_set_assignment(t->finder, text);
        } else {
            put_variable(t, environment, oos_tree_text(t, oos_tree_get(t, entry, "name")),
                         oos_tree_text(t, oos_tree_get(t, entry, "value")),
                         entry ? oos_tree_line(t, entry) : 0);
        }
    }
}

uint64_t oos_tree_gpus(const oos_tree *t, const yaml_node_t *container)
{
    const yaml_node_t *resources = oos_tree_get(t, container, "resources");
    uint64_t const limit = oos_tree_number(
        oos_tree_text(t, oos_tree_get(t, oos_tree_get(t, resources, "limits"), "nvidia.com/gpu")));
    if (limit) return limit;
    const yaml_node_t *devices = oos_tree_get(
        t,
        oos_tree_get(t, oos_tree_get(t, oos_tree_get(t, container, "deploy"), "resources"), "reservations"),
        "devices");
    if (!devices || devices->type != YAML_SEQUENCE_NODE ||
        devices->data.sequence.items.start == devices->data.sequence.items.top)
        return 0;
    const yaml_node_t *first = yaml_document_get_node(t->document, *devices->data.sequence.items.start);
    return oos_tree_number(oos_tree_text(t, oos_tree_get(t, first, "count")));
}

/* A limit on nvidia.com/mig-1g.10gb: its profile; NULL: there is none. */
static const char *slice_of(const oos_tree *t, const yaml_node_t *container)
{
    static const char mark[] = "nvidia.com/mig-";
    const yaml_node_t *limits = oos_tree_get(t, oos_tree_get(t, container, "resources"), "limits");
    if (!limits || limits->type != YAML_MAPPING_NODE) return NULL;
    for (yaml_node_pair_t *pair = limits->data.mapping.pairs.start; pair < limits->data.mapping.pairs.top;
         pair++) {
        const char *key = oos_tree_text(t, yaml_document_get_node(t->document, pair->key));
        if (key && strncmp(key, mark, sizeof mark - 1) == 0) return key + sizeof mark - 1;
    }
    return NULL;
}

/* A container: entrypoint and command in compose, command and args in Kubernetes. */
static void offer_container(oos_tree *t, const yaml_node_t *node, const char *key)
{
    oos_words words = {0}, environment = {0};
    const yaml_node_t *entrypoint = oos_tree_get(t, node, "entrypoint"),
                      *command = oos_tree_get(t, node, "command"), *args = oos_tree_get(t, node, "args");
    if (!entrypoint && !command && !args) return;
    oos_finder *finder = t->finder;
    size_t const outer = finder->variable_count;
    finder->unknown = NULL;
    oos_tree_environment(t, oos_tree_get(t, node, "environment"), &environment);
    oos_tree_environment(t, oos_tree_get(t, node, "env"), &environment);
    const char *name = oos_tree_text(t, oos_tree_get(t, node, "name")),
               *image = oos_tree_text(t, oos_tree_get(t, node, "image"));
    oos_words image_words = {0}; /* an image may have variables too: repo/vllm-openai:${TAG:-v0.19.1} */
    if (image) oos_finder_split(finder, oos_view_of(image), 1, &image_words);
    finder->unknown = NULL;
    oos_tree_words(t, entrypoint, &words);
    oos_tree_words(t, command, &words);
    oos_tree_words(t, args, &words);
    oos_place const place = {.name = name ? name : key,
                             .image = image_words.count == 1 ? image_words.list[0] : image,
                             .arguments = true,
                             .environment = &environment,
                             .gpus = oos_tree_gpus(t, node) * oos_max(1, t->nodes),
                             .slice = slice_of(t, node)};
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
static void offer_model_spec(oos_tree *t, const yaml_node_t *spec)
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
    const yaml_node_t *url = oos_tree_get(t, spec, "modelURL"), *config = oos_tree_get(t, spec, "vllmConfig");
    const char *model = oos_tree_text(t, url),
               *repository = oos_tree_text(t, oos_tree_get(t, spec, "repository")),
               *tag = oos_tree_text(t, oos_tree_get(t, spec, "tag"));
    if (!model) return;
    oos_words words = {0}, environment = {0};
    uint32_t const line = oos_tree_line(t, url);
    oos_tree_environment(t, oos_tree_get(t, spec, "env"), &environment);
    oos_words_add(arena, &words, "vllm", line);
    oos_words_add(arena, &words, "serve", line);
    oos_words_add(arena, &words, model, line);
    if (oos_tree_is_true(oos_tree_text(t, oos_tree_get(t, spec, "enableLoRA"))))
        oos_words_add(arena, &words, "--enable-lora", line);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const yaml_node_t *node = oos_tree_get(t, config, keys[i].key);
        const char *value = oos_tree_text(t, node);
        if (!value && !(config && keys[i].off_if_absent)) continue;
        if (keys[i].no_flag) {
            oos_words_add(arena, &words, value && oos_tree_is_true(value) ? keys[i].flag : keys[i].no_flag,
                          node ? oos_tree_line(t, node) : line);
        } else {
            oos_words_add(arena, &words, keys[i].flag, oos_tree_line(t, node));
            oos_words_add(arena, &words, value, oos_tree_line(t, node));
        }
    }
    const yaml_node_t *extra = oos_tree_get(t, config, "extraArgs");
    if (extra && extra->type == YAML_SEQUENCE_NODE) oos_tree_words(t, extra, &words);
    const yaml_node_t *revision = oos_tree_get(t, spec, "modelRevision");
    if (oos_tree_text(t, revision)) {
        oos_words_add(arena, &words, "--revision", oos_tree_line(t, revision));
        oos_words_add(arena, &words, oos_tree_text(t, revision), oos_tree_line(t, revision));
    }
    oos_place const place = {.name = oos_tree_text(t, oos_tree_get(t, spec, "name")),
                             .image =
                                 repository && tag ? oos_arena_format(arena, "%s:%s", repository, tag) : NULL,
                             .environment = &environment,
                             .gpus = oos_tree_number(oos_tree_text(t, oos_tree_get(t, spec, "requestGPU")))};
    const char *kind = t->finder->kind;
    t->finder->kind = "Helm values";
    t->finder->unknown = NULL;
    oos_finder_offer(t->finder, &words, &place);
    t->finder->kind = kind;
}

/* YAML inside of YAML: serveConfigV2 of a RayService, values of an Argo CD application. */
static void embedded(oos_tree *t, const yaml_node_t *node, unsigned depth)
{
    static const char *const marks[] = {"llm_configs:", "modelSpec:", "image:", "modelArtifacts:"};
    const char *text = (const char *)node->data.scalar.value;
    bool ours = false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) ours |= strstr(text, marks[i]) != NULL;
    if (!ours || !strchr(text, '\n') || depth > DEPTH_MAX || t->finder->first_line) return;
    const char *copy = oos_tree_text(t, node), *broken = t->finder->broken;
    t->finder->first_line = (uint32_t)node->start_mark.line + 1;
    if (copy) oos_finder_yaml(t->finder, oos_view_of(copy));
    t->finder->first_line = 0;
    t->finder->broken = broken; /* a text that only looks like YAML is nobody's mistake */
}

static void walk(oos_tree *t, const yaml_node_t *node, const char *key, unsigned depth)
{
    if (!node || depth > DEPTH_MAX || t->visited++ > NODES_MAX || t->finder->failed) return;
    if (node->type == YAML_SEQUENCE_NODE) {
        for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
             item++) {
            const yaml_node_t *entry = yaml_document_get_node(t->document, *item);
            if (strcmp(key, "modelSpec") == 0 && oos_tree_get(t, entry, "modelURL"))
                offer_model_spec(t, entry);
            walk(t, entry, "", depth + 1);
        }
    } else if (node->type == YAML_SCALAR_NODE) {
        embedded(t, node, depth);
    } else if (node->type == YAML_MAPPING_NODE) {
        size_t const before = t->finder->count;
        const char *group =
            oos_tree_text(t, oos_tree_get(t, oos_tree_get(t, node, "leaderWorkerTemplate"), "size"));
        if (group) t->nodes = oos_min(oos_tree_number(group), 1024);
        oos_finder_values(t, node, depth == 0);
        if (t->finder->count > before) return; /* the containers in it belong to what was read */
        if (oos_tree_get(t, node, "image") || oos_tree_get(t, node, "build"))
            offer_container(t, node, *key ? key : NULL);
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
             pair++) {
            const char *name = oos_tree_text(t, yaml_document_get_node(t->document, pair->key));
            walk(t, yaml_document_get_node(t->document, pair->value), name ? name : "", depth + 1);
        }
    }
}

void oos_finder_document(oos_finder *finder, yaml_document_t *document)
{
    oos_tree t = {.finder = finder, .document = document};
    walk(&t, yaml_document_get_root_node(document), "", 0);
}

oos_view oos_lines_between(oos_view text, size_t from, size_t to)
{
    size_t line = 0, first = from ? text.len : 0, end = text.len;
    for (size_t at = 0; at < text.len; at++) {
        if (text.ptr[at] != '\n') continue;
        line++;
        if (line == from) first = at + 1;
        if (line == to + 1) {
            end = at;
            break;
        }
    }
    return first < end ? oos_view_slice(text, first, end - first) : (oos_view){text.ptr, 0};
}

/* A selector of one document says nothing of the next. */
static void document_hints(oos_finder *finder, oos_view text, size_t before)
{
    const char *gpu = oos_finder_gpu(finder->arena, text), *machine = oos_finder_machine(finder->arena, text);
    for (size_t i = before; i < finder->count; i++) {
        if (!finder->list[i].gpu_hint) finder->list[i].gpu_hint = gpu;
        if (!finder->list[i].machine) finder->list[i].machine = machine;
    }
    finder->by_document |= finder->count > before;
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
        size_t const before = finder->count;
        if (root) oos_finder_document(finder, &document);
        if (root)
            document_hints(finder, oos_lines_between(text, document.start_mark.line, document.end_mark.line),
                           before);
        yaml_document_delete(&document);
        if (!root) break;
    }
    yaml_parser_delete(&parser);
}

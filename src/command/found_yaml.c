/* Containers in YAML: compose services, pods of any Kubernetes object, and models in the values of vLLM's production-stack chart.
 * A container is a mapping with an image and a command, wherever it stands. Templates are no YAML and hold none. */
#include "command/command.h"
#include "base/ascii.h"
#include "base/locale.h"
#include "base/size.h"
#include "facts/facts.h"

#include <stdlib.h>

/* Of one document; a file may hold any number. */
enum { DOCUMENT_MAX_BYTES = 8 << 20, DEPTH_MAX = 48, NODES_MAX = 300000 };

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
    if (!oos_finder_spend(t->finder, oos_tree_line(t, node), node->data.scalar.length + 16)) return "";
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
void oos_tree_words(oos_tree *t, const yaml_node_t *node, oos_word_list *words)
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
        oos_word_list one = {0}; /* compose puts ${NAME:-default} into words of a list */
        if (text && strstr(text, "${"))
            oos_finder_split(t->finder, oos_view_of(text), oos_tree_line(t, word), &one);
        if (text)
            oos_words_add(t->finder->arena, words, one.count == 1 ? one.list[0] : text,
                          oos_tree_line(t, word));
    }
}

static void put_variable(oos_tree *t, oos_word_list *environment, const char *name, const char *value,
                         uint32_t line)
{
    if (!name || !value) return;
    const char *assignment = oos_arena_format(t->finder->arena, "%s=%s", name, value);
    if (!assignment) return;
    oos_words_add(t->finder->arena, environment, assignment, line);
    oos_finder_set_assignment(t->finder, assignment);
}

/* {A: b}, [A=b], [{name: A, value: b}] */
void oos_tree_environment(oos_tree *t, const yaml_node_t *node, oos_word_list *environment)
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

/* The devices that a compose service reserves, or `gpus` of it: the first entry of the list; NULL: none. */
static const yaml_node_t *reserved(const oos_tree *t, const yaml_node_t *container)
{
    const yaml_node_t *devices = oos_tree_get(
        t,
        oos_tree_get(t, oos_tree_get(t, oos_tree_get(t, container, "deploy"), "resources"), "reservations"),
        "devices");
    if (!devices) devices = oos_tree_get(t, container, "gpus");
    if (!devices || devices->type != YAML_SEQUENCE_NODE ||
        devices->data.sequence.items.start == devices->data.sequence.items.top)
        return NULL;
    return yaml_document_get_node(t->document, *devices->data.sequence.items.start);
}

/* device_ids of a compose service, joined: "0,1"; NULL: it does not say. */
static const char *device_ids(const oos_tree *t, const yaml_node_t *container)
{
    const yaml_node_t *ids = oos_tree_get(t, reserved(t, container), "device_ids");
    const char *joined = NULL;
    if (!ids || ids->type != YAML_SEQUENCE_NODE) return NULL;
    for (yaml_node_item_t *item = ids->data.sequence.items.start;
         item < ids->data.sequence.items.top && !t->finder->stopped; item++) {
        const char *id = oos_tree_text(t, yaml_document_get_node(t->document, *item));
        if (id && joined && !oos_finder_spend(t->finder, 0, strlen(joined))) return joined;
        if (id) joined = joined ? oos_arena_format(t->finder->arena, "%s,%s", joined, id) : id;
    }
    return joined;
}

/* "16Gi" and "16G" of Kubernetes; "16g" of compose, where every unit is binary. 0: no size. */
static uint64_t memory_size(const char *text, bool compose)
{
    static const char units[] = "kmgt";
    char *end = NULL;
    double value = text ? oos_real_read(text, &end) : 0;
    if (!text || end == text || !(value > 0)) return 0;
    const char *unit = *end ? strchr(units, oos_is_alpha(*end) ? *end | 0x20 : '?') : NULL;
    bool const binary = compose || (*end && (end[1] == 'i'));
    if (*end == 'm' && !compose) return 0; /* thousandths of a byte: nobody means it */
    for (long i = unit ? unit - units + 1 : 0; i > 0; i--) value *= binary ? 1024 : 1000;
    return value < 0x1p62 ? (uint64_t)value : 0;
}

/* The limit on a container's memory. 0: none. */
static uint64_t host_limit(const oos_tree *t, const yaml_node_t *node)
{
    const yaml_node_t *pod = oos_tree_get(t, oos_tree_get(t, oos_tree_get(t, node, "resources"), "limits"),
                                          "memory"),
                      *service = oos_tree_get(t, node, "mem_limit");
    if (!service)
        service = oos_tree_get(
            t, oos_tree_get(t, oos_tree_get(t, oos_tree_get(t, node, "deploy"), "resources"), "limits"),
            "memory");
    return pod ? memory_size(oos_tree_text(t, pod), false) : memory_size(oos_tree_text(t, service), true);
}

/* Resources by their names: nvidia.com/gpu, nvidia.com/mig-1g.10gb, and those of others. */
static void resources_read(const oos_tree *t, const yaml_node_t *list, oos_place *place)
{
    static const char mark[] = "nvidia.com/mig-";
    if (!list || list->type != YAML_MAPPING_NODE) return;
    for (yaml_node_pair_t *pair = list->data.mapping.pairs.start; pair < list->data.mapping.pairs.top;
         pair++) {
        const char *key = oos_tree_text(t, yaml_document_get_node(t->document, pair->key));
        uint64_t const count =
            oos_tree_number(oos_tree_text(t, yaml_document_get_node(t->document, pair->value)));
        if (!key || !count) continue;
        if (strcmp(key, "nvidia.com/gpu") == 0) place->gpus = count;
        if (strncmp(key, mark, sizeof mark - 1) == 0) place->slice = key + sizeof mark - 1;
        if (!place->other) place->other = oos_resource_other(key);
    }
}

void oos_tree_place(oos_tree *t, const yaml_node_t *container, oos_place *place)
{
    const yaml_node_t *resources = oos_tree_get(t, container, "resources"),
                      *devices = oos_tree_get(t, container, "devices");
    resources_read(t, oos_tree_get(t, resources, "requests"), place);
    resources_read(t, oos_tree_get(t, resources, "limits"), place);
    place->alone = place->gpus || place->slice;
    if (place->slice) place->gpus = 1; /* of several slices a process sees one */
    place->gpus *= oos_max(1, t->nodes);
    place->devices = device_ids(t, container);
    if (!place->gpus)
        place->gpus = oos_tree_number(oos_tree_text(t, oos_tree_get(t, reserved(t, container), "count")));
    for (yaml_node_item_t *item =
             devices && devices->type == YAML_SEQUENCE_NODE ? devices->data.sequence.items.start : NULL;
         item && item < devices->data.sequence.items.top; item++) {
        const char *path = oos_tree_text(t, yaml_document_get_node(t->document, *item));
        if (path && strncmp(path, "/dev/kfd", 8) == 0) place->other = oos_resource_other("amd.com/gpu");
    }
    for (size_t i = 0; !place->gpus && !place->devices && place->environment && i < place->environment->count;
         i++)
        if (strncmp(place->environment->list[i], "NVIDIA_VISIBLE_DEVICES=", 23) == 0)
            place->devices = place->environment->list[i] + 23;
    if (place->devices && strcmp(place->devices, "all") == 0) place->devices = NULL;
    if (!place->devices) return;
    place->gpus = 1;
    for (const char *id = place->devices; *id; id++) place->gpus += *id == ',';
}

/* A container: entrypoint and command in compose, command and args in Kubernetes. */
static void offer_container(oos_tree *t, const yaml_node_t *node, const char *key)
{
    oos_word_list words = {0}, environment = {0};
    const yaml_node_t *entrypoint = oos_tree_get(t, node, "entrypoint"),
                      *command = oos_tree_get(t, node, "command"), *args = oos_tree_get(t, node, "args");
    oos_finder *finder = t->finder;
    size_t const outer = finder->variable_count, before = finder->count + finder->skip_count;
    finder->unknown = NULL;
    oos_tree_environment(t, oos_tree_get(t, node, "environment"), &environment);
    oos_tree_environment(t, oos_tree_get(t, node, "env"), &environment);
    const char *name = oos_tree_text(t, oos_tree_get(t, node, "name")),
               *image = oos_tree_text(t, oos_tree_get(t, node, "image"));
    if (!name && key && *key) name = oos_arena_copy(finder->arena, oos_view_of(key));
    oos_word_list image_words = {0}; /* an image may have variables too: repo/vllm-openai:${TAG:-v0.19.1} */
    if (image) oos_finder_split(finder, oos_view_of(image), 1, &image_words);
    finder->unknown = NULL;
    oos_tree_words(t, entrypoint, &words);
    oos_tree_words(t, command, &words);
    oos_tree_words(t, args, &words);
    oos_place place = {.name = name,
                       .image = image_words.count == 1 ? image_words.list[0] : image,
                       .arguments = true,
                       .environment = &environment,
                       .host_limit_bytes = host_limit(t, node)};
    oos_tree_place(t, node, &place);
    place.shares = place.alone ? 0 : finder->shares;
    oos_word_list expanded = {0}; /* Kubernetes puts $(NAME) into words of a list */
    bool const script = words.count >= 3 && strstr(words.list[0], "sh") && words.list[1][0] == '-' &&
                        strchr(words.list[1], 'c');
    if (script) {
        oos_finder_shell(finder, oos_view_of(words.list[2]), words.lines[2], 1, &place);
    } else {
        for (size_t i = 0; i < words.count; i++) {
            oos_word_list one = {0};
            if (strstr(words.list[i], "$("))
                oos_finder_split(finder, oos_view_of(words.list[i]), words.lines[i], &one);
            oos_words_add(finder->arena, &expanded, one.count == 1 ? one.list[0] : words.list[i],
                          words.lines[i]);
        }
        if (expanded.count) oos_finder_offer(finder, &expanded, &place);
    }
    oos_finder_container(finder, &words, &place, oos_tree_line(t, node), before);
    finder->variable_count = outer;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

/* What selectors and required terms say of a node. Alternatives are joined by commas. */
typedef struct where {
    const char *gpus, *gpus_not, *machines, *other;
} where;

static void join(oos_tree *t, const char **list, const char *value)
{
    if (*list && !oos_finder_spend(t->finder, 0, strlen(*list))) return;
    *list = *list ? oos_arena_format(t->finder->arena, "%s,%s", *list, value) : value;
}

/* A device as the labels write it: "nvidia-l4" of GKE, "NVIDIA-A100-SXM4-80GB-SHARED" of a GPU in time slices. */
static const char *label_device(oos_tree *t, const char *value)
{
    static const char shared[] = "-SHARED";
    size_t const prefix = strncmp(value, "nvidia-", 7) == 0 ? 7 : 0, len = strlen(value);
    bool const is_shared = len >= sizeof shared && strcmp(value + len - (sizeof shared - 1), shared) == 0;
    return oos_arena_copy(t->finder->arena,
                          (oos_view){value + prefix, len - prefix - (is_shared ? sizeof shared - 1 : 0)});
}

static void where_take(oos_tree *t, const char *label, const char *value, bool without, where *w)
{
    static const char *const devices[] = {
        "nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator",
        "karpenter.k8s.aws/instance-gpu-name", "eks.amazonaws.com/instance-gpu-name"};
    static const char *const machines[] = {"node.kubernetes.io/instance-type",
                                           "beta.kubernetes.io/instance-type"};
    if (!w->other && !without) w->other = oos_resource_other(label);
    for (size_t i = 0; value && i < sizeof devices / sizeof *devices; i++)
        if (strcmp(label, devices[i]) == 0)
            join(t, without ? &w->gpus_not : &w->gpus, label_device(t, value));
    for (size_t i = 0; value && !without && i < sizeof machines / sizeof *machines; i++)
        if (strcmp(label, machines[i]) == 0) join(t, &w->machines, value);
}

static void where_take_all(oos_tree *t, const char *label, const yaml_node_t *values, bool without, where *w)
{
    if (!values || values->type != YAML_SEQUENCE_NODE) {
        where_take(t, label, oos_tree_text(t, values), without, w);
        return;
    }
    for (yaml_node_item_t *item = values->data.sequence.items.start; item < values->data.sequence.items.top;
         item++)
        where_take(t, label, oos_tree_text(t, yaml_document_get_node(t->document, *item)), without, w);
}

/* {LABEL: value}, {key: LABEL, operator: In, values: [...]}, and what has such in it. What is only preferred, and what is said of other pods, is left
 * alone. */
static void where_scan(oos_tree *t, const yaml_node_t *node, unsigned depth, where *w)
{
    if (!node || depth > DEPTH_MAX || t->visited++ > NODES_MAX) return;
    if (node->type == YAML_SEQUENCE_NODE)
        for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
             item++)
            where_scan(t, yaml_document_get_node(t->document, *item), depth + 1, w);
    if (node->type != YAML_MAPPING_NODE) return;
    const char *label = oos_tree_text(t, oos_tree_get(t, node, "key")),
               *operator= oos_tree_text(t, oos_tree_get(t, node, "operator"));
    bool const without = operator&& strcmp(operator, "NotIn") == 0;
    if (label && operator&&(without || strcmp(operator, "In") == 0 || strcmp(operator, "Exists") == 0)) {
        where_take_all(t, label, oos_tree_get(t, node, "values"), without, w);
        return;
    }
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
         pair++) {
        const yaml_node_t *value = yaml_document_get_node(t->document, pair->value);
        const char *key = oos_tree_text(t, yaml_document_get_node(t->document, pair->key));
        if (!key || strncmp(key, "preferred", 9) == 0 || strncmp(key, "pod", 3) == 0) continue;
        if (value && value->type == YAML_SCALAR_NODE)
            where_take(t, key, oos_tree_text(t, value), false, w);
        else
            where_scan(t, value, depth + 1, w);
    }
}

static void where_find(oos_tree *t, const yaml_node_t *node, bool deep, unsigned depth, where *w)
{
    static const char *const keys[] = {"nodeSelector", "affinity", "nodeAffinity", "nodeSelectorTerms"};
    if (!node || node->type != YAML_MAPPING_NODE || depth > DEPTH_MAX || t->visited++ > NODES_MAX) return;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        where_scan(t, oos_tree_get(t, node, keys[i]), 0, w);
    const yaml_node_t *types = oos_tree_get(t, node, "acceleratorTypes"),
                      *values = oos_tree_get(t, types, "labelValues");
    const char *label = oos_tree_text(t, oos_tree_get(t, types, "labelKey"));
    if (types) where_take_all(t, label ? label : "nvidia.com/gpu.product", values ? values : types, false, w);
    for (yaml_node_pair_t *pair = deep ? node->data.mapping.pairs.start : NULL;
         pair && pair < node->data.mapping.pairs.top; pair++)
        where_find(t, yaml_document_get_node(t->document, pair->value), deep, depth + 1, w);
}

void oos_tree_where(oos_tree *t, const yaml_node_t *node, size_t before, bool deep)
{
    oos_finder *finder = t->finder;
    where w = {0};
    if (finder->count == before) return;
    where_find(t, node, deep, 0, &w);
    t->placed |= w.gpus || w.gpus_not || w.machines;
    for (size_t i = before; i < finder->count; i++) {
        oos_found *found = &finder->list[i];
        if (!found->gpu_hint && w.gpus) found->gpu_hint = w.gpus, found->gpu_is_sure = true;
        if (!found->gpu_not) found->gpu_not = w.gpus_not;
        if (!found->machine) found->machine = w.machines;
        if (!found->other) found->other = w.other;
    }
}

/* One entry of servingEngineSpec.modelSpec: the chart's template makes flags of its keys. */
static void offer_model_spec(oos_tree *t, const yaml_node_t *spec)
{
    const oos_engine_words *engine = oos_engine_default;
    oos_arena *arena = t->finder->arena;
    const yaml_node_t *url = oos_tree_get(t, spec, "modelURL"), *config = oos_tree_get(t, spec, "vllmConfig");
    const char *model = oos_tree_text(t, url),
               *repository = oos_tree_text(t, oos_tree_get(t, spec, "repository")),
               *tag = oos_tree_text(t, oos_tree_get(t, spec, "tag"));
    if (!model) return;
    oos_word_list words = {0}, environment = {0};
    uint32_t const line = oos_tree_line(t, url);
    oos_tree_environment(t, oos_tree_get(t, spec, "env"), &environment);
    oos_words_add(arena, &words, engine->name, line);
    oos_words_add(arena, &words, "serve", line);
    oos_words_add(arena, &words, model, line);
    if (oos_tree_is_true(oos_tree_text(t, oos_tree_get(t, spec, "enableLoRA"))))
        oos_words_add(arena, &words, engine->lora_flag, line);
    for (const oomsight_chart_key *k = engine->chart; k->key; k++) {
        const yaml_node_t *node = oos_tree_get(t, config, k->key);
        const char *value = oos_tree_text(t, node);
        if (!value && !(config && k->off_if_absent)) continue;
        if (k->no_flag) {
            oos_words_add(arena, &words, value && oos_tree_is_true(value) ? k->flag : k->no_flag,
                          node ? oos_tree_line(t, node) : line);
        } else {
            oos_words_add(arena, &words, k->flag, oos_tree_line(t, node));
            oos_words_add(arena, &words, value, oos_tree_line(t, node));
        }
    }
    const yaml_node_t *extra = oos_tree_get(t, config, "extraArgs");
    if (extra && extra->type == YAML_SEQUENCE_NODE) oos_tree_words(t, extra, &words);
    const yaml_node_t *revision = oos_tree_get(t, spec, "modelRevision");
    if (oos_tree_text(t, revision)) {
        oos_words_add(arena, &words, engine->revision_flag, oos_tree_line(t, revision));
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
static bool embedded(oos_tree *t, const yaml_node_t *node)
{
    static const char *const marks[] = {"llm_configs:", "modelSpec:", "image:", "modelArtifacts:"};
    const char *text = (const char *)node->data.scalar.value;
    bool ours = false;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) ours |= strstr(text, marks[i]) != NULL;
    if (!ours || !strchr(text, '\n') || t->finder->inside) return false;
    const char *copy = oos_tree_text(t, node);
    size_t const before = t->finder->count, skips = t->finder->skip_count;
    uint32_t const outer = t->finder->first_line;
    t->finder->first_line = oos_tree_line(t, node);
    t->finder->inside = true;
    if (copy) oos_finder_yaml(t->finder, oos_view_of(copy));
    t->finder->inside = false;
    t->finder->first_line = outer;
    /* a text that only looks like YAML is nobody's mistake */
    if (t->finder->skip_count > skips && t->finder->skips[skips].broken) t->finder->skip_count = skips;
    return t->finder->count > before;
}

/* A script of a config map or of a step: text of several lines, or under a key that says so. */
static void embedded_script(oos_tree *t, const yaml_node_t *node, const char *key)
{
    static const char *const keys[] = {"run", "script", "before_script", "cmd", "exec", "shell"};
    const char *text = (const char *)node->data.scalar.value;
    bool const lines = strchr(text, '\n') != NULL;
    bool script = lines, names = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) script |= strcmp(key, keys[i]) == 0;
    for (size_t i = 0; script && i < OOS_ENGINE_COUNT; i++) {
        const char *at = strstr(text, oos_engine_list[i]->name);
        for (; at && !names; at = strstr(at + 1, oos_engine_list[i]->name))
            names = strncmp(at + strlen(oos_engine_list[i]->name), " serve ", 7) == 0;
        names |= strstr(text, oos_engine_list[i]->module) != NULL;
    }
    if (!names) return;
    const char *copy = oos_tree_text(t, node), *kind = t->finder->kind;
    t->finder->kind = "shell script";
    oos_finder_shell(t->finder, oos_view_of(copy), oos_tree_line(t, node) + lines, 0, NULL);
    t->finder->kind = kind;
}

static bool is_containers(const char *key)
{
    return strcmp(key, "containers") == 0 || strcmp(key, "initContainers") == 0;
}

static void walk(oos_tree *t, const yaml_node_t *node, const char *key, unsigned depth);

/* The values of a mapping; those that a container's command was made of are done with. */
static void walk_mapping(oos_tree *t, const yaml_node_t *node, unsigned depth, bool offered)
{
    uint32_t const outer = t->finder->shares;
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
         pair++) {
        const yaml_node_t *name = yaml_document_get_node(t->document, pair->key);
        const char *key = name && name->type == YAML_SCALAR_NODE ? (const char *)name->data.scalar.value : "";
        bool const done = offered && (strcmp(key, "command") == 0 || strcmp(key, "args") == 0 ||
                                      strcmp(key, "entrypoint") == 0);
        bool const together = strcmp(key, "containers") == 0 || (depth == 0 && strcmp(key, "services") == 0);
        t->finder->shares = together ? ++t->finder->group : outer;
        if (!done) walk(t, yaml_document_get_node(t->document, pair->value), key, depth + 1);
        t->finder->shares = outer;
    }
}

static void walk(oos_tree *t, const yaml_node_t *node, const char *key, unsigned depth)
{
    if (!node || t->finder->failed || t->finder->stopped) return;
    if (depth > DEPTH_MAX) {
        if (!t->too_deep)
            oos_finder_skip(t->finder, oos_tree_line(t, node),
                            "what lies more than %d levels deep was not looked at", DEPTH_MAX);
        t->too_deep = true;
        return;
    }
    if (t->visited++ > NODES_MAX) {
        oos_finder_stop(t->finder, oos_tree_line(t, node), "it unfolds to more than 300,000 values");
        return;
    }
    if (node->type == YAML_SEQUENCE_NODE) {
        for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
             item++) {
            const yaml_node_t *entry = yaml_document_get_node(t->document, *item);
            bool const bare = is_containers(key) && entry && entry->type == YAML_MAPPING_NODE &&
                              !oos_tree_get(t, entry, "image");
            size_t const before = t->finder->count;
            if (strcmp(key, "modelSpec") == 0 && oos_tree_get(t, entry, "modelURL"))
                offer_model_spec(t, entry);
            oos_tree_where(t, entry, before, true);
            if (bare) offer_container(t, entry, NULL);
            if (bare) /* a container without an image */
                walk_mapping(t, entry, depth + 1, true);
            else
                walk(t, entry, entry && entry->type == YAML_SCALAR_NODE ? key : "", depth + 1);
        }
    } else if (node->type == YAML_SCALAR_NODE) {
        if (!oos_finder_spend(t->finder, oos_tree_line(t, node), node->data.scalar.length + 16)) return;
        if (!embedded(t, node)) embedded_script(t, node, key);
    } else if (node->type == YAML_MAPPING_NODE) {
        size_t const before = t->finder->count;
        const char *group =
            oos_tree_text(t, oos_tree_get(t, oos_tree_get(t, node, "leaderWorkerTemplate"), "size"));
        if (group) t->nodes = oos_min(oos_tree_number(group), 1024);
        oos_finder_values(t, node, depth == 0);
        if (t->finder->count > before) { /* the containers in it belong to what was read */
            oos_tree_where(t, node, before, true);
            return;
        }
        const yaml_node_t *image = oos_tree_get(t, node, "image");
        bool const container = (image && image->type == YAML_SCALAR_NODE) || oos_tree_get(t, node, "build");
        if (container) offer_container(t, node, *key ? key : NULL);
        walk_mapping(t, node, depth, container);
        oos_tree_where(t, node, before, false);
    }
}

static void include_one(oos_tree *t, const yaml_node_t *node)
{
    const char *name = oos_tree_text(t, node);
    bool const plain = name && name[0] && !strstr(name, "://") && !strchr(name, '$');
    if (plain && oos_finder_take_in(t->finder, oos_tree_line(t, node), name, &t->finder->named)) return;
    oos_finder_skip(t->finder, oos_tree_line(t, node),
                    "what is included was not looked at: give what it is rendered to (docker compose config "
                    "| oomsight check -)");
}

static void include_each(oos_tree *t, const yaml_node_t *node)
{
    if (node->type == YAML_SEQUENCE_NODE) {
        for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
             item++) {
            const yaml_node_t *entry = yaml_document_get_node(t->document, *item);
            if (entry && entry->type != YAML_SEQUENCE_NODE) include_each(t, entry);
        }
    } else if (node->type == YAML_MAPPING_NODE) {
        const yaml_node_t *path = oos_tree_get(t, node, "path");
        bool const listed = path && path->type == YAML_SEQUENCE_NODE;
        for (yaml_node_item_t *item = listed ? path->data.sequence.items.start : NULL;
             listed && item < path->data.sequence.items.top; item++)
            include_one(t, yaml_document_get_node(t->document, *item));
        if (!listed) include_one(t, path ? path : node);
    } else
        include_one(t, node);
}

/* `include:` of a compose file, and the files that its services extend, are read as if they had been given. Other files have an `include:` of
 * their own, with `local:` and `template:` in it. */
static void compose_includes(oos_tree *t, const yaml_node_t *root)
{
    if (!root || root->type != YAML_MAPPING_NODE) return;
    const yaml_node_t *services = oos_tree_get(t, root, "services"),
                      *include = oos_tree_get(t, root, "include");
    const char *slash = strrchr(t->finder->path, '/');
    bool const compose = strstr(slash ? slash : t->finder->path, "compose") ||
                         (services && services->type == YAML_MAPPING_NODE);
    if (!compose) return;
    if (include) include_each(t, include);
    if (!services || services->type != YAML_MAPPING_NODE) return;
    for (yaml_node_pair_t *pair = services->data.mapping.pairs.start; pair < services->data.mapping.pairs.top;
         pair++) {
        const yaml_node_t *extends =
                              oos_tree_get(t, yaml_document_get_node(t->document, pair->value), "extends"),
                          *file = oos_tree_get(t, extends, "file");
        if (file) include_one(t, file);
    }
}

/* True: selectors of the document were read. */
static bool document_walk(oos_finder *finder, yaml_document_t *document)
{
    oos_tree t = {.finder = finder, .document = document};
    const yaml_node_t *root = yaml_document_get_root_node(document);
    if (finder->kustomized)
        oos_finder_kustomized(&t, root);
    else {
        compose_includes(&t, root);
        walk(&t, root, "", 0);
    }
    return t.placed;
}

/* A selector of one document says nothing of the next, and one that is a pod's nothing of the others. */
static void document_hints(oos_finder *finder, oos_view text, size_t before, bool placed)
{
    bool sure = false;
    if (finder->count == before) return;
    finder->by_document = true;
    if (placed) return;
    const char *gpu = oos_finder_gpu(finder->arena, text, &sure),
               *machine = oos_finder_machine(finder->arena, text);
    for (size_t i = before; i < finder->count; i++) {
        if (!finder->list[i].gpu_hint) {
            finder->list[i].gpu_hint = gpu;
            finder->list[i].gpu_is_sure = sure;
        }
        if (!finder->list[i].machine) finder->list[i].machine = machine;
    }
}

/* Where the document at the beginning of a text ends: before the next line of three dashes or behind one of three dots. Lines of
 * directives and comments belong to the dashes behind them. These lines end a document wherever they stand, in a quoted text, too. */
static size_t document_end(oos_view text)
{
    bool begun = false;
    for (size_t at = 0; at < text.len;) {
        const char *stop = memchr(text.ptr + at, '\n', text.len - at);
        size_t const end = stop ? (size_t)(stop - text.ptr) + 1 : text.len;
        oos_view const line = oos_view_slice(text, at, end - at);
        bool const marks = line.len >= 3 && (line.len == 3 || oos_is_space(line.ptr[3]));
        if (marks && memcmp(line.ptr, "...", 3) == 0) return end;
        if (marks && memcmp(line.ptr, "---", 3) == 0) {
            if (begun) return at;
            begun = true;
        }
        size_t first = 0;
        while (first < line.len && oos_is_space(line.ptr[first])) first++;
        if (first < line.len && line.ptr[first] != '#' && line.ptr[0] != '%') begun = true;
        at = end;
    }
    return text.len;
}

static bool parser_open(oos_finder *finder, yaml_parser_t *parser, oos_view text)
{
    if (!yaml_parser_initialize(parser)) {
        finder->failed = true;
        return false;
    }
    yaml_parser_set_input_string(parser, (const unsigned char *)text.ptr, text.len);
    return true;
}

static void broken(oos_finder *finder, const yaml_parser_t *parser)
{
    size_t const at = finder->skip_count;
    oos_finder_skip(finder, finder->first_line + (uint32_t)parser->problem_mark.line + 1, "broken YAML: %s",
                    parser->problem ? parser->problem : "it cannot be read");
    if (finder->skip_count > at) finder->skips[at].broken = true;
}

/* What was rendered by nobody: `image: {{ .Values.image }}`. */
static bool is_template(oos_view text)
{
    return text.len && memmem(text.ptr, text.len, "{{", 2);
}

static void read_document(oos_finder *finder, oos_view text)
{
    yaml_parser_t parser;
    yaml_document_t document;
    size_t const before = finder->count;
    if (text.len > DOCUMENT_MAX_BYTES) {
        oos_finder_skip(finder, finder->first_line + 1, "a document of more than 8 MiB was not looked at");
        return;
    }
    if (!oos_yaml_is_linear(text, NODES_MAX)) {
        oos_finder_skip(
            finder, finder->first_line + 1,
            "a document of too many values, anchors or brackets within brackets was not looked at");
        return;
    }
    if (!parser_open(finder, &parser, text)) return;
    if (!yaml_parser_load(&parser, &document)) {
        if (!is_template(text))
            broken(finder, &parser);
        else if (memmem(text.ptr, text.len, "image:", 6) || memmem(text.ptr, text.len, "containers:", 11))
            finder->templates = true;
    } else {
        bool const placed = yaml_document_get_root_node(&document) && document_walk(finder, &document);
        yaml_document_delete(&document);
        document_hints(finder, text, before, placed);
        if (finder->count == before && is_template(text) && memmem(text.ptr, text.len, "{{ .", 4))
            finder->templates |= memmem(text.ptr, text.len, "image:", 6) != NULL;
    }
    yaml_parser_delete(&parser);
}

void oos_finder_yaml(oos_finder *finder, oos_view text)
{
    uint32_t const outer = finder->first_line;
    size_t const before = finder->count;
    while (text.len && !finder->failed && !finder->stopped) {
        size_t const end = document_end(text);
        read_document(finder, oos_view_slice(text, 0, end));
        for (size_t i = 0; i < end; i++) finder->first_line += text.ptr[i] == '\n';
        text = oos_view_slice(text, end, text.len - end);
    }
    finder->first_line = outer;
    if (finder->templates && finder->count == before)
        oos_finder_skip(finder, 1,
                        "a template that was not looked at: give what it is rendered to "
                        "(helm template ... | oomsight check -)");
    finder->templates = false;
}

/* Models in the words of the tools that start them: keys become flags, as the tool itself makes them. What a tool adds of its own is left
 * alone. */
#include "command/command.h"
#include "base/ascii.h"
#include "facts/facts.h"

#include <string.h>

typedef struct model {
    oos_tree *t;
    oos_word_list words, environment;
    uint32_t line;
} model;

static void put(model *m, const char *word, uint32_t line)
{
    oos_words_add(m->t->finder->arena, &m->words, word, line);
}

static bool begin(oos_tree *t, const yaml_node_t *where, const char *name, model *ret_model)
{
    *ret_model = (model){.t = t, .line = where ? oos_tree_line(t, where) : 1};
    if (!name || !*name) return false;
    if (strncmp(name, "hf://", 5) == 0) name += 5;
    put(ret_model, oos_engine_default->name, ret_model->line);
    put(ret_model, "serve", ret_model->line);
    put(ret_model, name, ret_model->line);
    return true;
}

static void offer(model *m, const char *kind, const oos_place *place)
{
    oos_finder *finder = m->t->finder;
    const char *outer = finder->kind;
    oos_place where = *place;
    where.environment = &m->environment;
    finder->kind = kind;
    oos_finder_offer(finder, &m->words, &where);
    finder->kind = outer;
}

/* NULL: how many is not said. */
static void put_ranks(model *m, const yaml_node_t *tensor)
{
    if (!tensor) return;
    put(m, oos_engine_default->tensor_flag, oos_tree_line(m->t, tensor));
    put(m, oos_tree_text(m->t, tensor), oos_tree_line(m->t, tensor));
}

/* max_model_len: 8192 -> --max-model-len 8192; a switch by its name, or with "no-" before it. */
static void put_setting(model *m, const char *key, const yaml_node_t *value)
{
    const char *text = oos_tree_text(m->t, value);
    char *flag = oos_arena_format(m->t->finder->arena, "--%s", key);
    if (!flag || !text) return; /* what is no scalar moves no memory here, or is not read */
    for (char *c = flag; *c; c++)
        if (*c == '_') *c = '-';
    uint32_t const line = oos_tree_line(m->t, value);
    if (oos_tree_is_true(text)) {
        put(m, flag, line);
    } else if (oos_same(text, "false")) {
        put(m, oos_arena_format(m->t->finder->arena, "--no-%s", flag + 2), line);
    } else {
        put(m, flag, line);
        put(m, text, line);
    }
}

static void put_settings(model *m, const yaml_node_t *map)
{
    static const char *const not_flags[] = {"model", "accelerator_type"};
    if (!map || map->type != YAML_MAPPING_NODE) return;
    for (yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++) {
        const char *key = oos_tree_text(m->t, yaml_document_get_node(m->t->document, pair->key));
        bool flag = key != NULL;
        for (size_t i = 0; flag && i < sizeof not_flags / sizeof *not_flags; i++)
            flag = strcmp(key, not_flags[i]) != 0;
        if (flag) put_setting(m, key, yaml_document_get_node(m->t->document, pair->value));
    }
}

static const yaml_node_t *first_of(const oos_tree *t, const yaml_node_t *list)
{
    if (!list || list->type != YAML_SEQUENCE_NODE ||
        list->data.sequence.items.start == list->data.sequence.items.top)
        return NULL;
    return yaml_document_get_node(t->document, *list->data.sequence.items.start);
}

/* Ray Serve: model_loading_config, engine_kwargs and accelerator_type of an llm_config. */
static void ray_serve(oos_tree *t, const yaml_node_t *node)
{
    const yaml_node_t *loading = oos_tree_get(t, node, "model_loading_config"),
                      *kwargs = oos_tree_get(t, node, "engine_kwargs");
    const yaml_node_t *source = oos_tree_get(t, loading, "model_source"),
                      *id = oos_tree_get(t, loading, "model_id");
    const char *name = oos_tree_text(t, source);
    model m;
    if (!loading || !begin(t, source ? source : id, name ? name : oos_tree_text(t, id), &m)) return;
    put_settings(&m, kwargs);
    oos_place const place = {.name = oos_tree_text(t, id)};
    size_t const before = t->finder->count;
    offer(&m, "Ray Serve", &place);
    if (t->finder->count > before)
        t->finder->list[before].gpu_hint = oos_tree_text(t, oos_tree_get(t, node, "accelerator_type"));
}

/* llm-d: modelArtifacts once, decode and prefill with containers and a parallelism. */
static void llm_d(oos_tree *t, const yaml_node_t *node)
{
    static const char *const roles[] = {"decode", "prefill"};
    const yaml_node_t *artifacts = oos_tree_get(t, node, "modelArtifacts"),
                      *uri = oos_tree_get(t, artifacts, "uri");
    const char *name = oos_tree_text(t, oos_tree_get(t, artifacts, "name"));
    if (!name) name = oos_tree_text(t, uri);
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const yaml_node_t *role = oos_tree_get(t, node, roles[i]),
                          *container = first_of(t, oos_tree_get(t, role, "containers"));
        const yaml_node_t *tensor = oos_tree_get(t, oos_tree_get(t, role, "parallelism"), "tensor");
        const char *command = oos_tree_text(t, oos_tree_get(t, container, "modelCommand"));
        model m;
        if (!container || !command || strcmp(command, "vllmServe") != 0 || !begin(t, container, name, &m))
            continue;
        put_ranks(&m, tensor);
        oos_tree_words(t, oos_tree_get(t, container, "args"), &m.words);
        oos_tree_environment(t, oos_tree_get(t, container, "env"), &m.environment);
        oos_place place = {.name = roles[i]};
        oos_tree_place(t, container, &place);
        size_t const before = t->finder->count;
        offer(&m, "llm-d", &place);
        oos_tree_where(t, role, before, true);
    }
}

/* KServe's own runtime: the model is an argument or a storageUri, the other arguments are the engine's. */
static void kserve_runtime(oos_tree *t, const yaml_node_t *node)
{
    const yaml_node_t *args = oos_tree_get(t, node, "args"), *uri = oos_tree_get(t, node, "storageUri");
    const char *name = oos_tree_text(t, uri);
    oos_word_list given = {0};
    model m;
    oos_tree_words(t, args, &given);
    for (size_t i = 0; i < given.count; i++)
        if (strncmp(given.list[i], "--model_id=", 11) == 0) name = given.list[i] + 11;
    if (!name || (uri && !strncmp(name, "pvc://", 6)) || !begin(t, args ? args : node, name, &m)) return;
    for (size_t i = 0; i < given.count; i++)
        if (strncmp(given.list[i], "--model_id=", 11) != 0 &&
            strncmp(given.list[i], "--model_name", 12) != 0 && strncmp(given.list[i], "--backend", 9) != 0)
            put(&m, given.list[i], given.lines[i]);
    oos_tree_environment(t, oos_tree_get(t, node, "env"), &m.environment);
    oos_place place = {0};
    oos_tree_place(t, node, &place);
    offer(&m, "KServe", &place);
}

/* An LLMInferenceService: the model by its uri, more arguments in a variable. */
static void kserve_llm(oos_tree *t, const yaml_node_t *spec)
{
    const yaml_node_t *uri = oos_tree_get(t, oos_tree_get(t, spec, "model"), "uri");
    const yaml_node_t *container =
        first_of(t, oos_tree_get(t, oos_tree_get(t, spec, "template"), "containers"));
    const yaml_node_t *tensor = oos_tree_get(t, oos_tree_get(t, spec, "parallelism"), "tensor");
    const char *image = oos_tree_text(t, oos_tree_get(t, container, "image"));
    static const char more[] = "VLLM_ADDITIONAL_ARGS=";
    model m;
    if (!begin(t, uri, oos_tree_text(t, uri), &m)) return;
    put_ranks(&m, tensor);
    oos_tree_words(t, oos_tree_get(t, container, "args"), &m.words);
    oos_tree_environment(t, oos_tree_get(t, container, "env"), &m.environment);
    for (size_t i = 0; i < m.environment.count; i++)
        if (strncmp(m.environment.list[i], more, sizeof more - 1) == 0)
            oos_finder_split(t->finder, oos_view_of(m.environment.list[i] + sizeof more - 1),
                             m.environment.lines[i], &m.words);
    oos_place place = {.image = image};
    oos_tree_place(t, container, &place);
    offer(&m, "KServe", &place);
}

/* Values of a chart of somebody's own: an engine's image in two parts, a model, and arguments. */
static void chart_values(oos_tree *t, const yaml_node_t *node)
{
    static const char *const models[] = {"model", "modelName", "modelId", "modelID", "model_name", "hfModel"};
    static const char *const lists[] = {"extraArgs", "args", "vllmArgs", "engineArgs", "extraVllmArgs"};
    const yaml_node_t *image = oos_tree_get(t, node, "image"), *at = NULL;
    const char *repository = oos_tree_text(t, oos_tree_get(t, image, "repository")),
               *tag = oos_tree_text(t, oos_tree_get(t, image, "tag"));
    const char *name = NULL;
    model m;
    if (!repository || !oos_engine_words_of_image(repository)) return;
    for (size_t i = 0; i < sizeof models / sizeof *models && !name; i++) {
        at = oos_tree_get(t, node, models[i]);
        if (at && at->type == YAML_MAPPING_NODE)
            at = oos_tree_get(t, at, "name") ? oos_tree_get(t, at, "name") : oos_tree_get(t, at, "id");
        name = oos_tree_text(t, at);
    }
    if (!begin(t, at, name, &m)) return;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        oos_tree_words(t, oos_tree_get(t, node, lists[i]), &m.words);
    oos_tree_environment(t, oos_tree_get(t, node, "env"), &m.environment);
    oos_place place = {.image =
                           tag ? oos_arena_format(t->finder->arena, "%s:%s", repository, tag) : repository};
    oos_tree_place(t, node, &place);
    offer(&m, "Helm values", &place);
}

/* The file of `vllm serve --config`: flags without their dashes. */
static void config_file(oos_tree *t, const yaml_node_t *node)
{
    static const char *const flags[] = {
        "max-model-len",          "max_model_len",          "tensor-parallel-size", "tensor_parallel_size",
        "gpu-memory-utilization", "gpu_memory_utilization", "max-num-seqs",         "max_num_seqs",
        "kv-cache-dtype",         "max-num-batched-tokens", "enforce-eager"};
    const yaml_node_t *name = oos_tree_get(t, node, "model");
    bool ours = false;
    model m;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) ours |= oos_tree_get(t, node, flags[i]) != NULL;
    if (!ours || oos_tree_get(t, node, "apiVersion") || !begin(t, name, oos_tree_text(t, name), &m)) return;
    put_settings(&m, node);
    oos_place const nowhere = {0};
    offer(&m, oos_engine_default->config_title, &nowhere);
}

/* "A100:8", {L4: 1, A100: 1}, [A100:8, H100:8]: the first, and how many. */
static void accelerators(oos_tree *t, const yaml_node_t *node, const char **ret_gpu, uint64_t *ret_count)
{
    const yaml_node_t *first = first_of(t, node);
    const char *text = oos_tree_text(t, first ? first : node), *colon = text ? strchr(text, ':') : NULL;
    if (node && node->type == YAML_MAPPING_NODE &&
        node->data.mapping.pairs.start < node->data.mapping.pairs.top) {
        const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
        const char *count = oos_tree_text(t, yaml_document_get_node(t->document, pair->value));
        text = oos_tree_text(t, yaml_document_get_node(t->document, pair->key));
        colon = text ? strchr(text, ':') : NULL; /* {L4:1, A100:1} has keys with a colon and no values */
        *ret_count = oos_tree_number(count);
    }
    if (colon) *ret_count = oos_tree_number(colon + 1);
    if (!*ret_count) *ret_count = 1;
    *ret_gpu = text ? oos_arena_copy(t->finder->arena,
                                     (oos_view){text, colon ? (size_t)(colon - text) : strlen(text)})
                    : NULL;
}

/* SkyPilot: `run` is a script that sees `envs` and the number of GPUs of `resources`. */
static void sky_task(oos_tree *t, const yaml_node_t *node)
{
    const yaml_node_t *run = oos_tree_get(t, node, "run"),
                      *wanted = oos_tree_get(t, oos_tree_get(t, node, "resources"), "accelerators");
    const char *script = oos_tree_text(t, run), *gpu = NULL;
    uint64_t count = 0;
    oos_word_list environment = {0};
    oos_finder *finder = t->finder;
    if (!script || (!wanted && !oos_tree_get(t, node, "envs"))) return;
    if (wanted) accelerators(t, wanted, &gpu, &count);
    oos_tree_environment(t, oos_tree_get(t, node, "envs"), &environment);
    if (count) {
        const char *each =
            oos_arena_format(finder->arena, "SKYPILOT_NUM_GPUS_PER_NODE=%llu", (unsigned long long)count);
        if (each) oos_finder_set_assignment(finder, each);
    }
    oos_place const place = {.gpus = count};
    size_t const before = finder->count;
    const char *outer = finder->kind;
    finder->kind = "SkyPilot";
    finder->unknown = NULL;
    oos_finder_shell(finder, oos_view_of(script), oos_tree_line(t, run) + (strchr(script, '\n') ? 1 : 0), 0,
                     &place);
    finder->kind = outer;
    for (size_t i = before; i < finder->count; i++) finder->list[i].gpu_hint = gpu;
}

void oos_finder_values(oos_tree *t, const yaml_node_t *node, bool is_root)
{
    const yaml_node_t *format = oos_tree_get(t, oos_tree_get(t, node, "modelFormat"), "name");
    const char *kind = oos_tree_text(t, format);
    if (oos_tree_get(t, node, "model_loading_config")) ray_serve(t, node);
    if (kind && (oos_same(kind, "huggingface") || oos_same(kind, oos_engine_default->name)))
        kserve_runtime(t, node);
    if (oos_tree_get(t, oos_tree_get(t, node, "model"), "uri") && oos_tree_get(t, node, "template"))
        kserve_llm(t, node);
    if (oos_tree_get(t, node, "modelArtifacts")) llm_d(t, node);
    if (oos_tree_get(t, oos_tree_get(t, node, "image"), "repository")) chart_values(t, node);
    if (is_root && oos_tree_get(t, node, "run")) sky_task(t, node);
    if (is_root && oos_tree_get(t, node, "model")) config_file(t, node);
}

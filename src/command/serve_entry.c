/* How a command starts the engine: which word is its entry, who asks, and what environment stands before it. */
#include "command/serve_parts.h"
#include "base/ascii.h"
#include "base/scan.h"
#include "facts/engine.h"

#include <stdlib.h>

static bool upper_name(const char *word, size_t *ret_len)
{
    size_t len = 0;
    for (; word[len] && word[len] != '='; len++) {
        char const c = word[len];
        if (!((c >= 'A' && c <= 'Z') || c == '_' || (len && c >= '0' && c <= '9'))) return false;
    }
    *ret_len = len;
    return len > 0 && word[len] == '=';
}

static bool lower_name(const char *word)
{
    size_t len = 0;
    for (; word[len] && word[len] != '='; len++) {
        char const c = word[len];
        if (!((c >= 'a' && c <= 'z') || c == '_' || (len && c >= '0' && c <= '9'))) return false;
    }
    return len > 0 && word[len] == '=';
}

/* bool(int(os.environ[...])), as vLLM reads its switches; a word is taken for what it says. */
static oos_flag switch_of(const char *value)
{
    bool const off = strcmp(value, "0") == 0 || oos_same(value, "false") || *value == '\0';
    return (oos_flag){true, !off};
}

bool oos_engine_env_set(oos_arena *arena, oos_engine_env *env, const char *assignment)
{
    size_t len;
    bool taken = false;
    if (!upper_name(assignment, &len)) return false;
    oos_view const name = {assignment, len};
    const char *value = assignment + len + 1;
    static const struct {
        const char *name;
        size_t offset;
    } switches[] =
        {
            {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", offsetof(oos_engine_env, estimate_cudagraphs)},
            {"VLLM_USE_V2_MODEL_RUNNER", offsetof(oos_engine_env, v2_model_runner)},
            {"VLLM_USE_FLASHINFER_SAMPLER", offsetof(oos_engine_env, flashinfer_sampler)},
            {"VLLM_USE_V1", offsetof(oos_engine_env, use_v1)},
            {"VLLM_ALLOW_LONG_MAX_MODEL_LEN", offsetof(oos_engine_env, allow_long_length)},
            {"VLLM_USE_RUST_FRONTEND", offsetof(oos_engine_env, rust_frontend)},
        },
      texts[] = {
          {"VLLM_ATTENTION_BACKEND", offsetof(oos_engine_env, attention_backend)},
          {"PYTORCH_CUDA_ALLOC_CONF", offsetof(oos_engine_env, alloc_conf)},
          {"PYTORCH_ALLOC_CONF", offsetof(oos_engine_env, alloc_conf)},
          {"VLLM_PP_LAYER_PARTITION", offsetof(oos_engine_env, pp_layer_partition)},
      };
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (oos_view_is(name, switches[i].name)) {
            *(oos_flag *)((char *)env + switches[i].offset) = switch_of(value);
            taken = true;
        }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (oos_view_is(name, texts[i].name)) {
            *(const char **)((char *)env + texts[i].offset) = oos_arena_copy(arena, oos_view_of(value));
            taken = true;
        }
    static const char *const cache[] = {"VLLM_DISABLE_COMPILE_CACHE", "VLLM_CACHE_ROOT"};
    bool const disabled = oos_view_is(name, cache[0]), root = oos_view_is(name, cache[1]);
    if (disabled && switch_of(value).value) env->cold_compile = (oos_flag){true, true};
    if (root && !env->cold_compile.known) env->cold_compile = (oos_flag){true, false};
    bool negative;
    uint64_t bytes;
    if (oos_view_is(name, "VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE") &&
        oos_serve_int(NULL, value, &negative, &bytes) && !negative) {
        env->flashinfer_workspace_bytes = oos_u64_of(bytes);
        taken = true;
    }
    return taken || disabled || root;
}

static oos_flag yes_or_no(const char *value)
{
    static const char *const yes[] = {"1", "true", "yes", "y"}, *const no[] = {"0", "false", "no", "n"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (oos_same(value, yes[i])) return (oos_flag){true, true};
        if (oos_same(value, no[i])) return (oos_flag){true, false};
    }
    return (oos_flag){0};
}

const oos_given_variable *oos_engine_env_given(const oos_engine_env *env, const char *name)
{
    for (size_t i = 0; i < env->variable_count; i++)
        if (strcmp(env->variables[i].name, name) == 0) return &env->variables[i];
    return NULL;
}

/* One NAME=value word: typed where the release knows the name, and noted. */
static bool variable_take(oos_serve_reader *in, oos_engine_env *env, oos_given_variable *list,
                          const char *word)
{
    oos_view const name = {word, strcspn(word, "=")};
    oos_env_hit const hit = oos_env_find(in->table, name, word + name.len + 1, in->version);
    oos_given_variable given = {
        .effect = hit.effect, .own = hit.own, .listed = hit.listed, .logged = hit.logged};
    given.name = oos_arena_copy(in->arena, name);
    given.on = yes_or_no(word + name.len + 1);
    if (hit.why.len) given.why = oos_scan_text(in->arena, hit.why);
    if (!given.name || (hit.why.len && !given.why)) return false;
    if (hit.effect != OOS_ENV_ABSENT && oos_engine_env_set(in->arena, env, word))
        given.effect = OOS_ENV_MODELLED;
    size_t at = 0;
    while (at < env->variable_count && strcmp(list[at].name, given.name) != 0) at++;
    list[at] = given;
    if (at == env->variable_count) env->variable_count++;
    return true;
}

/* All of them, up to the word that starts the engine. */
static oomsight_status variables_take(oos_serve_reader *in, const char *const *words, size_t count,
                                      oos_engine_env *env)
{
    size_t given = 0, ignored;
    for (size_t i = 0; i < count; i++) given += upper_name(words[i], &ignored);
    if (given == 0) return OOMSIGHT_OK;
    if (given > OOS_VARIABLES_MAX)
        return oos_fail(in->reterr, OOMSIGHT_USAGE, "%zu environment variables are more than %d", given,
                        OOS_VARIABLES_MAX);
    oos_given_variable *list = OOS_NEW_ARRAY(in->arena, oos_given_variable, given);
    env->variables = list;
    bool fine = list != NULL;
    for (size_t i = 0; fine && i < count; i++)
        if (upper_name(words[i], &ignored)) fine = variable_take(in, env, list, words[i]);
    return fine ? OOMSIGHT_OK : oos_fail(in->reterr, OOMSIGHT_NOMEM, "no memory for the environment");
}

/* The last part of a path, and whether `name` ends it. */
static bool ends_with(const char *word, const char *name)
{
    size_t const len = strlen(word), tail = strlen(name);
    if (len < tail || strcmp(word + len - tail, name) != 0) return false;
    return len == tail || word[len - tail - 1] == '/';
}

static bool sub_command(const char *word, const char *next, size_t *ret_words, oos_serve_entry *entry)
{
    *ret_words = 1;
    if (strcmp(word, "serve") == 0 || strcmp(word, "run-batch") == 0) return true;
    if (strcmp(word, "bench") != 0 || !next) return false;
    *ret_words = 2;
    entry->bench = true;
    entry->latency = strcmp(next, "latency") == 0;
    entry->client = strcmp(next, "serve") == 0;
    if (entry->latency || strcmp(next, "throughput") == 0 || strcmp(next, "startup") == 0)
        entry->usage = OOS_USAGE_LLM_CLASS;
    return true;
}

/* An entry at words[i], or not. */
static bool entry_at(const char *const *words, size_t count, size_t i, oos_serve_entry *entry)
{
    const char *word = words[i], *next = i + 1 < count ? words[i + 1] : NULL;
    size_t more;
    if (ends_with(word, "vllm") && next &&
        sub_command(next, i + 2 < count ? words[i + 2] : NULL, &more, entry)) {
        entry->first = i + 1 + more;
    } else if (strcmp(word, "-m") == 0 && next && strncmp(next, "vllm.entrypoints.cli", 20) == 0) {
        if (i + 2 >= count || !sub_command(words[i + 2], i + 3 < count ? words[i + 3] : NULL, &more, entry))
            return false;
        entry->first = i + 2 + more;
    } else if (strcmp(word, "-m") == 0 && next && strncmp(next, "vllm.entrypoints", 16) == 0) {
        entry->first = i + 2;
    } else if (strstr(word, "vllm-openai") ||
               ends_with(word, "api_server.py")) { /* an image starts the server */
        entry->first = i + 1;
    } else if (ends_with(word, "benchmark_throughput.py") || ends_with(word, "benchmark_latency.py")) {
        entry->usage = OOS_USAGE_LLM_CLASS;
        entry->bench = true;
        entry->latency = ends_with(word, "benchmark_latency.py");
        entry->first = i + 1;
    } else if (strstr(word, "LLM(")) {
        entry->usage = OOS_USAGE_LLM_CLASS;
        entry->keywords = true;
        entry->first = i;
    } else {
        return false;
    }
    /* `docker run vllm/vllm-openai vllm serve m` and `... serve m` name the command once more */
    if (strstr(word, "vllm-openai") && next) {
        oos_serve_entry again = {0};
        if (entry_at(words, count, i + 1, &again))
            *entry = again;
        else if (strcmp(next, "serve") == 0)
            entry->first = i + 2;
    }
    return true;
}

const oos_dialect oos_dialect_vllm = {
    .entry_at = entry_at,
    .expected = "vLLM: expected `vllm serve MODEL ...`, `vllm bench ...`, "
                "`python -m vllm.entrypoints.openai.api_server ...` or `LLM(model=...)`",
    .typed = true,
};

oomsight_status oos_serve_enter(oos_serve_reader *in, const char *const *words, size_t count,
                                oos_serve_entry *ret_entry, oos_engine_env *env)
{
    const oos_dialect *dialect = in->dialect;
    oomsight_error *reterr = in->reterr;
    oos_serve_entry entry = {.usage = OOS_USAGE_SERVER};
    size_t at = 0, ignored;
    bool found = false;
    if (count == 0) return oos_fail(reterr, OOMSIGHT_USAGE, "no command: expected `vllm serve MODEL ...`");
    for (; at < count && !found; at++) {
        if (strstr(words[at], "vllm-openai")) env->image = true;
        if (!upper_name(words[at], &ignored)) found = dialect->entry_at(words, count, at, &entry);
    }
    OOS_TRY(variables_take(in, words, at, env));
    /* model=x tensor_parallel_size=4; only when nothing else is there, for an environment may have such names too */
    for (at = 0; dialect->typed && at < count && !found; at++)
        if (lower_name(words[at])) {
            entry = (oos_serve_entry){.usage = OOS_USAGE_LLM_CLASS, .keywords = true, .first = at};
            found = true;
        }
    if (!found)
        return oos_fail(reterr, OOMSIGHT_USAGE, "`%.80s` is not a command that starts %s (planned here: %s)",
                        words[0], dialect->expected, oos_engine_titles());
    if (entry.client)
        return oos_fail(
            reterr, OOMSIGHT_USAGE,
            "`vllm bench serve` is a client and starts no engine: plan the `vllm serve` that it talks to");
    *ret_entry = entry;
    return OOMSIGHT_OK;
}

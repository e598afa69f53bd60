/* vLLM's command: where it begins, and what its environment variables ask for. */
#include "base/ascii.h"
#include "engines/vllm/vllm.h"

#include <stdio.h>
#include <string.h>

/* As vLLM reads its switches: bool(int(...)), but for one; a word where it wants a number is refused (arguments.c). */
static oos_flag switch_of(oos_view name, const char *value)
{
    bool negative;
    uint64_t number = 0;
    bool on = oos_serve_int(NULL, value, &negative, &number) && number;
    if (oos_view_is(name, "VLLM_ALLOW_LONG_MAX_MODEL_LEN")) {
        char word[8] = "";
        sscanf(value, " %7s", word);
        on = strcmp(word, "1") == 0 || oos_same(word, "true");
    }
    return (oos_flag){true, on};
}

bool oos_vllm_variable_set(oos_arena *arena, oos_engine_env *env, oos_view name, const char *value)
{
    bool taken = false;
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
          {"VLLM_PP_LAYER_PARTITION", offsetof(oos_engine_env, pp_layer_partition)},
      };
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (oos_view_is(name, switches[i].name)) {
            *(oos_flag *)((char *)env + switches[i].offset) = switch_of(name, value);
            taken = true;
        }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (oos_view_is(name, texts[i].name)) {
            *(const char **)((char *)env + texts[i].offset) = oos_arena_copy(arena, oos_view_of(value));
            taken = true;
        }
    static const char *const cache[] = {"VLLM_DISABLE_COMPILE_CACHE", "VLLM_CACHE_ROOT"};
    bool const disabled = oos_view_is(name, cache[0]), root = oos_view_is(name, cache[1]);
    if (disabled && switch_of(name, value).value) env->cold_compile = (oos_flag){true, true};
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

/* The last part of a path, and whether `name` ends it. */
static bool ends_with(const char *word, const char *name)
{
    size_t const len = strlen(word), tail = strlen(name);
    if (len < tail || strcmp(word + len - tail, name) != 0) return false;
    return len == tail || word[len - tail - 1] == '/';
}

/* vllm/entrypoints/openai/run_batch.py: what `vllm serve` does not have */
static const char *const batch_flags[] = {
    "-i", "--input-file", "-o", "--output-file", "--output-tmp-dir", "--enable-metrics", "--url", NULL};

static bool sub_command(const char *word, const char *next, size_t *ret_words, oos_serve_entry *entry)
{
    *ret_words = 1;
    if (strcmp(word, "run-batch") == 0) entry->own = batch_flags;
    if (strcmp(word, "serve") == 0 || entry->own) return true;
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
bool oos_vllm_entry_at(const char *const *words, size_t count, size_t i, oos_serve_entry *entry)
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
        if (strstr(next, "run_batch")) entry->own = batch_flags;
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
        if (oos_vllm_entry_at(words, count, i + 1, &again))
            *entry = again;
        else if (strcmp(next, "serve") == 0)
            entry->first = i + 2;
    }
    return true;
}

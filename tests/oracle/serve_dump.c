/* Commands on standard input, one a line: a version, then the words, each behind a tab. What oos_serve_read() made of
 * each is printed as one line of JSON: the fields that are known, or the error. For serve_oracle.py. */
#include "base/json.h"
#include "command/command.h"
#include "engines/vllm/vllm.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORDS_MAX = 512 };

static void put_u64(json_t *out, const char *key, oos_u64 number)
{
    if (number.known) json_object_set_new(out, key, json_integer((json_int_t)number.value));
}

static void put_str(json_t *out, const char *key, const char *text)
{
    if (text) json_object_set_new(out, key, json_string(text));
}

static json_t *compilation(const oos_compilation *c)
{
    json_t *out = json_object();
    put_u64(out, "max_cudagraph_capture_size", c->max_capture_size);
    put_u64(out, "level", c->level);
    put_u64(out, "optimization_level", c->optimization_level);
    put_str(out, "cudagraph_mode", c->cudagraph_mode);
    if (c->capture_sizes_given) {
        json_t *sizes = json_array();
        for (size_t i = 0; i < c->capture_size_count; i++)
            json_array_append_new(sizes, json_integer((json_int_t)c->capture_sizes[i]));
        json_object_set_new(out, "cudagraph_capture_sizes", sizes);
    }
    return out;
}

static json_t *speculative(const oos_speculative *s)
{
    json_t *out = json_object();
    put_str(out, "method", s->method);
    put_str(out, "model", s->model);
    put_u64(out, "num_speculative_tokens", s->tokens);
    put_u64(out, "draft_tensor_parallel_size", s->draft_tensor_parallel_size);
    return out;
}

static json_t *command(const oos_serve *serve)
{
    json_t *out = json_object(), *flags = json_array();
    put_str(out, "model", serve->model);
#define U64(name, flag) put_u64(out, #name, serve->name);
#define F64(name, flag)                                                                                      \
    if (serve->name.known) json_object_set_new(out, #name, json_real(serve->name.value));
#define YES(name, flag)                                                                                      \
    if (serve->name.known) json_object_set_new(out, #name, json_boolean(serve->name.value));
#define STR(name, flag) put_str(out, #name, serve->name);
#include "engines/vllm/flags.def"
#undef U64
#undef F64
#undef YES
#undef STR
    put_u64(out, "max_model_len", serve->max_model_len);
    if (serve->max_model_len_auto) json_object_set_new(out, "max_model_len", json_integer(-1));
    json_object_set_new(out, "compilation", compilation(&serve->compilation));
    if (serve->speculative.present)
        json_object_set_new(out, "speculative_config", speculative(&serve->speculative));
    if (serve->hf_overrides_json)
        json_object_set_new(out, "hf_overrides", json_loads(serve->hf_overrides_json, JSON_DECODE_ANY, NULL));
    put_u64(out, "mm.image", serve->mm_images);
    put_u64(out, "mm.video", serve->mm_videos);
    put_u64(out, "mm.audio", serve->mm_audios);
    for (size_t i = 0; i < serve->flag_count; i++) {
        const oos_given_flag *flag = &serve->flags[i];
        static const char *const effects[] = {"modelled", "no_memory", "unmodelled", "unknown"};
        json_array_append_new(flags, json_pack("{s:s, s:s?, s:s, s:s?, s:s?}", "name", flag->name, "value",
                                               flag->value, "effect", effects[flag->effect], "nearest",
                                               flag->nearest, "note", flag->note));
    }
    json_object_set_new(out, "flags", flags);
    return out;
}

int main(void)
{
    oos_arena *data = oos_arena_create(1 << 16), *arena = oos_arena_create(1 << 16);
    oos_flag_table table;
    oomsight_error error;
    if (!data || !arena || oos_flags_load(data, NULL, "vllm", &table, &error) != OOMSIGHT_OK) return 1;
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t len; (len = getline(&line, &capacity, stdin)) > 0; oos_arena_reset(arena)) {
        const char *words[WORDS_MAX];
        size_t count = 0;
        oos_version version;
        if (line[len - 1] == '\n') line[len - 1] = '\0';
        char *at = strchr(line, '\t');
        if (!at) return 1;
        *at++ = '\0';
        for (char *next; at && count < WORDS_MAX; at = next) {
            next = strchr(at, '\t');
            if (next) *next++ = '\0';
            words[count++] = at;
        }
        oos_serve serve;
        oos_engine_env env;
        if (!oos_version_parse(oos_view_of(line), &version)) return 1;
        oomsight_status const status =
            oos_serve_read_as(&oos_vllm_dialect, arena, words, count, &table, version, &serve, &env, &error);
        json_t *out = status == OOMSIGHT_OK ? command(&serve)
                                            : json_pack("{s:i, s:s}", "status", status, "error", error.text);
        char *text = json_dumps(out, JSON_COMPACT | JSON_SORT_KEYS);
        puts(text ? text : "{}");
        free(text);
        json_decref(out);
    }
    free(line);
    oos_arena_free(arena);
    oos_arena_free(data);
    return 0;
}

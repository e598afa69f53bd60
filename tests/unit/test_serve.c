#include "unit.h"

#include "command/command.h"
#include "engines/vllm/vllm.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static oos_arena *arena, *data;
static oos_flag_table table;
static oos_serve serve;
static oos_engine_env env;
static oomsight_error error;
static const oos_version newest = OOS_VERSION(0, 32, 0), old = OOS_VERSION(0, 11, 0);

static int load(void **state)
{
    (void)state;
    data = oos_arena_create(64 << 10);
    return oos_flags_load(data, NULL, "vllm", &table, NULL) == OOMSIGHT_OK ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    oos_arena_free(data);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    arena = oos_arena_create(4096);
    memset(&serve, 0, sizeof serve);
    memset(&env, 0, sizeof env);
    memset(&error, 0, sizeof error);
    return arena ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    oos_arena_free(arena);
    return 0;
}

/* Words between bars, so that a word may have spaces: "vllm|serve|m|--x|{\"a\": 1}". */
static oomsight_status read_at(oos_version version, const char *text)
{
    static char copy[4096]; /* outlived by nothing: the reader keeps no word */
    const char *words[128];
    size_t count = 0;
    assert_true(strlen(text) < sizeof copy);
    strcpy(copy, text);
    for (char *at = copy; at && count < 128;) {
        char *bar = strchr(at, '|');
        if (bar) *bar++ = '\0';
        words[count++] = at;
        at = bar;
    }
    oomsight_status const status =
        oos_serve_read_as(&oos_vllm_dialect, arena, words, count, &table, version, &serve, &env, &error);
    memset(copy, '#', sizeof copy - 1);
    return status;
}

#define READ(version, text) assert_int_equal(read_at(version, text), OOMSIGHT_OK)

static const oos_given_flag *given(const char *name)
{
    for (size_t i = 0; i < serve.flag_count; i++)
        if (strcmp(serve.flags[i].name, name) == 0) return &serve.flags[i];
    fail_msg("no flag %s was noted", name);
    return NULL;
}

static void flags_are_typed_and_the_rest_stays_unset(void **state)
{
    (void)state;
    READ(newest,
         "vllm|serve|Qwen/Qwen3-8B|-tp|4|--max-model-len=32768|--gpu_memory_utilization|0.92|--enforce-eager|"
         "--kv-cache-dtype|fp8|--no-enable-prefix-caching|--max-num-seqs|16|--kv-cache-memory-bytes|2G");
    assert_int_equal(serve.usage, OOS_USAGE_SERVER);
    assert_string_equal(serve.model, "Qwen/Qwen3-8B");
    assert_string_equal(serve.program, "vllm serve Qwen/Qwen3-8B");
    assert_true(serve.tensor_parallel_size.known && serve.tensor_parallel_size.value == 4);
    assert_true(serve.max_model_len.known && serve.max_model_len.value == 32768);
    assert_true(serve.gpu_memory_utilization.known && serve.gpu_memory_utilization.value == 0.92);
    assert_true(serve.enforce_eager.known && serve.enforce_eager.value);
    assert_true(serve.enable_prefix_caching.known && !serve.enable_prefix_caching.value);
    assert_string_equal(serve.kv_cache_dtype, "fp8");
    assert_true(serve.max_num_seqs.value == 16);
    assert_true(serve.kv_cache_memory_bytes.value == 2147483648);
    assert_false(serve.pipeline_parallel_size.known);
    assert_false(serve.speculative.present);
    assert_false(serve.mm_limits_given);
    assert_int_equal(serve.flag_count, 8);
    assert_string_equal(serve.flags[0].name, "--tensor-parallel-size");
    assert_string_equal(serve.flags[0].value, "4");
    assert_string_equal(serve.flags[5].name, "--no-enable-prefix-caching");
    for (size_t i = 0; i < serve.flag_count; i++) assert_int_equal(serve.flags[i].effect, OOS_FLAG_MODELLED);
}

static void the_last_of_two_equal_flags_wins(void **state)
{
    (void)state;
    READ(newest, "vllm|serve|m|--max-num-seqs|5|--max-num-seqs|7");
    assert_true(serve.max_num_seqs.value == 7);
}

static void every_way_of_starting_the_engine_is_understood(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        oos_usage usage;
        const char *program;
    } ways[] = {
        {"vllm|serve|m|--max-num-seqs|8", OOS_USAGE_SERVER, "vllm serve m"},
        {"vllm|serve|--max-num-seqs|8|m", OOS_USAGE_SERVER, "vllm serve m"},
        {"vllm|serve|--model|m|--max-num-seqs|8", OOS_USAGE_SERVER, "vllm serve --model m"},
        {"/opt/venv/bin/vllm|serve|m|--max-num-seqs|8", OOS_USAGE_SERVER, "/opt/venv/bin/vllm serve m"},
        {"uv|run|vllm|serve|m|--max-num-seqs|8", OOS_USAGE_SERVER, "uv run vllm serve m"},
        {"uv|run|--with|vllm|vllm|serve|m|--max-num-seqs|8", OOS_USAGE_SERVER,
         "uv run --with vllm vllm serve m"},
        {"python|-m|vllm.entrypoints.openai.api_server|--model|m|--max-num-seqs|8", OOS_USAGE_SERVER,
         "python -m vllm.entrypoints.openai.api_server --model m"},
        {"/usr/bin/python3|-m|vllm.entrypoints.api_server|--model=m|--max-num-seqs=8", OOS_USAGE_SERVER,
         "/usr/bin/python3 -m vllm.entrypoints.api_server --model m"},
        {"python3|-m|vllm.entrypoints.cli.main|serve|m|--max-num-seqs|8", OOS_USAGE_SERVER,
         "python3 -m vllm.entrypoints.cli.main serve m"},
        {"docker|run|--gpus|all|-p|8000:8000|vllm/vllm-openai:v0.11.0|--model|m|--max-num-seqs|8",
         OOS_USAGE_SERVER, "docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.11.0 --model m"},
        {"docker|run|vllm/vllm-openai|m|--max-num-seqs|8", OOS_USAGE_SERVER, "docker run vllm/vllm-openai m"},
        {"vllm|bench|throughput|--model|m|--max-num-seqs|8", OOS_USAGE_LLM_CLASS,
         "vllm bench throughput --model m"},
        {"vllm|bench|latency|--model|m|--max-num-seqs|8", OOS_USAGE_LLM_CLASS,
         "vllm bench latency --model m"},
        {"python|benchmarks/benchmark_throughput.py|--model|m|--max-num-seqs|8", OOS_USAGE_LLM_CLASS,
         "python benchmarks/benchmark_throughput.py --model m"},
        {"LLM(model=\"m\", max_num_seqs=8)", OOS_USAGE_LLM_CLASS, "LLM"},
        {"LLM('m', max_num_seqs=8)", OOS_USAGE_LLM_CLASS, "LLM"},
        {"llm = vllm.LLM(model='m', max_num_seqs = 8)", OOS_USAGE_LLM_CLASS, "LLM"},
        {"model=m|max_num_seqs=8", OOS_USAGE_LLM_CLASS, "LLM"},
        {"model=m,|max_num_seqs=8", OOS_USAGE_LLM_CLASS, "LLM"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        READ(newest, ways[i].words);
        assert_string_equal(serve.model, "m");
        assert_int_equal(serve.usage, ways[i].usage);
        assert_true(serve.max_num_seqs.known && serve.max_num_seqs.value == 8);
        assert_string_equal(serve.program, ways[i].program);
    }
}

static void other_commands_are_refused_in_plain_words(void **state)
{
    (void)state;
    static const char *const commands[] = {"sglang|serve|m", "vllm", "vllm|chat", "ls", "", "vllm|bench"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        assert_int_equal(read_at(newest, commands[i]), OOMSIGHT_USAGE);
        assert_non_null(strstr(error.text, "expected `vllm serve MODEL"));
    }
    assert_int_equal(
        oos_serve_read_as(&oos_vllm_dialect, arena, NULL, 0, &table, newest, &serve, &env, &error),
        OOMSIGHT_USAGE);
}

static void words_before_the_command_are_environment(void **state)
{
    (void)state;
    READ(old, "env|VLLM_USE_V1=0|VLLM_ATTENTION_BACKEND=FLASHINFER|CUDA_VISIBLE_DEVICES=0,1|"
              "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True|"
              "VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE=1048576|vllm|serve|m");
    assert_true(env.use_v1.known && !env.use_v1.value);
    assert_string_equal(env.attention_backend, "FLASHINFER");
    assert_string_equal(env.alloc_conf, "expandable_segments:True");
    assert_false(env.v2_model_runner.known);
    assert_string_equal(serve.model, "m");
    READ(old, "docker|run|-e|VLLM_USE_V1=1|vllm/vllm-openai|--model|m");
    assert_true(env.use_v1.known && env.use_v1.value);
    READ(newest, "VLLM_USE_V1=0|VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=1|"
                 "VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE=1048576|vllm|serve|m");
    assert_true(env.flashinfer_workspace_bytes.value == 1048576);
    assert_true(env.estimate_cudagraphs.known && env.estimate_cudagraphs.value);
    assert_false(env.use_v1.known); /* not a variable of this release */
    READ(newest, "http_proxy=x|vllm|serve|m");
    assert_string_equal(serve.model, "m");
    READ(old, "VLLM_USE_V1=1|model=m|tensor_parallel_size=2");
    assert_true(env.use_v1.value && serve.tensor_parallel_size.value == 2);
}

static void lengths_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        uint64_t tokens;
    } lengths[] = {{"16k", 16000}, {"16K", 16384}, {"1M", 1048576},
                   {"1.5k", 1500}, {"2.3k", 2300}, {"1_000", 1000}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char words[64];
        snprintf(words, sizeof words, "vllm|serve|m|--max-model-len|%s", lengths[i].word);
        READ(newest, words);
        assert_true(serve.max_model_len.known && serve.max_model_len.value == lengths[i].tokens);
    }
    READ(newest, "vllm|serve|m|--max-model-len|auto");
    assert_true(serve.max_model_len_auto && !serve.max_model_len.known);
    READ(newest, "vllm|serve|m|--max-model-len|-1");
    assert_true(serve.max_model_len_auto && !serve.max_model_len.known);
    READ(newest, "vllm|serve|m|--max-model-len=-1");
    assert_true(serve.max_model_len_auto);
}

static void a_value_the_engine_cannot_read_is_refused_with_its_flag(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"vllm|serve|m|--max-num-seqs|abc", "argument --max-num-seqs: invalid int value: 'abc'"},
        {"vllm|serve|m|--max-num-seqs|16k", "--max-num-seqs"},
        {"vllm|serve|m|--max-num-seqs|1.5", "--max-num-seqs"},
        {"vllm|serve|m|--max-num-seqs|", "--max-num-seqs"},
        {"vllm|serve|m|--max-num-seqs", "argument --max-num-seqs: expected one argument"},
        {"vllm|serve|m|-tp|two", "argument --tensor-parallel-size/-tp: invalid int value: 'two'"},
        {"vllm|serve|m|--max-num=5", "ambiguous option: --max-num=5 could match --max-num-active-seqs, "},
        {"vllm|serve|m|--max-num-seqs|--enforce-eager", "argument --max-num-seqs: expected one argument"},
        {"vllm|serve|m|--max-model-len|1.5K", "--max-model-len"},
        {"vllm|serve|m|--max-model-len|99999999999999999999", "--max-model-len"},
        {"vllm|serve|m|--gpu-memory-utilization|0,9", "--gpu-memory-utilization"},
        {"vllm|serve|m|--dtype|bf16", "argument --dtype: invalid choice: 'bf16' (choose from auto, bfloat16"},
        {"vllm|serve|m|--compilation-config|{", "argument --compilation-config: Invalid JSON"},
        {"vllm|serve|m|--speculative-config|[1]", "argument --speculative-config: Value [1]"},
        {"vllm|serve|m|--cudagraph-capture-sizes|1|x", "--cudagraph-capture-sizes"},
        {"vllm|serve|m|--compilation-config|{\"cudagraph_mode\":\"SOME\"}", "cudagraph_mode"},
        {"vllm|serve|m|--port|http", "argument --port: invalid int value: 'http'"},
        {"vllm|serve|m|extra|words", "unrecognized arguments: extra words"},
        {"vllm|serve|m|--max-model-length|8192", "unrecognized arguments: --max-model-length 8192"},
        {"vllm|serve|m|--enforce-eager|true", "unrecognized arguments: true"},
        {"model=m|max_num_seqs=abc", "--max-num-seqs"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(read_at(newest, wrong[i][0]), OOMSIGHT_OK);
        if (!serve.refusal.sentence || !strstr(serve.refusal.sentence, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], serve.refusal.sentence ? serve.refusal.sentence : "not refused");
    }
    READ(newest, "vllm|serve|m|--max-num-seqs|16");
    assert_null(serve.refusal.sentence);
}

static void the_first_thing_the_parser_stops_at_is_the_one_told(void **state)
{
    (void)state;
    READ(newest, "vllm|serve|m|--max-num-seqs|a|--dtype|b|extra");
    assert_string_equal(serve.refusal.flag, "--max-num-seqs");
    READ(newest, "vllm|serve|m|extra|--dtype|b"); /* strange words are told when all others are read */
    assert_string_equal(serve.refusal.flag, "--dtype");
}

static void an_unknown_flag_is_noted_with_the_nearest_spelling(void **state)
{
    (void)state;
    READ(newest,
         "vllm|serve|m|--max-num-seq|8|--tensor-paralel-size|2|--no-such-thing-at-all|--enforce-eager");
    const oos_given_flag *flag = given("--tensor-paralel-size");
    assert_int_equal(flag->effect, OOS_FLAG_UNKNOWN);
    assert_string_equal(flag->nearest, "--tensor-parallel-size");
    assert_string_equal(flag->value, "2");
    assert_null(given("--no-such-thing-at-all")->value);
    assert_int_equal(given("--no-such-thing-at-all")->effect, OOS_FLAG_UNKNOWN);
    assert_true(serve.enforce_eager.value);
    assert_false(serve.tensor_parallel_size.known);
    /* an unambiguous beginning is what the engine's parser takes too */
    assert_true(serve.max_num_seqs.value == 8);
    READ(newest, "vllm|serve|--no-such-thing-at-all|m");
    assert_string_equal(serve.model, "m");
    READ(newest, "vllm|serve|m|stray");
    assert_int_equal(given("stray")->effect, OOS_FLAG_UNKNOWN);
}

static void what_a_flag_means_for_memory_is_told(void **state)
{
    (void)state;
    READ(newest,
         "vllm|serve|m|--port|8000|--trust-remote-code|--enable-auto-tool-choice|--tool-call-parser|hermes|"
         "--mm-processor-cache-gb|8|--served-model-name|a|b|--max-loras|2");
    assert_int_equal(given("--port")->effect, OOS_FLAG_NO_MEMORY);
    assert_int_equal(given("--trust-remote-code")->effect, OOS_FLAG_NO_MEMORY);
    assert_int_equal(given("--tool-call-parser")->effect, OOS_FLAG_NO_MEMORY);
    assert_int_equal(given("--mm-processor-cache-gb")->effect, OOS_FLAG_UNMODELLED);
    assert_int_equal(given("--max-loras")->effect, OOS_FLAG_MODELLED);
    assert_string_equal(given("--served-model-name")->value, "a b");
    assert_string_equal(serve.model, "m");
    /* the default, said aloud, changes nothing */
    READ(newest, "vllm|serve|m|--mm-processor-cache-gb|4");
    assert_int_equal(given("--mm-processor-cache-gb")->effect, OOS_FLAG_NO_MEMORY);
}

static void a_flag_of_another_version_is_taken_with_a_note(void **state)
{
    (void)state;
    READ(newest, "vllm|serve|m|--swap-space|4");
    assert_non_null(strstr(given("--swap-space")->note, "not in 0.32.0, last in 0."));
    assert_true(serve.swap_space.value == 4);
    READ(old, "vllm|serve|m|--performance-mode|throughput");
    assert_non_null(strstr(given("--performance-mode")->note, "not in 0.11.0, new in 0."));
    READ(old, "vllm|serve|m|--swap-space|4");
    assert_null(given("--swap-space")->note);
}

static void compilation_settings_come_from_json_dots_and_short_forms(void **state)
{
    (void)state;
    READ(newest,
         "vllm|serve|m|--compilation-config|{\"cudagraph_capture_sizes\": [1, 2, 4], \"cudagraph_mode\": "
         "\"full_decode_only\", \"mode\": 3, \"max_cudagraph_capture_size\": 4}");
    assert_true(serve.compilation.capture_sizes_given && serve.compilation.capture_size_count == 3);
    assert_true(serve.compilation.capture_sizes[2] == 4);
    assert_string_equal(serve.compilation.cudagraph_mode, "FULL_DECODE_ONLY");
    assert_true(serve.compilation.level.value == 3);
    assert_true(serve.compilation.max_capture_size.value == 4);

    READ(newest, "vllm|serve|m|--compilation-config.max_cudagraph_capture_size|64|-cc.cudagraph_mode=NONE|"
                 "--compilation_config.mode=VLLM_COMPILE");
    assert_true(serve.compilation.max_capture_size.value == 64);
    assert_string_equal(serve.compilation.cudagraph_mode, "NONE");
    assert_true(serve.compilation.level.value == 3);
    assert_int_equal(given("--compilation-config.max_cudagraph_capture_size")->effect, OOS_FLAG_MODELLED);

    READ(newest,
         "vllm|serve|m|--compilation-config.cudagraph_capture_sizes+|1,2|-cc.cudagraph_capture_sizes|[4]");
    assert_int_equal(serve.compilation.capture_size_count, 3);
    assert_true(serve.compilation.capture_sizes[1] == 2 && serve.compilation.capture_sizes[2] == 4);

    /* -O is the compilation level first, a level of its own later */
    static const char *const forms[] = {"vllm|serve|m|-O3", "vllm|serve|m|-O|3", "vllm|serve|m|-O=3"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        READ(old, forms[i]);
        assert_true(serve.compilation.level.value == 3 && !serve.compilation.optimization_level.known);
        READ(newest, forms[i]);
        assert_true(serve.compilation.optimization_level.value == 3 && !serve.compilation.level.known);
    }
    READ(old, "vllm|serve|m|-O.level=3|-O.cudagraph_mode=NONE");
    assert_true(serve.compilation.level.value == 3);
    assert_string_equal(serve.compilation.cudagraph_mode, "NONE");
    READ(old, "vllm|serve|m|-O|{\"level\": 2, \"full_cuda_graph\": true}");
    assert_true(serve.compilation.level.value == 2);
    assert_string_equal(serve.compilation.cudagraph_mode, "FULL");
    READ(old, "vllm|serve|m|--compilation-config|3");
    assert_true(serve.compilation.level.value == 3);
    READ(old, "vllm|serve|m|--cuda-graph-sizes|256");
    assert_true(serve.compilation.max_capture_size.value == 256 && !serve.compilation.capture_sizes_given);
    READ(old, "vllm|serve|m|--cuda-graph-sizes|1|2|4|8|--enforce-eager");
    assert_int_equal(serve.compilation.capture_size_count, 4);
    READ(newest, "vllm|serve|m|--compilation-config|{\"cudagraph_capture_sizes\": []}");
    assert_true(serve.compilation.capture_sizes_given && serve.compilation.capture_size_count == 0);
    READ(newest, "vllm|serve|m|--cudagraph-capture-sizes|1|8|--max-cudagraph-capture-size|16");
    assert_int_equal(serve.compilation.capture_size_count, 2);
    assert_true(serve.compilation.max_capture_size.value == 16);
}

static void dotted_keys_replace_the_json_of_the_same_flag(void **state)
{
    (void)state;
    READ(newest, "vllm|serve|m|--hf-overrides.b|2|--hf-overrides|{\"a\": 1}");
    assert_string_equal(serve.hf_overrides_json, "{\"b\":2}");
    READ(newest, "vllm|serve|m|--hf-overrides.a.b|1|--hf-overrides.a.c|x");
    assert_string_equal(serve.hf_overrides_json, "{\"a\":{\"b\":1,\"c\":\"x\"}}");
    READ(newest, "vllm|serve|m|--hf-overrides|{\"max_position_embeddings\": 65536}");
    assert_string_equal(serve.hf_overrides_json, "{\"max_position_embeddings\":65536}");
}

static void a_version_without_dotted_keys_is_told_so(void **state)
{
    (void)state;
    READ(OOS_VERSION(0, 8, 5), "vllm|serve|m|--hf-overrides.a|1");
    assert_non_null(strstr(given("--hf-overrides.a")->note, "JSON only"));
    READ(newest, "vllm|serve|m|--hf-overrides.a|1");
    assert_null(given("--hf-overrides.a")->note);
}

static void rope_flags_are_overrides_of_the_config(void **state)
{
    (void)state;
    READ(old, "vllm|serve|m|--rope-scaling|{\"rope_type\":\"yarn\",\"factor\":4.0}|--rope-theta|1000000|--hf-"
              "overrides|"
              "{\"a\":1}");
    assert_non_null(strstr(serve.hf_overrides_json, "\"factor\":4.0"));
    assert_non_null(strstr(serve.hf_overrides_json, "\"rope_theta\":1000000.0"));
    assert_non_null(strstr(serve.hf_overrides_json, "\"a\":1"));
}

static void speculative_decoding_is_read_from_every_spelling(void **state)
{
    (void)state;
    READ(newest, "vllm|serve|m|--speculative-config|{\"method\":\"mtp\",\"num_speculative_tokens\":3}");
    assert_true(serve.speculative.present && serve.speculative.tokens.value == 3);
    assert_string_equal(serve.speculative.method, "mtp");
    assert_null(serve.speculative.model);
    READ(newest,
         "vllm|serve|m|-sc={\"method\": \"eagle\", \"model\": \"d\"}"); /* a space behind the equal sign */
    assert_string_equal(serve.speculative.method, "eagle");
    READ(newest, "vllm|serve|m|-sc.method=eagle3|-sc.model=org/draft|-sc.num_speculative_tokens=2|"
                 "-sc.draft_tensor_parallel_size=1");
    assert_string_equal(serve.speculative.model, "org/draft");
    assert_true(serve.speculative.draft_tensor_parallel_size.value == 1);
    READ(newest, "vllm|serve|m|--spec-method|mtp|--spec-tokens|2");
    assert_true(serve.speculative.present && serve.speculative.tokens.value == 2);
    READ(
        newest,
        "model=m|speculative_config={'method': 'ngram', 'num_speculative_tokens': 5, 'x': None, 'y': True,}");
    assert_string_equal(serve.speculative.method, "ngram");
    assert_true(serve.speculative.tokens.value == 5);
}

static void limits_of_pictures_are_read_from_json_and_pairs(void **state)
{
    (void)state;
    READ(newest,
         "vllm|serve|m|--limit-mm-per-prompt|{\"image\": 4, \"video\": {\"count\": 0, \"num_frames\": 8}}");
    assert_true(serve.mm_limits_given && !serve.mm_all_zero);
    assert_true(serve.mm_images.value == 4 && serve.mm_videos.known && serve.mm_videos.value == 0);
    assert_false(serve.mm_audios.known);
    READ(newest, "vllm|serve|m|--mm-processor-kwargs|{\"max_pixels\": 1003520}");
    assert_int_equal(serve.mm_max_pixels.value, 1003520);
    READ(newest, "vllm|serve|m|--mm-processor-kwargs|{\"size\": {\"longest_edge\": 5}}");
    assert_int_equal(serve.mm_max_pixels.value, 5);
    READ(newest, "vllm|serve|m|--limit-mm-per-prompt|image=0,video=0"); /* JSON only, since 0.10 */
    assert_non_null(serve.refusal.sentence);
    READ(OOS_VERSION(0, 8, 0), "vllm|serve|m|--limit-mm-per-prompt|image=0,video=0");
    assert_true(serve.mm_all_zero && serve.mm_images.known && serve.mm_images.value == 0);
    READ(newest, "vllm|serve|m|--limit-mm-per-prompt.image|0");
    assert_true(serve.mm_all_zero);
    READ(newest, "LLM(model='m', limit_mm_per_prompt={'image': 2, \"audio\": 1})");
    assert_true(serve.mm_images.value == 2 && serve.mm_audios.value == 1);
}

static void python_values_are_python_values(void **state)
{
    (void)state;
    READ(newest,
         "LLM(model=\"org/m, one\", enforce_eager=True, enable_prefix_caching=False, max_model_len=None, "
         "gpu_memory_utilization=.9, quantization='awq', hf_overrides={'a': (1, 2), 'b': \"it's\"})");
    assert_string_equal(serve.model, "org/m, one");
    assert_true(serve.enforce_eager.value);
    assert_true(serve.enable_prefix_caching.known && !serve.enable_prefix_caching.value);
    assert_false(serve.max_model_len.known);
    assert_true(serve.gpu_memory_utilization.value == 0.9);
    assert_string_equal(serve.quantization, "awq");
    assert_string_equal(serve.hf_overrides_json, "{\"a\":[1,2],\"b\":\"it's\"}");
    READ(newest, "LLM(model='m', dtype=torch.bfloat16, compilation_config=3)");
    assert_string_equal(serve.dtype, "bfloat16");
    assert_true(serve.compilation.level.value == 3);
    READ(newest, "model=m|tensor_parallel_sise=4");
    assert_string_equal(given("tensor_parallel_sise")->nearest, "--tensor-parallel-size");
}

static const char *yaml_file(const char *text)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/oos_serve_%d.yaml", (int)getpid());
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    return path;
}

static oomsight_status read_config(oos_version version, const char *before, const char *yaml,
                                   const char *after)
{
    char words[512];
    const char *path = yaml_file(yaml);
    snprintf(words, sizeof words, "vllm|serve%s|--config|%s%s", before, path, after);
    oomsight_status const status = read_at(version, words);
    unlink(path);
    return status;
}

static void a_config_file_stands_before_the_command_line(void **state)
{
    (void)state;
    const char *yaml =
        "# a comment\nmodel: x\nmax-model-len: 16k\ntensor_parallel_size: 2\nenforce-eager: true\n"
        "quantization: null\ncompilation-config:\n  cudagraph_mode: NONE\n  max_cudagraph_capture_size: 8\n"
        "served-model-name: [a, b]\ngpu-memory-utilization: 0.85\nport: 8000\n";
    assert_int_equal(read_config(newest, "", yaml, ""), OOMSIGHT_OK);
    assert_string_equal(serve.model, "x");
    assert_true(serve.max_model_len.value == 16000);
    assert_true(serve.tensor_parallel_size.value == 2);
    assert_true(serve.enforce_eager.value);
    assert_null(serve.quantization);
    assert_string_equal(serve.compilation.cudagraph_mode, "NONE");
    assert_true(serve.compilation.max_capture_size.value == 8);
    assert_true(serve.gpu_memory_utilization.value == 0.85);
    assert_string_equal(given("--served-model-name")->value, "a b");

    assert_int_equal(read_config(newest, "|m", "max-num-seqs: many\nmax-num-seqs: 7\n", ""), OOMSIGHT_OK);
    assert_true(serve.max_num_seqs.value == 7);
    assert_int_equal(read_config(newest, "|m|--max-model-len|9", yaml, "|-tp|4"), OOMSIGHT_OK);
    assert_string_equal(serve.model, "m");
    assert_true(serve.max_model_len.value == 9 && serve.tensor_parallel_size.value == 4);
}

static void what_the_engine_drops_from_a_config_file_is_said(void **state)
{
    (void)state;
    assert_int_equal(read_config(newest, "|m", "enable-prefix-caching: false\n", ""), OOMSIGHT_OK);
    assert_false(serve.enable_prefix_caching.known);
    assert_non_null(strstr(given("--enable-prefix-caching")->note, "no-enable-prefix-caching: true"));
    assert_int_equal(read_config(newest, "|m", "no-enable-prefix-caching: true\n", ""), OOMSIGHT_OK);
    assert_true(serve.enable_prefix_caching.known && !serve.enable_prefix_caching.value);
    READ(newest, "vllm|serve|m|--config=/nowhere.yaml"); /* the engine does not read this form either */
}

static void a_config_file_that_cannot_be_read_says_where(void **state)
{
    (void)state;
    assert_int_equal(read_at(newest, "vllm|serve|m|--config|/nowhere/x.yaml"), OOMSIGHT_NOT_FOUND);
    assert_string_equal(error.path, "/nowhere/x.yaml");
    assert_int_equal(read_at(newest, "vllm|serve|m|--config|/nowhere/x.json"), OOMSIGHT_USAGE);
    assert_int_equal(read_at(newest, "vllm|serve|m|--config"), OOMSIGHT_USAGE);
    assert_int_equal(read_config(newest, "|m", "a: [1\nb: 2", ""), OOMSIGHT_MALFORMED);
    assert_true(error.line > 0);
    assert_int_equal(read_config(newest, "|m", "- a\n- b\n", ""), OOMSIGHT_MALFORMED);
    assert_int_equal(read_config(newest, "|m", "max-num-seqs: many\n", ""), OOMSIGHT_OK);
    assert_non_null(serve.refusal.sentence);
    assert_int_equal(read_config(newest, "|m", "", ""), OOMSIGHT_OK);
    char deep[2048];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(read_config(newest, "|m", deep, ""), OOMSIGHT_MALFORMED);
    /* aliases that unfold without end are stopped */
    char bomb[1024] = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
    for (char c = 'b'; c < 'j'; c++) {
        char line[96];
        snprintf(line, sizeof line, "%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c - 1, c - 1,
                 c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1);
        strcat(bomb, line);
    }
    assert_int_equal(read_config(newest, "|m", bomb, ""), OOMSIGHT_MALFORMED);
}

static void the_benchmarks_own_flags_are_not_called_unknown(void **state)
{
    (void)state;
    READ(newest,
         "vllm|bench|throughput|--model|m|--input-len|128|--output-len|64|--num-prompts|10|--max-num-seqs|4");
    assert_int_equal(given("--input-len")->effect, OOS_FLAG_NO_MEMORY);
    assert_true(serve.max_num_seqs.value == 4);
    READ(newest, "vllm|bench|latency|--model|m");
    assert_true(serve.enable_prefix_caching.known && !serve.enable_prefix_caching.value);
}

static void the_program_can_be_pasted_back_into_a_shell(void **state)
{
    (void)state;
    READ(newest, "A=1|vllm|serve|/models/it's here|--port|1");
    assert_string_equal(serve.program, "A=1 vllm serve '/models/it'\\''s here'");
}

static void ten_flags_are_read_in_a_few_microseconds(void **state)
{
    (void)state;
    static const char *const words[] = {"vllm",
                                        "serve",
                                        "Qwen/Qwen3-8B",
                                        "--tensor-parallel-size",
                                        "4",
                                        "--max-model-len",
                                        "32768",
                                        "--gpu-memory-utilization",
                                        "0.92",
                                        "--max-num-seqs",
                                        "64",
                                        "--max-num-batched-tokens",
                                        "8192",
                                        "--kv-cache-dtype",
                                        "fp8",
                                        "--enforce-eager",
                                        "--dtype",
                                        "bfloat16",
                                        "--port",
                                        "8000",
                                        "--block-size",
                                        "16",
                                        "--enable-lora"};
    oos_arena *own = oos_arena_create(1 << 16);
    double best = 1e9;
    for (int round = 0; round < 50; round++) {
        struct timespec before, after;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        for (int i = 0; i < 200; i++) {
            oos_arena_reset(own);
            assert_int_equal(oos_serve_read_as(&oos_vllm_dialect, own, words, sizeof words / sizeof *words,
                                               &table, newest, &serve, &env, NULL),
                             OOMSIGHT_OK);
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        double const us =
            ((double)(after.tv_sec - before.tv_sec) * 1e6 + (double)(after.tv_nsec - before.tv_nsec) / 1e3) /
            200;
        if (us < best) best = us;
    }
    print_message("a command of ten flags: %.2f us\n", best);
    assert_true(!clocks_decide() || best < 20);
    oos_arena_free(own);
}

static void a_flag_left_out_is_as_if_it_had_never_been_written(void **state)
{
    (void)state;
    /* three mistakes: with the first one gone the next is told */
    READ(newest, "vllm|serve|m|--max-num-seqs|many|--enable-lora|true|--no-such-flag|7|--max-model-len|4k");
    assert_string_equal(serve.refusal.flag, "--max-num-seqs");
    assert_true(oos_serve_leave_out(arena, &serve, "--max-num-seqs"));
    assert_string_equal(serve.refusal.sentence, "unrecognized arguments: --no-such-flag 7");
    assert_true(oos_serve_leave_out(arena, &serve, serve.refusal.flag));
    assert_string_equal(serve.refusal.flag, "--enable-lora");
    assert_true(oos_serve_leave_out(arena, &serve, "--enable-lora"));
    assert_null(serve.refusal.sentence);
    assert_string_equal(serve.model, "m");
    assert_int_equal(serve.max_model_len.value, 4000);
    assert_int_equal(serve.flag_count, 1);

    /* every spelling of it goes, and what it had turned off comes back */
    READ(newest, "vllm|serve|m|-cc.mode|0|--compilation-config|{\"mode\": 3}|--no-enable-prefix-caching");
    assert_true(oos_serve_leave_out(arena, &serve, "--compilation-config"));
    assert_true(oos_serve_leave_out(arena, &serve, "--enable-prefix-caching"));
    assert_false(serve.compilation.level.known);
    assert_false(serve.enable_prefix_caching.known);
    assert_int_equal(serve.flag_count, 0);

    /* a flag without its value, and one that had swallowed the model */
    READ(newest, "vllm|serve|m|--max-num-seqs|--enforce-eager");
    assert_true(oos_serve_leave_out(arena, &serve, "--max-num-seqs"));
    assert_null(serve.refusal.sentence);
    READ(newest, "vllm|serve|--no-such-flag|m");
    assert_true(oos_serve_leave_out(arena, &serve, serve.refusal.flag));
    assert_null(serve.refusal.sentence);
    assert_string_equal(serve.model, "m");
}

static void a_number_set_is_the_last_word(void **state)
{
    (void)state;
    READ(newest, "vllm|serve|m|--max-model-len|auto|-tp|4");
    assert_true(oos_serve_set_u64(arena, &serve, "--max-model-len", 2048));
    assert_int_equal(serve.max_model_len.value, 2048);
    assert_false(serve.max_model_len_auto);
    assert_int_equal(serve.tensor_parallel_size.value, 4);
    READ(newest, "LLM(model='m', max_num_seqs=4)");
    assert_true(oos_serve_set_u64(arena, &serve, "--max-num-seqs", 8));
    assert_int_equal(serve.max_num_seqs.value, 8);
    assert_true(oos_serve_leave_out(arena, &serve, "--max-num-seqs"));
    assert_false(serve.max_num_seqs.known);
}

static size_t fields_set(void)
{
    size_t count = 0;
#define KNOWN(name, flag) count += serve.name.known;
#define U64 KNOWN
#define F64 KNOWN
#define YES KNOWN
#define STR(name, flag) count += serve.name != NULL;
#include "engines/vllm/flags.def"
#undef KNOWN
#undef U64
#undef F64
#undef YES
#undef STR
    return count;
}

/* The flag as a keyword alone: its own field is filled, and no other. */
static void fill(const char *name, const char *flag, const char *value)
{
    char words[128], spelling[96];
    snprintf(spelling, sizeof spelling, "--%s", name);
    for (char *at = spelling; *at; at++)
        if (*at == '_') *at = '-';
    assert_string_equal(flag, spelling);
    assert_non_null(oos_flags_find(&table, oos_view_of(flag), newest).record);
    snprintf(words, sizeof words, "LLM(model='m', %s=%s)", name, value);
    READ(newest, words);
    assert_int_equal(fields_set(), 1);
}

static void every_flag_of_the_table_fills_the_field_of_its_name(void **state)
{
    (void)state;
    READ(newest, "LLM(model='m')");
    assert_int_equal(fields_set(), 0);
#define FILL(name, flag, value, holds)                                                                       \
    fill(#name, flag, value);                                                                                \
    assert_true(holds);                                                                                      \
    assert_true(oos_serve_leave_out(arena, &serve, flag));                                                   \
    assert_int_equal(fields_set(), 0);
#define U64(name, flag) FILL(name, flag, "3", serve.name.value == 3)
#define F64(name, flag) FILL(name, flag, "0.5", serve.name.value == 0.5)
#define YES(name, flag) FILL(name, flag, "True", serve.name.value)
#define STR(name, flag) FILL(name, flag, "'word'", strcmp(serve.name, "word") == 0)
#include "engines/vllm/flags.def"
#undef FILL
#undef U64
#undef F64
#undef YES
#undef STR
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(flags_are_typed_and_the_rest_stays_unset),
        CASE(the_last_of_two_equal_flags_wins),
        CASE(every_way_of_starting_the_engine_is_understood),
        CASE(other_commands_are_refused_in_plain_words),
        CASE(words_before_the_command_are_environment),
        CASE(lengths_are_read_as_people_write_them),
        CASE(a_value_the_engine_cannot_read_is_refused_with_its_flag),
        CASE(the_first_thing_the_parser_stops_at_is_the_one_told),
        CASE(an_unknown_flag_is_noted_with_the_nearest_spelling),
        CASE(what_a_flag_means_for_memory_is_told),
        CASE(a_flag_of_another_version_is_taken_with_a_note),
        CASE(compilation_settings_come_from_json_dots_and_short_forms),
        CASE(dotted_keys_replace_the_json_of_the_same_flag),
        CASE(a_version_without_dotted_keys_is_told_so),
        CASE(rope_flags_are_overrides_of_the_config),
        CASE(speculative_decoding_is_read_from_every_spelling),
        CASE(limits_of_pictures_are_read_from_json_and_pairs),
        CASE(python_values_are_python_values),
        CASE(a_config_file_stands_before_the_command_line),
        CASE(what_the_engine_drops_from_a_config_file_is_said),
        CASE(a_config_file_that_cannot_be_read_says_where),
        CASE(the_benchmarks_own_flags_are_not_called_unknown),
        CASE(the_program_can_be_pasted_back_into_a_shell),
        CASE(a_flag_left_out_is_as_if_it_had_never_been_written),
        CASE(a_number_set_is_the_last_word),
        CASE(every_flag_of_the_table_fills_the_field_of_its_name),
        CASE(ten_flags_are_read_in_a_few_microseconds),
    };
    return cmocka_run_group_tests(tests, load, unload);
}

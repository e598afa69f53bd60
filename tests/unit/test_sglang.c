/* SGLang as a second engine: which command is its, what it resolves by the memory of the device, and what its start holds. The figures of
 * the engine are those that ServerArgs of 0.5.23 resolved and its log printed. */
#include "api/api.h"
#include "engines/sglang/sglang.h"
#include "oomsight/oomsight.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static oomsight_data *data;
static char llama[512], moe[512], latent[512], sliding[512], hybrid[512];

static int open_data(void **state)
{
    (void)state;
    const char *root = getenv("OOMSIGHT_FIXTURES");
    snprintf(llama, sizeof llama, "%s/models/small-llama", root);
    snprintf(moe, sizeof moe, "%s/models/small-moe", root);
    snprintf(latent, sizeof latent, "%s/models/small-latent", root);
    snprintf(sliding, sizeof sliding, "%s/models/small-sliding", root);
    snprintf(hybrid, sizeof hybrid, "%s/models/small-hybrid", root);
    return oomsight_data_open(NULL, &data, NULL) == OOMSIGHT_OK ? 0 : -1;
}

static int close_data(void **state)
{
    (void)state;
    oomsight_data_close(data);
    return 0;
}

/* A command on a device of `mib`, of which `used` bytes are held by others. */
static oomsight_plan *plan_of(const char *const *words, size_t count, uint64_t mib, uint64_t used)
{
    oomsight_plan_params params = OOMSIGHT_PLAN_PARAMS_INIT;
    oomsight_plan *plan = NULL;
    params.data = data;
    params.command = words;
    params.command_count = count;
    params.gpu_total_bytes = mib << 20;
    params.compute_capability = "8.9";
    params.gpu_used_bytes = used;
    params.gpu_used_known = 1;
    assert_int_equal(oomsight_plan_create(&params, &plan, NULL), OOMSIGHT_OK);
    return plan;
}
#define PLAN(mib, used, ...)                                                                                 \
    plan_of((const char *const[]){__VA_ARGS__}, sizeof(const char *const[]){__VA_ARGS__} / sizeof(char *),   \
            mib, used)

static void the_words_say_which_engine_a_command_starts(void **state)
{
    (void)state;
    const char *const served[] = {"HF_TOKEN=x", "/opt/bin/sglang", "serve", "m"};
    const char *const module[] = {"python3", "-m", "sglang.launch_server", "--model-path", "m"};
    const char *const image[] = {"docker",  "run", "lmsysorg/sglang:v0.5.23",
                                 "python3", "-m",  "sglang.launch_server"};
    const char *const other[] = {"vllm", "serve", "m"};
    const char *const none[] = {"LLM(model='m')"};
    assert_string_equal(oos_engine_words_of(served, 4)->name, "sglang");
    assert_string_equal(oos_engine_words_of(module, 5)->name, "sglang");
    assert_string_equal(oos_engine_words_of(image, 6)->name, "sglang");
    assert_string_equal(oos_engine_words_of(other, 3)->name, "vllm");
    assert_null(oos_engine_words_of(none, 1));
}

static const sglang_rules newest = {.decode_largest = true,
                                    .drafted_64 = true,
                                    .prefill_first_fine = 576,
                                    .prefill_step_fine = 64,
                                    .prefill_step_coarse = 256};

static void sizes_of_graphs_are_those_of_the_engine(void **state)
{
    (void)state;
    uint64_t list[16];
    assert_int_equal(oos_sglang_decode_sizes(&newest, 32, false, list, 16), 8); /* 1 2 4 8 12 16 24 32 */
    assert_int_equal(list[7], 32);
    assert_int_equal(oos_sglang_decode_sizes(&newest, 10, false, list, 16), 5); /* 1 2 4 8 10 */
    assert_int_equal(oos_sglang_decode_sizes(&newest, 256, false, NULL, 0), 36);
    assert_int_equal(oos_sglang_decode_sizes(&newest, 512, false, NULL, 0), 52);
    assert_int_equal(oos_sglang_prefill_sizes(&newest, 4096), 50);
    assert_int_equal(oos_sglang_prefill_sizes(&newest, 8192), 58);
    sglang_rules const before = {
        .prefill_first_fine = 640, .prefill_step_fine = 128, .prefill_step_coarse = 128};
    assert_int_equal(oos_sglang_decode_sizes(&before, 10, false, list, 16), 4); /* 1 2 4 8 */
    assert_int_equal(oos_sglang_decode_sizes(&before, 64, true, NULL, 0), 26);  /* 56 60, and no 64 */
    assert_int_equal(oos_sglang_prefill_sizes(&before, 4096), 58);              /* 30 to 512, then by 128 */
}

static double own_setting(const char *text, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *at = strstr(text, key);
    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

static void plan_text(uint64_t mib, const char *model, const char *flags, char **ret_text)
{
    char line[256];
    const char *words[16] = {"sglang", "serve", model};
    size_t count = 3;
    snprintf(line, sizeof line, "%s", flags);
    for (char *rest, *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    oomsight_plan *plan = plan_of(words, count, mib, 0);
    oomsight_render_params render = OOMSIGHT_RENDER_PARAMS_INIT;
    render.format = OOMSIGHT_FORMAT_JSON;
    assert_int_equal(oomsight_plan_render(plan, &render, ret_text, NULL), OOMSIGHT_OK);
    oomsight_plan_free(plan);
}

/* Resolved by ServerArgs of 0.5.23 itself (tests/oracle/sglang_arguments.py): MiB of the device, model, flags; static fraction, tokens of a
 * chunk, largest decode batch that is captured. */
static void defaults_are_what_the_engine_resolves(void **state)
{
    (void)state;
    const struct {
        uint64_t mib;
        const char *model, *flags;
        double fraction, chunk, batch;
    } resolved[] = {
        {16384, llama, "", 0.752, 2048, 8},
        {16384, llama, "--tp 4", 0.729, 2048, 8},
        {16384, llama, "--disable-cuda-graph", 0.773, 2048, 8},
        {16384, llama, "--chunked-prefill-size 2048", 0.752, 2048, 8},
        {16384, llama, "--max-running-requests 16", 0.752, 2048, 8},
        {16384, llama, "--cuda-graph-max-bs-decode 64", 0.745, 2048, 64},
        {16384, latent, "", 0.679, 2048, 8},
        {16384, moe, "--tp 8 --ep-size 8", 0.697, 2048, 8},
        {16384, sliding, "", 0.752, 2048, 8},
        {24564, llama, "", 0.704, 4096, 48},
        {24564, llama, "--tp 4", 0.679, 4096, 160},
        {24564, llama, "--disable-cuda-graph", 0.724, 4096, 48},
        {24564, llama, "--chunked-prefill-size 2048", 0.831, 2048, 48},
        {24564, llama, "--max-running-requests 16", 0.706, 4096, 16},
        {24564, llama, "--cuda-graph-max-bs-decode 64", 0.702, 4096, 64},
        {24564, latent, "", 0.657, 4096, 48},
        {24564, moe, "--tp 8 --ep-size 8", 0.658, 4096, 160},
        {24564, sliding, "", 0.704, 4096, 48},
        {32607, llama, "", 0.777, 4096, 48},
        {32607, latent, "", 0.742, 4096, 48},
        {32607, sliding, "", 0.777, 4096, 48},
        {40960, llama, "", 0.823, 4096, 32},
        {40960, latent, "", 0.795, 4096, 32},
        {40960, sliding, "", 0.823, 4096, 32},
        {46068, llama, "", 0.843, 4096, 32},
        {46068, latent, "", 0.818, 4096, 32},
        {46068, sliding, "", 0.843, 4096, 32},
        {49140, llama, "", 0.853, 4096, 32},
        {49140, latent, "", 0.829, 4096, 32},
        {49140, sliding, "", 0.853, 4096, 32},
        {81559, llama, "", 0.83, 8192, 256},
        {81559, latent, "", 0.816, 8192, 256},
        {81559, sliding, "", 0.83, 8192, 256},
        {97887, llama, "", 0.858, 8192, 256},
        {97887, latent, "", 0.847, 8192, 256},
        {97887, sliding, "", 0.858, 8192, 256},
        {143771, llama, "", 0.903, 8192, 256},
        {143771, latent, "", 0.896, 8192, 256},
        {143771, sliding, "", 0.903, 8192, 256},
        {183359, llama, "", 0.854, 16384, 512},
        {183359, latent, "", 0.849, 16384, 512},
        {183359, sliding, "", 0.854, 16384, 512},
        {275040, llama, "", 0.902, 16384, 512},
        {275040, latent, "", 0.899, 16384, 512},
        {275040, sliding, "", 0.902, 16384, 512},
        {81559, llama, "--chunked-prefill-size -1", 0.685, -1, 256},
        {81559, llama, "--pp-size 2", 0.834, 8192, 256},
        {81559, llama, "--disable-prefill-cuda-graph", 0.835, 8192, 256},
        {81559, llama, "--disable-decode-cuda-graph", 0.836, 8192, 256},
        {81559, llama, "--max-total-tokens 1000", 0.832, 8192, 256},
        {81559, llama, "--page-size 64", 0.83, 8192, 256},
        {81559, llama, "--cuda-graph-bs-decode 1 2 4", 0.836, 8192, 4},
        {81559, llama, "--disable-cuda-graph-padding", 0.83, 8192, 256},
        {45457, llama, "", 0.841, 4096, 32}, /* printed in its log */
        {24564, latent, "--tp 2 --dp-size 2 --enable-dp-attention --disable-cuda-graph", 0.707, 2048, 48},
        {40960, latent, "--tp 2 --dp-size 2 --enable-dp-attention", 0.787, 2048,
         32}, /* 0.7875 is below a half */
    };
    for (size_t i = 0; i < sizeof resolved / sizeof *resolved; i++) {
        char *text = NULL;
        plan_text(resolved[i].mib, resolved[i].model, resolved[i].flags, &text);
        assert_true(fabs(own_setting(text, "mem_fraction_static") - resolved[i].fraction) < 1e-9);
        assert_true(fabs(own_setting(text, "chunked_prefill_size") - resolved[i].chunk) < 1e-9);
        assert_true(fabs(own_setting(text, "cuda_graph_max_bs_decode") - resolved[i].batch) < 1e-9);
        oomsight_text_free(text);
    }
}

/* The log: free 43.55 GB before loading, 2.36 GB loaded, 1,122,627 tokens. Given that free memory, tokens are within one thousandth:
 * the log's figures have two decimals, and the weights are counted, not measured. */
static void tokens_are_those_of_the_log_given_its_free_memory(void **state)
{
    (void)state;
    uint64_t const context = 450 << 20; /* of a device that is not listed and has this capability and size */
    uint64_t const free_bytes = (uint64_t)(43.55 * 0x1p30);
    oomsight_plan *plan =
        PLAN(45457, ((uint64_t)45457 << 20) - context - free_bytes, "sglang", "serve", llama);
    double const tokens = (double)oomsight_plan_kv_tokens(plan);
    assert_int_equal(oomsight_plan_verdict(plan), OOMSIGHT_VERDICT_FITS);
    assert_true(fabs(tokens / 1122627 - 1) < 0.001);
    oomsight_plan_free(plan);
}

/* What model runners of 0.5.23 had allocated, and what was free in PyTorch's segments beside it, when they sized their pool
 * (tests/oracle/sglang_beside.py). Beside the weights there are four small tensors, a block of 512 bytes each. */
static void weights_and_their_segments_are_those_of_starts(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double weights, cached;
    } seen[] = {{llama, 2506297344, 24963072 + 2048}};
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        char *text;
        plan_text(24564, seen[i].model, "--disable-cuda-graph", &text);
        assert_true(own_setting(text, "weights_bytes") == seen[i].weights);
        const char *sizing = strstr(text, "\"kv_sizing\""),
                   *row = sizing ? strstr(sizing, "cached by PyTorch") : NULL;
        assert_non_null(row);
        assert_true(own_setting(row, "bytes") == seen[i].cached);
        oomsight_text_free(text);
    }
}

static void weights_beyond_the_static_share_are_refused_in_the_engines_words(void **state)
{
    (void)state;
    oomsight_plan *plan = PLAN(40960, 0, "sglang", "serve", moe, "--mem-fraction-static", "0.6");
    assert_int_equal(oomsight_plan_verdict(plan), OOMSIGHT_VERDICT_REFUSED);
    assert_string_equal(oomsight_plan_phase(plan), "kv_sizing");
    assert_string_equal(oomsight_plan_cause(plan), "gmu_too_low");
    /* the smallest share at which the pool holds one whole request, not the largest that starts */
    const char *flags = oomsight_plan_best_flags(plan);
    assert_non_null(strstr(flags, "--mem-fraction-static 0.7"));
    oomsight_plan_free(plan);
}

/* 131,072 tokens fit at no share: the engine's own least comes first, and what holds the longest requests beside it. */
static void where_no_share_holds_a_request_the_smallest_step_is_offered(void **state)
{
    (void)state;
    oomsight_plan *plan = PLAN(8192, 0, "sglang", "serve", llama, "--mem-fraction-static", "0.2");
    assert_int_equal(oomsight_plan_verdict(plan), OOMSIGHT_VERDICT_REFUSED);
    assert_string_equal(oomsight_plan_best_flags(plan), "--mem-fraction-static 0.35");
    char *text = NULL;
    oomsight_render_params render = OOMSIGHT_RENDER_PARAMS_INIT;
    render.explain = 1;
    assert_int_equal(oomsight_plan_render(plan, &render, &text, NULL), OOMSIGHT_OK);
    assert_non_null(strstr(text, "Raise --mem-fraction-static above 0.31"));
    assert_non_null(strstr(text, "Longest context"));
    oomsight_text_free(text);
    oomsight_plan_free(plan);
}

/* The fields of a release as its log prints them, `changed` before them. */
static char *printed_args(oos_arena *arena, const oos_flag_table *flags, oos_version version,
                          const char *changed)
{
    oos_text text = {0};
    oos_text_put(&text, changed);
    for (size_t i = 0; i < flags->count; i++) {
        const oos_flag_record *record = &flags->list[i];
        if (record->since <= version && version <= record->until)
            oos_text_printf(&text, ", '%s': None", record->dest);
    }
    oos_text_put(&text, "}");
    char *copy = oos_arena_copy(arena, (oos_view){text.ptr, text.len});
    oos_text_free(&text);
    return copy;
}

static void join(const oos_logged_command *command, char *to, size_t capacity)
{
    size_t len = 0;
    for (size_t i = 0; i < command->count; i++)
        len += (size_t)snprintf(to + len, capacity - len, "%s%s", i ? " " : "", command->words[i]);
}

static void the_list_of_arguments_in_a_log_is_the_command(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(1 << 16);
    oos_flag_table flags;
    oos_logged_command command;
    char words[512];
    assert_int_equal(oos_flags_load(arena, NULL, "sglang", &flags, NULL), OOMSIGHT_OK);
    const char *changed =
        "{'model_path': 'org/model', 'api_key': 'x', 'tp_size': 2, 'mem_fraction_static': "
        "0.851, 'page_size': 1, 'disable_radix_cache': True, 'enable_torch_compile': True, "
        "'cuda_graph_max_bs_decode': 64, 'cuda_graph_config': {'decode': {'backend': 'full', "
        "'max_bs': 32, 'bs': [1, 2]}, 'prefill': {'backend': 'disabled', 'max_bs': None}}, "
        "'lora_paths': ['a', 'b=c']";
    static const oos_version versions[] = {OOS_VERSION(0, 5, 18), OOS_VERSION(0, 5, 20),
                                           OOS_VERSION(0, 5, 23)};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        const char *text = printed_args(arena, &flags, versions[i], changed);
        assert_true(oos_sglang_logged(arena, &flags, text, &command));
        assert_true(command.version == versions[i]);
        join(&command, words, sizeof words);
        assert_string_equal(words,
                            "sglang serve org/model --tp-size 2 --mem-fraction-static 0.851 --page-size 1 "
                            "--disable-radix-cache --enable-torch-compile --cuda-graph-max-bs-decode 32 "
                            "--cuda-graph-backend-prefill disabled --lora-paths a b=c");
    }
    /* another spelling of an older release, and what is none or is cut off */
    assert_true(oos_sglang_logged(
        arena, &flags, "ServerArgs(model_path='org/model', chunked_prefill_size=2048, tp_size=1)", &command));
    join(&command, words, sizeof words);
    assert_string_equal(words, "sglang serve org/model --chunked-prefill-size 2048");
    assert_true(command.version == 0);
    static const char *const none[] = {"",
                                       "{",
                                       "ServerArgs(",
                                       "{'model_path': 'org/model', 'tp_size': 2",
                                       "{'model_path': 'org",
                                       "{'tp_size': 2}",
                                       "x",
                                       "{'model_path': None'"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(oos_sglang_logged(arena, &flags, none[i], &command));
    oos_arena_free(arena);
}

#define REFUSES(sentence, ...)                                                                               \
    do {                                                                                                     \
        oomsight_plan *plan = PLAN(45457, 0, "sglang", "serve", __VA_ARGS__);                                \
        assert_int_equal(oomsight_plan_verdict(plan), OOMSIGHT_VERDICT_REFUSED);                             \
        assert_string_equal(oomsight_plan_phase(plan), "arguments");                                         \
        char *text = NULL;                                                                                   \
        oomsight_render_params render = {.size = sizeof render};                                             \
        assert_int_equal(oomsight_plan_render(plan, &render, &text, NULL), OOMSIGHT_OK);                     \
        assert_non_null(strstr(text, sentence));                                                             \
        oomsight_text_free(text);                                                                            \
        oomsight_plan_free(plan);                                                                            \
    } while (0)
#define TAKES(...)                                                                                           \
    do {                                                                                                     \
        oomsight_plan *plan = PLAN(45457, 0, __VA_ARGS__);                                                   \
        assert_int_not_equal(oomsight_plan_verdict(plan), OOMSIGHT_VERDICT_REFUSED);                         \
        oomsight_plan_free(plan);                                                                            \
    } while (0)

/* Each sentence is that of ServerArgs or ModelConfig of 0.5.23 for the same words. */
static void what_the_engine_refuses_is_refused_in_its_words(void **state)
{
    (void)state;
    REFUSES("greater than", llama, "--context-length", "10000000");
    REFUSES("mutually", llama, "--enable-hierarchical-cache", "--disable-radix-cache");
    REFUSES("divisible by", llama, "--chunked-prefill-size", "1000", "--page-size", "16");
    REFUSES("mutually", llama, "--enable-hierarchical-cache", "--disaggregation-mode", "decode");
    REFUSES("should be in range (0, 1.0]", llama, "--swa-full-tokens-ratio", "1.5");
    REFUSES("--tp-size/--tensor-parallel-size", llama, "--tp", "two");
    REFUSES("--cuda-graph-max-bs-decode", llama, "--cuda-graph-max-bs=160");
    REFUSES("cannot contain a colon", llama, "--served-model-name", "org/model:latest");
    REFUSES("When no initial", llama, "--enable-lora");
    REFUSES("must be non-negative", llama, "--schedule-conservativeness", "-1");
    REFUSES("Tokenizer worker num must >= 1", llama, "--tokenizer-worker-num", "0");
    REFUSES("assert cfg.tp_size % cfg.attn_dp_size", llama, "--tp", "4", "--dp", "8",
            "--enable-dp-attention");
    REFUSES("page_size(16) > 1 is unstable and produces", llama, "--speculative-algorithm", "NGRAM",
            "--page-size", "16");
    REFUSES("ngram speculative decoding does not support dp attention", llama, "--tp", "2", "--dp", "2",
            "--enable-dp-attention", "--speculative-algorithm", "NGRAM");
    TAKES("sglang", "serve", llama, "--context-length", "8192");
    TAKES("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1", "sglang", "serve", llama, "--context-length",
          "10000000");
    TAKES("sglang", "serve", llama, "--chunked-prefill-size", "1024", "--page-size", "16");
    TAKES("sglang", "serve", llama, "--enable-lora", "--max-lora-rank", "16", "--lora-target-modules",
          "q_proj");
    TAKES("sglang", "serve", llama, "--tp", "8", "--dp", "8", "--enable-dp-attention");
}

/* argparse's own: no underscores, no dotted keys, integers with suffixes of its own, lists word by word, the model first or by its flag. */
static void words_are_read_as_argparse_reads_them(void **state)
{
    (void)state;
    static const char *const numbers[] = {"auto", "1K", "1e3", "1.5", "1.5Ki", "", "x"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        REFUSES("Invalid integer value", llama, "--context-length", numbers[i]);
    REFUSES("unrecognized arguments: --mem_fraction_static 0.8", llama, "--mem_fraction_static", "0.8");
    REFUSES("unrecognized arguments: --preferred-sampling-params.n", llama, "--preferred-sampling-params.n",
            "1");
    REFUSES("invalid int value: 'x'", llama, "--cuda-graph-bs-decode", "1", "x");
    REFUSES("expected one argument", llama, "--schedule-conservativeness", "-1e3");
    REFUSES("required: --model-path/--model", "--tp", "2", llama);
    REFUSES("integer modulo by zero", llama, "--page-size", "0");
    REFUSES("divisible by number of nodes", llama, "--nnodes", "2");
    REFUSES("Memory pool size is too small", llama, "--context-length", "0");
    TAKES("sglang", "serve", llama, "--context-length", "4Ki", "--max-total-tokens", "20k");
    TAKES("sglang", "serve", llama, "--context-len", " 2_048 ", "--mem-frac=.8");
    TAKES("sglang", "serve", llama, "--model-path", llama, "--cuda-graph-bs-decode", "1", "2", "4");
}

static void a_longer_context_than_the_models_is_mended_by_the_models_own(void **state)
{
    (void)state;
    oomsight_plan *plan = PLAN(45457, 0, "sglang", "serve", llama, "--context-length", "10000000");
    assert_non_null(strstr(oomsight_plan_best_flags(plan), "--context-length 131072"));
    oomsight_plan_free(plan);
}

static void replicated_attention_takes_no_more_gpus_than_the_ranks(void **state)
{
    (void)state;
    char *text = NULL;
    plan_text(81559, llama, "--tp 8 --dp 8 --enable-dp-attention", &text);
    assert_null(strstr(text, "64 GPUs"));
    oomsight_text_free(text);
}

static void a_pool_that_holds_no_whole_request_is_said_and_mended(void **state)
{
    (void)state;
    char *text = NULL;
    plan_text(24564, llama, "--mem-fraction-static 0.2", &text);
    assert_non_null(strstr(text, "does not fit"));
    assert_non_null(strstr(text, "--mem-fraction-static 0."));
    oomsight_text_free(text);
}

static void roles_and_drafters_capture_what_the_engine_captures(void **state)
{
    (void)state;
    assert_int_equal(oos_sglang_decode_sizes(&newest, 256, true, NULL, 0), 51);
    assert_int_equal(oos_sglang_decode_sizes(&newest, 48, true, NULL, 0), 23);
    assert_int_equal(oos_sglang_decode_sizes(&newest, 0, false, NULL, 0), 1);
}

/* 22 bytes a logit, 200 requests and 128,256 words are 0.53 GiB; half the requests are half of it. */
static void requests_that_decode_have_their_logits_and_sampler(void **state)
{
    (void)state;
    double free_gib[2] = {0};
    for (int i = 0; i < 2; i++) {
        char *text = NULL;
        plan_text(22563, llama,
                  i ? "--max-running-requests 100 --disable-cuda-graph --mem-fraction-static 0.7"
                    : "--max-running-requests 200 --disable-cuda-graph --mem-fraction-static 0.7",
                  &text);
        const char *note = strstr(text, " GiB of the GPU stay free");
        assert_non_null(note);
        assert_non_null(strstr(text, i ? "100 requests" : "200 requests"));
        assert_non_null(strstr(text, "logits and sampler"));
        while (note[-1] != '"') note--;
        free_gib[i] = strtod(note, NULL);
        oomsight_text_free(text);
    }
    double const rows = 100 * 22.0 * 128256 / 0x1p30, table = 100 * 4.0 * (131072 + 4) / 0x1p30;
    assert_true(fabs(free_gib[1] - free_gib[0] - rows - table) < 0.02);
}

/* The engine itself, on this device: "Raise --mem-fraction-static above 0.661". */
static void the_least_share_is_the_one_the_engine_names(void **state)
{
    (void)state;
    char *text = NULL;
    plan_text(45457, moe, "--disable-cuda-graph --mem-fraction-static 0.6", &text);
    assert_non_null(strstr(text, "under --mem-fraction-static=0.6. Raise --mem-fraction-static above 0.661"));
    oomsight_text_free(text);
}

static void a_share_that_leaves_nothing_free_fails_where_the_request_table_is_taken(void **state)
{
    (void)state;
    oomsight_plan *plan = PLAN(45457, 0, "sglang", "serve", llama, "--mem-fraction-static", "0.99");
    assert_int_equal(oomsight_plan_verdict(plan), OOMSIGHT_VERDICT_FAILS);
    assert_string_equal(oomsight_plan_phase(plan), "kv_alloc");
    assert_true(oomsight_plan_fix_count(plan) > 0);
    oomsight_plan_free(plan);
}

static void half_of_a_cache_in_eight_bits_is_twice_the_tokens(void **state)
{
    (void)state;
    oomsight_plan *wide = PLAN(45457, 0, "sglang", "serve", latent);
    oomsight_plan *narrow = PLAN(45457, 0, "sglang", "serve", latent, "--kv-cache-dtype", "fp8_e4m3");
    uint64_t const tokens = oomsight_plan_kv_tokens(wide), twice = oomsight_plan_kv_tokens(narrow);
    assert_true(tokens > 0 && twice - 2 * tokens <= 1);
    oomsight_plan_free(wide);
    oomsight_plan_free(narrow);
}

static void sliding_layers_take_their_share_of_the_pool(void **state)
{
    (void)state;
    oomsight_plan *shared = PLAN(45457, 0, "sglang", "serve", sliding);
    oomsight_plan *whole = PLAN(45457, 0, "sglang", "serve", sliding, "--disable-hybrid-swa-memory");
    double const ratio = (double)oomsight_plan_kv_tokens(shared) / (double)oomsight_plan_kv_tokens(whole);
    assert_true(fabs(ratio - 2 / 1.8) < 1e-3); /* six of twelve layers keep eight tenths of the tokens */
    oomsight_plan_free(shared);
    oomsight_plan_free(whole);
}

/* A sliding model outside the engine's list keeps all tokens in all layers. */
static void the_list_of_sliding_pools_is_the_engines(void **state)
{
    (void)state;
    static const oos_attention attentions[] = {
        {.mixer = OOS_MIXER_FULL, .kv_heads = 8, .head_dim = 64, .head_dim_v = 64},
        {.mixer = OOS_MIXER_SLIDING, .kv_heads = 8, .head_dim = 64, .head_dim_v = 64, .window = 512}};
    static const oos_layer layers[] = {{.attention = 0}, {.attention = 1}};
    oos_model model = {.architecture = "Gemma2ForCausalLM",
                       .layers = layers,
                       .layer_count = 2,
                       .attentions = attentions,
                       .attention_count = 2};
    oos_arena *arena = oos_arena_create(1 << 12);
    oos_argument_facts *facts;
    assert_int_equal(oos_architectures_load(arena, NULL, "sglang", &facts, NULL), OOMSIGHT_OK);
    sglang_rules const rules = {.facts = facts, .sliding_pools = true};
    sglang_start const setup = {.model = &model,
                                .rules = &rules,
                                .tp = 1,
                                .attention_tp = 1,
                                .last_layer = 2,
                                .dtype = OOS_DTYPE_BF16};
    sglang_request const request = {.swa_ratio = 0.8, .page = 1};
    assert_int_equal(oos_sglang_pool_of(&request, &setup).full_bytes, 2 * 8 * 128 * 2);
    model.architecture = "Gemma4ForCausalLM";
    assert_int_equal(oos_sglang_pool_of(&request, &setup).full_bytes, 8 * 128 * 2);
    assert_int_equal(oos_sglang_pool_of(&request, &setup).sliding_bytes, 8 * 128 * 2);
    oos_arena_free(arena);
}

/* DeepSeek-V4-Flash: bytes of a token that a log of 2026-05 printed (H20, 15955.85), and tokens that the class of 0.5.23 puts into 64 GiB
 * (tests/oracle/exact_sglang.jsonl). */
static void compressed_layers_have_the_pool_of_the_release(void **state)
{
    (void)state;
    static const oos_attention attentions[] = {
        {.mixer = OOS_MIXER_MLA, .nope_dim = 448, .rope_dim = 64, .window = 128},
        {.mixer = OOS_MIXER_MLA,
         .nope_dim = 448,
         .rope_dim = 64,
         .window = 128,
         .compress_ratio = 4,
         .indexer_dim = 128},
        {.mixer = OOS_MIXER_MLA, .nope_dim = 448, .rope_dim = 64, .window = 128, .compress_ratio = 128}};
    enum { LAYERS = 43, FIRST = 1, SECOND, THIRD, FOURTH };
    oos_layer layers[LAYERS];
    for (uint32_t i = 0; i < LAYERS; i++) layers[i] = (oos_layer){.attention = i < 2 ? 0 : 1 + i % 2};
    oos_model const model = {.layers = layers,
                             .layer_count = LAYERS,
                             .attentions = attentions,
                             .attention_count = 3,
                             .mtp_layer_count = 1,
                             .mla = true};
    static const struct {
        uint64_t rule, requests, tokens;
        double cell;
        bool drafted, uniform, shared;
    } cases[] = {{FIRST, 0, 0, 15955.85, false, false, false},
                 {THIRD, 0, 0, 7705.45, false, false, false},
                 {FOURTH, 0, 9313536, 7086.75, false, false, false},
                 {FOURTH, 64, 9597696, 7086.75, false, false, false},
                 {FOURTH, 0, 7972864, 7939.19, true, false, false},
                 {FOURTH, 0, 10419456, 6334.60, false, true, false},
                 {FOURTH, 0, 6424064, 10274.25, false, false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sglang_rules const rules = {.compressed = cases[i].rule};
        sglang_start const setup = {
            .model = &model, .rules = &rules, .tp = 8, .attention_tp = 8, .kv_fp8 = true};
        sglang_request const request = {.drafter = cases[i].drafted ? "EAGLE" : NULL,
                                        .rows_uniform = cases[i].uniform,
                                        .requests =
                                            cases[i].requests ? oos_u64_of(cases[i].requests) : (oos_u64){0},
                                        .swa_given = cases[i].shared,
                                        .swa_ratio = cases[i].shared ? 0.2 : 0.8,
                                        .page = 1};
        sglang_pool const pool = oos_sglang_pool_of(&request, &setup);
        double const left = 64.0 * 0x1p30 - (double)pool.fixed_bytes;
        assert_null(pool.unread);
        assert_true(fabs(pool.cell - cases[i].cell) < 0.01);
        if (cases[i].tokens) assert_int_equal((uint64_t)(left / pool.cell) / 256 * 256, cases[i].tokens);
        assert_int_equal(oos_sglang_page_of(&request, &model), 256);
    }
    sglang_rules const before = {.compressed = 0};
    sglang_start const setup = {.model = &model, .rules = &before, .tp = 8, .attention_tp = 8};
    sglang_request const request = {.page = 1};
    assert_non_null(oos_sglang_pool_of(&request, &setup).unread);
}

/* Slots of dry starts of 0.5.23 on a 4090 (tests/oracle/sglang_beside.py): what was left for both pools, by what the engine had free at its
 * second look, and what its log says that it made of it. */
static void states_have_a_share_of_the_pool(void **state)
{
    (void)state;
    static const struct {
        const char *architecture;
        oos_attention attention;
        uint64_t layers, second_look, slots, running, tokens, cell;
    } starts[] = {
        {"NemotronHForCausalLM",
         {.mixer = OOS_MIXER_MAMBA2,
          .conv_kernel = 4,
          .conv_dim = 12288,
          .state_heads = 128,
          .state_head_dim = 80,
          .state_size = 128,
          .groups = 8},
         1,
         21496332288,
         1303,
         260,
         1883391,
         4096},
        {"Qwen3NextForCausalLM",
         {.mixer = OOS_MIXER_GDN,
          .conv_kernel = 4,
          .conv_dim = 8192,
          .key_heads = 16,
          .value_heads = 32,
          .key_dim = 128,
          .value_dim_state = 128},
         3,
         22793420800,
         1171,
         234,
         4100542,
         2048},
        {"GraniteMoeHybridForCausalLM",
         {.mixer = OOS_MIXER_MAMBA2,
          .conv_kernel = 4,
          .conv_dim = 3328,
          .state_heads = 48,
          .state_head_dim = 64,
          .state_size = 128,
          .groups = 1},
         3,
         24035983360,
         1702,
         340,
         4418505,
         2048},
    };
    oos_arena *arena = oos_arena_create(1 << 12);
    oos_argument_facts *facts;
    assert_int_equal(oos_architectures_load(arena, NULL, "sglang", &facts, NULL), OOMSIGHT_OK);
    sglang_rules const rules = {.facts = facts,
                                .states_as_stated = true,
                                .states_tracked = true,
                                .states_padded = true,
                                .states_drafts_joint = true,
                                .states_flag_always = true,
                                .states_share_unasked = true};
    static const oos_layer layers[3];
    sglang_drafts const none = {0}, drafts = {.present = true, .tokens = 2};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        oos_model const model = {.architecture = starts[i].architecture,
                                 .layers = layers,
                                 .layer_count = starts[i].layers,
                                 .attentions = &starts[i].attention,
                                 .attention_count = 1};
        sglang_start const setup = {.model = &model,
                                    .rules = &rules,
                                    .tp = 1,
                                    .attention_tp = 1,
                                    .last_layer = model.layer_count,
                                    .dtype = OOS_DTYPE_BF16};
        sglang_request const request = {.state_share = 0.9, .page = 1};
        sglang_states states = oos_sglang_states_of(&request, &setup);
        assert_null(states.unread);
        double const left = (double)starts[i].second_look - 24815599616.0 * (1 - 0.724);
        double const rest = oos_sglang_states_take(&request, &rules, &none, &states, left);
        assert_int_equal(states.slots, starts[i].slots);
        assert_int_equal(states.slots / states.per_request, starts[i].running);
        assert_int_equal((uint64_t)(rest / (double)starts[i].cell), starts[i].tokens);
        sglang_request const asked[] = {
            {.state_share = 0.9, .page = 1, .states_most = {true, 200}},
            {.state_share = 0.9, .page = 1, .radix_off = true, .requests = {true, 64}},
            {.state_share = 0.9, .page = 1, .overlap_off = true},
            {.state_share = 0.9, .page = 1, .state_strategy = "extra_buffer_lazy"},
        };
        static const uint64_t slots[] = {200, 64, 0, 0}, each[] = {5, 1, 3, 4};
        for (size_t k = 0; k < 4; k++) {
            states = oos_sglang_states_of(&asked[k], &setup);
            assert_true(oos_sglang_states_take(&asked[k], &rules, &none, &states, left) < left);
            assert_int_equal(states.per_request, each[k]);
            assert_int_equal(states.slots, slots[k] ? slots[k] : starts[i].slots);
        }
        /* drafts take slots for each of their tokens */
        uint64_t const without = states.slots;
        (void)oos_sglang_states_take(&request, &rules, &drafts, &states, left);
        assert_true(states.slots < without && states.bytes > (states.slots + 1) * states.slot_bytes);
        sglang_request const half = {.state_share = 0.9, .page = 1, .state_dtype = "bfloat16"};
        assert_true(oos_sglang_states_of(&half, &setup).slot_bytes < states.slot_bytes * 11 / 20);
    }
    oos_arena_free(arena);
}

/* Shares and tokens of dry starts of 0.5.23 on a 4090 with small towers (tests/oracle/sglang_beside.py); `free` is what was there before loading. */
static void a_tower_makes_the_share_smaller(void **state)
{
    (void)state;
    static const char config[] =
        "{\"architectures\": [\"Qwen3VLForConditionalGeneration\"], \"model_type\": \"qwen3_vl\", "
        "\"tie_word_embeddings\": true,"
        "\"text_config\": {\"model_type\": \"qwen3_vl_text\", \"hidden_size\": 512, \"intermediate_size\": "
        "1024, \"num_hidden_layers\": 4,"
        "\"num_attention_heads\": 8, \"num_key_value_heads\": 4, \"head_dim\": 64, \"vocab_size\": 2000, "
        "\"max_position_embeddings\": 16384,"
        "\"dtype\": \"bfloat16\", \"tie_word_embeddings\": true},"
        "\"vision_config\": {\"model_type\": \"qwen3_vl\", \"depth\": 4, \"hidden_size\": %s, "
        "\"intermediate_size\": 512, \"num_heads\": 4,"
        "\"out_hidden_size\": 512, \"patch_size\": 16, \"spatial_merge_size\": 2, \"temporal_patch_size\": "
        "2, \"in_channels\": 3,"
        "\"num_position_embeddings\": 2304, \"deepstack_visual_indexes\": [0, 1, 2]}}";
    static const struct {
        const char *hidden, *flags;
        double fraction, tokens;
    } starts[] = {{"256", "--disable-cuda-graph", 0.72219, 4333529},
                  {"256", "--disable-prefill-cuda-graph --cuda-graph-max-bs-decode 8", 0.7211925, 4327485},
                  {"256", "--disable-cuda-graph --language-only", 0.724, 0},
                  {"1152", "--disable-cuda-graph", 0.724 * 0.95 * (1 - 0.1 * (1.265625 - 1)), 0}};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        char folder[] = "/tmp/oomsight-tower-XXXXXX", path[64], *text;
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/config.json", folder);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        for (const char *at = config; *at; at++)
            if (at[0] == '%' && at[1] == 's')
                fputs(starts[i].hidden, file), at++;
            else
                fputc(*at, file);
        fclose(file);
        plan_text(24564, folder, starts[i].flags, &text);
        assert_true(fabs(own_setting(text, "mem_fraction_static") - starts[i].fraction) < 1e-9);
        double const tokens = own_setting(text, "max_total_num_tokens");
        /* the device of this plan is 484 MiB larger than what the driver of a real one shows */
        assert_true(starts[i].tokens == 0 || fabs(tokens / starts[i].tokens - 1) < 0.03);
        oomsight_text_free(text);
        remove(path);
        remove(folder);
    }
}

static void what_was_not_read_is_no_answer(void **state)
{
    (void)state;
    oomsight_plan *drafts = PLAN(81920, 0, "sglang", "serve", llama, "--speculative-algorithm", "EAGLE");
    oomsight_plan *records =
        PLAN(81920, 0, "sglang", "serve", hybrid, "--enable-linear-replayssm", "--disable-radix-cache");
    assert_int_equal(oomsight_plan_verdict(drafts), OOMSIGHT_VERDICT_UNKNOWN);
    assert_int_equal(oomsight_plan_verdict(records), OOMSIGHT_VERDICT_UNKNOWN);
    assert_int_equal(oomsight_plan_kv_tokens(records), 0);
    oomsight_plan_free(drafts);
    oomsight_plan_free(records);
}

/* The installed engine's answer, and what becomes of a plan by it. */
static oomsight_plan *asked(const char *answer, const char *const *words, size_t count)
{
    char line[2048];
    int const len = snprintf(
        line, sizeof line,
        "{\"id\":1,\"schema\":\"oomsight.exact/1\",\"engine\":\"sglang\",\"version\":\"0.5.23\",%s}", answer);
    oomsight_exact const exact = {.answer = line, .answer_bytes = (size_t)len};
    oomsight_plan_params params = OOMSIGHT_PLAN_PARAMS_INIT;
    oomsight_plan *plan = NULL;
    params.data = data;
    params.command = words;
    params.command_count = count;
    params.gpu_total_bytes = (uint64_t)81559 << 20;
    params.compute_capability = "9.0";
    assert_int_equal(oomsight_plan_create_exact(&params, &exact, &plan, NULL), OOMSIGHT_OK);
    return plan;
}

static void the_installed_engine_has_the_last_word(void **state)
{
    (void)state;
    const char *const words[] = {"sglang", "serve", llama};
    oomsight_plan *alone = asked("\"verdict\":\"taken\",\"values\":{}", words, 3);
    oomsight_plan *told =
        asked("\"verdict\":\"taken\",\"values\":{\"gpu_memory_utilization\":0.5,\"page_size\":64,\"max_num_"
              "batched_tokens\":2048,"
              "\"capture_sizes\":[1,2],\"prefill_capture_sizes\":0,\"attention_backend\":\"fa3\",\"max_model_"
              "len\":1024},"
              "\"param_bytes\":[1073741824],\"cache\":{\"budget_bytes\":68719476736,\"tokens\":1048576}",
              words, 3);
    const oos_plan *is = &told->plan, *was = &alone->plan;
    assert_true(sglang_of(is)->static_fraction == 0.5 && sglang_of(was)->static_fraction > 0.5);
    assert_int_equal(sglang_of(is)->chunk_tokens, 2048);
    assert_int_equal(sglang_of(is)->capture_count, 2);
    assert_int_equal(sglang_of(is)->context_length, 1024);
    assert_int_equal(is->layout.block_tokens, 64);
    assert_int_equal(is->sizes.weights.param_bytes, 1073741824);
    assert_int_equal(is->kv.tokens, is->kv.available_bytes / 65536 / 64 * 64);
    assert_string_equal(is->serving.attention, "fa3");
    assert_true(is->exact->sized && !was->exact->sized);
    oomsight_plan_free(alone);
    oomsight_plan_free(told);

    const char *const wrong[] = {"sglang", "serve", llama, "--context-length", "1000000"};
    oomsight_plan *after_all = asked("\"verdict\":\"taken\",\"values\":{\"gpu_memory_utilization\":-3,\"page_"
                                     "size\":0,\"prefill_capture_sizes\":1e99}",
                                     wrong, 5);
    assert_null(after_all->plan.refusal.sentence);
    assert_true(after_all->plan.exact->taken_after_all && after_all->plan.layout.block_tokens == 1);
    oomsight_plan_free(after_all);
}

/* Sums by hand: hidden 2048, heads 32 and 8 of 64, MLP 8192, 16 layers, 128,256 words; two bytes each. */
static void slots_of_adapters_are_what_the_engine_allocates(void **state)
{
    (void)state;
    oomsight_plan *all = PLAN(24564, 0, "sglang", "serve", llama, "--enable-lora", "--max-lora-rank", "16",
                              "--lora-target-modules", "all");
    oomsight_plan *few =
        PLAN(24564, 0, "sglang", "serve", llama, "--lora-paths", "a=/nowhere", "--max-lora-rank", "8",
             "--max-loras-per-batch", "2", "--lora-target-modules", "v_proj", "o_proj");
    oomsight_plan *unsaid = PLAN(24564, 0, "sglang", "serve", llama, "--lora-paths", "a=/nowhere");
    oomsight_plan *states = PLAN(81920, 0, "sglang", "serve", hybrid, "--enable-lora", "--max-lora-rank",
                                 "16", "--lora-target-modules", "q_proj");
    uint64_t const qkv = 3 * 2048 + 3072, out = 2048 + 2048, up = 2 * 2048 + 16384, down = 8192 + 2048;
    uint64_t const ends = 2 * (128256 + 2048);
    assert_int_equal(all->plan.sizes.weights.lora_bytes, 8 * 16 * (16 * (qkv + out + up + down) + ends) * 2);
    assert_int_equal(few->plan.sizes.weights.lora_bytes, 2 * 8 * 16 * (qkv + out) * 2);
    assert_true(oomsight_plan_kv_tokens(all) > 0 &&
                oomsight_plan_kv_tokens(few) > oomsight_plan_kv_tokens(all));
    assert_int_equal(oomsight_plan_verdict(unsaid), OOMSIGHT_VERDICT_UNKNOWN);
    assert_int_equal(oomsight_plan_verdict(states), OOMSIGHT_VERDICT_UNKNOWN);
    oomsight_plan_free(all);
    oomsight_plan_free(few);
    oomsight_plan_free(unsaid);
    oomsight_plan_free(states);
}

/* 12 layers, those that are left over in the last stages; the head is built on the last of this class alone. */
static void the_stage_with_the_fewest_tokens_decides(void **state)
{
    (void)state;
    oomsight_plan *whole = PLAN(45457, 0, "sglang", "serve", latent);
    oomsight_plan *two = PLAN(45457, 0, "sglang", "serve", latent, "--pp-size", "2");
    oomsight_plan *five = PLAN(45457, 0, "sglang", "serve", latent, "--pp-size", "5");
    const sglang_start *of_five = five->plan.detail;
    assert_true(oomsight_plan_kv_tokens(two) > 2 * oomsight_plan_kv_tokens(whole));
    assert_true(oomsight_plan_kv_tokens(five) > oomsight_plan_kv_tokens(two));
    assert_string_equal(of_five->stage_layers, "2,2,2,3,3");
    assert_int_equal(of_five->stage, 4);
    assert_int_equal(of_five->last_layer, 12);
    assert_int_equal(of_five->first_layer, 9);
    oomsight_plan *beside = PLAN(81920, 0, "sglang", "serve", hybrid, "--pp-size", "2");
    assert_int_equal(oomsight_plan_verdict(beside), OOMSIGHT_VERDICT_UNKNOWN);
    oomsight_plan_free(whole);
    oomsight_plan_free(two);
    oomsight_plan_free(five);
    oomsight_plan_free(beside);
}

static void the_workspace_of_flashinfer_is_what_the_variable_says(void **state)
{
    (void)state;
    oomsight_plan *usual = PLAN(24564, 0, "sglang", "serve", llama, "--disable-cuda-graph");
    oomsight_plan *asked_for = PLAN(24564, 0, "SGLANG_FLASHINFER_WORKSPACE_SIZE=1073741824", "sglang",
                                    "serve", llama, "--disable-cuda-graph");
    uint64_t sums[2] = {0};
    const oomsight_plan *plans[] = {usual, asked_for};
    for (size_t i = 0; i < 2; i++)
        for (size_t p = 0; p < plans[i]->plan.phase_count; p++)
            if (plans[i]->plan.phases[p].phase == OOS_PHASE_KV_ALLOC)
                sums[i] = plans[i]->plan.phases[p].peak_bytes;
    assert_int_equal(sums[1] - sums[0], (uint64_t)(1024 - 384) << 20);
    oomsight_plan_free(usual);
    oomsight_plan_free(asked_for);
}

static uint64_t held(const oomsight_plan *plan, oos_phase phase, oos_owner owner)
{
    for (size_t i = 0; i < plan->plan.phase_count; i++)
        if (plan->plan.phases[i].phase == phase) return oos_ledger_bytes(&plan->plan.phases[i].ledger, owner);
    return 0;
}

static void captured_prefill_keeps_its_largest_step(void **state)
{
    (void)state;
    oomsight_plan *whole = PLAN(24564, 0, "sglang", "serve", llama);
    oomsight_plan *part = PLAN(24564, 0, "sglang", "serve", llama, "--cuda-graph-max-bs-prefill", "1024");
    oomsight_plan *eager = PLAN(24564, 0, "sglang", "serve", llama, "--disable-prefill-cuda-graph");
    uint64_t const step = held(eager, OOS_PHASE_RUNTIME_PREFILL, OOS_OWNER_ACTIVATIONS);
    assert_true(step > 0);
    assert_int_equal(held(whole, OOS_PHASE_RUNTIME_PREFILL, OOS_OWNER_ACTIVATIONS), 0);
    assert_true(held(part, OOS_PHASE_RUNTIME_PREFILL, OOS_OWNER_ACTIVATIONS) > step / 2);
    assert_true(held(whole, OOS_PHASE_CUDAGRAPH_CAPTURE, OOS_OWNER_CUDA_GRAPHS) >
                step + held(eager, OOS_PHASE_CUDAGRAPH_CAPTURE, OOS_OWNER_CUDA_GRAPHS));
    oomsight_plan_free(whole);
    oomsight_plan_free(part);
    oomsight_plan_free(eager);
}

static oomsight_plan *by_release(const char *release, const char *gpu, const char *model)
{
    const char *const words[] = {"sglang", "serve", "--model-path", model};
    oomsight_plan_params params = OOMSIGHT_PLAN_PARAMS_INIT;
    oomsight_plan *plan = NULL;
    params.data = data;
    params.command = words;
    params.command_count = 4;
    params.gpu = gpu;
    params.engine_version = release;
    assert_int_equal(oomsight_plan_create(&params, &plan, NULL), OOMSIGHT_OK);
    return plan;
}

static uint64_t held_by_release(const char *release, const char *gpu, const char *model, oos_phase phase,
                                oos_owner owner)
{
    oomsight_plan *plan = by_release(release, gpu, model);
    uint64_t const bytes = held(plan, phase, owner);
    oomsight_plan_free(plan);
    return bytes;
}

/* Every other layer of Nemotron-H is an MLP alone: from 0.5.19 on its prefill is not captured. */
static void layers_that_mix_no_tokens_stop_captured_prefill(void **state)
{
    (void)state;
    static const char nemotron[] = "nvidia/NVIDIA-Nemotron-Nano-9B-v2";
    uint64_t const before = held_by_release("0.5.18", "4090", nemotron, OOS_PHASE_CUDAGRAPH_CAPTURE,
                                            OOS_OWNER_CUDA_GRAPHS),
                   now = held_by_release("0.5.19", "4090", nemotron, OOS_PHASE_CUDAGRAPH_CAPTURE,
                                         OOS_OWNER_CUDA_GRAPHS);
    assert_true(now > 0 && now < before);
}

/* Since 0.5.8 a kernel runs before the engine looks at what is free: 270,336 threads of 330 bytes on an H100, and a segment. */
static void the_first_kernel_is_there_before_the_weights(void **state)
{
    (void)state;
    static const char *const releases[] = {"0.5.7", "0.5.8", "0.5.23"};
    uint64_t context[3];
    for (size_t i = 0; i < 3; i++)
        context[i] = held_by_release(releases[i], "h100", llama, OOS_PHASE_WEIGHT_LOAD, OOS_OWNER_CONTEXT);
    assert_int_equal(context[1] - context[0], (uint64_t)132 * 2048 * 330 + (2 << 20));
    assert_int_equal(context[2], context[1]);
}

/* GPT-OSS-20B: 24 layers of 32 experts, a scale for 32 of 3 x 2,880 rows. DeepSeek-V2-Lite: 163,840 rows of 64 in fp32, twice. */
static void copies_beside_the_weights_are_those_of_the_release(void **state)
{
    (void)state;
    static const struct {
        const char *model, *before, *with, *after;
        uint64_t bytes;
    } seen[] = {{"openai/gpt-oss-20b", "0.5.17", "0.5.18", "0.5.22", (uint64_t)24 * 32 * 3 * 2880 * 90},
                {"deepseek-ai/DeepSeek-V2-Lite", "0.5.6", "0.5.7", "0.5.13", (uint64_t)2 * 163840 * 64 * 4}};
    for (size_t i = 0; i < 2; i++) {
#define WEIGHTS(release)                                                                                     \
    held_by_release(release, "4090", seen[i].model, OOS_PHASE_WEIGHT_LOAD, OOS_OWNER_WEIGHTS)
        uint64_t const before = WEIGHTS(seen[i].before), with = WEIGHTS(seen[i].with);
        assert_true(with - before >= seen[i].bytes &&
                    with - before < seen[i].bytes + (24 << 20)); /* rests of blocks */
        assert_int_equal(WEIGHTS(seen[i].after), before);
#undef WEIGHTS
    }
}

/* Qwen3.5 takes images; since 0.5.16 it is on the list of those whose prefill is captured all the same. */
static void prefill_beside_images_is_captured_from_the_release_that_lists_it(void **state)
{
    (void)state;
    oomsight_plan *before = by_release("0.5.15", "h100", "Qwen/Qwen3.5-9B"),
                  *after = by_release("0.5.16", "h100", "Qwen/Qwen3.5-9B");
    const oos_plan *plans[] = {&before->plan, &after->plan};
    double captured[2] = {-1, -1};
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < plans[i]->told.own_count; k++)
            if (strcmp(plans[i]->told.own[k].name, "cuda_graphs_prefill") == 0)
                captured[i] = plans[i]->told.own[k].value;
    assert_true(captured[0] == 0 && captured[1] == 58);
    oomsight_plan_free(before);
    oomsight_plan_free(after);
}

/* One pool for both kinds of graphs: before 0.5.20 tensors lie side by side in it. Qwen3-32B with 0.5.19 on an H100 printed 2.97 GiB. */
static void captured_prefill_and_decode_share_a_pool(void **state)
{
    (void)state;
#define GRAPHS(release)                                                                                      \
    held_by_release(release, "h100", "Qwen/Qwen3-8B", OOS_PHASE_CUDAGRAPH_CAPTURE, OOS_OWNER_CUDA_GRAPHS)
    uint64_t const apart = GRAPHS("0.5.14"), side_by_side = GRAPHS("0.5.19"), whole = GRAPHS("0.5.20");
#undef GRAPHS
    assert_true(apart < whole && whole < side_by_side);
    /* printed in dry starts of 0.5.18 and 0.5.23: 1.56 and 1.42 GiB */
    assert_true(fabs((double)side_by_side / 0x1p30 / 1.56 - 1) < 0.1 &&
                fabs((double)whole / 0x1p30 / 1.42 - 1) < 0.1);
}

/* Twice the tokens of the device, or what is said; and so much more that the engine keeps free. */
static void a_hierarchical_cache_has_to_fit_the_host(void **state)
{
    (void)state;
    oomsight_plan *old =
        PLAN(24564, 0, "sglang", "serve", llama, "--enable-hierarchical-cache", "--hicache-ratio", "3");
    oomsight_plan *fits = PLAN(24564, 0, "sglang", "serve", llama, "--enable-hierarchical-cache");
    char note[128];
    snprintf(note, sizeof note, "the hierarchical cache takes %.1f GiB of host memory",
             3 * (double)oomsight_plan_kv_tokens(old) * 2 * 8 * 64 * 16 * 2 / 0x1p30);
    bool said = false, unasked = false;
    for (size_t i = 0; i < old->plan.told.note_count; i++)
        said |= strstr(old->plan.told.notes[i], note) != NULL;
    for (size_t i = 0; i < fits->plan.told.note_count; i++)
        unasked |= strstr(fits->plan.told.notes[i], "hierarchical cache takes") != NULL;
    assert_true(said && !unasked);
    oomsight_plan_free(old);
    oomsight_plan_free(fits);
}

static void more_share_is_never_fewer_tokens(void **state)
{
    (void)state;
    uint64_t before = 0;
    for (int i = 30; i < 99; i++) {
        char share[8];
        snprintf(share, sizeof share, "0.%02d", i);
        oomsight_plan *plan = PLAN(24564, 0, "sglang", "serve", llama, "--mem-fraction-static", share);
        assert_true(oomsight_plan_kv_tokens(plan) >= before);
        before = oomsight_plan_kv_tokens(plan);
        oomsight_plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_say_which_engine_a_command_starts),
        cmocka_unit_test(sizes_of_graphs_are_those_of_the_engine),
        cmocka_unit_test(defaults_are_what_the_engine_resolves),
        cmocka_unit_test(weights_and_their_segments_are_those_of_starts),
        cmocka_unit_test(tokens_are_those_of_the_log_given_its_free_memory),
        cmocka_unit_test(weights_beyond_the_static_share_are_refused_in_the_engines_words),
        cmocka_unit_test(what_the_engine_refuses_is_refused_in_its_words),
        cmocka_unit_test(words_are_read_as_argparse_reads_them),
        cmocka_unit_test(a_longer_context_than_the_models_is_mended_by_the_models_own),
        cmocka_unit_test(replicated_attention_takes_no_more_gpus_than_the_ranks),
        cmocka_unit_test(a_pool_that_holds_no_whole_request_is_said_and_mended),
        cmocka_unit_test(roles_and_drafters_capture_what_the_engine_captures),
        cmocka_unit_test(where_no_share_holds_a_request_the_smallest_step_is_offered),
        cmocka_unit_test(the_list_of_arguments_in_a_log_is_the_command),
        cmocka_unit_test(requests_that_decode_have_their_logits_and_sampler),
        cmocka_unit_test(the_least_share_is_the_one_the_engine_names),
        cmocka_unit_test(a_share_that_leaves_nothing_free_fails_where_the_request_table_is_taken),
        cmocka_unit_test(half_of_a_cache_in_eight_bits_is_twice_the_tokens),
        cmocka_unit_test(sliding_layers_take_their_share_of_the_pool),
        cmocka_unit_test(the_list_of_sliding_pools_is_the_engines),
        cmocka_unit_test(compressed_layers_have_the_pool_of_the_release),
        cmocka_unit_test(states_have_a_share_of_the_pool),
        cmocka_unit_test(a_tower_makes_the_share_smaller),
        cmocka_unit_test(what_was_not_read_is_no_answer),
        cmocka_unit_test(the_installed_engine_has_the_last_word),
        cmocka_unit_test(slots_of_adapters_are_what_the_engine_allocates),
        cmocka_unit_test(the_stage_with_the_fewest_tokens_decides),
        cmocka_unit_test(the_workspace_of_flashinfer_is_what_the_variable_says),
        cmocka_unit_test(captured_prefill_keeps_its_largest_step),
        cmocka_unit_test(layers_that_mix_no_tokens_stop_captured_prefill),
        cmocka_unit_test(the_first_kernel_is_there_before_the_weights),
        cmocka_unit_test(copies_beside_the_weights_are_those_of_the_release),
        cmocka_unit_test(prefill_beside_images_is_captured_from_the_release_that_lists_it),
        cmocka_unit_test(captured_prefill_and_decode_share_a_pool),
        cmocka_unit_test(a_hierarchical_cache_has_to_fit_the_host),
        cmocka_unit_test(more_share_is_never_fewer_tokens),
    };
    return cmocka_run_group_tests(tests, open_data, close_data);
}

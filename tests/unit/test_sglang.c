/* SGLang as a second engine: which command is its, what it resolves by the memory of the device, and what its start holds. The figures of
 * the engine are those that ServerArgs of 0.5.23 resolved and its log printed. */
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

static void sizes_of_graphs_are_those_of_the_engine(void **state)
{
    (void)state;
    uint64_t list[16];
    assert_int_equal(sglang_decode_sizes(32, list, 16), 8); /* 1 2 4 8 12 16 24 32 */
    assert_int_equal(list[7], 32);
    assert_int_equal(sglang_decode_sizes(10, list, 16), 5); /* 1 2 4 8 10 */
    assert_int_equal(sglang_decode_sizes(256, NULL, 0), 36);
    assert_int_equal(sglang_decode_sizes(512, NULL, 0), 52);
    assert_int_equal(sglang_prefill_sizes(4096), 50);
    assert_int_equal(sglang_prefill_sizes(8192), 58);
}

static double fraction_of(uint64_t mib, const char *model, size_t count, const char *const *flags)
{
    const char *words[16] = {"sglang", "serve", model};
    for (size_t i = 0; i < count; i++) words[3 + i] = flags[i];
    oomsight_plan *plan = plan_of(words, 3 + count, mib, 0);
    oomsight_render_params render = OOMSIGHT_RENDER_PARAMS_INIT;
    render.format = OOMSIGHT_FORMAT_JSON;
    char *text = NULL;
    assert_int_equal(oomsight_plan_render(plan, &render, &text, NULL), OOMSIGHT_OK);
    const char *at = strstr(text, "\"mem_fraction_static\": ");
    assert_non_null(at);
    double const fraction = strtod(at + strlen("\"mem_fraction_static\": "), NULL);
    oomsight_text_free(text);
    oomsight_plan_free(plan);
    return fraction;
}

static void the_static_fraction_is_what_the_engine_resolves(void **state)
{
    (void)state;
    assert_true(fabs(fraction_of(45457, llama, 0, NULL) - 0.841) <
                1e-9); /* printed in its log on this device */
    const char *const given[] = {"--mem-fraction-static", "0.7"};
    assert_true(fabs(fraction_of(45457, llama, 2, given) - 0.7) < 1e-9);
}

/* The log: free 43.55 GB before loading, 2.36 GB loaded, 1,122,627 tokens. Given that free memory, tokens are within two thousandths:
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
    assert_true(fabs(tokens / 1122627 - 1) < 0.002);
    oomsight_plan_free(plan);
}

static void weights_beyond_the_static_share_are_refused_in_the_engines_words(void **state)
{
    (void)state;
    oomsight_plan *plan = PLAN(40960, 0, "sglang", "serve", moe, "--mem-fraction-static", "0.6");
    assert_int_equal(oomsight_plan_verdict(plan), OOMSIGHT_VERDICT_REFUSED);
    assert_string_equal(oomsight_plan_phase(plan), "kv_sizing");
    assert_string_equal(oomsight_plan_cause(plan), "gmu_too_low");
    assert_non_null(strstr(oomsight_plan_best_flags(plan), "--mem-fraction-static 0.90"));
    oomsight_plan_free(plan);
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

static void what_was_not_read_is_no_answer(void **state)
{
    (void)state;
    oomsight_plan *drafts = PLAN(81920, 0, "sglang", "serve", llama, "--speculative-algorithm", "EAGLE");
    oomsight_plan *states = PLAN(81920, 0, "sglang", "serve", hybrid);
    assert_int_equal(oomsight_plan_verdict(drafts), OOMSIGHT_VERDICT_UNKNOWN);
    assert_int_equal(oomsight_plan_verdict(states), OOMSIGHT_VERDICT_UNKNOWN);
    assert_int_equal(oomsight_plan_kv_tokens(states), 0);
    oomsight_plan_free(drafts);
    oomsight_plan_free(states);
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
        cmocka_unit_test(the_static_fraction_is_what_the_engine_resolves),
        cmocka_unit_test(tokens_are_those_of_the_log_given_its_free_memory),
        cmocka_unit_test(weights_beyond_the_static_share_are_refused_in_the_engines_words),
        cmocka_unit_test(a_share_that_leaves_nothing_free_fails_where_the_request_table_is_taken),
        cmocka_unit_test(half_of_a_cache_in_eight_bits_is_twice_the_tokens),
        cmocka_unit_test(sliding_layers_take_their_share_of_the_pool),
        cmocka_unit_test(what_was_not_read_is_no_answer),
        cmocka_unit_test(more_share_is_never_fewer_tokens),
    };
    return cmocka_run_group_tests(tests, open_data, close_data);
}

/* Which release knows which environment variable, and what it means for memory. */
#include "unit.h"

#include "command/command.h"
#include "engines/vllm/vllm.h"

static oos_arena *arena;
static oos_flag_table table, sglang;

static int load(void **state)
{
    (void)state;
    arena = oos_arena_create(64 << 10);
    bool const fine = oos_flags_load(arena, NULL, "vllm", &table, NULL) == OOMSIGHT_OK &&
                      oos_flags_load(arena, NULL, "sglang", &sglang, NULL) == OOMSIGHT_OK;
    return fine ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    oos_arena_free(arena);
    return 0;
}

static oos_env_hit hit(const char *version, const char *name, const char *value)
{
    oos_version v = 0;
    assert_true(oos_version_parse(oos_view_of(version), &v));
    return oos_env_find(&table, oos_view_of(name), value, v);
}

static void a_release_knows_the_names_of_its_own_table(void **state)
{
    (void)state;
    assert_int_equal(hit("0.14.1", "VLLM_ATTENTION_BACKEND", "FLASHINFER").effect, OOS_ENV_UNMODELLED);
    assert_int_equal(hit("0.15.0", "VLLM_ATTENTION_BACKEND", "FLASHINFER").effect, OOS_ENV_ABSENT);
    assert_int_equal(hit("0.32.0", "VLLM_ATTENTION_BACKEND", "FLASHINFER").effect, OOS_ENV_ABSENT);
    assert_int_equal(hit("0.8.0", "VLLM_USE_V2_MODEL_RUNNER", "1").effect, OOS_ENV_ABSENT);
    assert_int_equal(hit("0.32.0", "VLLM_LOGGING_LEVEL", "DEBUG").effect, OOS_ENV_NO_MEMORY);
    assert_true(hit("0.32.0", "VLLM_LOGGING_LEVEL", "DEBUG").listed);
}

static void an_unknown_name_is_logged_from_0_17_on(void **state)
{
    (void)state;
    assert_false(hit("0.16.0", "VLLM_NO_SUCH", "1").logged);
    assert_true(hit("0.17.0", "VLLM_NO_SUCH", "1").logged);
    assert_false(hit("0.32.0", "VLLM_NO_SUCH", "1").listed);
}

static void a_name_that_is_read_but_not_listed_is_not_called_without_effect(void **state)
{
    (void)state;
    oos_env_hit const early = hit("0.11.2", "VLLM_BATCH_INVARIANT", "1"),
                      late = hit("0.32.0", "VLLM_BATCH_INVARIANT", "1");
    assert_int_equal(early.effect, OOS_ENV_UNMODELLED);
    assert_false(early.listed);
    assert_int_equal(late.effect, OOS_ENV_UNMODELLED);
    assert_true(late.listed);
}

static void a_default_value_moves_nothing(void **state)
{
    (void)state;
    assert_int_equal(hit("0.32.0", "VLLM_USE_DEEP_GEMM", "1").effect, OOS_ENV_NO_MEMORY);
    assert_int_equal(hit("0.32.0", "VLLM_USE_DEEP_GEMM", "0").effect, OOS_ENV_UNMODELLED);
}

static void a_release_newer_than_all_may_know_more(void **state)
{
    (void)state;
    assert_int_equal(hit("0.99.0", "VLLM_ATTENTION_BACKEND", "FLASHINFER").effect, OOS_ENV_UNMODELLED);
}

static void libraries_have_the_longest_beginning_that_is_known(void **state)
{
    (void)state;
    assert_int_equal(hit("0.32.0", "NCCL_DEBUG_SUBSYS", "INIT").effect, OOS_ENV_NO_MEMORY);
    assert_int_equal(hit("0.32.0", "NCCL_CROSS_NIC", "1").effect, OOS_ENV_UNMODELLED);
    assert_int_equal(hit("0.32.0", "NCCL_BUFFSIZE", "1").effect, OOS_ENV_UNMODELLED);
    assert_int_equal(hit("0.32.0", "CUDA_VISIBLE_DEVICES", "0").effect, OOS_ENV_NO_MEMORY);
    assert_int_equal(hit("0.32.0", "HF_TOKEN", "x").effect, OOS_ENV_NO_MEMORY);
    assert_int_equal(hit("0.32.0", "\"", "x").effect, OOS_ENV_NO_MEMORY);
}

static void each_engine_has_its_own_names(void **state)
{
    (void)state;
    oos_version const v = OOS_VERSION(0, 5, 23);
    assert_int_equal(oos_env_find(&sglang, oos_view_of("SGLANG_NO_SUCH"), "1", v).effect, OOS_ENV_ABSENT);
    assert_true(oos_env_find(&sglang, oos_view_of("SGLANG_CACHE_DIR"), "1", v).listed);
    assert_int_equal(oos_env_find(&sglang, oos_view_of("VLLM_USE_V1"), "1", v).effect, OOS_ENV_NO_MEMORY);
}

static void a_command_keeps_each_name_once_and_what_it_means(void **state)
{
    (void)state;
    static const char *const words[] = {"VLLM_ATTENTION_BACKEND=FLASHINFER",
                                        "VLLM_USE_V2_MODEL_RUNNER=1",
                                        "MY=1",
                                        "VLLM_USE_V2_MODEL_RUNNER=0",
                                        "vllm",
                                        "serve",
                                        "m"};
    oos_serve serve;
    oos_engine_env env;
    oomsight_error error = {0};
    assert_int_equal(oos_serve_read_as(&oos_vllm_dialect, arena, words, 7, &table, OOS_VERSION(0, 32, 0),
                                       &serve, &env, &error),
                     OOMSIGHT_OK);
    assert_int_equal(env.variable_count, 3);
    assert_string_equal(env.variables[0].name, "VLLM_ATTENTION_BACKEND");
    assert_int_equal(env.variables[0].effect, OOS_ENV_ABSENT);
    assert_null(env.attention_backend);
    assert_int_equal(env.variables[1].effect, OOS_ENV_MODELLED);
    assert_true(env.v2_model_runner.known && !env.v2_model_runner.value);
    assert_int_equal(env.variables[2].effect, OOS_ENV_NO_MEMORY);
    assert_int_equal(oos_serve_read_as(&oos_vllm_dialect, arena, words, 7, &table, OOS_VERSION(0, 11, 0),
                                       &serve, &env, &error),
                     OOMSIGHT_OK);
    assert_int_equal(env.variables[0].effect, OOS_ENV_MODELLED);
    assert_string_equal(env.attention_backend, "FLASHINFER");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_knows_the_names_of_its_own_table),
        cmocka_unit_test(an_unknown_name_is_logged_from_0_17_on),
        cmocka_unit_test(a_name_that_is_read_but_not_listed_is_not_called_without_effect),
        cmocka_unit_test(a_default_value_moves_nothing),
        cmocka_unit_test(a_release_newer_than_all_may_know_more),
        cmocka_unit_test(libraries_have_the_longest_beginning_that_is_known),
        cmocka_unit_test(each_engine_has_its_own_names),
        cmocka_unit_test(a_command_keeps_each_name_once_and_what_it_means),
    };
    return cmocka_run_group_tests(tests, load, unload);
}

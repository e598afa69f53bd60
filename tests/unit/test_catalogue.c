#include "unit.h"

#include "folder.h"
#include "model/model.h"

static oos_arena *arena;
static oomsight_error error;
static oos_view config, quant;

#define CONFIG                                                                                               \
    "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":1024,"               \
    "\"intermediate_size\":4096,\"num_attention_heads\":8,\"num_hidden_layers\":2,"                          \
    "\"vocab_size\":1000,\"max_position_embeddings\":2048,\"torch_dtype\":\"bfloat16\"}"
#define AWQ "{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128,\"zero_point\":true}"

static void write_listed(const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/catalogue.json", folder);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static oomsight_status find(const char *id)
{
    return oos_catalogue_find(arena, folder, id, &config, &quant, &error);
}

static void a_checkpoint_has_the_config_of_its_model(void **state)
{
    (void)state;
    oos_model model;
    write_listed(
        "{\"a/m\":{\"config\":" CONFIG "},\"a/other\":\"a/m\",\"b/tuned\":{\"like\":\"a/m\"},"
        "\"a/m-awq\":{\"of\":\"a/m\",\"change\":{\"quantization_config\":" AWQ "}},"
        "\"c/m-awq\":\"a/m-awq\",\"b/tuned-awq\":{\"of\":\"b/tuned\",\"change\":{\"quantization_config\":" AWQ
        "}},"
        "\"d/m-opt\":{\"of\":\"a/m\",\"quant\":{\"producer\":{\"name\":\"modelopt\"}}},"
        "\"d/m-own\":{\"of\":\"a/m\",\"config\":" CONFIG
        ",\"from\":{\"repo\":\"d/m-own\",\"date\":\"2026-01-01\"}}}");
    static const char *const in_four[] = {"a/m-awq", "c/m-awq", "b/tuned-awq"};
    for (size_t i = 0; i < sizeof in_four / sizeof *in_four; i++) {
        assert_int_equal(find(in_four[i]), OOMSIGHT_OK);
        assert_int_equal(oos_catalogue_open(arena, NULL, in_four[i], config, quant, NULL, &model, &error),
                         OOMSIGHT_OK);
        assert_string_equal(model.quant_method, "awq");
        assert_int_equal(model.layer_count, 2);
    }
    assert_int_equal(find("a/other"), OOMSIGHT_OK);
    assert_true(oos_view_is(config, CONFIG));
    assert_int_equal(find("b/tuned"), OOMSIGHT_OK);
    assert_true(oos_view_is(config, CONFIG));
    assert_int_equal(find("d/m-opt"), OOMSIGHT_OK);
    assert_true(quant.len > 0);
    assert_int_equal(find("a/nothing"), OOMSIGHT_NOT_FOUND);
}

static void checkpoints_are_those_of_the_same_model_only(void **state)
{
    (void)state;
    const oos_checkpoint *ids;
    size_t count;
    static const struct {
        const char *id;
        size_t count;
        const char *first;
    } asked[] = {{"a/m", 3, "a/m-awq"},
                 {"a/other", 3, "a/m-awq"},
                 {"a/m-awq", 2, "d/m-opt"},
                 {"c/m-awq", 2, "d/m-opt"},
                 {"b/tuned", 1, "b/tuned-awq"}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        assert_int_equal(oos_catalogue_checkpoints(arena, folder, asked[i].id, &ids, &count, &error),
                         OOMSIGHT_OK);
        assert_int_equal(count, asked[i].count);
        assert_string_equal(ids[0].id, asked[i].first);
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(find(ids[k].id), OOMSIGHT_OK);
            assert_true(oos_view_equal(ids[k].config, config) && oos_view_equal(ids[k].quant, quant));
        }
    }
    assert_int_equal(oos_catalogue_checkpoints(arena, folder, "a/nothing", &ids, &count, &error),
                     OOMSIGHT_NOT_FOUND);
}

/* Its own quantisation does not stay beside that of the checkpoint. */
static void the_quantisation_of_a_model_is_replaced(void **state)
{
    (void)state;
    write_listed(
        "{\"a/m\":{\"config\":{\"n\":1,\"quantization_config\":{\"quant_method\":\"fp8\"},\"x\":[2]}},"
        "\"a/q\":{\"of\":\"a/m\",\"change\":{\"quantization_config\":" AWQ "}},"
        "\"a/o\":{\"of\":\"a/m\",\"quant\":{\"p\":1}}}");
    assert_int_equal(find("a/q"), OOMSIGHT_OK);
    assert_true(oos_view_is(config, "{\"n\":1,\"x\":[2],\"quantization_config\":" AWQ "}"));
    assert_int_equal(find("a/o"), OOMSIGHT_OK);
    assert_true(oos_view_is(config, "{\"n\":1,\"x\":[2]}"));
    assert_true(oos_view_is(quant, "{\"p\":1}"));
}

static void what_is_no_model_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{\"x\":{\"of\":\"a/none\",\"change\":{}}}", "x refers to what is not a built-in model"},
        {"{\"x\":{\"of\":\"x\",\"change\":{}}}", "x refers to a model without a config"},
        {"{\"x\":{\"of\":\"y\",\"change\":{}},\"y\":{\"of\":\"x\",\"change\":{}}}",
         "x refers to a model without a config"},
        {"{\"x\":{\"like\":\"y\"},\"y\":{\"like\":\"z\"},\"z\":{\"config\":{}}}",
         "x refers to a model without a config"},
        {"{\"x\":{\"of\":\"y\",\"change\":{}},\"y\":{\"like\":\"z\"},\"z\":{\"like\":\"y\"}}",
         "x refers to a model without a config"},
        {"{\"x\":\"y\",\"y\":\"x\"}", "x is another name of what is not a built-in model"},
        {"{\"x\":\"\"}", "x is not a model as one is listed"},
        {"{\"x\":{}}", "x is not a model as one is listed"},
        {"{\"x\":[]}", "x is not a model as one is listed"},
        {"{\"x\":3}", "x is not a model as one is listed"},
        {"{\"x\":{\"config\":{},\"colour\":1}}", "x is not a model as one is listed"},
        {"{\"x\":{\"config\":{},\"config\":{}}}", "x is not a model as one is listed"},
        {"{\"x\":{\"config\":\"\"}}", "x is not a model as one is listed"},
        {"{\"x\":{\"of\":\"y\"},\"y\":{\"config\":{}}}", "x is not a model as one is listed"},
        {"{\"x\":{\"of\":1,\"change\":{}}}", "x is not a model as one is listed"},
        {"{\"x\":{\"of\":\"y\",\"like\":\"y\",\"change\":{}}}", "x is not a model as one is listed"},
        {"{\"x\":{\"like\":\"y\",\"quant\":{}}}", "x is not a model as one is listed"},
        {"{\"x\":{\"config\":{},\"change\":{}}}", "x is not a model as one is listed"},
        {"{\"x\":{\"config\":{", "x is not a model as one is listed"},
        {"{\"y\":{", "the file is not JSON"},
        {"[]", "the file is no object"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_listed(bad[i].text);
        assert_int_equal(find("x"), OOMSIGHT_MALFORMED);
        assert_string_equal(error.text, bad[i].says);
        assert_string_equal(error.path, "catalogue.json");
    }
}

/* Every entry is a model, and each checkpoint is one of a model that is listed. */
static void what_is_built_in_can_be_read(void **state)
{
    (void)state;
    const oos_checkpoint *ids;
    size_t count;
    assert_int_equal(oos_catalogue_checkpoints(arena, NULL, "Qwen/Qwen3-8B", &ids, &count, &error),
                     OOMSIGHT_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(oos_catalogue_find(arena, NULL, ids[i].id, &config, &quant, &error), OOMSIGHT_OK);
}

static int begin(void **state)
{
    arena = oos_arena_create(4096);
    return arena ? folder_make(state) : -1;
}

static int end(void **state)
{
    oos_arena_free(arena);
    return folder_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_has_the_config_of_its_model),
        cmocka_unit_test(checkpoints_are_those_of_the_same_model_only),
        cmocka_unit_test(the_quantisation_of_a_model_is_replaced),
        cmocka_unit_test(what_is_no_model_is_refused),
        cmocka_unit_test(what_is_built_in_can_be_read),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

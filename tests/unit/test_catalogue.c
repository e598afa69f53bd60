#include "unit.h"

#include "folder.h"
#include "model/model.h"

static oos_arena *arena;
static oomsight_error error;
static oos_listed listed;

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
    return oos_catalogue_find(arena, folder, id, &listed, &error);
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
        assert_int_equal(oos_catalogue_open(arena, NULL, &listed, NULL, &model, &error), OOMSIGHT_OK);
        assert_string_equal(model.quant_method, "awq");
        assert_int_equal(model.layer_count, 2);
    }
    assert_int_equal(find("a/other"), OOMSIGHT_OK);
    assert_true(oos_view_is(listed.config, CONFIG));
    assert_int_equal(find("b/tuned"), OOMSIGHT_OK);
    assert_true(oos_view_is(listed.config, CONFIG));
    assert_int_equal(find("d/m-opt"), OOMSIGHT_OK);
    assert_true(listed.quant.len > 0);
    assert_int_equal(find("a/nothing"), OOMSIGHT_NOT_FOUND);
}

static void checkpoints_are_those_of_the_same_model_only(void **state)
{
    (void)state;
    const oos_listed *ids;
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
            assert_true(oos_view_equal(ids[k].config, listed.config) &&
                        oos_view_equal(ids[k].quant, listed.quant));
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
    assert_true(oos_view_is(listed.config, "{\"n\":1,\"x\":[2],\"quantization_config\":" AWQ "}"));
    assert_int_equal(find("a/o"), OOMSIGHT_OK);
    assert_true(oos_view_is(listed.config, "{\"n\":1,\"x\":[2]}"));
    assert_true(oos_view_is(listed.quant, "{\"p\":1}"));
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
        {"{\"x\":{\"config\":{},\"level\":3}}", "x is not a model as one is listed"},
        {"{\"x\":{\"config\":{},\"wide\":\"a\"}}", "x is not a model as one is listed"},
        {"{\"x\":{\"config\":{},\"wide\":1000}}", "x is not a model as one is listed"},
        {"{\n\"x\":{\"config\":{}}}\n}", "x is not a model as one is listed"},
        {"{\n\"x\":{\"of\":\"y\",\"change\":{}}\n}\n", "x refers to what is not a built-in model"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_listed(bad[i].text);
        assert_int_equal(find("x"), OOMSIGHT_MALFORMED);
        assert_string_equal(error.text, bad[i].says);
        assert_string_equal(error.path, "catalogue.json");
    }
}

/* A line for each id, in their order: what is built in, and what was taken. */
static void a_line_is_found_by_halving(void **state)
{
    (void)state;
    char text[4096], id[16];
    for (int count = 0; count < 40; count++) {
        int at = snprintf(text, sizeof text, "{\n");
        for (int i = 0; i < count; i++)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s\"a/m%02d\":{\"config\":{\"n\":%d}}%s\n",
                           i % 2 ? " " : "", i, i, i + 1 < count ? "," : "");
        snprintf(text + at, sizeof text - (size_t)at, "}\n");
        write_listed(text);
        for (int i = 0; i < 40; i++) {
            snprintf(id, sizeof id, "a/m%02d", i);
            assert_int_equal(find(id), i < count ? OOMSIGHT_OK : OOMSIGHT_NOT_FOUND);
            snprintf(text, sizeof text, "{\"n\":%d}", i);
            assert_true(i >= count || oos_view_is(listed.config, text));
        }
        assert_int_equal(find("a/m"), OOMSIGHT_NOT_FOUND);
        assert_int_equal(find("a/m001"), OOMSIGHT_NOT_FOUND);
        assert_int_equal(find("z"), OOMSIGHT_NOT_FOUND);
        assert_int_equal(find(""), OOMSIGHT_NOT_FOUND);
    }
}

static void what_is_not_proven_may_weigh_otherwise(void **state)
{
    (void)state;
    oos_model model;
    write_listed("{\"a/m\":{\"config\":" CONFIG ",\"level\":\"sizes\",\"wide\":15},"
                 "\"a/n\":{\"like\":\"a/m\",\"level\":\"alias\"},\"a/o\":\"a/n\"}");
    assert_int_equal(find("a/m"), OOMSIGHT_OK);
    assert_string_equal(listed.level, "sizes");
    assert_int_equal(oos_catalogue_open(arena, NULL, &listed, NULL, &model, &error), OOMSIGHT_OK);
    assert_int_equal(model.wide, 15);
    assert_int_equal(find("a/o"), OOMSIGHT_OK);
    assert_string_equal(listed.level, "alias");
    assert_string_equal(listed.rests_on, "a/n");
}

/* Embedding, head and final norm; per layer four attention matrices, three of the MLP, two norms. */
static void parameters_are_those_of_the_weight_files(void **state)
{
    (void)state;
    oos_model model;
    write_listed("{\"a/m\":{\"config\":" CONFIG "}}");
    assert_int_equal(find("a/m"), OOMSIGHT_OK);
    assert_int_equal(oos_catalogue_open(arena, NULL, &listed, NULL, &model, &error), OOMSIGHT_OK);
    oos_parameters const counted = oos_model_parameters(&model);
    assert_int_equal(counted.decoder,
                     2 * 1000 * 1024 + 1024 + 2 * (4 * 1024 * 1024 + 3 * 1024 * 4096 + 2 * 1024));
    assert_int_equal(counted.tower + counted.drafter, 0);
}

static void a_misspelt_id_has_a_nearest_one(void **state)
{
    (void)state;
    static const struct {
        const char *given, *nearest;
    } list[] = {{"Qwen3-8B", "Qwen/Qwen3-8B"},
                {"qwen3-8b", "Qwen/Qwen3-8B"},
                {"Qwen/Qwen3-8", "Qwen/Qwen3-8B"},
                {"meta-llama/Llama-3.1-8B-Instrct", "meta-llama/Llama-3.1-8B-Instruct"},
                {"nobody/nothing-like-it", NULL},
                {"x", NULL},
                {"", NULL}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const char *found = oos_catalogue_nearest(arena, NULL, list[i].given);
        assert_int_equal(!found, !list[i].nearest);
        if (found) assert_string_equal(found, list[i].nearest);
    }
}

/* Every entry is a model, and each checkpoint is one of a model that is listed. */
static void what_is_built_in_can_be_read(void **state)
{
    (void)state;
    oos_view text, id, value;
    size_t count = 0;
    assert_int_equal(oos_catalogue_text(arena, NULL, &text, &error), OOMSIGHT_OK);
    assert_true(oos_catalogue_is_lined(text));
    oos_walk walk = oos_walk_begin(text);
    for (; oos_walk_next(&walk, &id, &value); count++) {
        oos_arena *own = oos_arena_create(64 << 10);
        oos_model model;
        const char *name = oos_scan_text(own, id);
        assert_int_equal(oos_catalogue_find(own, NULL, name, &listed, &error), OOMSIGHT_OK);
        assert_int_equal(oos_catalogue_open(own, NULL, &listed, NULL, &model, &error), OOMSIGHT_OK);
        assert_true(model.known);
        oos_arena_free(own);
    }
    assert_true(count >= 1000);
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
        cmocka_unit_test(a_line_is_found_by_halving),
        cmocka_unit_test(what_is_not_proven_may_weigh_otherwise),
        cmocka_unit_test(parameters_are_those_of_the_weight_files),
        cmocka_unit_test(a_misspelt_id_has_a_nearest_one),
        cmocka_unit_test(what_is_built_in_can_be_read),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

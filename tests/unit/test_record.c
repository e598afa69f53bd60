#include "unit.h"

#include "facts/facts.h"
#include "model/arch/arch.h"

#define CONFIG                                                                                               \
    "{\"num_hidden_layers\":4,\"hidden_size\":64,\"num_attention_heads\":4,\"num_key_value_heads\":2,"       \
    "\"intermediate_size\":128,\"vocab_size\":512,\"torch_dtype\":\"bfloat16\",\"num_experts\":4,"           \
    "\"max_position_embeddings\":2048,\"sliding_window\":16,\"vision_config\":{\"depth\":2,"                 \
    "\"hidden_size\":32},\"audio_config\":{\"d_model\":16},\"architectures\":[\"%s\"]}"

static void every_class_of_every_record_is_understood(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    oos_data_file *files = NULL;
    size_t count = 0, classes = 0;
    assert_int_equal(oos_data_list(arena, NULL, "models", &files, &count, NULL), OOMSIGHT_OK);
    for (size_t i = 0; i < count; i++) {
        json_t *body = NULL, *over;
        const char *class;
        assert_int_equal(
            oos_record_parse(arena, (oos_view){files[i].bytes, files[i].len}, files[i].path, &body, NULL),
            OOMSIGHT_OK);
        json_object_foreach(json_object_get(body, "classes"), class, over)
        {
            oos_model model;
            oomsight_error error = {0};
            const char *config = oos_arena_format(arena, CONFIG, class);
            oomsight_status const status =
                oos_model_read(arena, NULL, oos_view_of(config), (oos_view){NULL, 0}, &model, &error);
            if (status != OOMSIGHT_OK) print_error("%s: %s: %s\n", class, error.path, error.text);
            assert_int_equal(status, OOMSIGHT_OK);
            assert_int_equal(model.layer_count, 4);
            classes++;
        }
    }
    assert_true(classes > 100);
    oos_arena_free(arena);
}

typedef struct reading {
    oos_arena *arena;
    oos_model model;
    oos_arch a;
    oomsight_error error;
} reading;

static void read_with(reading *r, const char *record, const char *config)
{
    json_t *root = NULL;
    *r = (reading){.arena = oos_arena_create(4096)};
    assert_int_equal(oos_json_load(r->arena, oos_view_of(config), &root, NULL), OOMSIGHT_OK);
    r->model = (oos_model){.hidden = 64,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_dim = 16,
                           .intermediate = 128,
                           .vocab = 512,
                           .architecture = "New"};
    r->a = (oos_arch){.arena = r->arena,
                      .root = root,
                      .text = root,
                      .model = &r->model,
                      .reterr = &r->error,
                      .prefix = "model.",
                      .layer_prefix = "model.layers."};
    r->a.quants = OOS_NEW_ARRAY(r->arena, oos_quant, 8);
    r->a.quant_room = 8;
    r->a.quant_count = 1;
    r->a.family = oos_family_of(&r->a, oos_view_of(record), "models/new.json", "New", false);
    if (r->a.family) r->a.family->build(&r->a);
}

#define WITH(more) "{\"classes\":{\"New\":{}}," more "}"

static void a_record_that_is_not_understood_names_its_file_and_key(void **state)
{
    (void)state;
    static const struct {
        const char *record, *key;
    } wrong[] = {
        {WITH("\"atention\":{}"), "'atention'"},
        {WITH("\"attention\":{\"bias\":true}"), "attention"},
        {WITH("\"attention\":{\"qkv_bias\":7}"), "qkv_bias"},
        {WITH("\"attention\":{\"qkv_bias\":\"text.bias or true\"}"), "qkv_bias"},
        {WITH("\"attention\":{\"head_norm\":\"sideways\"}"), "head_norm"},
        {WITH("\"attention\":3"), "attention"},
        {WITH("\"norms\":\"hiden\""), "norms"},
        {WITH("\"norms\":\"2**hidden\""), "norms"},
        {WITH("\"norms\":\"99999999999999999999\""), "norms"},
        {WITH("\"norms\":-1"), "norms"},
        {WITH("\"norms\":[1]"), "norms"},
        {WITH("\"norms\":{\"if\":true,\"then\":1}"), "norms"},
        {WITH("\"also\":[{\"out\":1}]"), "name"},
        {WITH("\"also\":[{\"name\":\"x\",\"out\":1,\"as\":\"diagonal\"}]"), "as"},
        {WITH("\"also\":[{\"name\":\"x\",\"out\":1,\"dtype\":\"f3\"}]"), "dtype"},
        {WITH("\"also\":[{\"name\":\"x\",\"out\":1,\"colour\":1}]"), "colour"},
        {WITH("\"also\":{}"), "also"},
        {WITH("\"outside\":[{\"name\":\"x\",\"out\":1,\"stage\":\"first\"}]"), "stage"},
        {WITH("\"let\":[]"), "let"},
        {WITH("\"let\":{\"a\":\"b\",\"b\":1}"), "'b'"},
        {WITH("\"model\":{\"hiden\":1}"), "hiden"},
        {WITH("\"build\":\"something\""), "build"},
        {WITH("\"rope\":\"something\""), "rope"},
        {WITH("\"names\":[{\"prefix\":1}]"), "prefix"},
        {WITH("\"drafter\":\"eagle\""), "drafter"},
        {WITH("\"attention\":{\"window\":{\"list\":\"config.x\"}}"), "list"},
        {WITH("\"build\":\"deepseek\""), "build"},
        {WITH("\"attention\":{\"window\":\"wide\"}"), "window"},
        {WITH("\"attention\":{\"kind\":\"psychic\"}"), "kind"},
        {WITH("\"attention\":{\"sizes\":{\"heads\":1}}"), "'heads'"},
        {WITH("\"attention\":{\"sizes\":3}"), "sizes"},
        {WITH("\"mixer\":{\"kind\":\"gdn\",\"state_dtype\":\"f3\"}"), "state_dtype"},
        {WITH("\"mixer\":{\"sort\":\"gdn\"}"), "mixer"},
        {WITH("\"mixer\":{\"when\":{\"below\":[1]}}"), "when"},
        {WITH("\"mixer\":{\"when\":{\"above\":[1,2]}}"), "when"},
        {WITH("\"mixer\":{\"when\":{\"equal\":[1,true]}}"), "when"},
        {WITH("\"mixer\":{\"when\":{\"holds\":[\"lists\",1]}}"), "when"},
        {WITH("\"mixer\":{\"when\":{\"holds\":[1,1]}}"), "when"},
        {WITH("\"mixer\":{\"when\":[[[[[[[true]]]]]]]}"), "when"},
        {WITH("\"each\":[]"), "each"},
        {WITH("\"each\":{\"a\":\"1-\"}"), "'1-'"},
        {WITH("\"each\":{\"a\":\"1%%2\"}"), "'1%%2'"},
        {WITH("\"order\":{}"), "order"},
        {WITH("\"order\":[\"head\"]"), "order"},
        {WITH("\"order\":[3]"), "order"},
        {WITH("\"order\":[\"attention\"],\"attention\":{\"order\":[\"attention\"]}"), "order"},
        {WITH("\"experts\":{\"when\":true,\"order\":[\"mlp\"]}"), "order"},
        {WITH("\"drafter\":{\"layers\":\"many\"}"), "layers"},
        {WITH("\"drafter\":{\"depth\":1}"), "depth"},
        {WITH("\"ends\":{\"vocab\":\"words\"}"), "vocab"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        reading r;
        read_with(&r, wrong[i].record, "{\"num_hidden_layers\":2}");
        if (r.a.status != OOMSIGHT_MALFORMED || !strstr(r.error.text, wrong[i].key))
            print_error("%s: %s\n", wrong[i].record, r.error.text);
        assert_int_equal(r.a.status, OOMSIGHT_MALFORMED);
        assert_non_null(strstr(r.error.text, wrong[i].key));
        assert_string_equal(r.error.path, "models/new.json");
        oos_arena_free(r.arena);
    }
}

static void a_record_that_is_like_nothing_or_itself_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {WITH("\"like\":\"nobody\""), WITH("\"like\":\"../gpus/a10\""),
                                        WITH("\"tower\":\"nobody\""), "[]", "{\"classes\":{\"New\":"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        reading r;
        read_with(&r, wrong[i], "{\"num_hidden_layers\":2}");
        assert_null(r.a.family);
        if (strstr(wrong[i], "New")) assert_int_not_equal(r.a.status, OOMSIGHT_OK);
        assert_true(r.error.text[0] || r.a.status == OOMSIGHT_OK);
        oos_arena_free(r.arena);
    }
}

static uint64_t first_extra(const char *out, const char *config)
{
    reading r;
    char record[400];
    (void)snprintf(record, sizeof record,
                   WITH("\"let\":{\"n\":3},\"norms\":0,\"also\":[{\"name\":\"x\",\"out\":%s}]"), out);
    read_with(&r, record, config);
    if (r.a.status != OOMSIGHT_OK) print_error("%s: %s\n", out, r.error.text);
    assert_int_equal(r.a.status, OOMSIGHT_OK);
    uint64_t found = 0;
    for (size_t i = 0; i < r.a.matrix_count; i++)
        if (strcmp(r.a.matrices[i].name, "x") == 0) found = r.a.matrices[i].out;
    oos_arena_free(r.arena);
    return found;
}

static void sizes_are_sums_of_products_of_numbers_names_and_fields(void **state)
{
    (void)state;
    const char *config = "{\"num_hidden_layers\":1,\"a\":5,\"ratio\":2.5,\"list\":[7,9],\"b\":{\"c\":11},"
                         "\"yes\":true,\"word\":\"x\"}";
    assert_int_equal(first_extra("7", config), 7);
    assert_int_equal(first_extra("\"hidden\"", config), 64);
    assert_int_equal(first_extra("\"2*hidden + n\"", config), 131);
    assert_int_equal(first_extra("\"text.a|8\"", config), 5);
    assert_int_equal(first_extra("\"text.none|text.a*2\"", config), 10);
    assert_int_equal(first_extra("\"text.none|8*2\"", config), 16);
    assert_int_equal(first_extra("\"hidden*text.ratio\"", config), 160);
    assert_int_equal(first_extra("\"text.list.1+text.b.c\"", config), 20);
    assert_int_equal(first_extra("\"hidden/n\"", config), 21);
    assert_int_equal(first_extra("\"hidden/text.none\"", config), 0);
    assert_int_equal(first_extra("{\"if\":\"text.yes\",\"then\":1,\"else\":2}", config), 1);
    assert_int_equal(first_extra("{\"if\":\"!text.yes\",\"then\":1,\"else\":2}", config), 2);
    assert_int_equal(first_extra("{\"if\":\"text.no|true\",\"then\":1,\"else\":2}", config), 1);
    assert_int_equal(first_extra("{\"if\":\"text.word=x\",\"then\":1,\"else\":2}", config), 1);
    assert_int_equal(first_extra("{\"if\":\"n=hidden\",\"then\":1,\"else\":2}", config), 2);
    assert_int_equal(first_extra("{\"if\":[\"text.no\",\"text.a\"],\"then\":1,\"else\":2}", config), 1);
    assert_int_equal(
        first_extra("{\"if\":{\"all\":[\"text.list?\",\"text.no?\"]},\"then\":1,\"else\":2}", config), 2);
}

/* What an entry of a list, a letter of a text or the number of a layer says; nothing where the config is shorter than the model. */
static void sizes_may_differ_by_layer(void **state)
{
    (void)state;
    const char *config =
        "{\"num_hidden_layers\":4,\"list\":[7,9],\"words\":[\"a\",\"b\"],\"word\":\"b\",\"letters\":\"x*\","
        "\"text\":\"0,2 13\",\"blocks\":[{\"n\":5}]}";
    static const struct {
        const char *size;
        uint64_t by_layer[4];
    } rows[] = {
        {"\"layer+1\"", {1, 2, 3, 4}},
        {"\"layer-1+1\"", {1, 1, 2, 3}},
        {"\"layer%2+1\"", {1, 2, 1, 2}},
        {"\"layer%text.none+1\"", {1, 1, 1, 1}},
        {"\"text.list.layer|3\"", {7, 9, 3, 3}},
        {"\"text.list.count+text.letters.count\"", {4, 4, 4, 4}},
        {"\"text.blocks.layer.n|2\"", {5, 2, 2, 2}},
        {"\"text.list.nobody|2\"", {2, 2, 2, 2}},
        {"{\"if\":\"text.letters.layer=x\",\"then\":1,\"else\":2}", {1, 2, 2, 2}},
        {"{\"if\":\"text.letters.layer=*\",\"then\":1,\"else\":2}", {2, 1, 2, 2}},
        {"{\"if\":\"text.words.layer=text.word\",\"then\":1,\"else\":2}", {2, 1, 2, 2}},
        {"{\"if\":{\"holds\":[\"text.text\",\"layer\"]},\"then\":1,\"else\":2}", {1, 2, 1, 2}},
        {"{\"if\":{\"holds\":[\"text.list\",\"layer+7\"]},\"then\":1,\"else\":2}", {1, 2, 1, 2}},
        {"{\"if\":{\"below\":[\"layer\",2]},\"then\":1,\"else\":2}", {1, 1, 2, 2}},
        {"{\"if\":{\"equal\":[\"layer\",\"n\"]},\"then\":1,\"else\":2}", {2, 2, 2, 1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reading r;
        char record[400];
        (void)snprintf(
            record, sizeof record,
            WITH("\"let\":{\"n\":3},\"each\":{\"e\":%s},\"order\":[{\"name\":\"x\",\"out\":\"e\"}]"),
            rows[i].size);
        read_with(&r, record, config);
        if (r.a.status != OOMSIGHT_OK) print_error("%s: %s\n", rows[i].size, r.error.text);
        assert_int_equal(r.a.status, OOMSIGHT_OK);
        for (size_t layer = 0; layer < 4; layer++) {
            assert_int_equal(r.model.layers[layer].matrix_count, 1);
            assert_int_equal(r.a.matrices[r.model.layers[layer].first_matrix].out, rows[i].by_layer[layer]);
        }
        oos_arena_free(r.arena);
    }
}

/* Order, drafter and both mixers in one record; each part only where it is said to be. */
static void layers_have_the_parts_that_their_record_orders(void **state)
{
    (void)state;
    reading r;
    read_with(&r,
              WITH("\"mixer\":{\"when\":{\"equal\":[\"layer%2\",1]},\"kind\":\"conv\",\"sizes\":{\"conv_"
                   "dim\":8},\"state_"
                   "dtype\":\"text.kept\","
                   "\"projections\":[{\"name\":\"c\",\"out\":8}]},\"attention\":{\"when\":\"!drafts\","
                   "\"kind\":\"chunked\","
                   "\"window\":\"layer\"},\"mlp\":{\"when\":\"drafts\"},\"norms\":[\"n\"],\"order\":[\"mlp\","
                   "\"attention\",\"first_norm\"],"
                   "\"ends\":{\"vocab\":32},\"drafter\":{\"layers\":1,\"prefix\":\"mtp.\",\"matrices\":[{"
                   "\"name\":\"fc\",\"out\":2}]}"),
              "{\"num_hidden_layers\":4,\"kept\":\"float32\"}");
    assert_int_equal(r.a.status, OOMSIGHT_OK);
    static const oos_mixer kinds[] = {OOS_MIXER_FULL, OOS_MIXER_CONV, OOS_MIXER_CHUNKED, OOS_MIXER_CONV};
    for (size_t i = 0; i < 4; i++) {
        const oos_layer *layer = &r.model.layers[i];
        assert_int_equal(r.a.attentions[layer->attention].mixer, kinds[i]);
        assert_string_equal(r.a.matrices[layer->first_matrix].name, i % 2 ? "c" : "self_attn.qkv_proj");
        assert_string_equal(r.a.matrices[layer->first_matrix + layer->matrix_count - 1].name, "n");
    }
    assert_int_equal(r.a.attentions[r.model.layers[1].attention].state_dtype, OOS_DTYPE_F32);
    const oos_layer *drafter = &r.model.mtp_layers[0];
    assert_int_equal(r.model.mtp_layer_count, 1);
    assert_int_equal(r.a.attentions[drafter->attention].mixer, OOS_MIXER_NONE);
    assert_int_equal(drafter->matrix_count, 2);
    assert_int_equal(r.model.mtp_matrices[1], 1);
    assert_int_equal(r.a.matrices[r.model.last_stage[0] + 1].out, 32);
    oos_arena_free(r.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_class_of_every_record_is_understood),
        cmocka_unit_test(a_record_that_is_not_understood_names_its_file_and_key),
        cmocka_unit_test(a_record_that_is_like_nothing_or_itself_is_refused),
        cmocka_unit_test(sizes_are_sums_of_products_of_numbers_names_and_fields),
        cmocka_unit_test(sizes_may_differ_by_layer),
        cmocka_unit_test(layers_have_the_parts_that_their_record_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

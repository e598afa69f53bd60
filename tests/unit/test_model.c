#include "unit.h"

#include "model/model.h"

static oomsight_status read_text(oos_arena *arena, const char *config, oos_model *model,
                                 oomsight_error *error)
{
    return oos_model_read(arena, NULL, oos_view_of(config), (oos_view){NULL, 0}, model, error);
}

static oos_model model_of(oos_arena *arena, const char *config)
{
    oos_model model;
    oomsight_error error = {0};
    oomsight_status const status = read_text(arena, config, &model, &error);
    if (status != OOMSIGHT_OK) print_error("%s\n", error.text);
    assert_int_equal(status, OOMSIGHT_OK);
    return model;
}

static size_t layers_with(const oos_model *model, oos_mixer mixer)
{
    size_t count = 0;
    for (size_t i = 0; i < model->layer_count; i++)
        count += model->attentions[model->layers[i].attention].mixer == mixer;
    return count;
}

#define LLAMA                                                                                                \
    "\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":4096,"                \
    "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,\"vocab_size\":"       \
    "128256,"                                                                                                \
    "\"max_position_embeddings\":131072,\"torch_dtype\":\"bfloat16\""

static void equal_layers_share_one_attention_record(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    oos_model const m = model_of(arena, "{" LLAMA ",\"num_hidden_layers\":32}");
    assert_true(m.known);
    assert_int_equal(m.layer_count, 32);
    assert_int_equal(m.attention_count, 1);
    assert_int_equal(m.attentions[0].kv_heads, 8);
    assert_int_equal(m.attentions[0].head_dim, 128);
    assert_int_equal(m.dtype, OOS_DTYPE_BF16);
    assert_int_equal(m.max_position, 131072);
    oos_arena_free(arena);
}

static void an_unknown_architecture_is_read_by_its_common_fields_and_said_so(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    oos_model const m = model_of(
        arena, "{\"architectures\":[\"NobodyKnowsThis\"],\"hidden_size\":1024,\"n_layer\":4,\"n_head\":8}");
    assert_false(m.known);
    assert_int_equal(m.layer_count, 4);
    assert_int_equal(m.attentions[0].head_dim, 128);
    assert_true(m.note_count > 0);
    assert_int_equal(m.max_position, 2048);
    oos_arena_free(arena);
}

static void a_wrapper_nobody_knows_is_read_by_the_decoder_inside_and_has_a_tower(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    oos_model const m = model_of(
        arena,
        "{\"architectures\":[\"NobodyKnowsThis\"],\"text_config\":{\"model_type\":\"qwen3\",\"hidden_size\":"
        "1024,\"num_hidden_layers\":4,\"num_attention_heads\":8},\"vision_config\":{\"hidden_size\":"
        "256,\"num_hidden_layers\":2,\"num_attention_heads\":4}}");
    size_t norms = 0;
    for (size_t i = 0; i < m.matrix_count; i++) norms += strcmp(m.matrices[i].name, "self_attn.q_norm") == 0;
    assert_false(m.known);
    assert_true(norms > 0); /* as Qwen 3 has them */
    assert_true(m.vision_matrices[1] > 0);
    assert_non_null(strstr(m.notes[m.note_count - 1], "Qwen3ForCausalLM"));
    oos_arena_free(arena);
}

static void the_decoder_of_a_composite_config_is_found(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    oos_model const m = model_of(
        arena,
        "{\"architectures\":[\"Qwen2_5OmniModel\"],\"thinker_config\":{\"text_config\":{\"hidden_size\":3584,"
        "\"num_hidden_layers\":28,\"num_attention_heads\":28,\"num_key_value_heads\":4,\"sliding_window\":"
        "32768,"
        "\"use_sliding_window\":false,\"vocab_size\":152064},\"vision_config\":{\"depth\":32}}}");
    assert_int_equal(m.layer_count, 28);
    assert_true(m.multimodal);
    assert_int_equal(layers_with(&m, OOS_MIXER_FULL), 28);
    assert_int_equal(m.vision.depth, 32);
    oos_arena_free(arena);
}

static void sliding_and_full_layers_alternate_as_the_engine_counts_them(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    oos_model m = model_of(arena, "{\"architectures\":[\"Gemma3ForCausalLM\"],\"model_type\":\"gemma3_text\","
                                  "\"num_hidden_layers\":26,\"sliding_window\":512,\"hidden_size\":1152,"
                                  "\"num_attention_heads\":4,\"num_key_value_heads\":1}");
    assert_int_equal(layers_with(&m, OOS_MIXER_FULL), 4);
    assert_int_equal(layers_with(&m, OOS_MIXER_SLIDING), 22);
    assert_int_equal(m.attentions[m.layers[5].attention].mixer, OOS_MIXER_FULL);
    assert_true(m.tied);

    m = model_of(
        arena, "{\"architectures\":[\"Qwen3NextForCausalLM\"],\"num_hidden_layers\":48,\"hidden_size\":2048,"
               "\"num_attention_heads\":16,\"num_key_value_heads\":2,\"full_attention_interval\":4,"
               "\"num_experts\":512}");
    assert_int_equal(layers_with(&m, OOS_MIXER_GDN), 36);
    assert_true(m.hybrid);
    oos_arena_free(arena);
}

static void rope_scaling_lengthens_only_where_the_engine_says_so(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    oos_model m =
        model_of(arena, "{" LLAMA ",\"num_hidden_layers\":2,\"rope_scaling\":{\"rope_type\":\"llama3\","
                        "\"factor\":8.0,\"original_max_position_embeddings\":8192}}");
    assert_int_equal(m.max_position, 131072);
    m = model_of(arena,
                 "{" LLAMA ",\"num_hidden_layers\":2,\"rope_scaling\":{\"type\":\"linear\",\"factor\":4.0}}");
    assert_int_equal(m.max_position, 4 * 131072);
    m = model_of(arena,
                 "{" LLAMA ",\"num_hidden_layers\":2,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0,"
                 "\"original_max_position_embeddings\":32768}}");
    assert_int_equal(m.max_position, 131072);
    assert_int_equal(m.max_position_yarn, 0);
    m = model_of(arena,
                 "{" LLAMA ",\"num_hidden_layers\":2,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":8.0,"
                 "\"original_max_position_embeddings\":32768}}");
    assert_int_equal(m.max_position_yarn, 262144);
    oos_arena_free(arena);
}

/* As Transformers 5 reads them; what is no number of pixels says nothing, what is no JSON is refused by the file's name. */
static void modules_of_sentence_transformers_say_that_it_pools(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool pools;
    } cases[] = {
        {"[{\"type\": \"sentence_transformers.models.Transformer\"}, {\"type\": "
         "\"sentence_transformers.models.Pooling\"}]",
         true},
        {"[{\"type\": \"sentence_transformers.sentence_transformer.modules.pooling.Pooling\"}]", true},
        {"[{\"type\": \"sentence_transformers.models.Normalize\"}]", false},
        {"[{\"type\": \"of.somebody.else.Pooling\"}]", false},
        {"[{\"type\": 3}, 4, null]", false},
        {"{\"type\": \"sentence_transformers.models.Pooling\"}", false},
        {"no JSON", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(oos_modules_pool(oos_view_of(cases[i].text)), cases[i].pools);
}

static void a_processor_says_how_large_images_and_videos_are(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    static const struct {
        const char *texts[OOS_PROCESSOR_FILES];
        uint64_t image, video, tiles, tokens;
    } cases[] = {
        {{"", "{\"max_pixels\": 5000}", ""}, 5000, 5000, 0, 0},
        {{"", "{\"max_patches\": 16}", ""}, 0, 0, 16, 0},
        {{"{\"image_processor\": {\"max_image_tokens\": 128}}", "{\"max_image_tokens\": 9}", ""},
         0,
         0,
         0,
         128},
        {{"", "{\"size\": {\"longest_edge\": 70, \"shortest_edge\": 4}}", ""}, 70, 70, 0, 0},
        {{"", "{\"max_pixels\": 60, \"size\": {\"longest_edge\": 70}}", "{\"size\": {\"longest_edge\": 80}}"},
         60,
         80,
         0,
         0},
        {{"{\"image_processor\": {\"size\": {\"longest_edge\": 1}}}", "{\"max_pixels\": 2}", ""}, 1, 2, 0, 0},
        {{"{\"video_processor\": {\"max_pixels\": 9}, \"image_processor\": {}}", "{\"max_pixels\": 2}", ""},
         0,
         9,
         0,
         0},
        {{"{\"processor_class\": \"X\"}", "{\"max_pixels\": -1, \"size\": \"large\"}", "[]"}, 0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        oos_model model = {0};
        oos_view texts[OOS_PROCESSOR_FILES];
        for (size_t t = 0; t < OOS_PROCESSOR_FILES; t++) texts[t] = oos_view_of(cases[i].texts[t]);
        assert_int_equal(oos_processors_read(arena, oos_processor_files, texts, &model, NULL), OOMSIGHT_OK);
        assert_int_equal(model.vision.image_pixels, cases[i].image);
        assert_int_equal(model.vision.video_pixels, cases[i].video);
        assert_int_equal(model.vision.image_tiles, cases[i].tiles);
        assert_int_equal(model.vision.image_tokens, cases[i].tokens);
    }
    oos_model model = {0};
    oomsight_error error = {0};
    oos_view const broken[OOS_PROCESSOR_FILES] = {{NULL, 0}, {"{", 1}, {NULL, 0}};
    assert_int_equal(oos_processors_read(arena, oos_processor_files, broken, &model, &error),
                     OOMSIGHT_MALFORMED);
    assert_string_equal(error.path, "preprocessor_config.json");
    oos_arena_free(arena);
}

static void numbers_json_cannot_hold_are_survived(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    oos_model const m =
        model_of(arena, "{" LLAMA ",\"num_hidden_layers\":2,\"time_step_limit\":[0.0,Infinity],"
                        "\"a\":-Infinity,\"b\":NaN,\"c\":\"NaN\\\"Infinity\"}");
    assert_int_equal(m.layer_count, 2);
    oos_arena_free(arena);
}

static void sizes_that_are_none_are_refused_with_their_name(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{" LLAMA ",\"num_hidden_layers\":-3}",
        "{" LLAMA ",\"num_hidden_layers\":1e30}",
        "{" LLAMA ",\"num_hidden_layers\":5000}",
        "{" LLAMA "}",
        "{" LLAMA ",\"num_hidden_layers\":2,\"hidden_size\":-1}",
        "{" LLAMA ",\"num_hidden_layers\":2,\"head_dim\":1e30}",
        "{" LLAMA ",\"num_hidden_layers\":2,\"intermediate_size\":null}",
        "[]",
        "{",
        "",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        oos_arena *arena = oos_arena_create(4096);
        oos_model m;
        oomsight_error error = {0};
        assert_int_equal(read_text(arena, bad[i], &m, &error), OOMSIGHT_MALFORMED);
        assert_true(error.text[0] != '\0');
        oos_arena_free(arena);
    }
}

/* Every number of a config that the plan reads, with everything that is none: the sentence names the field and what it is. */
static void fields_that_are_no_numbers_cannot_be_planned(void **state)
{
    (void)state;
    static const char *const fields[] = {"hidden_size",
                                         "num_attention_heads",
                                         "num_key_value_heads",
                                         "intermediate_size",
                                         "vocab_size",
                                         "num_hidden_layers",
                                         "head_dim",
                                         "max_position_embeddings",
                                         "num_experts",
                                         "num_experts_per_tok",
                                         "moe_intermediate_size",
                                         "n_shared_experts",
                                         "original_max_position_embeddings"};
    static const struct {
        const char *text, *shown;
        bool counts; /* wrong for a field that may be 0, too */
    } bad[] = {{"-4", "-4", true},
               {"\"4096\"", "\"4096\"", true},
               {"true", "true", true},
               {"1e30", "1e30", true},
               {"1.5", "1.5", true},
               {"NaN", "NaN", true},
               {"Infinity", "\"inf\"", true},
               {"\"\"", "NaN", true},
               {"0", "0", false},
               {"{}", "no number", false}};
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
            if (!bad[b].counts && f >= 8) continue;
            oos_arena *arena = oos_arena_create(4096);
            oos_model m;
            oomsight_error error = {0};
            char wanted[160];
            const char *config = oos_arena_format(
                arena,
                "{" LLAMA
                ",\"num_hidden_layers\":2,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2.0},\"%s\":%s}",
                fields[f], bad[b].text);
            assert_int_equal(read_text(arena, config, &m, &error), OOMSIGHT_MALFORMED);
            snprintf(wanted, sizeof wanted, "cannot be planned: %s is %s", fields[f], bad[b].shown);
            if (strcmp(bad[b].text, "1e30") != 0 && strcmp(error.text, wanted) != 0)
                print_error("%s, not %s\n", error.text, wanted);
            assert_int_equal(strncmp(error.text, wanted,
                                     strcmp(bad[b].text, "1e30") == 0 ? strlen(wanted) - 4 : strlen(wanted)),
                             0);
            oos_arena_free(arena);
        }
}

/* Where the engine means a default by null, so does the plan. */
static void null_is_a_default_where_the_engine_has_one(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(4096);
    oos_model const m =
        model_of(arena, "{" LLAMA ",\"num_hidden_layers\":2,\"num_key_value_heads\":null,\"head_dim\":null,"
                        "\"num_experts\":null,\"sliding_window\":null}");
    assert_int_equal(m.kv_heads, 32);
    assert_int_equal(m.head_dim, 128);
    oos_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_layers_share_one_attention_record),
        cmocka_unit_test(an_unknown_architecture_is_read_by_its_common_fields_and_said_so),
        cmocka_unit_test(a_wrapper_nobody_knows_is_read_by_the_decoder_inside_and_has_a_tower),
        cmocka_unit_test(the_decoder_of_a_composite_config_is_found),
        cmocka_unit_test(sliding_and_full_layers_alternate_as_the_engine_counts_them),
        cmocka_unit_test(rope_scaling_lengthens_only_where_the_engine_says_so),
        cmocka_unit_test(modules_of_sentence_transformers_say_that_it_pools),
        cmocka_unit_test(a_processor_says_how_large_images_and_videos_are),
        cmocka_unit_test(numbers_json_cannot_hold_are_survived),
        cmocka_unit_test(sizes_that_are_none_are_refused_with_their_name),
        cmocka_unit_test(fields_that_are_no_numbers_cannot_be_planned),
        cmocka_unit_test(null_is_a_default_where_the_engine_has_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

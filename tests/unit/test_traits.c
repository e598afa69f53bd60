/* What the code of every class does that its layers do not tell, and what an engine does for some architectures alone. A maximum hides
 * most of this in plans, so each class is asked by itself. */
#include "unit.h"

#include "base/json.h"
#include "base/locale.h"
#include "facts/facts.h"
#include "model/model.h"

static const struct {
    const char *class, *words;
} classes[] = {
    {"Cohere2ForCausalLM", "drops_gate_up"},
    {"Cohere2MoeForCausalLM", "drops_gate_up"},
    {"CohereForCausalLM", "drops_gate_up"},
    {"DeciLMForCausalLM", "drops_gate_up"},
    {"Eagle3LlamaForCausalLM", "drops_gate_up"},
    {"FalconH1ForCausalLM", "drops_gate_up"},
    {"Gemma2ForCausalLM", "norm_copies=2"},
    {"Gemma3ForCausalLM", "norm_copies=2"},
    {"Gemma3ForConditionalGeneration", "norm_copies=2 around=4"},
    {"Gemma3nForCausalLM", "norm_copies=2"},
    {"Gemma3nForConditionalGeneration", "norm_copies=2 around=4"},
    {"Gemma4ForConditionalGeneration", "mlp_gated video_tokens=2496 frames=32 frame_tokens=70"},
    {"Glm4ForCausalLM", "drops_gate_up"},
    {"Glm4vForConditionalGeneration", "drops_gate_up"},
    {"Glm4vMoeForConditionalGeneration", "drops_gate_up"},
    {"JambaForCausalLM", "drops_gate_up"},
    {"LLaMAForCausalLM", "drops_gate_up"},
    {"Llama4ForCausalLM", "drops_gate_up query_norm_fp32"},
    {"Llama4ForConditionalGeneration", "drops_gate_up query_norm_fp32"},
    {"LlamaForCausalLM", "drops_gate_up"},
    {"LlamaForCausalLMEagle", "drops_gate_up"},
    {"LlamaForCausalLMEagle3", "drops_gate_up"},
    {"Mistral3ForConditionalGeneration", "drops_gate_up mlp_gated"},
    {"MistralForCausalLM", "drops_gate_up"},
    {"NemotronHForCausalLM", "ungated_experts"},
    {"OPTForCausalLM", "outer=3 drops_gate_up"},
    {"Olmo2ForCausalLM", "drops_gate_up"},
    {"Olmo3ForCausalLM", "drops_gate_up"},
    {"OlmoeForCausalLM", "drops_gate_up"},
    {"Phi3ForCausalLM", "drops_gate_up"},
    {"Qwen2VLForConditionalGeneration", "rotates frame_pairs image_tokens=16384"},
    {"Qwen2_5OmniForConditionalGeneration",
     "rotates mlp_gated frame_pairs frame_tokens_most=768 image_tokens=16384"},
    {"Qwen2_5OmniModel", "rotates mlp_gated frame_pairs frame_tokens_most=768 image_tokens=16384"},
    {"Qwen2_5_VLForConditionalGeneration", "rotates mlp_gated frame_pairs image_tokens=16384"},
    {"Qwen3NextForCausalLM", "norm_copies=2 output_gate interleaved_gdn"},
    {"Qwen3VLForConditionalGeneration",
     "rotates learnt_positions image_tokens=16384 video_tokens=12288 video_claims=153600"},
    {"Qwen3VLMoeForConditionalGeneration",
     "rotates learnt_positions image_tokens=16384 video_tokens=12288 video_claims=153600"},
    {"Qwen3_5ForCausalLM", "norm_copies=2 output_gate"},
    {"Qwen3_5ForConditionalGeneration", "norm_copies=2 output_gate rotates learnt_positions "
                                        "image_tokens=16384 video_tokens=12288 video_claims=153600"},
    {"Qwen3_5MoeForCausalLM", "norm_copies=2 output_gate"},
    {"Qwen3_5MoeForConditionalGeneration", "norm_copies=2 output_gate rotates learnt_positions "
                                           "image_tokens=16384 video_tokens=12288 video_claims=153600"},
    {"TeleChat2ForCausalLM", "drops_gate_up"},
    {"TeleChat3ForCausalLM", "drops_gate_up"},
};

static void put(char *text, size_t size, const char *name, uint64_t value, bool yes)
{
    size_t const len = strlen(text);
    if (!value) return;
    if (yes)
        (void)oos_format(text + len, size - len, "%s%s", len ? " " : "", name);
    else
        (void)oos_format(text + len, size - len, "%s%s=%llu", len ? " " : "", name,
                         (unsigned long long)value);
}

static void words_of(const oos_code *code, char *text, size_t size)
{
#define WHOLE(name) put(text, size, #name, code->name, false)
#define YES(name) put(text, size, #name, code->name, true)
    text[0] = '\0';
    WHOLE(outer), WHOLE(norm_copies), YES(drops_gate_up), YES(output_gate), YES(query_norm_fp32),
        YES(interleaved_gdn), YES(ungated_experts), YES(rotates), YES(mlp_gated), YES(learnt_positions),
        YES(frame_pairs), WHOLE(frame_tokens_most), WHOLE(image_tokens), WHOLE(video_tokens),
        WHOLE(video_claims), WHOLE(frames), WHOLE(frame_tokens), WHOLE(around);
#undef WHOLE
#undef YES
}

static void class_has(const char *class, const char *type, const char *words)
{
    oos_arena *arena = oos_arena_create(1 << 16);
    char config[512], text[512];
    oos_model model;
    oomsight_error error = {0};
    (void)oos_format(
        config, sizeof config,
        "{\"architectures\": [\"%s\"], \"model_type\": \"%s\", \"hidden_size\": 4096, \"head_dim\": 128, "
        "\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"intermediate_size\": 14336, "
        "\"vocab_size\": 32000, \"num_hidden_layers\": 4}",
        class, type);
    if (oos_model_read(arena, NULL, oos_view_of(config), (oos_view){NULL, 0}, &model, &error) != OOMSIGHT_OK)
        fail_msg("%s: %s", class, error.text);
    words_of(&model.code, text, sizeof text);
    if (strcmp(text, words) != 0) fail_msg("%s of type %s: '%s', and not '%s'", class, type, text, words);
    oos_arena_free(arena);
}

/* Every class of data/models: those of the table as they are there, all others as usual. */
static void every_class_has_its_traits(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(1 << 16);
    oos_data_file *files;
    oomsight_error error = {0};
    size_t count = 0, told = 0;
    assert_int_equal(oos_data_list(arena, NULL, "models", &files, &count, &error), OOMSIGHT_OK);
    for (size_t i = 0; i < count; i++) {
        json_t *body = NULL, *over;
        const char *class;
        assert_int_equal(oos_json_load(arena, (oos_view){files[i].bytes, files[i].len}, &body, &error),
                         OOMSIGHT_OK);
        json_object_foreach(json_object_get(body, "classes"), class, over)
        {
            size_t at = 0;
            while (at < sizeof classes / sizeof *classes && strcmp(classes[at].class, class) != 0) at++;
            bool const listed = at < sizeof classes / sizeof *classes;
            class_has(class, "anything", listed ? classes[at].words : "");
            told += listed;
        }
    }
    assert_int_equal(told, sizeof classes / sizeof *classes);
    oos_arena_free(arena);
}

/* A class that no record names is judged by how its model_type begins. */
static void an_unknown_class_is_judged_by_its_type(void **state)
{
    (void)state;
    class_has("NobodyForCausalLM", "nobody", "");
    class_has("NobodyForCausalLM", "llama_x", "drops_gate_up");
    class_has("NobodyForCausalLM", "glm4_x", "drops_gate_up");
    class_has("NobodyForCausalLM", "glm4_moe_x", "");
    class_has("NobodyForCausalLM", "opt", "outer=3 drops_gate_up");
    class_has("NobodyForCausalLM", "qwen3_next_x",
              "norm_copies=2 output_gate interleaved_gdn rotates learnt_positions image_tokens=16384");
    class_has("NobodyForCausalLM", "qwen2_5_omni_x",
              "rotates mlp_gated frame_pairs frame_tokens_most=768 image_tokens=16384");
    class_has("NobodyForCausalLM", "qwen3_vl_x",
              "rotates learnt_positions image_tokens=16384 video_tokens=12288 video_claims=153600");
    class_has("NobodyForCausalLM", "gemma4_x", "mlp_gated video_tokens=2496 frames=32 frame_tokens=70");
}

static const struct {
    const char *engine, *architecture, *word;
    uint64_t value;
} told[] = {
    {"vllm", "DeepSeekV4Any", "breakable_graphs", 1},
    {"vllm", "DeepseekV2ForCausalLM", "v2_runner", 4},
    {"vllm", "DeepseekV32Any", "breakable_graphs", 3},
    {"vllm", "DeepseekV32Any", "own_kv_layout", 1},
    {"vllm", "DeepseekV4Any", "breakable_graphs", 1},
    {"vllm", "DeepseekV4Any", "own_quantization", 1},
    {"vllm", "Dots3NoteAny", "breakable_graphs", 3},
    {"vllm", "Gemma4Any", "one_backend", 1},
    {"vllm", "Gemma4ForConditionalAny", "least_batched_tokens", 1},
    {"vllm", "Glm5NextAny", "breakable_graphs", 3},
    {"vllm", "Glm5NextAny", "kda_checkpoint", 1},
    {"vllm", "GlmMoeDsaAny", "breakable_graphs", 3},
    {"vllm", "GlmMoeDsaAny", "fp8_cache_10x", 1},
    {"vllm", "GptOssForCausalLM", "capture_top", 1},
    {"vllm", "GraniteMoeForCausalLM", "v2_runner", 6},
    {"vllm", "HYV4Any", "breakable_graphs", 3},
    {"vllm", "InklingAny", "breakable_graphs", 2},
    {"vllm", "KimiK3Any", "breakable_graphs", 2},
    {"vllm", "KimiK3Any", "kda_checkpoint", 1},
    {"vllm", "KimiLinearAny", "breakable_graphs", 2},
    {"vllm", "KimiLinearAny", "claims_no_context", 1},
    {"vllm", "LlamaForCausalLM", "v2_runner", 2},
    {"vllm", "MiniMaxM3SparseAny", "breakable_graphs", 1},
    {"vllm", "MistralForCausalLM", "v2_runner", 3},
    {"vllm", "NemotronHAny", "state_dtype", 1},
    {"vllm", "Qwen2MoeForCausalLM", "v2_runner", 5},
    {"vllm", "Qwen3ForCausalLM", "v2_runner", 1},
    {"vllm", "Qwen4ExpAny", "breakable_graphs", 3},
    {"sglang", "Gemma4ForCausalLM", "sliding_pool", 1},
    {"sglang", "GptOssForCausalLM", "sliding_pool", 1},
    {"sglang", "GraniteMoeSWAForCausalLM", "sliding_pool", 1},
    {"sglang", "GraniteSWAForCausalLM", "sliding_pool", 1},
    {"sglang", "IQuestQ1ForCausalLM", "sliding_pool", 1},
    {"sglang", "LagunaForCausalLM", "sliding_pool", 1},
    {"sglang", "MellumForCausalLM", "sliding_pool", 1},
    {"sglang", "MiMoV2FlashForCausalLM", "sliding_pool", 1},
    {"sglang", "MiMoV2ForCausalLM", "sliding_pool", 1},
    {"sglang", "MuseGlimmerForCausalLM", "sliding_pool", 1},
    {"sglang", "Step3p5ForCausalLM", "sliding_pool", 1},
};

static void every_architecture_is_told_apart_by_its_engine(void **state)
{
    (void)state;
    oos_arena *arena = oos_arena_create(1 << 16);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        oos_argument_facts *facts;
        oomsight_error error = {0};
        assert_int_equal(oos_architectures_load(arena, NULL, told[i].engine, &facts, &error), OOMSIGHT_OK);
        assert_int_equal(oos_architecture_says(facts, told[i].architecture, told[i].word), told[i].value);
        assert_int_equal(oos_architecture_says(facts, "NobodyForCausalLM", told[i].word), 0);
        assert_int_equal(oos_architecture_says(facts, NULL, told[i].word), 0);
    }
    oos_argument_facts *facts;
    oomsight_error error = {0};
    assert_int_equal(oos_architectures_load(arena, NULL, "vllm", &facts, &error), OOMSIGHT_OK);
    static const char *const types[] = {"gemma2", "gemma3", "gemma3_text", "plamo2", "glm4"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        assert_int_equal(oos_model_type_says(facts, types[i], "no_float16"), 1);
    assert_int_equal(oos_model_type_says(facts, "gemma4", "no_float16"), 0);
    assert_int_equal(oos_model_type_says(facts, "glm4_moe", "no_float16"), 0);
    assert_int_equal(oos_architecture_says(facts, "LlamaForCausalLM2", "v2_runner"), 0);
    assert_int_equal(oos_architecture_says(facts, "Gemma4ForConditionalGeneration", "one_backend"), 1);
    assert_int_equal(oos_architecture_says(facts, "Gemma4ForCausalLM", "least_batched_tokens"), 0);
    oos_arena_free(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_class_has_its_traits),
        cmocka_unit_test(an_unknown_class_is_judged_by_its_type),
        cmocka_unit_test(every_architecture_is_told_apart_by_its_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which engine class is built by which family. */
#include "model/arch/arch.h"

/* Names that composite checkpoints and the engine's wrappers spell differently (the hf_to_vllm_mapper of each class). */
static const oos_rename vl_names[] = {
    {OOS_RENAME_PREFIX, "model.visual.", "visual."},
    {OOS_RENAME_PREFIX, "lm_head.", "language_model.lm_head."},
    {OOS_RENAME_PREFIX, "model.language_model.", "language_model.model."},
    {OOS_RENAME_PREFIX, "model.", "language_model.model."},
    {OOS_RENAME_END, NULL, NULL},
};
static const oos_rename qwen3_vl_names[] = {
    {OOS_RENAME_PREFIX, "model.visual.", "visual."},
    {OOS_RENAME_PREFIX, "lm_head.", "language_model.lm_head."},
    {OOS_RENAME_PREFIX, "model.language_model.", "language_model.model."},
    {OOS_RENAME_END, NULL, NULL},
};
static const oos_rename llava_names[] = {
    {OOS_RENAME_PREFIX, "model.language_model.", "language_model.model."},
    {OOS_RENAME_PREFIX, "model.vision_tower.", "vision_tower."},
    {OOS_RENAME_PREFIX, "model.multi_modal_projector.", "multi_modal_projector."},
    {OOS_RENAME_PREFIX, "lm_head.", "language_model.lm_head."},
    {OOS_RENAME_END, NULL, NULL},
};
static const oos_rename mistral3_names[] = {
    {OOS_RENAME_PREFIX, "model.language_model.", "language_model.model."},
    {OOS_RENAME_PREFIX, "model.vision_tower.", "vision_tower."},
    {OOS_RENAME_PREFIX, "model.multi_modal_projector.", "multi_modal_projector."},
    {OOS_RENAME_PREFIX, "lm_head.", "language_model.lm_head."},
    {OOS_RENAME_PREFIX, "model.", "language_model.model."},
    {OOS_RENAME_END, NULL, NULL},
};
static const oos_rename gemma4_names[] = {
    {OOS_RENAME_PREFIX, "model.vision_tower", "vision_tower"},
    {OOS_RENAME_PREFIX, "model.embed_vision", "embed_vision"},
    {OOS_RENAME_PREFIX, "model.audio_tower.", "audio_tower."},
    {OOS_RENAME_PREFIX, "model.embed_audio.", "embed_audio."},
    {OOS_RENAME_PREFIX, "model.language_model.", "language_model.model."},
    {OOS_RENAME_PREFIX, "lm_head.", "language_model.lm_head."},
    {OOS_RENAME_PREFIX, "model", "language_model.model"},
    {OOS_RENAME_END, NULL, NULL},
};
static const oos_rename omni_names[] = {
    {OOS_RENAME_PREFIX, "thinker.lm_head.", "language_model.lm_head."},
    {OOS_RENAME_PREFIX, "thinker.model.", "language_model.model."},
    {OOS_RENAME_PREFIX, "thinker.", ""},
    {OOS_RENAME_PREFIX, "talker.", NULL},
    {OOS_RENAME_PREFIX, "token2wav.", NULL},
    {OOS_RENAME_END, NULL, NULL},
};
static const oos_rename kimi_names[] = {
    {OOS_RENAME_PREFIX, "language_model.layers.", "language_model.model.layers."},
    {OOS_RENAME_END, NULL, NULL},
};
static const oos_rename nemotron_names[] = {
    {OOS_RENAME_INSIDE, "embeddings", "embed_tokens"},
    {OOS_RENAME_PREFIX, "backbone", "model"},
    {OOS_RENAME_PREFIX, "mtp", NULL},
    {OOS_RENAME_END, NULL, NULL},
};
static const oos_rename step_names[] = {
    {OOS_RENAME_INSIDE, ".share_expert.", ".moe.share_expert."},
    {OOS_RENAME_END, NULL, NULL},
};

#define WRAPPED "language_model.model."

/* vLLM 0.32, model_executor/models/registry.py, for the families of arch/. */
static const oos_family families[] = {
    {"LlamaForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"MistralForCausalLM", oos_build_mistral, NULL, NULL, NULL, NULL},
    {"Mistral3ForConditionalGeneration", oos_build_mistral, oos_tower_pixtral, WRAPPED, mistral3_names, NULL},
    {"LLaMAForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"InternLM3ForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"IQuestCoderForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"TeleChat3ForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"InternLM2ForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"Ministral3ForCausalLM", oos_build_mistral, NULL, NULL, NULL, NULL},
    {"GraniteForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"SmolLM3ForCausalLM", oos_build_llama, NULL, NULL, NULL, oos_rope_none},
    {"SeedOssForCausalLM", oos_build_llama, NULL, NULL, NULL, oos_rope_none},
    {"Ernie4_5ForCausalLM", oos_build_ernie, NULL, NULL, NULL, NULL},
    {"TeleChat2ForCausalLM", oos_build_telechat2, NULL, NULL, NULL, NULL},
    {"OrionForCausalLM", oos_build_orion, NULL, NULL, NULL, NULL},
    {"HyperCLOVAXForCausalLM", oos_build_hyperclovax, NULL, NULL, NULL, NULL},
    {"ApertusForCausalLM", oos_build_apertus, NULL, NULL, NULL, NULL},
    {"Ernie4_5_MoeForCausalLM", oos_build_ernie_moe, NULL, NULL, NULL, NULL},
    {"BailingMoeForCausalLM", oos_build_bailing, NULL, NULL, NULL, NULL},
    {"BailingMoeV2ForCausalLM", oos_build_bailing, NULL, NULL, NULL, NULL},
    {"DeepseekForCausalLM", oos_build_deepseek_moe, NULL, NULL, NULL, NULL},
    {"MiniCPMForCausalLM", oos_build_minicpm, NULL, NULL, NULL, NULL},
    {"SolarForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"ExaoneForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"TeleFLMForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"PanguEmbeddedForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"GraniteSWAForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"Glm4ForCausalLM", oos_build_glm4, NULL, NULL, NULL, NULL},
    {"GlmForCausalLM", oos_build_glm4, NULL, NULL, NULL, oos_rope_none},
    {"GemmaForCausalLM", oos_build_gemma, NULL, NULL, NULL, NULL},
    {"CohereForCausalLM", oos_build_cohere, NULL, NULL, NULL, NULL},
    {"Cohere2ForCausalLM", oos_build_cohere, NULL, NULL, NULL, NULL},
    {"Starcoder2ForCausalLM", oos_build_starcoder2, NULL, NULL, NULL, oos_rope_none},
    {"GPTNeoXForCausalLM", oos_build_neox, NULL, NULL, NULL, oos_rope_none},
    {"StableLmForCausalLM", oos_build_stablelm, NULL, NULL, NULL, NULL},
    {"NemotronForCausalLM", oos_build_nemotron, NULL, NULL, NULL, NULL},
    {"ArceeForCausalLM", oos_build_arcee, NULL, NULL, NULL, oos_rope_none},
    {"Exaone4ForCausalLM", oos_build_exaone4, NULL, NULL, NULL, NULL},
    {"GPT2LMHeadModel", oos_build_gpt2, NULL, NULL, NULL, oos_rope_none},
    {"FalconForCausalLM", oos_build_falcon, NULL, NULL, NULL, NULL},
    {"Olmo2ForCausalLM", oos_build_olmo3, NULL, NULL, NULL, oos_rope_none},
    {"BambaForCausalLM", oos_build_bamba, NULL, NULL, NULL, NULL},
    {"GraniteMoeHybridForCausalLM", oos_build_bamba, NULL, NULL, NULL, NULL},
    {"FalconH1ForCausalLM", oos_build_falcon_h1, NULL, NULL, NULL, NULL},
    {"PhiMoEForCausalLM", oos_build_phimoe, NULL, NULL, NULL, NULL},
    {"OlmoeForCausalLM", oos_build_olmoe, NULL, NULL, NULL, NULL},
    {"GraniteMoeForCausalLM", oos_build_mixtral, NULL, NULL, NULL, NULL},
    {"LlamaForCausalLMEagle3", oos_build_eagle3, NULL, NULL, NULL, NULL},
    {"Eagle3LlamaForCausalLM", oos_build_eagle3, NULL, NULL, NULL, NULL},
    {"MiMoForCausalLM", oos_build_qwen2, NULL, NULL, NULL, NULL},
    {"OPTForCausalLM", oos_build_opt, NULL, "model.decoder.", NULL, oos_rope_none},
    {"PhiForCausalLM", oos_build_phi, NULL, NULL, NULL, oos_rope_none},
    {"Phi3ForCausalLM", oos_build_llama, NULL, NULL, NULL, NULL},
    {"Olmo3ForCausalLM", oos_build_olmo3, NULL, NULL, NULL, oos_rope_none},
    {"Qwen2ForCausalLM", oos_build_qwen2, NULL, NULL, NULL, NULL},
    {"Qwen2VLForConditionalGeneration", oos_build_qwen2, oos_tower_qwen2_vl, WRAPPED, vl_names,
     oos_rope_mrope4},
    {"Qwen2_5_VLForConditionalGeneration", oos_build_qwen2, oos_tower_qwen2_5_vl, WRAPPED, vl_names,
     oos_rope_mrope4},
    {"Qwen2_5OmniModel", oos_build_qwen2, oos_tower_omni, WRAPPED, omni_names, oos_rope_mrope4},
    {"Qwen2_5OmniForConditionalGeneration", oos_build_qwen2, oos_tower_omni, WRAPPED, omni_names,
     oos_rope_mrope4},
    {"MiniCPMV", oos_build_qwen2, NULL, "llm.model.", NULL, NULL},
    {"Qwen3ForCausalLM", oos_build_qwen3, NULL, NULL, NULL, NULL},
    {"Qwen3VLForConditionalGeneration", oos_build_qwen3, oos_tower_qwen3_vl, WRAPPED, qwen3_vl_names, NULL},
    {"Qwen3MoeForCausalLM", oos_build_qwen_moe, NULL, NULL, NULL, NULL},
    {"Qwen3VLMoeForConditionalGeneration", oos_build_qwen_moe, oos_tower_qwen3_vl, WRAPPED, qwen3_vl_names,
     NULL},
    {"Qwen2MoeForCausalLM", oos_build_qwen_moe, NULL, NULL, NULL, NULL},
    {"Qwen3NextForCausalLM", oos_build_qwen3_next, NULL, NULL, NULL, NULL},
    {"Qwen3_5ForCausalLM", oos_build_qwen3_next, NULL, NULL, NULL, NULL},
    {"Qwen3_5MoeForCausalLM", oos_build_qwen3_next, NULL, NULL, NULL, NULL},
    {"Qwen3_5ForConditionalGeneration", oos_build_qwen3_next, oos_tower_qwen3_vl, WRAPPED, qwen3_vl_names,
     NULL},
    {"Qwen3_5MoeForConditionalGeneration", oos_build_qwen3_next, oos_tower_qwen3_vl, WRAPPED, qwen3_vl_names,
     NULL},
    {"Gemma2ForCausalLM", oos_build_gemma2, NULL, NULL, NULL, NULL},
    {"Gemma3ForCausalLM", oos_build_gemma3, NULL, NULL, NULL, oos_rope_gemma3},
    {"Gemma3ForConditionalGeneration", oos_build_gemma3, oos_tower_gemma3, WRAPPED, llava_names,
     oos_rope_gemma3},
    {"Gemma3nForCausalLM", oos_build_gemma3n, NULL, NULL, NULL, NULL},
    {"Gemma3nForConditionalGeneration", oos_build_gemma3n, NULL, WRAPPED, NULL, NULL},
    {"Gemma4ForCausalLM", oos_build_gemma4, NULL, NULL, NULL, oos_rope_gemma4},
    {"Gemma4ForConditionalGeneration", oos_build_gemma4, oos_tower_gemma4, WRAPPED, gemma4_names,
     oos_rope_gemma4},
    {"MixtralForCausalLM", oos_build_mixtral, NULL, NULL, NULL, NULL},
    {"Glm4MoeForCausalLM", oos_build_glm4_moe, NULL, NULL, NULL, NULL},
    {"MiniMaxM2ForCausalLM", oos_build_minimax_m2, NULL, NULL, NULL, NULL},
    {"MiniMaxM3ForCausalLM", oos_build_minimax_m3, NULL, NULL, NULL, NULL},
    {"MiniMaxM3SparseForCausalLM", oos_build_minimax_m3, NULL, NULL, NULL, NULL},
    {"MiniMaxM3SparseForConditionalGeneration", oos_build_minimax_m3, oos_tower_minimax_m3, WRAPPED, NULL,
     NULL},
    {"MiMoV2FlashForCausalLM", oos_build_mimo_v2, NULL, NULL, NULL, oos_rope_mimo_v2},
    {"MiMoV2ForCausalLM", oos_build_mimo_v2, NULL, NULL, NULL, oos_rope_mimo_v2},
    {"GptOssForCausalLM", oos_build_gpt_oss, NULL, NULL, NULL, oos_rope_fp32},
    {"Step3p5ForCausalLM", oos_build_step3, NULL, NULL, step_names, NULL},
    {"Step3p7FlashForCausalLM", oos_build_step3, NULL, NULL, step_names, NULL},
    {"Llama4ForCausalLM", oos_build_llama4, NULL, NULL, NULL, NULL},
    {"Llama4ForConditionalGeneration", oos_build_llama4, oos_tower_llama4, WRAPPED, NULL, NULL},
    {"MllamaForConditionalGeneration", oos_build_mllama, NULL, WRAPPED, NULL, NULL},
    {"DeciLMForCausalLM", oos_build_deci, NULL, NULL, NULL, NULL},
    {"DeepseekV2ForCausalLM", oos_build_deepseek, NULL, NULL, NULL, NULL},
    {"DeepseekV3ForCausalLM", oos_build_deepseek, NULL, NULL, NULL, NULL},
    {"DeepseekV32ForCausalLM", oos_build_deepseek, NULL, NULL, NULL, oos_rope_indexer},
    {"Glm4MoeLiteForCausalLM", oos_build_deepseek, NULL, NULL, NULL, NULL},
    {"GlmMoeDsaForCausalLM", oos_build_deepseek, NULL, NULL, NULL, oos_rope_indexer},
    {"KimiK25ForConditionalGeneration", oos_build_deepseek, oos_tower_moonvit, WRAPPED, kimi_names, NULL},
    {"DeepseekV4ForCausalLM", oos_build_deepseek_v4, NULL, NULL, NULL, NULL},
    {"KimiLinearForCausalLM", oos_build_kimi_linear, NULL, NULL, NULL, oos_rope_none},
    {"KimiK3ForConditionalGeneration", oos_build_kimi_linear, oos_tower_moonvit, WRAPPED, kimi_names,
     oos_rope_none},
    {"NemotronHForCausalLM", oos_build_nemotron_h, NULL, NULL, nemotron_names, oos_rope_none},
    {"MambaForCausalLM", oos_build_mamba, NULL, "backbone.", NULL, NULL},
    {"FalconMambaForCausalLM", oos_build_mamba, NULL, "backbone.", NULL, NULL},
    {"Mamba2ForCausalLM", oos_build_mamba2, NULL, "backbone.", NULL, NULL},
    {"JambaForCausalLM", oos_build_jamba, NULL, NULL, NULL, oos_rope_none},
    {"Lfm2ForCausalLM", oos_build_lfm2, NULL, NULL, NULL, NULL},
    {"Lfm2MoeForCausalLM", oos_build_lfm2, NULL, NULL, NULL, NULL},
    {"LlavaForConditionalGeneration", oos_build_inside, oos_tower_llava, WRAPPED, llava_names,
     oos_rope_inside},
    {"LlavaNextForConditionalGeneration", oos_build_inside, oos_tower_llava, WRAPPED, llava_names,
     oos_rope_inside},
    {"LlavaOnevisionForConditionalGeneration", oos_build_inside, oos_tower_llava, WRAPPED, llava_names,
     oos_rope_inside},
    {"InternVLChatModel", oos_build_inside, oos_tower_internvl, WRAPPED, NULL, oos_rope_inside},
    {"KimiVLForConditionalGeneration", oos_build_deepseek, oos_tower_moonvit, WRAPPED, kimi_names, NULL},
    {"Glm4vForConditionalGeneration", oos_build_glm4, oos_tower_glm4v, WRAPPED, qwen3_vl_names,
     oos_rope_mrope4},
    {"Glm4vMoeForConditionalGeneration", oos_build_glm4_moe, oos_tower_glm4v, WRAPPED, qwen3_vl_names,
     oos_rope_mrope4},
    {"Lfm2VlForConditionalGeneration", oos_build_lfm2, oos_tower_siglip2, WRAPPED, llava_names, NULL},
};

const oos_family *oos_family_find(const char *architecture)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].architecture, architecture) == 0) return &families[i];
    return NULL;
}

const oos_family *oos_family_inside(const oos_arch *a)
{
    static const struct {
        const char *type, *class;
    } types[] = {
        {"llama", "LlamaForCausalLM"},
        {"mistral", "MistralForCausalLM"},
        {"qwen2", "Qwen2ForCausalLM"},
        {"qwen2_moe", "Qwen2MoeForCausalLM"},
        {"qwen3", "Qwen3ForCausalLM"},
        {"qwen3_moe", "Qwen3MoeForCausalLM"},
        {"gemma", "GemmaForCausalLM"},
        {"gemma2", "Gemma2ForCausalLM"},
        {"gemma3_text", "Gemma3ForCausalLM"},
        {"phi3", "Phi3ForCausalLM"},
        {"internlm2", "InternLM2ForCausalLM"},
        {"glm4", "Glm4ForCausalLM"},
        {"glm4_moe", "Glm4MoeForCausalLM"},
        {"granite", "GraniteForCausalLM"},
        {"cohere2", "Cohere2ForCausalLM"},
        {"smollm3", "SmolLM3ForCausalLM"},
        {"deepseek_v2", "DeepseekV2ForCausalLM"},
        {"deepseek_v3", "DeepseekV3ForCausalLM"},
        {"ernie4_5", "Ernie4_5ForCausalLM"},
        {"ernie4_5_moe", "Ernie4_5_MoeForCausalLM"},
        {"gpt_oss", "GptOssForCausalLM"},
        {"opt", "OPTForCausalLM"},
    };
    const json_t *class = json_array_get(json_object_get(a->text, "architectures"), 0);
    const oos_family *family = json_is_string(class) ? oos_family_find(json_string_value(class)) : NULL;
    const char *model_type = oos_arch_str(a, "model_type");
    for (size_t i = 0; !family && model_type && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].type, model_type) == 0) family = oos_family_find(types[i].class);
    return family;
}

void oos_build_inside(oos_arch *a)
{
    const oos_family *family = a->text == a->root ? NULL : oos_family_inside(a);
    a->model->known = family != NULL;
    (family && family->build != oos_build_inside ? family->build : oos_build_unknown)(a);
}

void oos_rope_inside(oos_arch *a)
{
    const oos_family *family = a->text == a->root ? NULL : oos_family_inside(a);
    (family && family->rope && family->rope != oos_rope_inside ? family->rope : oos_rope_usual)(a);
}

/* vLLM 0.11 and 0.32: classes with embedding_modules. */
bool oos_family_embeds_lora(const char *architecture)
{
    static const char *const classes[] = {
        "LlamaForCausalLM",   "MistralForCausalLM",    "MixtralForCausalLM",          "DeciLMForCausalLM",
        "JambaForCausalLM",   "NemotronHForCausalLM",  "NemotronForCausalLM",         "BambaForCausalLM",
        "GraniteForCausalLM", "GraniteMoeForCausalLM", "GraniteMoeHybridForCausalLM", "PhiMoEForCausalLM",
        "CohereForCausalLM",  "Cohere2ForCausalLM",    "Exaone4ForCausalLM",          "FalconH1ForCausalLM",
    };
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(classes[i], architecture) == 0) return true;
    return false;
}

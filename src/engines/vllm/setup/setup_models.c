/* What the engine sets for particular architectures before anything is sized: types of the KV cache and of recurrent
 * state, and what prefix caching does with that state. Source: vllm/model_executor/models/config.py, by version. */
#include "engines/vllm/setup/setup.h"

/* DeepSeek V3.2 stored fp8 in its own layout, in 0.11.0 even when nothing was asked; GLM-5 stores fp8 on SM100. */
static void set_kv_dtype(oos_setup *setup)
{
    const vllm_rules *rules = setup->rules;
    bool const automatic = setup->kv_dtype == OOS_KV_MODEL_DTYPE;
    if (oos_setup_says(setup, "own_kv_layout")) {
        bool const fp8 = setup->kv_dtype == OOS_KV_FP8 && rules->v32_kv_dtype >= 1;
        if (fp8 || (automatic && rules->v32_kv_dtype >= 2)) {
            setup->kv_dtype = OOS_KV_FP8_DS_MLA;
            setup->kv_dtype_word = "fp8_ds_mla";
        }
    }
    uint64_t const listed = oos_setup_says(setup, "fp8_cache_10x"); /* since which step of the rule */
    if (listed && listed <= rules->glm_dsa_fp8 && automatic && setup->device.capability / 10 == 10) {
        setup->kv_dtype = OOS_KV_FP8;
        setup->kv_dtype_word = "fp8_e4m3";
    }
}

/* Nemotron-H: a type of its own for the state where neither flag nor checkpoint names one. */
static void set_state_dtype(oos_setup *setup)
{
    const char *asked = setup->serve->mamba_ssm_cache_dtype;
    if (!oos_setup_says(setup, "state_dtype") || (asked && strcmp(asked, "auto") != 0)) return;
    for (size_t i = 0; i < setup->model->attention_count; i++)
        if (setup->model->attentions[i].state_dtype != OOS_DTYPE_UNKNOWN) return;
    if (setup->rules->nemotron_state_bytes == 2) setup->mamba_ssm_dtype = OOS_DTYPE_F16;
    if (setup->rules->nemotron_state_bytes == 4) setup->mamba_ssm_dtype = OOS_DTYPE_F32;
}

/* The kernels of Mamba 1 and 2 can leave a state at every block; others only at the last one. */
static bool caches_every_state(const oos_model *model)
{
    for (size_t i = 0; i < model->attention_count; i++)
        if (model->attentions[i].mixer == OOS_MIXER_MAMBA1 || model->attentions[i].mixer == OOS_MIXER_MAMBA2)
            return true;
    return false;
}

static void set_state_caching(oos_setup *setup)
{
    const vllm_rules *rules = setup->rules;
    bool const has_state = setup->model->hybrid || setup->model->attention_free;
    bool const every = caches_every_state(setup->model);
    if (!has_state) return;
    if (setup->model->attention_free && !setup->serve->enable_prefix_caching.known)
        setup->prefix_caching = false;
    if (rules->state_pages < 2 && !(rules->state_pages == 1 && every)) setup->prefix_caching = false;
    if (!setup->prefix_caching) {
        setup->mamba_mode = OOS_MAMBA_NONE;
        return;
    }
    if (!rules->mamba_cache_modes) return;
    const char *mode = setup->serve->mamba_cache_mode;
    bool const given = mode && strcmp(mode, "none") != 0;
    bool const drafts = setup->speculative_tokens > 0 && rules->mamba_mode_default == 2;
    bool const all = given ? strcmp(mode, "all") == 0 : rules->mamba_mode_default >= 1 && !drafts;
    setup->mamba_mode = all && every && rules->mamba_mode_all ? OOS_MAMBA_ALL : OOS_MAMBA_ALIGN;
}

void oos_setup_for_architecture(oos_setup *setup)
{
    set_kv_dtype(setup);
    set_state_dtype(setup);
    set_state_caching(setup);
}

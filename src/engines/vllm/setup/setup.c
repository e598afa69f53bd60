/* Resolving the engine's configuration: every default, in the order in which the engine sets it. Capture sizes and the
 * graph mode are in setup_graphs.c, batch limits in setup_batch.c. */
#include "engines/vllm/setup/setup.h"

/* vLLM, ModelConfig: `auto` takes the checkpoint's type; float32 is cast down, and bfloat16 becomes float16 where the
 * device has none. */
/* _FLOAT16_NOT_SUPPORTED_MODELS */
bool oos_setup_unstable_in_float16(const oos_setup *setup)
{
    return oos_model_type_says(setup->rules->facts, setup->model->model_type, "no_float16") > 0;
}

uint64_t oos_setup_says(const oos_setup *setup, const char *word)
{
    return setup->rules ? oos_architecture_says(setup->rules->facts, setup->model->architecture, word) : 0;
}

static oos_dtype resolve_dtype(const oos_setup *setup)
{
    const char *asked = setup->serve->dtype;
    if (asked && strcmp(asked, "auto") != 0) {
        oos_dtype const dtype = oos_dtype_find(asked);
        if (dtype != OOS_DTYPE_UNKNOWN) return dtype;
    }
    bool const has_bf16 = setup->device.capability == 0 || setup->device.capability >= 80;
    oos_dtype dtype = setup->model->dtype;
    if (dtype == OOS_DTYPE_UNKNOWN || dtype == OOS_DTYPE_F32)
        dtype = has_bf16 && setup->rules->float32_becomes_bfloat16 ? OOS_DTYPE_BF16 : OOS_DTYPE_F16;
    if (dtype == OOS_DTYPE_BF16 && !has_bf16) dtype = OOS_DTYPE_F16;
    /* a model that is refused in float16 is given what else the device has */
    if (dtype == OOS_DTYPE_F16 && setup->rules->float16_refused && oos_setup_unstable_in_float16(setup))
        dtype = has_bf16 ? OOS_DTYPE_BF16 : OOS_DTYPE_F32;
    return dtype;
}

static oos_kv_dtype kv_dtype_find(const char *word)
{
    static const struct {
        const char *word;
        oos_kv_dtype dtype;
    } words[] = {
        {"auto", OOS_KV_MODEL_DTYPE},
        {"bfloat16", OOS_KV_BF16},
        {"float16", OOS_KV_F16},
        {"half", OOS_KV_F16},
        {"float32", OOS_KV_F32},
        {"fp8_ds_mla", OOS_KV_FP8_DS_MLA},
        {"nvfp4_ds_mla", OOS_KV_NVFP4_DS_MLA},
        {"int8_per_token_head", OOS_KV_INT8_PER_TOKEN_HEAD},
        {"fp8_per_token_head", OOS_KV_FP8_PER_TOKEN_HEAD},
        {"int4_per_token_head", OOS_KV_INT4_PER_TOKEN_HEAD},
        {"nvfp4", OOS_KV_NVFP4},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i].word) == 0) return words[i].dtype;
    if (strncmp(word, "fp8", 3) == 0) return OOS_KV_FP8;
    if (strncmp(word, "turboquant", 10) == 0) return OOS_KV_TURBOQUANT;
    return OOS_KV_OTHER;
}

void oos_setup_kv_dtype(oos_setup *setup, const char *word)
{
    setup->kv_dtype_word = word;
    setup->kv_dtype = kv_dtype_find(word);
}

static void resolve_kv_dtype(oos_setup *setup)
{
    const char *word = setup->serve->kv_cache_dtype;
    oos_setup_kv_dtype(setup, word ? word : "auto");
    if (setup->kv_dtype == OOS_KV_MODEL_DTYPE && setup->rules->checkpoint_kv_dtype &&
        setup->model->kv_cache_dtype == OOS_DTYPE_F8) {
        setup->kv_dtype = OOS_KV_FP8;
        setup->kv_dtype_word = "fp8";
    }
}

static oos_dtype state_dtype(const char *asked, oos_dtype fallback)
{
    if (!asked || strcmp(asked, "auto") == 0) return fallback;
    oos_dtype const dtype = oos_dtype_find(asked);
    return dtype == OOS_DTYPE_UNKNOWN ? fallback : dtype;
}

/* Recurrent state: its types and what prefix caching makes of it (MambaModelConfig). */
static void resolve_state(oos_setup *setup)
{
    const oos_serve *serve = setup->serve;
    oos_dtype from_config = OOS_DTYPE_UNKNOWN;
    for (size_t i = 0; i < setup->model->attention_count; i++)
        if (setup->model->attentions[i].state_dtype != OOS_DTYPE_UNKNOWN)
            from_config = setup->model->attentions[i].state_dtype;
    setup->ssm_dtype_given = serve->mamba_ssm_cache_dtype != NULL;
    setup->mamba_block = oos_u64_or(serve->mamba_block_size, 256);
    setup->mamba_conv_dtype = state_dtype(serve->mamba_cache_dtype, setup->dtype);
    setup->mamba_ssm_dtype =
        state_dtype(serve->mamba_ssm_cache_dtype,
                    from_config != OOS_DTYPE_UNKNOWN ? from_config : setup->mamba_conv_dtype);

    bool const has_state = setup->model->hybrid || setup->model->attention_free;
    bool const caching_default = has_state ? setup->rules->hybrid_prefix_caching_default : true;
    setup->prefix_caching = oos_flag_or(serve->enable_prefix_caching, caching_default);
    if (setup->model->attention_free && !setup->rules->hybrid_prefix_caching_default)
        setup->prefix_caching = false;
    setup->mamba_mode = OOS_MAMBA_NONE;
    if (!has_state || !setup->prefix_caching || !setup->rules->mamba_cache_modes) return;
    const char *mode = serve->mamba_cache_mode;
    setup->mamba_mode = mode && strcmp(mode, "all") == 0 ? OOS_MAMBA_ALL : OOS_MAMBA_ALIGN;
}

const char *oos_setup_speculative_method(const oos_setup *setup)
{
    const oos_speculative *spec = &setup->serve->speculative;
    if (spec->method) return spec->method;
    return spec->model ? "draft_model" : "mtp";
}

/* The model's own multi-token-prediction layers are used when no other draft model is named. */
static bool is_mtp(const oos_setup *setup)
{
    const char *method = oos_setup_speculative_method(setup);
    return strstr(method, "mtp") != NULL ||
           (!setup->serve->speculative.model && !setup->serve->speculative.method);
}

static void resolve_speculation(oos_setup *setup)
{
    const oos_speculative *spec = &setup->serve->speculative;
    if (!spec->present) return;
    uint64_t const own = setup->model->mtp_layer_count ? setup->model->mtp_layer_count : 1;
    setup->speculative_tokens = oos_u64_or(spec->tokens, own);
    if (is_mtp(setup)) setup->mtp_layers = setup->model->mtp_layer_count;
    setup->draft_unknown = is_mtp(setup) && !spec->model && setup->mtp_layers == 0;
}

/* Methods that the newer model runner does not take (VllmConfig._get_v2_model_runner_unsupported_features). */
static bool v2_unsupported(const oos_setup *setup)
{
    static const char *const always[] = {"suffix", "medusa", "mlp_speculator", "custom_class"};
    if (oos_setup_says(setup, "v1_only")) return true; /* vLLM 0.33: Step5 */
    if (!setup->serve->speculative.present) return false;
    const char *method = oos_setup_speculative_method(setup);
    if (strcmp(method, "ngram") == 0) return setup->rules->ngram_on_older_runner;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strcmp(method, always[i]) == 0) return true;
    return false;
}

/* VllmConfig.use_v2_model_runner, by release. The lists are the engine's own. */
static bool resolve_v2_runner(const oos_setup *setup)
{
    const oos_model *model = setup->model;
    if (setup->env->v2_model_runner.known) return setup->env->v2_model_runner.value;
    bool const moe = model->moe.experts > 0;
    uint64_t const listed =
        oos_setup_says(setup, "v2_runner"); /* its place: dense ones first, then those with experts */
    switch (setup->rules->v2_runner_default) {
    case 1: /* 0.22: Qwen3; 0.23: and Llama, Mistral */
        return listed && listed <= setup->rules->v2_runner_families && !moe && !model->quant_method &&
               !setup->serve->quantization && !v2_unsupported(setup);
    case 2: return listed && !v2_unsupported(setup);
    case 3:
        return !model->hybrid && !model->attention_free && !model->pooling && (!moe || listed > 3) &&
               !v2_unsupported(setup);
    case 4: return !v2_unsupported(setup);
    default: return false;
    }
}

static uint64_t derived_length(const oos_setup *setup, const oos_model *model)
{
    if (setup->rules->yarn_length_scaled && model->max_position_yarn) return model->max_position_yarn;
    return model->max_position ? model->max_position : 2048;
}

uint64_t oos_setup_derived_length(const oos_setup *setup)
{
    return derived_length(setup, setup->model);
}

/* LongRoPE models are not as long as they could be unless they are asked. */
static uint64_t usual_length(const oos_setup *setup, const oos_model *model)
{
    return setup->rules->longrope_default && model->max_position_default ? model->max_position_default
                                                                         : derived_length(setup, model);
}

static void resolve_lengths(oos_setup *setup)
{
    uint64_t const longest = usual_length(setup, setup->model);
    setup->auto_model_len = setup->serve->max_model_len_auto;
    setup->max_model_len = oos_u64_or(setup->serve->max_model_len, longest);
    if (setup->max_model_len == 0) setup->max_model_len = longest;
}

/* VllmConfig._limit_max_model_len_to_draft(), after the batch has got its defaults. The table of other drafts is made longer. */
static void limit_to_draft(oos_setup *setup)
{
    if (!setup->rules->length_of_draft || !setup->v2_runner || !setup->draft) return;
    if (strcmp(oos_setup_speculative_method(setup), "draft_model") != 0 && !setup->draft->rope_fixed) return;
    uint64_t const own =
        oos_u64_or(setup->serve->speculative.max_model_len, usual_length(setup, setup->draft));
    setup->length_of_draft = own < setup->max_model_len;
    if (setup->length_of_draft) setup->max_model_len = oos_max(1, own);
}

static oos_u64 number_of(const oos_serve *serve, const char *flag)
{
    const oos_given_flag *given = oos_serve_given(serve, flag);
    bool negative;
    uint64_t value;
    if (!given || !given->value || !oos_serve_int(NULL, given->value, &negative, &value) || negative)
        return (oos_u64){0};
    return oos_u64_of(value);
}

static bool is_given_as(const oos_serve *serve, const char *flag, const char *word)
{
    const oos_given_flag *given = oos_serve_given(serve, flag);
    return given && given->value && strcmp(given->value, word) == 0;
}

/* _resolve_gdn_prefill_backend(): FlashInfer's kernel, by itself or when asked for */
bool oos_setup_delta_checkpoints(const oos_setup *setup)
{
    if (!setup->rules->gdn_checkpoints || setup->mamba_mode != OOS_MAMBA_ALIGN) return false;
    const oos_given_flag *asked = oos_serve_given(setup->serve, "--gdn-prefill-backend");
    if (asked && asked->value && strcmp(asked->value, "flashinfer") != 0) return false;
    unsigned const capability = setup->device.capability, family = capability / 10;
    for (size_t i = 0; i < setup->model->attention_count; i++) {
        const oos_attention *a = &setup->model->attentions[i];
        if (a->mixer != OOS_MIXER_GDN) continue;
        return capability == 90 || ((family == 10 || family == 12) && a->key_dim == 128);
    }
    return false;
}

uint64_t oos_setup_ranks_here(const oos_serve *serve, uint64_t world, uint64_t dp, bool *ret_placed)
{
    uint64_t const nodes = oos_max(1, oos_u64_or(number_of(serve, "--nnodes"), 1)),
                   share = oos_mul(world, dp) / nodes;
    *ret_placed = is_given_as(serve, "--distributed-executor-backend", "ray") ||
                  is_given_as(serve, "--distributed-executor-backend", "external_launcher") ||
                  is_given_as(serve, "--data-parallel-backend", "ray");
    if (oos_serve_given(serve, "--data-parallel-rank") ||
        oos_serve_given(serve, "--data-parallel-external-lb"))
        return nodes > 1 ? oos_max(1, share) : world;
    if (nodes > 1 && share < world) return oos_max(1, share); /* a replica over several machines */
    return oos_mul(
        world, oos_u64_or(number_of(serve, "--data-parallel-size-local"), nodes > 1 ? share / world : dp));
}

static void resolve_parallel(oos_setup *setup)
{
    const oos_serve *serve = setup->serve;
    setup->tp = oos_max(1, oos_u64_or(serve->tensor_parallel_size, 1));
    setup->pp = oos_max(1, oos_u64_or(serve->pipeline_parallel_size, 1));
    setup->dp = oos_max(1, oos_u64_or(serve->data_parallel_size, 1));
    setup->dcp = oos_max(1, oos_u64_or(serve->decode_context_parallel_size, 1));
    setup->ep = oos_flag_or(serve->enable_expert_parallel, false) ? oos_mul(setup->tp, setup->dp) : 1;
}

static void limit_parallel(oos_setup *setup)
{
    setup->beyond = setup->tp > OOS_PARALLEL_MAX || setup->pp > OOS_PARALLEL_MAX || setup->dp > 65536;
    if (setup->beyond) setup->tp = setup->pp = setup->dp = setup->ep = 1;
}

void oos_setup_flight(oos_setup *setup)
{
    uint64_t batches = setup->pp;
    if (setup->async_scheduling && setup->v2_runner)
        batches = setup->pp + 1;
    else if (setup->async_scheduling && setup->pp <= 1)
        batches = 2;
    setup->max_in_flight_tokens = oos_mul(setup->max_num_batched_tokens, batches);
}

/* Sizes of the cache have no bound: less than nothing is nothing for it. No bytes at all is as if the flag were not there. */
static oos_u64 not_below(const oos_serve *serve, const char *flag, oos_u64 number)
{
    const oos_given_flag *given = oos_serve_given(serve, flag);
    return given && given->value && *given->value == '-' ? oos_u64_of(0) : number;
}

oomsight_status oos_setup_resolve(oos_arena *arena, const oos_model *model, const oos_model *draft,
                                  const oos_serve *serve, const oos_engine_env *env,
                                  const oos_device_facts *device, const vllm_rules *rules,
                                  oos_setup *ret_setup, oomsight_error *reterr)
{
    (void)arena, (void)reterr;
    oos_setup *setup = ret_setup;
    *setup = (oos_setup){.model = model, .draft = draft, .serve = serve, .env = env, .rules = rules};
    setup->device = *device;
    resolve_parallel(setup);
    limit_parallel(setup);
    setup->draft_tp = oos_max(1, oos_u64_or(serve->speculative.draft_tensor_parallel_size, setup->tp));
    setup->attention_backend = serve->attention_backend ? serve->attention_backend : env->attention_backend;
    setup->dtype = resolve_dtype(setup);
    resolve_kv_dtype(setup);
    resolve_lengths(setup);
    resolve_speculation(setup);
    setup->v2_runner = resolve_v2_runner(setup);
    bool const pools = model->pooling || model->encoder_only;
    setup->chunked_prefill = oos_flag_or(serve->enable_chunked_prefill, !model->encoder_only) ||
                             (rules->chunked_prefill_always && !pools);
    resolve_state(setup);
    oos_setup_for_architecture(setup);
    setup->multimodal =
        model->multimodal && !oos_flag_or(serve->language_model_only, false) && !serve->mm_all_zero;
    oos_setup_batch_limits(setup);
    limit_to_draft(setup);
    setup->async_scheduling = oos_flag_or(serve->async_scheduling, rules->async_scheduling_default);
    oos_setup_flight(setup);

    setup->gpu_memory_utilization =
        oos_f64_or(serve->gpu_memory_utilization, rules->default_gpu_memory_utilization);
    /* A share that the engine refuses is planned all the same: the figures must stay numbers. */
    if (!(setup->gpu_memory_utilization <= 100)) setup->gpu_memory_utilization = 100;
    if (setup->gpu_memory_utilization < 0) setup->gpu_memory_utilization = 0;
    setup->kv_cache_memory_bytes = not_below(serve, "--kv-cache-memory-bytes", serve->kv_cache_memory_bytes);
    if (oos_u64_or(serve->kv_cache_memory_bytes, 1) == 0) setup->kv_cache_memory_bytes.known = false;
    setup->blocks_override = not_below(serve, "--num-gpu-blocks-override", serve->num_gpu_blocks_override);
    setup->block_size_given = serve->block_size;
    setup->sleep_pool =
        oos_flag_or(serve->enable_sleep_mode, false) || oos_flag_or(serve->enable_cumem_allocator, false);
    setup->hybrid_manager = !oos_flag_or(serve->disable_hybrid_kv_cache_manager, false);
    setup->loras = oos_flag_or(serve->enable_lora, false) ? oos_u64_or(serve->max_loras, 1) : 0;
    setup->lora_rank = setup->loras ? oos_u64_or(serve->max_lora_rank, 16) : 0;
    oos_setup_graphs(setup);
    return OOMSIGHT_OK;
}

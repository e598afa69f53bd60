/* What SGLang refuses before it looks at memory: ServerArgs and ModelConfig in the order in which they look, with their own sentences.
 * Files are those of 0.5.23; the sentences stand in 0.5.18 and 0.5.20 as well, unless a rule says otherwise. */
#include "base/locale.h"
#include "engines/sglang/sglang.h"

#include <string.h>

static bool is_given(const oos_serve *serve, const char *flag)
{
    return oos_serve_given(serve, flag) != NULL;
}

/* configs/model_config.py, _derive_context_length() */
static const char *context(oos_arena *arena, const oos_start *start, const sglang_request *r)
{
    uint64_t const derived = start->model->stated_length;
    const oos_given_variable *variable =
        oos_engine_env_given(start->env, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN");
    bool const allowed = variable && variable->on.known && variable->on.value;
    if (!r->context.known || r->context.value <= derived || allowed) return NULL;
    return oos_arena_format(arena,
                            "Warning: User-specified context_length (%llu) is greater than the derived "
                            "context_length (%llu). To allow overriding this maximum, set the env var "
                            "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
                            (unsigned long long)r->context.value, (unsigned long long)derived);
}

/* configs/model_config.py, _verify_quantization(): of the pairs of methods only those that are surely none */
static const char *quantization(oos_arena *arena, const oos_start *start, const sglang_request *r)
{
    static const char *const others[] = {"mxfp4", "awq", "gptq", "bitsandbytes"};
    const char *own = start->model->quant_method;
    if (!own || !r->quantization || strcmp(r->quantization, "fp8") != 0) return NULL;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(own, others[i]) == 0)
            return oos_arena_format(
                arena,
                "Quantization method specified in the model config (%s) does not match the "
                "quantization method specified in the `quantization` argument (%s).",
                own, r->quantization);
    return NULL;
}

/* get_min_capability() of a method, and of the schemes of compressed-tensors: FP8 without kernels of its own runs by Marlin, NVFP4 of
 * ModelOpt too; equal in 0.5.18 and 0.5.23. 0: not known here. */
static unsigned least_capability(oos_quant_kind kind, bool schemes, bool modelopt)
{
    switch (kind) {
    case OOS_QUANT_AWQ: return 75;
    case OOS_QUANT_GPTQ: return 60;
    case OOS_QUANT_PACKED_INT:
    case OOS_QUANT_INT8: return schemes ? 80 : 0;
    case OOS_QUANT_FP8_TENSOR:
    case OOS_QUANT_FP8_CHANNEL:
    case OOS_QUANT_FP8_BLOCK: return modelopt ? 89 : 80;
    case OOS_QUANT_NVFP4: return schemes ? 100 : 80;
    case OOS_QUANT_MXFP4: return 80;
    case OOS_QUANT_BNB: return 70;
    case OOS_QUANT_NONE:
    case OOS_QUANT_MXFP8:
    case OOS_QUANT_UNKNOWN: break;
    }
    return 0;
}

/* model_loader/loader.py, _get_quantization_config(), and compressed_tensors.py, _check_scheme_supported() */
static const char *kernels(oos_arena *arena, const oos_start *start, const sglang_request *r)
{
    const oos_model *model = start->model;
    const char *method = model->quant_method;
    unsigned const has = start->device.capability;
    if (!method || r->quantization || has == 0) return NULL;
    bool const schemes = strncmp(method, "compressed", 10) == 0,
               modelopt = strncmp(method, "modelopt", 8) == 0;
    for (size_t i = 0; i < model->matrix_count; i++) {
        oos_quant_kind const kind = model->quants[model->matrices[i].quant].kind;
        unsigned const least = least_capability(kind, schemes, modelopt);
        if (has >= least) continue;
        if (schemes && kind == OOS_QUANT_NVFP4)
            return "Current platform does not support w4a4 nvfp4 quantization.";
        if (schemes)
            return oos_arena_format(arena,
                                    "Quantization scheme is not supported for the current GPU. Min "
                                    "capability: %u. Current capability: %u.",
                                    least, has);
        return oos_arena_format(arena,
                                "The quantization method %s is not supported for the current GPU. Minimum "
                                "capability: %u. Current capability: %u.",
                                method, least, has);
    }
    return NULL;
}

/* arg_groups/parallel_hook.py, handle_data_parallelism(): an assertion without a sentence */
static const char *replicas(const sglang_request *r)
{
    return r->replicated && r->tp % r->dp ? "AssertionError: assert cfg.tp_size % cfg.attn_dp_size == 0"
                                          : NULL;
}

/* arg_groups/kv_cache_hook.py, handle_cache_compatibility() */
static const char *caches(const oos_serve *serve, const sglang_request *r)
{
    /* a server of decode steps has no radix cache unless told to (pd_disaggregation_hook.py) */
    bool const bare = r->decode_only && !is_given(serve, "--disaggregation-decode-enable-radix-cache");
    bool const radix = !bare && !is_given(serve, "--disable-radix-cache");
    if (!is_given(serve, "--enable-hierarchical-cache") || radix)
        return r->swa_ratio > 0 && r->swa_ratio <= 1 ? NULL
                                                     : "--swa-full-tokens-ratio should be in range (0, 1.0].";
    return "The arguments enable-hierarchical-cache and disable-radix-cache are mutually exclusive and "
           "cannot be used "
           "at the same time. Please use only one of them.";
}

/* arg_groups/speculative_hook.py: ten branches of n-grams are the default, and only pages of one token take them */
static const char *ngrams(oos_arena *arena, const oos_serve *serve, const sglang_request *r)
{
    bool const ngram = r->drafter && strcmp(r->drafter, "NGRAM") == 0;
    if (ngram && r->replicated) return "Currently ngram speculative decoding does not support dp attention.";
    if (!ngram || r->page == 1 || is_given(serve, "--speculative-eagle-topk") ||
        is_given(serve, "--attention-backend"))
        return NULL;
    return oos_arena_format(
        arena,
        "speculative_eagle_topk(10) > 1 with page_size(%llu) > 1 is unstable and produces "
        "incorrect results for paged attention backends.",
        (unsigned long long)r->page);
}

/* arg_groups/lora_hook.py, check_lora_server_args() */
static const char *adapters(const oos_serve *serve)
{
    bool const shaped = is_given(serve, "--max-lora-rank") && is_given(serve, "--lora-target-modules");
    if (!is_given(serve, "--enable-lora") || is_given(serve, "--lora-paths") || shaped) return NULL;
    return "When no initial --lora-paths is provided, you need to specify both --max-lora-rank and "
           "--lora-target-modules for LoRA initialization.";
}

static bool is_below(const oos_serve *serve, const char *flag, double least)
{
    const oos_given_flag *given = oos_serve_given(serve, flag);
    char *end;
    double const number = given && given->value ? oos_real_read(given->value, &end) : least;
    return number < least;
}

/* arg_groups/validation_hook.py, check_server_args() */
static const char *check(oos_arena *arena, const oos_serve *serve, const sglang_request *r,
                         const sglang_setup *setup)
{
    uint64_t const chunk = setup->chunk;
    if (r->pp > 1 && r->drafter && !setup->rules->stages_take_eagle)
        return "Pipeline parallelism is not compatible with overlap schedule, speculative decoding";
    if (r->pp > 1 && r->drafter && strcmp(r->drafter, "EAGLE") != 0)
        return "Pipeline parallelism currently only supports EAGLE (non-multi-layer) speculative decoding";
    const oos_given_flag *name = oos_serve_given(serve, "--served-model-name");
    if (name && name->value && strchr(name->value, ':'))
        return oos_arena_format(
            arena,
            "served_model_name cannot contain a colon (':') character. The colon is reserved for the "
            "'model:adapter' syntax used in LoRA adapter specification. Invalid value: '%s'",
            name->value);
    const char *said = adapters(serve);
    if (said) return said;
    if (chunk && !r->decode_only && chunk % r->page)
        return "chunked_prefill_size must be divisible by page_size";
    if (is_below(serve, "--tokenizer-worker-num", 1)) return "Tokenizer worker num must >= 1";
    if (is_below(serve, "--schedule-conservativeness", 0))
        return "schedule_conservativeness must be non-negative";
    return NULL;
}

const char *sglang_refusal_of(oos_arena *arena, const oos_start *start, const sglang_request *request,
                              const sglang_setup *setup)
{
    const char *said = context(arena, start, request);
    if (!said) said = quantization(arena, start, request);
    if (!said) said = kernels(arena, start, request);
    if (!said) said = replicas(request);
    if (!said) said = ngrams(arena, start->serve, request);
    if (!said) said = caches(start->serve, request);
    return said ? said : check(arena, start->serve, request, setup);
}

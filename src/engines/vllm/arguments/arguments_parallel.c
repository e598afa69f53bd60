/* Ranks, batches, adapters, drafts: what the engine refuses of them. Sources: vllm/config/parallel.py, scheduler.py, lora.py,
 * speculative.py, model.py (verify_with_parallel_config). */
#include "engines/vllm/arguments/arguments.h"

typedef unsigned long long ull;

/* The largest number of ranks that divides the heads and does not exceed `most`. */
static uint64_t ranks_that_divide(uint64_t heads, uint64_t most)
{
    for (uint64_t n = most; n > 1; n--)
        if (heads % n == 0) return n;
    return 1;
}

/* ParallelConfig.__post_init__(), before 0.11.1 the placement group of Ray */
static bool check_world(oos_check *c)
{
    const oos_setup *setup = c->setup;
    uint64_t const ranks = setup->tp * setup->pp;
    const char *backend = oos_check_given(c, "--distributed-executor-backend");
    if (setup->device.count_given && ranks > setup->device.count && !backend &&
        !oos_check_given(c, "--nnodes")) {
        oos_check_mend(c, "--tensor-parallel-size",
                       ranks_that_divide(setup->model->heads, setup->device.count));
        if (setup->pp > 1) oos_check_mend_without(c, "--pipeline-parallel-size");
        if (!setup->rules->world_size_checked) {
            c->refusal->phase = OOS_PHASE_DISTRIBUTED_INIT;
            return oos_check_refuse(c, "The number of required GPUs exceeds the total number of available "
                                       "GPUs in the placement group.");
        }
        if (!setup->rules->world_size_named)
            return oos_check_refuse(
                c, "Tensor parallel size (%llu) cannot be larger than the number of available GPUs (%llu).",
                (ull)ranks, (ull)setup->device.count);
        return oos_check_refuse(
            c, "World size (%llu) is larger than the number of available GPUs (%llu) in this node.",
            (ull)ranks, (ull)setup->device.count);
    }
    return false;
}

/* ParallelConfig */
bool oos_check_parallel(oos_check *c)
{
    const oos_setup *setup = c->setup;
    if (setup->beyond)
        return oos_check_refuse(c, "World size is larger than the number of available GPUs in this node.");
    const oos_u64 tp = setup->serve->tensor_parallel_size;
    if (tp.known && tp.value == 0) { /* where no bound was declared */
        oos_check_mend_without(c, "--tensor-parallel-size");
        return oos_check_refuse(c, "integer modulo by zero");
    }
    if (oos_check_has(c, "--enable-eplb") && setup->ep <= 1 &&
        !oos_flag_or(setup->serve->enable_expert_parallel, false)) {
        oos_check_mend_without(c, "--enable-eplb");
        return oos_check_refuse(c, "enable_expert_parallel must be True to use EPLB.");
    }
    if (oos_check_has(c, "--enable-elastic-ep") && !oos_check_has(c, "--enable-eplb")) {
        oos_check_mend_without(c, "--enable-elastic-ep");
        return oos_check_refuse(c, "Elastic EP is only supported with enable_eplb=True.");
    }
    uint64_t spare = oos_u64_or(setup->serve->redundant_experts, 0);
    bool const by_flag = oos_check_number(c, "--num-redundant-experts", &spare);
    if (spare > 0 && !oos_check_has(c, "--enable-eplb")) {
        oos_check_mend_without(c, by_flag ? "--num-redundant-experts" : "--eplb-config");
        return oos_check_refuse(c,
                                "num_redundant_experts is set to %llu but EPLB is not enabled. Either enable "
                                "EPLB or unset num_redundant_experts.",
                                (ull)spare);
    }
    if (setup->tp % setup->dcp != 0) {
        oos_check_mend_without(c, "--decode-context-parallel-size");
        return oos_check_refuse(c, "tp_size=%llu must be divisible by dcp_size=%llu.", (ull)setup->tp,
                                (ull)setup->dcp);
    }
    if (!setup->rules->world_size_checked) return false;
    return check_world(c);
}

/* Classes of such configs (Jamba, Nemotron-H) state experts by default, whatever the file says. */
static bool has_mamba(const oos_model *model)
{
    for (size_t i = 0; i < model->layer_count; i++) {
        oos_mixer const kind = model->attentions[model->layers[i].attention].mixer;
        if (kind == OOS_MIXER_MAMBA1 || kind == OOS_MIXER_MAMBA2) return true;
    }
    return false;
}

/* ModelConfig.verify_with_parallel_config() */
bool oos_check_parallel_late(oos_check *c)
{
    const oos_setup *setup = c->setup;
    const oos_model *model = setup->model;
    if (model->heads && model->heads % setup->tp != 0) {
        oos_check_mend(c, "--tensor-parallel-size", ranks_that_divide(model->heads, setup->tp - 1));
        return oos_check_refuse(
            c, "Total number of attention heads (%llu) must be divisible by tensor parallel size (%llu).",
            (ull)model->heads, (ull)setup->tp);
    }
    if (oos_flag_or(setup->serve->enable_expert_parallel, false) && model->moe.experts == 0 && model->known &&
        !has_mamba(model)) {
        oos_check_mend_without(c, "--enable-expert-parallel");
        return oos_check_refuse(
            c, "Number of experts in the model must be greater than 0 when expert parallelism is enabled.");
    }
    if (setup->dcp > 1 && !model->mla && setup->rules->bounds_declared) {
        if (setup->tp <= model->kv_heads) {
            oos_check_mend_without(c, "--decode-context-parallel-size");
            if (!setup->rules->context_ranks_named)
                return oos_check_refuse(c,
                                        "tensor parallel size %llu must be greater than total num kv heads "
                                        "%llu when enable decode context parallel for GQA/MQA",
                                        (ull)setup->tp, (ull)model->kv_heads);
            return oos_check_refuse(
                c,
                "Decode context parallelism for GQA/MQA requires `--tensor-parallel-size` (%llu) to be "
                "greater than the model's total number of KV heads (%llu).",
                (ull)setup->tp, (ull)model->kv_heads);
        }
        uint64_t const most = model->kv_heads ? setup->tp / model->kv_heads : setup->tp;
        if (setup->dcp > most) {
            oos_check_mend(c, "--decode-context-parallel-size", most);
            return oos_check_refuse(
                c,
                "`--decode-context-parallel-size` (%llu) exceeds the maximum supported value (%llu) for "
                "`--tensor-parallel-size` (%llu) and %llu model KV heads.",
                (ull)setup->dcp, (ull)most, (ull)setup->tp, (ull)model->kv_heads);
        }
    }
    return false;
}

/* SpeculativeConfig */
bool oos_check_speculation(oos_check *c)
{
    const oos_setup *setup = c->setup;
    const oos_speculative *spec = &setup->serve->speculative;
    if (!spec->present) return false;
    oos_check_mend_without(c, "--speculative-config");
    c->refusal->mend_count = 1;
    bool const mtp = spec->method && strstr(spec->method, "mtp");
    if (spec->unexpected_key)
        return oos_check_refuse(c, "%s: Unexpected keyword argument", spec->unexpected_key);
    if (spec->method_wrong)
        return oos_check_refuse(
            c, "method: Input should be 'ngram', 'medusa', 'draft_model', 'eagle', 'mtp', ... (got '%s')",
            spec->method);
    if (spec->tokens_wrong && setup->rules->bounds_declared)
        return oos_check_refuse(c, "num_speculative_tokens: Input should be greater than 0");
    bool const counts = !spec->method || mtp || strncmp(spec->method, "ngram", 5) == 0 ||
                        strcmp(spec->method, "extract_hidden_states") == 0;
    if (counts && !spec->model && !spec->tokens.known && !spec->tokens_wrong)
        return oos_check_refuse(c,
                                "num_speculative_tokens must be provided with speculative model unless the "
                                "draft model config contains an n_predict parameter.");
    bool const none = mtp && !spec->model &&
                      !oos_drafts_for_itself(setup->rules->facts, setup->model->model_type,
                                             setup->model->architecture, setup->rules->version);
    if (none && setup->rules->drafts_only_with_model)
        return oos_check_refuse(c, "Speculative decoding with draft model is not supported yet. Please "
                                   "consider using other speculative decoding methods such as ngram, medusa, "
                                   "eagle, or mtp.");
    if (none) return oos_check_refuse(c, "Unsupported speculative method: '%s'", spec->method);
    bool const own =
        spec->method &&
        (mtp || strncmp(spec->method, "ngram", 5) == 0 || strcmp(spec->method, "suffix") == 0 ||
         strcmp(spec->method, "custom_class") == 0 || strcmp(spec->method, "extract_hidden_states") == 0);
    if (!own && !spec->model)
        return oos_check_refuse(c, "num_speculative_tokens was provided but without speculative model.");
    if (spec->tokens_wrong)
        return oos_check_refuse(c, "Expected num_speculative_tokens to be greater than zero.");
    c->refusal->mend_count = 0;
    return false;
}

/* SchedulerConfig._verify_args(), before bounds were declared */
static bool check_scheduler_by_hand(oos_check *c)
{
    const oos_serve *serve = c->setup->serve;
    uint64_t prefills;
    if (serve->max_num_batched_tokens.known && serve->max_num_batched_tokens.value == 0) {
        oos_check_mend_without(c, "--max-num-batched-tokens");
        return oos_check_refuse(c,
                                "max_num_batched_tokens (0) must be greater than or equal to max_num_seqs.");
    }
    if (oos_check_number(c, "--max-num-partial-prefills", &prefills) && prefills < 1) {
        oos_check_mend_without(c, "--max-num-partial-prefills");
        return oos_check_refuse(c, "max_num_partial_prefills (0) must be greater than or equal to 1.");
    }
    return false;
}

/* SchedulerConfig.verify_max_model_len() */
bool oos_check_scheduler(oos_check *c)
{
    const oos_setup *setup = c->setup;
    uint64_t const tokens = setup->max_num_batched_tokens, seqs = setup->max_num_seqs,
                   length = setup->max_model_len;
    if (!setup->rules->bounds_declared && check_scheduler_by_hand(c)) return true;
    bool const no_length = setup->serve->max_model_len.known && setup->serve->max_model_len.value == 0;
    if (no_length && setup->rules->bounds_declared && !setup->serve->max_num_batched_tokens.known) {
        oos_check_mend_without(c, "--max-model-len");
        return oos_check_refuse(c, "max_num_batched_tokens: Input should be greater than or equal to 1");
    }
    if (tokens < length && !setup->chunked_prefill) {
        oos_check_mend(c, "--max-num-batched-tokens", length);
        return oos_check_refuse(c, "max_num_batched_tokens (%llu) is smaller than max_model_len (%llu).",
                                (ull)tokens, (ull)length);
    }
    if (tokens < seqs) {
        oos_check_mend(c, "--max-num-batched-tokens", seqs);
        oos_check_mend(c, "--max-num-seqs", tokens);
        return oos_check_refuse(
            c, "max_num_batched_tokens (%llu) must be greater than or equal to max_num_seqs (%llu).",
            (ull)tokens, (ull)seqs);
    }
    uint64_t threshold;
    if (setup->rules->long_prefill_checked &&
        oos_check_number(c, "--long-prefill-token-threshold", &threshold) && threshold > length) {
        oos_check_mend_without(c, "--long-prefill-token-threshold");
        return oos_check_refuse(
            c, "long_prefill_token_threshold (%llu) cannot be greater than the max_model_len (%llu).",
            (ull)threshold, (ull)length);
    }
    return false;
}

/* LoRAConfig */
bool oos_check_lora(oos_check *c)
{
    static const uint64_t ranks[] = {8, 16, 32, 64, 128, 256, 320, 512};
    uint64_t most, rank;
    if (oos_check_number(c, "--max-loras", &most) && most == 0) { /* where no bound was declared */
        oos_check_mend_without(c, "--max-loras");
        return oos_check_refuse(c, "max_loras (0) must be >= 1.");
    }
    if (!c->setup->rules->bounds_declared && oos_check_number(c, "--max-lora-rank", &rank)) {
        bool listed = false;
        for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) listed |= ranks[i] == rank;
        if (!listed) {
            oos_check_mend_without(c, "--max-lora-rank");
            return oos_check_refuse(
                c, "max_lora_rank (%llu) must be one of (8, 16, 32, 64, 128, 256, 320, 512).", (ull)rank);
        }
    }
    if (!oos_check_number(c, "--max-cpu-loras", &most) || most == 0 || most >= c->setup->loras) return false;
    oos_check_mend_without(c, "--max-cpu-loras");
    return oos_check_refuse(c, "max_cpu_loras (%llu) must be >= max_loras (%llu).", (ull)most,
                            (ull)c->setup->loras);
}

/* VllmConfig._set_cudagraph_sizes() */
static bool check_graphs(oos_check *c)
{
    const oos_compilation *graphs = &c->setup->serve->compilation;
    if (!c->setup->rules->bounds_declared || oos_flag_or(c->setup->serve->enforce_eager, false)) return false;
    if (graphs->max_capture_size.known && graphs->max_capture_size.value == 0) {
        oos_check_mend_without(c, oos_check_has(c, "--max-cudagraph-capture-size")
                                      ? "--max-cudagraph-capture-size"
                                      : "--compilation-config");
        return oos_check_refuse(
            c, "Maximum cudagraph size should be greater than or equal to 1 when using cuda graph.");
    }
    bool const none = graphs->cudagraph_mode && strcmp(graphs->cudagraph_mode, "NONE") == 0;
    uint64_t largest = 0;
    for (size_t i = 0; graphs->capture_sizes_given && i < graphs->capture_size_count; i++)
        if (graphs->capture_sizes[i] > largest) largest = graphs->capture_sizes[i];
    if (largest && graphs->max_capture_size.known && graphs->max_capture_size.value != largest && !none) {
        oos_check_mend_without(c, oos_check_has(c, "--max-cudagraph-capture-size")
                                      ? "--max-cudagraph-capture-size"
                                      : "--compilation-config");
        return oos_check_refuse(c,
                                "customized max_cudagraph_capture_size(=%llu) should be consistent with the "
                                "max value of cudagraph_capture_sizes(=%llu)",
                                (ull)graphs->max_capture_size.value, (ull)largest);
    }
    if (graphs->capture_sizes_given && graphs->capture_size_count == 0 && !none) {
        oos_check_mend_without(c, "--compilation-config");
        return oos_check_refuse(
            c, "cudagraph_capture_sizes should contain at least one element when using cuda graph.");
    }
    return false;
}

bool oos_check_levels(oos_check *c)
{
    const oos_compilation *graphs = &c->setup->serve->compilation;
    if (!c->setup->rules->optimization_levels || !graphs->optimization_level.known) return false;
    if (graphs->optimization_level.value <= 3) return false;
    const char *meant = graphs->level_flag; /* has another spelling here */
    if (meant)
        c->refusal->mends[c->refusal->mend_count++] =
            (oos_mend){.flag = meant, .instead_of = meant, .text = graphs->level_value};
    oos_check_mend_without(c, meant ? meant : "--optimization-level");
    return oos_check_refuse(c, "optimization_level: Input should be 0, 1, 2 or 3");
}

/* EngineArgs: the same thing said twice */
bool oos_check_sizes_twice(oos_check *c)
{
    static const char *const flags[] = {"--cudagraph-capture-sizes", "--max-cudagraph-capture-size"};
    static const char *const names[] = {"cudagraph_capture_sizes", "max_cudagraph_capture_size"};
    const oos_compilation *graphs = &c->setup->serve->compilation;
    for (size_t i = 0; i < 2; i++) {
        if (!oos_check_has(c, flags[i]) || !(i ? graphs->max_in_json : graphs->sizes_in_json)) continue;
        oos_check_mend_without(c, flags[i]);
        return oos_check_refuse(c, "%s and compilation_config.%s are mutually exclusive", names[i], names[i]);
    }
    return false;
}

bool oos_check_backend(oos_check *c)
{
    const char *name = c->setup->serve->attention_backend;
    char upper[64];
    size_t len = 0;
    if (!name || !oos_check_has(c, "--attention-backend") || strcmp(name, "auto") == 0) return false;
    for (; name[len] && len + 1 < sizeof upper; len++)
        upper[len] = name[len] >= 'a' && name[len] <= 'z' ? (char)(name[len] - 'a' + 'A') : name[len];
    upper[len] = '\0';
    if (oos_backend_name_known(c->setup->rules->facts, upper, c->setup->rules->version)) return false;
    oos_check_mend_without(c, "--attention-backend");
    return oos_check_refuse(
        c, "Unknown attention backend: '%s'. Valid options are: FLASH_ATTN, TRITON_ATTN, FLASHINFER, ...",
        name);
}

bool oos_check_state(oos_check *c)
{
    const oos_setup *setup = c->setup;
    if (setup->mamba_mode != OOS_MAMBA_ALIGN || setup->chunked_prefill) return false;
    oos_check_mend_without(c, "--enable-chunked-prefill");
    return oos_check_refuse(c, "Chunked prefill is required for mamba cache mode 'align'.");
}

static bool check_cache_type(oos_check *c)
{
    const char *word = c->setup->serve->kv_cache_dtype;
    if (!word || strncmp(word, "nvfp4", 5) != 0 || strstr(word, "_ds_mla") || !c->setup->model->mla)
        return false;
    oos_check_mend_without(c, "--kv-cache-dtype");
    return oos_check_refuse(
        c, "nvfp4 KV cache is not supported with MLA (Multi-head Latent Attention) backends. "
           "Please use a different --kv-cache-dtype.");
}

/* Rows of a block of the experts' scales; 0: not quantised so. */
static uint64_t expert_block(const oos_model *model)
{
    for (size_t i = 0; i < model->matrix_count; i++) {
        const oos_quant *quant = &model->quants[model->matrices[i].quant];
        if (model->matrices[i].expert && quant->kind == OOS_QUANT_FP8_BLOCK) return quant->block_out;
    }
    return 0;
}

/* Fp8MoEMethod.create_weights(): told while the model is built. */
static bool check_expert_blocks(oos_check *c)
{
    const oos_setup *setup = c->setup;
    const oos_model *model = setup->model;
    if (!setup->rules->fp8_experts_by_blocks || setup->tp < 2 || setup->ep > 1 ||
        model->moe.intermediate == 0)
        return false;
    uint64_t const block = expert_block(model), share = model->moe.intermediate / setup->tp;
    if (block == 0 || share % block == 0) return false;
    for (uint64_t n = setup->tp - 1; n > 1; n--)
        if (model->heads % n == 0 && model->moe.intermediate / n % block == 0) {
            oos_check_mend(c, "--tensor-parallel-size", n);
            break;
        }
    c->refusal->phase = OOS_PHASE_WEIGHT_LOAD;
    return oos_check_refuse(
        c,
        "The output_size of gate's and up's weight = %llu is not divisible by weight quantization "
        "block_n = %llu.",
        (ull)share, (ull)block);
}

bool oos_check_rest(oos_check *c)
{
    return check_graphs(c) || check_cache_type(c) || check_expert_blocks(c) ||
           (!c->setup->rules->world_size_checked && check_world(c));
}
